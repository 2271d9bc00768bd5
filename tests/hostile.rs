//! Servers that break every rule: the crawl ends, in bounded memory, and knows the outcome of each URL.

use std::collections::BTreeMap;
use std::thread;

use archive_books::ledger::{Refusal, page_flags};
use archive_storage::{CaptureKind, Store, UrlId};
use archive_testweb::{Config, faults, traps};

use crate::support::answers::{Answers, CLOSE, html, plain, redirect, whole};
use crate::support::program::{Usage, start};
use crate::support::{Archive, TestWeb, captures, ledger_balances};

/// Faults whose number matters, in addition to those with a fixed number.
const NUMBERED: [&str; 6] =
    ["/status/404", "/status/429", "/status/503", "/recovers/1", "/redirect-chain/19", "/redirect-chain/404"];

/// Largest number of consecutive redirects that are followed.
const REDIRECTS_MAX: u64 = 20;

/// Number of crawls that share the faults.
const CRAWLS: usize = 5;

/// Largest memory of a crawl of the worst pages, in MiB.
const MEMORY_MIB_MAX: u64 = 700;

/// Returns the address of every fault: paths of `faults.test`, and two pages of each host whose robots.txt is the fault.
fn every_fault() -> Vec<String> {
    let listed = faults::FAULTS.iter().copied().flatten().map(|fault| fault.path.replace("{n}", "3"));
    let paths = listed.chain(NUMBERED.map(str::to_owned));
    let mut seeds: Vec<String> = paths.map(|path| format!("http://faults.test{path}")).collect();
    for host in faults::ROBOTS_HOSTS {
        seeds.push(format!("http://{}.faults.test/", host.name));
        seeds.push(format!("http://{}.faults.test/private/", host.name));
    }
    seeds
}

#[test]
fn every_fault_ends_in_a_capture_or_a_reason() {
    let served = TestWeb::start(Config::plain(81, 1, 1));
    let urls = every_fault();
    // A failing host is left alone for a while; several parallel crawls have to wait for fewer hosts each.
    let share = |number: usize| urls.iter().skip(number).step_by(CRAWLS).cloned().collect::<Vec<String>>();
    thread::scope(|scope| {
        for number in 0..CRAWLS {
            let (served, urls) = (&served, share(number));
            scope.spawn(move || end_well(served, &urls));
        }
    });
}

/// Crawls faulty pages only, and checks the outcome of each.
fn end_well(served: &TestWeb, urls: &[String]) {
    let archive = Archive::new();
    let seeds: Vec<String> = urls.iter().map(|url| format!("{url} scope=host depth=0")).collect();
    let mut options = served.at_once();
    options.extend(["--timeout", "1s", "--max-time", "4s", "--max-body", "4"].map(str::to_owned));
    let (ended, Usage { peak_mib: peak, .. }) = start(&mut archive.crawl(&seeds, &options)).measure();
    println!("{} faults in {:?}, {peak} MiB at most", urls.len(), ended.elapsed);
    // Servers that fail without end are left to the next run.
    ended.refused(4, &["all that is left waits for its servers"]);
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    let captured = captures(&archive.path);
    captured.are_single();
    // In addition to the pages themselves: redirects from them, and robots.txt of each host.
    let most = 2 * urls.len() as u64 + REDIRECTS_MAX;
    assert!(captured.count() <= most, "{} captures: a chain without end was followed", captured.count());

    let store = Store::read_only(&archive.path).unwrap();
    let without_outcome: Vec<&String> = urls.iter().filter(|url| !print_outcome(&store, url)).collect();
    println!("nothing is known of {without_outcome:#?}");
    assert!(without_outcome.iter().all(|url| is_refused(url)), "{without_outcome:#?}");
    drop(store);
    archive.verify();
    ledger_balances(&archive.path);
}

/// Prints the outcome of a URL; returns whether there is one.
fn print_outcome(store: &Store, url: &str) -> bool {
    let state = store.state();
    let canonical = archive_storage::address::canonical(&url.parse().unwrap());
    let newest = state.find(&canonical).unwrap().and_then(|id| state.history(id).unwrap().next());
    let Some((_, capture)) = newest.transpose().unwrap() else { return false };
    let record = store.record(capture.location).unwrap();
    if capture.kind == CaptureKind::Failed {
        let reason = record.fields().into_iter().find(|(name, _)| name == "error").map(|(_, reason)| reason);
        let reason = reason.unwrap_or_else(|| panic!("{url} failed without a reason"));
        assert!(!reason.is_empty(), "{url} failed without a reason");
        println!("{url}: no answer: {reason}");
    } else {
        let cut = record.header.get("WARC-Truncated").map_or(String::new(), |why| format!(", cut: {why}"));
        println!("{url}: {} with {} bytes{cut}", capture.status, capture.length);
    }
    true
}

/// Whether robots.txt of a faulty host disallows a page.
fn is_refused(url: &str) -> bool {
    let closed = [
        "robots-503",
        "robots-500",
        "robots-429",
        "robots-nothing",
        "robots-elsewhere",
        "robots-hang",
        "robots-reset",
        "robots-secure",
    ];
    let is_private = url.ends_with("/private/");
    let half_open = ["robots-redirect", "robots-binary", "robots-delay"];
    let begins = |names: &[&str]| names.iter().any(|name| url.starts_with(&format!("http://{name}.")));
    begins(&closed) || (is_private && begins(&half_open))
}

/// The rule against each trap, with nothing else to end the crawl.
#[test]
fn traps_do_not_keep_a_crawl_from_its_end() {
    let served = TestWeb::start(Config::plain(82, 1, 1));
    let archive = Archive::new();
    let mut seeds: Vec<String> = traps::ENTRANCES.iter().map(|url| (*url).to_owned()).collect();
    seeds.retain(|url| !url.contains("farm"));
    let mut options = served.at_once();
    options.extend(["--query-variations", "20", "--same-content", "30"].map(str::to_owned));
    let (ended, Usage { peak_mib: peak, .. }) = start(&mut archive.crawl(&seeds, &options)).measure();
    let ended = ended.succeeded();
    assert!(ended.errors.contains("nothing left to fetch"), "{}", ended.errors);
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    let captured = captures(&archive.path);
    captured.are_single();
    let pages = |host: &str| captured.urls().into_iter().filter(|url| url.contains(host)).count();
    for host in ["calendar", "session", "soup", "facets", "soft404"] {
        println!("{host}: {} captures", pages(&format!("//{host}.")));
    }
    // Ten pages and the entrance, robots.txt and the usual sitemap; and sixteen tests at a time of each of the three
    // parameters that hold sessions, with the 32 requests that may be under way when they succeed.
    assert!(pages("//session.") <= 13 + 3 * 16 + 32);
    for host in ["calendar", "soup", "facets", "soft404"] {
        let most = if host == "facets" { 4000 } else { 1500 };
        assert!((20..most).contains(&pages(&format!("//{host}."))), "{host}");
    }

    let store = Store::read_only(&archive.path).unwrap();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in store.state().pages(UrlId(0)) {
        let (id, page) = entry.unwrap();
        if let Some(why) = Refusal::from_code(page_flags::refusal_code(page.flags)) {
            refused.entry(format!("{why:?}")).or_default().push(store.state().url(id).unwrap());
        }
    }
    drop(store);
    let hosts = [("RepeatingPath", "//soup."), ("SameContent", "//calendar."), ("SameContent", "//soft404.")];
    for (why, host) in hosts {
        let example = refused[why].iter().find(|url| url.contains(host));
        let answer = archive.run("why", &[example.unwrap()]).succeeded().text();
        println!("{} URLs refused for {why}; {answer}", refused[why].len());
        assert!(answer.contains("is not fetched: "), "{answer}");
    }
    assert!(
        refused.contains_key("QueryVariations")
            || refused["SameContent"].iter().any(|url| url.contains("facets"))
    );
    let copies = captured.urls().into_iter().find(|url| {
        let answer = url.contains("//calendar.").then(|| archive.json("why", &[url]).remove(0));
        answer.is_some_and(|answer| {
            answer["last_fetch"]["problems"].to_string().contains("its links are not followed")
        })
    });
    assert!(copies.is_some(), "the capture records the reason");

    // What was learned stays: the same command requests nothing more from the traps.
    let known = captured.urls();
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    let more: Vec<_> =
        captures(&archive.path).urls().into_iter().filter(|url| !known.contains(url)).collect();
    assert!(more.is_empty(), "{} more URLs, as {:?}", more.len(), more.first());
    archive.verify();
    ledger_balances(&archive.path);
}

#[test]
fn a_link_farm_cannot_eat_a_crawl() {
    let served = TestWeb::start(Config::plain(83, 12, 400));
    let archive = Archive::new();
    let mut seeds = served.web.seeds(3);
    seeds.push("http://boss.farm.test/".to_owned());
    seeds.push("http://calendar.trap.test/".to_owned());
    let mut options = served.at_once();
    options.extend(["--scope", "any", "--pages-per-site", "60", "--pages-per-host", "40"].map(str::to_owned));
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    let captured = captures(&archive.path).urls();
    let pages = |part: &str| {
        captured.iter().filter(|url| url.contains(part) && !url.ends_with("/robots.txt")).count()
    };
    println!(
        "{} URLs, {} of the farm, {} of the calendar",
        captured.len(),
        pages(".farm."),
        pages("calendar.")
    );
    // The farm's own links do not count, so its budget hardly grows.
    assert!((60..=120).contains(&pages(".farm.")) && (40..=80).contains(&pages("calendar.")));
    let store = Store::read_only(&archive.path).unwrap();
    let budgets = [(Refusal::PagesPerSite, ".farm."), (Refusal::PagesPerHost, "calendar.")];
    for (expected, part) in budgets {
        let refused = store.state().pages(UrlId(0)).map(Result::unwrap).find(|(id, page)| {
            let why = Refusal::from_code(page_flags::refusal_code(page.flags));
            why == Some(expected) && store.state().url(*id).unwrap().contains(part)
        });
        assert!(refused.is_some(), "{expected:?}");
    }
    drop(store);
    let answer = archive.run("why", &["http://boss.farm.test/"]).succeeded().text();
    assert!(answer.contains(" of ") && answer.contains("pages fetched"), "{answer}");
    ledger_balances(&archive.path);

    // With a larger budget, the same command continues the crawl.
    options.extend(["--pages-per-site", "90"].map(str::to_owned));
    let before = captured.len();
    let mut more = options.clone();
    let place = more.iter().position(|option| option == "--pages-per-site").unwrap();
    more.drain(place..place + 2);
    start(&mut archive.crawl(&seeds, &more)).wait().succeeded();
    assert!(captures(&archive.path).urls().len() > before);
}

/// URLs of 2 KiB and of one byte more, from every kind of link.
#[test]
fn longer_urls_than_2_kib_are_not_followed() {
    fn url(place: &str, bytes: usize) -> String {
        format!("{:x<bytes$}", format!("http://a.test/{place}?q="))
    }
    let served = Answers::start(|_, path| match path {
        "/robots.txt" => plain("Sitemap: http://a.test/map.xml"),
        "/map.xml" => {
            let entry = |bytes| format!("<url><loc>{}</loc></url>", url("map", bytes));
            let entries = format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{}{}</urlset>",
                entry(2048),
                entry(2049)
            );
            whole(200, "Content-Type: application/xml\r\n", entries.as_bytes())
        }
        "/at" => redirect(&url("moved", 2048)),
        "/over" => redirect(&url("moved", 2049)),
        "/" => html(&format!(
            "<a href=/at>a</a><a href=/over>o</a><a href={}>a</a><a href={}>o</a>",
            url("page", 2048),
            url("page", 2049)
        )),
        _ => html("<title>t</title>"),
    });
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://a.test/".to_owned()], &served.at_once())).wait().succeeded();
    let urls = captures(&archive.path).urls();
    for place in ["map", "moved", "page"] {
        assert!(urls.contains(&url(place, 2048)), "{place}");
        assert!(!urls.contains(&url(place, 2049)), "{place}");
    }
    assert!(urls.contains("http://a.test/over"), "what redirects is stored");
    archive.verify();
}

/// Heads and bodies against the rules that browsers read all the same, up to the limits.
#[test]
fn what_browsers_read_is_captured_whole() {
    const BODY: &str = "<title>whole</title>";
    fn answer(path: &str) -> Option<String> {
        let (length, fields) = (BODY.len(), "Content-Type: text/html\r\n");
        let plain = |version: &str, more: &str| {
            format!("{version} 200 OK\r\n{fields}{more}Content-Length: {length}\r\n\r\n{BODY}")
        };
        // The limit is for the whole head.
        let long = |bytes: usize| {
            let rest = plain("HTTP/1.1", "X: \r\n").len() - BODY.len();
            plain("HTTP/1.1", &format!("X: {}\r\n", "x".repeat(bytes - rest)))
        };
        Some(match path {
            "/list" => {
                plain("HTTP/1.1", "").replace("Content-Length: ", &format!("Content-Length: {length}, "))
            }
            "/twice" => plain("HTTP/1.1", &format!("Content-Length: {length}\r\n")),
            "/contradiction" => plain("HTTP/1.1", "Content-Length: 7\r\n"),
            "/blank" => format!("\r\n\n{}", plain("HTTP/1.1", "")),
            "/nul" => plain("HTTP/1.1", "X: a\0b\r\n"),
            "/version" => plain("HTTP/1.2", ""),
            "/fold" => plain("HTTP/1.1", "X: a\r\n\tb\r\n"),
            "/lf" => plain("HTTP/1.1", "").replace("\r\n", "\n"),
            "/at" => long(256 << 10),
            "/over" => long((256 << 10) + 1),
            "/unended" => {
                format!(
                    "HTTP/1.1 200 OK\r\n{fields}{CLOSE}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{BODY}\r\n0\r\n"
                )
            }
            _ => return None,
        })
    }
    let whole = ["/list", "/twice", "/blank", "/nul", "/version", "/fold", "/lf", "/at", "/unended"];
    let broken = ["/contradiction", "/over"];
    let served = Answers::start(|_, path| answer(path).map_or_else(|| plain(""), String::into_bytes));
    let archive = Archive::new();
    let seeds: Vec<String> = whole.iter().chain(&broken).map(|path| format!("http://a.test{path}")).collect();
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let captured = captures(&archive.path);
    for path in whole {
        let capture = captured.0[&format!("http://a.test{path}")].last().unwrap();
        assert_eq!(
            (capture.status, capture.length, capture.kind),
            (200, BODY.len() as u32, CaptureKind::Response),
            "{path}"
        );
    }
    for path in broken {
        assert_eq!(
            captured.0[&format!("http://a.test{path}")].last().unwrap().kind,
            CaptureKind::Failed,
            "{path}"
        );
    }
    archive.verify();
}

#[test]
fn pages_that_ask_for_it_are_not_followed_and_not_kept() {
    let served = TestWeb::start(Config::plain(84, 1, 1));
    let archive = Archive::new();
    let paths = ["robots-meta", "robots-tag"];
    let seeds = paths.map(|path| format!("http://faults.test/{path}"));
    let mut options = served.at_once();
    options.extend(["--obey-nofollow", "--obey-noarchive"].map(str::to_owned));
    let ended = start(&mut archive.crawl(&seeds, &options)).wait();
    ended.refused(1, &["1 capture, ", "2 refused", "no seed could be fetched"]);
    for url in &seeds {
        let answer = archive.json("why", &[url]).remove(0);
        assert_eq!(answer["last_fetch"]["kind"], "failed", "{answer}");
        assert!(answer["last_fetch"]["error"].as_str().unwrap().contains("noarchive"), "{answer}");
    }
    let captured = captures(&archive.path).urls();
    let unfollowed: Vec<_> = captured.iter().filter(|url| !seeds.contains(url)).collect();
    assert_eq!(unfollowed, ["http://faults.test/robots.txt", "http://faults.test/sitemap.xml"]);

    // The archive remembers the options. Once they are taken back, pages are kept and their links are fetched.
    let mut options = served.at_once();
    options.extend(["--obey-nofollow=false", "--obey-noarchive=false"].map(str::to_owned));
    start(&mut archive.crawl(&[format!("{}?again", seeds[0])], &options)).wait().succeeded();
    let captured = captures(&archive.path);
    println!("{:?}", captured.urls());
    assert!(captured.urls().len() > 4, "{:?}", captured.urls());
    ledger_balances(&archive.path);
}

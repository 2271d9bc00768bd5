//! Effects of a robots.txt on a crawl, and their limits: it disallows pages of its own host, and nothing else.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::support::answers::{Answers, html, nothing, plain, redirect, whole};
use crate::support::program::{start, within};
use crate::support::{Archive, captures, ledger_balances};

/// Returns a victim with four pages, and hosts whose robots.txt redirects to them.
fn victim_and_others() -> Answers {
    Answers::start(|host, path| match (host, path) {
        ("victim.test", "/") => {
            html("<title>Home</title><a href=/page.html>p</a><a href=/x/robots.txt>x</a>")
        }
        ("victim.test", "/page.html") => html("<title>Page</title>page <a href=/next.html>n</a>"),
        ("victim.test", "/next.html") => html("<title>Next</title>next"),
        ("victim.test", "/x/robots.txt") => plain("no robots.txt"),
        ("evil.test", "/robots.txt") => redirect("http://victim.test/page.html"),
        ("chain.test", "/robots.txt") => redirect("http://other.test/a"),
        ("other.test", "/a") => redirect("http://victim.test/page.html"),
        // As on many servers for all missing files.
        ("soft.test", "/robots.txt") => redirect("/"),
        (_, "/robots.txt") => nothing(),
        _ => html(&format!("<title>{host}</title>home of {host}")),
    })
}

/// Returns the pages that a query finds and their captures, except the sitemap in the usual place.
fn found(archive: &Archive) -> Vec<(String, u64)> {
    let rows = archive.json("query", &["captures > 0 order by url"]);
    let row = |row: Value| (row["url"].as_str().unwrap().to_owned(), row["captures"].as_u64().unwrap());
    rows.into_iter().map(row).filter(|(url, _)| !url.ends_with("/sitemap.xml")).collect()
}

/// Fails unless the victim's pages are pages with one capture each: as crawled, replayed and rebuilt.
fn victim_is_whole(archive: &Archive, what: &str) {
    const PAGES: [&str; 4] = ["", "next.html", "page.html", "x/robots.txt"];
    for way in ["as crawled", "replayed", "rebuilt"] {
        match way {
            "replayed" => {
                std::fs::remove_dir_all(archive.path.join("state")).unwrap();
                archive.run("refresh", &["--budget", "0"]).succeeded();
            }
            "rebuilt" => drop(archive.run::<&str>("rebuild", &[]).succeeded()),
            _ => {}
        }
        let of_victim: Vec<(String, u64)> =
            found(archive).into_iter().filter(|(url, _)| url.starts_with("http://victim.test/")).collect();
        assert_eq!(of_victim, PAGES.map(|page| (format!("http://victim.test/{page}"), 1)), "{what}, {way}");
        let exported = archive.folder().join("exported.warc");
        let query = ["warc", "--where", "host = \"victim.test\"", "--output"];
        start(archive.command("export").args(query).arg(&exported)).wait().succeeded();
        let text = std::fs::read(&exported).unwrap();
        for page in PAGES {
            let field = format!("WARC-Target-URI: http://victim.test/{page}\r\n");
            assert!(memchr::memmem::find(&text, field.as_bytes()).is_some(), "{what}, {way}: {page}");
        }
        archive.verify();
        ledger_balances(&archive.path);
    }
}

#[test]
fn what_a_url_is_does_not_depend_on_a_robots_txt_that_redirects_to_it() {
    let served = victim_and_others();
    let options = served.at_once();
    let others = ["http://evil.test/", "http://chain.test/", "http://soft.test/"].map(str::to_owned);
    let victim = ["http://victim.test/".to_owned()];
    let page = ["http://victim.test/page.html".to_owned(), "http://victim.test/".to_owned()];
    let orders: [(&str, &[&[String]]); 4] = [
        ("redirected before it is linked", &[&others, &victim]),
        ("redirected before it is a seed", &[&others, &page]),
        ("redirected after it was crawled", &[&victim, &others]),
        ("at the same time", &[&[&others[..], &victim[..]].concat()]),
    ];
    for (what, crawls) in orders {
        let archive = Archive::new();
        for seeds in crawls {
            start(&mut archive.crawl(seeds, &options)).wait().succeeded();
        }
        for home in &others {
            assert!(captures(&archive.path).urls().contains(home), "{what}: {home}");
        }
        victim_is_whole(&archive, what);
    }
}

#[test]
fn a_stored_file_is_read_without_its_content_coding() {
    let served = Answers::start(|_, path| match path {
        "/robots.txt" => {
            let mut coded = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            coded.write_all(b"User-agent: *\nDisallow: /private/\n").unwrap();
            whole(200, "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &coded.finish().unwrap())
        }
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://a.test/".to_owned()], &served.at_once())).wait().succeeded();
    // The next run does not request the file again.
    served.take_asked();
    start(&mut archive.crawl(&["http://a.test/private/".to_owned()], &served.at_once())).wait();
    assert_eq!(served.take_asked(), Vec::<String>::new());
    let why = archive.json("why", &["http://a.test/private/"]).remove(0);
    assert_eq!((&why["refusal"], &why["robots"]["allowed"]), (&"robots".into(), &false.into()), "{why}");
}

/// A run that begins a few seconds before the archive's rules are a day old.
#[test]
fn rules_are_fetched_again_when_they_are_a_day_old() {
    const PAGES: usize = 24;
    let new_rules: [fn() -> Vec<u8>; 2] =
        [|| plain("User-agent: *\nDisallow: /page\n"), || whole(501, "", b"")];
    let look = |answer: fn() -> Vec<u8>, is_forbidden: bool| {
        let is_first = Arc::new(AtomicBool::new(true));
        let is_first_run = Arc::clone(&is_first);
        let served = Answers::start(move |_, path| match path {
            "/robots.txt" if is_first_run.load(Ordering::SeqCst) => {
                plain("User-agent: *\nDisallow: /private\n")
            }
            "/robots.txt" => answer(),
            "/" => {
                html(&(0..PAGES).map(|page| format!("<a href=/page{page}>{page}</a>")).collect::<String>())
            }
            _ => html(&format!("<title>{path}</title>")),
        });
        let archive = Archive::new();
        let seeds = ["http://a.test/".to_owned()];
        let begun = Utc::now();
        let limit = ["--limit", "1"];
        start(archive.crawl(&seeds, &served.at_once()).args(limit)).wait().succeeded();
        is_first.store(false, Ordering::SeqCst);
        served.take_asked();
        let clock =
            (begun + TimeDelta::seconds(24 * 60 * 60 - 4)).to_rfc3339_opts(SecondsFormat::Micros, true);
        let options = ["--no-full-text", "--delay", "250ms", "--clock", &clock].map(str::to_owned);
        let options = [&options[..], &served.connection()].concat();
        start(&mut archive.crawl(&seeds, &options)).wait();
        let asked = served.take_asked();
        let again =
            asked.iter().position(|asked| asked == "a.test/robots.txt").expect("they were fetched again");
        let pages = |asked: &[String]| asked.iter().filter(|asked| asked.starts_with("a.test/page")).count();
        assert!(pages(&asked[..again]) > 0, "they held at first: {asked:?}");
        assert_eq!(pages(&asked[again..]) == 0, is_forbidden, "{asked:?}");
        assert_eq!(
            pages(&asked) == PAGES,
            !is_forbidden,
            "what is known holds if they cannot be had: {asked:?}"
        );
    };
    std::thread::scope(|scope| {
        new_rules.into_iter().zip([true, false]).for_each(|(answer, is_forbidden)| {
            scope.spawn(move || look(answer, is_forbidden));
        });
    });
}

/// A file that is one byte too long, and one of the largest size that is read.
#[test]
fn of_a_robots_txt_500_kib_are_stored_and_read() {
    const BYTES_MAX: usize = 500 << 10;
    let served = Answers::start(|host, path| match path {
        "/robots.txt" => {
            let (start, rule) = ("User-agent: *\n#", "\nDisallow: /page");
            let length = BYTES_MAX + usize::from(host == "over.test") - start.len() - rule.len();
            plain(&[start, &"x".repeat(length), rule].concat())
        }
        _ => html("<title>t</title><a href=/page>p</a><a href=/pag>q</a>"),
    });
    let archive = Archive::new();
    let seeds = ["http://at.test/".to_owned(), "http://over.test/".to_owned()];
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let captures = captures(&archive.path).0;
    for host in ["at", "over"] {
        let stored: Vec<u32> = captures[&format!("http://{host}.test/robots.txt")]
            .iter()
            .map(|capture| capture.length)
            .collect();
        assert_eq!(stored, [BYTES_MAX as u32], "{host}");
    }
    // The last rule is that for `/page`, or its remaining part.
    for (url, is_allowed) in
        [("at.test/pag", true), ("at.test/page", false), ("over.test/pag", false), ("over.test/page", false)]
    {
        assert_eq!(captures.contains_key(&format!("http://{url}")), is_allowed, "{url}");
    }
}

#[test]
fn five_redirects_are_followed_over_all_hosts_together() {
    let served = Answers::start(|host, path| {
        let (kind, number) = host.trim_end_matches(".test").split_at(1);
        match (kind, path, number.parse::<usize>()) {
            ("a", "/robots.txt", Ok(0)) => plain("User-agent: *\nDisallow: /\n"),
            // `a3.test` redirects to `a2.test`, and so on to `a0.test`.
            ("a", "/robots.txt", Ok(number)) => redirect(&format!("http://a{}.test/robots.txt", number - 1)),
            // The same through files that are not the robots.txt of their hosts.
            ("p", "/robots.txt", Ok(number)) => {
                redirect(&format!("http://q{}.test/rules/{number}", number - 1))
            }
            ("q", "/robots.txt", _) => nothing(),
            ("q", path, Ok(number)) if number > 0 => redirect(&format!("http://q{}.test{path}", number - 1)),
            ("q", ..) => plain("User-agent: *\nDisallow: /\n"),
            // The same within one host.
            ("s", "/robots.txt", Ok(number)) => redirect(&format!("/{}", number - 1)),
            ("s", path, _) => match path[1..].parse::<usize>() {
                Ok(0) => plain("User-agent: *\nDisallow: /\n"),
                Ok(number) => redirect(&format!("/{}", number - 1)),
                Err(_) => html("<title>t</title>text"),
            },
            _ => html("<title>t</title>text"),
        }
    });
    for kind in ["a", "p", "s"] {
        let archive = Archive::new();
        let seeds = [5, 6].map(|redirects| format!("http://{kind}{redirects}.test/"));
        start(&mut archive.crawl(&seeds, &served.at_once())).wait();
        let urls = captures(&archive.path).urls();
        assert!(!urls.contains(&seeds[0]), "{kind}: five redirects lead to a file");
        assert!(urls.contains(&seeds[1]), "{kind}: six lead to none");
        let why = archive.json("why", &[&seeds[0]]).remove(0);
        assert_eq!(why["robots"]["allowed"], false, "{why}");
        // The result is the same if the answers come from the archive.
        served.take_asked();
        start(&mut archive.crawl(&seeds, &served.at_once())).wait();
        let asked = served.take_asked();
        assert_eq!(asked, Vec::<String>::new());
    }
}

#[test]
fn a_robots_txt_that_redirects_to_itself_counts_as_none() {
    let served = Answers::start(|_, path| match path {
        "/robots.txt" => redirect("/robots.txt"),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://a.test/".to_owned()], &served.at_once())).wait().succeeded();
    assert_eq!(served.take_asked(), ["a.test/robots.txt", "a.test/"]);
}

#[test]
fn rules_are_waited_for_where_a_redirect_leads_to_a_host_that_has_to_be_left_alone() {
    let served = Answers::start(|host, path| match (host, path) {
        ("a.test", "/robots.txt") => redirect("http://b.test/robots.txt"),
        ("c.test", "/robots.txt") => redirect("http://b.test/rules"),
        (_, "/robots.txt" | "/rules") => plain("User-agent: *\nDisallow: /private/\n"),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    // All hosts have one address, which gets requests only now and then, so that nothing is in flight in between.
    let mut options = vec!["--delay".to_owned(), "600ms".to_owned(), "--no-full-text".to_owned()];
    options.extend(served.connection());
    let seeds = ["http://a.test/private/", "http://c.test/private/"].map(str::to_owned);
    start(&mut archive.crawl(&seeds, &options)).wait();
    let asked = served.take_asked();
    assert!(asked.iter().all(|asked| !asked.ends_with("/private/")), "{asked:?}");
    for url in &seeds {
        assert_eq!(archive.json("why", &[url]).remove(0)["refusal"], "robots");
    }
}

#[test]
fn a_page_that_its_host_forbids_is_not_asked_for_as_a_robots_txt_of_another() {
    let served = Answers::start(|host, path| match (host, path) {
        ("victim.test", "/robots.txt") => plain("User-agent: *\nDisallow: /private/\n"),
        ("evil.test", "/robots.txt") => redirect("http://victim.test/private/?delete=1"),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    start(&mut archive.crawl(&["http://evil.test/".to_owned()], &served.at_once())).wait();
    let asked = served.take_asked();
    assert_eq!(asked, ["evil.test/robots.txt", "victim.test/robots.txt"]);
    let why = archive.json("why", &["http://evil.test/"]).remove(0);
    assert_eq!(why["refusal"], "robots-unreachable", "{why}");
}

#[test]
fn a_robots_txt_that_is_linked_to_or_a_seed_is_no_page() {
    let served = Answers::start(|host, path| match (host, path) {
        ("a.test", "/") => html("<title>t</title><a href=/robots.txt>r</a><a href=/moved>m</a>"),
        ("a.test", "/moved") => redirect("/robots.txt"),
        (_, "/robots.txt") => plain("User-agent: *\nDisallow: /private/\n"),
        _ => nothing(),
    });
    let archive = Archive::new();
    let seeds = ["http://a.test/", "http://b.test/robots.txt"].map(str::to_owned);
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let captured = captures(&archive.path);
    captured.are_single();
    assert!(captured.urls().contains("http://b.test/robots.txt"));
    let urls: Vec<String> = found(&archive).into_iter().map(|(url, _)| url).collect();
    assert_eq!(urls, ["http://a.test/", "http://a.test/moved"]);
    let importance = archive.json("why", &["http://a.test/robots.txt"]).remove(0)["importance"].clone();
    assert!(importance.is_null(), "{importance}");
    ledger_balances(&archive.path);
}

/// Fails if hosts that only the redirect of a robots.txt names get more requests than a crawl's pages justify.
#[test]
fn redirects_over_names_without_end_come_to_an_end() {
    let served = Answers::start(|host, path| match path {
        "/robots.txt" => redirect(&format!("http://n{host}/robots.txt")),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    let seeds: Vec<String> = (0..3).map(|number| format!("http://{number}.evil.test/")).collect();
    let mut options = served.at_once();
    options.extend(["--for", "20s", "--limit", "3"].map(str::to_owned));
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    let asked = served.take_asked();
    let (files, pages): (Vec<_>, Vec<_>) = asked.iter().partition(|asked| asked.ends_with("/robots.txt"));
    // The robots.txt of the hosts themselves, five redirects each, and the page after that.
    assert_eq!((files.len(), pages.len()), (3 * 6, 3), "{asked:?}");
    let store = archive_storage::Store::read_only(&archive.path).unwrap();
    assert_eq!(store.state().url_count(), 3 * 7, "nothing is kept of names that nobody was asked for");
    drop(store);
    assert_eq!(found(&archive).len(), 3);
}

/// RFC 9309, section 2.3.1. 429 asks for fewer requests and does not say that there is no file.
#[test]
fn without_the_file_its_status_decides() {
    let served = Answers::start(|host, path| match (path, host.trim_end_matches(".test").parse()) {
        ("/robots.txt", Ok(status)) => whole(status, "", b"User-agent: *\nDisallow: /"),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    let seeds = [200, 301, 403, 404, 410, 429, 500, 503].map(|status| format!("http://{status}.test/"));
    start(&mut archive.crawl(&seeds, &served.at_once())).wait();
    let fetched: Vec<String> = found(&archive).into_iter().map(|(url, _)| url).collect();
    assert_eq!(fetched, [301, 403, 404, 410].map(|status| format!("http://{status}.test/")));
}

/// A page that links to hosts without a page: each costs a robots.txt, which counts for no limit of pages.
#[test]
fn a_limit_of_pages_bounds_the_hosts_that_are_asked_for_their_robots_txt() {
    let served = Answers::start(|host, path| match (host, path) {
        ("evil.test", "/robots.txt") => nothing(),
        ("evil.test", "/") => {
            let links = (0..4000).map(|number| format!("<a href=http://{number}.test/>x</a>"));
            html(&format!("<title>t</title>{}", links.collect::<String>()))
        }
        (_, "/robots.txt") => whole(503, "", b""),
        _ => nothing(),
    });
    let archive = Archive::new();
    let mut options = served.at_once();
    // One of the pages is the sitemap in the usual place.
    options.extend(["--scope", "any", "--limit", "3"].map(str::to_owned));
    let ended = start(&mut archive.crawl(&["http://evil.test/".to_owned()], &options)).wait().succeeded();
    let asked = served.take_asked().len();
    assert!((1000..1400).contains(&asked), "{asked} requests for a page");
    assert!(ended.errors.contains("robots.txt"), "{}", ended.errors);
}

/// Hosts that each have as many rules as are read at most.
#[test]
fn rules_of_many_hosts_stay_within_the_memory_of_a_crawl() {
    const HOSTS: usize = 60;
    let rules: String = (0..62_000).map(|number| format!("Allow:/{number:x}\n")).collect();
    let served = Answers::start(move |host, path| match path {
        "/robots.txt" => plain(&format!("# {host}\nUser-agent: *\nDisallow: /private\n{rules}")),
        _ => html("<title>t</title>text"),
    });
    let archive = Archive::new();
    let seeds: Vec<String> = (0..HOSTS)
        .flat_map(|number| ["", "private"].map(|page| format!("http://{number}.test/{page}")))
        .collect();
    let mut options = served.at_once();
    options.extend(["--memory", "192MiB"].map(str::to_owned));
    start(&mut within("--data=300000000", &archive.crawl(&seeds, &options))).wait().succeeded();
    let urls = captures(&archive.path).urls();
    let pages =
        urls.iter().filter(|url| !url.ends_with("/robots.txt") && !url.ends_with("/sitemap.xml")).count();
    let private = urls.iter().filter(|url| url.ends_with("/private")).count();
    assert_eq!((pages, private), (HOSTS, 0));
}

//! Parameters of URLs are left out only where a host was seen to give the same page without them, and seeds are followed
//! to the site that they lead to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::answers::{Answers, html, nothing, redirect, whole};
use crate::support::program::{Finished, start};
use crate::support::warc::{member, response};
use crate::support::{Archive, captures, ledger_balances};

/// Requests beyond those for the pages: robots.txt, the usual sitemap, tests, and what is under way when they succeed.
const TESTS_MAX: usize = 45;

fn crawl(archive: &Archive, web: &Answers, seed: &str, options: &[&str]) -> Finished {
    let mut all = web.at_once();
    all.extend(options.iter().map(|option| (*option).to_owned()));
    start(&mut archive.crawl(&[seed.to_owned()], &all)).wait().succeeded()
}

/// Words that make pages differ.
fn text_of(name: &str) -> String {
    let words = |number: usize| name.bytes().map(move |byte| format!("w{}", usize::from(byte) * 31 + number));
    (0..8).flat_map(words).collect::<Vec<_>>().join(" ")
}

fn page(name: &str, links: impl Iterator<Item = String>) -> Vec<u8> {
    let links: String = links.map(|link| format!("<a href='{}'>.</a>", link.replace('&', "&amp;"))).collect();
    html(&format!("<title>{name}</title><p>{}</p>{links}", text_of(name)))
}

fn is_other(path: &str) -> bool {
    matches!(path, "/robots.txt" | "/sitemap.xml")
}

const NAMING: [&str; 10] = [
    "/talk?session=2024-opening-keynote",
    "/talk?session=2024-closing-remarks",
    "/bills?session=legislature-2019-2023",
    "/bills?session=legislature-2023-2027",
    "/item?pk_news=11",
    "/item?pk_news=12",
    "/cf?cfid=3",
    "/cf?cfid=4",
    "/list;sid=8",
    "/list;sid=9",
];

#[test]
fn parameters_that_name_a_page_are_asked_for_as_linked() {
    let web = Answers::start(|_, path| match path {
        _ if is_other(path) => nothing(),
        "/" => page("/", NAMING.iter().map(|link| (*link).to_owned())),
        // Without its parameter, there is the newest session.
        "/bills" => page("/bills?session=legislature-2023-2027", std::iter::empty()),
        _ => page(path, std::iter::empty()),
    });
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &[]);
    let captured = captures(&archive.path).urls();
    for link in NAMING {
        assert!(captured.contains(&format!("http://a.test{link}")), "{link} is not in {captured:?}");
    }
    let why = archive.json("why", &["http://a.test/talk?session=2024-opening-keynote"]).remove(0);
    let tested = &why["parameters"][2];
    assert_eq!((&tested["name"], &tested["is_dropped"]), (&"session".into(), &false.into()), "{why}");
    ledger_balances(&archive.path);
}

#[test]
fn an_import_never_merges_two_urls() {
    let archive = Archive::new();
    // Sessions as their SURTs leave them out.
    let session = |digit: &str| digit.repeat(32);
    let sessions = ["1", "2"]
        .map(session)
        .into_iter()
        .flat_map(|session| [format!("/x;jsessionid={session}"), format!("/y?PHPSESSID={session}&a")]);
    let naming = NAMING.iter().map(|path| (*path).to_owned());
    let paths = naming.chain(sessions).chain(["/y?a".to_owned()]);
    let urls: Vec<String> = paths.map(|path| format!("http://a.test{path}")).collect();
    let record = |(number, url): (usize, &String)| {
        let id = format!("urn:uuid:00000000-0000-4000-8000-0000000000{number:02}");
        member(&response(&id, url, &format!("2024-01-01T00:00:{number:02}Z"), &format!("text of {url}")))
    };
    let records: Vec<u8> = urls.iter().enumerate().flat_map(record).collect();
    let file = archive.file("in.warc.gz", records);
    start(archive.command("import").arg(file)).wait().succeeded();
    assert_eq!(captures(&archive.path).urls(), urls.iter().cloned().collect());
    for url in &urls {
        let got = start(archive.command("get").arg(url)).wait().succeeded().text();
        assert!(got.ends_with(&format!("text of {url}")), "{url} gives {got}");
    }
    archive.verify();
}

/// Number of pages of the web of sessions.
const PAGES: usize = 60;

/// A host of so many pages on which every link has a new session at each answer, in these places.
fn sessions(pages: usize, places: &'static [&'static str]) -> Answers {
    let number = AtomicU64::new(1);
    Answers::start(move |_, path| {
        if is_other(path) {
            return nothing();
        }
        let session = number.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bare = path.split([';', '?']).next().unwrap_or(path);
        let link = |number: usize| format!("/p{number}{}{session:016x}", places[number % places.len()]);
        page(bare, (0..pages).map(link))
    })
}

#[test]
fn sessions_in_every_link_cost_a_few_tests() {
    let web = sessions(PAGES, &["?PHPSESSID=", ";jsessionid=", "?utm_source=n&utm_campaign="]);
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &["--workers", "2"]);
    let asked = web.take_asked();
    println!("{} requests for {PAGES} pages", asked.len());
    assert!(asked.len() <= PAGES + 1 + TESTS_MAX, "{asked:?}");
    let bare: BTreeSet<&str> =
        asked.iter().map(|url| url.split([';', '?']).next().unwrap_or_default()).collect();
    assert!((0..PAGES).all(|number| bare.contains(format!("a.test/p{number}").as_str())), "{bare:?}");

    // A spelling that was never asked for is the page that is meant.
    let spelled = "http://a.test/p30?PHPSESSID=0123456789abcdef";
    let why = archive.run("why", &[spelled]).succeeded().text();
    assert!(why.contains("http://a.test/p30 ") && why.contains("PHPSESSID: left out of links"), "{why}");
    let importance = |url: &str| archive.json("why", &[url]).remove(0)["importance"].as_f64().unwrap();
    assert!(importance("http://a.test/p30") > 0.1 * importance("http://a.test/"));
    ledger_balances(&archive.path);
    archive.verify();

    // What was learned stays, and is learned again by a rebuild.
    crawl(&archive, &web, "http://a.test/", &["--workers", "2"]);
    assert!(web.take_asked().len() <= 3, "nothing is left");
    start(&mut archive.command("rebuild")).wait().succeeded();
    let why = archive.run("why", &[spelled]).succeeded().text();
    assert!(why.contains("PHPSESSID: left out of links"), "{why}");
    ledger_balances(&archive.path);
}

/// However many requests may be under way, pages wait until it is known whether their sessions make a difference.
#[test]
fn sessions_are_tested_before_they_are_followed() {
    const FEW: usize = 13;
    /// robots.txt, the usual sitemap, three tests of two requests each, and some of other values under way when these end.
    const MORE_MAX: usize = 2 + 6 + 6;
    let web = sessions(FEW, &["?PHPSESSID="]);
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &[]);
    let asked = web.take_asked();
    println!("{} requests for {FEW} pages", asked.len());
    assert!(asked.len() <= 1 + FEW + MORE_MAX, "{} requests: {asked:?}", asked.len());
    let bare: BTreeSet<&str> = asked.iter().map(|url| url.split('?').next().unwrap_or_default()).collect();
    assert!((0..FEW).all(|number| bare.contains(format!("a.test/p{number}").as_str())), "{bare:?}");
    ledger_balances(&archive.path);
}

/// Pages that wait for tests are fetched as they are linked when nothing comes of the tests.
#[test]
fn tests_that_may_not_be_made_keep_nothing_back() {
    const FEW: usize = 9;
    let web = Answers::start(|_, path| match path {
        "/robots.txt" => {
            whole(200, "", b"User-agent: *\nDisallow: /p*0$\nDisallow: /p*1$\nDisallow: /p*2$\n")
        }
        path if is_other(path) => nothing(),
        "/" => page("/", (0..FEW).map(|number| format!("/p{}{}?sid={number:015}f", number, number % 3))),
        _ => page(path, std::iter::empty()),
    });
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &[]);
    let asked = web.take_asked();
    let pages = asked.iter().filter(|url| url.contains("?sid=")).count();
    assert_eq!(pages, FEW, "{asked:?}");
    ledger_balances(&archive.path);
}

#[test]
fn a_parameter_that_turns_out_to_matter_is_asked_for_again() {
    /// Pages on which `sid` makes no difference come first, as links of the entrance.
    const SAME: usize = 8;
    const VALUES: usize = 40;
    let web = Answers::start(|_, path| {
        if is_other(path) {
            return nothing();
        }
        let bare = path.split('?').next().unwrap_or(path);
        let same = (0..SAME).map(|number| format!("/same{number}?sid={number}"));
        match bare {
            "/" => page("/", same),
            // They are found only after the parameter was tested.
            "/deep3" => page(bare, (0..VALUES).map(|number| format!("/section?sid={number}"))),
            "/deep1" | "/deep2" => page(bare, std::iter::once(bare.replace('2', "3").replace('1', "2"))),
            "/section" => page(path, std::iter::empty()),
            _ => page(bare, std::iter::once("/deep1".to_owned())),
        }
    });
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &["--workers", "1"]);
    let captured = captures(&archive.path).urls();
    let left: Vec<usize> = (0..VALUES)
        .filter(|number| !captured.contains(&format!("http://a.test/section?sid={number}")))
        .collect();
    assert!(left.is_empty(), "sections {left:?} are missing");
    ledger_balances(&archive.path);
    archive.verify();
}

#[test]
fn parameters_are_left_out_by_an_option() {
    let web = Answers::start(|_, path| match path {
        _ if is_other(path) => nothing(),
        "/" => page("/", ["/a?ref_1=x&b", "/a?ref_2=y&b", "/c?kept=1"].map(str::to_owned).into_iter()),
        _ => page(path, std::iter::empty()),
    });
    let archive = Archive::new();
    crawl(&archive, &web, "http://a.test/", &["--drop-parameters", "ref_*,other"]);
    let asked: BTreeSet<String> = web.take_asked().into_iter().collect();
    assert!(asked.contains("a.test/a?b") && asked.contains("a.test/c?kept=1"), "{asked:?}");
    assert!(!asked.iter().any(|url| url.contains("ref_")), "{asked:?}");
}

/// A site that has moved: `old.test` redirects by way of `mid.test` to `www.new.test`, whose `/private/` robots.txt closes.
fn moved() -> Answers {
    Answers::start(|host, path| match (host, path) {
        ("www.new.test", "/robots.txt") => whole(200, "", b"User-agent: *\nDisallow: /private/\n"),
        (_, path) if is_other(path) => nothing(),
        ("old.test", _) => redirect(&format!("http://mid.test{path}")),
        ("mid.test", "/more") => html("more"),
        ("mid.test", _) => redirect(&format!("http://www.new.test/docs{path}")),
        ("www.new.test", "/docs/") => html(
            "<title>new home</title><a href=a>a</a><a href=/news/>n</a><a href=/private/>p</a>\
             <a href=http://mid.test/more>m</a><a href=http://shop.new.test/>s</a><img src=i.png>",
        ),
        (_, path) if path.ends_with(".png") => whole(200, "Content-Type: image/png\r\n", b"\x89PNG"),
        _ => html(&format!("<title>{host}{path}</title>")),
    })
}

#[test]
fn the_site_that_a_seed_leads_to_is_the_site_of_the_seed() {
    for (scope, inside, outside) in [
        ("site", vec!["www.new.test/docs/a", "www.new.test/news/", "shop.new.test/"], vec!["mid.test/more"]),
        ("host", vec!["www.new.test/docs/a", "www.new.test/news/"], vec!["shop.new.test/", "mid.test/more"]),
        (
            "regex:^http://old\\.test/",
            vec!["www.new.test/docs/a"],
            vec!["www.new.test/news/", "mid.test/more"],
        ),
    ] {
        let (web, archive) = (moved(), Archive::new());
        let ended = crawl(&archive, &web, "http://old.test/", &["--scope", scope]);
        let told = "the seed http://old.test/ leads to http://www.new.test/docs/";
        assert!(ended.errors.contains(told), "{}", ended.errors);
        let asked: BTreeSet<String> = web.take_asked().into_iter().collect();
        for url in inside.iter().chain(&["www.new.test/docs/", "www.new.test/docs/i.png"]) {
            assert!(asked.contains(*url), "{scope}: {url} is not in {asked:?}");
        }
        for url in outside.iter().chain(&["www.new.test/private/"]) {
            assert!(!asked.contains(*url), "{scope}: {url} is in {asked:?}");
        }
        let why = archive.json("why", &["http://old.test/"]).remove(0);
        assert!(why["scope"].as_str().unwrap().contains("http://www.new.test/docs/"), "{why}");
        let moved = &archive.json("stats", &[] as &[&str])[0]["moved_seeds"];
        assert_eq!(moved[0]["to"], "http://www.new.test/docs/", "{moved}");
        ledger_balances(&archive.path);
        // The next run of the same command keeps to it, and has nothing left to ask for.
        crawl(&archive, &web, "http://old.test/", &["--scope", scope]);
        let again = web.take_asked();
        assert!(again.iter().all(|url| url.ends_with("robots.txt")), "{again:?}");
        assert_eq!(archive.json("why", &["http://www.new.test/docs/a"]).remove(0)["scope"], "inside");
    }
    let (web, archive) = (moved(), Archive::new());
    crawl(&archive, &web, "http://old.test/", &["--leave-moved-seeds"]);
    assert!(!web.take_asked().iter().any(|url| url.starts_with("mid.") || url.starts_with("www.")));
}

#[test]
fn a_seed_that_moves_later_is_followed_by_a_refresh() {
    let moves = AtomicU64::new(0);
    let web = Answers::start(move |host, path| match (host, path) {
        (_, path) if is_other(path) => nothing(),
        ("old.test", "/") if moves.fetch_add(1, Ordering::Relaxed) > 0 => redirect("http://new.test/"),
        ("new.test", "/") => html("<title>new</title><a href=/a>a</a>"),
        _ => html("<title>here</title>"),
    });
    let archive = Archive::new();
    crawl(&archive, &web, "http://old.test/", &[]);
    let options = ["--budget", "10", "--delay", "0", "--no-full-text"].map(str::to_owned);
    let later = ["--clock".to_owned(), "2036-01-01T00:00:00Z".to_owned()];
    let mut refresh = archive.command("refresh");
    let ended = start(refresh.args(options).args(web.connection()).args(later)).wait().succeeded();
    assert!(ended.errors.contains("the seed http://old.test/ leads to http://new.test/"), "{}", ended.errors);
    assert!(captures(&archive.path).urls().contains("http://new.test/"));
    crawl(&archive, &web, "http://old.test/", &[]);
    assert!(captures(&archive.path).urls().contains("http://new.test/a"));
    ledger_balances(&archive.path);
}

#[test]
fn galleries_are_fetched_and_what_is_left_is_told() {
    const PICTURES: usize = 90;
    const LISTED: usize = 120;
    let web = Answers::start(|_, path| {
        if is_other(path) {
            return nothing();
        }
        let number = |part: &str| {
            part.bytes().filter(u8::is_ascii_digit).fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))
        };
        let text = "A picture of the collection of the museum, as it was seen by its visitors.";
        match path.split(['/', '?']).nth(1) {
            Some("picture") => {
                let next = number(path) + 1;
                let link =
                    if next < PICTURES { format!("<a href=/picture/{next}>next</a>") } else { String::new() };
                html(&format!("<title>The collection</title><p>{text}<p><img src='/{next}.png'>{link}"))
            }
            Some("table") => {
                let next = number(path) + 1;
                let link =
                    if next < PICTURES { format!("<a href=/table/{next}>next</a>") } else { String::new() };
                html(&format!("<title>The lake</title><p>The level of the water<p>{},5 {link}", next * 37))
            }
            Some("list") => html(&format!("<title>List</title>{text}")),
            Some("") => {
                let article = (0..LISTED).map(|id| format!("<a href='/index?a=b&amp;c=d&amp;id={id}'>.</a>"));
                let sorted = (0..LISTED).map(|n| {
                    format!("<a href='/list?a={}&amp;b={}&amp;c={}'>.</a>", n % 5, n / 5 % 5, n / 25)
                });
                html(&format!(
                    "<a href=/picture/0>p</a><a href=/table/0>t</a>{}",
                    article.chain(sorted).collect::<String>()
                ))
            }
            _ => page(path, std::iter::empty()),
        }
    });
    let archive = Archive::new();
    let limits = ["--same-content", "20", "--query-variations", "30", "--json"];
    let ended = crawl(&archive, &web, "http://a.test/", &limits);
    let asked: BTreeSet<String> = web.take_asked().into_iter().collect();
    let count = |part: &str| asked.iter().filter(|url| url.contains(part)).count();
    assert_eq!((count("/picture/"), count("/table/")), (PICTURES, PICTURES));
    assert_eq!(count("/index?"), LISTED);
    assert!((30..60).contains(&count("/list?")), "{} views of a list", count("/list?"));
    let left = ended.json()[0]["left"]["query-variations"].as_u64().unwrap();
    assert_eq!(left as usize, LISTED - count("/list?"));
    assert!(ended.errors.contains(&format!("{left} URLs left out: ")), "{}", ended.errors);
    assert!(ended.errors.contains("(--query-variations)"), "{}", ended.errors);
    assert_eq!(ended.json()[0]["end"], "complete");

    // The limits that are named lift what they left.
    crawl(&archive, &web, "http://a.test/", &["--same-content", "0", "--query-variations", "0"]);
    assert_eq!(web.take_asked().iter().filter(|url| url.contains("/list?")).count() as u64, left);
}

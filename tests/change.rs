//! What counts as a change, how other sites announce changes, and how they are shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use archive_ask::watch::{self, WatchReport};
use archive_base::control::Control;
use archive_books::change::xml::{Delta, Tree};
use archive_books::ledger::{Credits, capture_flags};
use archive_books::recorder;
use archive_choose::{RefreshChoice, most_obsolete};
use archive_crawl::Purpose;
use archive_storage::segment::SegmentOptions;
use archive_storage::{Clock, Store, UrlId, Visit};
use archive_testweb::{Config, Form};
use archive_web::parse::{DocumentKind, ParseLimits, with_xml_tree};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::crawl::{everything, lively};
use crate::support::program::start;
use crate::support::warc::answer;
use crate::support::{Archive, TestWeb};

/// Returns the options that set the program's clock to that of the web.
pub(crate) fn clock(served: &TestWeb) -> [String; 2] {
    ["--clock".to_owned(), served.web.clock().now().to_rfc3339_opts(SecondsFormat::Micros, true)]
}

/// Crawls a small web with all features, at the web's own time.
pub(crate) fn crawled(config: Config) -> (TestWeb, Archive) {
    let served = TestWeb::start(config);
    let archive = Archive::new();
    let seeds = served.web.seeds(served.web.sites());
    start(archive.crawl(&seeds, &everything(&served)).args(clock(&served))).wait().succeeded();
    (served, archive)
}

pub(crate) fn visits(archive: &Path) -> BTreeMap<String, (UrlId, Visit)> {
    let store = Store::read_only(archive).unwrap();
    let visits = store.state().visits(0).map(Result::unwrap);
    visits.map(|(id, visit)| (store.state().url(id).unwrap(), (id, visit))).collect()
}

#[test]
fn a_change_is_one_of_the_content_and_that_of_the_bytes_is_kept_too() {
    let (served, archive) =
        crawled(Config { noise_share: 0.4, birth_share: 0.0, death_share: 0.0, ..lively(101, 6, 300) });
    let before = served.web.clock().now();
    served.web.clock().advance(TimeDelta::days(40));
    let after = served.web.clock().now();
    let refresh = ["--budget".to_owned(), "100000".to_owned()];
    start(archive.command("refresh").args(refresh).args(served.at_once()).args(clock(&served)))
        .wait()
        .succeeded();

    let store = Store::read_only(&archive.path).unwrap();
    let (mut changed, mut unchanged, mut only_bytes) = (0, 0, 0);
    for (url, (id, visit)) in visits(&archive.path) {
        let Some(page) = served.web.page_of(&url) else { continue };
        let newest: Vec<_> = store.state().history(id).unwrap().map(|capture| capture.unwrap().1).collect();
        let [second, first] = newest.as_slice() else { continue };
        if second.status >= 400 || first.status >= 400 || served.web.original(page).is_some() {
            continue;
        }
        // Times come from the clock that was set.
        let time = DateTime::<Utc>::from_timestamp_micros(second.time).unwrap();
        assert!((time - after).abs() < TimeDelta::minutes(10), "{url} was captured at {time}");
        let is_new = !served.web.changes(page, before, after).is_empty();
        let content = capture_flags::content_changed(second);
        let bytes = capture_flags::bytes_changed(second);
        if served.web.noisy(page) && served.web.form(page) == Form::Xml {
            // In an XML document, everything is content.
            continue;
        }
        assert_eq!(content, is_new, "{url}");
        assert_eq!(visit.versions, 1 + u32::from(bytes), "{url}");
        let changed_at = if content { second.time } else { first.time };
        assert_eq!(i64::from(visit.last_changed), changed_at / 1_000_000, "{url}");
        let observed = archive_math::refresh::rate::ChangeObservations::from_bytes(&visit.extension);
        assert_eq!((observed.visits(), observed.changes()), (1, u16::from(content)), "{url}");
        changed += u32::from(content);
        unchanged += u32::from(!bytes);
        only_bytes += u32::from(bytes && !content);
    }
    assert!(changed > 20 && unchanged > 20 && only_bytes > 20, "{changed} {unchanged} {only_bytes}");
}

#[test]
fn dates_of_sitemaps_and_feeds_make_pages_due_and_are_checked() {
    let (served, archive) = crawled(lively(102, 6, 300));
    let crawled_at = served.web.clock().now();
    served.web.clock().advance(TimeDelta::days(25));
    let options = |served: &TestWeb| {
        let mut options = served.options();
        options.fetch.clock = Clock::set_to(served.web.clock().now());
        options
    };
    // Only sitemaps and feeds are fetched.
    let known = visits(&archive.path);
    let is_signal = |visit: &Visit| {
        matches!(DocumentKind::from_code(visit.kind), DocumentKind::Sitemap | DocumentKind::Feed)
    };
    let signals: Vec<UrlId> =
        known.values().filter(|(_, visit)| is_signal(visit)).map(|(id, _)| *id).collect();
    assert!(signals.len() > 5, "{} sitemaps and feeds", signals.len());
    let run = |pages: Vec<UrlId>| {
        let mut store = recorder::open(&archive.path, SegmentOptions::default()).unwrap().store;
        let stop = Control::default();
        archive_crawl::run(&mut store, Purpose::Refresh { pages }, &options(&served), &stop, &mut |_| ())
            .unwrap();
        store.close().unwrap();
    };
    run(signals);

    let announced: Vec<(String, UrlId, Visit)> = visits(&archive.path)
        .into_iter()
        .filter(|(_, (_, visit))| visit.announced > 0)
        .map(|(url, (id, visit))| (url, id, visit))
        .collect();
    assert!(announced.len() > 20, "{} pages were announced", announced.len());
    let now = served.web.clock().now();
    for (url, _, visit) in &announced {
        let page = served.web.page_of(url).unwrap();
        assert!(!served.web.changes(page, crawled_at, now).is_empty(), "{url} did not change");
        let since = DateTime::<Utc>::from_timestamp(i64::from(visit.announced), 0).unwrap();
        assert!(since > crawled_at && since <= now, "{url}: {since}");
    }
    // Announced pages come before nearly all others.
    let store = Store::read_only(&archive.path).unwrap();
    let credits = Credits::open(store.state()).unwrap();
    let due =
        most_obsolete(store.state(), &credits, &RefreshChoice::default(), announced.len(), now).unwrap();
    let first = due.iter().filter(|page| announced.iter().any(|(_, id, _)| id == *page)).count();
    assert!(first * 10 > announced.len() * 6, "{first} of {} come first", announced.len());
    drop(store);
    // The next fetch shows whether the announcement was true.
    run(announced.iter().map(|(_, id, _)| *id).collect());
    let later = visits(&archive.path);
    for (url, ..) in &announced {
        let visit = later[url].1;
        assert_eq!((visit.announced, visit.announcements, visit.announcements_confirmed), (0, 1, 1), "{url}");
    }
}

/// Returns a page whose captures by the crawl and by the refresh differ in content.
fn changed_page(archive: &Archive, served: &TestWeb, form: Form) -> String {
    let store = Store::read_only(&archive.path).unwrap();
    let found = visits(&archive.path).into_iter().find(|(url, (id, visit))| {
        let newest = store.state().history(*id).unwrap().next().unwrap().unwrap().1;
        let is_changed = capture_flags::content_changed(&newest) && visit.captures == 2;
        is_changed
            && newest.status == 200
            && served.web.page_of(url).is_some_and(|page| served.web.form(page) == form)
    });
    found.unwrap().0
}

#[test]
fn a_diff_shows_what_changed() {
    let (served, archive) = crawled(Config { xml_share: 0.3, ..lively(103, 4, 150) });
    served.web.clock().advance(TimeDelta::days(60));
    start(
        archive.command("refresh").args(["--budget", "100000"]).args(served.at_once()).args(clock(&served)),
    )
    .wait()
    .succeeded();

    let page = changed_page(&archive, &served, Form::Html);
    let diff = &archive.json("diff", &[&page])[0];
    assert_eq!((diff["url"].as_str(), diff["kind"].as_str()), (Some(page.as_str()), Some("text")));
    let passages = diff["changes"].as_array().unwrap();
    let said = |field: &str| passages.iter().flat_map(|passage| passage[field].as_array().unwrap()).count();
    assert!(said("old") + said("new") > 0, "{diff}");
    let shown = archive.run("diff", &[&page]).succeeded().text();
    assert!(shown.starts_with("--- http://") && shown.contains("\n+++ http://"), "{shown}");
    assert!(shown.lines().skip(2).any(|line| line.starts_with("- ") || line.starts_with("+ ")), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colours in a file");
    // The shown lines occur in the versions themselves.
    let version = |number: usize| {
        let history = archive.json("history", &[&page]);
        let time = history[number]["time"].as_str().unwrap().to_owned();
        archive.run("get", &[page.as_str(), "--at", &time]).succeeded().text()
    };
    let (new, old) = (version(0), version(1));
    for passage in passages {
        for (field, text, other) in [("old", &old, &new), ("new", &new, &old)] {
            for sentence in passage[field].as_array().unwrap() {
                let sentence = sentence.as_str().unwrap();
                let word = sentence.split([' ', '&', '\'', '"']).next().unwrap();
                assert!(text.contains(word), "{sentence} is not in its version");
                assert!(!other.contains(&format!(">{sentence}<")), "{sentence} is in both versions");
            }
        }
    }
    let same = &archive.json("diff", &[page.as_str(), "--from", "2100-01-01"])[0];
    assert_eq!(same["kind"], "none");

    let page = changed_page(&archive, &served, Form::Xml);
    let diff = &archive.json("diff", &[&page])[0];
    assert_eq!(diff["kind"], "xml", "{diff}");
    let delta: Delta = serde_json::from_value(diff.clone()).unwrap();
    let history = archive.json("history", &[&page]);
    let tree = |number: usize| {
        let time = history[number]["time"].as_str().unwrap();
        let text = archive.run("get", &[page.as_str(), "--at", time]).succeeded().output;
        with_xml_tree(&text, None, &ParseLimits::default(), Tree::of).unwrap()
    };
    assert_eq!(delta.apply(&tree(1)), Ok(tree(0)), "the delta leads from the old version to the new one");
    // Also as files.
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (number, capture) in history.iter().take(2).enumerate() {
        let text = archive.run("get", &[page.as_str(), "--at", capture["time"].as_str().unwrap()]);
        fs::write(file(&number.to_string()), text.succeeded().output).unwrap();
    }
    fs::write(file("delta"), diff.to_string()).unwrap();
    let patch = |arguments: &[&str]| {
        start(Command::new(env!("CARGO_BIN_EXE_archive")).arg("patch").args(arguments)).wait()
    };
    let made = |arguments: &[&str]| {
        let text = patch(arguments).succeeded().output;
        with_xml_tree(&text, None, &ParseLimits::default(), Tree::of).unwrap()
    };
    assert_eq!(made(&[&file("1"), &file("delta")]), tree(0));
    assert_eq!(made(&["--invert", &file("0"), &file("delta")]), tree(1));
    patch(&[&file("0"), &file("delta")]).refused(2, &["does not fit this version"]);
    patch(&[&file("1"), &file("1")]).refused(2, &["not what `archive diff --json` prints"]);
    fs::write(file("delta"), r#"{"kind":"text","changes":[]}"#).unwrap();
    patch(&[&file("1"), &file("delta")]).refused(2, &["not one of XML documents"]);

    let xml = archive.run("diff", &[page.as_str(), "--delta"]).succeeded().text();
    assert!(xml.contains("<d:delta xmlns:d=") && !delta.is_empty(), "{xml}");
    let text = changed_page(&archive, &served, Form::Html);
    archive.run("diff", &[text.as_str(), "--delta"]).refused(2, &["not an XML document"]);
    archive.run("diff", &["http://nowhere.example/"]).refused(1, &["is not in"]);
}

/// An archive of two XML documents with two versions each, imported one after the other, and the time in between.
fn of_two_catalogues() -> (Archive, DateTime<Utc>) {
    let archive = Archive::new();
    let folder = tempfile::tempdir().unwrap();
    let import = |month: u32, [first, second]: [&str; 2]| {
        let page = |name: &str, xml: &str| {
            let url = format!("http://shop.test/{name}.xml");
            let (id, date) = (format!("urn:test:{url}:{month}"), format!("2026-{month:02}-03T10:00:00Z"));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n";
            answer(&id, &url, &date, &[], &format!("{head}<catalogue>{xml}</catalogue>"))
        };
        let file = folder.path().join(format!("{month}.warc"));
        fs::write(&file, [page("one", first), page("two", second)].concat()).unwrap();
        archive.run("import", &[file.to_str().unwrap()]).succeeded();
    };
    let book = |title: &str, price: &str| {
        format!("<book id='b'><title>{title}</title><price>{price}</price></book>")
    };
    import(1, [&book("a", "12"), &book("b", "5")]);
    import(3, [&book("another", "12"), &(book("b", "7") + "<price>9</price>")]);
    (archive, DateTime::parse_from_rfc3339("2026-02-01T00:00:00Z").unwrap().to_utc())
}

#[test]
fn a_watch_of_an_element_reports_its_old_and_new_values() {
    let (archive, since) = of_two_catalogues();
    let until = since + TimeDelta::days(90);
    let query = "page site = \"shop.test\" order by url";
    let report = |name: &str, element: Option<&str>| {
        let store = Store::read_only(&archive.path).unwrap();
        let day = Duration::from_secs(86_400);
        let watch = watch::add(&store, query, element, day, Some(name), None, since).unwrap();
        let report = WatchReport::of(&watch, &store, since, until).unwrap();
        watch::keep(&archive.path, &watch, &report, &[]).unwrap();
        report.news
    };
    assert_eq!(report("pages", None).len(), 2);
    let news = report("prices", Some("//price"));
    let values = news[0].values.as_ref().unwrap();
    assert_eq!((news.len(), news[0].url.as_str()), (1, "http://shop.test/two.xml"));
    assert_eq!((&values.old, &values.new), (&vec!["5".to_owned()], &vec!["7".to_owned(), "9".to_owned()]));
    let count = report("count", Some("count(//price)"));
    assert_eq!(count[0].values.as_ref().unwrap().new, ["2"]);
    assert!(report("nothing", Some("//missing")).is_empty());
    let text = archive.run("watch report", &["prices"]).succeeded().text();
    assert!(text.contains("1 of 2 pages changed") && text.contains("    - 5\n    + 7\n    + 9\n"), "{text}");
    let atom = archive.run("watch report", &["prices", "--format", "atom"]).succeeded().text();
    assert!(atom.contains("&lt;del&gt;5&lt;/del&gt;") && atom.contains("&lt;ins&gt;9&lt;/ins&gt;"), "{atom}");
    let list = archive.json::<&str>("watch list", &[]);
    assert!(list.iter().any(|watch| watch["element"] == "count(//price)"), "{list:?}");
    archive.run("watch", &[query, "--element", "//price["]).refused(2, &["the XPath expression is wrong"]);
}

#[test]
fn statistics_count_what_changes_in_documents() {
    let (archive, _) = of_two_catalogues();
    let found = archive.json("diff", &["--statistics", "site = \"shop.test\""]);
    let row = |name: &str, count: &str| {
        let row = found.iter().find(|row| row["name"] == name);
        row.map(|row| {
            (row["type"].as_str().unwrap(), row["depth"].as_u64().unwrap(), row[count].as_u64().unwrap())
        })
    };
    assert_eq!(row("title", "updated"), Some(("catalogue", 2, 1)));
    let prices: Vec<_> = found.iter().filter(|row| row["name"] == "price").collect();
    assert_eq!((&prices[1]["depth"], &prices[1]["updated"]), (&2.into(), &1.into()), "{found:?}");
    assert_eq!((&prices[0]["depth"], &prices[0]["inserted"]), (&1.into(), &1.into()), "{found:?}");
    let table = archive.run("diff", &["--statistics", "site = \"shop.test\""]).succeeded();
    assert!(
        table.text().contains("50.0 %") && table.errors.contains("2 changes of 2 XML documents"),
        "{table:?}"
    );
    archive
        .run("diff", &["--statistics", "site = \"shop.test\"", "http://shop.test/one.xml"])
        .refused(2, &[]);
}

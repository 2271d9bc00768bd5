//! What counts as a change, how other sites announce changes, and how they are shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

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
    for number in 0..2 {
        let time = history[number]["time"].as_str().unwrap();
        let text = archive.run("get", &[page.as_str(), "--at", time]).succeeded().output;
        fs::write(file(&number.to_string()), text).unwrap();
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

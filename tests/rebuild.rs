//! The WARC files are the archive: a rebuild from them restores the state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use archive_books::ledger::{language, page_flags};
use archive_books::search;
use archive_storage::{CaptureKind, Store, Validators};
use archive_testweb::{ChangeRates, Config};
use chrono::TimeDelta;

use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, TestWeb, files_with, ledger_balances};

/// What the state says of a capture, independent of assigned numbers.
#[derive(Debug, PartialEq)]
struct Known {
    status: u16,
    kind: CaptureKind,
    media_type: String,
    digest: [u8; 16],
    length: u32,
    flags: u8,
    /// URL and time of the capture that holds the payload.
    original: Option<(String, i64)>,
}

/// What the state says of a URL.
#[derive(Debug, PartialEq)]
struct Page {
    captures: BTreeMap<i64, Known>,
    versions: u32,
    last_changed: u32,
    /// Whether it has an account, shares one, or had one.
    standing: [bool; 3],
    status: u16,
    kind: u8,
    language: Option<String>,
    title: Option<String>,
    observations: [u8; 48],
    signature: u64,
    /// Time of the last announcement of a change, number of announcements, and how many were true.
    announced: (u32, u16, u16),
    links: Vec<(String, u8)>,
    /// Time of the newest version, and the validators that the server sent with it.
    version: Option<i64>,
    validators: Option<Validators>,
}

fn known(archive: &Path) -> BTreeMap<String, Page> {
    let store = Store::read_only(archive).unwrap();
    let state = store.state();
    let mut pages: BTreeMap<String, Page> = BTreeMap::new();
    for (id, visit) in state.visits(0).map(Result::unwrap).filter(|(_, visit)| visit.captures > 0) {
        let links = state.links(id).unwrap().links;
        let page = Page {
            captures: BTreeMap::new(),
            versions: visit.versions,
            last_changed: visit.last_changed,
            standing: [page_flags::ACCOUNT, page_flags::ALIAS, page_flags::VANISHED]
                .map(|flag| state.page(id).unwrap().flags.has_any(flag)),
            status: visit.status,
            kind: visit.kind,
            language: language(state, visit.language),
            title: visit.title.map(|title| state.title(title).unwrap()),
            observations: visit.extension,
            signature: visit.signature,
            announced: (visit.announced, visit.announcements, visit.announcements_confirmed),
            version: state.newest_version(id).unwrap().map(|(_, version)| version.time),
            validators: state.validators(id).unwrap(),
            links: links.iter().map(|link| (state.url(link.target).unwrap(), link.kind)).collect(),
        };
        pages.insert(state.url(id).unwrap(), page);
    }
    for (_, capture) in state.captures().map(Result::unwrap) {
        let original = capture.original.map(|id| state.capture(id).unwrap());
        let known = Known {
            status: capture.status,
            kind: capture.kind,
            media_type: state.mime(capture.mime).to_owned(),
            digest: capture.digest,
            length: capture.length,
            flags: capture.flags,
            original: original.map(|original| (state.url(original.url).unwrap(), original.time)),
        };
        let page = pages.get_mut(&state.url(capture.url).unwrap()).unwrap();
        page.captures.insert(capture.time, known);
    }
    pages
}

/// Returns the pages by importance, best first.
fn by_importance(archive: &Archive) -> Vec<String> {
    let rows = archive.json("query", &["page importance > 0 order by importance desc, url"]);
    rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

/// Returns Kendall's tau of two orders of the same things; 1 for equal orders.
fn tau(left: &[String], right: &[String]) -> f64 {
    let places: BTreeMap<&String, usize> = right.iter().zip(0..).collect();
    let places: Vec<usize> = left.iter().filter_map(|page| places.get(page).copied()).collect();
    let pairs = places.len() * (places.len() - 1) / 2;
    let turned: usize = (0..places.len())
        .map(|place| places[place + 1..].iter().filter(|other| **other < places[place]).count())
        .sum();
    1.0 - 2.0 * turned as f64 / pairs as f64
}

/// Serves a web whose pages change often, this share of them sent in chunks.
fn changing(config: Config, chunked_share: f64) -> TestWeb {
    let changes = ChangeRates { median_per_day: 0.05, ..config.changes };
    let (validator_share, duplicate_share) = (0.5, 0.1);
    TestWeb::start(Config { chunked_share, validator_share, duplicate_share, changes, ..config })
}

/// Returns the options of a crawl of everything.
fn everywhere(served: &TestWeb) -> Vec<String> {
    [&served.at_once()[..], &["--scope".to_owned(), "any".to_owned()]].concat()
}

/// Returns an archive of the web: a crawl, and a refresh of everything a month later.
fn crawled_twice(served: &TestWeb, seeds: &[String]) -> Archive {
    let archive = Archive::new();
    start(&mut archive.crawl(seeds, &everywhere(served))).wait().succeeded();
    served.web.clock().advance(TimeDelta::days(30));
    start(archive.command("refresh").args(["--budget", "100000", "--shortest", "0s"]).args(served.at_once()))
        .wait()
        .succeeded();
    archive
}

#[test]
fn a_rebuild_gives_the_same_answers() {
    let served = changing(lively(52, 6, 300), 0.3);
    let seeds = served.web.seeds(2);
    let archive = crawled_twice(&served, &seeds);

    let queries = [
        "captures > 0 select url, title, type, status, captures, versions, depth, first_seen, last_seen, changed \
         order by url",
        "text contains \"a\" select url order by url limit 50",
        "site pages > 0 select site, pages, captures, html, xml, other order by site",
    ];
    let ask = || queries.map(|query| archive.json("query", &[query]));
    let (before, answers, ranks) = (known(&archive.path), ask(), by_importance(&archive));
    assert!(answers.iter().all(|rows| rows.len() > 1));
    let rebuilt = archive.json::<&str>("rebuild", &[]).pop().unwrap();
    assert!(archive.path.join("state/urls.find").is_file(), "readers would hash all URLs");

    let captures = before.values().map(|page| page.captures.len()).sum::<usize>();
    assert_eq!(rebuilt["captures"], captures as u64, "{rebuilt}");
    assert_eq!(known(&archive.path), before);
    assert_eq!(ask(), answers);
    assert_eq!(archive.verify(), captures as u64);
    ledger_balances(&archive.path);
    // Importance is an estimate with a memory, and rounds over the links between runs leave no trace in the records. An
    // estimate from the same captures and links ranks the same pages alike.
    let again = by_importance(&archive);
    let agreement = tau(&ranks, &again);
    let top = |pages: &[String]| pages.iter().take(20).cloned().collect::<BTreeSet<_>>();
    let common = top(&ranks).intersection(&top(&again)).count();
    println!("after a rebuild: tau {agreement:.4}, {common} of the top 20, {} pages", ranks.len());
    assert_eq!(again.len(), ranks.len());
    assert!(agreement > 0.95 && common >= 18, "tau {agreement}, {common} of 20");

    // The crawl continues where it was.
    let crawled = start(&mut archive.crawl(&seeds, &everywhere(&served))).wait().succeeded();
    assert!(crawled.errors.contains(" no captures"), "{}", crawled.errors);
    assert!(!archive.path.join("rebuild").exists());
}

#[test]
fn a_state_of_an_earlier_format_is_rebuilt_when_asked() {
    let served = TestWeb::start(archive_testweb::Config::plain(53, 2, 20));
    let archive = Archive::new();
    let seeds = served.web.seeds(2);
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let before = known(&archive.path);
    const NUMBERS: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("numbers");
    let catalogue = redb::Database::open(archive.path.join("state/catalogue.redb")).unwrap();
    let transaction = catalogue.begin_write().unwrap();
    transaction.open_table(NUMBERS).unwrap().insert("format", 0).unwrap();
    transaction.commit().unwrap();
    drop(catalogue);
    let words = ["has format 0 of an earlier release", "`archive rebuild` rebuilds it"];
    archive.run::<&str>("stats", &[]).refused(1, &words);
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().refused(1, &words);
    archive.run::<&str>("rebuild", &[]).succeeded();
    assert_eq!(known(&archive.path), before);
    // The scope was restored: nothing new is found.
    let crawled = start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    assert!(crawled.errors.contains(" no captures"), "{}", crawled.errors);
}

/// Two rankings under one name at the same time, and a rebuild that tries to replace their state.
#[test]
fn columns_that_belong_together_are_of_one_ranking_and_of_one_state() {
    let served = TestWeb::start(Config::plain(714, 2, 12));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(2), &served.at_once())).wait().succeeded();
    let saved = |column: &str| archive.path.join("state/columns").join(column);
    archive.run("rank", &["--save", "rank"]).succeeded();
    let writer = fs::File::open(saved("")).unwrap();
    writer.lock().unwrap();
    let rank = |method: &str| start(archive.command("rank").args(["--method", method, "--save", "both"]));
    let mut ranks = [rank("hits"), rank("hits")];
    thread::sleep(Duration::from_secs(2));
    assert!(!saved("page.both").exists() && ranks.iter_mut().all(|rank| !rank.has_ended()));
    let mut rebuild = start(&mut archive.command("rebuild"));
    thread::sleep(Duration::from_secs(2));
    assert!(!rebuild.has_ended(), "it waits for who reads the state");
    drop(writer);
    for rank in ranks {
        rank.wait().succeeded();
    }
    rebuild.wait().succeeded();
    assert!(!saved("page.both").exists(), "columns go with their state");
    archive.verify();
    rank("hits").wait().succeeded();
    archive.verify();
}

#[test]
fn a_rebuild_that_is_killed_leaves_what_was_there() {
    let served = TestWeb::start(lively(54, 4, 200));
    let archive = Archive::new();
    let seeds = served.web.seeds(2);
    start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    let before = known(&archive.path);
    for wait in [5, 20, 60, 120, 240] {
        let rebuild = start(&mut archive.command("rebuild"));
        std::thread::sleep(std::time::Duration::from_millis(wait));
        rebuild.kill();
        assert_eq!(known(&archive.path), before, "killed after {wait} ms");
    }
    archive.run::<&str>("rebuild", &[]).succeeded();
    assert_eq!(known(&archive.path), before);
    archive.verify();
    // If a file system cannot exchange two folders, the old state is moved away before the new one gets its name.
    let (state, shadow) = (archive.path.join("state"), archive.path.join("rebuild"));
    fs::create_dir(&shadow).unwrap();
    fs::rename(archive.copy().path.join("state"), shadow.join("state")).unwrap();
    fs::rename(&state, shadow.join("state.old")).unwrap();
    let crawled = start(&mut archive.crawl(&seeds, &served.at_once())).wait().succeeded();
    assert!(!crawled.errors.contains("was interrupted"), "nothing is replayed: {}", crawled.errors);
    assert_eq!(known(&archive.path), before);
}

#[test]
fn an_archive_of_nothing_but_segments_is_read_again_from_them() {
    let served = changing(lively(51, 6, 250), 0.5);
    let seeds = served.web.seeds(served.web.sites());
    let archive = crawled_twice(&served, &seeds);

    let copy = Archive::new();
    fs::create_dir_all(copy.segments()).unwrap();
    for segment in files_with(&archive.segments(), &[".warc.zst"]) {
        fs::copy(&segment, copy.segments().join(segment.file_name().unwrap())).unwrap();
    }
    // The whole web is known already, so nothing is left to fetch.
    let again = start(&mut copy.crawl(&seeds, &everywhere(&served))).wait().succeeded();
    assert!(again.errors.contains(" no captures"), "{}", again.errors);

    let (before, after) = (known(&archive.path), known(&copy.path));
    let captures =
        |pages: &BTreeMap<String, Page>| pages.values().map(|page| page.captures.len()).sum::<usize>();
    assert_eq!(captures(&after), captures(&before));
    for (url, page) in &before {
        assert_eq!(after.get(url), Some(page), "{url}");
    }
    assert_eq!(copy.verify(), captures(&before) as u64);
    ledger_balances(&copy.path);
    let pages =
        |archive: &Archive| search::SearchReader::open(&archive.path.join(search::FOLDER)).unwrap().pages();
    assert_eq!(pages(&copy), pages(&archive), "pages in the full-text index");
}

//! The archive is its WARC files: what is read again from them is what was there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use archive_storage::{CaptureKind, Store};
use chrono::TimeDelta;

use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, TestWeb, files_with, ledger_balances};

/// What the state says of a capture, in words that do not depend on numbers it was given.
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
    kind: u8,
    title: Option<String>,
    observations: [u8; 48],
    signature: u64,
    /// When a change was last announced, how often, and how often this was true.
    announced: (u32, u16, u16),
    links: Vec<(String, u8)>,
}

fn known(archive: &Path) -> BTreeMap<String, Page> {
    let store = Store::read_only(archive).unwrap();
    let state = store.state();
    let mut pages: BTreeMap<String, Page> = BTreeMap::new();
    for (id, visit) in state.visits().map(Result::unwrap).filter(|(_, visit)| visit.captures > 0) {
        let links = state.links(id).unwrap().links;
        let page = Page {
            captures: BTreeMap::new(),
            versions: visit.versions,
            last_changed: visit.last_changed,
            kind: visit.kind,
            title: visit.title.map(|title| state.title(title).unwrap()),
            observations: visit.extension,
            signature: visit.signature,
            announced: (visit.announced, visit.announcements, visit.announcements_confirmed),
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

#[test]
fn an_archive_of_nothing_but_segments_is_read_again_from_them() {
    let config = lively(51, 6, 250);
    let changes = archive::testweb::ChangeRates { median_per_day: 0.05, ..config.changes };
    let served = TestWeb::start(archive::testweb::Config {
        chunked_share: 0.5,
        validator_share: 0.5,
        duplicate_share: 0.1,
        changes,
        ..config
    });
    let archive = Archive::new();
    let seeds = served.web.seeds(served.web.sites());
    let options = [&served.at_once()[..], &["--scope".to_owned(), "any".to_owned()]].concat();
    start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    served.web.clock().advance(TimeDelta::days(30));
    start(archive.command("refresh").args(["--budget", "100000"]).args(served.at_once())).wait().succeeded();

    let copy = Archive::new();
    fs::create_dir_all(copy.segments()).unwrap();
    for segment in files_with(&archive.segments(), &[".warc.zst"]) {
        fs::copy(&segment, copy.segments().join(segment.file_name().unwrap())).unwrap();
    }
    // The whole web is known already, so that nothing is left to fetch.
    let again = start(&mut copy.crawl(&seeds, &options)).wait().succeeded();
    assert!(again.errors.contains(" 0 captures"), "{}", again.errors);

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
        |archive: &Archive| archive::search::Reader::open(&archive.path.join("fulltext")).unwrap().pages();
    assert_eq!(pages(&copy), pages(&archive), "pages in the full-text index");
}

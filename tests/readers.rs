//! What third-party programs read in our WARC files.

use std::time::Duration;

use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, CaptureKind, Digest, Store};
use archive_testweb::Config;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::crawl::lively;
use crate::support::program::start;
use crate::support::{Archive, Captured, TestWeb, captures, files_with, judges};

/// A page of the test web's fault host that is correctly compressed with gzip; the rest of this host is not part of the
/// crawl.
const GZIP_PAGE: &str = "http://faults.test/gzip depth=0 scope=host";

/// pywb distinguishes captures by the second.
const SECOND: Duration = Duration::from_millis(1100);

fn varied(seed: u64) -> TestWeb {
    let config = lively(seed, 6, 150);
    let changes = archive_testweb::ChangeRates { median_per_day: 0.05, ..config.changes };
    TestWeb::start(Config { chunked_share: 0.4, validator_share: 0.5, changes, ..config })
}

/// Crawls the whole web and the page that is compressed with gzip.
fn crawl(archive: &Archive, served: &TestWeb, codec: &str) {
    let mut seeds = served.web.seeds(served.web.sites());
    seeds.push(GZIP_PAGE.to_owned());
    let options = ["--scope", "site", "--codec", codec];
    start(archive.crawl(&seeds, &served.at_once()).args(options)).wait().succeeded();
}

#[test]
fn warcio_and_fastwarc_read_every_record_of_both_codecs() {
    let Some(judges) = judges::find() else { return };
    let served = varied(31);
    let mut read = Vec::new();
    for codec in ["gzip", "zstd"] {
        let archive = Archive::new();
        crawl(&archive, &served, codec);
        let records = judges.check(&archive.segments());
        assert_eq!(records.captures(), archive.verify());
        println!("{codec}: {:?}", records.fastwarc);
        read.push(records);
    }
    let [gzip, zstd] = read.as_slice() else { unreachable!("there are two codecs") };
    assert_eq!(gzip.warcio, gzip.fastwarc, "the two readers agree");
    assert_eq!(gzip.targets, zstd.targets, "the same URLs as often in both codecs");
    // Which of two equal pages is the response and which the revisit depends on which came first.
    let captures = |counts: &judges::Counts| counts["response"] + counts["revisit"];
    assert_eq!(captures(&gzip.fastwarc), captures(&zstd.fastwarc));
    for kind in ["request", "metadata"] {
        assert_eq!(gzip.fastwarc[kind], zstd.fastwarc[kind], "{kind} records");
    }
}

/// A capture to replay.
struct Chosen {
    why: &'static str,
    url: String,
    time: DateTime<Utc>,
}

/// Returns one capture of every kind that replay treats in its own way.
fn choose(archive: &Archive, captured: &Captured) -> Vec<Chosen> {
    let store = Store::read_only(&archive.path).unwrap();
    let head =
        |capture: &Capture| HttpHead::parse(&split(&store.record(capture.location).unwrap().content).0);
    let has = |capture: &Capture, field: &str| {
        capture.kind == CaptureKind::Response && capture.status == 200 && head(capture).get(field).is_some()
    };
    let is_xml = |capture: &Capture| store.state().mime(capture.mime).ends_with("/xml");
    let is_png = |capture: &Capture| store.state().mime(capture.mime) == "image/png";
    let is_css = |capture: &Capture| store.state().mime(capture.mime) == "text/css";
    let first = |history: &[Capture]| history[0];
    let last = |history: &[Capture]| *history.last().unwrap();
    let is_twice = |history: &[Capture]| history.len() == 2;
    let changed = |history: &[Capture]| {
        is_twice(history)
            && history.iter().all(|one| one.kind == CaptureKind::Response)
            && history[0].digest != history[1].digest
    };
    type Fits<'a> = Box<dyn Fn(&[Capture]) -> Option<Capture> + 'a>;
    let wanted: Vec<(&'static str, Fits<'_>)> = vec![
        ("chunked", Box::new(|h| Some(first(h)).filter(|c| has(c, "Transfer-Encoding")))),
        ("chunked XML", Box::new(|h| Some(first(h)).filter(|c| has(c, "Transfer-Encoding") && is_xml(c)))),
        ("gzip", Box::new(|h| Some(first(h)).filter(|c| has(c, "Content-Encoding")))),
        ("a copy of another URL", Box::new(|h| Some(first(h)).filter(|c| c.kind == CaptureKind::Identical))),
        (
            "the same as before",
            Box::new(|h| Some(last(h)).filter(|c| is_twice(h) && c.kind == CaptureKind::Identical)),
        ),
        ("not modified", Box::new(|h| Some(last(h)).filter(|c| c.kind == CaptureKind::NotModified))),
        ("before a change", Box::new(|h| Some(first(h)).filter(|_| changed(h)))),
        ("after a change", Box::new(|h| Some(last(h)).filter(|_| changed(h)))),
        ("a picture", Box::new(|h| Some(first(h)).filter(|c| c.kind == CaptureKind::Response && is_png(c)))),
        (
            "a style sheet",
            Box::new(|h| Some(first(h)).filter(|c| c.kind == CaptureKind::Response && is_css(c))),
        ),
        (
            "not found",
            Box::new(|h| Some(first(h)).filter(|c| c.status == 404 && c.kind == CaptureKind::Response)),
        ),
    ];
    let choose = |(why, fits): (&'static str, Fits<'_>)| {
        let found = captured.0.iter().find_map(|(url, history)| Some((url, fits(history)?)));
        let (url, capture) = found.unwrap_or_else(|| panic!("the archive has no capture that is {why}"));
        let time = DateTime::from_timestamp_micros(capture.time).unwrap();
        Chosen { why, url: url.clone(), time }
    };
    wanted.into_iter().map(choose).collect()
}

#[test]
fn pywb_replays_what_get_prints() {
    let Some(judges) = judges::find() else { return };
    let served = varied(32);
    let archive = Archive::new();
    crawl(&archive, &served, "gzip");
    std::thread::sleep(SECOND);
    served.web.clock().advance(TimeDelta::days(30));
    start(archive.command("refresh").args(["--budget", "100000", "--shortest", "0s"]).args(served.at_once()))
        .wait()
        .succeeded();
    archive.verify();
    let records = judges.check(&archive.segments());
    assert_eq!(records.warcio, records.fastwarc);

    let chosen: Vec<_> = choose(&archive, &captures(&archive.path))
        .into_iter()
        .map(|Chosen { why, url, time }| {
            let at = time.to_rfc3339_opts(SecondsFormat::Micros, true);
            let ours = start(archive.command("get").arg(&url).args(["--at", &at])).wait().succeeded();
            assert!(!ours.output.is_empty(), "{why}: {url}");
            println!("{why}: {url} at {at}");
            (url, time, Digest::sha256(&ours.output))
        })
        .collect();
    let files = files_with(&archive.segments(), &[".warc.gz"]);
    judges.replay(&archive.folder().join("pywb"), &files, &chosen);
}

//! Repacking: fewer bytes, fewer files, and no other changes, whatever happens meanwhile.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use archive_storage::{CaptureKind, Store};
use archive_testweb::{ChangeRates, Config};
use chrono::TimeDelta;
use serde_json::Value;

use crate::change::clock;
use crate::crawl::{everything, lively};
use crate::support::prepared::prepared;
use crate::support::program::start;
use crate::support::small_disk::SmallDisk;
use crate::support::{Archive, Dice, TestWeb, captures, files_with, judges, kills, ledger_balances};

/// Number of kills of a repack, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 4;
/// Number of refreshes after a crawl, each of which leaves a segment.
const REFRESHES: i32 = 6;
const EVERY: TimeDelta = TimeDelta::days(2);

/// Returns an archive of a crawl and of short runs after it.
pub(crate) fn refreshed(codec: &str) -> Archive {
    prepared(&format!("refreshed-{codec}"), || make(codec))
}

/// Returns the same with its web, at the time of the last run.
pub(crate) fn refreshed_web(codec: &str) -> (Archive, TestWeb) {
    let served = changing();
    served.web.clock().advance(EVERY * REFRESHES);
    (refreshed(codec), served)
}

fn changing() -> TestWeb {
    let config = lively(501, 5, 80);
    let changes = ChangeRates { median_per_day: 0.3, ..config.changes };
    TestWeb::start(Config { changes, ..config })
}

fn make(codec: &str) -> Archive {
    let (served, archive) = (changing(), Archive::new());
    let seeds = served.web.seeds(served.web.sites());
    let mut crawl = archive.crawl(&seeds, &everything(&served));
    start(crawl.args(clock(&served)).args(["--codec", codec])).wait().succeeded();
    for _ in 0..REFRESHES {
        served.web.clock().advance(EVERY);
        let mut refresh = archive.command("refresh");
        let options = ["--budget", "70", "--shortest", "0s"];
        start(refresh.args(options).args(served.at_once()).args(clock(&served))).wait().succeeded();
    }
    archive
}

/// A capture without its location.
pub(crate) type Listed = (String, i64, [u8; 16], CaptureKind, u16, u8);

/// Returns all captures in order, with the digests of their payloads.
pub(crate) fn listed(archive: &Path) -> Vec<Listed> {
    let store = Store::read_only(archive).unwrap();
    let listed = store.state().captures().map(|capture| {
        let (_, capture) = capture.unwrap();
        let url = store.state().url(capture.url).unwrap();
        assert!(capture.kind == CaptureKind::Failed || store.payload(&capture).unwrap().is_some(), "{url}");
        (url, capture.time, capture.digest, capture.kind, capture.status, capture.flags)
    });
    listed.collect()
}

/// Returns what people see of an archive.
fn answers(archive: &Archive) -> Vec<Vec<Value>> {
    let queries =
        ["page order by importance desc, url limit 200", "page text contains \"a\" order by url limit 100"];
    let mut answers: Vec<Vec<Value>> = queries.map(|query| archive.json("query", &[query])).into();
    let urls = captures(&archive.path).urls();
    answers.extend(urls.iter().take(5).map(|url| archive.json("history", &[url])));
    for row in answers.iter_mut().flatten().filter_map(Value::as_object_mut) {
        // Only the location of its record may change.
        row.retain(|name, _| name != "segment" && name != "offset");
    }
    answers
}

pub(crate) fn repack(archive: &Archive, arguments: &[&str]) -> Value {
    archive.json("repack", arguments).pop().unwrap()
}

pub(crate) fn segment_bytes(archive: &Archive) -> u64 {
    files_with(&archive.segments(), &[".warc.zst", ".warc.gz"])
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

#[test]
fn an_import_repacks_if_asked_to() {
    let crawled = refreshed("zstd");
    let all = crawled.folder().join("all.warc.gz").to_str().unwrap().to_owned();
    crawled.run("export", &["warc", "--output", &all]).succeeded();
    let (plain, packed) = (Archive::new(), Archive::new());
    plain.run("import", &[&all]).succeeded();
    packed.run("import", &["--repack", &all]).succeeded();
    assert_eq!(listed(&packed.path), listed(&plain.path));
    assert!(segment_bytes(&packed) < segment_bytes(&plain));
    assert_eq!(repack(&packed, &[])["segments_before"], 0);
    assert_eq!(packed.verify(), plain.verify());
}

/// A lower level than that of the old segments would make them longer; a level that helps is taken.
#[test]
fn a_repack_makes_nothing_longer() {
    let archive = refreshed("zstd");
    let before = segment_bytes(&archive);
    repack(&archive, &["--level", "19"]);
    let best = segment_bytes(&archive);
    assert!(best < before);
    for options in [&["--again"][..], &["--again", "--level", "3"], &[]] {
        let done = repack(&archive, options);
        assert!(done["bytes_after"].as_u64() <= done["bytes_before"].as_u64(), "{done}");
        assert!(segment_bytes(&archive) <= best, "{options:?}: {done}");
        assert!(is_tidy(&archive));
    }
    assert_eq!(repack(&archive, &[])["segments_before"], 0, "what is left as it is is not tried again");
    archive.verify();
}

/// Whether no file of an unfinished repack is left.
pub(crate) fn is_tidy(archive: &Archive) -> bool {
    files_with(&archive.segments(), &[".rewrite", "rewrite.json", ".new", ".open"]).is_empty()
}

#[test]
fn repacking_makes_an_archive_smaller_and_changes_nothing_else() {
    for codec in ["zstd", "gzip"] {
        let archive = refreshed(codec);
        let (before, seen, bytes) = (listed(&archive.path), answers(&archive), segment_bytes(&archive));
        let judged = judges::find().map(|judges| (judges.check(&archive.segments()), judges));
        let dry = repack(&archive, &["--dry-run"]);
        assert_eq!((segment_bytes(&archive), listed(&archive.path)), (bytes, before.clone()));
        let summary = repack(&archive, &[]);
        println!("{codec}: {summary}, estimated {}", dry["bytes_after"]);
        assert_eq!(summary["bytes_before"], bytes);
        assert_eq!(summary["bytes_after"], segment_bytes(&archive));
        let limit = if codec == "zstd" { bytes * 9 / 10 } else { bytes };
        assert!(segment_bytes(&archive) < limit);
        assert!(summary["segments_after"].as_u64() < summary["segments_before"].as_u64());
        assert_eq!(summary["captures"].as_u64(), Some(before.len() as u64));
        assert_eq!(listed(&archive.path), before);
        assert_eq!(answers(&archive), seen);
        assert_eq!(archive.verify(), before.len() as u64);
        if let Some((counts, judges)) = judged {
            let after = judges.check(&archive.segments());
            assert_eq!(
                (after.targets, after.warcio.get("response")),
                (counts.targets, counts.warcio.get("response"))
            );
        }
        assert!(is_tidy(&archive));
        assert_eq!(repack(&archive, &[])["segments_before"], 0, "once is enough");
        start(&mut archive.command("rebuild")).wait().succeeded();
        assert_eq!(listed(&archive.path), before, "after a rebuild");
        assert_eq!(archive.verify(), before.len() as u64);
        ledger_balances(&archive.path);
    }
}

#[test]
fn a_repack_killed_again_and_again_leaves_the_old_segments_or_the_new_ones() {
    let mut dice = Dice::new("kill repack");
    let sound = refreshed("zstd");
    let before = listed(&sound.path);
    let peace = start(&mut sound.copy().command("repack")).wait().succeeded().elapsed;
    let mut done = 0;
    for number in 1..=kills(KILLS) {
        let archive = sound.copy();
        for _ in 0..1 + u64::from(number % 4 == 0) {
            // The smallest possible batches, so that there are many moments for a kill.
            let mut command = archive.command("repack");
            let running = start(command.args(if number % 2 == 0 { &["--room", "40kB"][..] } else { &[] }));
            thread::sleep(Duration::from_micros(dice.below(peace.as_micros() as u64)));
            running.kill();
        }
        assert_eq!(listed(&archive.path), before, "kill {number}, read as it is left");
        let summary = repack(&archive, &[]);
        done += u64::from(summary["segments_before"] == 0);
        assert_eq!(listed(&archive.path), before, "kill {number}");
        assert_eq!(archive.verify(), before.len() as u64);
        assert!(is_tidy(&archive));
        if number % 4 == 1 {
            start(&mut archive.command("rebuild")).wait().succeeded();
            assert_eq!(listed(&archive.path), before, "kill {number}, rebuilt");
        }
    }
    println!("{} kills, {done} of them when all was done", kills(KILLS));
}

#[test]
fn readers_beside_a_repack_are_never_refused() {
    let sound = refreshed("zstd");
    let seen = answers(&sound);
    for _ in 0..3 {
        let archive = sound.copy();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let read = || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(answers(&archive), seen);
                }
            };
            let reader = scope.spawn(read);
            let summary = repack(&archive, &[]);
            assert!(summary["segments_before"].as_u64() > Some(1), "{summary}");
            is_over.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
    }
}

#[test]
fn a_disk_without_room_leaves_the_archive_as_it_was_and_a_batch_fits_into_its_room() {
    let sound = refreshed("gzip");
    let before = listed(&sound.path);
    let size = |path: &Path| {
        let output =
            std::process::Command::new("du").args(["-sk", "--apparent-size"]).arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let mut archive = Archive::new();
    let folder = archive.folder().join("small");
    let Some(disk) = SmallDisk::mount(folder.clone(), "size=64m") else { return };
    archive.path = folder.join("web.archive");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(&sound.path)
            .arg(&archive.path)
            .status()
            .unwrap()
            .success()
    );
    let used = size(&archive.path);
    disk.change(&format!("size={}k", used + used / 8 + 64));
    let full = start(&mut archive.command("repack")).wait();
    full.refused(1, &["No space left", "free some space"]);
    assert!(is_tidy(&archive), "abandoned segments take no space");
    // An import without new captures consists only of its repack.
    let export = sound.folder().join("all.warc.gz");
    sound.run("export", &["warc", "--output", export.to_str().unwrap()]).succeeded();
    let full = start(archive.command("import").arg("--repack").arg(&export)).wait();
    full.refused(1, &["No space left"]);
    assert!(is_tidy(&archive), "nor after an import");
    disk.change(&format!("size={}k", used * 3 + 4096));
    assert_eq!(listed(&archive.path), before);
    start(archive.command("repack").args(["--room", "100kB"])).wait().succeeded();
    assert_eq!(listed(&archive.path), before);
    assert_eq!(archive.verify(), before.len() as u64);
    assert!(is_tidy(&archive));
}

#[test]
fn a_damaged_segment_is_not_repacked() {
    let archive = refreshed("zstd");
    let largest = files_with(&archive.segments(), &[".warc.zst"]);
    let largest = largest.into_iter().max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&largest, &bytes).unwrap();
    let files = files_with(&archive.segments(), &[".warc.zst"]);
    start(&mut archive.command("repack")).wait().refused(1, &["is damaged at byte", "archive repair"]);
    assert_eq!(files_with(&archive.segments(), &[".warc.zst"]), files);
    assert_eq!(fs::read(&largest).unwrap(), bytes);
    archive.run("repack", &["--memory", "1MB"]).refused(2, &["--memory has to be at least 256MiB"]);
}

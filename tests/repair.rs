//! Damage of every kind is found, quarantined and reported, and what is still readable is recovered.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use archive_testweb::Config;

use crate::crawl::{everything, lively};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures, files_with, ledger_balances};

/// Returns a crawled archive with enough captures for several segments.
fn crawled(seed: u64, pages: u64, codec: &str) -> (TestWeb, Archive) {
    let served = TestWeb::start(lively(seed, 4, pages));
    let archive = Archive::new();
    let options = [everything(&served), vec!["--codec".to_owned(), codec.to_owned()]].concat();
    start(&mut archive.crawl(&served.web.seeds(2), &options)).wait().succeeded();
    (served, archive)
}

fn segment(archive: &Archive) -> PathBuf {
    files_with(&archive.segments(), &[".warc.zst", ".warc.gz"]).remove(0)
}

/// Returns the findings of `verify`.
fn findings(archive: &Archive) -> Vec<String> {
    let finished = start(archive.command("verify").arg("--json")).wait();
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["findings"], lines.len() as u64);
    assert_eq!(finished.code, Some(i32::from(!lines.is_empty())));
    lines.iter().map(|line| line["what"].as_str().unwrap().to_owned()).collect()
}

/// Returns what `repair` did and what is lost, and its summary.
fn repair(archive: &Archive) -> (Vec<String>, serde_json::Value) {
    let finished = start(archive.command("repair").arg("--json")).wait();
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    assert_eq!(finished.code, Some(i32::from(summary["lost"] != 0)), "{}", finished.errors);
    let actions = lines
        .iter()
        .map(|line| format!("{}: {}", line["what"].as_str().unwrap(), line["done"].as_str().unwrap()));
    (actions.collect(), summary)
}

#[test]
fn a_sound_archive_is_left_alone() {
    let (_served, archive) = crawled(71, 60, "zstd");
    let before = fs::read(segment(&archive)).unwrap();
    assert_eq!(findings(&archive), Vec::<String>::new());
    let (actions, summary) = repair(&archive);
    assert_eq!((actions.len(), &summary["rebuilt"]), (0, &false.into()), "{actions:?}");
    assert_eq!(fs::read(segment(&archive)).unwrap(), before);
    assert!(!archive.path.join("quarantine").exists());
    assert!(!archive.path.join("rebuild").exists());
}

#[test]
fn a_damaged_record_costs_itself_and_no_more() {
    for codec in ["gzip", "zstd"] {
        let (_served, archive) = crawled(72, 120, codec);
        let before = captures(&archive.path);
        // In the middle of the largest record.
        let victim = before.0.values().flatten().max_by_key(|capture| capture.location.length).unwrap();
        let path = segment(&archive);
        let mut bytes = fs::read(&path).unwrap();
        let place = victim.location.offset as usize + victim.location.length as usize / 2;
        bytes[place] ^= 0x55;
        bytes[place + 1] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let found = findings(&archive);
        assert!(found.iter().any(|what| what.contains("has changed since it was closed")), "{found:?}");

        let (actions, summary) = repair(&archive);
        assert_eq!((actions.len(), &summary["lost"]), (2, &1.into()), "{actions:?}");
        assert!(
            actions[0].contains("broken record at byte") && actions[0].contains("moved to"),
            "{actions:?}"
        );
        assert!(actions[1].contains("captures lost: 1 of"), "{actions:?}");
        assert_eq!(summary["rebuilt"], true);
        let quarantined = files_with(&archive.path.join("quarantine"), &[".warc.zst", ".warc.gz"]);
        assert_eq!(fs::read(&quarantined[0]).unwrap(), bytes, "what is damaged is kept as it is");
        assert_eq!(findings(&archive), Vec::<String>::new(), "{codec}");
        let after = captures(&archive.path);
        assert_eq!(after.count(), before.count() - 1, "{codec}: {summary}");
        for (url, history) in &after.0 {
            let key = |capture: &archive_storage::Capture| {
                (capture.time, capture.status, capture.digest, capture.kind as u8)
            };
            let known: Vec<_> = before.0[url].iter().map(key).collect();
            assert!(history.iter().all(|capture| known.contains(&key(capture))), "{url}");
        }
        ledger_balances(&archive.path);
        assert_eq!(repair(&archive).0.len(), 0, "repairing again changes nothing");
    }
}

#[test]
fn a_torn_tail_is_cut_and_a_lost_state_is_rebuilt() {
    let (_served, archive) = crawled(73, 80, "zstd");
    let before = captures(&archive.path).count();
    // As after a crash: not closed, and cut within the last record.
    let path = segment(&archive);
    let torn = path.with_extension("zst.open");
    fs::rename(&path, &torn).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&torn).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - 40).unwrap();
    drop(file);
    let (actions, summary) = repair(&archive);
    assert!(actions[0].contains("had not been closed"), "{actions:?}");
    assert_eq!(summary["rebuilt"], true);
    assert_eq!(findings(&archive), Vec::<String>::new());
    assert_eq!(captures(&archive.path).count(), before - 1);

    // A block of the state is overwritten.
    let table = archive.path.join("state/captures.table");
    let mut bytes = fs::read(&table).unwrap();
    bytes[100] ^= 1;
    fs::write(&table, bytes).unwrap();
    let found = findings(&archive);
    assert!(found.iter().any(|what| what.contains("captures.table is damaged")), "{found:?}");
    let (actions, _) = repair(&archive);
    assert!(actions[0].starts_with("state: ") && actions[0].contains("captures.table"), "{actions:?}");
    assert_eq!(findings(&archive), Vec::<String>::new());
    assert_eq!(captures(&archive.path).count(), before - 1);
}

#[test]
fn a_missing_segment_is_named_and_given_up_by_nothing_but_repair() {
    let served = TestWeb::start(lively(75, 4, 60));
    let archive = Archive::new();
    let crawl = |limit: &str| {
        let mut crawl = archive.crawl(&served.web.seeds(2), &everything(&served));
        start(crawl.args(["--limit", limit])).wait().succeeded()
    };
    crawl("20");
    crawl("1000");
    let before = captures(&archive.path);
    let path = segment(&archive);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let in_it = before.0.values().flatten().filter(|capture| capture.location.segment.0 == 0).count();
    let aside = archive.file("aside", fs::read(&path).unwrap());
    fs::remove_file(&path).unwrap();
    let missing = format!("{name} is missing with its {in_it} captures");
    let is_named = |found: &[String]| found.iter().any(|what| what.starts_with(&missing));
    let found = findings(&archive);
    assert!(is_named(&found), "{found:?}");

    archive.run::<&str>("rebuild", &[]).refused(1, &[&missing, "archive repair"]);
    assert_eq!(captures(&archive.path).count(), before.count(), "the state stays as it is");
    // A crawl continues, and neither it nor its end hides the loss.
    let crawled = crawl("1000");
    assert!(crawled.errors.contains(&missing), "{}", crawled.errors);
    let found = findings(&archive);
    assert!(is_named(&found), "{found:?}");
    // This crawl may have captured a page whose server was slow before.
    let held = captures(&archive.path).count();

    let (actions, summary) = repair(&archive);
    assert_eq!((&summary["lost"], &summary["rebuilt"]), (&1.into(), &true.into()), "{actions:?}");
    assert!(actions.iter().any(|action| action.contains(&format!("captures lost: {in_it}"))), "{actions:?}");
    assert_eq!(findings(&archive), Vec::<String>::new());
    let left = captures(&archive.path).count();
    assert_eq!(left, held - in_it as u64);
    let verified = start(&mut archive.command("verify")).wait().succeeded().text();
    assert!(verified.contains(&format!("could not bring back {in_it} captures")), "{verified}");
    assert_eq!(repair(&archive).0.len(), 0, "what was given up is no news");

    fs::copy(aside, &path).unwrap();
    let found = findings(&archive);
    assert!(found.iter().any(|what| what.contains("is not in the catalogue")), "{found:?}");
    let (_, summary) = repair(&archive);
    assert_eq!(summary["lost"], 0);
    assert_eq!(findings(&archive), Vec::<String>::new());
    assert_eq!(captures(&archive.path).count(), held);
}

#[test]
fn an_interrupted_repair_is_continued_before_anything_else() {
    let (served, archive) = crawled(76, 40, "zstd");
    let before = captures(&archive.path).count();
    // As after a kill right after the first move.
    let path = segment(&archive);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let quarantine = archive.path.join("quarantine");
    fs::create_dir(&quarantine).unwrap();
    fs::rename(&path, quarantine.join(&name)).unwrap();
    let found = findings(&archive);
    assert!(found.iter().any(|what| what.contains("was put aside by an interrupted repair")), "{found:?}");
    let words = ["a repair was interrupted", "run `archive repair` to continue it"];
    start(&mut archive.crawl(&served.web.seeds(2), &everything(&served))).wait().refused(1, &words);
    archive.run::<&str>("rebuild", &[]).refused(1, &words);
    let (actions, summary) = repair(&archive);
    assert_eq!((&summary["lost"], &summary["saved"]), (&0.into(), &before.into()), "{actions:?}");
    assert_eq!(findings(&archive), Vec::<String>::new());
    assert_eq!(captures(&archive.path).count(), before);
    start(&mut archive.crawl(&served.web.seeds(2), &everything(&served))).wait().succeeded();
}

#[test]
fn everything_that_is_wrong_is_listed() {
    let (_served, archive) = crawled(77, 60, "zstd");
    for (file, place) in
        [("captures.table", 100), ("captures.table", 5000), ("pages.table", 7), ("urls.zst", 30)]
    {
        let path = archive.path.join("state").join(file);
        let mut bytes = fs::read(&path).unwrap();
        bytes[place] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let found = findings(&archive);
    for place in ["captures.table is damaged at byte 0", "captures.table is damaged at byte 4096"] {
        assert_eq!(found.iter().filter(|what| what.contains(place) && what.starts_with("state")).count(), 1);
    }
    for file in ["pages.table is damaged", "urls.zst is damaged"] {
        assert!(found.iter().any(|what| what.contains(file)), "{file}: {found:?}");
    }
    repair(&archive);
    assert_eq!(findings(&archive), Vec::<String>::new());
}

#[test]
fn nothing_is_wrong_during_a_crawl() {
    let served = TestWeb::start(Config { latency: Duration::from_millis(3), ..lively(78, 4, 150) });
    let archive = Archive::new();
    let crawl = || {
        let mut running = start(&mut archive.crawl(&served.web.seeds(4), &everything(&served)));
        let mut verified = 0;
        while !running.has_ended() {
            let finished = start(&mut archive.command("verify")).wait();
            if !finished.errors.contains("holds no archive") {
                assert_eq!(finished.code, Some(0), "{}{}", finished.text(), finished.errors);
                verified += 1;
            }
        }
        running.wait().succeeded();
        verified
    };
    let verified = crawl() + {
        served.web.clock().advance(chrono::TimeDelta::days(30));
        crawl()
    };
    println!("{verified} verifications beside two crawls");
    assert!(verified > 0);
}

#[test]
fn a_stray_file_is_reported() {
    let served = TestWeb::start(Config::plain(74, 1, 10));
    let archive = Archive::new();
    start(&mut archive.crawl(&served.web.seeds(1), &everything(&served))).wait().succeeded();
    let path = segment(&archive);
    let name = path.file_name().unwrap().to_string_lossy().replace("-00000-", "-00007-");
    fs::copy(&path, archive.segments().join(&name)).unwrap();
    let found = findings(&archive);
    assert!(found.len() == 1 && found[0].contains("is not in the catalogue"), "{found:?}");
    fs::remove_file(archive.segments().join(name)).unwrap();
    fs::remove_file(&path).unwrap();
    let found = findings(&archive);
    assert!(found.iter().any(|what| what.contains("is missing")), "{found:?}");
    let sample = start(archive.command("verify").args(["--sample", "1000"])).wait();
    assert_eq!(sample.code, Some(1));
    assert!(sample.text().contains("is missing"), "{}", sample.text());
}

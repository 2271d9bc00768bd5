//! Damage of every kind is found, moved aside and told, and what can still be read comes back.

use std::fs;
use std::path::PathBuf;

use archive::testweb::Config;

use crate::crawl::{everything, lively};
use crate::support::program::start;
use crate::support::{Archive, TestWeb, captures, files_with, ledger_balances};

/// A crawled archive in several segments' worth of captures.
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

/// What `verify` finds.
fn findings(archive: &Archive) -> Vec<String> {
    let finished = start(archive.command("verify").arg("--json")).wait();
    let mut lines = finished.json();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["findings"], lines.len() as u64);
    assert_eq!(finished.code, Some(i32::from(!lines.is_empty())));
    lines.iter().map(|line| line["what"].as_str().unwrap().to_owned()).collect()
}

/// What `repair` says it did and what is lost, and its summary.
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
        assert!(found.iter().any(|what| what.contains("is not the file that was closed")), "{found:?}");

        let (actions, summary) = repair(&archive);
        assert_eq!((actions.len(), &summary["lost"]), (2, &1.into()), "{actions:?}");
        assert!(
            actions[0].contains("broken record at byte") && actions[0].contains("moved to"),
            "{actions:?}"
        );
        assert!(actions[1].contains("1 of its"), "{actions:?}");
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
fn a_torn_tail_is_cut_and_a_lost_state_is_made_anew() {
    let (_served, archive) = crawled(73, 80, "zstd");
    let before = captures(&archive.path).count();
    // As a crash would leave it: not closed, and cut within the last record.
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
fn a_file_that_does_not_belong_is_told() {
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

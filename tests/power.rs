//! A crawl with repeated power failures keeps every capture it ever counted, and ends like an undisturbed one.
//!
//! Unlike a kill, a power failure destroys data that was written but not synced, completely or by sectors. So the store
//! runs on the simulated disk; the web, the sockets and the crawl are real.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive_base::control::Control;
use archive_books::ledger::{Credits, ScopeKind};
use archive_books::recorder;
use archive_crawl::{CrawlOptions, EndReason, Purpose, Seed, scope_of};
use archive_storage::CaptureKind;
use archive_storage::backend::SimulatedDisk;
use archive_storage::segment::SegmentOptions;

use crate::crawl::lively;
use crate::support::captures::assert_same;
use crate::support::{Archive, Dice, TestWeb, captures, judges, ledger_balances};

/// Number of power failures.
const FAILURES: u64 = 40;

/// Returns the URLs that an archive has captured, without robots.txt: those that a run counts.
fn counted(disk: &SimulatedDisk, folder: &Path) -> BTreeSet<String> {
    let opened = recorder::open_on(Arc::new(disk.clone()), folder, SegmentOptions::default()).unwrap();
    assert!(opened.broken.is_empty(), "{:?}", opened.broken);
    let state = opened.store.state();
    Credits::open(state).unwrap().audit(state).unwrap();
    let mut urls = BTreeSet::new();
    for (_, capture) in state.captures().map(Result::unwrap) {
        let url = state.url(capture.url).unwrap();
        if capture.kind != CaptureKind::Failed && !url.ends_with("/robots.txt") {
            assert!(urls.insert(url.clone()), "{url} was captured twice");
        }
    }
    urls
}

/// Crawls until nothing is left or the power fails; returns the number of acknowledged captures, and whether the crawl
/// ended.
fn crawl((disk, folder): (&SimulatedDisk, &Path), seeds: &[Seed], options: &CrawlOptions) -> (u64, bool) {
    let mut acknowledged = 0;
    let mut attempt = || -> Result<EndReason, Box<dyn std::error::Error>> {
        let mut store = recorder::open_on(Arc::new(disk.clone()), folder, SegmentOptions::default())?.store;
        let scope = scope_of(seeds, &ScopeKind::Any, u8::MAX);
        let plan = Purpose::Discover { seeds: seeds.to_vec(), scope };
        let (end, _) = archive_crawl::run(&mut store, plan, options, &Control::default(), &mut |status| {
            acknowledged = status.acknowledged;
        })?;
        store.close()?;
        Ok(end)
    };
    let ended = attempt().is_ok_and(|end| end == EndReason::Complete);
    (acknowledged, ended)
}

#[test]
fn a_crawl_whose_power_fails_loses_nothing_that_it_counted() {
    let mut dice = Dice::new("power");
    let served = TestWeb::start(lively(23, 6, 300));
    // A run lasts a few seconds; with these intervals it has many syncs and checkpoints.
    let options = CrawlOptions {
        sync_every: Duration::from_millis(10),
        checkpoint_every: Duration::from_millis(70),
        ..served.options()
    };
    let seeds: Vec<Seed> = archive_crawl::read_seeds(&served.web.seeds(2).join("\n")).unwrap();

    // Segments and state are on the simulated disk, the files beside them in a folder of the same name.
    let (archive, beside) = (Archive::new(), Archive::new());
    for folder in [&archive, &beside] {
        fs::create_dir(&folder.path).unwrap();
    }
    let calm = SimulatedDisk::new(1);
    assert!(crawl((&calm, &beside.path), &seeds, &options).1);
    let (operations, undisturbed) = (calm.operations(), counted(&calm, &beside.path));

    let mut disk = SimulatedDisk::new(dice.below(u64::MAX));
    let (mut before, mut counted_in_all) = (BTreeSet::new(), 0);
    for number in 1..=FAILURES {
        // Some failures occur while the archive is being opened and repaired, most of them within a part of the crawl.
        let after = dice.below(if number % 4 == 0 { 20 } else { operations / 8 });
        disk.fail_power_at(disk.operations() + after);
        let (acknowledged, _) = crawl((&disk, &archive.path), &seeds, &options);
        disk = disk.crash();
        let kept = counted(&disk, &archive.path);
        assert!(
            kept.is_superset(&before),
            "failure {number}, after {after} operations: lost {:?}",
            before.difference(&kept)
        );
        let new = (kept.len() - before.len()) as u64;
        assert!(new >= acknowledged, "failure {number}: {acknowledged} acknowledged, {new} kept");
        assert_eq!(counted(&disk, &archive.path), kept, "opening again changes something");
        counted_in_all += acknowledged;
        before = kept;
    }
    println!("{counted_in_all} captures acknowledged and {} kept over {FAILURES} failures", before.len());
    assert!(counted_in_all > 0, "no run came so far that it acknowledged anything");
    assert!(crawl((&disk, &archive.path), &seeds, &options).1);
    assert_same(&counted(&disk, &archive.path), &undisturbed, "captured in spite of power failures");

    for (path, bytes) in disk.files() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let captured = captures(&archive.path);
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
    if let Some(judges) = judges::find() {
        assert_eq!(judges.check(&archive.segments()).captures(), captured.count());
    }
}

//! Repacking in idle time, during a refresh: existing captures stay, new ones are kept, and readers continue.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use crate::change::clock;
use crate::repack::{Listed, is_tidy, listed, refreshed, refreshed_web};
use crate::support::program::start;
use crate::support::{Archive, Dice, TestWeb, files_with, kills, ledger_balances};

/// Number of kills of a refresh that also repacks, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 3;
/// Largest number of refreshes, at least one of which must repack.
const RUNS_MAX: u32 = 5;

/// Returns a refresh of everything that also repacks, and that takes some seconds because it is polite.
fn polite_refresh(archive: &Archive, served: &TestWeb) -> Command {
    refresh(archive, served, "160ms")
}

fn refresh(archive: &Archive, served: &TestWeb, delay: &str) -> Command {
    let mut command = archive.command("refresh");
    command.args(["--budget", "100", "--shortest", "0s", "--delay", delay, "--repack-while-idle"]);
    command.args(["--spare-time", "true"]).args(served.connection()).args(clock(served));
    command
}

/// Fails unless an archive begins with these captures; returns the number of additional ones.
fn added(archive: &Path, before: &[Listed]) -> usize {
    let now = listed(archive);
    assert!(now.starts_with(before), "what was there is there, in its order");
    now.len() - before.len()
}

fn segments(archive: &Archive) -> usize {
    files_with(&archive.segments(), &[".warc.zst"]).len()
}

#[test]
fn a_refresh_repacks_in_spare_time_beside_readers_and_loses_nothing() {
    let (archive, served) = refreshed_web("zstd");
    let (before, files) = (listed(&archive.path), segments(&archive));
    let (mut reads, mut is_repacked) = (0, false);
    // On a machine that is busy with other tests, a refresh may end before its repack.
    for _ in 0..RUNS_MAX {
        served.web.clock().advance(TimeDelta::days(9));
        let mut refresh = start(&mut polite_refresh(&archive, &served));
        while !refresh.has_ended() {
            added(&archive.path, &before);
            reads += 1;
            thread::sleep(Duration::from_millis(20));
        }
        is_repacked = refresh.wait().succeeded().errors.contains("repacked: segments");
        if is_repacked {
            break;
        }
    }
    println!("read {reads} times");
    assert!(is_repacked);
    assert!(reads > 3);
    assert!(segments(&archive) < files, "the refresh's own segments and fewer old ones");
    assert!(added(&archive.path, &before) > 50);
    assert!(is_tidy(&archive));
    let all = listed(&archive.path);
    assert_eq!(archive.verify(), all.len() as u64);
    ledger_balances(&archive.path);
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!(listed(&archive.path), all, "after a rebuild");
}

#[test]
fn a_refresh_killed_while_it_repacks_leaves_the_old_segments_or_the_new_ones() {
    let mut dice = Dice::new("kill repack beside");
    let (sound, served) = refreshed_web("zstd");
    let before = listed(&sound.path);
    served.web.clock().advance(TimeDelta::days(9));
    let kill = |number: u64, wait: Duration| {
        let archive = sound.copy();
        let mut running = start(&mut polite_refresh(&archive, &served));
        let begins =
            |archive: &Archive| !files_with(&archive.segments(), &[".rewrite", "rewrite.json"]).is_empty();
        let begun = Instant::now();
        running.wait_until(|| begins(&archive) || begun.elapsed() > Duration::from_secs(5));
        thread::sleep(wait);
        running.kill();
        added(&archive.path, &before);
        let next = start(&mut refresh(&archive, &served, "20ms")).wait().succeeded();
        let is_in_place = !next.errors.contains("repacked: segments");
        let count = before.len() + added(&archive.path, &before);
        assert_eq!(archive.verify(), count as u64, "kill {number}");
        assert!(is_tidy(&archive));
        println!("kill {number} after {wait:?}, all in place: {is_in_place}");
    };
    let kill = &kill;
    thread::scope(|scope| {
        for number in 1..=kills(KILLS) {
            let wait = Duration::from_micros(dice.below(3_000_000));
            let one = scope.spawn(move || kill(number, wait));
            // As many at once as there are usually processors for.
            if number % 2 == 0 {
                one.join().unwrap();
            }
        }
    });
}

#[test]
fn without_time_to_spare_nothing_is_repacked_and_memory_is_asked_for() {
    let (archive, served) = refreshed_web("zstd");
    let files = files_with(&archive.segments(), &[".warc.zst"]);
    let mut refresh = archive.command("refresh");
    refresh.args(["--budget", "100", "--shortest", "0s", "--repack-while-idle", "--spare-time", "false"]);
    let finished = start(refresh.args(served.at_once()).args(clock(&served))).wait().succeeded();
    assert!(!finished.errors.contains("repacked"), "{}", finished.errors);
    assert!(files.iter().all(|file| file.exists()));
    let little = ["--budget", "1", "--repack-while-idle", "--memory", "400MB"];
    archive.run("refresh", &little).refused(2, &["--repack-while-idle needs a --memory of at least 832MiB"]);
}

#[test]
fn what_a_killed_repack_leaves_is_removed_and_said() {
    let archive = refreshed("zstd");
    let name = files_with(&archive.segments(), &[".warc.zst"]).pop().unwrap();
    let left = format!("{}.rewrite", name.display()).replace("-00000-", "-00999-");
    std::fs::copy(&name, &left).unwrap();
    let repack = start(archive.command("repack").arg("--dry-run")).wait().succeeded();
    assert!(repack.errors.contains("1 new segment"), "{}", repack.errors);
    assert!(!Path::new(&left).exists());
    assert!(is_tidy(&archive));
}

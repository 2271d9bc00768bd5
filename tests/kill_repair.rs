//! Repair and rebuild, killed at any moment, lose nothing and hide nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use archive_books::columns;
use archive_books::search::{self, SearchReader};

use crate::crawl::{everything, lively};
use crate::support::prepared::prepared;
use crate::support::program::{Running, start};
use crate::support::{Archive, Dice, TestWeb, captures, files_with, kills, ledger_balances};

/// Number of kills of each command, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 6;

/// One run in this many is killed twice before it may end.
const TWICE: u64 = 3;

/// URL, time and digest of every capture.
pub(crate) type Contents = BTreeSet<(String, i64, [u8; 16])>;

pub(crate) fn contents(archive: &Path) -> Contents {
    let of = |(url, captures): (String, Vec<archive_storage::Capture>)| {
        captures.into_iter().map(move |capture| (url.clone(), capture.time, capture.digest))
    };
    captures(archive).0.into_iter().flat_map(of).collect()
}

/// Returns a small archive of two crawls, and so of two segments.
fn crawled() -> Archive {
    prepared("two-crawls", make)
}

fn make() -> Archive {
    let served = TestWeb::start(lively(82, 4, 60));
    let archive = Archive::new();
    let options = everything(&served);
    for limit in ["20", "1000"] {
        let mut crawl = archive.crawl(&served.web.seeds(4), &options);
        start(crawl.args(["--limit", limit])).wait().succeeded();
    }
    archive
}

/// Flips a random bit in the larger part of a segment.
fn flip(archive: &Archive, dice: &mut Dice) {
    let segments = files_with(&archive.segments(), &[".warc.zst"]);
    let path = &segments[dice.below(segments.len() as u64) as usize];
    let mut bytes = fs::read(path).unwrap();
    let place = dice.below(bytes.len() as u64) as usize;
    bytes[place] ^= 1 << dice.below(8);
    fs::write(path, bytes).unwrap();
}

/// Starts a command and kills it at a random time within its undisturbed duration.
fn kill_within(archive: &Archive, command: &str, time: Duration, dice: &mut Dice) {
    let running = start(&mut archive.command(command));
    thread::sleep(Duration::from_micros(dice.below(time.as_micros() as u64)));
    running.kill();
}

#[test]
fn a_repair_killed_again_and_again_loses_no_capture() {
    let mut dice = Dice::new("kill repair");
    let sound = crawled();
    let before = contents(&sound.path);
    for number in 1..=kills(KILLS) {
        let damaged = sound.copy();
        flip(&damaged, &mut dice);
        let calm = damaged.copy();
        let repaired = start(&mut calm.command("repair")).wait();
        let expected = contents(&calm.path);
        assert!(expected.len() + 1 >= before.len(), "{}", repaired.text());

        for _ in 0..1 + u64::from(number % TWICE == 0) {
            kill_within(&damaged, "repair", repaired.elapsed, &mut dice);
        }
        let last = start(&mut damaged.command("repair")).wait();
        let found = contents(&damaged.path);
        println!("kill {number}: {} of {} captures\n{}", found.len(), before.len(), last.text());
        assert_eq!(found, expected, "kill {number}: {}{}", last.text(), last.errors);
        assert_eq!(damaged.verify(), found.len() as u64);
        ledger_balances(&damaged.path);
    }
}

#[test]
fn a_rebuild_killed_again_and_again_keeps_state_and_full_text_together() {
    let mut dice = Dice::new("kill rebuild");
    let archive = crawled();
    let (before, texts) = (contents(&archive.path), searched(&archive));
    assert!(texts.len() > 10);
    let elapsed = start(&mut archive.copy().command("rebuild")).wait().succeeded().elapsed;
    let calm = archive.copy();
    let rebuild = until_indexing(&calm);
    let begun = Instant::now();
    rebuild.wait().succeeded();
    let ending = begun.elapsed().as_micros() as u64;
    for number in 1..=kills(KILLS) {
        archive.json("rank", &["--save", "rank"]);
        if number % 4 == 0 {
            kill_within(&archive, "rebuild", elapsed, &mut dice);
        } else {
            // At the end, the new files replace the old ones.
            let running = until_indexing(&archive);
            thread::sleep(Duration::from_micros(ending / 2 + dice.below(ending)));
            running.kill();
        }
        assert_eq!(contents(&archive.path), before, "kill {number}");
        assert_eq!(searched(&archive), texts, "kill {number}");
        let columns = columns::read_all(&archive.path, columns::RowKind::Page).unwrap();
        println!("kill {number}: {}", if columns.is_empty() { "after the exchange" } else { "before it" });
        assert_eq!(archive.verify(), before.len() as u64);
    }
    start(&mut archive.command("rebuild")).wait().succeeded();
    assert_eq!((contents(&archive.path), searched(&archive)), (before, texts));
}

/// Starts a rebuild and waits until it has begun the full-text index.
fn until_indexing(archive: &Archive) -> Running {
    let index = archive.path.join("rebuild").join(search::FOLDER).join("meta.json");
    let mut running = start(&mut archive.command("rebuild"));
    assert!(running.wait_until(|| index.exists()));
    running
}

/// Returns the results of a search for a common word, which requires that state and index agree on the numbers of
/// pages.
pub(crate) fn searched(archive: &Archive) -> Vec<String> {
    assert!(SearchReader::open(&archive.path.join(search::FOLDER)).unwrap().pages() > 0);
    let rows = archive.json("query", &["page text contains \"a\" select url order by url limit 1000"]);
    rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn readers_beside_a_rebuild_are_never_refused() {
    let archive = crawled();
    let texts = searched(&archive);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let read = || {
            let mut asked = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(searched(&archive), texts);
                asked += 1;
            }
            asked
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for _ in 0..kills(KILLS) {
            start(&mut archive.command("rebuild")).wait().succeeded();
        }
        is_over.store(true, Ordering::Relaxed);
        let asked: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        println!("{asked} queries beside {} rebuilds", kills(KILLS));
    });
}

//! A crawl that is killed again and again ends with what a crawl in peace ends with.
//!
//! Two processes of one machine share its page cache, so a kill does not lose what was written; what power failures
//! lose is the subject of the storage crate's simulated disk.

use std::path::Path;
use std::time::{Duration, SystemTime};

use archive::search::{self, Reader};

use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::{Running, start};
use crate::support::{Archive, Dice, TestWeb, captures, files_with, judges, kills, ledger_balances};

/// How often the crawl is killed, unless `ARCHIVE_KILLS` says otherwise.
const KILLS: u64 = 10;

/// Kills come within this time after the event they wait for.
const SPREAD_MICROS: u64 = 30_000;

/// The moments of a run at which it may be killed.
#[derive(Debug)]
enum Moment {
    /// Somewhere in starting: opening, recovering, replaying.
    Starting,
    /// While the state is made durable.
    Checkpoint,
    /// After so many more requests.
    Requests(u64),
}

impl Moment {
    fn draw(dice: &mut Dice, requests: u64) -> Self {
        match dice.below(10) {
            0 | 1 => Self::Starting,
            2..=4 => Self::Checkpoint,
            _ => Self::Requests(dice.below(requests)),
        }
    }

    /// Waits for the moment; whether it came before the run was over.
    fn wait(&self, running: &mut Running, served: &TestWeb, archive: &Path) -> bool {
        match self {
            Self::Starting => true,
            Self::Checkpoint => {
                let before = written(archive);
                running.wait_until(|| written(archive) != before)
            }
            Self::Requests(requests) => {
                let from = served.server.requests();
                running.wait_until(|| served.server.requests() >= from + requests)
            }
        }
    }
}

/// When the journal of checkpoints was last written.
fn written(archive: &Path) -> Option<SystemTime> {
    std::fs::metadata(archive.join("state/journal")).and_then(|data| data.modified()).ok()
}

#[test]
fn a_crawl_killed_again_and_again_loses_nothing_and_repeats_nothing() {
    let kills = kills(KILLS);
    let mut dice = Dice::new("kill");
    // Enough pages that the last kill still finds the crawl at work.
    let served = TestWeb::start(lively(21, 8, 500 * kills.div_ceil(40)));
    let seeds = served.web.seeds(2);
    let options = everything(&served);

    let calm = Archive::new();
    start(&mut calm.crawl(&seeds, &options)).wait().succeeded();
    let undisturbed = captures(&calm.path);
    let requests = served.server.requests();

    let archive = Archive::new();
    for number in 1..=kills {
        let moment = Moment::draw(&mut dice, (requests / kills).max(1));
        let mut running = start(&mut archive.crawl(&seeds, &options));
        let came = moment.wait(&mut running, &served, &archive.path);
        std::thread::sleep(Duration::from_micros(dice.below(SPREAD_MICROS)));
        println!("kill {number}: {moment:?}, {}", if came { "in time" } else { "the run was over" });
        running.kill();
    }
    let last = start(&mut archive.crawl(&seeds, &options)).wait().succeeded();
    assert!(last.errors.contains("nothing left to fetch"), "{}", last.errors);

    let captured = captures(&archive.path);
    assert_same(&captured.urls(), &undisturbed.urls(), "captured in spite of kills");
    captured.are_single_answers();
    for (url, captures) in &captured.0 {
        let calm = undisturbed.0[url][0];
        assert_eq!(captures[0].status, calm.status, "{url}");
    }
    assert_eq!(archive.verify(), captured.count());
    ledger_balances(&archive.path);
    let indexed = |archive: &Archive| Reader::open(&archive.path.join(search::FOLDER)).unwrap().pages();
    assert_eq!(indexed(&archive), indexed(&calm), "pages in the full-text index");
    assert!(files_with(&archive.segments(), &[".open"]).is_empty(), "no segment is left open");
    if let Some(judges) = judges::find() {
        let records = judges.check(&archive.segments());
        assert_eq!(records.captures(), captured.count(), "records of captures in the WARC files");
    }
}

//! A crawl that is killed again and again ends with the result of an undisturbed crawl.
//!
//! Two processes of one machine share its page cache, so a kill does not lose written data. Data loss at power failures
//! is tested with the simulated disk of the storage crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use archive_books::search::{self, SearchReader};
use chrono::TimeDelta;

use crate::change::{clock, crawled};
use crate::crawl::{everything, lively};
use crate::support::captures::assert_same;
use crate::support::program::{Running, start};
use crate::support::{Archive, Dice, TestWeb, captures, files_with, judges, kills, ledger_balances};

/// Number of kills of the crawl, unless `ARCHIVE_KILLS` overrides it.
const KILLS: u64 = 10;

/// Kills follow the awaited event within this time, in microseconds.
const SPREAD_MICROS: u64 = 30_000;

/// A moment of a run at which it may be killed.
#[derive(Debug)]
enum Moment {
    /// During the start: opening, recovering, replaying.
    Starting,
    /// While a checkpoint makes the state durable.
    Checkpoint,
    /// After this many more requests.
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

    /// Waits for the moment; returns whether it came before the run ended.
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

/// Returns the time of the last write to the journal of checkpoints.
fn written(archive: &Path) -> Option<SystemTime> {
    std::fs::metadata(archive.join("state/journal")).and_then(|data| data.modified()).ok()
}

#[test]
fn a_crawl_killed_again_and_again_loses_nothing_and_repeats_nothing() {
    let kills = kills(KILLS);
    let mut dice = Dice::new("kill");
    // Enough pages that the crawl is still running at the last kill.
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
    let indexed = |archive: &Archive| SearchReader::open(&archive.path.join(search::FOLDER)).unwrap().pages();
    assert_eq!(indexed(&archive), indexed(&calm), "pages in the full-text index");
    assert!(files_with(&archive.segments(), &[".open"]).is_empty(), "no segment is left open");
    if let Some(judges) = judges::find() {
        let records = judges.check(&archive.segments());
        assert_eq!(records.captures(), captured.count(), "records of captures in the WARC files");
    }
}

/// Starts a command and kills it at a random time within its undisturbed duration.
fn kill_in(command: &mut Command, dice: &mut Dice, peace: Duration) {
    let running = start(command);
    std::thread::sleep(Duration::from_micros(dice.below(peace.as_micros() as u64)));
    running.kill();
}

/// Returns the unfinished files that a command left in a folder and its subfolders.
fn half_done(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let endings = [".part", ".partial", ".new", ".tmp", ".open", "-part"];
        if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(half_done(&entry.path()));
        }
    }
    found
}

#[test]
fn a_refresh_killed_again_and_again_loses_nothing_and_continues() {
    let mut dice = Dice::new("refresh");
    let (served, archive) = crawled(lively(22, 4, 120));
    let refresh = |archive: &Archive| {
        let mut command = archive.command("refresh");
        command.args(["--budget", "400"]).args(served.at_once()).args(clock(&served));
        command
    };
    served.web.clock().advance(TimeDelta::days(9));
    let peace = start(&mut refresh(&archive)).wait().succeeded().elapsed;
    let mut before = captures(&archive.path);
    for _ in 0..kills(KILLS) {
        served.web.clock().advance(TimeDelta::days(1));
        kill_in(&mut refresh(&archive), &mut dice, peace);
        let after = captures(&archive.path);
        assert!(after.count() >= before.count());
        before = after;
    }
    start(&mut refresh(&archive)).wait().succeeded();
    let after = captures(&archive.path);
    for (url, known) in &before.0 {
        assert_eq!(after.0[url][..known.len()], known[..], "{url}");
    }
    // No page is captured twice at one time of the web, whose clock stood still during each run.
    for (url, captures) in &after.0 {
        let days: BTreeSet<i64> = captures.iter().map(|one| one.time / 3_600_000_000).collect();
        assert!(
            captures.len() <= days.len() + usize::from(url.ends_with("/robots.txt")),
            "{url}: {captures:?}"
        );
    }
    assert_eq!(archive.verify(), after.count());
    ledger_balances(&archive.path);
    assert_eq!(half_done(&archive.path), Vec::<String>::new());
}

#[test]
fn an_export_killed_again_and_again_leaves_the_old_file_or_the_new_one() {
    let mut dice = Dice::new("export");
    let (_, archive) = crawled(lively(23, 4, 300));
    let out = archive.folder().join("out");
    fs::create_dir(&out).unwrap();
    for (format, name) in [
        ("warc", "all.warc.gz"),
        ("wacz", "all.wacz"),
        ("cdxj", "all.cdxj"),
        ("parquet", "all.parquet"),
        ("links", "all.tsv.gz"),
        ("graph", "web"),
    ] {
        let export = || {
            let mut command = archive.command("export");
            command.arg(format).arg("--output").arg(out.join(name));
            command
        };
        let peace = start(&mut export()).wait().succeeded().elapsed;
        let files = || -> Vec<(String, u64)> {
            let files = fs::read_dir(&out).unwrap().map(Result::unwrap);
            let sizes = files.map(|file| {
                (file.file_name().to_string_lossy().into_owned(), file.metadata().unwrap().len())
            });
            let mut sizes: Vec<_> = sizes.collect();
            sizes.sort();
            sizes
        };
        let whole = files();
        let is_named = |file: &(String, u64)| whole.iter().any(|(name, _)| *name == file.0);
        for _ in 0..kills(KILLS).div_ceil(6) {
            kill_in(&mut export(), &mut dice, peace);
            let left: Vec<_> = files().into_iter().filter(is_named).collect();
            // The compressed time in a package changes its size; no reader accepts a graph without properties.
            let is_whole = left.len() == whole.len()
                && left.iter().zip(&whole).all(|(a, b)| a.0 == b.0 && a.1.abs_diff(b.1) < 64);
            let is_closed = format == "graph" && !left.iter().any(|(name, _)| name.ends_with(".properties"));
            assert!(is_whole || is_closed, "{format}: {left:?} for {whole:?}");
        }
        start(&mut export()).wait().succeeded();
        let names = |files: Vec<(String, u64)>| files.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(files()), names(whole.clone()), "{format}");
    }
}

#[test]
fn a_watch_killed_again_and_again_reports_all_time_once() {
    let mut dice = Dice::new("watch");
    let (served, archive) = crawled(lively(24, 2, 60));
    let run = |command: &str, arguments: &[&str]| {
        let mut whole = archive.command(command);
        whole.args(arguments).args(clock(&served));
        whole
    };
    let peace = start(&mut run("watch", &["page", "--name", "calm"])).wait().succeeded().elapsed;
    // Each watch is created completely or not at all.
    let adds = kills(KILLS).div_ceil(2);
    for number in 0..adds {
        kill_in(&mut run("watch", &["page", "--name", &format!("killed-{number}")]), &mut dice, peace);
        archive.run::<&str>("watch list", &[]).succeeded();
    }
    let report = || {
        let mut command = run("watch report", &["calm", "--now"]);
        command.args(served.at_once());
        command
    };
    served.web.clock().advance(TimeDelta::days(8));
    let peace = start(&mut report()).wait().succeeded().elapsed;
    for _ in 0..kills(KILLS) - adds {
        served.web.clock().advance(TimeDelta::days(8));
        kill_in(&mut report(), &mut dice, peace);
        archive.run::<&str>("watch list", &[]).succeeded();
    }
    served.web.clock().advance(TimeDelta::days(8));
    start(&mut report()).wait().succeeded();
    // The next watch with this name removes what was left of it.
    for number in 0..adds {
        let name = format!("killed-{number}");
        if !archive.path.join(format!("watches/{name}.json")).exists() {
            start(&mut run("watch", &["page", "--name", &name])).wait().succeeded();
        }
    }
    let reports = archive.path.join("watches/calm");
    let mut spans: Vec<(String, String)> = Vec::new();
    for path in files_with(&reports, &[".json"]) {
        let report: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        spans.push((
            report["since"].as_str().unwrap().to_owned(),
            report["until"].as_str().unwrap().to_owned(),
        ));
    }
    spans.sort();
    assert!(spans.len() > 1);
    for pair in spans.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "a gap or an overlap: {spans:?}");
    }
    assert_eq!(archive.verify(), captures(&archive.path).count());
    assert_eq!(half_done(&archive.path), Vec::<String>::new());
}

#[test]
fn a_review_killed_again_and_again_leaves_the_old_sheet_or_the_new_one() {
    let mut dice = Dice::new("review");
    let (_, archive) = crawled(lively(25, 8, 300));
    let sheet = archive.folder().join("sheet.html");
    let review = || {
        let mut command = archive.command("review export");
        command.arg("--output").arg(&sheet);
        command
    };
    let peace = start(&mut review()).wait().succeeded().elapsed;
    let begun = Instant::now();
    for _ in 0..kills(KILLS) {
        kill_in(&mut review(), &mut dice, peace);
        let text = fs::read_to_string(&sheet).unwrap();
        assert!(
            text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"),
            "{} bytes",
            text.len()
        );
    }
    println!("{} kills in {:?}", kills(KILLS), begun.elapsed());
    start(&mut review()).wait().succeeded();
    assert!(half_done(archive.folder()).is_empty(), "{:?}", half_done(archive.folder()));
}

#[test]
fn decisions_killed_again_and_again_are_taken_in_together_or_not_at_all() {
    const SITES: usize = 2000;
    let mut dice = Dice::new("decisions");
    let (_, archive) = crawled(lively(26, 2, 20));
    let sheet = archive.folder().join("ratings.csv");
    let rows: String = (0..SITES).map(|site| format!("site{site}.test,3\n")).collect();
    fs::write(&sheet, format!("site,rating\n{rows}")).unwrap();
    let import = || {
        let mut command = archive.command("review import");
        command.arg(&sheet).arg("--overwrite");
        command
    };
    let decisions = || {
        let text = fs::read_to_string(archive.path.join("decisions.jsonl")).unwrap_or_default();
        text.lines().count()
    };
    let peace = start(import().args(["--by", "anna"])).wait().succeeded().elapsed;
    let mut before = decisions();
    assert_eq!(before, SITES);
    for _ in 0..kills(KILLS) {
        // Another reviewer's decisions differ, so that the sheet adds something.
        let by = format!("ben{before}");
        kill_in(import().args(["--by", &by]), &mut dice, peace);
        let after = decisions();
        assert!(after == before || after == before + SITES, "{before} {after}");
        before = after;
    }
    start(&mut archive.command("review log")).wait().succeeded();
}

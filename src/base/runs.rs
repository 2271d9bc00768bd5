//! Reports of past and current runs: one file per crawl or refresh, in the archive's folder.
//!
//! `runs/N.json` is rewritten every second during run N (every five seconds if it is one of several crawls of a
//! machine), and once more at its end. The archive's integrity does not depend on it: readers skip a file that a power
//! failure left incomplete. Like the watches, these files are outside the state, because the state can be rebuilt and
//! they cannot. A run holds a lock on `runs/lock`, so that readers can tell a current run from one whose program was
//! killed.
//!
//! The size of a file is bounded, whatever servers answer: reasons, examples and moments are limited.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use archive_storage::backend::{OpenMode, open_regular};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::files::{self, WholeFile};

/// Folder within the archive's folder.
pub const FOLDER: &str = "runs";

/// Maximum number of runs kept; the oldest are deleted.
pub const RUNS_MAX: usize = 10_000;

/// Maximum number of reasons counted separately in a run; all others are counted together.
pub const REASONS_MAX: usize = 60;

/// Maximum number of example URLs per reason.
pub const EXAMPLES_MAX: usize = 5;

/// Reason for a page that asks not to be archived; all other rules have names of their own.
pub const NOT_TO_BE_KEPT: &str = "noarchive";

/// Maximum length of a reason and of an example URL in bytes; longer URLs are not kept as examples.
const TEXT_BYTES_MAX: usize = 1000;

/// Maximum number of moments kept per run; beyond it, every second one is dropped.
const MOMENTS_MAX: usize = 240;

/// Maximum size in bytes; a larger file is ignored as not ours.
const BYTES_MAX: u64 = 2 << 20;

/// Number of attempts to take the lock, with a pause in between: readers hold it only for a moment.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Name of a file while it is being written.
const PART: &str = "part";

/// Collective reason for everything beyond the first [`REASONS_MAX`] reasons.
const OTHER: &str = "other reasons";

/// Report of a run, up to its last update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Its number, from 1, as in its file name.
    #[serde(default)]
    pub id: u64,
    /// The command that started it: `crawl`, `refresh`, …
    pub command: String,
    /// When it began.
    #[serde(with = "crate::instant")]
    pub began: DateTime<Utc>,
    /// Time of the last update of this report; the end of the run if it has ended.
    #[serde(rename = "told", with = "crate::instant")]
    pub reported: DateTime<Utc>,
    /// How it ended: `complete`, `limit`, …, or `failed`; `None` while it runs.
    pub end: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its limits.
    pub limits: RunLimits,
    /// Its progress.
    pub progress: Progress,
    /// Fetches without an answer, or with a status of 400 or above, by reason.
    pub errors: Tallies,
    /// URLs that a rule excluded from fetching, by name of the rule.
    pub refused: Tallies,
    /// Pages fetched because of notices from outside, by channel of the notice.
    #[serde(default)]
    pub noticed: Tallies,
    /// Progress over time, oldest first.
    pub moments: Vec<RunMoment>,
    /// The copies at its end; `None` while it runs and after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesState>,
    /// Exponent n (one moment in 2^n is kept), and the number of moments so far.
    #[serde(skip)]
    thinned: (u32, u64),
}

/// Limits of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Total number of pages.
    pub pages: Option<u64>,
    /// Bytes received.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Duration in seconds.
    pub seconds: Option<f64>,
    /// Number of pages of one host of a site of importance 1 or less.
    pub pages_per_host: Option<u32>,
    /// Number of pages of one site of importance 1 or less.
    pub pages_per_site: Option<u32>,
    /// Bytes received from one host.
    #[serde(default)]
    pub bytes_per_host: Option<u64>,
    /// Bytes received from one site.
    #[serde(default)]
    pub bytes_per_site: Option<u64>,
    /// Seconds between two requests to a host, and to an address, as given on the command line.
    pub delay_seconds: Option<[f64; 2]>,
    /// Maximum number of concurrent requests.
    pub workers: Option<usize>,
}

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since its start, without pauses.
    pub seconds: f64,
    /// Why no new requests are made, if so.
    pub paused: Option<String>,
    /// Number of captures, without those of robots.txt.
    pub captures: u64,
    /// Number of pages among the captures.
    pub pages: u64,
    /// Number of pages of the archive that were read, in this run or before.
    #[serde(default)]
    pub read: u64,
    /// Share of the importance of all pages known so far that these have, from 0 to 1.
    #[serde(default)]
    pub gathered: f64,
    /// The clock G of importance: how often all cash was handed on, in all runs; 0 if not known.
    #[serde(default)]
    pub clock: f64,
    /// What passed between this node and others of a cluster; `None` for a crawl of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged: Option<Exchanged>,
    /// Number of captures whose content is identical to another one.
    pub identical: u64,
    /// Number of fetches without an answer, or with a status of 400 or above.
    pub errors: u64,
    /// Number of URLs that a rule excluded from fetching.
    pub refused: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Recent number of pages per second.
    pub pages_per_second: f64,
    /// Recent number of bytes per second.
    pub bytes_per_second: f64,
    /// Number of URLs in the queue.
    pub queued: u64,
    /// Number of requests in flight.
    pub active: usize,
    /// Number of hosts with a request in flight.
    pub hosts_active: usize,
    /// Number of hosts with URLs in the queue that wait for their politeness delay.
    pub hosts_waiting: usize,
    /// Number of checkpoints.
    pub checkpoints: u64,
    /// Free space on the archive's disk, in bytes.
    pub disk_free_bytes: u64,
}

/// What passed between a node and others, in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Pages of other partitions that were fetched.
    pub abroad: u64,
    /// Links sent to other partitions.
    pub links: u64,
    /// Bytes sent to them.
    pub bytes: u64,
}

/// Progress of a run at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMoment {
    /// Seconds since its start, without pauses.
    pub seconds: f64,
    /// Number of pages.
    pub pages: u64,
    /// Number of URLs in the queue.
    pub queued: u64,
    /// Share of the importance of all pages known by then that the read ones had.
    #[serde(default)]
    pub gathered: f64,
    /// The clock G of importance; 0 if not known.
    #[serde(default)]
    pub clock: f64,
}

/// The copies of an archive at the end of a run. In large archives the numbers are estimates from a sample of pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopiesState {
    /// Number of pages that are there.
    pub pages: u64,
    /// Number of pages that were there and now bring nothing.
    pub gone: u64,
    /// Expected share of fresh copies, weighted by importance.
    pub freshness: f64,
    /// Expected days since the first missed change, weighted by importance.
    pub age_days: f64,
}

/// Number of occurrences by reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tallies(pub Vec<ReasonTally>);

/// Number of occurrences for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonTally {
    /// The reason.
    pub reason: String,
    /// Number of occurrences.
    pub count: u64,
    /// The first URLs affected.
    pub examples: Vec<Example>,
}

/// A URL affected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The canonical URL.
    pub url: String,
    /// When.
    #[serde(with = "crate::instant")]
    pub time: DateTime<Utc>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStage {
    /// It is running.
    UnderWay,
    /// It has ended.
    Ended,
    /// Its program died before the run ended.
    BrokenOff,
}

impl Tallies {
    /// Counts occurrences for a reason. `example` is called for a URL only while there is room for one.
    pub fn count(&mut self, reason: &str, times: u64, time: DateTime<Utc>, example: impl FnOnce() -> String) {
        let reason = reason.get(..reason.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(OTHER);
        let known = self.0.iter().position(|tally| tally.reason == reason);
        let reason = if known.is_none() && self.0.len() >= REASONS_MAX { OTHER } else { reason };
        let place = self.0.iter().position(|tally| tally.reason == reason).unwrap_or_else(|| {
            self.0.push(ReasonTally { reason: reason.to_owned(), count: 0, examples: Vec::new() });
            self.0.len() - 1
        });
        let Some(tally) = self.0.get_mut(place) else { return };
        tally.count += times;
        if tally.examples.len() < EXAMPLES_MAX {
            let url = example();
            if (1..=TEXT_BYTES_MAX).contains(&url.len())
                && tally.examples.iter().all(|known| known.url != url)
            {
                tally.examples.push(Example { url, time });
            }
        }
    }

    /// Total number of occurrences for these reasons.
    #[must_use]
    pub fn of(&self, reasons: &[&str]) -> u64 {
        self.0.iter().filter(|tally| reasons.contains(&tally.reason.as_str())).map(|tally| tally.count).sum()
    }
}

impl RunReport {
    /// Starts the report of a run.
    #[must_use]
    pub fn begins(command: &str, now: DateTime<Utc>) -> Self {
        Self {
            id: 0,
            command: command.to_owned(),
            began: now,
            reported: now,
            end: None,
            error: None,
            limits: RunLimits::default(),
            progress: Progress::default(),
            errors: Tallies::default(),
            refused: Tallies::default(),
            noticed: Tallies::default(),
            moments: Vec::new(),
            copies: None,
            thinned: (0, 0),
        }
    }

    /// Records the current progress as a moment.
    pub fn note_moment(&mut self) {
        self.thinned.1 += 1;
        if !self.thinned.1.is_multiple_of(1 << self.thinned.0.min(63)) {
            return;
        }
        let Progress { seconds, pages, queued, gathered, clock, .. } = self.progress;
        self.moments.push(RunMoment { seconds, pages, queued, gathered, clock });
        if self.moments.len() > MOMENTS_MAX {
            let mut number = 0_usize;
            self.moments.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
            self.thinned.0 += 1;
        }
    }
}

/// The file of a current run. Dropping it releases the lock, which marks the run as no longer under way.
#[derive(Debug)]
pub struct RunWriter {
    path: PathBuf,
    _lock: File,
    /// The report to be written.
    pub run: RunReport,
}

impl RunWriter {
    /// Creates the file of a run, with the next number.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(archive: &Path, mut run: RunReport) -> io::Result<Self> {
        let folder = archive.join(FOLDER);
        files::make_folder(&folder)?;
        let lock = lock(&folder)?;
        let ids = numbers(&folder)?;
        for old in surplus(&ids) {
            remove(&file_of(&folder, *old))?;
        }
        run.id = ids.last().map_or(1, |newest| newest + 1);
        let writer = Self { path: file_of(&folder, run.id), _lock: lock, run };
        writer.save(false)?;
        Ok(writer)
    }

    /// Rewrites the file; if `durably`, it survives a power failure.
    ///
    /// # Errors
    /// When writing to the disk fails.
    pub fn save(&self, durably: bool) -> io::Result<()> {
        save(&self.path, &self.run, durably)
    }
}

fn save(path: &Path, run: &RunReport, durably: bool) -> io::Result<()> {
    // All files share this name, so that killed programs leave at most one behind.
    let mut file = WholeFile::begin_as(path, path.with_file_name(PART))?;
    file.write_all(&serde_json::to_vec(run)?)?;
    if durably { file.commit() } else { file.put_in_place() }
}

fn lock(folder: &Path) -> io::Result<File> {
    let file = open_regular(&folder.join("lock"), OpenMode::Create)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process has the lock of the runs"))
}

/// The runs of an archive. Each report is read when it is asked for.
#[derive(Debug)]
pub struct RunHistory {
    folder: PathBuf,
    ids: Vec<u64>,
}

impl RunHistory {
    /// Lists the runs of an archive; empty if there were none.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn of(archive: &Path) -> io::Result<Self> {
        let folder = archive.join(FOLDER);
        let ids = numbers(&folder)?;
        Ok(Self { folder, ids })
    }

    /// Run numbers, oldest first.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Returns a run and its stage; `None` if there is no such run or its file cannot be read.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<(RunReport, RunStage)> {
        let run = self.read(id)?;
        if run.end.is_some() {
            return Some((run, RunStage::Ended));
        }
        if self.ids.last() == Some(&id) && self.is_locked() {
            return Some((run, RunStage::UnderWay));
        }
        // It may have ended since it was read.
        let run = self.read(id)?;
        let stage = if run.end.is_some() { RunStage::Ended } else { RunStage::BrokenOff };
        Some((run, stage))
    }

    /// Returns at most `most` of the moments of the newest `count` runs at which the clock G was known, with the last: the
    /// number of pages that these runs had fetched by then, and G.
    #[must_use]
    pub fn clocks(&self, count: usize, most: usize) -> Vec<(u64, f64)> {
        let (mut clocks, mut before) = (Vec::new(), 0);
        let newest = &self.ids[self.ids.len().saturating_sub(count)..];
        for run in newest.iter().filter_map(|id| self.read(*id)) {
            let known = run.moments.iter().filter(|at| at.clock > 0.0 && at.clock.is_finite());
            clocks.extend(known.map(|at| (before + at.pages, at.clock)));
            before += run.progress.pages;
        }
        let step = clocks.len().div_ceil(most.max(1)).max(1);
        let mut thinned: Vec<_> = clocks.into_iter().rev().step_by(step).collect();
        thinned.reverse();
        thinned
    }

    /// Returns the copies at the ends of at most `count` runs with the times of these ends, oldest first: of the newest
    /// run, and of runs between it and the oldest at equal distances.
    #[must_use]
    pub fn curve(&self, count: usize) -> Vec<(DateTime<Utc>, CopiesState)> {
        let step = self.ids.len().div_ceil(count.max(1)).max(1);
        let mut curve: Vec<_> = self
            .ids
            .iter()
            .rev()
            .step_by(step)
            .filter_map(|id| self.read(*id))
            .filter_map(|run| Some((run.reported, run.copies?)))
            .collect();
        curve.reverse();
        curve
    }

    fn read(&self, id: u64) -> Option<RunReport> {
        let bytes = files::read(&file_of(&self.folder, id), BYTES_MAX).ok()?;
        serde_json::from_slice::<RunReport>(&bytes).ok().map(|run| RunReport { id, ..run })
    }

    fn is_locked(&self) -> bool {
        let lock = open_regular(&self.folder.join("lock"), OpenMode::Read);
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Removes URLs from the examples of all runs. Unreadable files are deleted, because they may contain anything.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> io::Result<()> {
    let runs = RunHistory::of(archive)?;
    remove(&runs.folder.join(PART))?;
    for id in &runs.ids {
        let Some(mut run) = runs.read(*id) else {
            remove(&file_of(&runs.folder, *id))?;
            continue;
        };
        let is_named = |example: &Example| urls.contains(&example.url);
        let names = |text: &String| urls.iter().any(|url| text.contains(url.as_str()));
        let has_failed_on_it = run.error.take_if(|error| names(error)).is_some();
        if has_failed_on_it {
            run.error = Some("(named an erased page)".to_owned());
        }
        let mut tallies = [&mut run.errors, &mut run.refused, &mut run.noticed];
        if !has_failed_on_it
            && !tallies.iter().any(|found| found.0.iter().any(|tally| tally.examples.iter().any(is_named)))
        {
            continue;
        }
        for tally in tallies.iter_mut().flat_map(|found| &mut found.0) {
            tally.examples.retain(|example| !is_named(example));
        }
        save(&file_of(&runs.folder, *id), &run, true)?;
    }
    Ok(())
}

/// The oldest runs, to be deleted to make room for a new one.
fn surplus(ids: &[u64]) -> &[u64] {
    ids.get(..ids.len().saturating_sub(RUNS_MAX - 1)).unwrap_or_default()
}

/// Removes a file if it exists.
fn remove(path: &Path) -> io::Result<()> {
    files::if_there(fs::remove_file(path)).map(drop)
}

fn file_of(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Numbers of the files in the folder, sorted.
fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in files::if_there(fs::read_dir(folder))?.into_iter().flatten() {
        let name = entry?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
        numbers.extend(number.filter(|number| (1..u64::MAX).contains(number)));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(tallies: &mut Tallies, reason: &str, url: &str) {
        tallies.count(reason, 1, Utc::now(), || url.to_owned());
    }

    #[test]
    fn a_current_run_is_distinguished_from_a_killed_one() {
        let folder = tempfile::tempdir().unwrap();
        let stage = |id| RunHistory::of(folder.path()).unwrap().get(id).map(|(_, stage)| stage);
        assert_eq!(stage(1), None);
        let writer = RunWriter::begin(folder.path(), RunReport::begins("crawl", Utc::now())).unwrap();
        assert_eq!(stage(1), Some(RunStage::UnderWay));
        drop(writer);
        assert_eq!(stage(1), Some(RunStage::BrokenOff));
        let mut next = RunWriter::begin(folder.path(), RunReport::begins("refresh", Utc::now())).unwrap();
        next.run.end = Some("complete".to_owned());
        next.save(true).unwrap();
        assert_eq!((stage(1), stage(2)), (Some(RunStage::BrokenOff), Some(RunStage::Ended)));
        // Left by a power failure.
        fs::write(folder.path().join(FOLDER).join("3.json"), "{\"comm").unwrap();
        assert_eq!(stage(3), None);
    }

    #[test]
    fn a_file_is_bounded_whatever_the_web_says() {
        let mut run = RunReport::begins("crawl", Utc::now());
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        for number in 0..10 * REASONS_MAX {
            for example in 0..2 * EXAMPLES_MAX {
                let url = format!("http://a.test/{number}/{example}/{}", "y".repeat(TEXT_BYTES_MAX - 40));
                count(&mut run.errors, &format!("{number} {long}"), &url);
            }
            run.note_moment();
        }
        count(&mut run.errors, OTHER, &long);
        assert_eq!(run.errors.0.len(), REASONS_MAX + 1);
        assert_eq!(
            run.errors.0.iter().map(|tally| tally.count).sum::<u64>(),
            10 * REASONS_MAX as u64 * 10 + 1
        );
        assert!(run.errors.0.iter().all(|tally| tally.examples.len() <= EXAMPLES_MAX));
        assert!(run.moments.len() <= MOMENTS_MAX);
        run.refused = run.errors.clone();
        assert!((serde_json::to_vec(&run).unwrap().len() as u64) < BYTES_MAX);
    }

    #[test]
    fn the_oldest_runs_go() {
        let ids: Vec<u64> = (1..=RUNS_MAX as u64 + 1).collect();
        assert_eq!(surplus(&ids), [1, 2]);
        assert_eq!(surplus(&ids[2..]), [0; 0]);
    }

    #[test]
    fn the_curve_is_of_runs_at_equal_distances() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=10_u64 {
            let now = DateTime::from_timestamp(i64::try_from(number).unwrap(), 0).unwrap();
            let mut writer = RunWriter::begin(folder.path(), RunReport::begins("refresh", now)).unwrap();
            let copies = CopiesState { pages: number, gone: 0, freshness: 0.5, age_days: 1.0 };
            writer.run.copies = (number != 8).then_some(copies);
            writer.save(true).unwrap();
        }
        let runs = RunHistory::of(folder.path()).unwrap();
        let pages = |count| runs.curve(count).iter().map(|(_, copies)| copies.pages).collect::<Vec<_>>();
        // The eighth failed.
        assert_eq!((pages(100).len(), pages(4)), (9, vec![1, 4, 7, 10]));
        assert_eq!((pages(5), pages(1)), (vec![2, 4, 6, 10], vec![10]));
    }

    #[test]
    fn clocks_of_several_runs_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=3_u64 {
            let mut writer = RunWriter::begin(folder.path(), RunReport::begins("crawl", Utc::now())).unwrap();
            for pages in [5, 10] {
                // A run of before clocks were noted.
                let clock = if number == 2 { 0.0 } else { number as f64 + pages as f64 / 10.0 };
                writer.run.progress = Progress { pages, clock, ..Progress::default() };
                writer.run.note_moment();
            }
            writer.save(true).unwrap();
        }
        let runs = RunHistory::of(folder.path()).unwrap();
        let all = [(5, 1.5), (10, 2.0), (25, 3.5), (30, 4.0)];
        assert_eq!((runs.clocks(9, 4), runs.clocks(9, 3)), (all.to_vec(), vec![all[1], all[3]]));
        assert_eq!(runs.clocks(1, 4), [(5, 3.5), (10, 4.0)]);
    }

    #[test]
    fn erased_pages_are_no_examples_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::begin(folder.path(), RunReport::begins("crawl", Utc::now())).unwrap();
        count(&mut writer.run.errors, "status 404", "http://a.test/gone");
        count(&mut writer.run.refused, "robots", "http://a.test/other");
        writer.save(true).unwrap();
        let torn = file_of(&folder.path().join(FOLDER), 2);
        fs::write(&torn, "{\"url\":\"http://a.test/gone").unwrap();
        forget(folder.path(), &HashSet::from(["http://a.test/gone".to_owned()])).unwrap();
        assert!(!torn.exists(), "what cannot be read may say anything");
        let (run, _) = RunHistory::of(folder.path()).unwrap().get(1).unwrap();
        assert_eq!((run.errors.0[0].count, run.errors.0[0].examples.len()), (1, 0));
        assert_eq!(run.refused.0[0].examples[0].url, "http://a.test/other");
    }
}

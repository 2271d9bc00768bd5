//! Where the time of a crawl goes: processor time per page, stage by stage.
//!
//! Threads measure each stage in wall-clock time, which costs next to nothing. At the end, the actual processor time of
//! each group of threads is divided among its stages in proportion. So the time that a thread waited for a processor is
//! not attributed to any stage.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archive_base::spare::used_by;
use archive_storage::segment::CompressionTotals;
use rustix::time::{ClockId, clock_gettime};

use super::pace::{CrawlPace, process_time};

/// Stages of a page after it was fetched and before it is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Digest,
    Parse,
    Metadata,
    Records,
    Pick,
    Append,
    Ledger,
    Importance,
    Queue,
    Checkpoint,
    Settle,
}

/// All stages, with their names, and whether processing threads do them.
const STAGES: [(Stage, &str, bool); 11] = [
    (Stage::Digest, "digest", true),
    (Stage::Parse, "parse (links, text, signature)", true),
    (Stage::Metadata, "metadata (links as fields)", true),
    (Stage::Records, "records (heads, block digests, compress)", true),
    (Stage::Pick, "pick (frontier, robots, request)", false),
    (Stage::Append, "append (find copies, write)", false),
    (Stage::Ledger, "ledger (URLs, history, link log)", false),
    (Stage::Importance, "importance (cash along links)", false),
    (Stage::Queue, "queue (candidates to the frontier)", false),
    (Stage::Checkpoint, "checkpoint (sync, state, audit)", false),
    (Stage::Settle, "importance (settling at the end)", false),
];

/// Nanoseconds of each stage, over all threads. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub(super) struct StageTimes {
    nanoseconds: Arc<[AtomicU64; STAGES.len()]>,
}

impl StageTimes {
    fn of(&self, stage: Stage) -> u64 {
        self.nanoseconds[stage as usize].load(Ordering::Relaxed)
    }

    fn add(&self, stage: Stage, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds[stage as usize].fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Moves a part of one stage's time to another stage.
    pub(super) fn shift(&self, from: Stage, to: Stage, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(self.of(from));
        self.nanoseconds[from as usize].fetch_sub(nanoseconds, Ordering::Relaxed);
        self.nanoseconds[to as usize].fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Stopwatch of a thread.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch {
    counters: StageTimes,
    since: Instant,
}

impl Stopwatch {
    pub(super) fn new(counters: StageTimes) -> Self {
        Self { counters, since: Instant::now() }
    }

    /// Starts a lap; the time before it was waiting.
    pub(super) fn start(&mut self) {
        self.since = Instant::now();
    }

    /// Ends a lap, and starts the next one.
    pub(super) fn lap(&mut self, stage: Stage) {
        let now = Instant::now();
        self.counters.add(stage, now - self.since);
        self.since = now;
    }

    pub(super) fn counters(&self) -> &StageTimes {
        &self.counters
    }
}

/// Processor time of the parts of a crawl.
#[derive(Debug, Clone, Default)]
pub struct Timings {
    /// Number of captures that share the time.
    pub captures: u64,
    /// Names of stages and their processor time.
    pub stages: Vec<(&'static str, Duration)>,
    /// Processor time of the whole process since the run began.
    pub total: Duration,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Progress over time.
    pub pace: CrawlPace,
    /// What was compressed, in a hurry and in idle time.
    pub packing: CompressionTotals,
}

/// Processor time at the beginning of a run.
#[derive(Debug)]
pub(super) struct Beginning {
    own: Duration,
    process: Duration,
}

impl Beginning {
    /// Must be called on the thread that owns the store.
    pub(super) fn now() -> Self {
        Self { own: own_time(), process: process_time() }
    }
}

/// Processor time of the threads that end before the run does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Threads {
    fetching: Duration,
    processing: Duration,
}

impl Threads {
    /// Returns what the threads of this process have used so far; zeros on systems that do not report it.
    pub(super) fn now() -> Self {
        let mut threads = Self::default();
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        for task in tasks.map(|task| task.path()) {
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            let time = used_by(&task).unwrap_or_default();
            match name.trim() {
                "fetch" => threads.fetching += time,
                name if name.starts_with("process-") => threads.processing += time,
                _ => {}
            }
        }
        threads
    }
}

impl Timings {
    /// Sums up at the end of a run; must be called on the thread that owns the store.
    pub(super) fn of(
        counters: &StageTimes,
        beginning: &Beginning,
        threads: Threads,
        captures: u64,
        elapsed: Duration,
    ) -> Self {
        let own = own_time().saturating_sub(beginning.own);
        let total = process_time().saturating_sub(beginning.process);
        let sum = |processing: bool| {
            let stages = STAGES.iter().filter(|(.., of)| *of == processing);
            stages.map(|(stage, ..)| counters.of(*stage)).sum::<u64>().max(1)
        };
        let (sum_processing, sum_own) = (sum(true), sum(false));
        let mut stages = vec![("fetch (sockets, request, response)", threads.fetching)];
        for (stage, name, processing) in STAGES {
            let (time, sum) = if processing { (threads.processing, sum_processing) } else { (own, sum_own) };
            stages.push((name, time.mul_f64(counters.of(stage) as f64 / sum as f64)));
        }
        let known: Duration = stages.iter().map(|(_, time)| *time).sum();
        stages.push(("full-text index and other threads", total.saturating_sub(known)));
        Self {
            captures,
            stages,
            total,
            elapsed,
            pace: CrawlPace::default(),
            packing: CompressionTotals::default(),
        }
    }

    /// Microseconds per capture.
    #[must_use]
    pub fn a_capture(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.captures.max(1) as f64
    }
}

/// Processor time of the calling thread.
fn own_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_row() {
        for (row, (stage, ..)) in STAGES.iter().enumerate() {
            assert_eq!(*stage as usize, row);
        }
    }

    #[test]
    fn stages_share_the_processor_time_of_their_threads() {
        let counters = StageTimes::default();
        counters.add(Stage::Digest, Duration::from_millis(10));
        counters.add(Stage::Parse, Duration::from_millis(30));
        counters.add(Stage::Ledger, Duration::from_millis(5));
        counters.shift(Stage::Ledger, Stage::Importance, Duration::from_millis(2));
        let threads = Threads { fetching: Duration::from_millis(7), processing: Duration::from_millis(20) };
        let timings = Timings::of(&counters, &Beginning::now(), threads, 10, Duration::from_secs(1));
        let of = |name: &str| {
            timings.stages.iter().find(|(found, _)| found.starts_with(name)).map(|(_, time)| *time)
        };
        assert_eq!(of("fetch"), Some(Duration::from_millis(7)));
        assert_eq!(of("digest"), Some(Duration::from_millis(5)));
        assert_eq!(of("parse"), Some(Duration::from_millis(15)));
        let (ledger, importance) = (of("ledger").unwrap(), of("importance").unwrap());
        assert!(ledger >= importance);
        assert_eq!(timings.a_capture(Duration::from_millis(1)), 100.0);
    }

    #[test]
    fn processor_time_is_read_from_the_kernel() {
        let before = process_time();
        let mut sum = 0_u64;
        while process_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_time() > before);
    }
}

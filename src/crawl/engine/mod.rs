//! The main loop of a run: picks, submits, receives, stores, credits, checkpoints.
//!
//! It runs on the caller's thread and owns the store, the books and the frontier. Network and processing threads only
//! see values that are passed to them. All channels are bounded by the number of requests in flight, so a slow stage
//! slows down those before it.

mod account;
mod answers;
mod checkpoints;
mod copies;
mod doors;
mod focus;
mod hubs;
mod later;
mod links;
mod operation;
mod parts;
mod peers;
mod requests;
mod robots;
mod slots;
mod spare_time;
mod start;
mod walls;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use archive_base::control::Control;
use archive_base::decisions::Decisions;
use archive_base::erased::Erased;
use archive_base::error::{Classified, ErrorKind};
use archive_base::files::FileError;
use archive_books::cluster::{ClusterError, Slots};
use archive_books::ledger::{Candidate, Credits, FavouredTexts, PutOff};
use archive_books::recorder::{LinkTextMemory, Recorder, RecorderError, RecorderSettings};
use archive_choose::{BudgetUnderWay, CrawlEnd, CrawlPolicy, Focused, Ordering, RefreshRules};
use archive_storage::{CaptureId, HostId, Store, UrlId};
use archive_vault::copy::CopyError;
use archive_web::fetch::{BodyMemory, Cookies, FetchSettings, Fetcher, Logins};
use archive_web::parse::ParseLimits;
use archive_web::reading::Crew;
use crossbeam::channel::{Receiver, bounded};

use self::account::RunAccount;
use self::copies::CrawlCopies;
use self::doors::ClosedDoors;
use self::operation::{CrawlOperation, DeferredResult};
use self::parts::PageParts;
use self::peers::Peers;
use self::spare_time::SpareTime;
use self::walls::CookieWalls;
use super::frontier::Frontier;
use super::harvest::Harvest;
use super::later::Later;
use super::monitor::Monitor;
use super::options::{CrawlOptions, CrawlStatus, EndReason, Purpose};
use super::pace::CrawlPace;
use super::process::{JobTag, ProcessedJob, Processing, ResponseReading};
use super::robots_cache::{HostRules, RobotsCache};
use super::settings_file::{SettingsError, SettingsFile};
use super::timings::{Beginning, Stage, StageTimes, Stopwatch, Threads, Timings};
use super::traps::Variations;
use crate::publish::PublishError;

/// Interval between reports of the run's progress to the caller.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// The last requests get this part of a run's time, as a divisor.
const TIME_FOR_GRACE: u32 = 10;

/// Maximum time for requests in flight after a stop.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// The archive cannot be written or read.
    #[error(transparent)]
    Recorder(RecorderError),
    /// Threads or sockets cannot be started.
    #[error("cannot start fetching: {0}")]
    Start(std::io::Error),
    /// The file of waiting URLs cannot be written or read.
    #[error("cannot store the waiting URLs in a file: {0}")]
    Frontier(std::io::Error),
    /// The settings file is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The port for the run's state cannot be opened.
    #[error("cannot serve the state of the crawl at {address}: {source}")]
    Monitor {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The run cannot take part in its cluster, or cannot continue.
    #[error(transparent)]
    Cluster(ClusterError),
    /// Subscriptions to hubs cannot be read or written.
    #[error(transparent)]
    Hubs(#[from] PublishError),
    /// The archive cannot be copied.
    #[error("the archive cannot be copied: {0}")]
    Copy(CopyError),
    /// The secrets beside the archive cannot be read or written.
    #[error(transparent)]
    Secrets(FileError),
    /// A thread ended unexpectedly.
    #[error("a thread of the crawl has ended unexpectedly")]
    ThreadEnded,
}

impl Classified for CrawlError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) => ErrorKind::Usage,
            error => ErrorKind::of_causes(error),
        }
    }
}

impl<E: Into<RecorderError>> From<E> for CrawlError {
    fn from(error: E) -> Self {
        Self::Recorder(error.into())
    }
}

/// Runs a plan on a store until nothing is left to do, a limit is reached, or `control` stops it.
///
/// `report` is called a few times per second. When it returns, everything counted as acknowledged is durable.
///
/// # Errors
/// When the store, the index or a thread fails; what was acknowledged before is not lost.
pub fn run(
    store: &mut Store,
    plan: Purpose,
    options: &CrawlOptions,
    control: &Control,
    report: &mut dyn FnMut(&CrawlStatus),
) -> Result<(EndReason, CrawlStatus), CrawlError> {
    let monitor = options
        .status
        .map(|address| Monitor::start(address).map_err(|source| CrawlError::Monitor { address, source }))
        .transpose()?;
    let (answer_sender, answers) = bounded(options.workers + 1);
    let (done_sender, done) = bounded(options.workers + 1);
    if matches!(plan, Purpose::Discover { .. }) || options.cluster.is_some() {
        Credits::join_cluster(store.state_mut(), options.cluster.as_ref().map(|member| &member.partition))?;
    }
    options.policy.keep(store.state_mut())?;
    let erased = Erased::of_archive(store.path(), store.state())?;
    let decisions =
        if options.obey_decisions { Decisions::read(store.path())? } else { Decisions::default() };
    let CrawlOptions { memory, checkpoint_every, full_text, .. } = *options;
    let mut recorder = Recorder::open(store, RecorderSettings { memory, checkpoint_every, full_text })?;
    let spools = recorder.store().path().join(archive_storage::segment::FOLDER);
    let bodies = BodyMemory::new(options.memory.bodies(), spools.clone());
    let path = recorder.store().path();
    let logins = Logins::read(path).map_err(CrawlError::Secrets)?;
    let cookies = options.open_cookies(path, &logins).map_err(CrawlError::Secrets)?;
    let fetch = FetchSettings { cookies, logins, ..options.fetch.clone() };
    let fetcher = Fetcher::start(fetch.clone(), bodies, answer_sender).map_err(CrawlError::Start)?;
    let topic = options.policy.focus.as_ref().map(|focus| focus.read_topic(recorder.store().path()));
    let counters = StageTimes::default();
    let limits = limits(options);
    let reading = ResponseReading {
        robot: limits.robot.clone(),
        body_bytes_max: limits.body_bytes_max,
        full_text: options.full_text,
        obey_nofollow: options.policy.obey_nofollow,
        obey_noarchive: options.policy.obey_noarchive,
        spools,
        same_content: options.policy.same_content,
        seen: Arc::default(),
        said: LinkTextMemory::default(),
        favoured: FavouredTexts::of(recorder.credits().rules()),
        topic: topic.transpose()?,
    };
    thread::scope(|scope| {
        let watch = Stopwatch::new(counters.clone());
        let processing = Processing { encoder: recorder.store().encoder()?, reading, watch };
        // Dropped at the end of the run, without waiting for documents.
        let path = recorder.store().path();
        let _crew = Crew::start(processing, options.threads, path, limits, &answers, &done_sender)
            .map_err(CrawlError::Start)?;
        drop(done_sender);
        drop(answers);
        // In the archive's folder, where there is space. The file has no name, so that it vanishes with the process.
        let file_of_frontier = tempfile::tempfile_in(recorder.store().path())
            .or_else(|_| tempfile::tempfile())
            .map_err(CrawlError::Start)?;
        let file = SettingsFile::in_archive(recorder.store().path());
        let captures = recorder.state().totals().captures;
        recorder.start_syncing(scope)?;
        let put_off = PutOff::of(recorder.state())?;
        let rules = RefreshRules::kept(recorder.state())?;
        let first_capture = CaptureId(u32::try_from(captures).unwrap_or(u32::MAX));
        let mut run = EngineRun {
            recorder,
            options,
            control,
            monitor,
            operation: CrawlOperation::new(file, options.workers, options.disk_min),
            spare_time: SpareTime::new(options.has_spare_time),
            erased,
            decisions,
            seed_delays: HashMap::new(),
            policy: options.policy.clone(),
            ordering: None,
            focus: None,
            harvest: Harvest::new(&options.harvest),
            parts: PageParts::new(rules, &plan),
            variations: Variations::default(),
            walls: CookieWalls::default(),
            cookies: fetch.cookies.clone(),
            logins: fetch.logins.clone(),
            refusing: HashSet::new(),
            proxy_faults: HashSet::new(),
            doors: ClosedDoors::default(),
            counted: BudgetUnderWay::default(),
            pages_under_way: 0,
            frontier: Frontier::on_disk(options.politeness.clone(), options.front_max, file_of_frontier),
            robots: RobotsCache::new(options.memory.robots()),
            robots_requests: 0,
            first_capture,
            fetcher,
            done,
            later: Later::default(),
            put_off,
            candidates: Vec::new(),
            untested: Vec::new(),
            discovering: matches!(plan, Purpose::Discover { .. }),
            under_way: 0,
            started: Instant::now(),
            status: CrawlStatus::default(),
            top_sites_at: None,
            watch: Stopwatch::new(counters),
            beginning: Beginning::now(),
            pace: CrawlPace::default(),
            account: RunAccount::default(),
            peers: None,
            slots: options.has_slots.then(Slots::from_stdin).transpose().map_err(CrawlError::Start)?,
            copies: None,
        };
        run.join_peers()?;
        run.start_copies(scope)?;
        run.begin_account(&plan);
        let done = run.carry_out(plan, report);
        run.end_account(&done);
        Ok((done?, run.status))
    })
}

/// Returns the limits for parsing a document in a crawl.
fn limits(options: &CrawlOptions) -> ParseLimits {
    let usual = ParseLimits::default();
    let body_bytes_max = options.memory.document().min(usual.body_bytes_max);
    let share = (usual.body_bytes_max / body_bytes_max.max(1)).max(1);
    ParseLimits {
        robot: options.policy.robots_name.to_ascii_lowercase(),
        body_bytes_max,
        xml_nodes_max: usual.xml_nodes_max / u32::try_from(share).unwrap_or(u32::MAX),
        xml_entity_bytes_max: usual.xml_entity_bytes_max / share,
        ..usual
    }
}

/// A run in progress.
struct EngineRun<'a> {
    recorder: Recorder<'a>,
    options: &'a CrawlOptions,
    control: &'a Control,
    monitor: Option<Monitor>,
    operation: CrawlOperation,
    spare_time: SpareTime,
    /// What must not be fetched again.
    erased: Erased,
    decisions: Decisions,
    /// Delays set in the seeds file.
    seed_delays: HashMap<HostId, Duration>,
    policy: CrawlPolicy,
    /// Decides the levels of pages, if cash does not.
    ordering: Option<Ordering>,
    /// Decides them in a focused crawl, together with cash.
    focus: Option<Focused>,
    harvest: Harvest,
    parts: PageParts,
    variations: Variations,
    walls: CookieWalls,
    /// The cookies of the run, unless it has none.
    cookies: Option<Cookies>,
    logins: Logins,
    /// Hosts that have refused their log-in.
    refusing: HashSet<HostId>,
    /// What was said of proxies that are out of order.
    proxy_faults: HashSet<String>,
    doors: ClosedDoors,
    counted: BudgetUnderWay,
    /// Requests in flight that count towards the limit.
    pages_under_way: u64,
    frontier: Frontier,
    robots: RobotsCache,
    /// Requests for robots.txt, including those for its redirects.
    robots_requests: u64,
    /// Number of the first capture of this run.
    first_capture: CaptureId,
    fetcher: Fetcher<JobTag>,
    done: Receiver<ProcessedJob>,
    /// Pages to be asked for again, and hosts to be left alone until then.
    later: Later<DeferredResult>,
    /// What earlier runs left to this one.
    put_off: PutOff,
    candidates: Vec<Candidate>,
    /// Pages that wait for tests of their parameters.
    untested: Vec<UrlId>,
    /// Whether new pages are fetched, or only those of the plan and their requisites.
    discovering: bool,
    under_way: usize,
    started: Instant,
    status: CrawlStatus,
    /// When the most important sites are looked up next; `None` for at once.
    top_sites_at: Option<Instant>,
    watch: Stopwatch,
    beginning: Beginning,
    pace: CrawlPace,
    account: RunAccount,
    /// The other nodes of the cluster, if any.
    peers: Option<Peers>,
    /// Request slots shared with other crawls of this machine, if any.
    slots: Option<Slots>,
    /// Copies of the archive, if any are made.
    copies: Option<CrawlCopies>,
}

impl EngineRun<'_> {
    fn carry_out(
        &mut self,
        plan: Purpose,
        report: &mut dyn FnMut(&CrawlStatus),
    ) -> Result<EndReason, CrawlError> {
        let callback = match &plan {
            Purpose::Subscribe { callback } => Some(callback.clone()),
            _ => None,
        };
        self.begin(plan)?;
        let end = match callback {
            Some(callback) => self.ask_hubs(&callback)?,
            None => self.drive(report)?,
        };
        tracing::info!(?end, captures = self.status.captures, "the run has ended");
        self.leave_to_next_run()?;
        self.policy.ended =
            Some(CrawlEnd { reason: end.name().to_owned(), topic: self.status.topic.clone() });
        self.policy.keep(self.recorder.state_mut())?;
        self.finish(report)?;
        self.report_end_to_peers(end)?;
        self.end_copies()?;
        self.leave_peers()?;
        Ok(end)
    }

    fn drive(&mut self, report: &mut dyn FnMut(&CrawlStatus)) -> Result<EndReason, CrawlError> {
        let mut reported = Instant::now();
        let mut ending: Option<(EndReason, Instant)> = None;
        loop {
            let now = Instant::now();
            if let Some(error) = self.frontier.failure() {
                return Err(CrawlError::Frontier(error));
            }
            self.hear_peers(now)?;
            self.look_at_copies(now)?;
            let is_paused = self.look_around(now)?;
            self.watch.start();
            if ending.is_none() {
                ending = self.should_end().map(|end| (end, now));
            }
            if ending.is_none() && !is_paused {
                self.ask_again(now);
                self.hand_out(now)?;
            } else {
                self.leave_slots();
            }
            self.watch.lap(Stage::Pick);
            match ending {
                Some((end, since)) if self.under_way == 0 || now - since > self.grace() => return Ok(end),
                None if self.under_way == 0
                    && !is_paused
                    && !self.waits_for_slot()
                    && !self.wake_later(now)? =>
                {
                    if !self.give_up_tests()? && self.nothing_waits_anywhere()? {
                        let waits =
                            self.next_wake().is_some() || !self.later.is_empty() || self.doors.is_any_left();
                        return Ok(if waits { EndReason::Waiting } else { EndReason::Complete });
                    }
                }
                _ => self.set_busy(),
            }
            let wake = self.next_wake().filter(|_| ending.is_none() && !is_paused);
            let wait =
                wake.map_or(REPORT_EVERY, |time| time.saturating_duration_since(now).min(REPORT_EVERY));
            if let Some(first) = self.next_done(wait)? {
                self.complete(first)?;
                // All other results that have arrived are handled before the clock is read again.
                for _ in 0..self.options.workers {
                    let Ok(next) = self.done.try_recv() else { break };
                    self.complete(next)?;
                }
            }
            self.watch.start();
            let counted = self.status.captures;
            if let Some(durable) = self.recorder.sync_beside(self.options.sync_every, counted)? {
                self.status.acknowledged = self.status.acknowledged.max(durable);
                reported = Instant::now();
                self.report(report)?;
            }
            if self.recorder.checkpoint_is_due() {
                self.hold_back();
                self.record_put_off()?;
                self.checkpoint()?;
            }
            self.feed_peers(now)?;
            self.watch.lap(Stage::Checkpoint);
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                self.pace.note(self.status.captures, self.elapsed());
                self.report(report)?;
            }
        }
    }

    fn finish(&mut self, report: &mut dyn FnMut(&CrawlStatus)) -> Result<(), CrawlError> {
        let threads = Threads::now();
        self.end_spare_time()?;
        self.watch.start();
        // In a partition, rounds over its own links would lose what others have paid.
        if self.status.captures + self.status.errors + self.status.refused > 0 && !self.exchanges() {
            self.recorder.settle()?;
        }
        self.watch.lap(Stage::Settle);
        self.recorder.conclude()?;
        self.keep_cookies()?;
        self.status.checkpoints += 1;
        self.status.acknowledged = self.status.captures;
        self.watch.lap(Stage::Checkpoint);
        self.recorder.close_index()?;
        self.top_sites_at = None;
        let (captures, elapsed) = (self.status.captures, self.started.elapsed());
        let timings = Timings::of(self.watch.counters(), &self.beginning, threads, captures, elapsed);
        let packing = self.recorder.store().encoder()?.packing();
        self.status.timings = Timings { pace: std::mem::take(&mut self.pace), packing, ..timings };
        self.report(report)
    }

    fn should_end(&self) -> Option<EndReason> {
        let limit = self.options.limit.unwrap_or(u64::MAX);
        if self.control.is_stopped() || self.slots.as_ref().is_some_and(Slots::is_over) {
            Some(EndReason::Stopped)
        } else if self.is_drained() {
            Some(EndReason::Drained)
        } else if self.status.pages >= limit && self.under_way == 0 && self.frontier.requisites() == 0 {
            // The requisites of the last pages are fetched first.
            Some(EndReason::Limit)
        } else if self.robots_are_spent() || self.options.bytes.is_some_and(|most| self.status.bytes >= most)
        {
            Some(EndReason::Limit)
        } else if let Some(end) = self.harvest.end(&self.options.harvest) {
            Some(end)
        } else if self.options.time.is_some_and(|time| self.elapsed() + self.grace() >= time) {
            Some(EndReason::Time)
        } else {
            None
        }
    }

    /// Time since the start of the run, without pauses.
    fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.operation.paused_for())
    }

    /// Time for requests in flight after the end, so that a run ends within its time limit.
    fn grace(&self) -> Duration {
        self.options.time.map_or(STOP_GRACE, |time| STOP_GRACE.min(time / TIME_FOR_GRACE))
    }

    /// Whether anything can still happen in this run once nothing is in flight.
    fn wake_later(&mut self, now: Instant) -> Result<bool, CrawlError> {
        if self.next_wake().is_some() {
            return Ok(!self.is_left_to_next_run(now));
        }
        let waiting = self.robots.give_up();
        for &host in &waiting {
            // Redirects of robots.txt that lead nowhere count as no robots.txt.
            self.settle_robots(host, HostRules::Free, Instant::now())?;
        }
        Ok(!waiting.is_empty())
    }
}

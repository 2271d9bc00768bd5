//! Running a crawl for weeks: pauses, a watched settings file, disk space, and reports of all this.
//!
//! A pause is a state, not an end: nothing new is requested, answers in flight are stored, the run's clock stops, and
//! the crawl resumes by itself when the reason is gone.

use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

use archive_books::cluster::ClusterError;
use archive_books::ledger::{CrawlScope, ScopeRule};
use archive_storage::HostId;
use archive_storage::backend::{Disk, RealDisk};
use archive_web::fetch::FetchError;
use regex::Regex;

use super::super::frontier::Politeness;
use super::super::process::{FetchTag, Processed};
use super::super::robots_cache::HostRules;
use super::super::settings_file::{Edits, SettingsFile};
use super::{CrawlError, EngineRun};

/// Interval between checks of the settings file and the disk.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Delay before writing is retried on a full disk.
const RETRY_FULL_EVERY: Duration = Duration::from_secs(5);

/// Longer values of Crawl-delay are reduced to this.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(60);

/// Results that cannot be stored while the disk is full.
pub(super) enum DeferredResult {
    Fetched(Box<FetchTag>, Box<Processed>),
    Failed(Box<FetchTag>, FetchError),
}

/// Whatever a person or the machine may change during a crawl.
pub(super) struct CrawlOperation {
    file: SettingsFile,
    looked: Option<Instant>,
    /// Scope from the command line; the settings file may override it.
    typed_scope: Option<Vec<ScopeRule>>,
    host_delays: BTreeMap<String, Duration>,
    pub(super) ignored: Vec<Regex>,
    pub(super) workers: usize,
    /// The crawl pauses if fewer bytes than this are free.
    disk_min: u64,
    is_paused_by_file: bool,
    is_disk_low: bool,
    /// When writing to a full disk is retried; `None` if the disk is not full.
    full_until: Option<Instant>,
    pub(super) held: Vec<DeferredResult>,
    paused_since: Option<Instant>,
    paused_for: Duration,
}

impl CrawlOperation {
    pub(super) fn new(file: SettingsFile, workers: usize, disk_min: u64) -> Self {
        Self {
            file,
            looked: None,
            typed_scope: None,
            host_delays: BTreeMap::new(),
            ignored: Vec::new(),
            workers,
            disk_min,
            is_paused_by_file: false,
            is_disk_low: false,
            full_until: None,
            held: Vec::new(),
            paused_since: None,
            paused_for: Duration::ZERO,
        }
    }

    /// Time for which the run was paused so far.
    pub(super) fn paused_for(&self) -> Duration {
        self.paused_for + self.paused_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(super) fn is_disk_full(&self) -> bool {
        self.full_until.is_some()
    }
}

impl EngineRun<'_> {
    /// Reports something to the user, on the terminal and in the log.
    pub(super) fn notice(&mut self, text: String) {
        tracing::info!("{text}");
        self.status.notices.push(text);
    }

    /// Like `notice`, for something that a person should check.
    pub(super) fn warn(&mut self, text: String) {
        tracing::warn!("{text}");
        self.status.notices.push(text);
    }

    /// Reads the settings before anything is fetched. A mistake in the file is an error: the crawl must not start.
    pub(super) fn read_settings(&mut self) -> Result<(), CrawlError> {
        if let Some(edits) = self.operation.file.changed()? {
            self.apply(&edits)?;
        }
        Ok(())
    }

    /// Checks everything that may pause the crawl or change its settings; returns whether it is paused.
    pub(super) fn look_around(&mut self, now: Instant) -> Result<bool, CrawlError> {
        if self.operation.looked.is_none_or(|at| now - at >= LOOK_EVERY) {
            self.operation.looked = Some(now);
            match self.operation.file.changed() {
                Ok(None) => {}
                Ok(Some(edits)) => {
                    self.apply(&edits)?;
                    self.notice("the settings file was read again".to_owned());
                }
                Err(error) => self.warn(format!("{error}; the settings before it stay in force")),
            }
            let free = RealDisk.free_bytes(self.recorder.store().path()).unwrap_or(u64::MAX);
            self.status.disk_free_bytes = free;
            self.operation.is_disk_low = free < self.operation.disk_min;
            self.use_spare_time(free)?;
        }
        if self.operation.full_until.is_some_and(|until| now >= until) {
            self.operation.full_until = None;
            self.store_held(now)?;
        }
        let reason = self.pause_reason();
        if reason != self.status.paused {
            match &reason {
                Some(reason) => self.warn(format!("paused: {reason}")),
                None => self.notice("resumed".to_owned()),
            }
            let operation = &mut self.operation;
            operation.paused_for = operation.paused_for();
            operation.paused_since = reason.is_some().then_some(now);
            self.status.paused = reason;
        }
        Ok(self.status.paused.is_some())
    }

    fn pause_reason(&self) -> Option<String> {
        let operation = &self.operation;
        let path = self.recorder.store().path().display();
        if operation.is_disk_full() {
            Some(format!("the disk of {path} is full; the crawl continues by itself when there is room"))
        } else if operation.is_disk_low {
            let mebibytes = operation.disk_min >> 20;
            Some(format!("less than {mebibytes} MiB are free on the disk of {path} (--disk-min); make room"))
        } else if operation.is_paused_by_file {
            Some(format!("requested in {path}/crawl.toml"))
        } else if self.control.is_paused() {
            Some("a signal asked for it; SIGUSR2 resumes".to_owned())
        } else {
            self.peers_pause()
        }
    }

    /// Notes that nothing can be written until there is space.
    pub(super) fn disk_is_full(&mut self) {
        self.operation.full_until = Some(Instant::now() + RETRY_FULL_EVERY);
    }

    /// Stores what had to wait for disk space.
    fn store_held(&mut self, now: Instant) -> Result<(), CrawlError> {
        for held in mem::take(&mut self.operation.held) {
            match held {
                DeferredResult::Fetched(tag, processed) => self.keep(tag, processed, now)?,
                DeferredResult::Failed(tag, error) => self.store_failure(tag, &error)?,
            }
        }
        Ok(())
    }

    /// Applies a settings file on top of the options of the command line.
    fn apply(&mut self, edits: &Edits) -> Result<(), CrawlError> {
        let typed = &self.options.policy.budgets;
        self.policy.budgets.pages_per_host = edits.pages_per_host.or(typed.pages_per_host);
        self.policy.budgets.pages_per_site = edits.pages_per_site.or(typed.pages_per_site);
        self.policy.ignored = edits.ignored.iter().map(ToString::to_string).collect();
        self.policy.keep(self.recorder.state_mut())?;
        let operation = &mut self.operation;
        operation.is_paused_by_file = edits.paused;
        operation.ignored = edits.ignored.clone();
        operation.workers = edits.workers.unwrap_or(self.options.workers).min(self.options.workers);
        operation.disk_min = edits.disk_min.map_or(self.options.disk_min, |mebibytes| mebibytes << 20);
        let politeness = politeness(&self.options.politeness, edits);
        let delay_max = self.options.cluster.as_ref().map(|member| member.spans().address_delay_max());
        if let Some(delay_max) = delay_max.filter(|delay_max| politeness.address_delay > *delay_max)
            && self.frontier.turns.is_some()
        {
            let error = ClusterError::AddressDelay(delay_max);
            self.warn(format!("{error}; until then shared addresses are left alone"));
        }
        self.frontier.set_politeness(politeness);
        let delays = edits.host.iter().filter_map(|(name, host)| Some((name.clone(), host.delay?))).collect();
        let before = mem::replace(&mut self.operation.host_delays, delays);
        let names: Vec<String> =
            before.into_keys().chain(self.operation.host_delays.keys().cloned()).collect();
        for name in names {
            if let Some(host) = self.recorder.state().find_host(&name)? {
                self.set_delay(host)?;
            }
        }
        self.apply_scope(edits)
    }

    fn apply_scope(&mut self, edits: &Edits) -> Result<(), CrawlError> {
        if !self.discovering {
            return Ok(());
        }
        let now = self.recorder.credits().scope().rules().to_vec();
        let typed = self.operation.typed_scope.get_or_insert_with(|| now.clone());
        let changed: Vec<ScopeRule> = typed
            .iter()
            .map(|rule| ScopeRule {
                kind: edits.scope.clone().unwrap_or_else(|| rule.kind.clone()),
                max_depth: edits.max_depth.unwrap_or(rule.max_depth),
                ..rule.clone()
            })
            .collect();
        if changed == now {
            return Ok(());
        }
        let (credits, state) = self.recorder.books();
        credits.set_scope(state, CrawlScope::from_rules(changed))?;
        self.enqueue_waiting()
    }

    /// Sets the delay of a host by the settings file, its seed, and its robots.txt.
    pub(super) fn set_delay(&mut self, host: HostId) -> Result<(), CrawlError> {
        let asked = match self.robots.rules(host) {
            Some(HostRules::Given { delay, .. }) => delay.map(|delay| delay.min(CRAWL_DELAY_MAX)),
            _ => None,
        };
        // Without delays, the servers are the user's own, and Crawl-delay is ignored.
        let asked = asked.filter(|_| !self.options.politeness.host_delay.is_zero());
        let name = self.host_name(host)?;
        let delay = match self.operation.host_delays.get(&name) {
            Some(delay) => Some(*delay),
            None => self.seed_delays.get(&host).copied().max(asked),
        };
        self.frontier.set_delay(host, delay);
        Ok(())
    }
}

fn politeness(typed: &Politeness, edits: &Edits) -> Politeness {
    let mut politeness = typed.clone();
    politeness.host_delay = edits.delay.unwrap_or(typed.host_delay);
    politeness.address_delay = edits.address_delay.unwrap_or(typed.address_delay);
    // With a delay, only one request at a time.
    if !politeness.host_delay.is_zero() {
        politeness.per_host = 1;
    }
    if !politeness.address_delay.is_zero() {
        politeness.per_address = 1;
    }
    politeness
}

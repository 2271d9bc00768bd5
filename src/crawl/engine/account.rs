//! The account that a run writes to the archive's folder ([`archive_base::runs`]), for other programs to read.
//!
//! If it cannot be written, the run reports that once and continues.

use std::time::{Duration, Instant};

use archive_base::runs::{self, NOT_TO_BE_KEPT, RunLimits, RunWriter};
use archive_books::ledger::Refusal;
use archive_choose::Budgets;
use archive_choose::freshness::state_of_copies;
use archive_storage::UrlId;

use super::super::options::{EndReason, Purpose};
use super::{CrawlError, EngineRun};

/// Interval between writes of the account. Each of several crawls of a machine writes less often, because a new file
/// per second costs as much as a page.
const WRITE_EVERY: Duration = Duration::from_secs(1);
const WRITE_EVERY_OF_SEVERAL: Duration = Duration::from_secs(5);

/// Time span over which the current pace is measured.
const PACE_SPAN: Duration = Duration::from_secs(10);

/// A run's account of itself.
#[derive(Default)]
pub(super) struct RunAccount {
    /// `None` if it cannot be written.
    writer: Option<RunWriter>,
    written: Option<Instant>,
    /// Pages and bytes some time ago, for the current pace.
    before: Option<(Instant, u64, u64)>,
}

impl EngineRun<'_> {
    pub(super) fn begin_account(&mut self, plan: &Purpose) {
        let (name, pages) = match plan {
            Purpose::Discover { .. } => ("crawl", self.options.limit),
            Purpose::Refresh { pages } => ("refresh", Some(pages.len() as u64)),
            // It fetches no page.
            Purpose::Subscribe { .. } => return,
        };
        let now = self.options.fetch.clock.now();
        let mut run = self.options.account.clone().unwrap_or_else(|| runs::RunReport::begins(name, now));
        // Several runs may have the same options.
        (run.began, run.reported) = (now, now);
        let politeness = &self.options.politeness;
        let delays = [politeness.host_delay, politeness.address_delay].map(|delay| delay.as_secs_f64());
        run.limits = RunLimits {
            pages,
            bytes: self.options.bytes,
            seconds: self.options.time.map(|time| time.as_secs_f64()),
            delay_seconds: Some(delays),
            workers: Some(self.options.workers),
            ..RunLimits::default()
        };
        match RunWriter::begin(self.recorder.store().path(), run) {
            Ok(writer) => self.account.writer = Some(writer),
            Err(error) => self.notice(format!("the run cannot give an account of itself: {error}")),
        }
    }

    /// Writes the account, unless it was just written.
    pub(super) fn refresh_account(&mut self, now: Instant) {
        let every = if self.slots.is_some() { WRITE_EVERY_OF_SEVERAL } else { WRITE_EVERY };
        let is_new = |at: Instant| now.saturating_duration_since(at) < every;
        if self.account.writer.is_some() && !self.account.written.is_some_and(is_new) {
            self.account.written = Some(now);
            self.write_account(now, false);
        }
    }

    fn write_account(&mut self, now: Instant, durably: bool) {
        let Self { account: RunAccount { writer, before, .. }, status, policy, options, .. } = self;
        let Some(writer) = writer else { return };
        let (since, pages, bytes) = *before.get_or_insert((now, 0, 0));
        let (span, run) = (now - since, &mut writer.run);
        let progress = &mut run.progress;
        if span >= PACE_SPAN || progress.seconds < PACE_SPAN.as_secs_f64() {
            let seconds = span.as_secs_f64().max(WRITE_EVERY.as_secs_f64());
            progress.pages_per_second = (status.pages - pages) as f64 / seconds;
            progress.bytes_per_second = (status.bytes - bytes) as f64 / seconds;
        }
        if span >= PACE_SPAN {
            *before = Some((now, status.pages, status.bytes));
        }
        *progress = runs::Progress {
            seconds: status.elapsed.as_secs_f64(),
            paused: status.paused.clone(),
            captures: status.captures,
            pages: status.pages,
            read: status.read,
            gathered: status.gathered,
            clock: status.clock,
            exchanged: status.exchanged,
            identical: status.identical,
            errors: status.errors,
            refused: status.refused,
            bytes: status.bytes,
            queued: status.queued,
            active: status.active,
            hosts_active: status.hosts_active,
            hosts_waiting: status.hosts_waiting,
            checkpoints: status.checkpoints,
            disk_free_bytes: status.disk_free_bytes,
            ..*progress
        };
        let Budgets { pages_per_host, pages_per_site, bytes_per_host, bytes_per_site } = policy.budgets;
        run.limits = RunLimits {
            pages_per_host,
            pages_per_site,
            bytes_per_host,
            bytes_per_site,
            ..run.limits.clone()
        };
        run.reported = options.fetch.clock.now();
        run.note_moment();
        if let Err(error) = writer.save(durably) {
            tracing::debug!(%error, "the account of the run cannot be written");
        }
    }

    pub(super) fn end_account(&mut self, done: &Result<EndReason, CrawlError>) {
        let Some(writer) = &mut self.account.writer else { return };
        let (end, error) = match done {
            Ok(end) => (end.name(), None),
            Err(error) => ("failed", Some(error.to_string())),
        };
        (writer.run.end, writer.run.error) = (Some(end.to_owned()), error);
        if done.is_ok() {
            let copies = state_of_copies(self.recorder.store(), self.options.fetch.clock.now());
            writer.run.copies = copies
                .inspect_err(|error| tracing::debug!(%error, "the freshness of the copies is not known"))
                .ok();
        }
        self.write_account(Instant::now(), true);
    }

    /// Counts URLs that a rule keeps from being fetched.
    pub(super) fn count_refused(&mut self, why: Refusal, urls: &[UrlId]) {
        self.status.refused += urls.len() as u64;
        if why.option().is_some() {
            *self.status.left.entry(why).or_default() += urls.len() as u64;
        }
        let (time, state) = (self.options.fetch.clock.now(), self.recorder.state());
        if let (Some(RunWriter { run, .. }), Some(first)) = (&mut self.account.writer, urls.first()) {
            // A URL that cannot be read gives no example; the error is reported elsewhere.
            run.refused.count(why.name(), urls.len() as u64, time, || state.url(*first).unwrap_or_default());
        }
    }

    /// Counts a page that asks not to be kept.
    pub(super) fn count_not_kept(&mut self, url: &str) {
        self.status.refused += 1;
        self.note_reason(false, NOT_TO_BE_KEPT, url);
    }

    /// Counts a fetch that got no answer, or an error status.
    pub(super) fn count_error(&mut self, why: &str, url: &str) {
        self.status.errors += 1;
        self.note_reason(true, why, url);
    }

    fn note_reason(&mut self, is_error: bool, why: &str, url: &str) {
        let time = self.options.fetch.clock.now();
        if let Some(RunWriter { run, .. }) = &mut self.account.writer {
            let tallies = if is_error { &mut run.errors } else { &mut run.refused };
            tallies.count(why, 1, time, || url.to_owned());
        }
    }
}

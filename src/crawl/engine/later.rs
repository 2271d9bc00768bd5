//! Repeats requests that failed for the time being, and leaves to the next run what this one does not wait for.

use std::time::{Duration, Instant};

use archive_books::ledger::is_own_robots_txt;

use super::super::later::{ANSWER_BYTES_MAX, FailureVerdict, Trouble};
use super::super::process::FetchTag;
use super::super::robots_cache::HostRules;
use super::operation::DeferredResult;
use super::{CrawlError, EngineRun};

/// A run without a time limit ends once everything left has to wait for longer than this.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The same for a run with a time limit, which somebody was ready to wait for.
const PATIENCE_IN_TIME: Duration = Duration::from_secs(300);

/// Pages that failed come after all others of their host.
pub(super) const LEVEL_AGAIN: u8 = 1;

impl EngineRun<'_> {
    /// Leaves those hosts alone that asked an earlier run for it.
    pub(super) fn resume_pauses(&mut self, now: Instant) {
        for (host, until) in self.later.resume(&self.put_off.hosts, (now, self.options.fetch.clock.now())) {
            self.frontier.leave_alone(host, until);
        }
    }

    /// Returns the trouble as it counts for a request. Without its robots.txt, nothing may be fetched from a host; rules
    /// that are known hold on, and by decision it is not needed.
    pub(super) fn weighed(
        &self,
        tag: &FetchTag,
        trouble: Option<Trouble>,
    ) -> Result<Option<Trouble>, CrawlError> {
        let Some(trouble) = trouble.filter(|_| tag.robots) else { return Ok(trouble) };
        let is_known = self.robots.rules(tag.host).is_some() || self.is_asked_unread(tag.host)?;
        Ok(Some(trouble.of_robots(is_known)))
    }

    /// Repeats a request later in this run, or records that it failed.
    pub(super) fn postpone(
        &mut self,
        failed: DeferredResult,
        trouble: Trouble,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let (tag, must_record) = match &failed {
            DeferredResult::Fetched(tag, processed) => (tag, processed.received_bytes > ANSWER_BYTES_MAX),
            DeferredResult::Failed(tag, _) => (tag, false),
        };
        let (id, host, is_robots) = (tag.id, tag.host, tag.robots);
        match self.later.postpone((id, host), trouble, (failed, must_record), now) {
            FailureVerdict::Again => Ok(()),
            FailureVerdict::AgainRecording(answer) => {
                if is_robots {
                    // Once it is recorded, nobody waits for it.
                    self.later.forget(id);
                }
                self.conclude(answer, now)
            }
            FailureVerdict::Enough(answer) => answer.map_or(Ok(()), |answer| self.conclude(answer, now)),
        }
    }

    /// Records a failure; that of a proxy says nothing of a page, which is left to the next run as if it had not been
    /// asked for.
    pub(super) fn conclude(&mut self, failed: DeferredResult, now: Instant) -> Result<(), CrawlError> {
        match failed {
            DeferredResult::Fetched(tag, processed) => self.keep(tag, processed, now),
            DeferredResult::Failed(tag, error) if error.is_of_proxy() && tag.robots => {
                let mut waiting = self.robots.answered(tag.id).into_iter();
                waiting.try_for_each(|host| self.settle_robots(host, HostRules::Closed, now))
            }
            DeferredResult::Failed(tag, error) if error.is_of_proxy() => {
                Ok(self.put_off.note_unasked(self.recorder.state(), &[tag.id])?)
            }
            DeferredResult::Failed(tag, error) => {
                let (id, is_robots) = (tag.id, tag.robots);
                self.store_failure(tag, &error)?;
                if is_robots { self.robots_fetched(id, now) } else { Ok(()) }
            }
        }
    }

    /// Queues the pages whose turn has come again.
    pub(super) fn ask_again(&mut self, now: Instant) {
        while let Some((id, host, answer)) = self.later.due(now) {
            let robots = answer.map(DeferredResult::tag).filter(|tag| tag.robots);
            match robots.map(|tag| is_own_robots_txt(tag.url.as_str())) {
                Some(is_own) => {
                    self.robots.seek(id, host, is_own);
                    self.frontier.want_robots(host, now);
                }
                // A page of a host that was given up meanwhile is left to the next run.
                None => drop(self.frontier.push_again(id, host, LEVEL_AGAIN, now)),
            }
        }
    }

    /// When something becomes fetchable, if no other event comes first.
    pub(super) fn next_wake(&mut self) -> Option<Instant> {
        self.frontier.next_wake().into_iter().chain(self.later.next_due()).min()
    }

    /// Whether everything left has to wait for longer than this run does.
    pub(super) fn is_left_to_next_run(&mut self, now: Instant) -> bool {
        let Some(wake) = self.next_wake() else { return false };
        let left = self.options.time.map(|time| time.saturating_sub(self.elapsed() + self.grace()));
        let usual = if left.is_some() { PATIENCE_IN_TIME } else { PATIENCE };
        let patience = self.options.patience.unwrap_or(usual);
        wake > now + left.map_or(patience, |left| left.min(patience))
            && self.frontier.waits_for_hosts_left_alone()
    }

    /// Makes durable what servers have said so far of pages that are asked for again.
    pub(super) fn record_put_off(&mut self) -> Result<(), CrawlError> {
        let now = Instant::now();
        for answer in self.later.take_answers(|failed| !failed.tag().robots && !failed.is_of_proxy()) {
            self.conclude(answer, now)?;
        }
        self.keep_promises(now)
    }

    /// Records what this run leaves to the next one, and counts it.
    pub(super) fn leave_to_next_run(&mut self) -> Result<(), CrawlError> {
        let (now, refused, fetched) = (Instant::now(), self.status.refused, self.put_off.unasked());
        let mut behind_proxies = 0;
        for answer in self.later.take_answers(|_| true) {
            let tag = answer.tag();
            let is_new = self.recorder.state().visit(tag.id)?.is_none();
            behind_proxies += u64::from(answer.is_of_proxy() && is_new && !tag.robots);
            self.conclude(answer, now)?;
        }
        // New pages of hosts whose robots.txt waits, and those behind a proxy, are not asked for so far.
        let new = (self.status.refused - refused).saturating_sub(self.put_off.unasked() - fetched);
        self.put_off.count(self.recorder.state())?;
        self.put_off.pages += new + behind_proxies + self.doors.new_pages();
        self.status.waiting = self.put_off.pages;
        self.keep_promises(now)
    }

    fn keep_promises(&mut self, now: Instant) -> Result<(), CrawlError> {
        self.put_off.hosts = self.later.promises((now, self.options.fetch.clock.now()));
        Ok(self.put_off.keep(self.recorder.state_mut())?)
    }
}

impl DeferredResult {
    pub(super) fn tag(&self) -> &FetchTag {
        match self {
            Self::Fetched(tag, _) | Self::Failed(tag, _) => tag,
        }
    }

    /// Whether it only says that a proxy is out of order.
    fn is_of_proxy(&self) -> bool {
        matches!(self, Self::Failed(_, error) if error.is_of_proxy())
    }
}

//! Handles the result of a fetch: it is stored and credited, retried or given up.

use std::time::{Duration, Instant};

use archive_books::cluster::Slots;
use archive_books::ledger::{
    Candidate, CrawlerFacts, LEVEL_PAGE_MAX, LEVEL_REQUISITE, LEVEL_SEED, LEVEL_SEED_CASH, NearDuplicates,
    Refusal, Session, is_own_robots_txt, page_flags,
};
use archive_books::recorder::RecorderError;
use archive_choose::{Budgets, Focused, Ordering};
use archive_storage::CaptureKind;
use archive_storage::HostId;
use archive_storage::segment::{CaptureBody, Encoded};
use archive_storage::warc::split;
use archive_web::fetch::FetchError;
use url::Url;

use super::super::later::Trouble;
use super::super::previous;
use super::super::process::{
    DEDUPLICATED_BYTES_MIN, FetchTag, Previous, Processed, ProcessedJob, failed_group, mark_near_duplicates,
};
use super::super::robots_cache::HostRules;
use super::super::timings::Stage;
use super::operation::DeferredResult;
use super::{CrawlError, EngineRun};

impl EngineRun<'_> {
    pub(super) fn complete(&mut self, done: ProcessedJob) -> Result<(), CrawlError> {
        self.under_way -= 1;
        self.slots.iter_mut().for_each(Slots::give_back);
        let now = Instant::now();
        self.watch.start();
        match done {
            ProcessedJob::Resolved(host, Ok(place)) => {
                self.frontier.resolved(host, Some(place), now);
            }
            ProcessedJob::Resolved(host, Err(error)) => self.unresolved(host, &error, now)?,
            ProcessedJob::Fetched(tag, outcome) => {
                if tag.page {
                    self.pages_under_way -= 1;
                    self.counted.end(self.recorder.state(), tag.host)?;
                }
                match outcome {
                    Ok(processed) => self.fetched(tag, processed, now)?,
                    Err(error) => self.failed(tag, &error, now)?,
                }
            }
            ProcessedJob::Broken(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn fetched(
        &mut self,
        mut tag: Box<FetchTag>,
        processed: Box<Processed>,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let trouble = self.weighed(&tag, processed.trouble)?;
        let pause = self.later.note(tag.host, trouble, now);
        self.frontier.completed(tag.host, now, processed.elapsed, pause);
        if let Some(address) = processed.moved {
            self.frontier.moved(tag.host, address, now);
        }
        self.status.bytes += processed.received_bytes;
        self.status.unloaded += u64::from(processed.is_unloaded);
        self.counted.receive(self.recorder.state(), tag.host, processed.received_bytes)?;
        match trouble {
            Some(trouble) => self.postpone(DeferredResult::Fetched(tag, processed), trouble, now),
            None => {
                tag.is_recorded = self.later.forget(tag.id).is_some_and(|(_, is_recorded)| is_recorded);
                if self.is_wall(&tag, &processed, now)? { Ok(()) } else { self.keep(tag, processed, now) }
            }
        }
    }

    /// Stores and credits a fetched capture; on a full disk, it is held until there is space.
    pub(super) fn keep(
        &mut self,
        tag: Box<FetchTag>,
        mut processed: Box<Processed>,
        now: Instant,
    ) -> Result<(), CrawlError> {
        if self.operation.is_disk_full() {
            self.operation.held.push(DeferredResult::Fetched(tag, processed));
            return Ok(());
        }
        if processed.outcome.kind == CaptureKind::Response {
            self.look_for_sameness(&tag, &mut processed)?;
            self.deduplicate(&tag, &mut processed)?;
        }
        self.watch.lap(Stage::Append);
        let Processed { records, outcome, .. } = &mut *processed;
        let capture = match self.recorder.record(records, outcome, &mut self.candidates) {
            Err(error) if self.may_wait_for_room(&error) => {
                self.disk_is_full();
                self.operation.held.push(DeferredResult::Fetched(tag, processed));
                return Ok(());
            }
            recorded => recorded?,
        };
        let processed = *processed;
        self.watch.lap(Stage::Ledger);
        let (appending, paying) = self.recorder.take_times();
        self.watch.counters().shift(Stage::Ledger, Stage::Append, appending);
        self.watch.counters().shift(Stage::Ledger, Stage::Importance, paying);
        if let Some(ordering) = &mut self.ordering {
            ordering.fetched(self.recorder.state(), tag.id, self.recorder.credits().last_links())?;
        }
        self.learn_focus(&tag, &processed, capture)?;
        let mut candidates = std::mem::take(&mut self.candidates);
        for candidate in candidates.drain(..) {
            if self.discovering
                || candidate.level == LEVEL_REQUISITE
                || self.is_moved_seed(&tag, &candidate)?
            {
                self.enqueue(candidate, now)?;
            }
        }
        self.candidates = candidates;
        self.take_lessons(now)?;
        self.ask_behind_wall(&processed, now)?;
        if !tag.robots && processed.outcome.is_page() {
            self.ask_parts(tag.id, now)?;
        }
        self.reorder(now)?;
        self.watch.lap(Stage::Queue);
        if tag.robots {
            if let Some(robots) = processed.robots {
                self.robots.keep(capture, robots);
            }
            return self.robots_fetched(tag.id, now);
        }
        tracing::info!(
            target: "capture",
            url = processed.outcome.url,
            page = tag.page,
            status = processed.outcome.status,
            kind = ?processed.outcome.kind,
            bytes = processed.received_bytes,
            milliseconds = processed.outcome.facts.fetch_ms,
            via = processed.outcome.facts.via,
            problems = ?processed.outcome.facts.problems,
        );
        if tag.page && !tag.is_recorded {
            self.status.pages += 1;
            self.count_abroad(&processed.outcome.url);
        }
        if processed.outcome.kind == CaptureKind::Failed {
            // The page asks not to be kept: there is a note of it, but no capture.
            self.count_not_kept(&processed.outcome.url);
            return Ok(());
        }
        self.status.captures += 1;
        self.status.identical += u64::from(processed.outcome.kind != CaptureKind::Response);
        if processed.outcome.status == 401 && processed.outcome.facts.session == Some(Session::Login) {
            self.tell_of_refusal(tag.host)?;
        }
        if processed.outcome.status >= 400 {
            self.count_error(&format!("status {}", processed.outcome.status), &processed.outcome.url);
        }
        match processed.text {
            Some(text) => Ok(self.recorder.index(capture, &processed.outcome.url, text)?),
            None => Ok(()),
        }
    }

    /// Says once that a host refuses its log-in.
    fn tell_of_refusal(&mut self, host: HostId) -> Result<(), CrawlError> {
        if self.refusing.insert(host) {
            let name = self.host_name(host)?;
            self.warn(format!("{name} refuses its log-in (status 401): `archive login list` shows it"));
        }
        Ok(())
    }

    /// Whether a candidate is where the seed that was just fetched leads to.
    fn is_moved_seed(&self, tag: &FetchTag, candidate: &Candidate) -> Result<bool, CrawlError> {
        let page = self.recorder.state().page(candidate.url)?;
        let is_of_seed = page.via == Some(tag.id) && tag.hops.bytes().all(|hop| hop == b'R');
        Ok(is_of_seed && page.hop == b'R' && page.flags.has_any(page_flags::IN_SCOPE))
    }

    /// Checks again whether a page is like too many others of its host: there may be more since it was requested.
    fn look_for_sameness(&mut self, tag: &FetchTag, processed: &mut Processed) -> Result<(), CrawlError> {
        let outcome = &mut processed.outcome;
        if tag.near_duplicates.is_none() || outcome.status != 200 || outcome.facts.copies.is_some() {
            return Ok(());
        }
        let host = NearDuplicates::from_bytes(&self.recorder.state().host(tag.host)?.extension);
        if mark_near_duplicates(&mut outcome.facts, &host, self.policy.same_content) {
            processed.records.change().metadata = outcome.facts.to_fields();
        }
        Ok(())
    }

    /// Turns a payload that is already in the archive into a revisit of the capture that has it.
    fn deduplicate(&mut self, tag: &FetchTag, processed: &mut Processed) -> Result<(), CrawlError> {
        let outcome = &mut processed.outcome;
        if outcome.payload_bytes < DEDUPLICATED_BYTES_MIN {
            return Ok(());
        }
        let head = match &processed.records.group().body {
            CaptureBody::Response { http, truncated: None } => split(http).0,
            CaptureBody::Spooled { head, truncated: None, .. } => head.clone(),
            _ => return Ok(()),
        };
        let found = self.recorder.state().by_digest(&outcome.digest)?;
        let Some(id) = found else { return Ok(()) };
        let original = self.recorder.state().capture(id)?;
        // Pages are revisits of pages only, and a robots.txt only of itself.
        let is_of_robots = self.recorder.state().page(original.url)?.flags.has_any(page_flags::ROBOTS);
        if (tag.robots || is_of_robots) && !(original.url == tag.id && is_own_robots_txt(&outcome.url)) {
            return Ok(());
        }
        let received = processed.records.group().payload_digest;
        let CrawlerFacts { content_digest, entity_digest, .. } = outcome.facts;
        let digest = content_digest.or(entity_digest).or(received);
        let record_digest = previous::record_digest(self.recorder.store(), (id, &original), digest)?;
        let Some(record_digest) = record_digest else { return Ok(()) };
        let previous = Previous::of(self.recorder.store(), (id, original), record_digest)?;
        let (Some(previous), Some(received)) = (previous, received) else { return Ok(()) };
        let shown = (outcome.status, outcome.media_type.as_str(), &outcome.facts);
        let Some(revisit) = previous.revisit(head, received, shown) else { return Ok(()) };
        (outcome.kind, outcome.original) = (CaptureKind::Identical, Some((id, original)));
        outcome.payload_bytes = original.length.into();
        if let Some(validators) = &mut outcome.validators {
            validators.digest = record_digest;
        }
        let group = processed.records.change();
        group.body = revisit;
        group.payload_digest = Some(record_digest);
        Ok(())
    }

    fn failed(&mut self, tag: Box<FetchTag>, error: &FetchError, now: Instant) -> Result<(), CrawlError> {
        if self.is_behind_door(&tag, error)? {
            self.frontier.completed(tag.host, now, Duration::ZERO, None);
            return Ok(());
        }
        if error.is_of_proxy() && self.proxy_faults.insert(error.to_string()) {
            self.warn(format!("{error}; hosts behind it wait"));
        }
        let asks_otherwise = tag.robots && self.ask_otherwise(&tag, error)?;
        let trouble = Trouble::of_error(error).filter(|_| !asks_otherwise);
        let trouble = self.weighed(&tag, trouble)?;
        let pause = self.later.note(tag.host, trouble, now);
        self.frontier.completed(tag.host, now, Duration::ZERO, pause);
        let failed = DeferredResult::Failed(tag, error.clone());
        match trouble {
            Some(trouble) => self.postpone(failed, trouble, now),
            None => {
                self.later.forget(failed.tag().id);
                self.conclude(failed, now)
            }
        }
    }

    /// Queues a URL, or records why it is not fetched.
    pub(super) fn enqueue(&mut self, candidate: Candidate, now: Instant) -> Result<(), CrawlError> {
        let level = level(self.ordering.as_ref(), self.focus.as_ref(), &candidate);
        let budgets = if self.discovering { self.policy.budgets } else { Budgets::default() };
        let early = budgets.early(
            self.recorder.state(),
            self.recorder.credits(),
            &candidate,
            &self.counted,
            &self.decisions,
        )?;
        let entered = match (early, level) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(level)) => self.frontier.push(candidate.url, candidate.host, level, now),
        };
        if entered == Err(Refusal::LoggedOut) {
            return self.leave_behind_door(&[candidate.url]);
        }
        if let Err(why) = entered {
            self.recorder.put_off(candidate.url, why)?;
            self.count_refused(why, &[candidate.url]);
        }
        Ok(())
    }

    pub(super) fn store_failure(&mut self, tag: Box<FetchTag>, error: &FetchError) -> Result<(), CrawlError> {
        let (mut outcome, group) = failed_group(&tag, error, self.options.fetch.clock.now());
        let records = Encoded::later(group);
        match self.recorder.record(&records, &mut outcome, &mut self.candidates) {
            Err(full) if self.may_wait_for_room(&full) => {
                self.disk_is_full();
                self.operation.held.push(DeferredResult::Failed(tag, error.clone()));
                return Ok(());
            }
            recorded => drop(recorded?),
        }
        tracing::info!(target: "capture", url = outcome.url, status = 0, error = %error);
        self.candidates.clear();
        self.count_error(&error.reason(), &outcome.url);
        Ok(())
    }

    /// Whether a pause may resolve an error.
    pub(super) fn may_wait_for_room(&self, error: &RecorderError) -> bool {
        self.options.disk_min > 0 && error.is_disk_full() && !self.control.is_stopped()
    }

    /// Handles a host whose address cannot be found. If it had one, that is kept; if not, its best URL is recorded as
    /// failed, and the others wait for the next run.
    fn unresolved(&mut self, host: HostId, error: &FetchError, now: Instant) -> Result<(), CrawlError> {
        if *error == FetchError::Unresolved && self.frontier.keep_address(host, now) {
            return Ok(());
        }
        let urls = self.frontier.resolved(host, None, now);
        for waiting in self.robots.abandon(host) {
            self.settle_robots(waiting, HostRules::Closed, now)?;
        }
        let Some((&id, others)) = urls.split_last() else { return Ok(()) };
        for &other in others {
            self.recorder.put_off(other, Refusal::Unresolved)?;
        }
        self.count_refused(Refusal::Unresolved, others);
        let url = self.recorder.state().url(id)?;
        let Ok(url) = Url::parse(&url) else { return Ok(()) };
        let page = self.recorder.state().page(id)?;
        let (via, hops) = previous::discovery_path(self.recorder.state(), id, &page)?;
        let tag = FetchTag {
            host,
            id,
            url,
            robots: false,
            robots_ignored: None,
            page: false,
            is_recorded: false,
            is_behind_wall: false,
            via,
            hops,
            importance: None,
            previous: None,
            near_duplicates: None,
        };
        self.store_failure(Box::new(tag), error)
    }
}

/// Returns the level of a candidate in the queue: by its cash, or by the chosen order or topic; or the reason why it is
/// not queued.
pub(super) fn level(
    ordering: Option<&Ordering>,
    focus: Option<&Focused>,
    candidate: &Candidate,
) -> Result<u8, Refusal> {
    match (focus, ordering) {
        (None, None) if candidate.level == LEVEL_SEED => Ok(LEVEL_SEED_CASH),
        _ if candidate.level > LEVEL_PAGE_MAX => Ok(candidate.level),
        (Some(focus), _) => focus.level(candidate.url, candidate.level).ok_or(Refusal::OffTopic),
        (None, Some(ordering)) => Ok(ordering.level(candidate.url)),
        (None, None) => Ok(candidate.level),
    }
}

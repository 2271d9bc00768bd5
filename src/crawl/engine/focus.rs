//! Handles pages in a focused crawl: the order of waiting pages learns from them, and they are counted.

use std::time::Instant;

use archive_books::ledger::{LEVEL_PAGE_MAX, Refusal};
use archive_choose::{Focused, Ordering, is_redirect};
use archive_storage::{CaptureId, UrlId};

use super::super::process::{FetchTag, Processed};
use super::{CrawlError, EngineRun};

impl EngineRun<'_> {
    /// Learns from earlier captures what leads to the topic.
    pub(super) fn begin_focus(&mut self, seeds: &[UrlId]) -> Result<(), CrawlError> {
        if let Some(policy) = &self.policy.focus {
            self.focus = Some(Focused::begin(self.recorder.store(), policy, seeds)?);
            self.status.topic = Some(self.harvest.status(&policy.topic));
        }
        Ok(())
    }

    /// Lets the order of waiting pages learn from a page.
    pub(super) fn learn_focus(
        &mut self,
        tag: &FetchTag,
        processed: &Processed,
        capture: CaptureId,
    ) -> Result<(), CrawlError> {
        let Some(focus) = self.focus.as_mut().filter(|_| tag.page) else { return Ok(()) };
        focus.turn(self.recorder.store(), capture)?;
        if is_redirect(processed.outcome.status) {
            focus.pass_on(tag.id, self.recorder.credits().last_links());
            return Ok(());
        }
        let (sight, chance) = match &processed.sight {
            Some((sight, chance)) => (Some(sight), *chance),
            None => (None, 0.0),
        };
        focus.fetched(self.recorder.state(), tag.id, tag.url.as_str(), sight, chance)?;
        self.harvest.count(chance);
        if self.harvest.is_due(self.recorder.state().url_count().into()) {
            self.harvest.estimated(focus.recall(self.frontier.waiting()));
        }
        self.status.topic = Some(self.harvest.status(&focus.topic().about.name));
        Ok(())
    }

    /// Moves waiting pages to new levels, according to what was learned or computed since.
    pub(super) fn reorder(&mut self, now: Instant) -> Result<(), CrawlError> {
        for url in self.ordering.as_mut().map(Ordering::take_changed).unwrap_or_default() {
            let level = self.ordering.as_ref().map_or(0, |ordering| ordering.level(url));
            let host = self.recorder.state().page(url)?.host;
            self.frontier.reorder(url, host, level, now);
        }
        let Some(focus) = &mut self.focus else { return Ok(()) };
        for url in focus.take_changed() {
            let (credits, state) = self.recorder.books();
            let Some(candidate) = credits.take_up(state, url, Refusal::OffTopic)? else { continue };
            let level = self.focus.as_ref().and_then(|focus| focus.level(url, candidate.level));
            if let Some(level) = level.filter(|_| candidate.level <= LEVEL_PAGE_MAX)
                && !self.frontier.reorder(url, candidate.host, level, now)
            {
                self.enqueue(candidate, now)?;
            }
        }
        Ok(())
    }
}

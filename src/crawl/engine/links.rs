//! What the books learn about links while a run goes on: parameters that make no difference, and seeds that have moved.

use std::time::Instant;

use archive_books::ledger::{Candidate, CrawlerFacts, Refusal, page_flags as flags, shown};
use archive_storage::{HostId, UrlId};

use super::{CrawlError, EngineRun};

/// Maximum number of pages that wait for tests of their parameters; others are fetched at once.
const UNTESTED_MAX: usize = 100_000;

impl EngineRun<'_> {
    /// Lets another URL stand for one whose turn has come, if they differ in parameters that make no difference;
    /// returns whether it does.
    pub(super) fn is_meant_otherwise(
        &mut self,
        host: HostId,
        id: UrlId,
        url: &str,
        now: Instant,
    ) -> Result<bool, CrawlError> {
        if !self.discovering {
            return Ok(false);
        }
        let (credits, state) = self.recorder.books();
        let Some(meant) = credits.meant(state, id, url)? else { return Ok(false) };
        let candidate = credits.let_stand_for(state, id, &meant)?;
        self.frontier.cancelled(host, now);
        candidate.map_or(Ok(()), |candidate| self.enqueue(candidate, now))?;
        Ok(true)
    }

    /// Lets a page wait whose parameters are being tested: it may be another spelling of one that is known. Returns
    /// whether it does.
    pub(super) fn awaits_tests(
        &mut self,
        host: HostId,
        id: UrlId,
        url: &str,
        now: Instant,
    ) -> Result<bool, CrawlError> {
        if !self.discovering || self.untested.len() >= UNTESTED_MAX {
            return Ok(false);
        }
        let waits = self.recorder.credits().awaits_tests(self.recorder.state(), id, url)?;
        if waits {
            self.frontier.cancelled(host, now);
            self.untested.push(id);
        }
        Ok(waits)
    }

    /// Queues the pages again that wait for tests, if one has ended.
    pub(super) fn queue_tested(&mut self, now: Instant) -> Result<(), CrawlError> {
        if self.untested.is_empty() || !self.recorder.books().0.has_ended_tests() {
            return Ok(());
        }
        for id in std::mem::take(&mut self.untested) {
            self.frontier.unpick(id);
            let waited = self.recorder.credits().has_waited(self.recorder.state(), id)?;
            waited.map_or(Ok(()), |candidate| self.enqueue(candidate, now))?;
        }
        Ok(())
    }

    /// Gives up the tests that pages still wait for when nothing else is left to do; returns whether there were any.
    pub(super) fn give_up_tests(&mut self) -> Result<bool, CrawlError> {
        for id in &self.untested {
            let (credits, state) = self.recorder.books();
            credits.give_up_tests(state, *id)?;
        }
        Ok(!self.untested.is_empty())
    }

    /// Acts on what the books have learned from a capture.
    pub(super) fn take_lessons(&mut self, now: Instant) -> Result<(), CrawlError> {
        let unfollowed = self.recorder.books().0.take_unfollowed();
        if !unfollowed.is_empty() {
            self.count_refused(Refusal::SameContent, &unfollowed);
        }
        for id in self.recorder.books().0.take_known_tests() {
            let Some((status, facts)) = self.newest_facts(id)? else { continue };
            let (credits, state) = self.recorder.books();
            credits.note_known(state, id, status, &facts)?;
        }
        for host in self.recorder.books().0.take_misled() {
            self.link_again(host, now)?;
        }
        let moved = self.recorder.books().0.take_moved();
        for rule in &moved {
            let from = rule.moved_from.as_deref().unwrap_or_default();
            let seed = &rule.seed;
            self.notice(format!(
                "the seed {from} leads to {seed}, which is now in scope (--leave-moved-seeds)"
            ));
        }
        if !moved.is_empty() && self.discovering {
            self.enqueue_waiting()?;
        }
        Ok(())
    }

    fn newest_facts(&self, id: UrlId) -> Result<Option<(u16, CrawlerFacts)>, CrawlError> {
        let store = self.recorder.store();
        let Some((_, capture)) = shown(store.state(), id)? else { return Ok(None) };
        Ok(Some((capture.status, CrawlerFacts::from_fields(&store.metadata(&capture)?))))
    }

    /// Reads the links of a host's pages again, as a parameter in them was taken to make no difference.
    fn link_again(&mut self, host: HostId, now: Instant) -> Result<(), CrawlError> {
        let mut fetched = Vec::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut again: Vec<Candidate> = Vec::new();
        let (credits, state) = self.recorder.books();
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let page = state.page(id)?;
            if page.host != host {
                continue;
            }
            if page.flags.has_any(flags::FETCHED) {
                fetched.push(id);
            } else if page.flags.has_any(flags::ALIAS) {
                again.extend(credits.stand_alone(state, id)?);
            }
        }
        for id in fetched {
            let Some((_, facts)) = self.newest_facts(id)? else { continue };
            if !facts.links.is_empty() {
                let (credits, state) = self.recorder.books();
                credits.link_again(state, id, &facts, &mut candidates)?;
            }
        }
        if !self.discovering {
            return Ok(());
        }
        // Their turn had come before.
        for Candidate { url, host, level } in again {
            if let Err(why) = self.frontier.push_again(url, host, level, now) {
                let (credits, state) = self.recorder.books();
                credits.put_off(state, url, why)?;
            }
        }
        candidates.into_iter().try_for_each(|candidate| self.enqueue(candidate, now))
    }
}

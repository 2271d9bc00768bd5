//! Cookie walls: servers that show a page to those who come back with a cookie.
//!
//! Most redirect to the same URL while they set it; some redirect to another URL that sets it, and back. The page is asked
//! again, in its turn as any other, and what is captured of it is what came after the wall. Who sets a new cookie
//! each time gets no more than a few turns.

use std::collections::HashMap;
use std::time::Instant;

use archive_books::ledger::{LEVEL_FIRST, LEVEL_REQUISITE, leads_to, page_flags};
use archive_storage::UrlId;
use archive_storage::address::canonical;
use archive_web::parse::LinkKind;

use super::super::process::{FetchTag, Processed};
use super::later::LEVEL_AGAIN;
use super::{CrawlError, EngineRun};

/// Maximum number of times that a run asks again for a URL because of a cookie.
const TURNS_MAX: u8 = 4;

/// Maximum number of URLs that a run asks again because of a cookie.
const WALLS_MAX: usize = 65_536;

/// How often each URL was asked again because of a cookie.
#[derive(Debug, Default)]
pub(super) struct CookieWalls(HashMap<UrlId, u8>);

impl CookieWalls {
    /// Whether a URL was asked again.
    pub(super) fn has(&self, id: UrlId) -> bool {
        self.0.contains_key(&id)
    }

    /// Takes a turn of a URL, if it has one left.
    fn take_turn(&mut self, id: UrlId) -> bool {
        if self.0.len() >= WALLS_MAX && !self.has(id) {
            return false;
        }
        let turns = self.0.entry(id).or_default();
        *turns = turns.saturating_add(1);
        *turns <= TURNS_MAX
    }
}

impl EngineRun<'_> {
    /// Whether an answer is only the wall before its page, which is asked again now.
    pub(super) fn is_wall(
        &mut self,
        tag: &FetchTag,
        answer: &Processed,
        now: Instant,
    ) -> Result<bool, CrawlError> {
        if tag.robots || !(300..400).contains(&answer.outcome.status) {
            return Ok(false);
        }
        // It may have been on its way when another answer set the cookie.
        let is_early = answer.outcome.facts.session.is_none() && self.has_cookies(tag);
        let url = &answer.outcome.url;
        let opens_itself = answer.opens.as_ref().is_some_and(|target| canonical(target) == *url);
        let mut links = answer.outcome.facts.links.iter().filter(|link| link.kind == LinkKind::Redirect);
        if opens_itself || is_early && links.any(|link| link.url == *url) {
            return Ok(self.walls.take_turn(tag.id) && self.ask_past_wall(tag.id, now)?);
        }
        // An answer that sets a cookie for where it leads is a gate itself.
        if answer.opens.is_some() {
            return Ok(false);
        }
        let Some((gate, is_asked)) = self.known_gate(tag, answer)? else { return Ok(false) };
        if is_asked && !is_early || !self.walls.take_turn(tag.id) {
            return Ok(false);
        }
        // After the gate.
        Ok((is_asked || self.ask_past_wall(gate, now)?)
            && self.frontier.push_again(tag.id, tag.host, LEVEL_AGAIN, now).is_ok())
    }

    fn has_cookies(&self, tag: &FetchTag) -> bool {
        let now = self.options.fetch.clock.now().timestamp();
        self.cookies.as_ref().is_some_and(|cookies| cookies.has_for(&tag.url, now))
    }

    /// Returns the URL to which a page redirects, if that was known to lead back to it, and whether it was asked in this
    /// run.
    fn known_gate(&self, tag: &FetchTag, answer: &Processed) -> Result<Option<(UrlId, bool)>, CrawlError> {
        let mut links = answer.outcome.facts.links.iter();
        let Some(link) = links.find(|link| link.kind == LinkKind::Redirect) else { return Ok(None) };
        let state = self.recorder.state();
        let Some(gate) = state.find(&link.url)?.filter(|gate| *gate != tag.id) else { return Ok(None) };
        let Some(visit) = state.visit(gate)? else { return Ok(None) };
        let is_asked = visit.last_capture.is_some_and(|newest| newest >= self.first_capture);
        let leads_back = leads_to(state, gate, &visit, &mut state.link_cursor())? == Some(tag.id);
        Ok(leads_back.then_some((gate, is_asked)))
    }

    /// After a redirect that set a cookie for its target: asks again for the target, if all that it gave in this run was
    /// a redirect.
    pub(super) fn ask_behind_wall(&mut self, answer: &Processed, now: Instant) -> Result<(), CrawlError> {
        let Some(target) = answer.opens.as_ref().map(canonical).filter(|url| *url != answer.outcome.url)
        else {
            return Ok(());
        };
        let state = self.recorder.state();
        let Some(id) = state.find(&target)? else { return Ok(()) };
        let Some(visit) = state.visit(id)? else { return Ok(()) };
        let is_new = visit.last_capture.is_some_and(|newest| newest >= self.first_capture);
        if is_new && (300..400).contains(&visit.status) && self.walls.take_turn(id) {
            self.ask_past_wall(id, now)?;
        }
        Ok(())
    }

    fn ask_past_wall(&mut self, id: UrlId, now: Instant) -> Result<bool, CrawlError> {
        let page = self.recorder.state().page(id)?;
        let level = if page_flags::is_page(page.flags) { LEVEL_FIRST } else { LEVEL_REQUISITE };
        Ok(self.frontier.push_again(id, page.host, level, now).is_ok())
    }
}

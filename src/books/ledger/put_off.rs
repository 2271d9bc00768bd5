//! Pages whose servers said "later" when they were asked last, broke off, or gave no answer: the next run of any kind
//! asks for them again.

use std::collections::BTreeMap;

use archive_storage::{Capture, CaptureId, CaptureKind, HostId, State, UrlId};
use serde::{Deserialize, Serialize};

use super::capture_flags;
use super::error::CreditError;
use super::page_flags as flags;
use super::settings::{PUT_OFF, read_setting, write_setting};

/// A page that was put off so many times in a row is no longer asked for by every run.
const IN_A_ROW_MAX: usize = 3;

/// Maximum number of pages that are kept because the robots.txt of their host could not be had.
const UNASKED_MAX: usize = 100_000;

/// Whether a server that answers with this status may have the page later.
#[must_use]
pub const fn says_later(status: u16) -> bool {
    matches!(status, 429 | 500 | 502..=504 | 520..=527)
}

/// Whether a fetch brought nothing, only a part, or an answer that says "later".
fn is_put_off(capture: &Capture) -> bool {
    let has_failed = capture.kind == CaptureKind::Failed && capture.status == 0;
    has_failed || says_later(capture.status) || capture.flags & capture_flags::CUT_OFF != 0
}

/// What runs leave to the next one because of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutOff {
    /// Number of pages at the end of the last run.
    pub pages: u64,
    /// Number of the first capture that may be of such a page.
    since: u32,
    /// Pages that were to be asked for again and were not, for want of their host's robots.txt, by their numbers; each
    /// with its newest capture then.
    unasked: BTreeMap<u32, u32>,
    /// Until when hosts asked to be left alone, in seconds since 1970, by the host's number.
    pub hosts: BTreeMap<u32, i64>,
}

impl PutOff {
    /// Returns what is kept in a state.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(state: &State) -> Result<Self, CreditError> {
        Ok(read_setting(state, PUT_OFF)?.unwrap_or_default())
    }

    /// Keeps it from the next checkpoint on.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        write_setting(state, PUT_OFF, self)
    }

    /// Returns the pages and requisites to be asked for again, with their hosts.
    ///
    /// # Errors
    /// When the store fails.
    pub fn find(&self, state: &State) -> Result<Vec<(UrlId, HostId)>, CreditError> {
        let mut found: Vec<_> =
            self.captures(state)?.into_iter().map(|(_, page, host)| (page, host)).collect();
        for (&page, &capture) in &self.unasked {
            let page = UrlId(page);
            if is_newest(state, page, capture)? {
                found.push((page, state.page(page)?.host));
            }
        }
        Ok(found)
    }

    /// Notes pages that were to be asked for and were not; those that never were asked for wait anyway.
    ///
    /// # Errors
    /// When the store fails.
    pub fn note_unasked(&mut self, state: &State, pages: &[UrlId]) -> Result<(), CreditError> {
        for page in pages {
            let newest = state.visit(*page)?.and_then(|visit| visit.last_capture);
            if let Some(capture) = newest.filter(|_| self.unasked.len() < UNASKED_MAX) {
                self.unasked.insert(page.0, capture.0);
            }
        }
        Ok(())
    }

    /// The number of pages noted as not asked for.
    #[must_use]
    pub fn unasked(&self) -> u64 {
        self.unasked.len() as u64
    }

    /// Counts the pages again at the end of a run.
    ///
    /// # Errors
    /// When the store fails.
    pub fn count(&mut self, state: &State) -> Result<(), CreditError> {
        let captures = self.captures(state)?;
        let all = u32::try_from(state.totals().captures).unwrap_or(u32::MAX);
        self.since = captures.first().map_or(all, |(capture, ..)| capture.0);
        let mut unasked = BTreeMap::new();
        for (&page, &capture) in &self.unasked {
            if is_newest(state, UrlId(page), capture)? {
                unasked.insert(page, capture);
            }
        }
        self.unasked = unasked;
        self.pages = (captures.len() + self.unasked.len()) as u64;
        Ok(())
    }

    fn captures(&self, state: &State) -> Result<Vec<(CaptureId, UrlId, HostId)>, CreditError> {
        let mut found = Vec::new();
        for capture in state.captures_from(CaptureId(self.since)) {
            let (id, capture) = capture?;
            if !is_put_off(&capture)
                || state.visit(capture.url)?.is_none_or(|visit| visit.last_capture != Some(id))
            {
                continue;
            }
            let page = state.page(capture.url)?;
            let is_wanted =
                page.flags.has_any(flags::IN_SCOPE | flags::REQUISITE) && page.flags.has_any(flags::FETCHED);
            if !is_wanted || page.flags.has_any(flags::ROBOTS) || flags::refusal_code(page.flags) != 0 {
                continue;
            }
            let newest = state.history(capture.url)?.take(IN_A_ROW_MAX).collect::<Result<Vec<_>, _>>()?;
            if newest.len() < IN_A_ROW_MAX || newest.iter().any(|(_, capture)| !is_put_off(capture)) {
                found.push((id, capture.url, page.host));
            }
        }
        Ok(found)
    }
}

/// Whether a capture is still the newest of its page, so that the page was not asked for since.
fn is_newest(state: &State, page: UrlId, capture: u32) -> Result<bool, CreditError> {
    Ok(state.visit(page)?.is_some_and(|visit| visit.last_capture == Some(CaptureId(capture))))
}

//! Announcements of changes: a date in a sitemap or feed, or a notice from a site owner.
//!
//! An announcement is stored with the page until its next fetch, which shows whether it was true. Sitemaps and feeds
//! count only for their own site: others do not know when a page changed.

use archive_storage::{State, UrlId, Visit};
use chrono::{DateTime, Utc};

use super::credit::Credits;
use super::error::CreditError;
use super::outcome::FetchOutcome;

/// A date further in the future is a mistake; a nearer one may come from a clock that is fast.
const FUTURE_SECONDS_MAX: i64 = 86_400;

/// Prior: assumed number of announcements before a page's first one, and how many of them were true.
const PRIOR_ANNOUNCEMENTS: f64 = 5.0;
const PRIOR_CONFIRMED: f64 = 4.0;

/// Probability that a page has changed when a change is announced, given how often this was true.
#[must_use]
pub fn announcement_trust(visit: &Visit) -> f64 {
    let (said, true_ones) = (f64::from(visit.announcements), f64::from(visit.announcements_confirmed));
    (PRIOR_CONFIRMED + true_ones) / (PRIOR_ANNOUNCEMENTS + said)
}

impl Credits {
    /// Notes that a page is said to have changed at `modified`; returns whether that is news, i.e. later than its last
    /// fetch.
    ///
    /// # Errors
    /// When the store fails.
    pub fn announce(
        &mut self,
        state: &mut State,
        id: UrlId,
        modified: i64,
        now: DateTime<Utc>,
    ) -> Result<bool, CreditError> {
        let Ok(seconds) = u32::try_from(modified) else { return Ok(false) };
        if modified > now.timestamp() + FUTURE_SECONDS_MAX {
            return Ok(false);
        }
        let Some(visit) = state.visit(id)? else { return Ok(false) };
        if visit.captures == 0 || seconds <= visit.last_attempt {
            return Ok(false);
        }
        if visit.announced == 0 || seconds < visit.announced {
            state.update_visit(id, |visit| visit.announced = seconds)?;
        }
        Ok(true)
    }

    /// Notes the dates that a sitemap or feed gives for pages of its own site.
    pub(super) fn take_dates(
        &mut self,
        state: &mut State,
        source: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<(), CreditError> {
        if outcome.facts.links.iter().all(|link| link.modified.is_none()) {
            return Ok(());
        }
        let site = state.host(state.page(source)?.host)?.site;
        for (place, link) in outcome.facts.links.iter().enumerate() {
            let (Some(modified), Some(target)) = (link.modified, self.targets.get(place)) else { continue };
            let target = target.link;
            if target != source && state.host(state.page(target)?.host)?.site == site {
                self.announce(state, target, modified, outcome.time)?;
            }
        }
        Ok(())
    }
}

/// Checks a stored announcement against a fetch.
pub(super) fn settle_announcement(visit: &mut Visit, changed: bool) {
    if visit.announced == 0 {
        return;
    }
    if visit.announcements == u16::MAX {
        visit.announcements /= 2;
        visit.announcements_confirmed /= 2;
    }
    visit.announcements += 1;
    visit.announcements_confirmed += u16::from(changed);
    visit.announced = 0;
}

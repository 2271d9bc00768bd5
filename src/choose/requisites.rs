//! The parts of pages (style sheets, pictures, scripts and whatever else a page shows that is no page itself), and when
//! they are asked again.
//!
//! When a page is fetched again, so are those of its parts that have probably changed, judged by their own visits: a
//! part that changes at every twentieth fetch of its page or more often is asked with each, and one that was often seen
//! unchanged ever more rarely. A missing part is asked again after growing times.

use std::collections::HashSet;

use archive_books::ledger::{LinkCode, REQUISITE_DEPTH_MAX, page_flags as flags};
use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_storage::{Page, State, StateError, UrlId, Visit};
use archive_web::parse::LinkKind;

use super::due::RefreshRules;

/// A part is asked with its page if it has changed since its last fetch with at least this probability.
const CHANGED_MIN: f64 = 0.05;

/// What is assumed of a part's change rate before its own visits: nothing, not even its scale (Jeffreys' prior). So a
/// part is first asked again with its page, however soon that is, and ten times before it is left out.
const PRIOR: RatePrior = RatePrior { shape: 0.5, days: 1e-6 };

/// Maximum number of days between two requests for a missing part.
const MISSING_DAYS_MAX: f64 = 180.0;

/// Maximum number of parts of a page, those of its parts included.
pub const PARTS_PER_PAGE_MAX: usize = 1000;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// A part of a page that was fetched before.
#[derive(Debug, Clone, Copy)]
pub struct Requisite {
    /// Its URL.
    pub id: UrlId,
    /// What is known about it.
    pub page: Page,
    /// Its last visit.
    pub visit: Visit,
}

/// When a part is asked again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartTurn {
    /// Number of days after its last fetch from which on it is asked with its pages.
    pub(crate) days: f64,
    /// Whether it was not found at its last fetch.
    pub(crate) missing: bool,
}

/// Whether a URL comes only with pages, and was fetched.
pub(crate) fn is_part(page: &Page) -> bool {
    page.flags.has_any(flags::FETCHED) && !page.flags.has_any(flags::ROBOTS) && !flags::is_page(page.flags)
}

/// Returns the parts of a page by its stored links, and their parts, nearest first, that are not in `seen`; adds them
/// to it.
pub fn parts_of(state: &State, page: UrlId, seen: &mut HashSet<UrlId>) -> Result<Vec<Requisite>, StateError> {
    let mut parts: Vec<Requisite> = Vec::new();
    let (mut sources, mut read) = (vec![page], 0);
    for _ in 0..REQUISITE_DEPTH_MAX {
        for source in sources.drain(..) {
            for link in state.links(source)?.links {
                let is_requisite = LinkCode::from_byte(link.kind).kind().is_some_and(LinkKind::is_requisite);
                if !is_requisite || !seen.insert(link.target) {
                    continue;
                }
                let page = state.page(link.target)?;
                if is_part(&page)
                    && let Some(visit) = state.visit(link.target)?
                {
                    parts.push(Requisite { id: link.target, page, visit });
                }
                if parts.len() == PARTS_PER_PAGE_MAX {
                    return Ok(parts);
                }
            }
        }
        sources.extend(parts[read..].iter().filter(|part| part.visit.links.is_some()).map(|part| part.id));
        read = parts.len();
    }
    Ok(parts)
}

impl PartTurn {
    /// Works out when a part is asked again, by its own visits.
    #[must_use]
    pub fn of(visit: &Visit) -> Self {
        if let Some(days) = missing_days(visit) {
            return Self { days: days.min(MISSING_DAYS_MAX), missing: true };
        }
        let rate = ChangeObservations::from_bytes(&visit.extension).rate(&PRIOR).per_day;
        Self { days: -(1.0 - CHANGED_MIN).ln() / rate, missing: false }
    }

    /// Whether a part is asked with its page, `seconds` after its last fetch.
    pub fn has_come(self, rules: &RefreshRules, seconds: i64) -> bool {
        rules.is_ripe(seconds) && rules.has_passed(seconds, self.days * SECONDS_PER_DAY)
    }
}

/// Returns the number of days for which a part was missing at its last attempt, so that the time to the next one doubles
/// with each; `None` if it was found then.
fn missing_days(visit: &Visit) -> Option<f64> {
    let days = f64::from(visit.last_attempt.saturating_sub(visit.failing_since)) / SECONDS_PER_DAY;
    (visit.failing_since > 0).then_some(days)
}

//! Which pages a refresh fetches: the most obsolete by importance and change rate.
//!
//! By equation 22 of the Xyleme paper ("Acquiring XML pages for a WebHouse", section 6) a page of importance r that
//! changes at rate λ is due every `(1/√(rλ)) Σ √(rλ) / G` time units under a budget of G fetches a time unit. How overdue
//! it is, its age divided by this interval, orders pages the same way whatever G is: by `age · √(rλ)`. What a sitemap, feed
//! or site master said of a page counts as age.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use archive_storage::{State, UrlId, Visit};
use chrono::{DateTime, Utc};

use crate::ledger::{CreditError, Credits, announcement_trust, page_flags as flags};
use crate::parse::DocumentKind;
use crate::refresh::policy::Rule;
use crate::refresh::rate::{ChangeObservations, RatePrior};

/// The rule by which a refresh chooses.
pub const REFRESH_RULE: Rule = Rule::Xyleme;

/// Pages whose visits the prior is learned from; of more, every n-th.
const PRIOR_VISITS_MAX: usize = 20_000;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// What fetching a redirect or a duplicate again is worth, as a share of the page that it stands for: it tells whether it still
/// does, and nothing of that page's content.
const ALIAS_SHARE: f64 = 0.1;

/// A page that could be refreshed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Overdue {
    score: f64,
    page: UrlId,
}

impl Eq for Overdue {}

impl PartialOrd for Overdue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Overdue {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of equals the page that was found first is the better one.
        self.score.total_cmp(&other.score).then_with(|| other.page.cmp(&self.page))
    }
}

/// The `budget` most overdue pages, the most overdue first.
///
/// # Errors
/// When the store fails.
pub fn most_obsolete(
    state: &State,
    credits: &Credits,
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<UrlId>, CreditError> {
    let prior = archive_prior(state)?;
    let mut best: BinaryHeap<Reverse<Overdue>> = BinaryHeap::with_capacity(budget.min(1 << 20) + 1);
    for visit in state.visits() {
        let (page, visit) = visit?;
        if visit.captures == 0 {
            continue;
        }
        let Some(importance) = refreshable(state, credits, page, &visit)? else { continue };
        let rate = ChangeObservations::from_bytes(&visit.extension).rate(&prior).per_day;
        let age = (now.timestamp() - i64::from(visit.last_seen)).max(0) as f64 / SECONDS_PER_DAY
            + announced_days(&visit, rate);
        best.push(Reverse(Overdue { score: REFRESH_RULE.value(importance, rate, age), page }));
        if best.len() > budget {
            best.pop();
        }
    }
    let mut pages: Vec<Overdue> = best.into_iter().map(|Reverse(overdue)| overdue).collect();
    pages.sort_by(|a, b| b.cmp(a));
    Ok(pages.into_iter().map(|overdue| overdue.page).collect())
}

/// The importance of what can be refreshed; nothing for what comes with its page, and for robots.txt.
///
/// Sitemaps and feeds are polled for what they say of other pages: they count as much as a mean page at least.
///
/// # Errors
/// When the store fails.
pub fn refreshable(
    state: &State,
    credits: &Credits,
    id: UrlId,
    visit: &Visit,
) -> Result<Option<f64>, CreditError> {
    let page = state.page(id)?;
    let is_alias = page.flags.0 & flags::ALIAS != 0;
    let share = if is_alias { ALIAS_SHARE } else { 1.0 };
    let own = credits.importance_of(state, id)?.map(|importance| importance * share);
    if !tells_of_others(visit) || page.flags.0 & flags::ROBOTS != 0 {
        return Ok(own);
    }
    Ok(Some(own.unwrap_or(0.0).max(1.0)))
}

/// Whether it is a sitemap or feed.
fn tells_of_others(visit: &Visit) -> bool {
    matches!(DocumentKind::from_code(visit.kind), DocumentKind::Sitemap | DocumentKind::Feed)
}

/// The days without a fetch that would make a page as probably changed as an announcement does; 0 without one.
///
/// An announcement that is true with probability q adds -ln(1 - q) to the expected number of changes λτ.
fn announced_days(visit: &Visit, rate: f64) -> f64 {
    if visit.announced == 0 {
        return 0.0;
    }
    -(1.0 - announcement_trust(visit)).ln() / rate
}

/// What the visits of the whole archive say of a page that was not yet fetched twice. Feeds and sitemaps change whenever
/// one of their pages does, so they say nothing of other pages' rates.
///
/// # Errors
/// When the store fails.
pub fn archive_prior(state: &State) -> Result<RatePrior, CreditError> {
    let step =
        usize::try_from(state.totals().fetched).unwrap_or(usize::MAX).div_ceil(PRIOR_VISITS_MAX).max(1);
    let mut pages = Vec::new();
    for visit in state.visits().step_by(step) {
        let (page, visit) = visit?;
        let observations = ChangeObservations::from_bytes(&visit.extension);
        if observations.visits() > 0
            && !tells_of_others(&visit)
            && state.page(page)?.flags.0 & flags::ACCOUNT != 0
        {
            pages.push(observations);
        }
    }
    Ok(RatePrior::learned(&pages))
}

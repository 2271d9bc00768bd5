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
use crate::refresh::rate::{ChangeObservations, RateGroup, RatePrior};

/// The rule by which a refresh chooses.
pub const REFRESH_RULE: Rule = Rule::Xyleme;

const SECONDS_PER_DAY: f64 = 86_400.0;

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
    // A seed that is not there is worth a look now and then, like an average page: somebody asked for it.
    let missed = page.flags.0 & flags::VANISHED != 0 && page.flags.0 & flags::SEED != 0;
    let own = credits.importance_of(state, id)?.or(missed.then_some(1.0));
    let tells = matches!(DocumentKind::from_code(visit.kind), DocumentKind::Sitemap | DocumentKind::Feed);
    if !tells || page.flags.0 & flags::ROBOTS != 0 {
        return Ok(own);
    }
    Ok(Some(own.unwrap_or(0.0).max(1.0)))
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

/// What the rates of the whole archive say of a page that was not yet fetched twice.
///
/// # Errors
/// When the store fails.
pub fn archive_prior(state: &State) -> Result<RatePrior, CreditError> {
    let above = RatePrior::default();
    let mut group = RateGroup::default();
    for visit in state.visits() {
        let (page, visit) = visit?;
        if state.page(page)?.flags.0 & flags::ACCOUNT != 0 {
            count(&mut group, &visit, &above);
        }
    }
    Ok(group.prior(&above))
}

fn count(group: &mut RateGroup, visit: &Visit, above: &RatePrior) {
    let mut observations = ChangeObservations::from_bytes(&visit.extension);
    if observations.visits() > 0 {
        let rate = observations.rate(above);
        RateGroup::count(&mut [group], &mut observations, &rate);
    }
}

//! How fresh the copies of the archive are, now and in the past.
//!
//! Expected numbers follow from the learned change rates ([`Belief`]), observed ones from the results of fetches
//! ([`observe`]). Both are averages over pages, weighted by importance. A page counts if it has a copy and its last
//! answer was not an error.

mod belief;
mod lives;
mod observations;
mod parts;

use std::collections::HashSet;

use archive_base::error::Failure;
use archive_base::runs::CopiesState;
use archive_books::ledger::{CreditError, Credits, announcement_trust};
use archive_books::prepared::archive_prior;
use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_storage::{Page, Store, UrlId, Visit};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::due::{RefreshRules, Weights};

pub use belief::Belief;
pub use lives::{DaysClass, DaysSpread, GROUPS_MAX, GroupLives, Grouping, Growth, Lives};
use lives::{LivesCount, is_there};
pub use observations::{Observed, observe};
pub use parts::{PartModel, PartsShown};

/// Seconds of a day.
pub const SECONDS_PER_DAY: f64 = 86_400.0;

/// A page and its copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageModel {
    /// The page.
    pub id: UrlId,
    /// Importance of the page; the mean over all known pages is 1.
    pub importance: f64,
    /// Weight of the page in a refresh.
    pub weight: f64,
    /// The copy.
    pub copy: CopyModel,
}

/// The expected state of a copy, regardless of the value of its page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyModel {
    /// The change rate of the page.
    pub belief: Belief,
    /// Days since the copy was last known to be current.
    pub age: f64,
    /// Probability that an announcement of a change since then is true; 0 without an announcement.
    pub announced: f64,
}

impl CopyModel {
    /// Returns the probability that the copy is unchanged.
    #[must_use]
    pub fn fresh(&self) -> f64 {
        self.belief.fresh(self.age) * (1.0 - self.announced)
    }

    /// Returns the days of age that an announcement counts as; see [`super::most_obsolete`].
    pub(crate) fn announced_days(&self) -> f64 {
        -(1.0 - self.announced).ln() / self.belief.per_day
    }

    /// Describes the copy of a page; `None` if it has none, or if the last answer was an error.
    fn of(prior: &RatePrior, visit: &Visit, now: DateTime<Utc>) -> Option<Self> {
        if visit.contents == 0 || visit.status >= 400 {
            return None;
        }
        Some(Self {
            belief: ChangeObservations::from_bytes(&visit.extension).rate(prior).into(),
            // An attempt that brought nothing does not count.
            age: ((now.timestamp() - i64::from(visit.last_seen)) as f64 / SECONDS_PER_DAY).max(0.0),
            announced: if visit.announced == 0 { 0.0 } else { announcement_trust(visit) },
        })
    }
}

/// Returns the probability that the copy of a page is unchanged; `None` if it has none, or if the last answer was an
/// error.
#[must_use]
pub fn fresh(prior: &RatePrior, visit: &Visit, now: DateTime<Utc>) -> Option<f64> {
    CopyModel::of(prior, visit, now).map(|copy| copy.fresh())
}

/// Returns the copies of an archive, or of the pages in `selection`, with weights by the rules of the archive.
///
/// # Errors
/// If the archive cannot be read.
pub fn copies_of(
    store: &Store,
    selection: Option<&HashSet<UrlId>>,
    now: DateTime<Utc>,
) -> Result<Vec<PageModel>, Failure> {
    copies_among(store, 1, is_among(selection), now, |_, _, _| {})
}

/// Returns the copies as [`copies_of`] does, and the lives of the same pages, including those that are gone: grouped by
/// `by`, and over time from `from` on.
///
/// # Errors
/// If the archive cannot be read.
pub fn copies_and_lives(
    store: &Store,
    selection: Option<&HashSet<UrlId>>,
    by: Option<Grouping>,
    from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(Vec<PageModel>, Lives), Failure> {
    let mut lives = LivesCount::new(store.state(), by, now)?;
    let copies = copies_among(store, 1, is_among(selection), now, |page, visit, copy| {
        lives.add(page, visit, copy);
    })?;
    Ok((copies, lives.lives(store.state(), from)?))
}

fn is_among(selection: Option<&HashSet<UrlId>>) -> impl Fn(UrlId) -> bool {
    move |id| selection.is_none_or(|selection| selection.contains(&id))
}

/// Returns the copies of every `step`-th fetched page, in the order of first fetches. Other pages are not read.
///
/// # Errors
/// If the archive cannot be read.
pub fn sampled_copies(store: &Store, step: usize, now: DateTime<Utc>) -> Result<Vec<PageModel>, Failure> {
    copies_among(store, step, |_| true, now, |_, _, _| {})
}

fn copies_among(
    store: &Store,
    step: usize,
    is_meant: impl Fn(UrlId) -> bool,
    now: DateTime<Utc>,
    mut each: impl FnMut(&Page, &Visit, Option<&PageModel>),
) -> Result<Vec<PageModel>, Failure> {
    let state = store.state();
    let credits = Credits::open(state)?;
    let weights = Weights::read(store.path(), &RefreshRules::kept(state)?.weight)?;
    let prior = archive_prior(&[state]).map_err(CreditError::from)?;
    let mut copies = Vec::new();
    for visit in state.visits_with_pages((0..).step_by(step)) {
        let (id, page, visit) = visit.map_err(CreditError::from)?;
        if !is_meant(id) {
            continue;
        }
        let copy = CopyModel::of(&prior, &visit, now).zip(credits.importance(&page, Some(&visit)));
        if let Some((copy, importance)) = copy {
            let weight = weights.of(state, (id, &page), Some(importance), &visit)?.unwrap_or(importance);
            copies.push(PageModel { id, importance, weight, copy });
        }
        each(&page, &visit, copy.and(copies.last()));
    }
    Ok(copies)
}

/// Number of fetched URLs that stand for all in [`state_of_copies`], at most.
const SAMPLE_MAX: usize = 4096;

/// Returns how many pages there are and how fresh their copies are, as a run notes it at its end.
///
/// # Errors
/// If the archive cannot be read.
pub fn state_of_copies(store: &Store, now: DateTime<Utc>) -> Result<CopiesState, Failure> {
    let step = (store.state().visit_count() as usize).div_ceil(SAMPLE_MAX).max(1);
    let (mut pages, mut gone) = (0, 0);
    let copies = copies_among(
        store,
        step,
        |_| true,
        now,
        |page, visit, _| match is_there(page, visit) {
            Some(true) => pages += step as u64,
            Some(false) => gone += step as u64,
            None => {}
        },
    )?;
    let Expected { freshness, age_days, .. } = expect(&copies, 0.0, &[]);
    Ok(CopiesState { pages, gone, freshness, age_days })
}

/// Expected freshness of the copies now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Number of pages with a copy.
    pub pages: usize,
    /// Share of unchanged copies, weighted by importance.
    pub freshness: f64,
    /// The same with equal weights.
    pub freshness_unweighted: f64,
    /// Weighted mean of the days since the first missed change.
    pub age_days: f64,
    /// Weighted mean of the days since copies were known to be current.
    pub copy_age_days: f64,
    /// Currency for each β.
    pub currency: Vec<Currency>,
}

/// (α,β)-currency for one β.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Currency {
    /// β in days: a copy is current if its first missed change is younger.
    pub beta_days: f64,
    /// Expected share of current copies, weighted by importance.
    pub share: f64,
    /// Weighted share of copies that are current with a probability of at least α.
    pub share_alpha: f64,
}

/// Computes the expected freshness of copies now, for a probability α and several β in days.
#[must_use]
pub fn expect(copies: &[PageModel], alpha: f64, betas: &[f64]) -> Expected {
    let weight: f64 = copies.iter().map(|copy| copy.importance).sum();
    let mean = |value: &dyn Fn(&PageModel) -> f64| {
        let sum: f64 = copies.iter().map(|copy| copy.importance * value(copy)).sum();
        if weight > 0.0 { sum / weight } else { 0.0 }
    };
    let current = |PageModel { copy, .. }: &PageModel, beta: f64| {
        // The age of an announced change is unknown; within β it is ignored.
        let announced = if beta >= copy.age { 0.0 } else { copy.announced };
        copy.belief.current(copy.age, beta) * (1.0 - announced)
    };
    let currency = betas.iter().map(|&beta| Currency {
        beta_days: beta,
        share: mean(&|copy| current(copy, beta)),
        share_alpha: mean(&|copy| f64::from(u8::from(current(copy, beta) >= alpha))),
    });
    Expected {
        pages: copies.len(),
        freshness: mean(&|page| page.copy.fresh()),
        freshness_unweighted: copies.iter().map(|page| page.copy.fresh()).sum::<f64>()
            / copies.len().max(1) as f64,
        age_days: mean(&|page| page.copy.belief.outdated_days(page.copy.age)),
        copy_age_days: mean(&|page| page.copy.age),
        currency: currency.collect(),
    }
}

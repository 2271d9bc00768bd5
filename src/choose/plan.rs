//! What a budget achieves: the expected outcome of future refresh runs.
//!
//! Every run fetches the pages that the rule of the refresh ranks first, none sooner than its shortest interval.
//! Between runs copies age according to their change rates. Nothing is drawn at random, so the same archive gives the
//! same forecast. The forecast ignores pages yet to be discovered and what future runs will learn about rates.

mod periods;

use archive_math::refresh::budget::BudgetRule;

pub use periods::{Guarantee, Period};

use super::freshness::{PageModel, PartModel};

/// Maximum number of pages in a forecast. Of more pages every n-th is taken, and the budget is scaled down.
pub const SAMPLE_MAX: usize = 20_000;

/// Maximum number of runs in a forecast.
pub const RUNS_MAX: usize = 2_000;

/// Maximum number of bisection steps in the search for a budget.
const SEARCH_STEPS: usize = 24;

/// How runs rank pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunRanking {
    /// The rule.
    pub by: BudgetRule,
    /// Minimum number of days between two fetches of a page.
    pub shortest: f64,
    /// Weight below which pages are not fetched.
    pub floor: f64,
}

impl RunRanking {
    /// Ranks by a rule, without a shortest interval and for all pages.
    #[must_use]
    pub fn by(rule: BudgetRule) -> Self {
        Self { by: rule, shortest: 0.0, floor: 0.0 }
    }
}

/// A series of future refresh runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSeries {
    /// Maximum number of pages per run.
    pub budget: f64,
    /// Days between two runs; the first is now.
    pub every: f64,
    /// Length of the forecast in days.
    pub days: f64,
    /// Days for which missed changes are forgiven in [`Forecast::current`].
    pub grace: f64,
}

/// What the runs achieve, averaged over the days of the forecast and weighted by importance.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Forecast {
    /// Maximum number of pages per run.
    pub budget: u64,
    /// Fetches of all runs in total.
    pub fetches: u64,
    /// Expected share of time for which copies are unchanged.
    pub freshness: f64,
    /// Expected share of time for which copies have missed no change older than the grace period.
    pub current: f64,
    /// The same with equal weights.
    pub freshness_unweighted: f64,
    /// Expected number of days since the first missed change.
    pub age_days: f64,
}

/// Returns the expected number of requests in the runs of a forecast over this many pages: the pages that are fetched,
/// and those of their parts that are asked with them, at most `parts_max` per run.
#[must_use]
pub fn requests(
    forecast: &Forecast,
    runs: &RunSeries,
    pages: usize,
    parts: &[PartModel],
    parts_max: u64,
) -> u64 {
    let count = (runs.days / runs.every).max(1.0);
    let share = forecast.fetches as f64 / count / pages.max(1) as f64;
    let parts: f64 = parts.iter().map(|part| part.requests(share, runs.every, runs.days)).sum();
    forecast.fetches + parts.min(parts_max as f64 * count).round() as u64
}

/// The pages of a forecast, and how many pages each stands for.
#[derive(Debug)]
pub struct ForecastSample<'a> {
    pages: Vec<&'a PageModel>,
    stands_for: f64,
}

impl<'a> ForecastSample<'a> {
    /// Takes at most [`SAMPLE_MAX`] of these pages.
    #[must_use]
    pub fn of(pages: &'a [PageModel]) -> Self {
        Self::drawn(pages.iter().step_by(Self::step(pages.len())).collect(), pages.len())
    }

    /// Uses a sample drawn elsewhere: every [`ForecastSample::step`]-th of `count` pages.
    #[must_use]
    pub fn drawn(pages: Vec<&'a PageModel>, count: usize) -> Self {
        let stands_for = count as f64 / pages.len().max(1) as f64;
        Self { pages, stands_for }
    }

    /// Sampling step for this many pages: every n-th page is in the sample.
    #[must_use]
    pub fn step(count: usize) -> usize {
        count.div_ceil(SAMPLE_MAX).max(1)
    }

    /// Whether pages were left out.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.stands_for > 1.0
    }

    /// Number of pages that the sample stands for.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.pages.len() as f64 * self.stands_for).round() as usize
    }

    /// Whether the sample is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Forecasts the outcome of `runs` ranked by `ranking`.
    #[must_use]
    pub fn forecast(&self, ranking: &RunRanking, runs: &RunSeries) -> Forecast {
        let mut ages: Vec<f64> = self.pages.iter().map(|page| page.copy.age).collect();
        // Days that an announcement adds to an age, until the page is fetched.
        let mut announced: Vec<f64> = self.pages.iter().map(|page| page.copy.announced_days()).collect();
        let mut scores: Vec<(f64, usize)> = Vec::with_capacity(self.pages.len());
        let weight: f64 = self.pages.iter().map(|page| page.importance).sum();
        let (mut fresh, mut fresh_alike, mut current, mut outdated) = (0.0, 0.0, 0.0, 0.0);
        let (mut fetched, mut owed) = (0, 0.0);
        let count = ((runs.days / runs.every).ceil() as usize).clamp(1, RUNS_MAX);
        let span = runs.days / count as f64;
        for _ in 0..count {
            owed += runs.budget / self.stands_for;
            let budget = (owed as usize).min(self.pages.len());
            owed -= owed.floor();
            if budget > 0 {
                scores.clear();
                let ripe =
                    self.pages.iter().enumerate().filter(|(place, page)| {
                        ages[*place] >= ranking.shortest && page.weight >= ranking.floor
                    });
                scores.extend(ripe.map(|(place, page)| {
                    let age = ages[place] + announced[place];
                    (ranking.by.value(page.weight, page.copy.belief.per_day, age), place)
                }));
                let budget = budget.min(scores.len());
                if budget < scores.len() {
                    scores.select_nth_unstable_by(budget, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                }
                for &(_, place) in &scores[..budget] {
                    (ages[place], announced[place]) = (0.0, 0.0);
                }
                fetched += budget;
            }
            for (place, page) in self.pages.iter().enumerate() {
                let (from, to) = (ages[place], ages[place] + span);
                let is_true = (-announced[place] * page.copy.belief.per_day).exp();
                let mean = page.copy.belief.fresh_between(from, to) * is_true;
                fresh += page.importance * mean;
                if runs.grace > 0.0 {
                    // The age of an announced change is unknown; within the grace period it is ignored.
                    let is_true = if runs.grace >= to { 1.0 } else { is_true };
                    current +=
                        page.importance * page.copy.belief.current_between(from, to, runs.grace) * is_true;
                }
                fresh_alike += mean;
                outdated += page.importance * page.copy.belief.outdated_days(f64::midpoint(from, to));
                ages[place] = to;
            }
        }
        let runs_counted = count as f64;
        let share = |sum: f64, of: f64| if of > 0.0 { sum / of / runs_counted } else { 1.0 };
        let current = if runs.grace > 0.0 { current } else { fresh };
        Forecast {
            budget: runs.budget.round() as u64,
            fetches: (fetched as f64 * self.stands_for).round() as u64,
            freshness: share(fresh, weight),
            current: share(current, weight),
            freshness_unweighted: share(fresh_alike, self.pages.len() as f64),
            age_days: if weight > 0.0 { outdated / weight / runs_counted } else { 0.0 },
        }
    }

    /// Returns the forecast of the smallest budget that keeps the share `current` of the copies current; `None` if even
    /// fetching every page in each run does not. Without a grace period, current copies are fresh.
    #[must_use]
    pub fn budget_for(&self, ranking: &RunRanking, runs: &RunSeries, current: f64) -> Option<Forecast> {
        let at = |budget: f64| self.forecast(ranking, &RunSeries { budget, ..*runs });
        let mut best = Some(at(self.len() as f64)).filter(|all| all.current >= current)?;
        let (mut low, mut high) = (0.0, self.len() as f64);
        for _ in 0..SEARCH_STEPS {
            if high - low <= 1.0 {
                break;
            }
            let middle = f64::midpoint(low, high).round();
            let forecast = at(middle);
            if forecast.current >= current {
                (best, high) = (forecast, middle);
            } else {
                low = middle;
            }
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::UrlId;

    use super::{ForecastSample, RunRanking, RunSeries};
    use crate::freshness::{Belief, CopyModel, PageModel};
    use archive_math::refresh::budget::BudgetRule;

    fn pages(count: u32, rate: f64) -> Vec<PageModel> {
        let page = |number: u32| PageModel {
            id: UrlId(number),
            importance: 1.0,
            weight: 1.0,
            copy: CopyModel { belief: Belief::sure(rate), age: f64::from(number % 10), announced: 0.0 },
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn equal_pages_are_fetched_in_turn() {
        let pages = pages(1000, 0.05);
        let sample = ForecastSample::of(&pages);
        let runs = RunSeries { budget: 100.0, every: 1.0, days: 60.0, grace: 0.0 };
        let forecast = sample.forecast(&RunRanking::by(BudgetRule::Xyleme), &runs);
        let x: f64 = 0.05 * 10.0;
        assert!((forecast.freshness - (1.0 - (-x).exp()) / x).abs() < 0.003, "{forecast:?}");
        assert_eq!((forecast.fetches, forecast.freshness), (6000, forecast.freshness_unweighted));
        let day = sample.forecast(&RunRanking::by(BudgetRule::Xyleme), &RunSeries { grace: 1.0, ..runs });
        let y: f64 = 0.05 * 9.0;
        let expected = 0.1 + 0.9 * (1.0 - (-y).exp()) / y;
        assert!((day.current - expected).abs() < 0.003 && day.freshness == forecast.freshness, "{day:?}");
        // Mean index age of a page that is fetched every ten days.
        let expected = 5.0 - 20.0 + (1.0 - (-x).exp()) / (x * 0.05);
        assert!((forecast.age_days - expected).abs() < 0.05, "{forecast:?} {expected}");
    }

    #[test]
    fn more_budget_buys_more_and_a_target_has_its_budget() {
        let mut pages = pages(500, 0.1);
        for (number, page) in pages.iter_mut().enumerate() {
            page.importance = 1.0 + (number % 7) as f64;
            page.weight = page.importance;
            page.copy.belief = Belief { per_day: 0.01 * (1 + number % 13) as f64, shape: 2.0 };
        }
        let sample = ForecastSample::of(&pages);
        let runs = RunSeries { budget: 0.0, every: 1.0, days: 30.0, grace: 0.0 };
        let mut before = 0.0;
        for budget in [0.0, 5.0, 20.0, 80.0, 500.0] {
            let freshness =
                sample.forecast(&RunRanking::by(BudgetRule::Xyleme), &RunSeries { budget, ..runs }).freshness;
            assert!(freshness > before, "{budget}: {freshness} after {before}");
            before = freshness;
        }
        let found = sample.budget_for(&RunRanking::by(BudgetRule::Xyleme), &runs, 0.85).unwrap();
        assert!(found.freshness >= 0.85 && found.budget > 0);
        let less = RunSeries { budget: found.budget as f64 - 1.0, ..runs };
        assert!(sample.forecast(&RunRanking::by(BudgetRule::Xyleme), &less).freshness < 0.85);
        assert_eq!(sample.budget_for(&RunRanking::by(BudgetRule::Xyleme), &runs, 0.9999), None);
    }

    #[test]
    fn a_sample_stands_for_all() {
        let all = pages(60_000, 0.05);
        let sample = ForecastSample::of(&all);
        assert!(sample.is_part() && sample.len() == 60_000);
        let runs = RunSeries { budget: 6000.0, every: 1.0, days: 20.0, grace: 0.0 };
        let forecast = sample.forecast(&RunRanking::by(BudgetRule::Xyleme), &runs);
        assert!(forecast.fetches.abs_diff(120_000) < 100, "{forecast:?}");
        assert!((forecast.freshness - 0.787).abs() < 0.01, "{forecast:?}");
    }
}

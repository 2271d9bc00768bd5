//! How often pages have to be fetched so that their copies are current.
//!
//! A copy is β-current if it has missed no change that is older than a grace period β; a collection is (α,β)-current if
//! a copy drawn at random at any time is β-current with a probability of at least α (Brewington and Cybenko, "How
//! dynamic is the web?", WWW 2000, section 4). Copies are drawn by importance.

use serde::Serialize;

use super::ForecastSample;
use crate::freshness::{DaysClass, PageModel};

/// Maximum period in days; pages that need no more frequent fetches need none.
const PERIOD_DAYS_MAX: f64 = 36_500.0;

/// Number of bisection steps that determine a period precisely enough.
const STEPS: usize = 50;

/// What is to be achieved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Guarantee {
    /// α: the share of current copies, from 0 to 1.
    pub current: f64,
    /// β in days; 0 for copies that have missed no change at all.
    pub grace_days: f64,
}

/// The period that keeps pages current.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    /// What it achieves.
    #[serde(flatten)]
    pub guarantee: Guarantee,
    /// The mean time between changes of the pages; `None` for all pages.
    pub changes_every_days: Option<DaysClass>,
    /// Number of pages.
    pub pages: usize,
    /// Longest number of days between two fetches of each of them; `None` if they need no fetches.
    pub period_days: Option<f64>,
    /// Number of fetches per run that this takes; `None` if they would have to be fetched more often than runs are.
    pub budget: Option<u64>,
}

impl Guarantee {
    /// Returns the longest period in days, the same for all of these pages, that keeps them current; `None` if they
    /// need no fetches.
    fn period(self, pages: &[&PageModel]) -> Option<f64> {
        let weight: f64 = pages.iter().map(|page| page.importance).sum();
        let is_kept = |period: f64| {
            let current = |page: &&PageModel| {
                page.importance * page.copy.belief.current_between(0.0, period, self.grace_days)
            };
            pages.iter().map(current).sum::<f64>() >= self.current * weight
        };
        if is_kept(PERIOD_DAYS_MAX) {
            return None;
        }
        let (mut low, mut high) = (self.grace_days, PERIOD_DAYS_MAX);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if is_kept(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl ForecastSample<'_> {
    /// Returns the periods that keep the pages of each class of change rates current, with runs every `every` days, and
    /// last the one that keeps all pages together current.
    #[must_use]
    pub fn periods(&self, guarantee: Guarantee, every: f64) -> Vec<Period> {
        let period = |class: Option<DaysClass>, pages: &[&PageModel]| {
            let days = guarantee.period(pages);
            let count = pages.len() as f64 * self.stands_for;
            let budget = match days {
                None => Some(0),
                Some(days) => (days >= every).then(|| (count * every / days).ceil() as u64),
            };
            Period {
                guarantee,
                changes_every_days: class,
                pages: count.round() as usize,
                period_days: days,
                budget,
            }
        };
        let of_class = |class: DaysClass| {
            let is_in = |page: &&&PageModel| class.contains(page.copy.belief.per_day.recip());
            let pages: Vec<&PageModel> = self.pages.iter().filter(is_in).copied().collect();
            (!pages.is_empty()).then(|| period(Some(class), &pages))
        };
        let mut periods: Vec<Period> = DaysClass::all().filter_map(of_class).collect();
        periods.push(period(None, &self.pages));
        periods
    }
}

#[cfg(test)]
mod tests {
    use archive_storage::UrlId;

    use super::*;
    use crate::freshness::{Belief, CopyModel};

    fn page(rate: f64) -> PageModel {
        let copy = CopyModel { belief: Belief::sure(rate), age: 0.0, announced: 0.0 };
        PageModel { id: UrlId(0), importance: 1.0, weight: 1.0, copy }
    }

    fn period(pages: &[PageModel], current: f64, grace_days: f64) -> Option<f64> {
        Guarantee { current, grace_days }.period(&pages.iter().collect::<Vec<_>>())
    }

    /// The mean lifetimes of the web's pages had a Weibull distribution of shape 1.4 and scale 152.2 days. With it the
    /// paper finds that the web has to be fetched every 18 days to be (.95, 1 week)-current, and every 8.5 days to be
    /// (.95, 1 day)-current.
    #[test]
    fn the_web_of_brewington_and_cybenko_has_their_periods() {
        const PAGES: u32 = 4000;
        let quantile = |place: u32| {
            let share = (f64::from(place) + 0.5) / f64::from(PAGES);
            152.2 * (-(-share).ln_1p()).powf(1.0 / 1.4)
        };
        let pages: Vec<PageModel> = (0..PAGES).map(|place| page(quantile(place).recip())).collect();
        let week = period(&pages, 0.95, 7.0).unwrap();
        let day = period(&pages, 0.95, 1.0).unwrap();
        assert!((week - 18.5).abs() < 0.1 && (day - 8.58).abs() < 0.05, "{week} {day}");
    }

    /// A Poisson page: 1 - α = (1 - β/I) (1 - (1 - e^(-λ(I - β))) / (λ(I - β))).
    #[test]
    fn a_page_is_current_as_often_as_promised() {
        for (rate, current, grace) in [(0.1, 0.9, 0.0), (0.1, 0.9, 2.0), (2.0, 0.5, 0.1)] {
            let interval = period(&[page(rate)], current, grace).unwrap();
            let x = rate * (interval - grace);
            let missed = (1.0 - grace / interval) * (1.0 - (1.0 - (-x).exp()) / x);
            assert!((1.0 - missed - current).abs() < 1e-5, "{rate} {interval} {missed}");
        }
        assert_eq!(period(&[page(1e-9)], 0.95, 1.0), None);
        let always = period(&[page(0.1)], 1.0, 3.0).unwrap();
        assert!((always - 3.0).abs() < 0.01, "{always}");
    }

    #[test]
    fn classes_have_periods_of_their_own() {
        let pages: Vec<PageModel> = [2.0, 0.5, 0.05].iter().flat_map(|rate| [page(*rate); 10]).collect();
        let sample = ForecastSample::of(&pages);
        let periods = sample.periods(Guarantee { current: 0.9, grace_days: 1.0 }, 1.0);
        assert_eq!(periods.iter().map(|period| period.pages).collect::<Vec<_>>(), [10, 10, 10, 30]);
        let days: Vec<f64> = periods.iter().map(|period| period.period_days.unwrap()).collect();
        assert!(days[0] < days[1] && days[1] < days[2] && (days[0]..days[2]).contains(&days[3]), "{days:?}");
        for period in &periods {
            let budget = (period.pages as f64 / period.period_days.unwrap()).ceil() as u64;
            assert_eq!(period.budget, Some(budget));
        }
        // Copies that may miss no change at all cannot be had with daily runs.
        assert_eq!(sample.periods(Guarantee { current: 0.9, grace_days: 0.0 }, 1.0)[0].budget, None);
    }
}

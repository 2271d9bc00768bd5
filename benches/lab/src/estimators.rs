//! Estimators of change rates on simulated pages with known true rates.
//!
//! Pages change as Poisson processes and are visited a number of times, one day apart on average: exactly, or between
//! 0.25 and 1.75 days apart. The bias of an estimate is its mean divided by the true rate, minus 1. Its error is the
//! root mean square of (estimate / true rate - 1).

use archive_math::graphs::random::Random;
use archive_math::refresh::rate::{ChangeObservations, Observation, RatePrior};

use crate::intervals::RateInterval;

/// Spacing of visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Exactly one day apart.
    Regular,
    /// Between 0.25 and 1.75 days apart.
    Irregular,
}

impl Spacing {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Irregular => "irregular",
        }
    }
}

/// An estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateEstimator {
    /// Number of visits that found a change divided by time; saturates at one change per visit.
    Naive,
    /// Cho and Garcia-Molina, "Estimating frequency of change" (2003): `-ln((n - X + ½)/(n + ½))` over the mean interval.
    Corrected,
    /// Avrachenkov, Patil and Thoppe's estimator, from the law of large numbers.
    LargeNumbers,
    /// The maximum of the sum that equation 9 of the Xyleme paper prints.
    PrintedSum,
    /// The maximum of the product, which is the true likelihood, with one changed and one unchanged pseudo interval of
    /// half a day.
    Product,
    /// The archive's estimator without dates: the product under a Gamma prior learned from all pages.
    Archive,
    /// The archive's estimator with last-modified dates.
    ArchiveDated,
}

impl RateEstimator {
    /// All estimators.
    pub const ALL: [Self; 7] = [
        Self::Naive,
        Self::Corrected,
        Self::LargeNumbers,
        Self::PrintedSum,
        Self::Product,
        Self::Archive,
        Self::ArchiveDated,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "X/T",
            Self::Corrected => "corrected X/T",
            Self::LargeNumbers => "law of large numbers",
            Self::PrintedSum => "printed sum",
            Self::Product => "product",
            Self::Archive => "archive",
            Self::ArchiveDated => "archive, dated",
        }
    }
}

/// Parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Number of pages for each rate.
    pub pages: usize,
    /// Number of visits of each page after the first.
    pub visits: usize,
    /// Random seed.
    pub seed: u64,
}

/// Accuracy of an estimator at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Result {
    /// The estimator.
    pub estimator: RateEstimator,
    /// Spacing of visits.
    pub spacing: Spacing,
    /// True rate, in changes per day.
    pub rate: f64,
    /// Mean of the estimates divided by the true rate, minus 1.
    pub bias: f64,
    /// Root mean square of (estimate / true rate - 1).
    pub error: f64,
    /// Share of true rates inside the stated 90 % interval; `None` if the estimator states none.
    pub coverage: Option<f64>,
}

/// Runs estimators at `rates`, which are equally frequent in the simulated archive.
pub fn study(
    estimators: &[RateEstimator],
    setting: &Setting,
    spacing: Spacing,
    rates: &[f64],
) -> Vec<Result> {
    let pages: Vec<Vec<Vec<Observation>>> = rates
        .iter()
        .enumerate()
        .map(|(number, &rate)| {
            let mut random = Random::for_item(setting.seed, number as u64);
            (0..setting.pages).map(|_| visits(&mut random, spacing, rate, setting.visits)).collect()
        })
        .collect();
    let mut results = Vec::new();
    for &estimator in estimators {
        let prior = learned_prior(estimator, &pages);
        for (&rate, pages) in rates.iter().zip(&pages) {
            let estimates: Vec<(f64, Option<RateInterval>)> =
                pages.iter().map(|page| estimate(estimator, page, &prior)).collect();
            let count = estimates.len() as f64;
            let mean = |value: &dyn Fn(f64) -> f64| {
                estimates.iter().map(|(estimate, _)| value(estimate / rate - 1.0)).sum::<f64>() / count
            };
            let stated: Vec<RateInterval> = estimates.iter().filter_map(|(_, stated)| *stated).collect();
            let inside = stated.iter().filter(|stated| (stated.low..=stated.high).contains(&rate)).count();
            results.push(Result {
                estimator,
                spacing,
                rate,
                bias: mean(&|off| off),
                error: mean(&|off| off * off).sqrt(),
                coverage: (!stated.is_empty()).then(|| inside as f64 / stated.len() as f64),
            });
        }
    }
    results
}

/// Simulates the visits of a page that changes at `rate`.
fn visits(random: &mut Random, spacing: Spacing, rate: f64, count: usize) -> Vec<Observation> {
    let mut until = |rate: f64| -(1.0 - random.unit()).ln() / rate;
    let mut next_change = until(rate);
    let mut changes = Vec::new();
    while next_change <= 2.0 * count as f64 {
        changes.push(next_change);
        next_change += until(rate);
    }
    let (mut now, mut found, mut visits) = (0.0, 0, Vec::with_capacity(count));
    for _ in 0..count {
        let interval = match spacing {
            Spacing::Regular => 1.0,
            Spacing::Irregular => 0.25 + 1.5 * random.unit(),
        };
        now += interval;
        let before = found;
        found = changes.partition_point(|at| *at <= now);
        // Before its first change, a page states a date long before the first visit.
        let last = if found > 0 { changes[found - 1] } else { -1.0 };
        visits.push(Observation { interval, changed: found > before, last_modified: Some(now - last) });
    }
    visits
}

fn learned_prior(estimator: RateEstimator, pages: &[Vec<Vec<Observation>>]) -> RatePrior {
    if !matches!(estimator, RateEstimator::Archive | RateEstimator::ArchiveDated) {
        return RatePrior::default();
    }
    let pages: Vec<ChangeObservations> =
        pages.iter().flatten().map(|visits| observed(estimator, visits)).collect();
    RatePrior::learned(&pages)
}

fn observed(estimator: RateEstimator, visits: &[Observation]) -> ChangeObservations {
    let mut page = ChangeObservations::new();
    for visit in visits {
        let dated = estimator == RateEstimator::ArchiveDated;
        page.observe(&Observation { last_modified: visit.last_modified.filter(|_| dated), ..*visit });
    }
    page
}

fn estimate(
    estimator: RateEstimator,
    visits: &[Observation],
    prior: &RatePrior,
) -> (f64, Option<RateInterval>) {
    let count = visits.len() as f64;
    let changes = visits.iter().filter(|visit| visit.changed).count() as f64;
    let days: f64 = visits.iter().map(|visit| visit.interval).sum();
    let point = match estimator {
        RateEstimator::Naive => changes / days,
        RateEstimator::Corrected => -((count - changes + 0.5) / (count + 0.5)).ln() * count / days,
        RateEstimator::LargeNumbers => count / days * (changes + 0.25) / (count + 0.5 - changes),
        RateEstimator::PrintedSum => maximum(|rate| {
            let (free, seen) = split(visits, rate, |x| -(-x).exp_m1());
            if changes > 0.0 { seen.ln() - free } else { -free }
        }),
        RateEstimator::Product => maximum(|rate| {
            let (free, seen) = split(visits, rate, |x| (-(-x).exp_m1()).ln());
            let pseudo = (-(-rate / 2.0).exp_m1()).ln() - rate / 2.0;
            seen - free + pseudo
        }),
        RateEstimator::Archive | RateEstimator::ArchiveDated => {
            let page = observed(estimator, visits);
            return (page.rate(prior).per_day, Some(RateInterval::of(&page, prior)));
        }
    };
    (point, None)
}

/// Returns Σ x over unchanged intervals and Σ `seen`(x) over changed ones, with x = `rate` times the length of the
/// interval.
fn split(visits: &[Observation], rate: f64, seen: impl Fn(f64) -> f64) -> (f64, f64) {
    visits.iter().fold((0.0, 0.0), |(free, sum), visit| {
        let x = rate * visit.interval;
        if visit.changed { (free, sum + seen(x)) } else { (free + x, sum) }
    })
}

/// Returns where `value`, which has a single maximum, is highest between 10⁻⁴ and 10³ changes per day, by golden
/// section search in ln λ.
fn maximum(value: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (1e-4_f64.ln(), 1e3_f64.ln());
    for _ in 0..40 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if value(left.exp()) < value(right.exp()) {
            low = left;
        } else {
            high = right;
        }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At one change in two days, a daily visit finds a change with probability 1 - e^(-1/2).
    #[test]
    fn the_naive_estimate_is_biased_as_computed() {
        let setting = Setting { pages: 2000, visits: 20, seed: 1 };
        let results = study(&[RateEstimator::Naive], &setting, Spacing::Regular, &[0.5]);
        let expected = (1.0 - (-0.5_f64).exp()) / 0.5 - 1.0;
        assert!((results[0].bias - expected).abs() < 0.02, "{:?} instead of {expected}", results[0]);
    }

    /// The stated interval contains the true rate nine times in ten: for rates from one change per month to three per
    /// day, for few and many visits, with and without dates, at regular and irregular intervals.
    #[test]
    fn coverage_is_what_is_stated() {
        let rates: Vec<f64> =
            (0..24).map(|step| 0.03 * (f64::from(step) / 23.0 * 100.0_f64.ln()).exp()).collect();
        let estimators = [RateEstimator::Archive, RateEstimator::ArchiveDated];
        for visits in [5, 20, 50] {
            let setting = Setting { pages: 60, visits, seed: 2 };
            for spacing in [Spacing::Regular, Spacing::Irregular] {
                let results = study(&estimators, &setting, spacing, &rates);
                for estimator in estimators {
                    let covered: Vec<f64> = results
                        .iter()
                        .filter(|result| result.estimator == estimator)
                        .filter_map(|result| result.coverage)
                        .collect();
                    let coverage = covered.iter().sum::<f64>() / covered.len() as f64;
                    assert!(
                        (0.87..=0.94).contains(&coverage),
                        "{} visits, {}, {}: {coverage}",
                        visits,
                        spacing.name(),
                        estimator.name()
                    );
                }
            }
        }
    }

    #[test]
    fn coverage_is_right_for_each_rate() {
        let mut random = Random::for_item(7, 0);
        let (archive, dated) = (RateEstimator::Archive, RateEstimator::ArchiveDated);
        for (rate, estimator) in [(0.1, archive), (0.5, archive), (2.0, archive), (0.1, dated), (2.0, dated)]
        {
            let prior = RatePrior::broad(rate);
            let mut holds = || {
                let page = observed(estimator, &visits(&mut random, Spacing::Irregular, rate, 20));
                let stated = RateInterval::of(&page, &prior);
                (stated.low..=stated.high).contains(&rate)
            };
            let coverage = (0..2000).filter(|_| holds()).count() as f64 / 2000.0;
            assert!((0.84..=0.97).contains(&coverage), "{} at {rate}: {coverage}", estimator.name());
        }
    }
}

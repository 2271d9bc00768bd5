//! The prior that best explains the visits of many pages: empirical Bayes.
//!
//! Sums over the estimates of single pages would be cheap, but pages visited once or twice only repeat the prior with
//! which they were estimated. Here expectation maximisation (Dempster, Laird, Rubin 1977) finds the Gamma distribution
//! that maximises the likelihood of all visits. Given the posterior of each page under the current prior, the next
//! prior matches the mean of the rates and of their logarithms.

use super::{ChangeObservations, RatePrior};
use crate::refresh::gamma::{SHAPES, digamma, mean_log};

/// Maximum number of pages in the computation; of more pages every n-th is taken.
const PAGES_MAX: usize = 4_000;

/// Maximum number of rounds.
const ROUNDS_MAX: usize = 60;

/// Relative change of mean and shape below which rounds end.
const PRECISION: f64 = 1e-3;

/// Number of pseudo-pages with the default prior, so that a few pages do not determine the distribution.
const USUAL_PAGES: f64 = 5.0;

/// Number of rates at which the likelihood of a page's visits is computed. They are evenly spaced in ln λ, so that sums
/// approximate integrals.
const GRID: usize = 96;
const GRID_LOG_RATES: (f64, f64) = (-18.0, 7.0);

impl RatePrior {
    /// Learns the prior from the visits of `pages`; returns the default one if there are no informative visits.
    #[must_use]
    pub fn learned(pages: &[ChangeObservations]) -> Self {
        let informative: Vec<&ChangeObservations> = pages.iter().filter(|page| page.visits() > 0).collect();
        let step = informative.len().div_ceil(PAGES_MAX).max(1);
        let sample: Vec<&ChangeObservations> = informative.into_iter().step_by(step).collect();
        let grid = grid();
        let likelihoods: Vec<[f64; GRID]> = sample.iter().map(|page| likelihood(page, &grid)).collect();
        let usual = Self::default();
        let mut prior = usual;
        for _ in 0..ROUNDS_MAX {
            let next = prior.next(&grid, &likelihoods, &usual);
            let moved = (next.mean() / prior.mean()).ln().abs() + (next.shape / prior.shape).ln().abs();
            prior = next;
            if moved < PRECISION {
                break;
            }
        }
        prior
    }

    /// Runs one round.
    fn next(&self, grid: &[f64; GRID], pages: &[[f64; GRID]], usual: &Self) -> Self {
        // Density, rate and log-rate at each node.
        let nodes = grid.map(|log_rate| {
            let rate = log_rate.exp();
            ((self.shape * log_rate - rate * self.days).exp(), rate, log_rate)
        });
        let (mut sum, mut log_sum) =
            (USUAL_PAGES * usual.mean(), USUAL_PAGES * mean_log(usual.shape, usual.mean()));
        let mut count = USUAL_PAGES;
        for page in pages {
            let (mut share, mut rates, mut logs) = (0.0, 0.0, 0.0);
            for (likelihood, (density, rate, log_rate)) in page.iter().zip(&nodes) {
                let weight = likelihood * density;
                share += weight;
                rates += weight * rate;
                logs += weight * log_rate;
            }
            // A page outside the support of the prior does not count.
            if share > 0.0 {
                sum += rates / share;
                log_sum += logs / share;
                count += 1.0;
            }
        }
        let mean = sum / count;
        let shape = shape_of(mean.ln() - log_sum / count);
        Self { shape, days: shape / mean }
    }
}

fn grid() -> [f64; GRID] {
    let step = (GRID_LOG_RATES.1 - GRID_LOG_RATES.0) / (GRID - 1) as f64;
    std::array::from_fn(|place| GRID_LOG_RATES.0 + step * place as f64)
}

/// Returns the likelihood of a page's visits over the grid, scaled to a maximum of 1.
fn likelihood(page: &ChangeObservations, grid: &[f64; GRID]) -> [f64; GRID] {
    let logs = grid.map(|log_rate| page.log_likelihood_at(log_rate.exp()));
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.map(|log| (log - top).exp())
}

/// Returns the shape a for which ln a - ψ(a) = `gap`, the difference between the logarithm of the mean and the mean of
/// the logarithms.
fn shape_of(gap: f64) -> f64 {
    let (mut low, mut high) = SHAPES;
    for _ in 0..50 {
        let middle = (low * high).sqrt();
        // The left side falls as the shape grows.
        if middle.ln() - digamma(middle) > gap {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::{ChangeObservations, Observation, RatePrior};
    use super::shape_of;
    use crate::refresh::gamma::digamma;

    /// Returns pages with few visits each, whose rates are evenly spaced in ln λ around `median`.
    fn pages(count: usize, median: f64, visits: usize) -> (Vec<ChangeObservations>, f64) {
        let mut dice = fastrand::Rng::with_seed(7);
        let mut sum = 0.0;
        let pages = (0..count).map(|_| {
            let rate = median * (4.0 * (dice.f64() - 0.5)).exp();
            sum += rate;
            let mut page = ChangeObservations::new();
            for _ in 0..visits {
                // From half a day to sixteen: with a single length, the share of changed visits says nothing about the
                // spread.
                let interval = 0.5 * (dice.f64() * 5.0).floor().exp2();
                let changed = dice.f64() < 1.0 - (-rate * interval).exp();
                page.observe(&Observation { interval, changed, last_modified: None });
            }
            page
        });
        let pages = pages.collect();
        (pages, sum / count as f64)
    }

    #[test]
    fn a_single_visit_each_gives_the_mean_rate() {
        for median in [0.02, 0.1, 0.4] {
            for visits in [1, 5] {
                let (pages, mean) = pages(2_000, median, visits);
                let learned = RatePrior::learned(&pages).mean();
                assert!(
                    (learned / mean).ln().abs() < 0.3,
                    "median {median}, {visits} visits: {learned} learned, {mean} true"
                );
            }
        }
    }

    #[test]
    fn nothing_seen_is_the_usual_prior() {
        let learned = RatePrior::learned(&[ChangeObservations::new(); 10]);
        assert!((learned.mean() / RatePrior::default().mean() - 1.0).abs() < 1e-2, "{learned:?}");
    }

    #[test]
    fn a_shape_is_found_by_its_gap() {
        for shape in [0.1, 1.0, 7.0] {
            let found: f64 = shape_of(f64::ln(shape) - digamma(shape));
            assert!((found / shape - 1.0).abs() < 1e-6, "{shape}: {found}");
        }
    }
}

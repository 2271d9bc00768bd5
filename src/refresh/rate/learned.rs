//! The prior that explains the visits of many pages best: empirical Bayes.
//!
//! Sums over the estimates of single pages would be cheap, but pages that were visited once or twice only repeat the prior
//! they were estimated with. Here the Gamma law is found under which all
//! visits together are most likely, by expectation and maximisation (Dempster, Laird, Rubin 1977): with each page's
//! posterior law under the prior so far, the next prior has the mean of the pages' rates and of their logarithms.

use super::{ChangeObservations, RatePrior};
use crate::refresh::gamma::{SHAPES, digamma, mean_log};

/// Pages that are computed with; of more, every n-th.
const PAGES_MAX: usize = 4_000;

/// Rounds at most.
const ROUNDS_MAX: usize = 60;

/// Rounds end when mean and shape change by less than this part.
const PRECISION: f64 = 1e-3;

/// Pages of the usual prior that count beside the real ones, so that few pages do not make a law.
const USUAL_PAGES: f64 = 5.0;

/// Rates at which the likelihood of a page's visits is computed: evenly spread over ln λ, so that a sum over them is an integral.
const GRID: usize = 96;
const GRID_LOG_RATES: (f64, f64) = (-18.0, 7.0);

impl RatePrior {
    /// The prior that is learned from the visits of `pages`; the usual one when they say nothing.
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

    /// One round.
    fn next(&self, grid: &[f64; GRID], pages: &[[f64; GRID]], usual: &Self) -> Self {
        // Density, rate and its logarithm at each node.
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
            // A page of which the prior knows nothing at all does not count.
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

/// The likelihood of a page's visits over the grid, 1 if it is highest.
fn likelihood(page: &ChangeObservations, grid: &[f64; GRID]) -> [f64; GRID] {
    let logs = grid.map(|log_rate| page.log_likelihood_at(log_rate.exp()));
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.map(|log| (log - top).exp())
}

/// The shape a with ln a - ψ(a) = `gap`, the distance between the logarithm of the mean and the mean of the logarithms.
fn shape_of(gap: f64) -> f64 {
    let (mut low, mut high) = SHAPES;
    for _ in 0..50 {
        let middle = (low * high).sqrt();
        // The left side falls with the shape.
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

    /// Pages with few visits each: rates with ln λ evenly spread around that of `median`.
    fn pages(count: usize, median: f64, visits: usize) -> (Vec<ChangeObservations>, f64) {
        let mut dice = fastrand::Rng::with_seed(7);
        let mut sum = 0.0;
        let pages = (0..count).map(|_| {
            let rate = median * (4.0 * (dice.f64() - 0.5)).exp();
            sum += rate;
            let mut page = ChangeObservations::new();
            for _ in 0..visits {
                // From half a day to sixteen: with one length only, one share says nothing of the spread.
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

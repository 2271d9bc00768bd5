//! What a page's rate probably is before its own visits speak: a Gamma law learned from its site and the archive.

use super::{ChangeObservations, Rate};
use crate::refresh::gamma::SHAPES;

/// Pages of the group above that a group counts beside its own, so that a young site resembles the archive.
const SHRINKING_PAGES: f64 = 5.0;

/// A Gamma law of rates: `shape` pseudo changes in `days` pseudo days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePrior {
    /// Pseudo changes; positive.
    pub shape: f64,
    /// Pseudo days; positive.
    pub days: f64,
}

impl RatePrior {
    /// The mean rate, changes a day.
    pub fn mean(&self) -> f64 {
        self.shape / self.days
    }

    /// The law of a group whose pages change at `mean` on average, with the broad spread rates have on the web.
    pub fn broad(mean: f64) -> Self {
        Self { shape: 0.5, days: 0.5 / mean }
    }
}

impl Default for RatePrior {
    /// One change in two months, the order of magnitude found by Cho and Garcia-Molina for the web at large.
    fn default() -> Self {
        Self::broad(1.0 / 60.0)
    }
}

/// The rates of a group of pages (a site, the archive) as sums that every visit keeps current.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateGroup {
    /// Pages counted.
    pub pages: f64,
    /// Σ ln λ over the counted pages.
    pub log_sum: f64,
    /// Σ (ln λ)² over the counted pages.
    pub log_square_sum: f64,
}

impl RateGroup {
    /// Counts `page` in all `groups` with its present estimate in place of the one counted before.
    pub fn count(groups: &mut [&mut Self], page: &mut ChangeObservations, rate: &Rate) {
        // The page keeps the rate as f32: take the rounded value, so that it cancels exactly later.
        let log_rate = f64::from(rate.per_day.ln() as f32);
        let before = page.counted_rate();
        for group in groups {
            if let Some(old) = before {
                group.pages -= 1.0;
                group.log_sum -= old;
                group.log_square_sum -= old * old;
            }
            group.pages += 1.0;
            group.log_sum += log_rate;
            group.log_square_sum += log_rate * log_rate;
        }
        page.set_counted_rate(log_rate);
    }

    /// Takes `page`, which has gone, out of all `groups`.
    pub fn forget(groups: &mut [&mut Self], page: &ChangeObservations) {
        let Some(old) = page.counted_rate() else { return };
        for group in groups {
            group.pages -= 1.0;
            group.log_sum -= old;
            group.log_square_sum -= old * old;
        }
    }

    /// The prior for a page of this group, shrunk towards `above` (the prior of the archive, or the default).
    ///
    /// The Gamma law with the mean and variance of ln λ that the group shows: variance ψ'(a) ≈ 1/a + 1/(2a²).
    pub fn prior(&self, above: &RatePrior) -> RatePrior {
        let pages = self.pages.max(0.0) + SHRINKING_PAGES;
        let above_log = above.mean().ln() - 0.5 / above.shape;
        let above_variance = 1.0 / above.shape + 0.5 / (above.shape * above.shape);
        let mean = (self.log_sum + SHRINKING_PAGES * above_log) / pages;
        let square = self.log_square_sum + SHRINKING_PAGES * (above_log * above_log + above_variance);
        let variance = (square / pages - mean * mean).max(1e-3);
        // Solve 1/a + 1/(2a²) = v.
        let shape = ((1.0 + (1.0 + 2.0 * variance).sqrt()) / (2.0 * variance)).clamp(SHAPES.0, SHAPES.1);
        RatePrior { shape, days: shape / (mean + 0.5 / shape).exp() }
    }
}

//! The prior of a page's rate before its own visits: a Gamma distribution, learned from other pages (`learned`).

/// A Gamma distribution of rates: `shape` pseudo-changes in `days` pseudo-days.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePrior {
    /// Pseudo-changes; positive.
    pub shape: f64,
    /// Pseudo-days; positive.
    pub days: f64,
}

impl RatePrior {
    /// The mean rate in changes per day.
    pub fn mean(&self) -> f64 {
        self.shape / self.days
    }

    /// The distribution for a group of pages with this mean rate and the broad spread of rates on the web.
    pub fn broad(mean: f64) -> Self {
        Self { shape: 0.5, days: 0.5 / mean }
    }
}

impl Default for RatePrior {
    /// One change in two months, the order of magnitude found by Cho and Garcia-Molina for the whole web.
    fn default() -> Self {
        Self::broad(1.0 / 60.0)
    }
}

//! What a page's rate probably is before its own visits speak: a Gamma law, learned from other pages (`learned`).

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

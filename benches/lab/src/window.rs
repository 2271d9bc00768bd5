//! The four window policies of the paper, and no window, for comparison.
//!
//! The crawler uses [`Credit`] (interpolation). The other policies keep a list of measures, which are the pairs (clock,
//! cash) of the last visits.

use std::collections::VecDeque;

use archive_math::importance::Credit;

/// How much of the history of a page counts. Times are in turns of G.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowPolicy {
    /// Everything since the start.
    All,
    /// The last `measures` visits.
    Variable {
        /// Number of visits, at least 1.
        measures: usize,
    },
    /// The visits during the last `time`.
    Fixed {
        /// Length of the window.
        time: f64,
    },
    /// Like [`WindowPolicy::Fixed`], but never fewer than `measures` visits.
    ImprovedFixed {
        /// Length of the window.
        time: f64,
        /// Minimum number of visits; the paper uses 3.
        measures: usize,
    },
    /// A single number, interpolated for the last `time`.
    Interpolation {
        /// Length of the window.
        time: f64,
    },
}

/// The history of a page under a window policy.
#[derive(Clone, Debug)]
pub enum CreditHistory {
    /// A running sum since the start.
    All {
        /// Cash that came in since then.
        sum: f64,
        /// Clock at the start.
        since: f64,
    },
    /// Measures, oldest first.
    Measures {
        /// (clock, cash) of each visit.
        measures: VecDeque<(f64, f64)>,
        /// Clock from which the cash of the first measure accumulated.
        since: f64,
    },
    /// An interpolated history.
    Credit(Credit),
}

impl WindowPolicy {
    /// Creates the history of a page whose account was opened at `clock`.
    #[must_use]
    pub fn begin(self, clock: f64) -> CreditHistory {
        match self {
            Self::All => CreditHistory::All { sum: 0.0, since: clock },
            Self::Interpolation { .. } => CreditHistory::Credit(Credit::first(0.0, 0.0, clock)),
            Self::Variable { .. } | Self::Fixed { .. } | Self::ImprovedFixed { .. } => {
                CreditHistory::Measures { measures: VecDeque::new(), since: clock }
            }
        }
    }

    /// Adds a visit at `clock` that found `cash`, and drops what has left the window.
    pub fn visit(self, history: &mut CreditHistory, cash: f64, clock: f64) {
        match history {
            CreditHistory::All { sum, .. } => *sum += cash,
            CreditHistory::Credit(credit) => {
                let time = if let Self::Interpolation { time } = self { time } else { f64::INFINITY };
                *credit = credit.measured(cash, clock, time);
            }
            CreditHistory::Measures { measures, since } => {
                measures.push_back((clock, cash));
                let (time, fewest) = self.limits();
                while measures.len() > fewest && measures.front().is_some_and(|first| first.0 < clock - time)
                {
                    if let Some((gone, _)) = measures.pop_front() {
                        *since = gone;
                    }
                }
            }
        }
    }

    /// Estimates at `clock` the cash that comes in per turn of G, when the page holds `cash`.
    #[must_use]
    pub fn rate(self, history: &CreditHistory, cash: f64, clock: f64) -> f64 {
        let per = |sum: f64, time: f64| if time > 0.0 { sum / time } else { 0.0 };
        match history {
            CreditHistory::All { sum, since } => per(sum + cash, clock - since),
            CreditHistory::Credit(credit) => credit.rate(cash, clock),
            CreditHistory::Measures { measures, since } => {
                let (time, fewest) = self.limits();
                let mut sum = cash;
                let mut begin = *since;
                // Measures that have left the window since the last visit no longer count.
                let mut remaining = measures.len();
                for &(measured, amount) in measures {
                    if remaining > fewest && measured < clock - time {
                        begin = measured;
                    } else {
                        sum += amount;
                    }
                    remaining -= 1;
                }
                per(sum, clock - begin)
            }
        }
    }

    /// Number of values stored for a page, which is the paper's measure of memory; 1 for interpolation.
    #[must_use]
    pub fn measures(history: &CreditHistory) -> usize {
        match history {
            CreditHistory::All { .. } | CreditHistory::Credit(_) => 1,
            CreditHistory::Measures { measures, .. } => measures.len(),
        }
    }

    /// Maximum age and minimum number of the measures that are kept.
    fn limits(self) -> (f64, usize) {
        match self {
            Self::Variable { measures } => (0.0, measures.max(1)),
            Self::Fixed { time } => (time, 0),
            Self::ImprovedFixed { time, measures } => (time, measures),
            Self::All | Self::Interpolation { .. } => (f64::INFINITY, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: [WindowPolicy; 5] = [
        WindowPolicy::All,
        WindowPolicy::Variable { measures: 4 },
        WindowPolicy::Fixed { time: 6.0 },
        WindowPolicy::ImprovedFixed { time: 6.0, measures: 3 },
        WindowPolicy::Interpolation { time: 6.0 },
    ];

    #[test]
    fn every_policy_finds_a_constant_rate() {
        for window in POLICIES {
            let mut history = window.begin(0.0);
            let mut clock = 0.0;
            for step in 0..50 {
                let elapsed = 0.25 + f64::from(step % 7) * 0.5;
                clock += elapsed;
                window.visit(&mut history, 0.01 * elapsed, clock);
                assert!((window.rate(&history, 0.005, clock + 0.5) - 0.01).abs() < 1e-6, "{window:?}");
            }
        }
    }

    #[test]
    fn measures_kept_are_those_of_the_policy() {
        let kept = |window: WindowPolicy, step: f64| {
            let mut history = window.begin(0.0);
            for visit in 1..=40 {
                window.visit(&mut history, 1.0, f64::from(visit) * step);
            }
            WindowPolicy::measures(&history)
        };
        assert_eq!(kept(WindowPolicy::Variable { measures: 4 }, 1.0), 4);
        assert_eq!(kept(WindowPolicy::Fixed { time: 6.0 }, 1.0), 7);
        assert_eq!(kept(WindowPolicy::Fixed { time: 6.0 }, 10.0), 1);
        assert_eq!(kept(WindowPolicy::ImprovedFixed { time: 6.0, measures: 3 }, 10.0), 3);
        assert_eq!(kept(WindowPolicy::Interpolation { time: 6.0 }, 1.0), 1);
    }
}

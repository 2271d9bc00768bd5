//! The expected state of a copy whose page changes at an uncertain rate.
//!
//! Changes follow a Poisson process. Its rate λ has a Gamma distribution with the mean λ̄ and the certainty of its
//! estimate. A copy of age τ is then unchanged with probability E\[e^(-λτ)\] = (1 + λ̄τ/k)^(-k), where k is the shape
//! of the distribution. That is e^(-λ̄τ) for a certain estimate, and more for an uncertain one, because the page may be
//! slow. All other numbers follow from this one.

use archive_math::refresh::rate::Rate;

/// Maximum shape; beyond it the rate is as good as known.
const SHAPE_MAX: f64 = 1e6;

/// A change rate and its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Mean of the rate in changes per day; positive.
    pub per_day: f64,
    /// Shape of the Gamma distribution: approximately 1 / variance of ln λ.
    pub shape: f64,
}

impl Belief {
    /// A known rate.
    #[must_use]
    pub fn sure(per_day: f64) -> Self {
        Self { per_day, shape: SHAPE_MAX }
    }

    /// Returns the probability that a copy of this age in days is unchanged.
    #[must_use]
    pub fn fresh(&self, age: f64) -> f64 {
        (-self.shape * (self.per_day * age / self.shape).ln_1p()).exp()
    }

    /// Returns the mean of [`fresh`](Self::fresh) over ages from `from` to `to` days.
    pub(crate) fn fresh_between(&self, from: f64, to: f64) -> f64 {
        let span = to - from;
        if self.per_day * span < 1e-9 {
            return self.fresh(from);
        }
        let antiderivative = |age: f64| {
            let log = (self.per_day * age / self.shape).ln_1p();
            if (self.shape - 1.0).abs() < 1e-9 {
                return log / self.per_day;
            }
            // k/(λ(1 - k)) · ((1 + λτ/k)^(1-k) - 1), in a form that avoids cancellation.
            self.shape / (self.per_day * (1.0 - self.shape)) * ((1.0 - self.shape) * log).exp_m1()
        };
        ((antiderivative(to) - antiderivative(from)) / span).clamp(0.0, 1.0)
    }

    /// Returns the expected days since the first change that a copy of this age has missed; 0 while it is unchanged.
    pub(crate) fn outdated_days(&self, age: f64) -> f64 {
        (age * (1.0 - self.fresh_between(0.0, age))).max(0.0)
    }

    /// Returns the probability that a copy is unchanged or that its first missed change is younger than `grace` days.
    /// (α,β)-currency requires at least α for a grace of β (Brewington and Cybenko, "How dynamic is the web?", WWW
    /// 2000).
    #[must_use]
    pub fn current(&self, age: f64, grace: f64) -> f64 {
        self.fresh((age - grace).max(0.0))
    }

    /// Returns the mean of [`current`](Self::current) over ages from `from` to `to` days. With `from` 0 it is the share
    /// of time for which a copy that is fetched every `to` days is current.
    #[must_use]
    pub fn current_between(&self, from: f64, to: f64, grace: f64) -> f64 {
        let (first, last) = ((from - grace).max(0.0), to - grace);
        if last <= first {
            return self.fresh(first);
        }
        let share = (last - first) / (to - from);
        1.0 - share * (1.0 - self.fresh_between(first, last))
    }
}

impl From<Rate> for Belief {
    fn from(rate: Rate) -> Self {
        Self { per_day: rate.per_day, shape: rate.shape.min(SHAPE_MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::Belief;

    #[test]
    fn a_sure_rate_gives_the_formulas_of_the_papers() {
        let belief = Belief::sure(0.3);
        let x: f64 = 0.3 * 5.0;
        assert!((belief.fresh(5.0) - (-x).exp()).abs() < 1e-4);
        assert!((belief.fresh_between(0.0, 5.0) - (1.0 - (-x).exp()) / x).abs() < 1e-4);
        // Index age at the end of an interval: τ - 1/λ + e^(-λτ)/λ.
        assert!((belief.outdated_days(5.0) - (5.0 - 1.0 / 0.3 + (-x).exp() / 0.3)).abs() < 1e-3);
        assert_eq!(belief.current(5.0, 7.0), 1.0);
        assert!((belief.current(5.0, 2.0) - belief.fresh(3.0)).abs() < 1e-12);
    }

    #[test]
    fn means_of_currency_agree_with_sums() {
        for (from, to, grace) in
            [(0.0, 12.0, 0.0), (0.0, 12.0, 2.0), (3.0, 12.0, 5.0), (3.0, 12.0, 1.0), (0.0, 3.0, 4.0)]
        {
            let belief = Belief { per_day: 0.2, shape: 1.5 };
            let at = |step: u32| from + (to - from) * (f64::from(step) + 0.5) / 20_000.0;
            let sum: f64 = (0..20_000).map(|step| belief.current(at(step), grace)).sum();
            let mean = belief.current_between(from, to, grace);
            assert!((mean - sum / 20_000.0).abs() < 1e-6, "{from} to {to}, grace {grace}: {mean}");
        }
        assert_eq!(Belief::sure(2.0).current_between(1.0, 1.0, 0.0), Belief::sure(2.0).fresh(1.0));
    }

    #[test]
    fn means_agree_with_sums() {
        for shape in [0.3, 1.0, 1.5, 20.0] {
            let belief = Belief { per_day: 0.2, shape };
            let steps = 20_000;
            let sum: f64 =
                (0..steps).map(|step| belief.fresh(3.0 + 9.0 * (f64::from(step) + 0.5) / 20_000.0)).sum();
            let mean = sum / f64::from(steps);
            assert!((belief.fresh_between(3.0, 12.0) - mean).abs() < 1e-6, "shape {shape}");
        }
        assert_eq!(Belief::sure(1e-12).fresh_between(0.0, 1.0), 1.0);
    }
}

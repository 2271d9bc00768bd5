//! An online logistic regression that learns one observation at a time.
//!
//! Weights have a normal distribution that each observation narrows (extended Kalman filter of the logistic
//! likelihood). Forgetting widens it again, but never beyond the prior variance.

/// Share of the precision of the weights that is kept with each observation.
const MEMORY: f64 = 0.9995;
/// Bound of the log-odds.
pub(super) const LOG_ODDS_MAX: f64 = 8.0;

/// Weights of `N` inputs and their covariance.
#[derive(Clone, Debug)]
pub(super) struct Regression<const N: usize> {
    weights: [f64; N],
    covariance: [[f64; N]; N],
    variance_max: [f64; N],
}

impl<const N: usize> Regression<N> {
    /// Creates a regression with prior weights and their variances.
    pub(super) fn new(weights: [f64; N], variances: [f64; N]) -> Self {
        let covariance =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { variances[i] } else { 0.0 }));
        Self { weights, covariance, variance_max: variances }
    }

    /// Predicts the log-odds for `inputs`.
    pub(super) fn log_odds(&self, inputs: &[f64; N]) -> f64 {
        let sum: f64 = self.weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
        sum.clamp(-LOG_ODDS_MAX, LOG_ODDS_MAX)
    }

    /// Learns from the `outcome` observed with `inputs`.
    pub(super) fn learn(&mut self, inputs: &[f64; N], outcome: bool) {
        let chance = (1.0 + (-self.log_odds(inputs)).exp()).recip();
        let information = chance * (1.0 - chance);
        let gain: [f64; N] = std::array::from_fn(|i| dot(&self.covariance[i], inputs));
        let spread = 1.0 + information * dot(&gain, inputs);
        let surprise = (f64::from(u8::from(outcome)) - chance) / spread;
        for i in 0..N {
            self.weights[i] += gain[i] * surprise;
            for (cell, other) in self.covariance[i].iter_mut().zip(gain) {
                *cell = (*cell - gain[i] * other * information / spread) / MEMORY;
            }
        }
        for i in 0..N {
            let excess = self.variance_max[i] / self.covariance[i][i];
            if excess < 1.0 {
                let shrink = excess.sqrt();
                for j in 0..N {
                    self.covariance[i][j] *= shrink;
                    self.covariance[j][i] *= shrink;
                }
            }
        }
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_learned_and_relearned() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut regression = Regression::new([0.0; 3], [1.0; 3]);
        for truth in [[-1.0, 2.0, 0.0], [0.5, -1.0, 0.0]] {
            for _ in 0..20_000 {
                let inputs = [1.0, 4.0 * random.f64() - 2.0, 4.0 * random.f64() - 2.0];
                let chance = (1.0 + (-dot(&truth, &inputs)).exp()).recip();
                regression.learn(&inputs, random.f64() < chance);
            }
            for (weight, truth) in regression.weights.iter().zip(truth) {
                assert!((weight - truth).abs() < 0.3, "{weight} is far from {truth}");
            }
        }
    }
}

//! Calibration of scores as probabilities: Platt's sigmoid.

use super::logistic::Binary;

/// p = 1 / (1 + exp(-(a score + b))), fitted with Platt's targets (1999): (n1 + 1) / (n1 + 2) for true labels and 1 /
/// (n0 + 2) for false ones, so that few observations do not give certainty.
#[derive(Clone, Debug, PartialEq)]
pub struct Platt(Binary);

impl Platt {
    /// Fits to scores of any scale and their labels.
    #[must_use]
    pub fn fit(scores: &[f64], labels: &[bool]) -> Self {
        let positive = labels.iter().filter(|label| **label).count() as f64;
        let negative = labels.len() as f64 - positive;
        let (high, low) = ((positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0));
        let share: Vec<f64> = labels.iter().map(|&label| if label { high } else { low }).collect();
        let rows: Vec<Vec<f64>> = scores.iter().map(|&score| vec![score]).collect();
        Self(Binary::fit_shares(&rows, &share, 0.0))
    }

    /// Returns the slope a and the constant b of the sigmoid.
    #[must_use]
    pub fn parts(&self) -> (f64, f64) {
        let (weights, constant) = self.0.weights();
        (weights.first().copied().unwrap_or_default(), constant)
    }

    /// Creates the sigmoid from its slope and constant.
    #[must_use]
    pub fn from_parts(slope: f64, constant: f64) -> Self {
        Self(Binary::from_weights(vec![slope], constant))
    }

    /// Returns the probability for `score`.
    #[must_use]
    pub fn probability(&self, score: f64) -> f64 {
        self.0.probability(&[score])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sigmoid_is_found_again() {
        let mut random = fastrand::Rng::with_seed(3);
        let scores: Vec<f64> = (0..20_000).map(|_| 8.0 * random.f64() - 4.0).collect();
        let truth = |score: f64| (1.0 + (-(0.7 * score - 1.0)).exp()).recip();
        let labels: Vec<bool> = scores.iter().map(|&score| random.f64() < truth(score)).collect();
        let platt = Platt::fit(&scores, &labels);
        for score in [-3.0, -1.0, 0.0, 1.5, 3.0] {
            assert!((platt.probability(score) - truth(score)).abs() < 0.015, "{score}");
        }
    }

    #[test]
    fn all_true_is_not_certain() {
        let platt = Platt::fit(&[1.0, 2.0, 3.0], &[true; 3]);
        assert!((platt.probability(2.0) - 0.8).abs() < 1e-3);
    }
}

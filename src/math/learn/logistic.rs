//! Logistic regression: multinomial over sparse vectors, and binary over a few numbers.

use super::minimise::{add, minimise};
use super::text::Sparse;

/// Gradient per observation below which a fit has converged.
const TOLERANCE: f64 = 1e-6;
/// Maximum number of steps of a fit.
const STEPS_MAX: usize = 300;
/// Maximum weight of a word, in log-odds; fitted ones are below 100.
const WEIGHT_MAX: f32 = 1e6;
/// Bound of log-odds.
const LOG_ODDS_MAX: f64 = 30.0;

/// 1 / (1 + e^-x).
#[must_use]
pub fn sigmoid(log_odds: f64) -> f64 {
    (1.0 + (-log_odds.clamp(-LOG_ODDS_MAX, LOG_ODDS_MAX)).exp()).recip()
}

/// ln(p / (1 - p)), within the range that [`sigmoid`] can invert.
#[must_use]
pub fn log_odds(probability: f64) -> f64 {
    let probability = probability.clamp(1e-12, 1.0 - 1e-12);
    (probability / (1.0 - probability)).ln()
}

/// Multinomial logistic regression: p(k | x) is proportional to exp(w_k x + b_k).
#[derive(Clone, Debug, PartialEq)]
pub struct Multinomial {
    classes: usize,
    /// A row of all classes for each index of a vector; the last row has the constants.
    weights: Vec<f32>,
}

impl Multinomial {
    /// Minimises Σ -ln p(class | row) + l2/2 Σ w²; the constants b are not regularised. `l2` must be above 0, classes
    /// below `classes`, indices below `width`.
    #[must_use]
    pub fn fit(rows: &[Sparse], labels: &[usize], classes: usize, width: usize, l2: f64) -> Self {
        let scale = 1.0 / rows.len().max(1) as f64;
        let mut weights = vec![0.0; (width + 1) * classes];
        let mut scores = vec![0.0; classes];
        minimise(&mut weights, TOLERANCE, STEPS_MAX, |weights, gradient| {
            let (free, bound) = (width * classes, &weights[..width * classes]);
            let mut loss = scale * l2 / 2.0 * bound.iter().map(|weight| weight * weight).sum::<f64>();
            for (gradient, weight) in gradient.iter_mut().zip(bound) {
                *gradient = scale * l2 * weight;
            }
            gradient[free..].fill(0.0);
            for (row, &label) in rows.iter().zip(labels) {
                scores.copy_from_slice(&weights[free..]);
                for &(place, value) in row {
                    let weights = &weights[place as usize * classes..][..classes];
                    add(&mut scores, f64::from(value), weights);
                }
                loss -= scale * normalise(&mut scores, label);
                scores[label] -= 1.0;
                add(&mut gradient[free..], scale, &scores);
                for &(place, value) in row {
                    add(
                        &mut gradient[place as usize * classes..][..classes],
                        scale * f64::from(value),
                        &scores,
                    );
                }
            }
            loss
        });
        Self { classes, weights: weights.into_iter().map(|weight| weight as f32).collect() }
    }

    pub(crate) const fn of_weights(classes: usize, weights: Vec<f32>) -> Self {
        Self { classes, weights }
    }

    /// Returns the probability of each class; the sum is 1.
    #[must_use]
    pub fn probabilities(&self, row: &Sparse) -> Vec<f64> {
        let mut scores: Vec<f64> =
            self.weights[self.weights.len() - self.classes..].iter().map(|&weight| weight.into()).collect();
        for &(place, value) in row {
            for (score, &weight) in scores.iter_mut().zip(&self.weights[place as usize * self.classes..]) {
                *score += f64::from(value * weight);
            }
        }
        normalise(&mut scores, 0);
        scores
    }

    /// Returns all weights: a row of all classes for each index; the last row has the constants.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Restores a model from [`Multinomial::weights`]; `None` if a weight is beyond [`WEIGHT_MAX`] or the rows are
    /// incomplete.
    pub(crate) fn from_weights(classes: usize, weights: Vec<f32>) -> Option<Self> {
        let fits = !weights.is_empty() && classes > 0 && weights.len().is_multiple_of(classes);
        (fits && weights.iter().all(|weight| weight.abs() <= WEIGHT_MAX)).then_some(Self { classes, weights })
    }

    /// Returns the weight of a vector index for a class, in log-odds.
    #[must_use]
    pub fn weight(&self, place: u32, class: usize) -> f32 {
        self.weights[place as usize * self.classes + class]
    }
}

/// Turns scores into probabilities, and returns the log-probability of `label`.
pub(super) fn normalise(scores: &mut [f64], label: usize) -> f64 {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
    let log = scores[label] - most - sum.ln();
    scores.iter_mut().for_each(|score| *score = (*score - most).exp() / sum);
    log
}

/// Fits a logistic regression over a few inputs, p(row) = 1 / (1 + exp(-w row)), to rows with the share of each that is
/// true: minimises Σ -ln p(share | row) + Σ bound/2 (w - prior)² from the given weights on. `priors` has the prior and
/// the bound of each weight.
pub(crate) fn fit_weights<'a>(
    weights: &mut [f64],
    priors: &[(f64, f64)],
    rows: &(impl Iterator<Item = (&'a [f64], f64)> + Clone),
    steps_max: usize,
) {
    let count = rows.clone().count().max(1) as f64;
    minimise(weights, TOLERANCE, steps_max, |weights, gradient| {
        let mut loss = 0.0;
        for ((gradient, weight), (prior, bound)) in gradient.iter_mut().zip(weights).zip(priors) {
            let away = weight - prior;
            *gradient = bound * away / count;
            loss += bound * away * away / (2.0 * count);
        }
        for (row, share) in rows.clone() {
            let odds: f64 = row.iter().zip(weights).map(|(x, weight)| x * weight).sum();
            // ln(1 + e^x) without overflow.
            loss += (odds.max(0.0) + (-odds.abs()).exp().ln_1p() - share * odds) / count;
            add(gradient, (sigmoid(odds) - share) / count, row);
        }
        loss
    });
}

/// Binary logistic regression over a few standardised inputs: p(x) = 1 / (1 + exp(-(w z + b))), z = (x - mean) /
/// deviation.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// Weight of each input, before standardisation.
    weights: Vec<f64>,
    constant: f64,
}

impl Binary {
    /// Minimises Σ -ln p(label | row) + l2/2 Σ w² over rows of equal length. A constant input gets weight 0.
    #[must_use]
    pub fn fit(rows: &[Vec<f64>], labels: &[bool], l2: f64) -> Self {
        let shares: Vec<f64> = labels.iter().map(|&label| f64::from(u8::from(label))).collect();
        Self::fit_shares(rows, &shares, l2)
    }

    /// The same as [`Binary::fit`], with the share of each row that is true.
    pub(super) fn fit_shares(rows: &[Vec<f64>], shares: &[f64], l2: f64) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let count = rows.len().max(1) as f64;
        let moments: Vec<(f64, f64)> = (0..width)
            .map(|input| {
                let mean = rows.iter().map(|row| row[input]).sum::<f64>() / count;
                let variance = rows.iter().map(|row| (row[input] - mean).powi(2)).sum::<f64>() / count;
                (mean, if variance > 1e-18 { variance.sqrt().recip() } else { 0.0 })
            })
            .collect();
        let standard = |row: &Vec<f64>| -> Vec<f64> {
            let inputs = row.iter().zip(&moments).map(|(x, (mean, scale))| (x - mean) * scale);
            inputs.chain([1.0]).collect()
        };
        let standard: Vec<(Vec<f64>, f64)> = rows.iter().map(standard).zip(shares.iter().copied()).collect();
        let mut parameters = vec![0.0; width + 1];
        let mut priors = vec![(0.0, l2); width];
        priors.push((0.0, 0.0));
        let rows = standard.iter().map(|(row, share)| (row.as_slice(), *share));
        fit_weights(&mut parameters, &priors, &rows, STEPS_MAX);
        let weights: Vec<f64> = moments.iter().zip(&parameters).map(|((_, scale), w)| scale * w).collect();
        let shift: f64 = moments.iter().zip(&weights).map(|((mean, _), w)| mean * w).sum();
        Self { weights, constant: parameters[width] - shift }
    }

    /// Creates the model from its [`Binary::weights`].
    pub(super) fn from_weights(weights: Vec<f64>, constant: f64) -> Self {
        Self { weights, constant }
    }

    /// Returns the log-odds of `row`, which must have the fitted number of inputs.
    #[must_use]
    pub fn log_odds(&self, row: &[f64]) -> f64 {
        self.constant + self.weights.iter().zip(row).map(|(weight, x)| weight * x).sum::<f64>()
    }

    /// Returns the probability that `row` is true.
    #[must_use]
    pub fn probability(&self, row: &[f64]) -> f64 {
        sigmoid(self.log_odds(row))
    }

    /// Returns the log-odds per unit of each input, and the constant.
    #[must_use]
    pub fn weights(&self) -> (&[f64], f64) {
        (&self.weights, self.constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 observations at x = 0, 3 of them true, and 10 at x = 2, 8 of them true: without regularisation the shares are
    /// met exactly.
    #[test]
    fn two_groups_get_their_shares() {
        let group = |x: f64, of: usize| (0..10).map(move |i| (vec![x, 5.0], i < of));
        let (rows, labels): (Vec<_>, Vec<_>) = group(0.0, 3).chain(group(2.0, 8)).unzip();
        let model = Binary::fit(&rows, &labels, 0.0);
        assert!((model.probability(&[0.0, 5.0]) - 0.3).abs() < 1e-4);
        assert!((model.probability(&[2.0, 5.0]) - 0.8).abs() < 1e-4);
        assert_eq!(model.weights().0[1], 0.0);
        let slope = (log_odds(0.8) - log_odds(0.3)) / 2.0;
        assert!((model.weights().0[0] - slope).abs() < 1e-3);
        // Regularisation pulls the probability towards the mean.
        assert!(Binary::fit(&rows, &labels, 10.0).probability(&[2.0, 5.0]) < 0.75);
    }

    /// One word per class: with l2 the optimum is where the gradient of each weight is -l2 w.
    #[test]
    fn the_optimum_of_three_classes_meets_its_condition() {
        let rows: Vec<Sparse> = (0..30).map(|i| vec![(i % 3, 1.0)]).collect();
        let labels: Vec<usize> = (0..30).map(|i| if i < 24 { i % 3 } else { (i + 1) % 3 }).collect();
        let model = Multinomial::fit(&rows, &labels, 3, 3, 1.0);
        for word in 0..3 {
            let p = model.probabilities(&vec![(word, 1.0)]);
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for (class, p) in p.iter().enumerate() {
                let count =
                    rows.iter().zip(&labels).filter(|(row, l)| row[0].0 == word && **l == class).count();
                let pull = count as f64 - 10.0 * p - f64::from(model.weight(word, class));
                assert!(pull.abs() < 1e-3, "word {word}, class {class}: {pull}");
            }
        }
    }

    #[test]
    fn nothing_to_learn_from_is_a_coin() {
        assert_eq!(Binary::fit(&[], &[], 1.0).probability(&[]), 0.5);
        assert_eq!(Multinomial::fit(&[], &[], 2, 1, 1.0).probabilities(&vec![]), [0.5, 0.5]);
        assert!(sigmoid(-1e9) > 0.0 && log_odds(1.0).is_finite());
    }
}

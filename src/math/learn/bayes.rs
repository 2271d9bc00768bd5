//! Multinomial naive Bayes (Manning, Raghavan, Schütze, Introduction to Information Retrieval, 2008, figure 13.2).

use super::logistic::{Multinomial, normalise};
use super::text::Sparse;

/// p(k | x) is proportional to p(k) Π p(word | k)^count, where `smoothing` is added to each count.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveBayes {
    priors: Vec<f64>,
    /// ln p(word | class): for each word a row of all classes.
    words: Vec<f32>,
}

impl NaiveBayes {
    /// Counts words by class. Values of `rows` are counts or other numbers of at least 0; labels are below `classes`,
    /// word indices below `width`.
    #[must_use]
    pub fn fit(rows: &[Sparse], labels: &[usize], classes: usize, width: usize, smoothing: f64) -> Self {
        let mut counts = vec![smoothing; width * classes];
        let mut sums = vec![smoothing * width as f64; classes];
        let mut rows_of: Vec<f64> = vec![0.0; classes];
        for (row, &label) in rows.iter().zip(labels) {
            rows_of[label] += 1.0;
            for &(place, value) in row {
                counts[place as usize * classes + label] += f64::from(value);
                sums[label] += f64::from(value);
            }
        }
        let words = counts
            .chunks(classes.max(1))
            .flat_map(|row| row.iter().zip(&sums).map(|(count, sum)| (count / sum).ln() as f32))
            .collect();
        // A class without rows is still possible.
        let all: f64 = rows_of.iter().map(|rows| rows.max(0.5)).sum();
        Self { priors: rows_of.iter().map(|rows| (rows.max(0.5) / all).ln()).collect(), words }
    }

    /// Returns the probability of each class; the sum is 1.
    #[must_use]
    pub fn probabilities(&self, row: &Sparse) -> Vec<f64> {
        let mut scores = self.priors.clone();
        for &(place, value) in row {
            let words = &self.words[place as usize * self.priors.len()..];
            for (score, &word) in scores.iter_mut().zip(words) {
                *score += f64::from(value * word);
            }
        }
        normalise(&mut scores, 0);
        scores
    }
}

/// Naive Bayes is linear in the counts: word log-probabilities become weights, priors constants.
impl From<NaiveBayes> for Multinomial {
    fn from(bayes: NaiveBayes) -> Self {
        let mut weights = bayes.words;
        weights.extend(bayes.priors.iter().map(|prior| *prior as f32));
        Self::of_weights(bayes.priors.len(), weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example 13.1 of the book: Chinese Beijing Shanghai Macao Tokyo Japan are 0 to 5.
    #[test]
    fn the_books_example() {
        let rows: Vec<Sparse> = vec![
            vec![(0, 2.0), (1, 1.0)],
            vec![(0, 2.0), (2, 1.0)],
            vec![(0, 1.0), (3, 1.0)],
            vec![(0, 1.0), (4, 1.0), (5, 1.0)],
        ];
        let model = NaiveBayes::fit(&rows, &[1, 1, 1, 0], 2, 6, 1.0);
        let p = model.probabilities(&vec![(0, 3.0), (4, 1.0), (5, 1.0)]);
        let china = 0.75 * (3.0_f64 / 7.0).powi(3) / 14.0 / 14.0;
        let other = 0.25 * (2.0_f64 / 9.0).powi(5);
        assert!((p[1] - china / (china + other)).abs() < 1e-5, "{p:?}");
        let linear = Multinomial::from(model).probabilities(&vec![(0, 3.0), (4, 1.0), (5, 1.0)]);
        assert!((linear[1] - p[1]).abs() < 1e-5, "{linear:?}");
    }
}

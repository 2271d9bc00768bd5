//! Calibration of scores as probabilities by isotonic regression.

/// The non-decreasing step function closest to the labels (pool adjacent violators), interpolated linearly between the
/// means of the steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Isotonic(Vec<(f64, f64)>);

impl Isotonic {
    /// Fits to finite scores and their labels.
    pub(super) fn fit(scores: &[f64], labels: &[bool]) -> Self {
        let mut pairs: Vec<(f64, bool)> = scores.iter().copied().zip(labels.iter().copied()).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Sum of scores, sum of labels, and count of each pool.
        let mut pools: Vec<(f64, f64, f64)> = Vec::new();
        for equal in pairs.chunk_by(|a, b| a.0 == b.0) {
            let count = equal.len() as f64;
            let hits = equal.iter().filter(|pair| pair.1).count() as f64;
            let mut pool = (equal[0].0 * count, hits, count);
            while let Some(last) = pools.last().filter(|last| last.1 * pool.2 >= pool.1 * last.2) {
                pool = (pool.0 + last.0, pool.1 + last.1, pool.2 + last.2);
                pools.pop();
            }
            pools.push(pool);
        }
        Self(pools.into_iter().map(|(scores, hits, count)| (scores / count, hits / count)).collect())
    }

    /// Returns the probability for `score`; one half without observations.
    pub(super) fn probability(&self, score: f64) -> f64 {
        let above = self.0.partition_point(|step| step.0 < score);
        match (above.checked_sub(1).map(|below| self.0[below]), self.0.get(above)) {
            (Some(below), Some(above)) => {
                below.1 + (above.1 - below.1) * (score - below.0) / (above.0 - below.0)
            }
            (Some(end), None) | (None, Some(&end)) => end.1,
            (None, None) => 0.5,
        }
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
        let isotonic = Isotonic::fit(&scores, &labels);
        for score in [-3.0, -1.0, 0.0, 1.5, 3.0] {
            assert!((isotonic.probability(score) - truth(score)).abs() < 0.06, "{score}");
        }
    }

    #[test]
    fn adjacent_violators_are_pooled() {
        let fit = Isotonic::fit(&[1.0, 2.0, 3.0, 4.0], &[false, true, false, true]);
        assert_eq!(fit.0, [(1.0, 0.0), (2.5, 0.5), (4.0, 1.0)]);
        assert_eq!([0.0, 1.75, 9.0].map(|score| fit.probability(score)), [0.0, 0.25, 1.0]);
        assert_eq!(Isotonic::fit(&[], &[]).probability(1.0), 0.5);
    }
}

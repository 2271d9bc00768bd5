//! Measures of the quality of predictions.

/// The area under the ROC curve: how often a true item has a higher score than a false one; ties count half. `None`
/// without both kinds.
#[must_use]
pub fn auc(scores: &[f64], labels: &[bool]) -> Option<f64> {
    let mut pairs: Vec<(f64, bool)> = scores.iter().copied().zip(labels.iter().copied()).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut positive, mut wins) = (0.0, 0.0, 0.0);
    for equal in pairs.chunk_by(|a, b| a.0 == b.0) {
        let hits = equal.iter().filter(|pair| pair.1).count() as f64;
        let misses = equal.len() as f64 - hits;
        wins += hits * (below + misses / 2.0);
        below += misses;
        positive += hits;
    }
    (positive * below > 0.0).then(|| wins / (positive * below))
}

/// The expected calibration error: the mean difference between probability and outcome, over `bins` of equally many
/// observations in order of probability. `None` without observations.
#[must_use]
pub fn calibration_error(probabilities: &[f64], labels: &[bool], bins: usize) -> Option<f64> {
    let mut pairs: Vec<(f64, bool)> = probabilities.iter().copied().zip(labels.iter().copied()).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (count, bins) = (pairs.len(), bins.max(1));
    let apart = |bin: usize| {
        let bin = &pairs[bin * count / bins..(bin + 1) * count / bins];
        let said: f64 = bin.iter().map(|pair| pair.0).sum();
        (said - bin.iter().filter(|pair| pair.1).count() as f64).abs()
    };
    (count > 0).then(|| (0..bins).map(apart).sum::<f64>() / count as f64)
}

/// F1 of each class, the harmonic mean of precision and recall; 0 for a class that never occurs.
#[must_use]
pub fn f1(predicted: &[usize], labels: &[usize], classes: usize) -> Vec<f64> {
    let (mut hits, mut sums) = (vec![0.0; classes], vec![0.0; classes]);
    for (&predicted, &label) in predicted.iter().zip(labels) {
        sums[predicted] += 1.0;
        sums[label] += 1.0;
        hits[label] += f64::from(u8::from(predicted == label));
    }
    hits.iter().zip(sums).map(|(hits, sum)| if sum > 0.0 { 2.0 * hits / sum } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_as_by_hand() {
        let labels = [false, true, false, true];
        assert_eq!(auc(&[0.1, 0.4, 0.35, 0.8], &labels), Some(1.0));
        assert_eq!(auc(&[0.5, 0.5, 0.1, 0.9], &labels), Some(0.875));
        assert_eq!(auc(&[0.1, 0.2], &[true, true]), None);
        assert_eq!(calibration_error(&[0.0, 1.0, 0.5, 0.5], &[false, true, true, false], 1), Some(0.0));
        let error = calibration_error(&[0.1, 0.9, 0.2, 0.8], &[false, true, false, false], 2);
        assert!((error.unwrap() - (0.3 + 0.7) / 4.0).abs() < 1e-12);
        assert_eq!(calibration_error(&[], &[], 10), None);
        assert_eq!(f1(&[0, 0, 1, 1], &[0, 1, 1, 1], 3), [2.0 / 3.0, 0.8, 0.0]);
    }
}

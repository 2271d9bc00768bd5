//! Expected scores, computed from the truth and the raters' noise.

use super::world::RATINGS;

/// Probability of each rating, from 1.
pub(super) type Law = [f64; RATINGS];

/// Returns the law of a rater's rating: the truth, or with probability `noise` one of the other ratings, all equally
/// likely.
pub(super) fn rater(noise: f64, truth: u8) -> Law {
    let mut law = [noise / (RATINGS - 1) as f64; RATINGS];
    law[usize::from(truth) - 1] = 1.0 - noise;
    law
}

/// Returns the law of the rating nearest to the mean of these raters' ratings; of two equally near ones, the higher.
pub(super) fn reference(noises: &[f64], truth: u8) -> Law {
    // Probability of each sum of ratings.
    let mut sums = vec![1.0];
    for noise in noises {
        let mut next = vec![0.0; sums.len() + RATINGS];
        for (sum, so_far) in sums.iter().enumerate() {
            for (rating, probability) in rater(*noise, truth).iter().enumerate() {
                next[sum + rating + 1] += so_far * probability;
            }
        }
        sums = next;
    }
    let mut law = [0.0; RATINGS];
    for (sum, probability) in sums.into_iter().enumerate().skip(noises.len()) {
        let nearest = (2 * sum + noises.len()) / (2 * noises.len().max(1));
        law[nearest.clamp(1, RATINGS) - 1] += probability;
    }
    law
}

/// Returns the probability that two ratings agree if they are independent given the truth.
pub(super) fn agree(left: &Law, right: &Law) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// Returns the expected Krippendorff's alpha for interval data: 1 - the mean squared difference between two raters of
/// one thing / that between raters of any two things.
pub(super) fn alpha(noises: &[f64], truth: &[u8]) -> f64 {
    let raters = noises.len() as f64;
    let (mut within, mut sum, mut square) = (0.0, 0.0, 0.0);
    for quality in truth {
        let moments: Vec<(f64, f64)> = noises.iter().map(|noise| moments(&rater(*noise, *quality))).collect();
        let means: f64 = moments.iter().map(|(mean, _)| mean).sum();
        let squares: f64 = moments.iter().map(|(_, square)| square).sum();
        let own: f64 = moments.iter().map(|(mean, _)| mean * mean).sum();
        // Over pairs of different raters, E (a - b)² = E a² + E b² - 2 E a E b.
        within += 2.0 * squares / raters - 2.0 * (means * means - own) / (raters * (raters - 1.0));
        sum += means / raters;
        square += squares / raters;
    }
    let things = truth.len() as f64;
    let (within, mean, square) = (within / things, sum / things, square / things);
    1.0 - within / (2.0 * (square - mean * mean))
}

/// Returns the mean of a rating and of its square.
fn moments(law: &Law) -> (f64, f64) {
    let ratings = law.iter().zip(1..).map(|(probability, rating)| (probability, f64::from(rating)));
    ratings.fold((0.0, 0.0), |(mean, square), (p, rating)| (mean + p * rating, square + p * rating * rating))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_as_by_hand() {
        assert_eq!(rater(0.75, 2), [0.25; 4]);
        // Two raters of a thing of quality 4 yield 4 if both say so, or if one says 3, which is rounded up.
        let law = reference(&[0.3, 0.3], 4);
        assert!((law[3] - (0.49 + 2.0 * 0.7 * 0.1)).abs() < 1e-12, "{law:?}");
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((agree(&rater(0.0, 1), &rater(0.3, 1)) - 0.7).abs() < 1e-12);
        let truth = [1, 2, 3, 4];
        assert!((alpha(&[0.0, 0.0], &truth) - 1.0).abs() < 1e-12);
        // Ratings that are wrong with probability 3/4 carry no information.
        assert!(alpha(&[0.75, 0.75, 0.75], &truth).abs() < 1e-12);
    }
}

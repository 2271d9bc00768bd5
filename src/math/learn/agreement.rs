//! How far people agree, and how well numbers represent their ratings.

use std::collections::BTreeSet;

/// How [`alpha`] measures the difference of two ratings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgreementLevel {
    /// Only whether they differ.
    Nominal,
    /// By the number of ratings between them.
    Ordinal,
    /// By the square of their difference.
    Interval,
}

/// Krippendorff's alpha of the ratings of each item, by any number of people: 1 for complete agreement, 0 for agreement
/// by chance, less for contradiction. `None` if no disagreement is possible: no item has two ratings, or all ratings
/// are equal. (K. Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011, section F.)
#[must_use]
pub fn alpha(things: &[Vec<u8>], level: AgreementLevel) -> Option<f64> {
    let pairable: Vec<&Vec<u8>> = things.iter().filter(|ratings| ratings.len() > 1).collect();
    let values: Vec<u8> = pairable
        .iter()
        .flat_map(|ratings| ratings.iter().copied())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let place = |rating: u8| values.partition_point(|value| *value < rating);
    let mut coincidences = vec![vec![0.0; values.len()]; values.len()];
    for ratings in pairable {
        let weight = 1.0 / (ratings.len() - 1) as f64;
        for (one, &left) in ratings.iter().enumerate() {
            for (other, &right) in ratings.iter().enumerate() {
                if one != other {
                    coincidences[place(left)][place(right)] += weight;
                }
            }
        }
    }
    let given: Vec<f64> = coincidences.iter().map(|row| row.iter().sum()).collect();
    let all: f64 = given.iter().sum();
    let apart = |left: usize, right: usize| match level {
        AgreementLevel::Nominal => f64::from(u8::from(left != right)),
        AgreementLevel::Ordinal => {
            let between: f64 = given[left.min(right)..=left.max(right)].iter().sum();
            (between - (given[left] + given[right]) / 2.0).powi(2)
        }
        AgreementLevel::Interval => (f64::from(values[left]) - f64::from(values[right])).powi(2),
    };
    let (mut observed, mut expected) = (0.0, 0.0);
    for left in 0..values.len() {
        for right in (0..values.len()).filter(|right| *right != left) {
            observed += coincidences[left][right] * apart(left, right);
            expected += given[left] * given[right] * apart(left, right);
        }
    }
    (expected > 0.0).then(|| 1.0 - (all - 1.0) * observed / expected)
}

/// Thresholds between classes of a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds(Vec<f64>);

impl Thresholds {
    /// Finds the thresholds that give most of the numbers their class (from 0): the best way to cut the sorted numbers
    /// into one run per class. Runs may be empty.
    #[must_use]
    pub fn fit(pairs: &[(f64, usize)], classes: usize) -> Self {
        let mut pairs = pairs.to_vec();
        pairs.sort_by(|left, right| left.0.total_cmp(&right.0));
        // For each class: the maximum number of correct pairs so far if the last is in that class, and the starts of
        // the runs.
        let mut best: Vec<(usize, Vec<usize>)> = (0..classes).map(|class| (0, vec![0; class])).collect();
        for (at, equal) in runs(&pairs) {
            for class in 1..classes {
                if best[class - 1].0 > best[class].0 {
                    let mut starts = best[class - 1].1.clone();
                    starts.push(at);
                    best[class] = (best[class - 1].0, starts);
                }
            }
            for (class, (right, _)) in best.iter_mut().enumerate() {
                *right += equal.iter().filter(|(_, of)| *of == class).count();
            }
        }
        let (_, mut starts) = best.into_iter().rev().max_by_key(|(right, _)| *right).unwrap_or_default();
        starts.resize(classes.saturating_sub(1), pairs.len());
        let limit =
            |start: usize| match (start.checked_sub(1).map(|before| pairs[before].0), pairs.get(start)) {
                (None, _) => f64::NEG_INFINITY,
                (Some(_), None) => f64::INFINITY,
                (Some(below), Some((above, _))) => f64::midpoint(below, *above),
            };
        Self(starts.into_iter().map(limit).collect())
    }

    /// Returns the class of a number.
    #[must_use]
    pub fn class(&self, number: f64) -> usize {
        self.0.iter().filter(|limit| number > **limit).count()
    }
}

/// Returns runs of equal numbers, each with its start.
fn runs(pairs: &[(f64, usize)]) -> impl Iterator<Item = (usize, &[(f64, usize)])> {
    let mut at = 0;
    pairs.chunk_by(|left, right| left.0 == right.0).map(move |run| {
        let start = at;
        at += run.len();
        (start, run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Krippendorff (2011), section F, and its published results.
    #[test]
    fn alpha_is_as_published() {
        let things = [
            vec![1, 1, 1],
            vec![2, 2, 3, 2],
            vec![3, 3, 3, 3],
            vec![3, 3, 3, 3],
            vec![2, 2, 2, 2],
            vec![1, 2, 3, 4],
            vec![4, 4, 4, 4],
            vec![1, 1, 2, 1],
            vec![2, 2, 2, 2],
            vec![5, 5, 5],
            vec![1, 1],
            vec![3],
        ];
        for (level, published) in [
            (AgreementLevel::Nominal, 0.743),
            (AgreementLevel::Ordinal, 0.815),
            (AgreementLevel::Interval, 0.849),
        ] {
            let alpha = alpha(&things, level).unwrap();
            assert!((alpha - published).abs() < 0.0006, "{level:?}: {alpha}");
        }
    }

    #[test]
    fn alpha_knows_agreement_and_when_there_is_none_to_know() {
        assert_eq!(alpha(&[vec![1, 1], vec![4, 4, 4]], AgreementLevel::Interval), Some(1.0));
        assert!(alpha(&[vec![1, 4], vec![4, 1]], AgreementLevel::Interval).unwrap() < 0.0);
        for nothing in [&[][..], &[vec![1], vec![2]], &[vec![3, 3], vec![3, 3]]] {
            assert_eq!(alpha(nothing, AgreementLevel::Ordinal), None);
        }
    }

    /// Tries all ways to cut.
    fn most_right(pairs: &[(f64, usize)], classes: usize) -> usize {
        let mut limits: Vec<f64> = pairs.iter().map(|pair| pair.0 + 0.5).collect();
        limits.push(f64::NEG_INFINITY);
        let mut ways = vec![Vec::new()];
        for _ in 1..classes {
            ways = ways
                .iter()
                .flat_map(|way| limits.iter().map(|limit| [way.clone(), vec![*limit]].concat()))
                .collect();
        }
        let right = |way: Vec<f64>| {
            let thresholds = Thresholds(way);
            pairs.iter().filter(|(number, class)| thresholds.class(*number) == *class).count()
        };
        ways.into_iter().filter(|way| way.is_sorted()).map(right).max().unwrap()
    }

    #[test]
    fn thresholds_are_the_best_there_are() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let pairs: Vec<(f64, usize)> =
                (0..random.usize(1..8)).map(|_| (f64::from(random.u8(0..6)), random.usize(0..4))).collect();
            let thresholds = Thresholds::fit(&pairs, 4);
            let right = pairs.iter().filter(|(number, class)| thresholds.class(*number) == *class).count();
            assert_eq!(right, most_right(&pairs, 4), "{pairs:?} {thresholds:?}");
        }
        assert_eq!(Thresholds::fit(&[], 4).class(3.0), 3);
    }
}

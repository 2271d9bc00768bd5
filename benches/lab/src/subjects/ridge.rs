//! Ridge regression over sparse vectors: the share of similar items that belong to each class.

use archive_math::learn::Sparse;

/// Maximum number of steps of a fit.
const STEPS_MAX: usize = 200;
/// Share of the initial error (root mean square) below which a class has converged.
const TOLERANCE: f64 = 1e-3;

/// s_k(x) = b_k + w_k x approximates the share of items similar to x that are of class k. An item may be of several
/// classes, so these shares need not add up to 1; they may be slightly below 0 or above 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ridge {
    constants: Vec<f64>,
    /// A row of all classes for each index of a vector.
    weights: Vec<f32>,
}

impl Ridge {
    /// Minimises Σ (y - b - w row)² + l2 Σ w² for each class, where y is 1 for rows of the class, otherwise 0, and b is
    /// its mean. `l2` must be above 0, classes below `classes`, indices below `width`.
    ///
    /// Uses conjugate gradients (Nocedal and Wright, Numerical Optimization, 2006, algorithm 5.2) on (X Xᵗ + l2) a = y
    /// - b, for all classes at once; w = Xᵗ a.
    pub(super) fn fit(rows: &[Sparse], labels: &[Vec<usize>], classes: usize, width: usize, l2: f64) -> Self {
        let mut rest = vec![0.0; rows.len() * classes];
        for (row, labels) in labels.iter().enumerate() {
            labels.iter().for_each(|label| rest[row * classes + label] = 1.0);
        }
        let mut constants = products(&rest, &rest, classes);
        constants.iter_mut().for_each(|sum| *sum /= rows.len().max(1) as f64);
        for row in rest.chunks_mut(classes.max(1)) {
            row.iter_mut().zip(&constants).for_each(|(y, mean)| *y -= mean);
        }
        let mut weights = vec![0.0; width * classes];
        let (mut shares, mut direction) = (vec![0.0; rest.len()], rest.clone());
        let mut left = products(&rest, &rest, classes);
        let goals: Vec<f64> = left.iter().map(|square| square * TOLERANCE * TOLERANCE).collect();
        for _ in 0..STEPS_MAX {
            if left.iter().zip(&goals).all(|(left, goal)| left <= goal) {
                break;
            }
            spread(rows, &direction, classes, &mut weights);
            let mut turned: Vec<f64> = direction.iter().map(|part| l2 * part).collect();
            for (row, turned) in rows.iter().zip(turned.chunks_mut(classes)) {
                gather(row, &weights, turned);
            }
            let curvature = products(&direction, &turned, classes);
            let step = ratios(&left, &curvature);
            add(&mut shares, &step, 1.0, &direction);
            add(&mut rest, &step, -1.0, &turned);
            let next = products(&rest, &rest, classes);
            let keep = ratios(&next, &left);
            for (direction, rest) in direction.chunks_mut(classes).zip(rest.chunks(classes)) {
                let parts = direction.iter_mut().zip(rest).zip(&keep);
                parts.for_each(|((direction, rest), keep)| *direction = rest + keep * *direction);
            }
            left = next;
        }
        spread(rows, &shares, classes, &mut weights);
        Self { constants, weights }
    }

    /// Returns s_k for each class k.
    pub(super) fn shares(&self, row: &Sparse) -> Vec<f64> {
        let mut shares = self.constants.clone();
        gather(row, &self.weights, &mut shares);
        shares
    }
}

/// to = Xᵗ of, with a row of all classes for each index.
fn spread(rows: &[Sparse], of: &[f64], classes: usize, to: &mut [f32]) {
    to.fill(0.0);
    for (row, of) in rows.iter().zip(of.chunks(classes.max(1))) {
        for &(place, value) in row {
            let to = &mut to[place as usize * classes..][..classes];
            to.iter_mut().zip(of).for_each(|(to, of)| *to += value * *of as f32);
        }
    }
}

/// to += row · weights.
fn gather(row: &Sparse, weights: &[f32], to: &mut [f64]) {
    let classes = to.len();
    for &(place, value) in row {
        let weights = &weights[place as usize * classes..][..classes];
        to.iter_mut().zip(weights).for_each(|(to, weight)| *to += f64::from(value * weight));
    }
}

/// Inner product of two columns for each class.
fn products(left: &[f64], right: &[f64], classes: usize) -> Vec<f64> {
    let mut sums = vec![0.0; classes];
    for (left, right) in left.chunks(classes.max(1)).zip(right.chunks(classes.max(1))) {
        sums.iter_mut().zip(left).zip(right).for_each(|((sum, left), right)| *sum += left * right);
    }
    sums
}

/// Divides each pair; 0 for a zero divisor, which is a converged class.
fn ratios(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| if *below > 0.0 { above / below } else { 0.0 }).collect()
}

/// to += sign · factor of the class · what.
fn add(to: &mut [f64], factors: &[f64], sign: f64, what: &[f64]) {
    for (to, what) in to.chunks_mut(factors.len().max(1)).zip(what.chunks(factors.len().max(1))) {
        to.iter_mut().zip(what).zip(factors).for_each(|((to, what), factor)| *to += sign * factor * what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the optimum Xᵗ (y - b - X w) = l2 w.
    #[test]
    fn the_optimum_meets_its_condition() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut row = || (0..9).map(|at| (at, random.f32())).filter(|entry| entry.1 > 0.5).collect();
        let rows: Vec<Sparse> = (0..40).map(|_| row()).collect();
        let labels: Vec<Vec<usize>> =
            (0..40).map(|_| (0..3).filter(|_| random.u8(0..3) == 0).collect()).collect();
        let model = Ridge::fit(&rows, &labels, 3, 9, 0.7);
        let share = |row: usize, class: usize| model.shares(&rows[row])[class];
        for class in 0..3 {
            let is_of = |row: usize| f64::from(u8::from(labels[row].contains(&class)));
            assert!((model.constants[class] - (0..40).map(is_of).sum::<f64>() / 40.0).abs() < 1e-12);
            for place in 0..9_u32 {
                let value =
                    |row: &Sparse| row.iter().find(|entry| entry.0 == place).map_or(0.0, |entry| entry.1);
                let pull = |row: usize| f64::from(value(&rows[row])) * (is_of(row) - share(row, class));
                let pulls: f64 = (0..40).map(pull).sum();
                let weight = f64::from(model.weights[place as usize * 3 + class]);
                assert!((pulls - 0.7 * weight).abs() < 0.02, "{place}, {class}: {pulls} and {weight}");
            }
        }
    }

    #[test]
    fn without_examples_nothing_is_of_a_class() {
        assert_eq!(Ridge::fit(&[], &[], 2, 3, 1.0).shares(&vec![(1, 1.0)]), [0.0, 0.0]);
        let same = Ridge::fit(&vec![vec![(0, 1.0)]; 3], &vec![vec![1]; 3], 2, 1, 1.0);
        assert_eq!(same.shares(&vec![(0, 1.0)]), [0.0, 1.0]);
    }
}

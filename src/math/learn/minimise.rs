//! Minima of smooth functions: L-BFGS (Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4) with a
//! backtracking line search.

use std::collections::VecDeque;

/// Number of steps kept as curvature information.
const MEMORY: usize = 8;
/// Maximum number of halvings of a step before the search ends.
const HALVINGS_MAX: usize = 30;
/// Minimum share of the predicted descent that a step must achieve (Armijo).
const DESCENT: f64 = 1e-4;

/// Moves `x` to a minimum of `function`, which returns a value and writes its gradient.
///
/// Ends when no component of the gradient exceeds `tolerance`, when no step descends, or after `steps_max` steps.
pub(super) fn minimise(
    x: &mut [f64],
    tolerance: f64,
    steps_max: usize,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
) {
    let mut gradient = vec![0.0; x.len()];
    let mut value = function(x, &mut gradient);
    let mut memory: VecDeque<PastStep> = VecDeque::with_capacity(MEMORY);
    let (mut next, mut next_gradient) = (x.to_vec(), gradient.clone());
    for _ in 0..steps_max {
        if gradient.iter().all(|part| part.abs() <= tolerance) {
            return;
        }
        let direction = direction(&gradient, &memory);
        let slope = dot(&direction, &gradient);
        // Without curvature information the first step has length 1.
        let mut length = if memory.is_empty() { dot(&gradient, &gradient).sqrt().recip() } else { 1.0 };
        let mut halvings = 0;
        let next_value = loop {
            for ((next, x), direction) in next.iter_mut().zip(&*x).zip(&direction) {
                *next = x + length * direction;
            }
            let there = function(&next, &mut next_gradient);
            if there <= value + DESCENT * length * slope {
                break there;
            }
            halvings += 1;
            if halvings == HALVINGS_MAX {
                return;
            }
            length /= 2.0;
        };
        remember(&mut memory, difference(&next, x), difference(&next_gradient, &gradient));
        x.copy_from_slice(&next);
        std::mem::swap(&mut gradient, &mut next_gradient);
        value = next_value;
    }
}

/// A step and the resulting change of the gradient.
struct PastStep {
    moved: Vec<f64>,
    turned: Vec<f64>,
    /// Inner product of both, above 0.
    curvature: f64,
}

fn remember(memory: &mut VecDeque<PastStep>, moved: Vec<f64>, turned: Vec<f64>) {
    let curvature = dot(&moved, &turned);
    if curvature > f64::EPSILON * dot(&turned, &turned) {
        if memory.len() == MEMORY {
            memory.pop_front();
        }
        memory.push_back(PastStep { moved, turned, curvature });
    }
}

/// Returns the descent direction, using the curvature from earlier steps.
fn direction(gradient: &[f64], memory: &VecDeque<PastStep>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|part| -part).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for step in memory.iter().rev() {
        let share = dot(&step.moved, &direction) / step.curvature;
        add(&mut direction, -share, &step.turned);
        shares.push(share);
    }
    if let Some(last) = memory.back() {
        let scale = last.curvature / dot(&last.turned, &last.turned);
        direction.iter_mut().for_each(|part| *part *= scale);
    }
    for (step, share) in memory.iter().zip(shares.into_iter().rev()) {
        let other = dot(&step.turned, &direction) / step.curvature;
        add(&mut direction, share - other, &step.moved);
    }
    direction
}

/// Adds a multiple of a vector.
pub(super) fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rosenbrocks_valley_is_followed_to_its_end() {
        let mut x = [-1.2, 1.0];
        minimise(&mut x, 1e-9, 200, |x, gradient| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            gradient[0] = -2.0 * a - 400.0 * x[0] * b;
            gradient[1] = 200.0 * b;
            a * a + 100.0 * b * b
        });
        assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6, "{x:?}");
    }
}

//! Importance offline, over a whole link graph in memory.
//!
//! [`PageRank`] is the fast way to the vector that is needed most often. [`Power`] has every matrix and normalisation
//! of the papers (importance, interest on the inverse graph, Kleinberg's symmetric matrix, A + I). [`hits`] computes
//! hubs and authorities, and [`Harmonic`] the centrality that Common Crawl uses to choose sites.

mod acceleration;
mod core;
mod harmonic;
mod hits;
mod pagerank;
mod power;
mod rendezvous;
mod rows;
mod solver;

pub use harmonic::Harmonic;
pub use hits::hits;
pub use pagerank::{PageRank, PreparedGraph};
pub use power::{Dangling, Matrix, Power};

use super::graph::Graph;

/// The share of a page's rank that follows its links; the rest jumps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Damping {
    /// The same share for every page: PageRank.
    Constant(f64),
    /// `out / (out + 1)`: the jump counts as one more link. OPIC converges to this.
    OneMoreLink,
}

/// The result of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The value of each page.
    pub values: Vec<f64>,
    /// Number of sweeps over the graph.
    pub iterations: u32,
    /// A bound of the distance from the fixed point, or the change of the last sweep (L1), depending on the method.
    pub residual: f64,
    /// Number of arcs read.
    pub operations: u64,
}

/// Why a method cannot run.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// The damping is out of range.
    #[error("the damping {0} is out of range")]
    Damping(f64),
    /// The personalisation is not a distribution over the pages.
    #[error("the personalisation needs a weight of at least 0 for each page, and one above 0")]
    Personalisation,
}

/// Sets each of `values` by calling `row` with its index, on all threads of the current pool. Returns the sum of the
/// second results of `row`.
fn fill(values: &mut [f64], row: impl Fn(usize) -> (f64, f64) + Sync) -> f64 {
    use rayon::prelude::*;

    /// Number of rows that a thread takes at a time.
    const ROWS: usize = 4096;
    let run = |(number, rows): (usize, &mut [f64])| {
        let mut sum = 0.0;
        for (place, value) in rows.iter_mut().enumerate() {
            let (new, part) = row(number * ROWS + place);
            *value = new;
            sum += part;
        }
        sum
    };
    // Sums are added in order, so that the result does not depend on the number of threads.
    let sums: Vec<f64> = values.par_chunks_mut(ROWS).enumerate().map(run).collect();
    sums.iter().sum()
}

/// Returns the sum of `values` over the targets of a page, by the weights of its links.
fn pull(rows: &Graph, page: usize, values: &[f64]) -> f64 {
    let row = rows.targets(page).iter().map(|&target| values[target as usize]);
    match rows.weights(page) {
        Some(weights) => row.zip(weights).map(|(value, &weight)| value * f64::from(weight)).sum(),
        None => row.sum(),
    }
}

/// Divides the values by their sum, if that is positive; returns the sum.
fn normalise(values: &mut [f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    if sum > 0.0 {
        values.iter_mut().for_each(|value| *value /= sum);
    }
    sum
}

#[cfg(test)]
mod tests;

//! Importance off line, over a whole link graph in memory.
//!
//! [`PageRank`] is the fast way to the one vector most people want. [`Power`] has every matrix and normalisation of the
//! papers (importance, interest on the inverse graph, Kleinberg's symmetric matrix, A + I), [`combined`] computes
//! importance and interest in one scan, [`hits`] hubs and authorities, [`Harmonic`] the centrality by which sites are
//! chosen elsewhere.

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
pub use hits::{Hits, hits};
pub use pagerank::{PageRank, Prepared};
pub use power::{Dangling, Matrix, Power, combined};

/// How much of a page's rank follows its links; the rest jumps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Damping {
    /// This share of every page's: PageRank.
    Constant(f64),
    /// `out / (out + 1)`: the jump is one more link. This is what OPIC converges to.
    OneMoreLink,
}

/// The outcome of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// A value for each page.
    pub values: Vec<f64>,
    /// Sweeps over the graph.
    pub iterations: u32,
    /// How far from the fixed point at most, or how much the last sweep changed (L1); each method says which.
    pub residual: f64,
    /// Arcs read.
    pub operations: u64,
}

/// Why a method cannot run.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// Outside its range.
    #[error("the damping {0} is not at least 0 and below 1")]
    Damping(f64),
    /// No distribution over the pages.
    #[error("the personalisation needs a weight of at least 0 for each page, and one above 0")]
    Personalisation,
}

/// Calls `row` with each place of `values`, on all threads of the current pool, and adds up what it returns.
fn fill(values: &mut [f64], row: impl Fn(usize) -> (f64, f64) + Sync) -> f64 {
    use rayon::prelude::*;

    /// Rows a thread takes at a time.
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
    // Added up in order, so that the number of threads does not change the result.
    let sums: Vec<f64> = values.par_chunks_mut(ROWS).enumerate().map(run).collect();
    sums.iter().sum()
}

/// Divides by the sum, if there is one.
fn normalise(values: &mut [f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    if sum > 0.0 {
        values.iter_mut().for_each(|value| *value /= sum);
    }
    sum
}

#[cfg(test)]
mod tests;

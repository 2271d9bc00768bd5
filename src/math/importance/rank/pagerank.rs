//! Fast PageRank with a proven error bound.
//!
//! If the rank of dangling pages goes to the personalisation v, the PageRank vector is `x = y / |y|`, where y solves
//! `(I - d P^T) y = v` and P has empty rows for dangling pages (Del Corso, Gullí, Romani 2005). So pages without links
//! can stay out of the iteration.
//!
//! The system is solved by iterative refinement (Wilkinson 1963): the residual `r = v - (I - d P^T) y` is computed with
//! 64-bit numbers, a correction e with `(I - d P^T) e = r` is found to some digits with 32-bit numbers, and e is added
//! to y. The solver is limited by random reads of page values, and twice as many 32-bit numbers fit into the caches.
//! Corrections are computed in place (Gauss-Seidel) with Anderson acceleration, see `solver`. The rest of the speed
//! depends on the memory layout of the links, see `core`.
//!
//! The fixed point of OPIC is the same system with a separate damping for each page, `out / (out + 1)`; the bound then
//! holds with the largest of them.
//!
//! **Bound.** `|P^T|_1 <= 1`, so the error of y is at most `|r|_1 / (1 - d)`, and that of x at most twice this divided
//! by `|y|_1`. The residual is that of the returned y, computed with 64-bit numbers from y alone. Neither 32-bit
//! numbers nor acceleration nor races between threads can invalidate the bound; they can only delay it.

use super::super::graph::Graph;
use super::core::Core;
use super::solver::Solver;
use super::{Damping, RankError, Ranking};

/// Minimum number of links between inner pages per thread, to outweigh the cost of synchronisation.
const ARCS_PER_THREAD_MIN: usize = 1 << 17;

/// The parameters of a computation.
#[derive(Clone, Debug)]
pub struct PageRank<'a> {
    /// d: the probability of following a link; a constant must be in 0..1.
    pub damping: Damping,
    /// The iteration stops when the L1 error is proven to be at most this.
    pub tolerance: f64,
    /// Maximum number of sweeps.
    pub iterations_max: u32,
    /// Maximum number of threads; a small graph uses fewer. Another number may change the last digits, below the
    /// tolerance.
    pub threads: usize,
    /// Targets of jumps and of pages without links: a weight for each page; `None` for a uniform distribution.
    pub personalisation: Option<&'a [f64]>,
}

impl Default for PageRank<'_> {
    fn default() -> Self {
        Self {
            damping: Damping::Constant(0.85),
            tolerance: 1e-9,
            iterations_max: 1000,
            threads: 1,
            personalisation: None,
        }
    }
}

/// A graph prepared for [`PageRank::solve`].
#[derive(Debug)]
pub struct PreparedGraph {
    core: Core,
}

#[cfg(test)]
impl PreparedGraph {
    pub(super) fn panels(&self) -> usize {
        self.core.chunks.iter().map(|chunk| chunk.panels.len()).sum()
    }
}

impl PageRank<'_> {
    /// Computes the PageRank of all pages; the sum is 1.
    ///
    /// # Errors
    /// If the damping is not in 0..1 or the personalisation is not a distribution over the pages.
    pub fn run(&self, graph: Graph) -> Result<Ranking, RankError> {
        self.solve(&self.prepare(graph)?)
    }

    /// Lays out the graph for [`PageRank::solve`], on the threads of the current rayon pool.
    ///
    /// # Errors
    /// If the damping is not in 0..1.
    pub fn prepare(&self, graph: Graph) -> Result<PreparedGraph, RankError> {
        if let Damping::Constant(damping) = self.damping
            && !(0.0..1.0).contains(&damping)
        {
            return Err(RankError::Damping(damping));
        }
        Ok(PreparedGraph { core: Core::new(graph, self.damping) })
    }

    /// Computes the PageRank of all pages of a prepared graph, with the damping given in preparation.
    ///
    /// # Errors
    /// If the personalisation is not a distribution over the pages.
    pub fn solve(&self, prepared: &PreparedGraph) -> Result<Ranking, RankError> {
        let core = &prepared.core;
        let jump = self.jump(core)?;
        let threads = self.threads.clamp(1, (core.inner_arcs / ARCS_PER_THREAD_MIN).max(1));
        let solver = Solver::new(core, jump, threads);
        solver.run(self.tolerance, self.iterations_max);
        Ok(solver.finish())
    }

    /// Returns the personalisation in the order of the core, scaled to mean 1; `None` for a uniform distribution.
    fn jump(&self, core: &Core) -> Result<Option<Vec<f64>>, RankError> {
        let Some(weights) = self.personalisation else { return Ok(None) };
        let sum: f64 = weights.iter().sum();
        if weights.len() != core.order.len()
            || sum <= 0.0
            || !sum.is_finite()
            || weights.iter().any(|&w| w < 0.0)
        {
            return Err(RankError::Personalisation);
        }
        let pages = weights.len() as f64;
        Ok(Some(core.order.iter().map(|&page| weights[page as usize] / sum * pages).collect()))
    }
}

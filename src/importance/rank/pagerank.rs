//! PageRank with a proven error bound, fast.
//!
//! With the dangling pages' rank going where the personalisation v goes, the PageRank vector is `x = y / |y|` where y
//! solves `(I - d P^T) y = v` and P has empty rows for dangling pages (Del Corso, Gullí, Romani 2005). So pages without
//! links can stay out of the iteration.
//!
//! That system is solved by iterative refinement (Wilkinson 1963): the residual `r = v - (I - d P^T) y` is computed with
//! 64-bit numbers, a correction e with `(I - d P^T) e = r` is found to some digits with 32-bit numbers, and y grows by e.
//! What the solver waits for is values of pages all over the memory, and of the short numbers twice as many fit into the
//! caches. Corrections are found in place (Gauss-Seidel) with Anderson's acceleration, see `solver`; how the links lie in
//! memory decides on the rest of the speed, see `core`.
//!
//! OPIC's fixed point is the same system with its own damping for each page, `out / (out + 1)`; the bound then holds
//! with the largest of them.
//!
//! **Bound.** `|P^T|_1 <= 1`, so the error of y is at most `|r|_1 / (1 - d)`, and that of x at most twice this divided by
//! `|y|_1`. The residual is that of the y that is returned, computed with 64-bit numbers from y alone: neither the short
//! numbers nor the acceleration nor what threads knew of each other can make the bound wrong, only late.

use super::super::graph::Graph;
use super::core::Core;
use super::solver::Solver;
use super::{Damping, RankError, Ranking};

/// Links between pages with links that a thread is worth its meetings for.
const ARCS_PER_THREAD_MIN: usize = 1 << 17;

/// What to compute.
#[derive(Clone, Debug)]
pub struct PageRank<'a> {
    /// d: the probability of following a link; a constant has to be in 0..1.
    pub damping: Damping,
    /// Stop when the L1 error is proven to be at most this.
    pub tolerance: f64,
    /// Stop at the latest after this many sweeps.
    pub iterations_max: u32,
    /// Threads to use at most; a small graph has fewer. Another number of them may change the last digits, below the
    /// tolerance.
    pub threads: usize,
    /// Where a jump (and a page without links) leads: a weight for each page; `None` for everywhere alike.
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

/// A graph made ready for [`PageRank::solve`].
#[derive(Debug)]
pub struct Prepared {
    core: Core,
}

#[cfg(test)]
impl Prepared {
    pub(super) fn panels(&self) -> usize {
        self.core.chunks.iter().map(|chunk| chunk.panels.len()).sum()
    }
}

impl PageRank<'_> {
    /// PageRank of all pages; adds up to 1.
    ///
    /// # Errors
    /// When the damping is not in 0..1 or the personalisation is not a distribution over the pages.
    pub fn run(&self, graph: Graph) -> Result<Ranking, RankError> {
        self.solve(&self.prepare(graph)?)
    }

    /// Lays the graph out for [`PageRank::solve`], on the threads of the rayon pool it is called in.
    ///
    /// # Errors
    /// When the damping is not in 0..1.
    pub fn prepare(&self, graph: Graph) -> Result<Prepared, RankError> {
        if let Damping::Constant(damping) = self.damping
            && !(0.0..1.0).contains(&damping)
        {
            return Err(RankError::Damping(damping));
        }
        Ok(Prepared { core: Core::new(graph, self.damping) })
    }

    /// PageRank of all pages of a prepared graph (the damping is the one it was prepared with).
    ///
    /// # Errors
    /// When the personalisation is not a distribution over the pages.
    pub fn solve(&self, prepared: &Prepared) -> Result<Ranking, RankError> {
        let core = &prepared.core;
        let jump = self.jump(core)?;
        let threads = self.threads.clamp(1, (core.inner_arcs / ARCS_PER_THREAD_MIN).max(1));
        let solver = Solver::new(core, jump, threads);
        solver.run(self.tolerance, self.iterations_max);
        Ok(solver.finish())
    }

    /// The personalisation in the core's order, with mean 1; `None` for everywhere alike.
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

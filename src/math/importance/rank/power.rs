//! The fixed points of the papers by iteration: `x <- r (c M x + (1 - c) E)`.
//!
//! Covers Xyleme's page ranking (Mignet et al. 2000, section 5) and section 1 of the OPIC paper, with every matrix that
//! they name. Runs on the threads of the current rayon pool; the number of threads does not change the result.

use super::super::graph::Graph;
use super::{RankError, Ranking, fill, normalise, pull};

/// The matrix M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// `M_ij = 1 / OutDeg(j)` for `j -> i`: a random walk; importance flows along links.
    Walk,
    /// The walk on the inverse graph, normalised by that graph's out-degrees: `1 / InDeg(j)` for `i -> j`. Interest
    /// flows backwards and is shared among all linking pages.
    Inverse,
    /// The matrix as printed in Xyleme, `M^t`: `1 / OutDeg(i)` for `i -> j`. The interest of a page is the mean of its
    /// link targets.
    InversePrinted,
    /// `M_ij = 1` for `j -> i`: a page is important if important pages link to it.
    Links,
    /// `M_ij = 1` if there is a link either way, as in the work of Kleinberg.
    Symmetric,
}

/// What happens to the rank of pages whose column of M is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dangling {
    /// It follows the personalisation, as is usual for PageRank today.
    Personalised,
    /// It is lost, and all ranks are scaled to restore the sum: Xyleme's factor r.
    Renormalised,
}

/// The parameters of an iteration. The residual of the result is the L1 change of the last iteration (without the
/// halving by A + I).
#[derive(Clone, Debug)]
pub struct Power<'a> {
    /// M.
    pub matrix: Matrix,
    /// c, in 0..=1. With 1 there is no E, and the fixed point is the dominant eigenvector.
    pub damping: f64,
    /// E, a weight for each page; `None` for a uniform distribution.
    pub personalisation: Option<&'a [f64]>,
    /// Start vector, if not E.
    pub start: Option<&'a [f64]>,
    /// What happens to lost rank; matrices whose columns do not add up to 1 need `Renormalised`.
    pub dangling: Dangling,
    /// Whether to iterate M + I, which also converges on periodic graphs.
    pub add_identity: bool,
    /// The iteration stops when the L1 change of an iteration is at most this.
    pub tolerance: f64,
    /// Maximum number of iterations.
    pub iterations_max: u32,
}

impl Default for Power<'_> {
    fn default() -> Self {
        Self {
            matrix: Matrix::Walk,
            damping: 0.85,
            personalisation: None,
            start: None,
            dangling: Dangling::Renormalised,
            add_identity: false,
            tolerance: 1e-9,
            iterations_max: 1000,
        }
    }
}

impl Power<'_> {
    /// Iterates to the fixed point; the values add up to 1.
    ///
    /// # Errors
    /// If the damping is not in 0..=1, or the personalisation or start is not a distribution over the pages.
    pub fn run(&self, graph: &Graph) -> Result<Ranking, RankError> {
        if !(0.0..=1.0).contains(&self.damping) {
            return Err(RankError::Damping(self.damping));
        }
        let pages = graph.pages();
        let jump = distribution(self.personalisation, pages)?;
        let mut now = match self.start {
            Some(_) => distribution(self.start, pages)?,
            None => jump.clone(),
        };
        let operator = Operator::new(self.matrix, graph);
        let mut ranking =
            Ranking { values: Vec::new(), iterations: 0, residual: f64::INFINITY, operations: 0 };
        let mut scaled = vec![0.0; pages];
        let mut next = vec![0.0; pages];
        while ranking.iterations < self.iterations_max && ranking.residual > self.tolerance && pages > 0 {
            ranking.residual = self.step(&operator, &jump, &mut now, &mut scaled, &mut next);
            ranking.iterations += 1;
            ranking.operations += operator.rows.arcs() as u64;
        }
        ranking.values = now;
        Ok(ranking)
    }

    /// Runs one iteration; returns the change without A + I.
    fn step(
        &self,
        operator: &Operator,
        jump: &[f64],
        now: &mut Vec<f64>,
        scaled: &mut [f64],
        next: &mut Vec<f64>,
    ) -> f64 {
        let given = fill(scaled, |page| {
            let scale = operator.column_scale(page);
            (now[page] * scale, if scale > 0.0 { now[page] } else { 0.0 })
        });
        let lost = match self.dangling {
            Dangling::Personalised => 1.0 - given,
            Dangling::Renormalised => 0.0,
        };
        let jumping = 1.0 - self.damping + self.damping * lost;
        fill(next, |page| (self.damping * operator.pull(page, scaled) + jumping * jump[page], 0.0));
        normalise(next);
        let change = now.iter().zip(&*next).map(|(before, after)| (before - after).abs()).sum();
        if self.add_identity {
            next.iter_mut().zip(&*now).for_each(|(after, before)| *after = 0.5 * (*after + before));
        }
        std::mem::swap(now, next);
        change
    }
}

/// A matrix by rows, scaled by column and by row.
struct Operator {
    rows: Graph,
    columns: Option<Vec<f64>>,
    row_scale: Option<Vec<f64>>,
}

impl Operator {
    fn new(matrix: Matrix, graph: &Graph) -> Self {
        let out = || (0..graph.pages()).map(|page| one_over(graph.out_weight(page))).collect();
        match matrix {
            Matrix::Walk => Self { rows: graph.transposed(), columns: Some(out()), row_scale: None },
            Matrix::Links => Self { rows: graph.transposed(), columns: None, row_scale: None },
            Matrix::Symmetric => Self { rows: graph.symmetric(), columns: None, row_scale: None },
            Matrix::InversePrinted => Self { rows: graph.clone(), columns: None, row_scale: Some(out()) },
            Matrix::Inverse => {
                let back = graph.transposed();
                let into = (0..back.pages()).map(|page| one_over(back.out_weight(page))).collect();
                Self { rows: graph.clone(), columns: Some(into), row_scale: None }
            }
        }
    }

    fn column_scale(&self, page: usize) -> f64 {
        self.columns.as_ref().map_or(1.0, |columns| columns[page])
    }

    fn pull(&self, page: usize, scaled: &[f64]) -> f64 {
        pull(&self.rows, page, scaled) * self.row_scale.as_ref().map_or(1.0, |scale| scale[page])
    }
}

fn one_over(number: f64) -> f64 {
    if number > 0.0 { 1.0 / number } else { 0.0 }
}

fn distribution(weights: Option<&[f64]>, pages: usize) -> Result<Vec<f64>, RankError> {
    let Some(weights) = weights else { return Ok(vec![1.0 / pages.max(1) as f64; pages]) };
    let mut weights = weights.to_vec();
    if weights.len() != pages || weights.iter().any(|&weight| weight < 0.0 || !weight.is_finite()) {
        return Err(RankError::Personalisation);
    }
    if normalise(&mut weights) > 0.0 { Ok(weights) } else { Err(RankError::Personalisation) }
}

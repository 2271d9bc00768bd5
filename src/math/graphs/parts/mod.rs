//! PageRank of a graph in parts, by chaotic iteration (Xyleme, section 5.3), with a proven error bound.
//!
//! A part has some of the pages and all links that leave them. It solves `(I - d P^T) y = v` for its own pages in place
//! (Gauss-Seidel), with the last known inflow from the pages of other parts. Outflow is sent as totals, not as changes:
//! for each page of another part that this part's pages link to, the sum over these links. So a [`FlowBatch`] replaces
//! those before it. It may arrive late, again, after newer ones or never, and nothing is counted twice.
//!
//! **Bound.** For any y, `|y* - y|_1 <= |r|_1 / (1 - d)` with `r = v - (I - d P^T) y` over all parts, and the error of
//! PageRank `x = y / |y|_1` is at most twice this divided by `|y|_1`. The residual of a page is at most what its part
//! computes from what it has heard, plus what has flowed to it unheard. So `|r|_1` is at most what all parts keep plus
//! what is in transit between them, and each part's [`PartAccount`] states its share of both. Accounts need not be of one
//! moment: they bound the error of the values that each part had when it stated its own. The possible rounding error of
//! sums counts as kept.
//!
//! Values start below the solution and only rise towards it, and so do the flows. So values that are newer than their
//! accounts are closer to it.

mod links;
mod part;
mod run;

use std::io;

use crate::importance::rank::RankError;

pub use links::PartLink;
pub use links::merge;
pub use part::PAGE_BYTES;
pub use part::{FlowBatch, GraphPart, PartAccount};
pub use run::{Chaotic, ChaoticRanking};

/// Why parts cannot be ranked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The links of a part cannot be written to or read from a file.
    #[error("the links of a part: {0}")]
    Io(#[from] io::Error),
    /// A batch is from a part without links to this one, or has the wrong length.
    #[error("a batch from part {from} to part {to} does not fit")]
    Batch {
        /// Its sender.
        from: usize,
        /// Its receiver.
        to: usize,
    },
    /// The damping is invalid.
    #[error(transparent)]
    Rank(#[from] RankError),
}

/// Bound for the rounding error of sums of up to 2^32 numbers, as a factor.
const SLACK: f64 = 1.0 + 1e-6;

/// Returns an upper bound of the L1 error of PageRank, from the accounts of all parts in order.
#[must_use]
pub fn bound(accounts: &[PartAccount]) -> f64 {
    let (mut residual, mut total, mut follows) = (0.0, 0.0, 0.0f64);
    for (number, account) in accounts.iter().enumerate() {
        residual += account.kept;
        total += account.total;
        follows = follows.max(account.follows);
        for (other, sent) in accounts.iter().zip(&account.sent) {
            residual += (sent - other.heard.get(number).copied().unwrap_or(0.0)).abs();
        }
    }
    // Without a residual, as without pages, there is no error.
    if residual == 0.0 { 0.0 } else { 2.0 * SLACK * SLACK * residual / (1.0 - follows) / total }
}

#[cfg(test)]
mod tests;

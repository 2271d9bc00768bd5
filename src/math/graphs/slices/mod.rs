//! Ranking with little memory: the matrix is cut into slices on disk (Xyleme, section 5.3).
//!
//! A slice holds the links **into** a run of pages, ordered by source. Direct ranking keeps the run's new values in
//! memory and reads the sources' values in order from a file; inverse ranking keeps the run's old values in memory and
//! adds to its sources' new values in a file, also in order. Either way, a scan reads each slice once and everything
//! else in order.
//!
//! * *Gauss-Seidel*: a finished slice replaces the old one in the file at once, so later slices compute with it.
//! * *Chaotic*: with several threads, each computes its own slice with whatever the others have written so far.
//! * *Combined*: direct and inverse in one scan; each slice then needs memory for both.
//!
//! The direct ranking solves PageRank's linear system without the pages that have no links, as `rank::PageRank` does,
//! with the same error bound.

mod matrix;
mod rank;
mod vector;

use std::io;
use std::path::{Path, PathBuf};

pub use matrix::{SliceBuilder, SlicedMatrix};
pub use rank::{Sliced, SlicedMethod, SlicedRanking};

/// Memory for buffers besides the vectors, per thread.
pub const BUFFER_BYTES: usize = 1 << 18;

/// Why a matrix cannot be built or scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SliceError {
    /// A file system operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A slice is not as the builder wrote it.
    #[error("{}: the slice is damaged at byte {offset}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Byte offset.
        offset: u64,
    },
    /// The limit is too small for buffers and a slice of useful size.
    #[error("{given} bytes of memory are too few for {pages} pages; {least} would do")]
    Memory {
        /// The limit in bytes.
        given: usize,
        /// Number of pages of the graph.
        pages: usize,
        /// The lowest sufficient limit in bytes.
        least: usize,
    },
    /// A page or link does not fit.
    #[error("page {0} is beyond the last, or out of order")]
    Page(u32),
    /// The damping or the personalisation is invalid.
    #[error(transparent)]
    Rank(#[from] crate::importance::rank::RankError),
}

impl SliceError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.into(), source }
    }
}

#[cfg(test)]
mod tests;

//! The papers' experiments on simulated and recorded webs.

pub mod agreement;
pub mod convergence;
pub mod estimators;
pub mod focus;
pub mod hosts;
mod intervals;
pub mod librarian;
pub mod orders;
pub mod partitions;
pub mod passes;
pub mod plot;
pub mod raters;
pub mod refresh;
pub mod repeated;
pub mod report;
pub mod subjects;
pub mod transfers;
mod window;
pub mod windows;

use archive_math::importance::GraphError;
use archive_math::importance::rank::RankError;

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A graph is too large.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A method rejects its input.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// The settings of a test web are invalid.
    #[error(transparent)]
    Web(#[from] archive_testweb::ConfigError),
}

/// Returns the folder `name` of real data for tests; `None` if it is missing, in which case the test is skipped.
#[cfg(test)]
fn test_data(name: &str) -> Option<std::path::PathBuf> {
    let default = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("ARCHIVE_TEST_DATA").map_or_else(default, Into::into).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{} is missing", folder.display());
    eprintln!("skipped: {} is missing", folder.display());
    None
}

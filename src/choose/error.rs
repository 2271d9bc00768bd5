//! Why it cannot be said what is due, or why.

use archive_base::decisions::DecisionsError;
use archive_books::change::VersionError;
use archive_books::ledger::CreditError;
use archive_books::prepared::PreparedError;
use archive_books::topics::TopicError;
use archive_storage::{StateError, StoreError};

use super::due::WeightError;

/// Why it cannot be said what is due, or why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The books cannot be read.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// People's decisions cannot be read.
    #[error(transparent)]
    Decisions(#[from] DecisionsError),
    /// The topic of the crawl cannot be read, or its model cannot be trained.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A file of prepared columns is damaged.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// The newest version cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The weights of pages cannot be read.
    #[error(transparent)]
    Weight(#[from] WeightError),
}

impl archive_base::error::Classified for SelectionError {}

impl From<StateError> for SelectionError {
    fn from(error: StateError) -> Self {
        Self::Store(error.into())
    }
}

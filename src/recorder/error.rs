//! Why nothing more can be recorded.

use std::io;

use archive_storage::segment::SegmentError;
use archive_storage::{StateError, StoreError};

use crate::change::VersionError;
use crate::decisions::DecisionsError;
use crate::erased::ErasedError;
use crate::ledger::CreditError;
use crate::prepared::PreparedError;
use crate::search;
use crate::topics::TopicError;

/// Why nothing more can be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The books failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The full-text index failed.
    #[error(transparent)]
    Search(#[from] search::Error),
    /// What was erased is not known.
    #[error(transparent)]
    Erased(#[from] ErasedError),
    /// What people decided is not known.
    #[error(transparent)]
    Decisions(#[from] DecisionsError),
    /// A topic cannot be read, or what leads to it not be learned.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// What was prepared of the archive is damaged.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// A document cannot be checked.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// There are no threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A thread ended before its time.
    #[error("a thread that writes to the archive has ended unexpectedly")]
    ThreadEnded,
}

impl RecorderError {
    /// Whether the store had no room left: what failed may be tried again once there is.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_disk_full())
    }
}

impl From<StateError> for RecorderError {
    fn from(error: StateError) -> Self {
        Self::Store(error.into())
    }
}

impl From<SegmentError> for RecorderError {
    fn from(error: SegmentError) -> Self {
        Self::Store(error.into())
    }
}

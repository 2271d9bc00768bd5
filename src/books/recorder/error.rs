//! Why nothing more can be recorded.

use std::io;

use archive_base::access::AccessError;
use archive_base::decisions::DecisionsError;
use archive_base::erased::ErasedError;
use archive_base::error::Failure;
use archive_base::files::FileError;
use archive_base::remarks::RemarksError;
use archive_storage::segment::SegmentError;
use archive_storage::{StateError, StoreError};

use crate::change::VersionError;
use crate::columns::ColumnError;
use crate::ledger::CreditError;
use crate::prepared::{self, PreparedError};
use crate::search;
use crate::topics::TopicError;

/// Why nothing more can be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The remarks on URLs cannot be read or written.
    #[error(transparent)]
    Remarks(#[from] RemarksError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A thread ended unexpectedly.
    #[error("a thread that writes to the archive has ended unexpectedly")]
    ThreadEnded,
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Failure),
}

archive_base::passes_on! {
    RecorderError: CreditError, search::SearchError, AccessError, ErasedError, DecisionsError, TopicError,
    PreparedError, prepared::Error, ColumnError, FileError, VersionError
}

impl RecorderError {
    /// Whether the disk was full: the operation may be retried once there is space.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Store(error) => error.is_disk_full(),
            Self::Remarks(error) => error.is_disk_full(),
            _ => false,
        }
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

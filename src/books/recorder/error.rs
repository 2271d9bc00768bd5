//! Why nothing more can be recorded.

use std::io;

use archive_base::access::AccessError;
use archive_base::decisions::DecisionsError;
use archive_base::erased::ErasedError;
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
    /// The books failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The full-text index failed.
    #[error(transparent)]
    Search(#[from] search::SearchError),
    /// The access rules cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The list of erased captures cannot be read.
    #[error(transparent)]
    Erased(#[from] ErasedError),
    /// The remarks on URLs cannot be read or written.
    #[error(transparent)]
    Remarks(#[from] RemarksError),
    /// People's decisions cannot be read.
    #[error(transparent)]
    Decisions(#[from] DecisionsError),
    /// A topic cannot be read, or its model cannot be trained.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A file of prepared columns is damaged.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// Prepared columns cannot be written.
    #[error(transparent)]
    Columns(#[from] prepared::Error),
    /// Columns that were computed elsewhere cannot be read.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// A file beside the segments and the state cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A document cannot be validated.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A thread ended unexpectedly.
    #[error("a thread that writes to the archive has ended unexpectedly")]
    ThreadEnded,
}

impl archive_base::error::Classified for RecorderError {}

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

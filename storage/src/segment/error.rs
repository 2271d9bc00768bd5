//! What can go wrong with segments.

use std::io;
use std::path::{Path, PathBuf};

use crate::ids::SegmentId;
use crate::warc::ReadError;

/// Why a segment could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The disk refused. After a failed append nothing of the group is in the archive, and it may be appended again.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A sync failed earlier: what is on disk is not known, so nothing more is written. Open the archive again.
    #[error("the disk failed to keep what was written to it; open the archive again to recover")]
    Poisoned,
    /// Bytes are not what was written.
    #[error("segment {segment} is damaged at byte {offset}: {what}")]
    Corrupted {
        /// The segment.
        segment: SegmentId,
        /// Bytes before the damaged place.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// There is no such segment.
    #[error("there is no segment {0}")]
    Missing(SegmentId),
    /// What it put aside has not come back yet.
    #[error(
        "a repair was interrupted, and {waiting} segments wait in the quarantine: `archive repair` continues it"
    )]
    Unfinished {
        /// Segments that wait.
        waiting: usize,
    },
    /// New segments do not have their names yet.
    #[error(
        "a rewriting of segments was interrupted; the next command that changes the archive ends it, as `archive repack` does"
    )]
    Rewriting,
    /// A record is longer than a segment may hold.
    #[error("a record of {bytes} bytes is longer than {maximum} bytes")]
    TooLong {
        /// Its content.
        bytes: u64,
        /// What would be allowed.
        maximum: u64,
    },
    /// Somebody wanted it to end; nothing was changed.
    #[error("stopped before the end; nothing was changed")]
    Stopped,
    /// The compressor refused, which it never does but for lack of memory.
    #[error("cannot compress a record: {0}")]
    Compression(String),
    /// Bytes that are not a dictionary.
    #[error("not a dictionary: {0}")]
    Dictionary(String),
}

impl SegmentError {
    /// Why a record of a segment's file could not be read.
    pub(super) fn of_record(error: ReadError, segment: SegmentId, path: &Path) -> Self {
        match error {
            ReadError::Io(source) => Self::Io { action: "read", path: path.to_owned(), source },
            ReadError::Broken(broken) => {
                Self::Corrupted { segment, offset: broken.offset, what: broken.what }
            }
        }
    }

    /// Whether the disk is full: a state that passes, not a fault.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Names the file in an error of the disk.
pub(super) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, SegmentError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, SegmentError> {
        self.map_err(|source| SegmentError::Io { action, path: path.to_owned(), source })
    }
}

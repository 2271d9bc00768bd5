//! Errors of segments.

use std::io;
use std::path::{Path, PathBuf};

use crate::ids::SegmentId;
use crate::warc::RecordError;

/// Why a segment could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The disk refused. After a failed append nothing of the group is in the archive, and the append can be retried.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder concerned.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A sync failed earlier. The state on disk is unknown, so nothing more is written until the archive is opened
    /// again.
    #[error("the disk failed to keep what was written to it; open the archive again to recover")]
    Poisoned,
    /// The bytes are not those that were written.
    #[error("segment {segment} is damaged at byte {offset}: {what}")]
    Corrupted {
        /// The segment.
        segment: SegmentId,
        /// Offset of the damage.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// There is no such segment.
    #[error("there is no segment {0}")]
    Missing(SegmentId),
    /// A repair was interrupted and has not restored the segments that it put aside.
    #[error(
        "a repair was interrupted with {waiting} segment{} still in quarantine; run `archive repair` to continue it",
        if *waiting == 1 { "" } else { "s" }
    )]
    Unfinished {
        /// Number of segments still to be processed.
        waiting: usize,
    },
    /// A rewrite was interrupted before the new segments got their final names.
    #[error(
        "a rewrite of segments was interrupted; `archive repack` or any other command that changes the archive will complete or undo it"
    )]
    Rewriting,
    /// A record is longer than a segment may hold.
    #[error("a record of {bytes} bytes is longer than {maximum} bytes")]
    TooLong {
        /// Bytes of its content.
        bytes: u64,
        /// Maximum number of bytes.
        maximum: u64,
    },
    /// The caller asked to stop; nothing was changed.
    #[error("stopped before the end; nothing was changed")]
    Stopped,
    /// The compressor failed, which only happens when there is no memory.
    #[error("cannot compress a record: {0}")]
    Compression(String),
    /// The bytes are not a dictionary.
    #[error("not a dictionary: {0}")]
    Dictionary(String),
}

impl SegmentError {
    /// Converts an error of reading a record from a segment's file.
    pub(super) fn of_record(error: RecordError, segment: SegmentId, path: &Path) -> Self {
        match error {
            RecordError::Io(source) => Self::Io { action: "read", path: path.to_owned(), source },
            RecordError::Broken(broken) => {
                Self::Corrupted { segment, offset: broken.offset, what: broken.what }
            }
        }
    }

    /// Whether the disk is full: a condition that may pass, not a fault.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Adds the action and the path to an error of the disk.
pub(super) trait IoContext<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, SegmentError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, SegmentError> {
        self.map_err(|source| SegmentError::Io { action, path: path.to_owned(), source })
    }
}

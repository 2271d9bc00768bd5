//! Errors of the state files.

use std::io;
use std::path::{Path, PathBuf};

/// Why an operation on the state failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// An I/O operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// A sync failed: it is unknown which bytes written since the last successful one are durable.
    #[error("{}: writing to disk failed: {source}", path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// A file contains bytes that were never written to it. The state can be rebuilt from the segments.
    #[error("{} is damaged at byte {offset}: {what}; `archive repair` rebuilds the state", path.display())]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// Offset of the damage in bytes.
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// An operation on the catalogue failed.
    #[error("{}: {source}", path.display())]
    Catalogue {
        /// The catalogue's file.
        path: PathBuf,
        /// The underlying error.
        source: Box<redb::Error>,
    },
    /// Another process owns the archive.
    #[error("{} is in use by {holder}", path.display())]
    Locked {
        /// The archive's folder.
        path: PathBuf,
        /// Process id and command of the owner, as it recorded them.
        holder: String,
    },
    /// A reader found no state.
    #[error("{} holds no archive", path.display())]
    Missing {
        /// The folder in which it was expected.
        path: PathBuf,
    },
    /// A reader found segments without a state.
    #[error(
        "{} has segments but no state, as after a first run that was killed: run the same command again, or \
         `archive repair`",
        path.display()
    )]
    Lost {
        /// The archive's folder.
        path: PathBuf,
    },
    /// The state was written by a later release.
    #[error(
        "this archive has format {found}, but this release reads formats up to {supported}: use a newer release"
    )]
    NewerFormat {
        /// The format number in the catalogue.
        found: u64,
        /// The newest format that this code supports.
        supported: u64,
    },
    /// The state was written by an earlier release.
    #[error(
        "the state of this archive has format {found} of an earlier release, and this release works with {supported}: \
         `archive rebuild` rebuilds it from the segments"
    )]
    OlderFormat {
        /// The format number in the catalogue.
        found: u64,
        /// The format that this code supports.
        supported: u64,
    },
    /// The id was never assigned.
    #[error("there is no {what} {id}")]
    Unknown {
        /// The kind of thing that the id should identify.
        what: &'static str,
        /// The id.
        id: u64,
    },
    /// A text is longer than the limit of its table.
    #[error("{what} of {length} bytes; at most {limit} are kept")]
    TooLong {
        /// The kind of text.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A name contains a line feed, which no URL, host or site does.
    #[error("a URL or name with a line feed")]
    LineFeed,
    /// All ids of a kind are in use.
    #[error("no more {what} fit: all 32-bit ids are in use")]
    Full {
        /// The kind of thing that has run out of ids.
        what: &'static str,
    },
    /// The state was opened for reading.
    #[error("the archive is open for reading only")]
    ReadOnly,
    /// An earlier failure left memory and disk in an uncertain state; reopening recovers.
    #[error("the state was given up after an earlier failure ({reason}): open the archive again")]
    Poisoned {
        /// The earlier failure.
        reason: String,
    },
}

impl StateError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn sync(path: &Path, source: io::Error) -> Self {
        Self::Sync { path: path.to_owned(), source }
    }

    pub(crate) fn corrupted(path: &Path, offset: u64, what: &'static str) -> Self {
        Self::Corrupted { path: path.to_owned(), offset, what }
    }

    pub(crate) fn catalogue(path: &Path, source: impl Into<redb::Error>) -> Self {
        Self::Catalogue { path: path.to_owned(), source: Box::new(source.into()) }
    }

    pub(crate) fn busy_readers(folder: &Path) -> Self {
        Self::Locked { path: folder.to_owned(), holder: "a reader that does not finish".to_owned() }
    }

    /// Whether the disk was full; the operation may be retried once there is space.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let kind = match self {
            Self::Io { source, .. } => source.kind(),
            Self::Catalogue { source, .. } => match source.as_ref() {
                redb::Error::Io(source) => source.kind(),
                _ => return false,
            },
            _ => return false,
        };
        matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Result type of the state's modules.
pub(crate) type Result<T, E = StateError> = std::result::Result<T, E>;

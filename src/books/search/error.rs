//! Errors of the index, and how to recover from them.

use std::io;
use std::path::{Path, PathBuf};

use archive_storage::{StateError, quietly};
use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};

/// Why the full-text index cannot be used. The index is derived from the archive: it can always be removed and rebuilt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// There is no index in the folder.
    #[error("there is no full-text index in {}", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// The archive keeps no index of older versions.
    #[error(
        "this archive's index has the newest versions only; `archive rebuild --index-versions` makes older ones searchable"
    )]
    NoVersions,
    /// The past versions of pages cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Another process is writing to the index.
    #[error("the full-text index in {} is being written by another process", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The index was made by another version of this program.
    #[error(
        "the full-text index in {} was made by another version: `archive repair` rebuilds it",
        folder.display()
    )]
    OtherVersion {
        /// The folder.
        folder: PathBuf,
    },
    /// The index is damaged.
    #[error(
        "the full-text index in {} is damaged ({what}): `archive repair` rebuilds it",
        folder.display()
    )]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What was found.
        what: String,
    },
    /// Reading or writing failed.
    #[error("the full-text index in {} failed", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What failed.
        #[source]
        source: TantivyError,
    },
}

/// Errors of reading by which the content of the index, and not the disk, is at fault.
const DAMAGE: [io::ErrorKind; 2] = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];

/// Runs `work` on the index in `folder`. The engine checks little of what it reads, and panics on some damage; this
/// becomes [`Error::Damaged`].
pub(crate) fn guarded<T>(
    folder: &Path,
    work: impl FnOnce() -> Result<T, SearchError>,
) -> Result<T, SearchError> {
    quietly(work).unwrap_or_else(|| {
        Err(SearchError::Damaged {
            folder: folder.to_owned(),
            what: "a file has changed since it was written".to_owned(),
        })
    })
}

impl SearchError {
    /// Converts an error of the search engine while opening the index in `folder`.
    pub(crate) fn opening(folder: &Path, source: TantivyError) -> Self {
        match source {
            TantivyError::SchemaError(_) => Self::OtherVersion { folder: folder.to_owned() },
            source => Self::of(folder, source),
        }
    }

    /// Converts an error of the search engine for the index in `folder`.
    pub(crate) fn of(folder: &Path, source: TantivyError) -> Self {
        let folder = folder.to_owned();
        match source {
            TantivyError::OpenDirectoryError(OpenDirectoryError::DoesNotExist(_))
            | TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_)) => Self::Missing { folder },
            TantivyError::LockFailure(LockError::LockBusy, _) => Self::Locked { folder },
            TantivyError::IncompatibleIndex(_)
            | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_)) => {
                Self::OtherVersion { folder }
            }
            TantivyError::DataCorruption(corruption) => {
                Self::Damaged { folder, what: format!("{corruption:?}") }
            }
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
            | TantivyError::LockFailure(LockError::IoError(io_error), _)
            | TantivyError::IoError(io_error)
                if DAMAGE.contains(&io_error.kind()) =>
            {
                Self::Damaged { folder, what: io_error.to_string() }
            }
            // The engine would print the error as a programmer sees it.
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => {
                Self::Io { folder, source: TantivyError::IoError(io_error) }
            }
            source => Self::Io { folder, source },
        }
    }
}

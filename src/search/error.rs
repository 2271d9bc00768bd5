//! What can go wrong with the index, and what to do then.

use std::path::{Path, PathBuf};

use archive_storage::{StateError, quietly};
use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};

/// Why the full-text index cannot be used. The index is derived from the archive: it can always be removed and built
/// anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// What pages were at a time cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Another process is writing to it.
    #[error("the full-text index in {} is being written by another process", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// It was made by another version of this program.
    #[error(
        "the full-text index in {} was made by another version: `archive repair` rebuilds it",
        folder.display()
    )]
    OtherVersion {
        /// The folder.
        folder: PathBuf,
    },
    /// Its state cannot be read: it is damaged.
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

/// Does something with the index in `folder`: the engine checks little of what it reads, and panics over some damage.
pub(crate) fn guarded<T>(folder: &Path, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    quietly(work).unwrap_or_else(|| {
        Err(Error::Damaged { folder: folder.to_owned(), what: "a file is not what was written".to_owned() })
    })
}

impl Error {
    /// What an error of the search engine means when the index in `folder` is opened.
    pub(crate) fn opening(folder: &Path, source: TantivyError) -> Self {
        match source {
            TantivyError::SchemaError(_) => Self::OtherVersion { folder: folder.to_owned() },
            source => Self::of(folder, source),
        }
    }

    /// What an error of the search engine means for the index in `folder`.
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
            source => Self::Io { folder, source },
        }
    }
}

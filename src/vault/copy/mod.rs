//! Copies of an archive in an object store, and their restoration.
//!
//! A copy is a manifest, `manifests/NNNNNNNN.jsonl`, which lists every file of the archive as of one checkpoint, with
//! its length and SHA-256. The files are objects, `objects/NNNNNNNN/SHA256`, where NNNNNNNN is the number of the copy
//! that uploaded them. A copy exists once its manifest does, which is written last and never replaces another one:
//! manifests are numbered without gaps, and of several copies that compete for a number one gets it
//! ([`archive_base::remote::create`]).
//!
//! Invariant: **a manifest refers to objects of its own number and to objects that the manifest before it refers to,
//! and to no others.** An object that was uploaded under a number and is not in that number's manifest will therefore
//! never be referred to. After writing manifest N, a copy may remove all objects of numbers up to N that no kept
//! manifest refers to, without a lock and whatever other copies do: a copy that is about to write manifest N + 1 refers
//! to objects of manifest N and uploads the rest under N + 1, and one that is still at N - 1 cannot write its manifest
//! any more, because a removed manifest leaves an empty object in its place, so that its number is not reused. Objects
//! that a killed copy uploaded under N + 1 serve the next copy, which has the same number.

mod check;
mod manifest;
mod places;
mod prune;
mod restore;
mod send;
mod snapshot;
mod transfer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_base::erased::ErasedError;
use archive_base::error::{Classified, ErrorKind};
use archive_base::files::FileError;
use archive_base::remote::{self, RemoteError};
use archive_books::cluster::ClusterError;
use archive_books::search;
use archive_storage::StoreError;
use object_store::ObjectStore;
use tokio::runtime::Runtime;

pub use self::check::{CopyCheck, CopyFinding, check};
pub use self::manifest::{CopiedFile, FILES_MAX, Manifest, PATH_BYTES_MAX};
pub use self::places::{CopyPlace, FILE as PLACES_FILE, places};
pub use self::prune::{Removed, keep_after_erase, prune};
pub use self::restore::{RESTORE_ENDING, RestoreSummary, restore};
pub use self::send::{CopySummary, send};
pub use self::snapshot::{FOLDER as SNAPSHOT_FOLDER, HELD_FIRST, HoldLock as SnapshotLock};

/// Receives the bytes done so far and their total; called from several threads.
pub type CopyProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Why making, checking or restoring a copy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The object store failed.
    #[error("{url}: {source}")]
    Remote {
        /// URL of the store.
        url: String,
        /// The error.
        source: RemoteError,
    },
    /// The URL, the credentials or the threads are at fault.
    #[error(transparent)]
    Open(#[from] RemoteError),
    /// A manifest is invalid.
    #[error("{url}: copy {number} cannot be used: {problem}")]
    Manifest {
        /// URL of the store.
        url: String,
        /// Number of the copy.
        number: u64,
        /// What is wrong.
        problem: String,
    },
    /// There is no copy, or not this one.
    #[error("{url} has no copy{}", number.map_or(String::new(), |number| format!(" {number}; `archive copy --list` shows those there are")))]
    NoCopy {
        /// URL of the store.
        url: String,
        /// Number of the requested copy.
        number: Option<u64>,
    },
    /// The copies in the store belong to another archive, or the archive has lost its record of them.
    #[error(
        "{url} has copies that this archive does not know of, the newest of {time}; use another prefix, or continue them with --adopt"
    )]
    Foreign {
        /// URL of the store.
        url: String,
        /// When the newest copy was made.
        time: String,
    },
    /// A concurrent copy got the number.
    #[error(
        "{url}: another copy was made at the same time and is copy {number} now; run the command again to send what is missing"
    )]
    Overtaken {
        /// URL of the store.
        url: String,
        /// Number of the copy.
        number: u64,
    },
    /// The archive is being copied, or captures are being erased from it.
    #[error("{} is already being copied, or pages are being erased from it; wait until that is done", .0.display())]
    UnderWay(PathBuf),
    /// An erase is unfinished; a copy would contain the erased captures.
    #[error("an erase was interrupted; finish it with `archive erase --resume`, then copy")]
    EraseUnfinished,
    /// A file has changed.
    #[error("{}: {problem}; this copy was not completed; run `archive verify` for details", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What has changed.
        problem: String,
    },
    /// The store acknowledged objects and does not have them.
    #[error(
        "{url}: the store took {count} of {total} objects and does not have them, {object} among them; the copy was not completed, \
         use another store"
    )]
    Absent {
        /// URL of the store.
        url: String,
        /// Number of the absent objects, and of those that were sent.
        count: usize,
        /// Number of objects that were sent.
        total: usize,
        /// Name of one.
        object: String,
    },
    /// An object does not match the manifest.
    #[error("{url}: {object}, {path} of the archive, {problem}; `archive copy --verify` checks everything")]
    Damaged {
        /// URL of the store.
        url: String,
        /// Name of the object.
        object: String,
        /// The archive's file in it.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The destination of a restore is not usable.
    #[error("{} {problem}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Why it is not usable.
        problem: String,
    },
    /// The archive has more files than a manifest can list.
    #[error("the archive has more than {FILES_MAX} files; `archive repack` gathers small segments")]
    TooMany,
    /// The archive failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The full-text index failed.
    #[error(transparent)]
    Search(#[from] search::SearchError),
    /// A file of the archive, or of the restored one, cannot be read or written.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The archive is a partition of a cluster that another node owns, or whose owner cannot be determined.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The list of erased URLs cannot be read.
    #[error(transparent)]
    Erased(#[from] ErasedError),
    /// A stop was requested.
    #[error("stopped; the same command continues it")]
    Stopped,
}

impl CopyError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io(FileError::at(path)(source))
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Remote { source, .. } => source.is_passing(),
            Self::Cluster(error) => error.is_passing(),
            Self::Overtaken { .. }
            | Self::UnderWay(_)
            | Self::Changed { .. }
            | Self::Io(_)
            | Self::Store(_)
            | Self::Search(_) => true,
            _ => false,
        }
    }
}

impl Classified for CopyError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnderWay(_) | Self::Overtaken { .. } => ErrorKind::Busy,
            Self::Open(RemoteError::Url { .. }) => ErrorKind::Usage,
            Self::Stopped => ErrorKind::Stopped,
            error => ErrorKind::of_causes(error),
        }
    }
}

/// An object store for copies.
#[derive(Debug)]
pub struct Remote {
    url: String,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl Remote {
    /// Opens the store at a URL.
    ///
    /// # Errors
    /// As [`remote::open`].
    pub fn open(url: &str) -> Result<Self, CopyError> {
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { store: remote::open(&url)?, runtime: remote::runtime()?, url })
    }

    fn failed(&self, source: RemoteError) -> CopyError {
        CopyError::Remote { url: self.url.clone(), source }
    }

    /// Waits for an operation.
    fn wait<T>(&self, operation: impl Future<Output = Result<T, RemoteError>>) -> Result<T, CopyError> {
        self.runtime.block_on(operation).map_err(|error| self.failed(error))
    }
}

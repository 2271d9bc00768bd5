//! Copies of an archive in an object store, and archives made of them again.
//!
//! A copy is a manifest, `manifests/NNNNNNNN.jsonl`, which lists every file of the archive as of one checkpoint, with its length
//! and SHA-256. The files are objects, `objects/NNNNNNNN/SHA256`, where NNNNNNNN is the number of the copy that brought them.
//! A copy exists once its manifest does, which is put last, where none may be: manifests are numbered without gaps, and of several
//! copies that would get a number one gets it ([`crate::remote::create`]).
//!
//! Invariant: **a manifest names objects of its own number and objects that the manifest before it names, and no others.** So an
//! object that was sent under a number and is not named by that number's manifest will never be named. After putting manifest N,
//! a copy may therefore remove all objects of numbers up to N that no kept manifest names, without a lock and whatever others do:
//! a copy that is about to put manifest N + 1 names what N names and sends the rest under N + 1, and one that is still at N - 1
//! cannot put a manifest any more, because a removed manifest leaves an empty object in its place, so that its number is not
//! reused. Objects that a killed copy sent under N + 1 serve the next one, which has the same number.

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

use archive_storage::StoreError;
use object_store::ObjectStore;
use tokio::runtime::Runtime;

use crate::cluster::ClusterError;
use crate::erased::ErasedError;
use crate::remote::{self, RemoteError};
use crate::search;

pub use self::check::{Checked, Finding, check};
pub use self::manifest::{CopiedFile, FILES_MAX, MANIFEST_BYTES_MAX, Manifest, PATH_BYTES_MAX};
pub use self::places::{FILE as PLACES_FILE, Place, places};
pub use self::prune::{Removed, keep_after_erase, prune};
pub use self::restore::{RESTORE_ENDING, Restored, restore};
pub use self::send::{Copied, send, send_if};
pub use self::snapshot::{FOLDER as SNAPSHOT_FOLDER, HELD_FIRST, Lock as SnapshotLock};

/// Reports how many bytes of how many are done; called from several threads.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Why a copy could not be made or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The store.
    #[error("{url}: {source}")]
    Remote {
        /// Its URL.
        url: String,
        /// What happened.
        source: RemoteError,
    },
    /// The URL, the credentials, the threads.
    #[error(transparent)]
    Open(#[from] RemoteError),
    /// A manifest that says what none can.
    #[error("{url}: copy {number} cannot be used: {problem}")]
    Manifest {
        /// Where.
        url: String,
        /// Its number.
        number: u64,
        /// What is wrong.
        problem: String,
    },
    /// There is none, or not this one.
    #[error("{url} has no copy{}", number.map_or(String::new(), |number| format!(" {number}; `archive copy --list` shows those there are")))]
    NoCopy {
        /// Where.
        url: String,
        /// Which one was asked for.
        number: Option<u64>,
    },
    /// The copies there are of another archive, or this one has forgotten them.
    #[error(
        "{url} has copies that this archive does not know of, the newest of {time}; take another prefix, or continue them with --adopt"
    )]
    Foreign {
        /// Where.
        url: String,
        /// When the newest was made.
        time: String,
    },
    /// Another copy got the number.
    #[error(
        "{url}: another copy was made at the same time and is copy {number} now; give the command again, it brings what is missing"
    )]
    Overtaken {
        /// Where.
        url: String,
        /// The number that was wanted.
        number: u64,
    },
    /// This archive is being copied.
    #[error("{} is being copied already, or something is being erased from it; wait for that", .0.display())]
    UnderWay(PathBuf),
    /// Copies would hold what is to go.
    #[error("an erase was interrupted; finish it with `archive erase --resume`, then copy")]
    EraseUnfinished,
    /// A file is not what it was.
    #[error("{}: {problem}; nothing of this copy counts; `archive verify` says more", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is different.
        problem: String,
    },
    /// An object is not what the manifest says.
    #[error("{url}: {object}, {path} of the archive, {problem}; `archive copy --verify` looks at everything")]
    Damaged {
        /// Where.
        url: String,
        /// Its name there.
        object: String,
        /// The file that it is.
        path: String,
        /// What is different.
        problem: String,
    },
    /// There is something already.
    #[error("{} {problem}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Why nothing is restored into it.
        problem: String,
    },
    /// More files than a manifest lists.
    #[error("the archive has more than {FILES_MAX} files; `archive repack` gathers small segments")]
    TooMany,
    /// The archive.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The full-text index.
    #[error(transparent)]
    Search(#[from] search::Error),
    /// A file of the archive, or of the restored one.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The archive is a partition of a cluster that another node has by now, or that cannot be told.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The list of what was erased.
    #[error(transparent)]
    Erased(#[from] ErasedError),
    /// Somebody wanted it to end.
    #[error("stopped; the same command continues it")]
    Stopped,
}

impl CopyError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }

    /// Whether it may go well when it is tried again.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Remote { source, .. } => source.is_passing(),
            Self::Cluster(error) => error.is_passing(),
            Self::Overtaken { .. }
            | Self::UnderWay(_)
            | Self::Changed { .. }
            | Self::Io { .. }
            | Self::Store(_)
            | Self::Search(_) => true,
            _ => false,
        }
    }

    /// Whether something else has the archive or the place now.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::UnderWay(_) | Self::Overtaken { .. })
    }
}

/// A place for copies.
#[derive(Debug)]
pub struct Remote {
    url: String,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl Remote {
    /// Opens the store of a URL.
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

    /// The numbers of the copies that there are, in order.
    ///
    /// # Errors
    /// When the store fails.
    pub fn numbers(&self) -> Result<Vec<u64>, CopyError> {
        manifest::numbers(self)
    }

    /// The manifest of a copy.
    ///
    /// # Errors
    /// When there is none of this number, or it says what none can.
    pub fn manifest(&self, number: u64) -> Result<Manifest, CopyError> {
        manifest::load(self, number)
    }
}

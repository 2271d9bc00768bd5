//! Verifies that an archive is as it was written: the storage layer and everything derived from it.

use std::path::Path;

use archive_storage::{Owner, Store, StoreError, Verified};

use crate::columns::{self, ColumnError};
use crate::decisions::Decisions;
use crate::erased::Erased;
use crate::prepared;
use crate::remarks;
use crate::search;
use crate::topics::{self, TopicError};
use crate::watch;

/// Why a verification failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// There is no archive, or it cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of columns cannot be read.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The folder of topics cannot be read.
    #[error(transparent)]
    Topic(#[from] TopicError),
}

/// Verifies the archive in `path`: every `every`th capture (1 for all) and, if all are checked, every file. `progress`
/// gets the number of captures checked so far.
///
/// # Errors
/// If there is no archive, its state has another format, or a folder cannot be read.
pub fn run(path: &Path, every: u64, progress: &mut dyn FnMut(u64)) -> Result<Verified, VerifyError> {
    let mut verified = archive_storage::verify(path, every, progress)?;
    if every > 1 {
        return Ok(verified);
    }
    // A state that cannot be opened is already among the findings.
    if let Ok(store) = Store::read_only(path) {
        for (folder, _) in INDEXES {
            for what in index_damage(&store, folder) {
                verified.find(None, None, format!("{folder}: {what}; `archive repair` rebuilds it"));
            }
        }
        for (_, what) in prepared::damage(&store) {
            verified.find(None, None, format!("{what}; `archive repair` removes it"));
        }
        for file in columns::damaged(path, store.state().identity())? {
            let file = file.strip_prefix(path).unwrap_or(&file).display().to_string();
            let what = format!("{file} is not a column of this state; `archive repair` removes it");
            verified.find(None, None, what);
        }
    }
    // What people wrote cannot be recomputed.
    let by_people = [
        watch::list(path).err().map(|error| error.to_string()),
        Decisions::read(path).err().map(|error| error.to_string()),
        Erased::read(path).err().map(|error| error.to_string()),
    ];
    let remarks = match remarks::each(path, |_| ()) {
        Ok(0) => None,
        Ok(damaged) => Some(format!("{}: {damaged} parts cannot be read", remarks::FILE)),
        Err(error) => Some(error.to_string()),
    };
    for what in topics::damage(path)?.into_iter().chain(remarks) {
        verified.find(None, None, what);
    }
    for error in by_people.into_iter().flatten() {
        verified.find(None, None, format!("{error}; put back a copy of it, or take the file away"));
    }
    Ok(verified)
}

/// The full-text indexes: their folders in the archive's folder, and their names in the state's folder.
pub(super) const INDEXES: [(&str, &str); 2] =
    [(search::FOLDER, search::NAME), (search::VERSIONS_FOLDER, search::VERSIONS_NAME)];

/// Returns what is wrong with a full-text index, if it exists and is not being written to.
pub(super) fn index_damage(store: &Store, folder: &str) -> Vec<String> {
    let folder = store.path().join(folder);
    // A running crawl replaces files of its index all the time.
    if !folder.is_dir() || Owner::is_taken(store.path()).unwrap_or(false) {
        return Vec::new();
    }
    search::check(&folder, store.state().identity())
}

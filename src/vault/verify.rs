//! Verifies that an archive is as it was written: the storage layer and everything derived from it.

use std::path::Path;

use archive_base::access::Access;
use archive_base::beside;
use archive_base::decisions::Decisions;
use archive_base::erased;
use archive_base::error::Failure;
use archive_base::remarks;
use archive_books::columns;
use archive_books::prepared;
use archive_books::search;
use archive_books::topics;
use archive_books::trends::Trends;
use archive_storage::{Owner, Store, Verified};

use super::{erase, exports};

/// Returns what is wrong with the files that people wrote for another part of the program, if anything.
pub type FileCheck = fn(&Path) -> Option<String>;

/// Verifies the archive in `path`: every `every`th capture (1 for all) and, if all are checked, every file, those of
/// other parts of the program by `others`. `progress` gets the number of captures checked so far.
///
/// # Errors
/// If there is no archive, its state has another format, or a folder cannot be read.
pub fn run(
    path: &Path,
    every: u64,
    others: &[FileCheck],
    progress: &mut dyn FnMut(u64),
) -> Result<Verified, Failure> {
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
        for what in beside_damage(&store) {
            verified.find(None, None, what);
        }
        for file in columns::damaged(path, store.state().identity())? {
            let file = file.strip_prefix(path).unwrap_or(&file).display().to_string();
            let what = format!("{file} is not a column of this state; `archive repair` removes it");
            verified.find(None, None, what);
        }
    }
    if let Err(error) = Trends::read(path) {
        verified.find(None, None, format!("{error}; `archive repair` removes it"));
    }
    // What people wrote cannot be recomputed.
    let by_people = [
        Decisions::read(path).err().map(|error| error.to_string()),
        Access::read(path).err().map(|error| error.to_string()),
        exports::damage(path),
    ];
    for what in topics::damage(path)? {
        verified.find(None, None, what);
    }
    for error in others.iter().map(|check| check(path)).chain(by_people).flatten() {
        verified.find(None, None, format!("{error}; put back a copy of it, or correct it"));
    }
    Ok(verified)
}

/// Returns what is wrong with the files beside the state that it knows of.
fn beside_damage(store: &Store) -> Vec<String> {
    let (path, state) = (store.path(), store.state());
    let mut found: Vec<String> = lost(store).map(|name| format!("{name} {LOST}")).collect();
    if let Some(what) = remarks::damage(path, state) {
        found.push(format!("{what}; `archive repair` writes it again from the state"));
    }
    if let Some(what) = erase::list_damage(store) {
        found.push(format!("{what}; `archive repair` writes it again from the tombstones"));
    }
    found
}

/// What to do about a file that only people can bring back.
pub(super) const LOST: &str = "is missing or has lost its end; put back a copy of it, or create an empty one if there \
                                is to be nothing in it";

/// The files beside the state that were there, are missing, and cannot be made again.
pub(super) fn lost(store: &Store) -> impl Iterator<Item = &'static str> {
    let lost = beside::missing(store.state(), store.path()).into_iter();
    lost.filter(|name| ![erased::FILE, remarks::FILE].contains(name))
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

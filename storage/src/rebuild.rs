//! Builds a new state beside the old one, from the segments or as a copy without erased data. The old one stays until
//! the new one is complete.
//!
//! The new state grows in the archive's folder `rebuild/`, along with anything else that the caller keeps in the
//! state's folder. It is put in place by exchanging the two folders atomically, so after a crash, and for any reader,
//! one of the two is there in full. The next rebuild removes the remains of an interrupted one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Disk, DiskFile, OpenMode, RealDisk};
use crate::catalogue::{Catalogue, FORMAT, FORMAT_VERSION, GENERATION, NUMBER, REWRITES};
use crate::checkpoint::{StateError, lock};
use crate::ids::Watermarks;
use crate::segment::{self, Catalogued, SegmentOptions, Segments};
use crate::state::{FOLDER as STATE, Scrub, State, StateMode};
use crate::store::{Store, StoreError};

/// The folder in which a new state grows.
const FOLDER: &str = "rebuild";

/// How long to wait for readers before the new state replaces the old.
const READERS_WAIT: Duration = Duration::from_secs(60);

/// A rebuild in progress. If it is dropped before [`Rebuild::finish`], the archive is unchanged.
#[derive(Debug)]
pub struct Rebuild {
    path: PathBuf,
    store: Store,
    /// Settings of the old state, if they could be read.
    settings: Option<Vec<(String, Vec<u8>)>>,
    /// Held until the end, so that no other process changes the archive.
    _owner: Arc<dyn DiskFile>,
}

impl Rebuild {
    /// Creates an empty state beside the old one of the archive in `path`, and recovers its segments after a crash.
    ///
    /// # Errors
    /// When another process owns the archive, and on any I/O error.
    pub fn begin(path: &Path, mut options: SegmentOptions) -> Result<Self, StoreError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let owner = lock::own(disk.as_ref(), path)?;
        let shadow = path.join(FOLDER);
        let failed = |error| StateError::io(&shadow, error);
        finish_exchange(disk.as_ref(), path).map_err(failed)?;
        remove(&shadow).map_err(failed)?;
        fs::create_dir(&shadow).map_err(failed)?;
        let old = Catalogue::new(disk.clone(), &path.join(STATE)).load_any_format();
        let old = old.ok().filter(|old| old.number(NUMBER) > 0);
        if let Some(found) =
            old.as_ref().map(|old| old.number(FORMAT)).filter(|found| *found > FORMAT_VERSION)
        {
            return Err(StateError::NewerFormat { found, supported: FORMAT_VERSION }.into());
        }
        let has_settings = old.is_some();
        let old = old.unwrap_or_default();
        let mut state = State::open(disk.clone(), &shadow, StateMode::Own)?;
        // From these numbers, readers of the old state notice that all ids have changed.
        state.follow(old.number(NUMBER), old.number(GENERATION));
        // Only the old state knows which segments count.
        let is_known = old.number(NUMBER) > 0;
        segment::settle(disk.as_ref(), path, is_known.then(|| old.number(REWRITES)))?;
        options.relied_on = Watermarks::default();
        options.catalogue = old.catalogued();
        let (segments, recovered) = Segments::open(disk, path, options)?;
        let store = Store::of_parts(path, state, segments, recovered);
        let settings = has_settings.then(|| old.settings.into_iter().collect());
        Ok(Self { path: path.to_owned(), store, settings, _owner: owner })
    }

    /// Copies a state beside itself, without what was erased. The archive must not have changed since its last
    /// checkpoint.
    ///
    /// # Errors
    /// On an I/O error; the archive is then unchanged.
    pub fn scrub(store: Store, scrub: &Scrub) -> Result<Self, StoreError> {
        let path = store.path().to_owned();
        let shadow = path.join(FOLDER);
        let failed = |error| StateError::io(&shadow, error);
        remove(&shadow).map_err(failed)?;
        fs::create_dir(&shadow).map_err(failed)?;
        let (state, segments) = store.into_parts()?;
        let owner = state.owner()?;
        let copy = state.scrubbed(&shadow, scrub)?;
        let store = Store::of_parts(&path, copy, segments, Vec::new());
        Ok(Self { path, store, settings: None, _owner: owner })
    }

    /// The archive with the state built so far.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The settings of the old state, if they could be read; a rebuild does not adopt them by itself.
    #[must_use]
    pub fn settings(&self) -> Option<&[(String, Vec<u8>)]> {
        self.settings.as_deref()
    }

    /// The folder that stands in for the archive's: files created in its state folder replace the old ones along with
    /// the state.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.path.join(FOLDER)
    }

    /// Removes the new state and leaves the archive unchanged.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn abandon(self) -> Result<(), StoreError> {
        let shadow = self.folder();
        let Self { store, _owner, .. } = self;
        drop(store);
        remove(&shadow).map_err(|error| StateError::io(&shadow, error).into())
    }

    /// Replaces the old state by the new one. Everything in it must be checkpointed.
    ///
    /// # Errors
    /// When readers do not leave, and on an I/O error; the old state is then still in place.
    pub fn finish(self) -> Result<(), StoreError> {
        let (state, shadow) = (self.path.join(STATE), self.path.join(FOLDER));
        let Self { path, store, _owner, .. } = self;
        // Otherwise nothing writes the file before an owner closes the archive, and without it every reader hashes all
        // URLs.
        store.state().prepare_finding()?;
        drop(store);
        let new = shadow.join(STATE);
        let failed = |error| StoreError::from(StateError::io(&state, error));
        let disk = RealDisk;
        let lock_path = state.join(lock::CHECKPOINT_LOCK);
        if lock_path.exists() {
            let held = disk.open(&lock_path, OpenMode::Create).map_err(failed)?;
            if !lock::exclude_readers(held.as_ref(), &lock_path, READERS_WAIT)? {
                return Err(StateError::busy_readers(&path).into());
            }
            // Readers of the old state move to the new one under the lock that they hold.
            let carried = new.join("checkpoint.lock.old");
            fs::hard_link(&lock_path, &carried).map_err(failed)?;
            disk.rename(&carried, &new.join(lock::CHECKPOINT_LOCK)).map_err(failed)?;
            disk.sync_dir(&new).map_err(failed)?;
            exchange(&new, &state).map_err(failed)?;
        } else {
            remove(&state).map_err(failed)?;
            disk.rename(&new, &state).map_err(failed)?;
        }
        disk.sync_dir(&path).map_err(failed)?;
        remove(&shadow).map_err(failed)
    }
}

/// Returns what the catalogue of the archive in `path` says about segments, if it can be read, whatever the condition
/// of the rest of the state.
#[must_use]
pub fn catalogued(path: &Path) -> Catalogued {
    let catalogue = Catalogue::new(Arc::new(RealDisk), &path.join(STATE));
    catalogue.load_any_format().unwrap_or_default().catalogued()
}

/// Swaps the names of two folders, atomically where the file system supports it. Where it does not, a crash between the
/// two renames leaves no state, and the next owner performs the second: see [`finish_exchange`].
pub(crate) fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    fs::rename(old, new.with_extension("old"))?;
    fs::rename(new, old)
}

/// Puts a complete new state in place if a crash interrupted an exchange between its two renames. The archive must be
/// owned.
pub(crate) fn finish_exchange(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let (state, new) = (path.join(STATE), path.join(FOLDER).join(STATE));
    if disk.exists(&new.with_extension("old"))? && disk.exists(&new)? && !disk.exists(&state)? {
        disk.rename(&new, &state)?;
        disk.sync_dir(path)?;
    }
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

//! A state rebuilt, from the segments or without what was erased, beside the old one, which stays until the new one is whole.
//!
//! The new state grows in the folder `rebuild/` of the archive, with whatever else the caller keeps in the state's folder.
//! Putting it in place is one exchange of two folders, so a crash leaves the one or the other whole, and so does a reader
//! find them. What is left of a rebuild that broke off is taken away by the next.

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
use crate::state::{FOLDER as STATE, Mode, Scrub, State};
use crate::store::{Store, StoreError};

/// The folder in which a new state grows.
const FOLDER: &str = "rebuild";

/// How long to wait for readers before the new state replaces the old.
const READERS_WAIT: Duration = Duration::from_secs(60);

/// A rebuild under way. Dropped before its end, it leaves the archive as it was.
#[derive(Debug)]
pub struct Rebuild {
    path: PathBuf,
    store: Store,
    /// Settings of the old state, if it could still be read.
    settings: Option<Vec<(String, Vec<u8>)>>,
    /// Held to the end, so that no other process changes the archive meanwhile.
    _owner: Arc<dyn DiskFile>,
}

impl Rebuild {
    /// Makes an empty state beside the old one of the archive in `path`, and recovers its segments from a crash.
    ///
    /// # Errors
    /// When another process owns the archive, and whatever the disk refuses.
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
        let mut state = State::open(disk.clone(), &shadow, Mode::Own)?;
        // Readers of the old state see by these numbers that all ids have changed.
        state.follow(old.number(NUMBER), old.number(GENERATION));
        // Which segments count, only the old state knows.
        let is_known = old.number(NUMBER) > 0;
        segment::settle(disk.as_ref(), path, is_known.then(|| old.number(REWRITES)))?;
        options.relied_on = Watermarks::default();
        options.catalogue = old.catalogued();
        let (segments, recovered) = Segments::open(disk, path, options)?;
        let store = Store::of_parts(path, state, segments, recovered);
        let settings = has_settings.then(|| old.settings.into_iter().collect());
        Ok(Self { path: path.to_owned(), store, settings, _owner: owner })
    }

    /// Makes a copy of a state beside it, without what was erased: of an archive that was changed nowhere since its last
    /// checkpoint.
    ///
    /// # Errors
    /// When the disk refuses; the archive is then as it was.
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

    /// The archive with the state as far as it has grown.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The settings of the old state, if it could still be read; a rebuild does not take them over by itself.
    #[must_use]
    pub fn settings(&self) -> Option<&[(String, Vec<u8>)]> {
        self.settings.as_deref()
    }

    /// The folder that stands for the archive's: files made in the state's folder within it replace the old ones with the state.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.path.join(FOLDER)
    }

    /// Takes the new state away, and leaves the archive as it was.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn abandon(self) -> Result<(), StoreError> {
        let shadow = self.folder();
        let Self { store, _owner, .. } = self;
        drop(store);
        remove(&shadow).map_err(|error| StateError::io(&shadow, error).into())
    }

    /// Puts the new state in the place of the old one. Everything in it must be checkpointed.
    ///
    /// # Errors
    /// When readers do not leave or the disk refuses; then the old state is still in place.
    pub fn finish(self) -> Result<(), StoreError> {
        let (state, shadow) = (self.path.join(STATE), self.path.join(FOLDER));
        let Self { path, store, _owner, .. } = self;
        // Nothing else writes it before the archive is closed by an owner, and without it each reader hashes all URLs.
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

/// What the catalogue of the archive in `path` says of segments, if it can be read, whatever the rest of the state is worth.
#[must_use]
pub fn catalogued(path: &Path) -> Catalogued {
    let catalogue = Catalogue::new(Arc::new(RealDisk), &path.join(STATE));
    catalogue.load_any_format().unwrap_or_default().catalogued()
}

/// Gives each of two folders the other's name, at once where the file system can. Where it cannot, a crash between the two
/// steps leaves no state: the next owner takes the second, see [`finish_exchange`].
pub(crate) fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    fs::rename(old, new.with_extension("old"))?;
    fs::rename(new, old)
}

/// Puts a whole new state in place if a crash came between the two steps of an exchange. The archive must be owned.
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

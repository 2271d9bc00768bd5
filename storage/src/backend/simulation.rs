//! An in-memory disk that behaves as badly as a real one may, and always the same way for the same seed.
//!
//! Behavior of real disks and file systems that it simulates:
//!
//! * Unsynced writes may be lost, may reach the disk in any order, and may do so in part: each 512-byte sector of each
//!   write on its own ([`SimulatedDisk::crash`]).
//! * A file that grew without a sync may have its new length, but zeros or none of its new bytes.
//! * Name changes become durable in the order in which they were made, as with a journalling file system; until their
//!   folder is synced, a crash may lose the latest ones.
//! * After a failed sync the unsynced bytes can be read, but never reach the disk, and the next sync succeeds (Rebello
//!   et al., USENIX ATC 2020).
//! * Reads may return fewer bytes than requested, and any operation may fail.

mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

/// The unit in which writes are torn.
const SECTOR_BYTES: usize = 512;

/// Faults besides a crash. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Total capacity of all files in bytes; a write beyond it is partly carried out and fails.
    pub capacity: Option<u64>,
    /// One in this many writes fails after a part of it; 0 means none.
    pub failing_write_one_in: u32,
    /// One in this many syncs fails; 0 means none.
    pub failing_sync_one_in: u32,
    /// One in this many reads fails; 0 means none.
    pub failing_read_one_in: u32,
    /// Whether reads may return fewer bytes than available.
    pub short_reads: bool,
}

/// A change of a file's content that is not yet synced.
#[derive(Clone, Debug)]
enum UnsyncedChange {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// Content that reads see.
    live: Vec<u8>,
    /// Content that is certainly on the disk.
    durable: Vec<u8>,
    /// Later changes that may have reached the disk.
    pending: Vec<UnsyncedChange>,
    shared_locks: u32,
    is_locked: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
}

#[derive(Clone, Debug)]
struct SimulatedState {
    random: Rng,
    faults: Faults,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<NameChange>,
    folders: Vec<PathBuf>,
    operations: u64,
    power_fails_at: Option<u64>,
}

/// An in-memory disk. Clones share it.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<SimulatedState>>,
}

/// Returns true once in `count` times on average; never for 0.
fn one_in(random: &mut Rng, count: u32) -> bool {
    count > 0 && random.u32(..count) == 0
}

fn power_is_off() -> io::Error {
    io::Error::other("the simulated power is off")
}

impl SimulatedState {
    /// Counts a changing operation; fails if the power fails during it or has failed before.
    fn operate(&mut self) -> io::Result<()> {
        self.check_power()?;
        self.operations += 1;
        Ok(())
    }

    fn check_power(&self) -> io::Result<()> {
        if self.power_fails_at.is_some_and(|last| self.operations >= last) {
            Err(power_is_off())
        } else {
            Ok(())
        }
    }

    fn inode(&mut self, index: usize) -> io::Result<&mut Inode> {
        self.inodes.get_mut(index).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn set_name(&mut self, path: &Path, inode: usize) {
        self.names.insert(path.to_owned(), inode);
        self.pending_names.push(NameChange::Set(path.to_owned(), inode));
    }

    fn free(&self) -> u64 {
        let used: u64 = self
            .names
            .values()
            .filter_map(|inode| self.inodes.get(*inode))
            .map(|inode| inode.live.len() as u64)
            .sum();
        self.faults.capacity.map_or(1 << 40, |capacity| capacity.saturating_sub(used))
    }

    /// Returns the content of a file that survives a power failure now.
    fn image_after_crash(random: &mut Rng, inode: &Inode) -> Vec<u8> {
        let mut image = inode.durable.clone();
        // Keeps none, all, a prefix, or a mixture of the changes.
        let (mode, kept) = (random.usize(..4), random.usize(..=inode.pending.len()));
        for (index, change) in inode.pending.iter().enumerate() {
            let (all, none) =
                (mode == 1 || (mode == 2 && index < kept), mode == 0 || (mode == 2 && index > kept));
            if none {
                continue;
            }
            match change {
                UnsyncedChange::Length(length) => {
                    if all || one_in(random, 2) {
                        image.resize(*length, 0);
                    }
                }
                UnsyncedChange::Write { offset, bytes } => {
                    let (mut start, end) = (*offset, offset + bytes.len());
                    while start < end {
                        let sector_end = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                        if all || one_in(random, 2) {
                            put(
                                &mut image,
                                start,
                                bytes.get(start - offset..sector_end - offset).unwrap_or_default(),
                            );
                        } else if one_in(random, 4) && image.len() < sector_end {
                            // The length reached the disk, but the bytes did not.
                            image.resize(sector_end, 0);
                        }
                        start = sector_end;
                    }
                }
            }
        }
        image
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    if let Some(place) = content.get_mut(offset..end) {
        place.copy_from_slice(bytes);
    }
}

impl SimulatedDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of(SimulatedState {
            random: Rng::with_seed(seed),
            faults: Faults::default(),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            folders: vec![PathBuf::new(), PathBuf::from("/")],
            operations: 0,
            power_fails_at: None,
        })
    }

    fn of(state: SimulatedState) -> Self {
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, SimulatedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Returns the number of changing operations so far: writes, changes of length and names, syncs.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Makes the power fail during the changing operation with this number, counted from 0. The operation may be
    /// carried out fully, partly or not at all. It fails, and so does every later one.
    pub fn fail_power_at(&self, operation: u64) {
        self.state().power_fails_at = Some(operation);
    }

    /// Returns the disk as it is after a power failure now: only synced data is certain to be there. Open files still
    /// belong to the old disk.
    #[must_use]
    pub fn crash(&self) -> Self {
        let state = &mut *self.state();
        let random = &mut state.random;
        let mut names = state.durable_names.clone();
        let kept = random.usize(..=state.pending_names.len());
        for change in state.pending_names.iter().take(kept) {
            match change {
                NameChange::Set(path, inode) => {
                    // A rename is one change: the old name disappears when the new one appears.
                    names.insert(path.clone(), *inode);
                }
                NameChange::Remove(path) => {
                    names.remove(path);
                }
            }
        }
        let images = state
            .inodes
            .iter()
            .map(|inode| SimulatedState::image_after_crash(random, inode))
            .collect::<Vec<_>>();
        let seed = random.u64(..);
        Self::rebuilt(seed, names, images, state.folders.clone())
    }

    /// Returns another disk with the same files, all durable: a backup.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.state();
        let images = state.inodes.iter().map(|inode| inode.live.clone()).collect();
        Self::rebuilt(state.random.get_seed(), state.names.clone(), images, state.folders.clone())
    }

    fn rebuilt(
        seed: u64,
        names: BTreeMap<PathBuf, usize>,
        images: Vec<Vec<u8>>,
        folders: Vec<PathBuf>,
    ) -> Self {
        let inodes = images
            .into_iter()
            .map(|image| Inode { live: image.clone(), durable: image, ..Inode::default() })
            .collect();
        let fresh = Self::new(seed);
        {
            let mut state = fresh.state();
            state.inodes = inodes;
            state.durable_names = names.clone();
            state.names = names;
            state.folders = folders;
        }
        fresh
    }

    /// Returns every file's name and content as reads see them.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let content =
            |inode: &usize| state.inodes.get(*inode).map(|inode| inode.live.clone()).unwrap_or_default();
        state.names.iter().map(|(path, inode)| (path.clone(), content(inode))).collect()
    }

    /// Flips bits of a byte of a file durably, as a failing medium does; `false` if there is no such byte.
    pub fn flip(&self, path: &Path, offset: usize, mask: u8) -> bool {
        let mut state = self.state();
        let Some(inode) = state.names.get(path).copied() else { return false };
        let Ok(inode) = state.inode(inode) else { return false };
        if let Some(byte) = inode.durable.get_mut(offset) {
            *byte ^= mask;
        }
        inode.live.get_mut(offset).map(|byte| *byte ^= mask).is_some()
    }
}

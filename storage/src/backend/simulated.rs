//! A disk in memory that behaves as badly as a real one may, and always the same way for the same seed.
//!
//! What the simulation takes from real disks and file systems:
//!
//! * unsynced writes may be lost, may reach the disk in any order, and may do so by halves: each 512-byte sector of each
//!   write on its own ([`SimulatedDisk::crash`]);
//! * a file that grew without a sync may have its new length but zeros or nothing of its new bytes;
//! * names become durable in the order in which they were changed, as with a journalling file system, but no earlier
//!   than their folder is synced, for sure not;
//! * after a failed sync the unsynced bytes can be read, but will never reach the disk, and the next sync succeeds
//!   (Rebello et al., USENIX ATC 2020);
//! * reads may return fewer bytes than asked for, and any operation may fail.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, Entry, Lock, OpenMode};

/// The unit in which writes are torn.
const SECTOR_BYTES: usize = 512;

/// What goes wrong besides a crash. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Bytes that all files together may have; a write beyond is carried out in part and fails.
    pub capacity: Option<u64>,
    /// Of so many writes one fails after a part of it; 0 is never.
    pub failing_write_one_in: u32,
    /// Of so many syncs one fails; 0 is never.
    pub failing_sync_one_in: u32,
    /// Of so many reads one fails; 0 is never.
    pub failing_read_one_in: u32,
    /// Whether reads may return fewer bytes than there are.
    pub short_reads: bool,
}

/// A change of a file's content that no sync has made durable.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// What reads see.
    live: Vec<u8>,
    /// What is on the disk for sure.
    durable: Vec<u8>,
    /// What may have reached it since.
    pending: Vec<Change>,
    shared_locks: u32,
    is_locked: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
}

#[derive(Clone, Debug)]
struct State {
    random: Random,
    faults: Faults,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<NameChange>,
    folders: Vec<PathBuf>,
    operations: u64,
    power_fails_at: Option<u64>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    inode: usize,
    mode: OpenMode,
    held: Mutex<Option<Lock>>,
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below a bound that is not 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: u32) -> bool {
        count > 0 && self.below(count as usize) == 0
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the simulated power is off")
}

impl State {
    /// Counts a changing operation; `Err` when the power fails with it or has failed before.
    fn operate(&mut self) -> io::Result<()> {
        if self.power_fails_at.is_some_and(|last| self.operations >= last) {
            return Err(power_is_off());
        }
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

    /// What is left of a file when the power fails now.
    fn image_after_crash(random: &mut Random, inode: &Inode) -> Vec<u8> {
        let mut image = inode.durable.clone();
        // Nothing, everything, a beginning, or a mixture.
        let (mode, kept) = (random.below(4), random.below(inode.pending.len() + 1));
        for (index, change) in inode.pending.iter().enumerate() {
            let (all, none) =
                (mode == 1 || (mode == 2 && index < kept), mode == 0 || (mode == 2 && index > kept));
            if none {
                continue;
            }
            match change {
                Change::Length(length) => {
                    if all || random.one_in(2) {
                        image.resize(*length, 0);
                    }
                }
                Change::Write { offset, bytes } => {
                    let (mut start, end) = (*offset, offset + bytes.len());
                    while start < end {
                        let sector_end = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                        if all || random.one_in(2) {
                            put(
                                &mut image,
                                start,
                                bytes.get(start - offset..sector_end - offset).unwrap_or_default(),
                            );
                        } else if random.one_in(4) && image.len() < sector_end {
                            // The length reached the disk, the bytes did not.
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
    /// An empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of(State {
            random: Random(seed),
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

    fn of(state: State) -> Self {
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Changing operations so far: writes, changes of length and names, syncs.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Makes the power fail with the changing operation of this number, counted from 0: it may be carried out or not
    /// or by halves, and fails, as does every operation after it.
    pub fn fail_power_at(&self, operation: u64) {
        self.state().power_fails_at = Some(operation);
    }

    /// The disk after the power failed now and came back: only what was synced is there for sure. Open files of this
    /// disk don't belong to that one.
    #[must_use]
    pub fn crash(&self) -> Self {
        let state = &mut *self.state();
        let random = &mut state.random;
        let mut names = state.durable_names.clone();
        let kept = random.below(state.pending_names.len() + 1);
        for change in state.pending_names.iter().take(kept) {
            match change {
                NameChange::Set(path, inode) => {
                    // A rename is one change: the old name goes with the new one's coming.
                    names.insert(path.clone(), *inode);
                }
                NameChange::Remove(path) => {
                    names.remove(path);
                }
            }
        }
        let images =
            state.inodes.iter().map(|inode| State::image_after_crash(random, inode)).collect::<Vec<_>>();
        let seed = random.next();
        Self::rebuilt(seed, names, images, state.folders.clone())
    }

    /// Another disk with the same files, all of it durable: a backup.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.state();
        let images = state.inodes.iter().map(|inode| inode.live.clone()).collect();
        Self::rebuilt(state.random.0, state.names.clone(), images, state.folders.clone())
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

    /// Every file's name and bytes as reads see them.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let content =
            |inode: &usize| state.inodes.get(*inode).map(|inode| inode.live.clone()).unwrap_or_default();
        state.names.iter().map(|(path, inode)| (path.clone(), content(inode))).collect()
    }

    /// Flips bits of a file's byte, durably, as a failing medium does; `false` when there is no such byte.
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

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.check_power()?;
        let known = state.names.get(path).copied();
        let inode = match (known, mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => inode,
            (None, OpenMode::Read | OpenMode::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::Create | OpenMode::CreateNew) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                if !state.folders.iter().any(|known| known == folder) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                state.operate()?;
                let inode = state.inodes.len();
                state.inodes.push(Inode::default());
                state.set_name(path, inode);
                inode
            }
        };
        Ok(Arc::new(SimulatedFile { state: self.state.clone(), inode, mode, held: Mutex::new(None) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        // The new name comes before the old one goes: a crash between the two would show both, which is kinder than
        // neither, and what file systems that journal them apart may do.
        state.set_name(to, inode);
        state.pending_names.push(NameChange::Remove(from.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.pending_names.push(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let state = self.state();
        state.check_power()?;
        if !state.folders.iter().any(|known| known == folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = |path: &Path| {
            let inside = path.parent() == Some(folder) && path != folder;
            inside.then(|| path.file_name().and_then(|name| name.to_str()).map(str::to_owned)).flatten()
        };
        let files = state.names.iter().filter_map(|(path, inode)| {
            let length = state.inodes.get(*inode).map_or(0, |inode| inode.live.len() as u64);
            Some(Entry { name: name(path)?, length, is_folder: false })
        });
        let folders = state
            .folders
            .iter()
            .filter_map(|path| Some(Entry { name: name(path)?, length: 0, is_folder: true }));
        let mut entries: Vec<Entry> = files.chain(folders).collect();
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.check_power()?;
        Ok(state.names.contains_key(path) || state.folders.iter().any(|folder| folder == path))
    }

    fn create_dir_all(&self, folder: &Path) -> io::Result<()> {
        // Folders are durable at once: they are made only when an archive is, before anything can be lost.
        let mut state = self.state();
        state.check_power()?;
        for ancestor in folder.ancestors() {
            if !state.folders.iter().any(|known| known == ancestor) {
                state.folders.push(ancestor.to_owned());
            }
        }
        Ok(())
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let one_in = state.faults.failing_sync_one_in;
        if state.random.one_in(one_in) {
            return Err(io::Error::other("a simulated sync failed"));
        }
        let (mut durable, mut left) = (std::mem::take(&mut state.durable_names), Vec::new());
        for change in std::mem::take(&mut state.pending_names) {
            match change {
                NameChange::Set(path, inode) if path.parent() == Some(folder) => {
                    durable.insert(path, inode);
                }
                NameChange::Remove(path) if path.parent() == Some(folder) => {
                    durable.remove(&path);
                }
                other => left.push(other),
            }
        }
        state.durable_names = durable;
        state.pending_names = left;
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.check_power()?;
        Ok(state.free())
    }
}

impl SimulatedFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.mode == OpenMode::Read { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.check_power()?;
        let faults = state.faults;
        if state.random.one_in(faults.failing_read_one_in) {
            return Err(io::Error::other("a simulated read failed"));
        }
        let random = state.random.next();
        let inode = state.inode(self.inode)?;
        let available = inode.live.get(position(offset)?..).unwrap_or_default();
        let mut count = available.len().min(buffer.len());
        if faults.short_reads && count > 1 {
            count = 1 + (random % count as u64) as usize;
        }
        buffer.split_at_mut(count).0.copy_from_slice(available.split_at(count).0);
        Ok(count)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        let offset = position(offset)?;
        let mut state = self.state();
        let mut outcome = state.operate();
        if outcome.is_err() && state.operations != state.power_fails_at.unwrap_or(u64::MAX) {
            return outcome;
        }
        if outcome.is_err() {
            // Later operations find the counter past this one, and do nothing.
            state.operations += 1;
        }
        let faults = state.faults;
        let mut written = buffer.len();
        if outcome.is_ok() && state.random.one_in(faults.failing_write_one_in) {
            written = state.random.below(buffer.len() + 1);
            outcome = Err(io::Error::other("a simulated write failed"));
        }
        let (free, length) = (state.free(), state.inode(self.inode)?.live.len());
        let growth = (offset + written).saturating_sub(length);
        if growth as u64 > free {
            written = written.saturating_sub(growth - position(free)?);
            outcome = outcome.and(Err(io::ErrorKind::StorageFull.into()));
        }
        let bytes = buffer.split_at(written).0;
        let inode = state.inode(self.inode)?;
        put(&mut inode.live, offset, bytes);
        inode.pending.push(Change::Write { offset, bytes: bytes.to_vec() });
        outcome
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.state();
        state.check_power()?;
        Ok(state.inode(self.inode)?.live.len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let length = position(length)?;
        let mut state = self.state();
        state.operate()?;
        let inode = state.inode(self.inode)?;
        inode.live.resize(length, 0);
        inode.pending.push(Change::Length(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let one_in = state.faults.failing_sync_one_in;
        let fails = state.random.one_in(one_in);
        let inode = state.inode(self.inode)?;
        if fails {
            // The kernel drops the pages' dirty marks: their bytes will never be written.
            inode.pending.clear();
            return Err(io::Error::other("a simulated sync failed"));
        }
        for change in std::mem::take(&mut inode.pending) {
            match change {
                Change::Write { offset, bytes } => put(&mut inode.durable, offset, &bytes),
                Change::Length(length) => inode.durable.resize(length, 0),
            }
        }
        Ok(())
    }

    fn lock(&self, lock: Lock) -> io::Result<()> {
        // Waiting would be for ever: the other holder is this very thread.
        if self.try_lock(lock)? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    fn try_lock(&self, lock: Lock) -> io::Result<bool> {
        self.unlock()?;
        let mut state = self.state();
        let inode = state.inode(self.inode)?;
        if inode.is_locked || (lock == Lock::Exclusive && inode.shared_locks > 0) {
            return Ok(false);
        }
        match lock {
            Lock::Shared => inode.shared_locks += 1,
            Lock::Exclusive => inode.is_locked = true,
        }
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut state = self.state();
        let inode = state.inode(self.inode)?;
        match held {
            Some(Lock::Shared) => inode.shared_locks -= 1,
            Some(Lock::Exclusive) => inode.is_locked = false,
            None => {}
        }
        Ok(())
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        // The inode of an open file is never taken away, so that this cannot fail.
        let _ = self.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{read_file, replace_file};

    fn written(disk: &SimulatedDisk, bytes: &[u8]) -> Arc<dyn DiskFile> {
        let file = disk.open(Path::new("/f"), OpenMode::Create).expect("create");
        disk.sync_dir(Path::new("/")).expect("sync");
        file.write_at(bytes, 0).expect("write");
        file
    }

    #[test]
    fn synced_bytes_survive_and_unsynced_ones_may_not() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let disk = SimulatedDisk::new(seed);
            let file = written(&disk, &[1; 600]);
            file.sync().expect("sync");
            file.write_at(&[2; 1000], 600).expect("write");
            let after = read_file(&disk.crash(), Path::new("/f")).expect("the name is durable");
            assert_eq!(after[..600], [1; 600]);
            outcomes.insert(after[600..].iter().map(|byte| u32::from(*byte)).sum::<u32>());
        }
        assert!(outcomes.contains(&0) && outcomes.contains(&2000) && outcomes.len() > 4, "{outcomes:?}");
    }

    #[test]
    fn a_name_without_a_synced_folder_may_be_lost() {
        let found = (0..100).filter(|seed| {
            let disk = SimulatedDisk::new(*seed);
            let file = disk.open(Path::new("/f"), OpenMode::Create).expect("create");
            file.sync().expect("sync");
            disk.crash().exists(Path::new("/f")).expect("exists")
        });
        assert!((1..100).contains(&found.count()));
    }

    #[test]
    fn bytes_of_a_failed_sync_never_arrive() {
        let disk = SimulatedDisk::new(1);
        let file = written(&disk, b"bytes");
        disk.set_faults(Faults { failing_sync_one_in: 1, ..Faults::default() });
        assert!(file.sync().is_err());
        disk.set_faults(Faults::default());
        file.sync().expect("the next one succeeds");
        assert_eq!(read_file(&disk, Path::new("/f")).expect("read"), b"bytes");
        assert_eq!(read_file(&disk.crash(), Path::new("/f")).expect("read"), b"");
    }

    #[test]
    fn a_full_disk_takes_a_part() {
        let disk = SimulatedDisk::new(1);
        let file = written(&disk, b"1234");
        disk.set_faults(Faults { capacity: Some(10), ..Faults::default() });
        let error = file.write_at(b"0123456789", 4).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(read_file(&disk, Path::new("/f")).expect("read"), b"1234012345");
        file.write_at(b"xx", 0).expect("no growth");
    }

    #[test]
    fn nothing_works_after_the_power_failed() {
        let disk = SimulatedDisk::new(3);
        let file = written(&disk, b"a");
        disk.fail_power_at(disk.operations());
        assert!(file.write_at(b"b", 0).is_err());
        assert!(file.write_at(b"c", 0).is_err());
        assert!(file.sync().is_err() && disk.list(Path::new("/")).is_err());
        let after = read_file(&disk.crash(), Path::new("/f")).expect("read");
        assert!([&b""[..], b"a", b"b"].contains(&&after[..]), "{after:?}");
    }

    #[test]
    fn replacing_a_file_leaves_the_old_or_the_new_one() {
        for seed in 0..300 {
            let disk = SimulatedDisk::new(seed);
            replace_file(&disk, Path::new("/f"), &[1; 2000]).expect("replace");
            disk.fail_power_at(disk.operations() + seed % 6);
            let outcome = replace_file(&disk, Path::new("/f"), &[2; 3000]);
            let after = read_file(&disk.crash(), Path::new("/f")).expect("one of them");
            assert!(after == [1; 2000] && outcome.is_err() || after == [2; 3000], "seed {seed}");
        }
    }

    #[test]
    fn locks_exclude_each_other() {
        let disk = SimulatedDisk::new(1);
        let open = || disk.open(Path::new("/f"), OpenMode::Create).expect("open");
        let (first, second) = (open(), open());
        assert!(first.try_lock(Lock::Shared).expect("lock") && second.try_lock(Lock::Shared).expect("lock"));
        assert!(!first.try_lock(Lock::Exclusive).expect("lock"));
        drop(second);
        assert!(first.try_lock(Lock::Exclusive).expect("lock"));
        assert!(!open().try_lock(Lock::Shared).expect("lock"));
        first.unlock().expect("unlock");
        assert!(open().try_lock(Lock::Exclusive).expect("lock"));
    }
}

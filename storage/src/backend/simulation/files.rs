//! Operations of the simulated disk and of its open files.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Inode, NameChange, SimulatedDisk, SimulatedState, UnsyncedChange, one_in, put};
use crate::backend::{DirEntry, Disk, DiskFile, Lock, OpenMode};

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<SimulatedState>>,
    inode: usize,
    mode: OpenMode,
    held: Mutex<Option<Lock>>,
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
        // The new name is added before the old one is removed: a crash in between shows both, which is better than
        // neither, and possible on file systems that journal the two separately.
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

    fn list(&self, folder: &Path) -> io::Result<Vec<DirEntry>> {
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
            Some(DirEntry { name: name(path)?, length, is_folder: false })
        });
        let folders = state
            .folders
            .iter()
            .filter_map(|path| Some(DirEntry { name: name(path)?, length: 0, is_folder: true }));
        let mut entries: Vec<DirEntry> = files.chain(folders).collect();
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.check_power()?;
        Ok(state.names.contains_key(path) || state.folders.iter().any(|folder| folder == path))
    }

    fn create_dir_all(&self, folder: &Path) -> io::Result<()> {
        // Folders are durable immediately: they are only created with an archive, before anything can be lost.
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
        let count = state.faults.failing_sync_one_in;
        if one_in(&mut state.random, count) {
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
    fn state(&self) -> MutexGuard<'_, SimulatedState> {
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
        if one_in(&mut state.random, faults.failing_read_one_in) {
            return Err(io::Error::other("a simulated read failed"));
        }
        let random = state.random.u64(..);
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
            // Later operations find the counter past this one and do nothing.
            state.operations += 1;
        }
        let faults = state.faults;
        let mut written = buffer.len();
        if outcome.is_ok() && one_in(&mut state.random, faults.failing_write_one_in) {
            written = state.random.usize(..=buffer.len());
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
        inode.pending.push(UnsyncedChange::Write { offset, bytes: bytes.to_vec() });
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
        inode.pending.push(UnsyncedChange::Length(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let count = state.faults.failing_sync_one_in;
        let fails = one_in(&mut state.random, count);
        let inode = state.inode(self.inode)?;
        if fails {
            // The kernel clears the dirty flags of the pages: their bytes will never be written.
            inode.pending.clear();
            return Err(io::Error::other("a simulated sync failed"));
        }
        for change in std::mem::take(&mut inode.pending) {
            match change {
                UnsyncedChange::Write { offset, bytes } => put(&mut inode.durable, offset, &bytes),
                UnsyncedChange::Length(length) => inode.durable.resize(length, 0),
            }
        }
        Ok(())
    }

    fn lock(&self, lock: Lock) -> io::Result<()> {
        // Waiting would never end: the other holder is this very thread.
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
        // The inode of an open file is never removed, so this cannot fail.
        let _ = self.unlock();
    }
}

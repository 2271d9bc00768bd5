//! The machine's disk, using the standard library.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{DirEntry, Disk, DiskFile, Lock, OpenMode};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

/// Opens a file of an untrusted archive. Accepts only regular files, because a pipe would block forever and a device
/// has no end; for writing, no links, because they may lead out of the archive.
///
/// # Errors
/// Those of the system, and when it is no such file.
pub fn open_regular(path: &Path, mode: OpenMode) -> io::Result<File> {
    let writes = mode != OpenMode::Read;
    let flags = if writes { OFlags::NONBLOCK | OFlags::NOFOLLOW } else { OFlags::NONBLOCK };
    let mut options = OpenOptions::new();
    options.read(true).write(writes).custom_flags(flags.bits().cast_signed());
    options.create(mode == OpenMode::Create).create_new(mode == OpenMode::CreateNew);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if writes && code == Errno::LOOP.raw_os_error() => {
            io::Error::other("is a link, which may lead out of the archive; remove it")
        }
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is not a regular file")) }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile(open_regular(path, mode)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Another process removed it between the two calls.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_folder = metadata.is_dir();
            entries.push(DirEntry { name, length: if is_folder { 0 } else { metadata.len() }, is_folder });
        }
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn is_linked_folder(&self, path: &Path) -> bool {
        path.is_symlink() && path.is_dir()
    }

    fn create_dir_all(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        // A relative name without a folder is in the current folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let status = rustix::fs::statvfs(path)?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync also writes the metadata needed for reading the data back, including the length.
        self.0.sync_data()
    }

    fn lock(&self, lock: Lock) -> io::Result<()> {
        match lock {
            Lock::Shared => self.0.lock_shared(),
            Lock::Exclusive => self.0.lock(),
        }
    }

    fn try_lock(&self, lock: Lock) -> io::Result<bool> {
        let outcome = match lock {
            Lock::Shared => self.0.try_lock_shared(),
            Lock::Exclusive => self.0.try_lock(),
        };
        match outcome {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

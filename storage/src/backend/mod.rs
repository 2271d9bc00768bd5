//! The few file operations that everything else in this crate goes through.
//!
//! Nothing outside this module touches the file system, so that a test can put a [`Disk`] of its own underneath and
//! make it lose, tear and refuse what a real one may lose, tear and refuse. The contract both sides keep:
//!
//! * a write is visible to later reads at once, but survives a crash only after [`DiskFile::sync`] returned `Ok`;
//! * a file's name (created, renamed, removed) survives a crash only after [`Disk::sync_dir`] of its folder;
//! * after a failed [`DiskFile::sync`] nothing is known about the bytes written since the last good one: the caller
//!   gives the file up (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).

mod real;
mod simulated;
mod spool;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use real::{RealDisk, open_regular};
pub use simulated::{Faults, SimulatedDisk};
pub use spool::Spool;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading only; the file must exist.
    Read,
    /// Reading and writing; the file must exist.
    Write,
    /// Reading and writing; an empty file is created when there is none.
    Create,
    /// Reading and writing; fails with [`io::ErrorKind::AlreadyExists`] when there is one.
    CreateNew,
}

/// What [`Disk::list`] says of one name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name without its folder; names that are not UTF-8 are left out of the list.
    pub name: String,
    /// Bytes of a file; 0 for a folder.
    pub length: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Who else may hold a lock on the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Other shared holders.
    Shared,
    /// Nobody.
    Exclusive,
}

/// A file system, or something that behaves like one.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name, replacing the file that had it. Atomic; durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// What a folder holds, sorted by name.
    fn list(&self, folder: &Path) -> io::Result<Vec<DirEntry>>;
    /// Whether there is a file or folder of this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Whether this is a link to a folder. A disk without links has none.
    fn is_linked_folder(&self, _path: &Path) -> bool {
        false
    }
    /// Makes a folder and those above it; one that exists is fine.
    fn create_dir_all(&self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;
    /// Bytes that may still be written below this path.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// An open file, shared between threads; no position of its own.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads at an offset; fewer bytes than asked for are possible, 0 only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes the whole buffer at an offset. After an error any part of it may have been written.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Bytes in the file.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file, or fills it up with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes all bytes written so far, and the length, durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes an advisory lock, waiting for it. It ends with the last handle on this open file.
    fn lock(&self, lock: Lock) -> io::Result<()>;
    /// Takes an advisory lock; `false` if another process holds it.
    fn try_lock(&self, lock: Lock) -> io::Result<bool>;
    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
}

/// Fills the whole buffer from an offset on.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] when the file ends before.
pub fn read_exact_at(file: &dyn DiskFile, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = buffer.split_at_mut(count).1;
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The bytes of a whole file.
///
/// # Errors
/// What opening and reading report.
pub fn read_file(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = usize::try_from(file.len()?).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; length];
    read_exact_at(file.as_ref(), &mut bytes, 0)?;
    Ok(bytes)
}

/// Puts a whole file in place, durably: after a crash either the old or the new one is there, never a mixture.
///
/// The bytes go to `PATH.new` first, so two writers of one path must not run at once.
///
/// # Errors
/// What writing, syncing and renaming report; the old file is then still there.
pub fn replace_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let file = disk.open(&temporary, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Reads a [`DiskFile`] from an offset to its end as a stream.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl FileReader {
    /// Starts at an offset.
    #[must_use]
    pub fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl io::Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

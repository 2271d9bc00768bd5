//! The few file operations that the rest of this crate uses.
//!
//! Nothing outside this module touches the file system, so a test can substitute its own [`Disk`] that loses, tears and
//! refuses whatever a real one may. The contract:
//!
//! * A write is visible to later reads immediately, but survives a crash only after [`DiskFile::sync`] returned `Ok`.
//! * A change of a file's name (create, rename, remove) survives a crash only after [`Disk::sync_dir`] of its folder.
//! * After a failed [`DiskFile::sync`] nothing is known about the bytes written since the last successful one: the
//!   caller gives up the file (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).

mod real;
mod simulation;
mod spool;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use real::{RealDisk, open_regular};
pub use simulation::{Faults, SimulatedDisk};
pub use spool::Spool;

/// Bytes of a long file that are read at once.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading only; the file must exist.
    Read,
    /// Reading and writing; the file must exist.
    Write,
    /// Reading and writing; an empty file is created if there is none.
    Create,
    /// Reading and writing; fails with [`io::ErrorKind::AlreadyExists`] if the file exists.
    CreateNew,
}

/// An entry of a folder, as returned by [`Disk::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name without its folder; [`Disk::list`] leaves out names that are not UTF-8.
    pub name: String,
    /// Size of a file in bytes; 0 for a folder.
    pub length: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Kind of a lock: who else may lock the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Other holders of shared locks.
    Shared,
    /// Nobody.
    Exclusive,
}

/// A file system, or something that behaves like one.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file and replaces any file with the new name. Atomic; durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Lists the entries of a folder, sorted by name.
    fn list(&self, folder: &Path) -> io::Result<Vec<DirEntry>>;
    /// Whether a file or folder with this name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Whether this is a link to a folder; false on a disk without links.
    fn is_linked_folder(&self, _path: &Path) -> bool {
        false
    }
    /// Creates a folder and its parents, unless they exist.
    fn create_dir_all(&self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;
    /// Returns the free bytes at this path.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// An open file, shared between threads; it has no position.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads at an offset; may return fewer bytes than requested, but 0 only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes the whole buffer at an offset. After an error any part of it may have been written.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Returns the size of the file in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes all bytes written so far, and the length, durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes an advisory lock, blocking until it is free. It ends with the last handle of this open file.
    fn lock(&self, lock: Lock) -> io::Result<()>;
    /// Takes an advisory lock; `false` if another process holds it.
    fn try_lock(&self, lock: Lock) -> io::Result<bool>;
    /// Releases the lock.
    fn unlock(&self) -> io::Result<()>;
}

/// Fills the whole buffer from an offset on.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends first.
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

/// Passes a stretch of a file to `take`, in pieces of this many bytes, each with its offset; only the last one may be
/// shorter. Stops at the first error.
pub(crate) fn pieces<E: From<io::Error>>(
    file: &dyn DiskFile,
    range: Range<u64>,
    bytes: usize,
    mut take: impl FnMut(&[u8], u64) -> Result<(), E>,
) -> Result<(), E> {
    let left = |at: u64| usize::try_from(range.end.saturating_sub(at)).unwrap_or(usize::MAX);
    let (mut piece, mut at) = (vec![0; left(range.start).min(bytes)], range.start);
    while at < range.end {
        piece.truncate(left(at));
        read_exact_at(file, &mut piece, at)?;
        take(&piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Reads a whole file.
///
/// # Errors
/// Those of opening and reading.
pub fn read_file(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = usize::try_from(file.len()?).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; length];
    read_exact_at(file.as_ref(), &mut bytes, 0)?;
    Ok(bytes)
}

/// Replaces a whole file durably: after a crash either the old or the new one is there, never a mixture.
///
/// The bytes first go to `PATH.new`, so only one writer of a path may run at a time.
///
/// # Errors
/// Those of writing, syncing and renaming; the old file is then still there.
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
    /// Starts reading at an offset.
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

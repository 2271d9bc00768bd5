//! The folder of an index, as the engine gets it.
//!
//! The engine opens whatever is there, but an archive's folder may come from a stranger: a pipe would block it forever,
//! and a device has no end. So every file is looked at first, and the two files that it reads into memory are bounded.
//! Locks of readers need no file that can be written: an archive may be on a medium that is read-only.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_base::files;
use archive_storage::backend::{OpenMode, open_regular};
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// Maximum bytes of a file that is read into memory: the list of segments, and that of files. An index of 10^8 pages
/// has a few hundred segments, which take 200 KB in each.
pub(super) const LIST_BYTES_MAX: u64 = 16 << 20;

/// A folder in which only regular files are opened.
#[derive(Clone, Debug)]
pub(super) struct RegularFiles {
    path: PathBuf,
    files: MmapDirectory,
}

impl RegularFiles {
    pub(super) fn open(path: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { path: path.to_owned(), files: MmapDirectory::open(path)? })
    }
}

/// Returns the length of a file of an index; fails unless it is a regular file. An index has no links.
pub(super) fn check_regular(path: &Path) -> io::Result<u64> {
    let found = path.symlink_metadata()?;
    if found.is_file() { Ok(found.len()) } else { Err(damaged(path, "is not a regular file")) }
}

/// An error of the kind by which [`super::Error`] knows that the index, and not the disk, is at fault.
fn damaged(path: &Path, what: &str) -> io::Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(io::ErrorKind::InvalidData, format!("{name} {what}"))
}

fn unreadable(name: &Path, error: io::Error) -> OpenReadError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(name.to_owned()),
        _ => OpenReadError::wrap_io_error(error, name.to_owned()),
    }
}

impl Directory for RegularFiles {
    fn get_file_handle(&self, name: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        check_regular(&self.path.join(name)).map_err(|error| unreadable(name, error))?;
        self.files.get_file_handle(name)
    }

    fn atomic_read(&self, name: &Path) -> Result<Vec<u8>, OpenReadError> {
        let path = self.path.join(name);
        let bytes = check_regular(&path).and_then(|length| match length {
            ..=LIST_BYTES_MAX => files::read(&path, LIST_BYTES_MAX),
            _ => Err(damaged(&path, "is too long")),
        });
        bytes.map_err(|error| unreadable(name, error))
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let path = self.path.join(&lock.filepath);
        let file = open_lock(&path, lock.is_blocking).map_err(LockError::wrap_io_error)?;
        match &file {
            Some(file) if lock.is_blocking => file.lock().map_err(LockError::wrap_io_error)?,
            Some(file) => file.try_lock().map_err(|_| LockError::LockBusy)?,
            None => {}
        }
        Ok(DirectoryLock::from(Box::new(file)))
    }

    fn delete(&self, name: &Path) -> Result<(), DeleteError> {
        self.files.delete(name)
    }

    fn exists(&self, name: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(name)
    }

    fn open_write(&self, name: &Path) -> Result<WritePtr, OpenWriteError> {
        self.files.open_write(name)
    }

    fn atomic_write(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        self.files.atomic_write(name, bytes)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    /// Readers ask for new commits themselves.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// Opens the file of a lock. Where nothing can be written, a reader shares the lock of whoever can write, if there ever
/// was one.
fn open_lock(path: &Path, is_reader: bool) -> io::Result<Option<File>> {
    files::if_there(check_regular(path))?;
    match open_regular(path, OpenMode::Create) {
        Err(error) if is_reader && is_unwritable(&error) => {
            files::if_there(open_regular(path, OpenMode::Read))
        }
        opened => opened.map(Some),
    }
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

//! Secrets of an archive: what lets a crawl in at doors that are closed to others.
//!
//! They are files in the folder `secrets` of the archive's folder, for the eyes of the program's user only. Copies leave
//! the folder out, and nothing that is in it is in a record, a page, a log or a message.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use archive_storage::backend::{OpenMode, open_regular};

use crate::files::{self, FileError, WholeFile};

/// Name of the folder.
pub const FOLDER: &str = "secrets";

/// Path of a file of this name.
#[must_use]
pub fn path(archive: &Path, name: &str) -> PathBuf {
    archive.join(FOLDER).join(name)
}

/// Reads a file; `None` if there is none.
///
/// # Errors
/// When it cannot be read, when others can read or write it, or when it is longer than `bytes_max`.
pub fn read(archive: &Path, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let path = path(archive, name);
    files::if_there(read_private(&path, bytes_max)).map_err(FileError::at(&path))
}

/// Reads a regular file that only its owner can read or write.
///
/// # Errors
/// As [`read`], and when it is missing.
pub fn read_private(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenMode::Read)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let problem =
            format!("others can read or write it (its mode is {mode:o}); keep it private: chmod 600");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Writes a file, in the place of the one that is there.
///
/// # Errors
/// When the folder or the file cannot be written, or is a link.
pub fn write(archive: &Path, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    let path = path(archive, name);
    let write = || {
        let folder = archive.join(FOLDER);
        files::make_folder(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        let mut file = WholeFile::begin(&path)?;
        file.keep_private()?;
        file.write_all(bytes)?;
        file.commit()
    };
    write().map_err(FileError::at(&path))
}

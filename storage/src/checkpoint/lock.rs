//! Locks on an archive: one owner writes, and any number of readers read between checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::{Result, StateError};
use crate::backend::{Disk, DiskFile, Lock, OpenMode, RealDisk};

/// Held by the process that changes the archive; contains its id and command.
pub(crate) const OWNER_LOCK: &str = "archive.lock";
/// Held shared by readers while they are active, and exclusively for a checkpoint's commit.
pub(crate) const CHECKPOINT_LOCK: &str = "checkpoint.lock";

/// Interval at which a waiting checkpoint retries.
const RETRY: Duration = Duration::from_millis(5);

/// Time that an owner has to write its name after locking the file.
const HOLDER_WAIT: Duration = Duration::from_millis(500);

/// Number of words reported of an owner's command: the program and its subcommand.
const COMMAND_WORDS: usize = 2;

/// Maximum bytes read of an owner's name.
const HOLDER_BYTES_MAX: usize = 4096;

/// Makes this process the archive's owner until the file is dropped.
///
/// # Errors
/// [`StateError::Locked`] when another process owns it, and an error when a folder of the archive is a symbolic link,
/// which may lead anywhere in an archive of unknown origin.
pub(crate) fn own(disk: &dyn Disk, folder: &Path) -> Result<Arc<dyn DiskFile>> {
    refuse_links(disk, folder)?;
    let path = folder.join(OWNER_LOCK);
    let failed = |error| StateError::io(&path, error);
    let file = disk.open(&path, OpenMode::Create).map_err(failed)?;
    if !file.try_lock(Lock::Exclusive).map_err(failed)? {
        let holder = holder(file.as_ref()).map_err(failed)?;
        return Err(StateError::Locked { path: folder.to_owned(), holder });
    }
    // Record only the command's name: its arguments may contain data that has to be erased.
    let words = std::env::args_os().take(COMMAND_WORDS);
    let command: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let text = format!("process {} ({})\n", std::process::id(), command.join(" "));
    file.set_len(0).map_err(failed)?;
    file.write_at(text.as_bytes(), 0).map_err(failed)?;
    Ok(file)
}

/// The exclusive right to change an archive, held as long as this value lives.
#[derive(Debug)]
pub struct Owner {
    _file: Arc<dyn DiskFile>,
}

impl Owner {
    /// Acquires the ownership of an archive.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another process has it, and I/O errors.
    pub fn of(archive: &Path) -> Result<Self> {
        Ok(Self { _file: own(&RealDisk, archive)? })
    }

    /// Whether any process owns the archive now.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn is_taken(archive: &Path) -> Result<bool> {
        let path = archive.join(OWNER_LOCK);
        let failed = |error| StateError::io(&path, error);
        if !RealDisk.exists(&path).map_err(failed)? {
            return Ok(false);
        }
        let file = RealDisk.open(&path, OpenMode::Read).map_err(failed)?;
        Ok(!file.try_lock(Lock::Shared).map_err(failed)?)
    }
}

fn refuse_links(disk: &dyn Disk, folder: &Path) -> Result<()> {
    for parent in [folder.to_owned(), folder.join(crate::state::FOLDER)] {
        // A folder that does not exist contains no link.
        for entry in disk.list(&parent).unwrap_or_default() {
            let path = parent.join(entry.name);
            if disk.is_linked_folder(&path) {
                let what =
                    "is a link to a folder, which may lead out of the archive; put the folder itself here";
                return Err(StateError::io(&path, std::io::Error::other(what)));
            }
        }
    }
    Ok(())
}

/// Returns the owner's name. It locks the file before it writes its name.
fn holder(file: &dyn DiskFile) -> std::io::Result<String> {
    let begun = Instant::now();
    loop {
        let mut bytes = [0; HOLDER_BYTES_MAX];
        let count = file.read_at(&mut bytes, 0)?;
        let holder = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).trim().to_owned();
        if !holder.is_empty() {
            return Ok(holder);
        }
        if begun.elapsed() >= HOLDER_WAIT {
            return Ok("another process".to_owned());
        }
        std::thread::sleep(RETRY);
    }
}

/// Acquires the lock for a commit, waiting for readers for at most `wait`; `false` if they did not leave. Long-running
/// readers see from [`calls`] that a commit is waiting.
pub(crate) fn exclude_readers(file: &dyn DiskFile, path: &Path, wait: Duration) -> Result<bool> {
    let (start, mut has_called) = (Instant::now(), false);
    loop {
        if file.try_lock(Lock::Exclusive).map_err(|error| StateError::io(path, error))? {
            return Ok(true);
        }
        if start.elapsed() >= wait {
            return Ok(false);
        }
        if !has_called {
            // Ignore failures: on a full disk, readers leave when they would have left anyway.
            let _ = file.write_at(&(calls(file) + 1).to_le_bytes(), 0);
            has_called = true;
        }
        std::thread::sleep(RETRY);
    }
}

/// Number of times that a commit had to wait for readers.
pub(crate) fn calls(file: &dyn DiskFile) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    // The file is empty before the first call, and an unreadable file counts as no call.
    let _ = file.read_at(&mut bytes, 0);
    u64::from_le_bytes(bytes)
}

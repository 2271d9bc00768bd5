//! Who may do what to an archive at the same time: one owner writes, any number of readers read between checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::{Result, StateError};
use crate::backend::{Disk, DiskFile, Lock, OpenMode, RealDisk};

/// Held by the process that changes the archive, with its id and command inside.
pub(crate) const OWNER_LOCK: &str = "archive.lock";
/// Shared by readers while they work, exclusive for a checkpoint's commit.
pub(crate) const CHECKPOINT_LOCK: &str = "checkpoint.lock";

/// How often a waiting checkpoint looks again.
const RETRY: Duration = Duration::from_millis(5);

/// An owner has this long to write its name after it has locked the file.
const HOLDER_WAIT: Duration = Duration::from_millis(500);

/// Words of an owner's command that are reported: the program and its subcommand.
const COMMAND_WORDS: usize = 2;

/// Bytes of an owner's name that are read.
const HOLDER_BYTES_MAX: usize = 4096;

/// Makes this process the archive's owner until the file is dropped.
///
/// # Errors
/// [`StateError::Locked`] when another process is, and when a folder of the archive is a link, which may lead anywhere in an
/// archive that came from a stranger.
pub(crate) fn own(disk: &dyn Disk, folder: &Path) -> Result<Arc<dyn DiskFile>> {
    refuse_links(disk, folder)?;
    let path = folder.join(OWNER_LOCK);
    let failed = |error| StateError::io(&path, error);
    let file = disk.open(&path, OpenMode::Create).map_err(failed)?;
    if !file.try_lock(Lock::Exclusive).map_err(failed)? {
        let holder = holder(file.as_ref()).map_err(failed)?;
        return Err(StateError::Locked { path: folder.to_owned(), holder });
    }
    // Of the command only its name: what it is about may be what has to be forgotten.
    let words = std::env::args_os().take(COMMAND_WORDS);
    let command: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let text = format!("process {} ({})\n", std::process::id(), command.join(" "));
    file.set_len(0).map_err(failed)?;
    file.write_at(text.as_bytes(), 0).map_err(failed)?;
    Ok(file)
}

/// The right to change an archive, which no other process has while this lives.
#[derive(Debug)]
pub struct Owner {
    _file: Arc<dyn DiskFile>,
}

impl Owner {
    /// Takes it.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another process has it, and I/O errors.
    pub fn of(archive: &Path) -> Result<Self> {
        Ok(Self { _file: own(&RealDisk, archive)? })
    }

    /// Whether some process has it now.
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
        // A folder that is not there holds no link.
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

/// What the owner calls itself. It locks the file before it writes its name.
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

/// Takes the lock for a commit, waiting for readers at most so long; `false` when they did not leave. Readers that stay for long
/// see in [`calls`] that somebody waits.
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
            // On a full disk readers leave when they would have left anyway.
            let _ = file.write_at(&(calls(file) + 1).to_le_bytes(), 0);
            has_called = true;
        }
        std::thread::sleep(RETRY);
    }
}

/// How often commits have waited for readers.
pub(crate) fn calls(file: &dyn DiskFile) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    // Before the first call the file is empty, and what cannot be read calls nobody.
    let _ = file.read_at(&mut bytes, 0);
    u64::from_le_bytes(bytes)
}

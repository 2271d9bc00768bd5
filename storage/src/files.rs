//! The files of the last checkpoint, for copying them while an owner continues to write.
//!
//! No checkpoint happens while a reader is open, so everything listed here stays unchanged: an owner only writes new
//! files, bytes past the listed lengths, and further lines of lists.

use std::path::PathBuf;

use crate::digest::Digest;
use crate::segment;
use crate::store::{Store, StoreError};

/// How a file changes once the reader has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It stays unchanged or is removed: a hard link preserves it.
    Never,
    /// It grows, and its first bytes are the ones listed.
    Grows,
    /// Its bytes are overwritten in place.
    InPlace,
}

/// A file, or a prefix of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// Path relative to the archive's folder, with `/`, as of the checkpoint.
    pub name: String,
    /// Current path of the file.
    pub source: PathBuf,
    /// Number of bytes that belong to the checkpoint.
    pub length: u64,
    /// How the file changes afterwards.
    pub change: FileChange,
    /// Digest of the file, if it is on record.
    pub sha256: Option<Digest>,
}

/// All files of a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFiles {
    /// Files on disk.
    pub files: Vec<CheckpointFile>,
    /// Paths and contents of files that are longer on disk, or that only an archive needs.
    pub written: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// For a reader: returns the files of its checkpoint, which stay unchanged until the reader is closed, paused or
    /// refreshed.
    ///
    /// # Errors
    /// When a segment does not exist, and on an I/O error.
    pub fn files(&self) -> Result<CheckpointFiles, StoreError> {
        let mut found = CheckpointFiles::default();
        self.state().files(&mut found)?;
        segment::checkpointed(self.path(), self.state(), &mut found)?;
        Ok(found)
    }
}

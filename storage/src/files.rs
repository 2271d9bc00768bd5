//! The files of the last checkpoint, for copying them while an owner continues to write.
//!
//! While a reader is open no checkpoint happens, so everything that is listed here stays as it is: an owner only
//! writes new files, bytes after those that count, and further lines of lists.

use std::path::PathBuf;

use crate::digest::Digest;
use crate::segment;
use crate::store::{Store, StoreError};

/// What becomes of a file once the reader has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is, or is removed: another name for it keeps it.
    Never,
    /// It grows, and what is listed are its first bytes.
    Grows,
    /// Its bytes change where they are.
    InPlace,
}

/// A file, or the first bytes of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// Its path in the archive's folder, with `/`, as it is at the checkpoint.
    pub name: String,
    /// Where it is now.
    pub source: PathBuf,
    /// Bytes that belong to the checkpoint.
    pub length: u64,
    /// What becomes of it.
    pub change: Change,
    /// Its digest, as far as it is written down.
    pub sha256: Option<Digest>,
}

/// All files of a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFiles {
    /// Those that are on the disk.
    pub files: Vec<CheckpointFile>,
    /// Paths and contents of those that are on the disk with more, or that only an archive needs.
    pub written: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// For a reader: the files of the checkpoint that it reads, which stay as they are until it is closed, paused or refreshed.
    ///
    /// # Errors
    /// When a segment of it is not there, and when the disk refuses.
    pub fn files(&self) -> Result<CheckpointFiles, StoreError> {
        let mut found = CheckpointFiles::default();
        self.state().files(&mut found)?;
        segment::checkpointed(self.path(), self.state(), &mut found)?;
        Ok(found)
    }
}

//! Data too large for memory, on its way into a segment.
//!
//! A spool is an unnamed file: it disappears with its last handle, even after a crash.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk, DiskFile, OpenMode, PIECE_BYTES, read_exact_at};

/// Makes the temporary names of spools unique.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file that is written sequentially and then read.
#[derive(Debug)]
pub struct Spool {
    file: Arc<dyn DiskFile>,
    length: u64,
}

impl Spool {
    /// Creates an empty spool in an existing folder.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn create(disk: &dyn Disk, folder: &Path) -> io::Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("spool-{}-{number}", std::process::id()));
        let file = disk.open(&path, OpenMode::CreateNew)?;
        disk.remove(&path)?;
        Ok(Self { file, length: 0 })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When the disk refuses; the spool is then unchanged.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Drops everything after this many bytes.
    pub fn truncate(&mut self, length: u64) {
        self.length = self.length.min(length);
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Reads at most `bytes_max` bytes from the beginning.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn beginning(&self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX).min(bytes_max);
        let mut bytes = vec![0; length];
        read_exact_at(self.file.as_ref(), &mut bytes, 0)?;
        Ok(bytes)
    }

    /// Passes everything to `take`, in pieces of this many bytes; only the last one may be shorter.
    ///
    /// # Errors
    /// When the disk refuses or `take` fails; stops at the first error.
    pub fn pieces<E: From<io::Error>>(
        &self,
        bytes: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        super::pieces(self.file.as_ref(), 0..self.length, bytes, |piece, _| take(piece))
    }

    /// Passes everything to `take`, in pieces of a size that suits the disk.
    ///
    /// # Errors
    /// As [`Spool::pieces`].
    pub fn each_piece<E: From<io::Error>>(&self, take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.pieces(PIECE_BYTES, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::RealDisk;

    #[test]
    fn what_is_written_is_read_in_pieces_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(&RealDisk, folder.path()).unwrap();
        assert!(spool.is_empty());
        spool.append(b"abcdef").unwrap();
        spool.append(b"gh").unwrap();
        assert_eq!(spool.len(), 8);
        assert_eq!(spool.beginning(3).unwrap(), b"abc");
        assert_eq!(spool.beginning(99).unwrap(), b"abcdefgh");
        let mut pieces = Vec::new();
        spool
            .pieces(3, |piece| {
                pieces.push(piece.to_vec());
                io::Result::Ok(())
            })
            .unwrap();
        assert_eq!(pieces, [&b"abc"[..], b"def", b"gh"]);
        spool.truncate(5);
        assert_eq!(spool.beginning(99).unwrap(), b"abcde");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

//! redb on this crate's files.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use crate::backend::{DiskFile, read_exact_at};

/// A redb database in a file.
#[derive(Debug)]
pub(super) struct FileBackend(pub(super) Arc<dyn DiskFile>);

impl StorageBackend for FileBackend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(self.0.as_ref(), out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
}

/// A redb database in memory, filled with the bytes of a file.
pub(super) fn memory_backend(bytes: &[u8]) -> io::Result<InMemoryBackend> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    Ok(backend)
}

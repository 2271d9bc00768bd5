//! A redb backend on this crate's files.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use crate::backend::{DiskFile, read_exact_at};

/// The first failure that leaves the state of the file uncertain, including those that redb does not report. A full
/// disk does not count.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &outcome
            && !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| io::Error::new(error.kind(), error.to_string()));
        }
        outcome
    }
}

/// A redb database in a file.
#[derive(Debug)]
pub(super) struct FileBackend {
    file: Arc<dyn DiskFile>,
    failure: Failure,
}

impl FileBackend {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, failure: Failure::default() }
    }

    /// Access to failures, also after redb has taken the backend.
    pub(super) fn failure(&self) -> Failure {
        self.failure.clone()
    }
}

impl StorageBackend for FileBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(self.file.as_ref(), out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.failure.note(self.file.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        // A sync that failed for lack of space has lost bytes, like any other failed sync.
        self.failure.note(self.file.sync().map_err(|error| io::Error::other(error.to_string())))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.failure.note(self.file.write_at(data, offset))
    }
}

/// A redb database in memory, filled with the bytes of a file.
pub(super) fn memory_backend(bytes: &[u8]) -> io::Result<InMemoryBackend> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    Ok(backend)
}

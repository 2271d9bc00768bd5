//! The redo journal: the blocks that the current checkpoint changes in place.
//!
//! Block 0 of the file holds the magic, the checkpoint's number, the number of entries and their XXH3. The entries
//! start at block 1: table `u32`, block `u32`, the block's bytes. The file is emptied once they are durable in their
//! tables.
//!
//! Invariant: the file is overwritten only when its entries are durable in their tables. So a journal with a wrong
//! checksum belongs to a checkpoint that was never committed, and is ignored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::error::{Result, StateError};
use super::table::{BLOCK_BYTES, TableBlock};
use crate::backend::{Disk, DiskFile, OpenMode, read_exact_at};

const MAGIC: &[u8; 8] = b"archredo";
const ENTRIES_OFFSET: u64 = BLOCK_BYTES as u64;
const ENTRY_BYTES: usize = 8 + BLOCK_BYTES;
const BUFFER_BYTES: usize = 1 << 20;

/// A changed block.
#[derive(Debug)]
pub(crate) struct ChangedBlock<'a> {
    pub(crate) table: u32,
    pub(crate) block: u32,
    pub(crate) bytes: &'a TableBlock,
}

/// The journal file.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl Journal {
    pub(crate) fn open(disk: &dyn Disk, path: PathBuf, mode: OpenMode) -> Result<Self> {
        let file = disk.open(&path, mode).map_err(|error| StateError::io(&path, error))?;
        Ok(Self { path, file })
    }

    /// Starts the journal of a checkpoint, overwriting the previous one.
    pub(crate) fn begin(&self) -> JournalWriter {
        JournalWriter {
            journal: self.clone(),
            hasher: Box::new(Xxh3::new()),
            count: 0,
            buffer: Vec::new(),
            offset: ENTRIES_OFFSET,
        }
    }

    /// Whether the file holds all entries of a checkpoint, which may not be in place yet.
    pub(crate) fn is_pending(&self, number: u64) -> Result<bool> {
        Ok(self.pending_entries(number)?.is_some())
    }

    fn pending_entries(&self, number: u64) -> Result<Option<u64>> {
        let length = self.file.len().map_err(|error| self.failed(error))?;
        if length < ENTRIES_OFFSET {
            return Ok(None);
        }
        let mut head = [0; 32];
        read_exact_at(self.file.as_ref(), &mut head, 0).map_err(|error| self.failed(error))?;
        let Some(header) = JournalHeader::decode(&head) else { return Ok(None) };
        let entries = (length - ENTRIES_OFFSET) / ENTRY_BYTES as u64;
        if header.number != number || header.count > entries {
            return Ok(None);
        }
        let mut hasher = Xxh3::new();
        self.entries(header.count, |entry| {
            hasher.update(entry);
            Ok(())
        })?;
        Ok((hasher.digest() == header.checksum).then_some(header.count))
    }

    /// Calls `put` with the entries of a checkpoint if they are pending.
    pub(crate) fn replay(
        &self,
        number: u64,
        mut put: impl FnMut(ChangedBlock<'_>) -> Result<()>,
    ) -> Result<()> {
        self.entries(self.pending_entries(number)?.unwrap_or(0), |entry| {
            let (table, rest) = entry.split_at(4);
            let (block, bytes) = rest.split_at(4);
            match (table.try_into(), block.try_into(), bytes.try_into()) {
                (Ok(table), Ok(block), Ok(bytes)) => put(ChangedBlock {
                    table: u32::from_le_bytes(table),
                    block: u32::from_le_bytes(block),
                    bytes,
                }),
                _ => Ok(()),
            }
        })
    }

    fn entries(&self, count: u64, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut entry = vec![0; ENTRY_BYTES];
        for position in 0..count {
            let offset = ENTRIES_OFFSET + position * ENTRY_BYTES as u64;
            read_exact_at(self.file.as_ref(), &mut entry, offset).map_err(|error| self.failed(error))?;
            visit(&entry)?;
        }
        Ok(())
    }

    /// Empties the file once its entries are durable in their tables.
    pub(crate) fn clear(&self) -> Result<()> {
        self.file.set_len(0).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> StateError {
        StateError::io(&self.path, error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

struct JournalHeader {
    number: u64,
    count: u64,
    checksum: u64,
}

impl JournalHeader {
    fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let fields = [u64::from_le_bytes(*MAGIC), self.number, self.count, self.checksum];
        for (target, field) in bytes.chunks_exact_mut(8).zip(fields) {
            target.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; 32]) -> Option<Self> {
        let (fields, _) = bytes.as_chunks::<8>();
        let &[magic, number, count, checksum] = fields else { return None };
        (magic == *MAGIC).then(|| Self {
            number: u64::from_le_bytes(number),
            count: u64::from_le_bytes(count),
            checksum: u64::from_le_bytes(checksum),
        })
    }
}

/// Collects the blocks of one checkpoint.
pub(crate) struct JournalWriter {
    journal: Journal,
    hasher: Box<Xxh3>,
    count: u64,
    buffer: Vec<u8>,
    offset: u64,
}

impl JournalWriter {
    pub(crate) fn push(&mut self, table: u32, block: u32, bytes: &TableBlock) -> Result<()> {
        self.buffer.extend_from_slice(&table.to_le_bytes());
        self.buffer.extend_from_slice(&block.to_le_bytes());
        self.buffer.extend_from_slice(bytes);
        self.count += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.hasher.update(&self.buffer);
        let file = &self.journal.file;
        file.write_at(&self.buffer, self.offset).map_err(|error| self.journal.failed(error))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Completes the journal and makes it durable.
    pub(crate) fn finish(mut self, number: u64) -> Result<()> {
        self.flush()?;
        let checksum = self.hasher.digest();
        let mut head = vec![0; ENTRIES_OFFSET as usize];
        let header = JournalHeader { number, count: self.count, checksum };
        head.split_at_mut(32).0.copy_from_slice(&header.encode());
        let file = &self.journal.file;
        file.write_at(&head, 0).map_err(|error| self.journal.failed(error))?;
        file.sync().map_err(|error| StateError::sync(&self.journal.path, error))
    }
}

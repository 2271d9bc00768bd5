//! An append-only file of compressed blocks, and the list of the offsets at which they end.
//!
//! Invariant: block `i` never changes once pushed. Blocks that no checkpoint counts are meaningless after a crash and
//! are truncated when the file is opened for writing. Every block is one zstd frame with its size and checksum, so
//! `zstd -dc FILE` prints the raw blocks without this code. The sum of a log, kept in the catalogue, chains the frames:
//! it is the XXH3 of the last frame, seeded with the sum of those before; the sum of no frames is the state's identity.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, CParameter, ParamSwitch};

use super::error::{Result, StateError};
use crate::backend::{Disk, DiskFile, OpenMode, read_exact_at};

/// Maximum bytes of a block, raw or compressed: more than any writer produces (the largest is a list of 2^20 links),
/// and small enough to trust a damaged header with.
const RAW_BYTES_MAX: u64 = 8 << 20;
/// Compressed bytes collected before a write.
const PENDING_BYTES: usize = 1 << 20;
/// Maximum bytes of a run of blocks that are read at once: they stay in the CPU cache until they are decompressed.
const READ_BYTES: u64 = 1 << 18;
/// Small blocks of similar text do not get noticeably smaller at higher levels.
const COMPRESSION_LEVEL: i32 = 3;
/// Bytes per entry in the list of ends.
const END_BYTES: u64 = 8;

thread_local! {
    /// Creating a decompression context costs more than decompressing a block.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A log of blocks; see the module documentation.
pub(crate) struct BlockLog {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    ends_path: PathBuf,
    ends_file: Arc<dyn DiskFile>,
    /// Offset in the file at which each block ends.
    ends: Vec<u64>,
    ends_written: usize,
    /// Compressed blocks that are not in the file yet; they start at offset `written`.
    pending: Vec<u8>,
    written: u64,
    unsynced: bool,
    compressor: Option<Compressor<'static>>,
    /// Whether literals (bytes without a match) are compressed as well.
    literals: ParamSwitch,
    /// Chained checksum of all frames.
    sum: u64,
}

impl std::fmt::Debug for BlockLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockLog")
            .field("path", &self.path)
            .field("blocks", &self.ends.len())
            .finish_non_exhaustive()
    }
}

impl BlockLog {
    /// Opens `NAME.zst` and `NAME.ends` with the number of blocks of the last checkpoint.
    pub(crate) fn open(disk: &dyn Disk, stem: &std::path::Path, blocks: u64, mode: OpenMode) -> Result<Self> {
        let (path, ends_path) = (stem.with_extension("zst"), stem.with_extension("ends"));
        let open = |path: &PathBuf| disk.open(path, mode).map_err(|error| StateError::io(path, error));
        let (file, ends_file) = (open(&path)?, open(&ends_path)?);
        let mut log = Self {
            path,
            file,
            ends_path,
            ends_file,
            ends: Vec::new(),
            ends_written: 0,
            pending: Vec::new(),
            written: 0,
            unsynced: false,
            compressor: None,
            literals: ParamSwitch::Auto,
            sum: 0,
        };
        log.read_ends(blocks)?;
        if mode != OpenMode::Read {
            log.cut()?;
        }
        Ok(log)
    }

    fn read_ends(&mut self, blocks: u64) -> Result<()> {
        let length = self.ends_file.len().map_err(|error| StateError::io(&self.ends_path, error))?;
        if length / END_BYTES < blocks {
            return Err(StateError::corrupted(&self.ends_path, length, "shorter than the checkpoint says"));
        }
        let mut bytes = vec![0; PENDING_BYTES];
        while (self.ends.len() as u64) < blocks {
            let offset = self.ends.len() as u64 * END_BYTES;
            let left = (blocks - self.ends.len() as u64) * END_BYTES;
            let piece = &mut bytes[..left.min(PENDING_BYTES as u64) as usize];
            read_exact_at(self.ends_file.as_ref(), piece, offset)
                .map_err(|error| StateError::io(&self.ends_path, error))?;
            for end in piece.as_chunks().0.iter().copied().map(u64::from_le_bytes) {
                if end <= self.written || end - self.written > RAW_BYTES_MAX {
                    let what = "the blocks' ends do not rise as they should";
                    return Err(StateError::corrupted(&self.ends_path, offset, what));
                }
                self.written = end;
                self.ends.push(end);
            }
        }
        self.ends_written = self.ends.len();
        let length = self.file.len().map_err(|error| StateError::io(&self.path, error))?;
        if length < self.written {
            return Err(StateError::corrupted(&self.path, length, "shorter than the checkpoint says"));
        }
        Ok(())
    }

    fn cut(&self) -> Result<()> {
        let ends = self.ends.len() as u64 * END_BYTES;
        self.file.set_len(self.written).map_err(|error| StateError::io(&self.path, error))?;
        self.ends_file.set_len(ends).map_err(|error| StateError::io(&self.ends_path, error))
    }

    /// Bytes of the frames in the file, and of the list of their ends.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.written, self.ends_written as u64 * END_BYTES)
    }

    /// The chained checksum of all frames.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// Sets the expected checksum of the existing frames.
    pub(crate) fn set_sum(&mut self, sum: u64) {
        self.sum = sum;
    }

    /// Compresses matches only, for data in which literals save little and reading speed matters.
    pub(crate) fn leave_literals(&mut self) {
        self.literals = ParamSwitch::Disable;
    }

    /// Number of blocks in the log.
    pub(crate) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ends.capacity() * END_BYTES as usize + self.pending.capacity()
    }

    /// Appends a block.
    pub(crate) fn push(&mut self, raw: &[u8]) -> Result<()> {
        let failed = |error| StateError::io(&self.path, error);
        let mut compressor = match self.compressor.take() {
            Some(compressor) => compressor,
            None => {
                let mut compressor = Compressor::new(COMPRESSION_LEVEL).map_err(failed)?;
                compressor.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
                let literals = CParameter::LiteralCompressionMode(self.literals);
                compressor.set_parameter(literals).map_err(failed)?;
                compressor
            }
        };
        let start = self.pending.len();
        self.pending.resize(start + zstd_safe::compress_bound(raw.len()), 0);
        let outcome = compressor.compress_to_buffer(raw, self.pending.split_at_mut(start).1);
        self.pending.truncate(start + *outcome.as_ref().unwrap_or(&0));
        self.compressor = Some(compressor);
        outcome.map_err(|error| StateError::io(&self.path, error))?;
        self.sum = xxh3_64_with_seed(self.pending.get(start..).unwrap_or_default(), self.sum);
        self.ends.push(self.written + self.pending.len() as u64);
        if self.pending.len() >= PENDING_BYTES {
            // A full disk is reported by the next checkpoint; until then the blocks wait here.
            self.write_pending().ok();
        }
        Ok(())
    }

    /// Decompresses a block into `raw`, replacing its contents.
    pub(crate) fn read(&self, block: u64, raw: &mut Vec<u8>) -> Result<()> {
        let position = block as usize;
        let Some(&end) = self.ends.get(position) else {
            return Err(StateError::Unknown { what: "block", id: block });
        };
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        if start >= self.written {
            let from = (start - self.written) as usize;
            return self.decompress(&self.pending[from..(end - self.written) as usize], start, raw);
        }
        self.decompress(&self.frame(start, end)?, start, raw)
    }

    /// A compressed block from the file.
    fn frame(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let mut compressed = vec![0; (end - start) as usize];
        read_exact_at(self.file.as_ref(), &mut compressed, start)
            .map_err(|error| StateError::io(&self.path, error))?;
        Ok(compressed)
    }

    fn decompress(&self, frame: &[u8], offset: u64, raw: &mut Vec<u8>) -> Result<()> {
        let size =
            zstd_safe::get_frame_content_size(frame).ok().flatten().filter(|&size| size <= RAW_BYTES_MAX);
        let Some(size) = size else {
            return Err(StateError::corrupted(&self.path, offset, "a block's header is wrong"));
        };
        raw.clear();
        raw.reserve(size as usize);
        DECOMPRESSOR.with_borrow_mut(|slot| {
            let decompressor = match slot {
                Some(decompressor) => decompressor,
                None => slot.insert(Decompressor::new().map_err(|error| StateError::io(&self.path, error))?),
            };
            decompressor
                .decompress_to_buffer(frame, raw)
                .map_err(|_| StateError::corrupted(&self.path, offset, "a block does not decompress"))
        })?;
        Ok(())
    }

    /// Reads a range of blocks in large pieces and calls `visit` with each block.
    pub(crate) fn read_many(
        &self,
        blocks: std::ops::Range<u64>,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut raw, mut compressed) = (Vec::new(), Vec::new());
        let start_of = |block: u64| if block == 0 { 0 } else { self.ends[block as usize - 1] };
        let last = blocks.end.min(self.len());
        let mut first = blocks.start;
        while first < last {
            let start = start_of(first);
            if start >= self.written {
                self.read(first, &mut raw)?;
                visit(&raw)?;
                first += 1;
                continue;
            }
            let mut next = first + 1;
            while next < last
                && start_of(next) < self.written
                && self.ends[next as usize] - start <= READ_BYTES
            {
                next += 1;
            }
            compressed.resize((start_of(next) - start) as usize, 0);
            read_exact_at(self.file.as_ref(), &mut compressed, start)
                .map_err(|error| StateError::io(&self.path, error))?;
            for block in first..next {
                let (from, to) = (start_of(block), start_of(block + 1));
                self.decompress(&compressed[(from - start) as usize..(to - start) as usize], from, &mut raw)?;
                visit(&raw)?;
            }
            first = next;
        }
        Ok(())
    }

    /// Reads every block of the file and reports damaged ones. If there are none, reports a log whose frames are not
    /// the ones written by a state with this identity.
    pub(crate) fn check(&self, identity: u64, report: &mut dyn FnMut(&StateError)) {
        let (mut raw, mut start, mut sum, mut is_damaged) = (Vec::new(), 0, identity, false);
        for end in self.ends.iter().take_while(|end| **end <= self.written) {
            let outcome = self.frame(start, *end).and_then(|frame| {
                sum = xxh3_64_with_seed(&frame, sum);
                self.decompress(&frame, start, &mut raw)
            });
            if let Err(error) = outcome {
                report(&error);
                is_damaged = true;
            }
            start = *end;
        }
        if !is_damaged && self.pending.is_empty() && sum != self.sum {
            report(&StateError::corrupted(&self.path, 0, "it, or one of its blocks, belongs to another log"));
        }
    }

    fn write_pending(&mut self) -> Result<()> {
        self.unsynced = true;
        self.file.write_at(&self.pending, self.written).map_err(|error| StateError::io(&self.path, error))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Checkpoint: writes pending data without making it durable.
    pub(crate) fn write(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.write_pending()?;
        }
        if self.ends_written < self.ends.len() {
            let bytes: Vec<u8> =
                self.ends[self.ends_written..].iter().flat_map(|end| end.to_le_bytes()).collect();
            self.unsynced = true;
            self.ends_file
                .write_at(&bytes, self.ends_written as u64 * END_BYTES)
                .map_err(|error| StateError::io(&self.ends_path, error))?;
            self.ends_written = self.ends.len();
        }
        Ok(())
    }

    /// Checkpoint: makes all written data durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync().map_err(|error| StateError::sync(&self.path, error))?;
            self.ends_file.sync().map_err(|error| StateError::sync(&self.ends_path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }

    pub(crate) fn corrupted(&self, block: u64, what: &'static str) -> StateError {
        let offset = (block as usize).checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        StateError::corrupted(&self.path, offset.unwrap_or(0), what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::RealDisk;

    #[test]
    fn a_block_larger_than_any_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let stem = folder.path().join("log");
        let mut log = BlockLog::open(&RealDisk, &stem, 0, OpenMode::Create).unwrap();
        let mut raw = vec![0; RAW_BYTES_MAX as usize];
        log.push(&raw).unwrap();
        raw.push(0);
        log.push(&raw).unwrap();
        log.read(0, &mut raw).unwrap();
        assert_eq!(raw.len() as u64, RAW_BYTES_MAX);
        assert!(matches!(log.read(1, &mut raw), Err(StateError::Corrupted { .. })));
    }
}

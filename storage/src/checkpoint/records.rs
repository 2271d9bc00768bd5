//! Records of any length, packed into the blocks of a [`BlockLog`] and identified by their [`Position`].
//!
//! Invariant: a block is closed as soon as it has [`RecordLog::block_bytes`] or more, so every record starts within the
//! first 64 KiB of its block, and a position fits into 64 bits with room to spare. The bytes of the open block are part
//! of each checkpoint's commit.

use std::ops::Range;
use std::path::Path;

use super::error::Result;
use super::log::BlockLog;
use crate::backend::{Disk, OpenMode};

/// Start of a record: block number times 65536, plus the offset in the raw block.
pub(crate) type Position = u64;

const OFFSET_BITS: u32 = 16;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// A log of records; see the module documentation.
#[derive(Debug)]
pub(crate) struct RecordLog {
    log: BlockLog,
    open: Vec<u8>,
    block_bytes: usize,
}

impl RecordLog {
    pub(crate) fn open(
        disk: &dyn Disk,
        stem: &Path,
        blocks: u64,
        open: Vec<u8>,
        mode: OpenMode,
        block_bytes: u16,
    ) -> Result<Self> {
        Ok(Self {
            log: BlockLog::open(disk, stem, blocks, mode)?,
            open,
            block_bytes: usize::from(block_bytes),
        })
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, record: &[u8]) -> Result<Position> {
        let position = (self.log.len() << OFFSET_BITS) | self.open.len() as u64;
        self.open.extend_from_slice(record);
        if self.open.len() >= self.block_bytes {
            self.log.push(&self.open)?;
            self.open.clear();
        }
        Ok(position)
    }

    /// Number of blocks, including the open one.
    pub(crate) fn blocks(&self) -> u64 {
        self.log.len() + u64::from(!self.open.is_empty())
    }

    /// The raw bytes of a block.
    pub(crate) fn block(&self, block: u64, raw: &mut Vec<u8>) -> Result<()> {
        if block == self.log.len() {
            raw.clear();
            raw.extend_from_slice(&self.open);
            return Ok(());
        }
        self.log.read(block, raw)
    }

    /// Reads a range of blocks, including the open one, and calls `visit` with the raw bytes of each.
    pub(crate) fn read_many(
        &self,
        blocks: Range<u64>,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let has_open = blocks.contains(&self.log.len());
        self.log.read_many(blocks, &mut visit)?;
        if has_open { visit(&self.open) } else { Ok(()) }
    }

    /// Splits a position into the block and the offset in it.
    pub(crate) fn split(position: Position) -> (u64, usize) {
        (position >> OFFSET_BITS, (position & OFFSET_MASK) as usize)
    }

    /// The inverse of [`RecordLog::split`].
    pub(crate) fn join(block: u64, offset: usize) -> Position {
        (block << OFFSET_BITS) | offset as u64
    }

    /// The bytes of the open block, for the commit.
    pub(crate) fn open_block(&self) -> &[u8] {
        &self.open
    }

    pub(crate) fn log(&self) -> &BlockLog {
        &self.log
    }

    pub(crate) fn log_mut(&mut self) -> &mut BlockLog {
        &mut self.log
    }
}

/// Reads successive records, keeping recent blocks decompressed in a direct-mapped cache by block number.
#[derive(Debug)]
pub(crate) struct RecordCursor<'a> {
    log: &'a RecordLog,
    blocks: Vec<(Option<u64>, Vec<u8>)>,
}

impl<'a> RecordCursor<'a> {
    pub(crate) fn new(log: &'a RecordLog) -> Self {
        Self::keeping(log, 1)
    }

    /// A cursor that keeps `blocks` blocks, at least one.
    pub(crate) fn keeping(log: &'a RecordLog, blocks: usize) -> Self {
        Self { log, blocks: vec![(None, Vec::new()); blocks.max(1)] }
    }

    /// The bytes from a position to the end of its block.
    pub(crate) fn bytes(&mut self, position: Position) -> Result<&[u8]> {
        let (block, offset) = RecordLog::split(position);
        let place = block as usize % self.blocks.len();
        let (there, raw) = &mut self.blocks[place];
        if *there != Some(block) {
            *there = None;
            self.log.block(block, raw)?;
            *there = Some(block);
        }
        raw.get(offset..)
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| self.log.log().corrupted(block, "a position beyond the block's end"))
    }

    pub(crate) fn damage(&self, position: Position, what: &'static str) -> super::error::StateError {
        self.log.log().corrupted(RecordLog::split(position).0, what)
    }
}

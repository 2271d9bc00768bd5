//! A file of fixed-size numbered records; only the blocks in use are in memory.
//!
//! Invariant: blocks that the last checkpoint counts are changed on disk only by [`RecordTable::apply`], after the redo
//! journal that holds them is durable and the catalogue refers to it. Until then a changed block stays in memory.
//! Blocks past the last checkpoint are meaningless after a crash, so they may be written and evicted at any time.
//!
//! A block is [`BLOCK_BYTES`] long: as many records as fit, then zeros, and in the last eight bytes the XXH3 of the
//! rest, seeded with the state's identity, the table and the block's number. The checksum detects torn, corrupted and
//! misplaced blocks, and those of another table or archive.

mod cursor;

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::error::{Result, StateError};
use super::fields::{FieldReader, FieldWriter, TableRecord};
use super::journal::JournalWriter;
use crate::backend::{Disk, DiskFile, OpenMode, read_exact_at};

/// Bytes per block.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Bytes of a block available to records.
const PAYLOAD_BYTES: usize = BLOCK_BYTES - 8;
/// Number of frames tried for eviction before memory may grow.
const EVICTION_STEPS_MAX: usize = 64;
/// Maximum number of blocks per write.
const WRITE_BLOCKS: usize = 256;
const ABSENT: u32 = u32::MAX;

pub(crate) use cursor::TableCursor;

pub(crate) type TableBlock = [u8; BLOCK_BYTES];

/// Computes the checksum in the last bytes of a block of a table with this seed.
fn checksum(block: &TableBlock, number: u32, seed: u64) -> u64 {
    xxh3_64_with_seed(block.split_at(PAYLOAD_BYTES).0, seed ^ u64::from(number))
}

fn seal(block: &mut TableBlock, number: u32, seed: u64) {
    let sum = checksum(block, number, seed);
    block.split_at_mut(PAYLOAD_BYTES).1.copy_from_slice(&sum.to_le_bytes());
}

fn is_whole(block: &TableBlock, number: u32, seed: u64) -> bool {
    block.split_at(PAYLOAD_BYTES).1 == checksum(block, number, seed).to_le_bytes()
}

#[derive(Debug)]
struct Frame {
    block: u32,
    dirty: bool,
    /// Used since the clock hand last passed.
    used: bool,
    bytes: Box<TableBlock>,
}

/// A table of records numbered from 0; see the module documentation.
#[derive(Debug)]
pub(crate) struct RecordTable<R> {
    /// Number of the table in the journal.
    id: u32,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    count: u32,
    /// Number of blocks that the last checkpoint counts.
    committed: u32,
    frame_of: Vec<u32>,
    frames: Vec<Frame>,
    hand: usize,
    /// Maximum number of frames; exceeded only while all of them hold changes.
    capacity: usize,
    /// Seed of the blocks' checksums, combined with the block numbers.
    seed: u64,
    /// Number of frames with changes to blocks that the last checkpoint counts.
    changed_in_place: usize,
    /// One bit per block: whether it was changed since the table was opened.
    changed_since: Vec<u64>,
    unsynced: bool,
    record: PhantomData<R>,
}

/// Number of frames that fit into `bytes`, but at least a few.
fn frames_in(bytes: usize) -> usize {
    (bytes / BLOCK_BYTES).max(4)
}

impl<R: TableRecord> RecordTable<R> {
    /// Number of records in a block.
    pub(crate) const PER_BLOCK: u32 = (PAYLOAD_BYTES / R::BYTES) as u32;

    /// Opens the file with the number of records of the last checkpoint, for the state with this identity.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: PathBuf,
        id: u32,
        count: u32,
        mode: OpenMode,
        identity: u64,
    ) -> Result<Self> {
        let file = disk.open(&path, mode).map_err(|error| StateError::io(&path, error))?;
        let committed = count.div_ceil(Self::PER_BLOCK);
        let length = u64::from(committed) * BLOCK_BYTES as u64;
        let found = file.len().map_err(|error| StateError::io(&path, error))?;
        if found < length {
            return Err(StateError::corrupted(&path, found, "shorter than the checkpoint says"));
        }
        if found > length && mode != OpenMode::Read {
            file.set_len(length).map_err(|error| StateError::io(&path, error))?;
        }
        Ok(Self {
            id,
            path,
            file,
            count,
            committed,
            frame_of: vec![ABSENT; committed as usize],
            frames: Vec::new(),
            hand: 0,
            capacity: frames_in(0),
            seed: identity ^ (u64::from(id) << 32),
            changed_in_place: 0,
            changed_since: Vec::new(),
            unsynced: false,
            record: PhantomData,
        })
    }

    /// Sets how many bytes of blocks to keep in memory. Excess blocks are evicted as the clock hand reaches them.
    pub(crate) fn set_capacity(&mut self, bytes: usize) {
        self.capacity = frames_in(bytes);
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The record with a number, or `None` past the last.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Result<Option<R>> {
        if number >= self.count {
            return Ok(None);
        }
        let (block, slot) = (number / Self::PER_BLOCK, number % Self::PER_BLOCK);
        if let Some(frame) = self.frame(block) {
            return Ok(Some(Self::decode(&frame.bytes, slot)));
        }
        let mut bytes = [0; BLOCK_BYTES];
        self.read(block, &mut bytes)?;
        Ok(Some(Self::decode(&bytes, slot)))
    }

    /// Changes a record in place; its block stays in memory. `None` past the last record.
    #[inline]
    pub(crate) fn update<T>(&mut self, number: u32, change: impl FnOnce(&mut R) -> T) -> Result<Option<T>> {
        if number >= self.count {
            return Ok(None);
        }
        let (block, slot) = (number / Self::PER_BLOCK, number % Self::PER_BLOCK);
        let frame = self.load(block)?;
        let mut record = Self::decode(&frame.bytes, slot);
        let outcome = change(&mut record);
        Self::encode(&mut frame.bytes, slot, &record);
        self.mark(block);
        Ok(Some(outcome))
    }

    /// Appends a record and returns its number.
    pub(crate) fn push(&mut self, record: &R) -> Result<u32> {
        let number = self.count;
        let (block, slot) = (number / Self::PER_BLOCK, number % Self::PER_BLOCK);
        if number >= u32::MAX - 1 {
            return Err(StateError::Full { what: "ids" });
        }
        if slot == 0 {
            let frame = self.free_frame();
            self.frame_of.push(frame as u32);
            self.frames[frame].block = block;
            self.frames[frame].bytes.fill(0);
        }
        let frame = self.load(block)?;
        Self::encode(&mut frame.bytes, slot, record);
        self.mark(block);
        self.count += 1;
        Ok(number)
    }

    /// Overrides a block of the file with one from the journal: for readers, who may not write.
    pub(crate) fn overlay(&mut self, block: u32, bytes: &TableBlock) {
        if block < self.committed && self.frame_of[block as usize] == ABSENT {
            self.frame_of[block as usize] = self.frames.len() as u32;
            self.frames.push(Frame { block, dirty: false, used: true, bytes: Box::new(*bytes) });
        }
    }

    /// Reads every block that the last checkpoint counts and reports damaged ones.
    pub(crate) fn check(&self, report: &mut dyn FnMut(&StateError)) {
        let mut bytes = [0; BLOCK_BYTES];
        for block in (0..self.committed).filter(|block| self.frame(*block).is_none()) {
            if let Err(error) = self.read(block, &mut bytes) {
                report(&error);
            }
        }
    }

    /// The error for a record with impossible contents.
    pub(crate) fn damaged(&self, number: u32, what: &'static str) -> StateError {
        let offset = u64::from(number / Self::PER_BLOCK) * BLOCK_BYTES as u64;
        StateError::corrupted(&self.path, offset, what)
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.frames.len() * (BLOCK_BYTES + size_of::<Frame>()) + self.frame_of.capacity() * 4
    }

    /// Bytes of blocks changed in place, which stay in memory until the next checkpoint.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.changed_in_place * BLOCK_BYTES
    }

    /// Marks a block in memory as changed.
    #[inline]
    fn mark(&mut self, block: u32) {
        let frame = &mut self.frames[self.frame_of[block as usize] as usize];
        if !std::mem::replace(&mut frame.dirty, true) && block < self.committed {
            self.changed_in_place += 1;
        }
        let word = block as usize / 64;
        if word >= self.changed_since.len() {
            self.changed_since.resize(word + 1, 0);
        }
        self.changed_since[word] |= 1 << (block % 64);
    }

    /// Whether a block that contains one of these records was changed since the table was opened.
    pub(crate) fn was_changed(&self, numbers: Range<u32>) -> bool {
        let is_changed = |block: u32| {
            let word = self.changed_since.get(block as usize / 64).copied().unwrap_or_default();
            word >> (block % 64) & 1 == 1
        };
        !numbers.is_empty()
            && (numbers.start / Self::PER_BLOCK..=(numbers.end - 1) / Self::PER_BLOCK).any(is_changed)
    }

    #[inline]
    fn frame(&self, block: u32) -> Option<&Frame> {
        self.frames.get(*self.frame_of.get(block as usize)? as usize)
    }

    #[inline]
    fn decode(bytes: &TableBlock, slot: u32) -> R {
        let start = slot as usize * R::BYTES;
        R::decode(&mut FieldReader(&bytes[start..start + R::BYTES]))
    }

    #[inline]
    fn encode(bytes: &mut TableBlock, slot: u32, record: &R) {
        let start = slot as usize * R::BYTES;
        record.encode(&mut FieldWriter(&mut bytes[start..start + R::BYTES]));
    }

    fn read(&self, block: u32, bytes: &mut TableBlock) -> Result<()> {
        read_block(self.file.as_ref(), &self.path, block, bytes, self.seed)
    }

    #[inline]
    fn load(&mut self, block: u32) -> Result<&mut Frame> {
        let mut frame = self.frame_of[block as usize];
        if frame == ABSENT {
            frame = self.load_absent(block)?;
        }
        let frame = &mut self.frames[frame as usize];
        frame.used = true;
        Ok(frame)
    }

    #[cold]
    fn load_absent(&mut self, block: u32) -> Result<u32> {
        let number = self.free_frame();
        let frame = &mut self.frames[number];
        read_block(self.file.as_ref(), &self.path, block, &mut frame.bytes, self.seed)?;
        frame.block = block;
        self.frame_of[block as usize] = number as u32;
        Ok(number as u32)
    }

    /// Returns an empty frame: a new one while there is room or no frame can be evicted, otherwise one evicted by the
    /// clock algorithm.
    fn free_frame(&mut self) -> usize {
        if self.frames.len() >= self.capacity {
            for _ in 0..EVICTION_STEPS_MAX {
                self.hand = (self.hand + 1) % self.frames.len();
                if let Some(frame) = self.evict(self.hand) {
                    return frame;
                }
            }
        }
        self.frames.push(Frame {
            block: ABSENT,
            dirty: false,
            used: true,
            bytes: Box::new([0; BLOCK_BYTES]),
        });
        self.frames.len() - 1
    }

    fn evict(&mut self, number: usize) -> Option<usize> {
        let frame = &mut self.frames[number];
        if std::mem::take(&mut frame.used) || (frame.dirty && frame.block < self.committed) {
            return None;
        }
        if frame.dirty {
            seal(&mut frame.bytes, frame.block, self.seed);
            let offset = u64::from(frame.block) * BLOCK_BYTES as u64;
            // A full disk is reported by the next checkpoint; until then the block stays in memory.
            self.file.write_at(frame.bytes.as_slice(), offset).ok()?;
            self.unsynced = true;
            frame.dirty = false;
        }
        if frame.block != ABSENT {
            self.frame_of[frame.block as usize] = ABSENT;
            frame.block = ABSENT;
        }
        Some(number)
    }

    /// Changed frames in the order of their blocks: those that the last checkpoint counts, or those past it.
    fn changed(&self, counted: bool) -> Vec<usize> {
        let mut frames: Vec<usize> = (0..self.frames.len())
            .filter(|&frame| {
                self.frames[frame].dirty && (self.frames[frame].block < self.committed) == counted
            })
            .collect();
        frames.sort_unstable_by_key(|&frame| self.frames[frame].block);
        frames
    }

    /// Checkpoint, first step: writes the blocks that no checkpoint counts yet.
    pub(crate) fn write_new(&mut self) -> Result<()> {
        let frames = self.changed(false);
        self.write(&frames)
    }

    /// Checkpoint, second step: adds the blocks that would change in place to the journal.
    pub(crate) fn journal(&mut self, journal: &mut JournalWriter) -> Result<()> {
        for frame in self.changed(true) {
            let frame = &mut self.frames[frame];
            seal(&mut frame.bytes, frame.block, self.seed);
            journal.push(self.id, frame.block, &frame.bytes)?;
        }
        Ok(())
    }

    /// Makes all written blocks durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync().map_err(|error| StateError::sync(&self.path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Checkpoint, after the commit: writes the journalled blocks in place.
    pub(crate) fn apply(&mut self) -> Result<()> {
        let frames = self.changed(true);
        self.write(&frames)?;
        self.committed = self.frame_of.len() as u32;
        self.changed_in_place = 0;
        self.shrink();
        self.sync()
    }

    /// Writes frames, merging adjacent blocks into one write.
    fn write(&mut self, frames: &[usize]) -> Result<()> {
        let mut buffer = Vec::new();
        let mut start = 0;
        for (position, &number) in frames.iter().enumerate() {
            let frame = &mut self.frames[number];
            seal(&mut frame.bytes, frame.block, self.seed);
            if buffer.is_empty() {
                start = frame.block;
            }
            buffer.extend_from_slice(frame.bytes.as_slice());
            let block = frame.block;
            let next = frames.get(position + 1).map(|&next| self.frames[next].block);
            if next != Some(block + 1) || buffer.len() >= WRITE_BLOCKS * BLOCK_BYTES {
                self.unsynced = true;
                let offset = u64::from(start) * BLOCK_BYTES as u64;
                self.file.write_at(&buffer, offset).map_err(|error| StateError::io(&self.path, error))?;
                buffer.clear();
            }
        }
        for &number in frames {
            self.frames[number].dirty = false;
        }
        Ok(())
    }

    /// Releases the memory that changes needed beyond the capacity.
    fn shrink(&mut self) {
        while self.frames.len() > self.capacity {
            if let Some(Frame { block, .. }) = self.frames.pop()
                && block != ABSENT
            {
                self.frame_of[block as usize] = ABSENT;
            }
        }
        self.hand = 0;
    }
}

fn read_block(file: &dyn DiskFile, path: &Path, block: u32, bytes: &mut TableBlock, seed: u64) -> Result<()> {
    let offset = u64::from(block) * BLOCK_BYTES as u64;
    read_exact_at(file, bytes, offset).map_err(|error| StateError::io(path, error))?;
    if is_whole(bytes, block, seed) { Ok(()) } else { Err(torn(path, block)) }
}

fn torn(path: &Path, block: u32) -> StateError {
    StateError::corrupted(path, u64::from(block) * BLOCK_BYTES as u64, "a block's checksum is wrong")
}

/// Writes a journalled block in place during opening.
pub(crate) fn write_block(file: &dyn DiskFile, path: &Path, block: u32, bytes: &TableBlock) -> Result<()> {
    let offset = u64::from(block) * BLOCK_BYTES as u64;
    file.write_at(bytes, offset).map_err(|error| StateError::io(path, error))
}

//! A vector of numbers in a file, read and written in blocks.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};

use super::{BUFFER_BYTES, SliceError};

/// Numbers per block.
pub(super) const BLOCK: usize = BUFFER_BYTES / 8;

/// Number of locks for adding; far more than threads, so that they rarely wait for one another.
const TURNS: usize = 64;

/// See the module's documentation. Threads may share it: a block is read either before or after it is written.
#[derive(Debug)]
pub(super) struct VectorFile {
    path: PathBuf,
    file: File,
    length: usize,
    guard: RwLock<()>,
    /// Locks for adding to blocks: each serves one in [`TURNS`] blocks.
    turns: [Mutex<()>; TURNS],
    read: AtomicU64,
}

impl VectorFile {
    pub(super) fn create(path: &Path, length: usize, value: f64) -> Result<Self, SliceError> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(SliceError::io(path))?;
        let vector = Self {
            path: path.into(),
            file,
            length,
            guard: RwLock::new(()),
            turns: [const { Mutex::new(()) }; TURNS],
            read: AtomicU64::new(0),
        };
        let block = vec![value; BLOCK];
        for start in (0..length).step_by(BLOCK) {
            vector.write(start, &block[..BLOCK.min(length - start)])?;
        }
        Ok(vector)
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Number of bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Reads values from position `start` on.
    pub(super) fn read(&self, start: usize, values: &mut [f64]) -> Result<(), SliceError> {
        let mut bytes = vec![0; values.len().min(BLOCK) * 8];
        for (number, block) in values.chunks_mut(BLOCK).enumerate() {
            let bytes = &mut bytes[..block.len() * 8];
            let offset = ((start + number * BLOCK) * 8) as u64;
            {
                // A poisoned lock guards nothing that could be half done.
                let _reading = self.guard.read().unwrap_or_else(PoisonError::into_inner);
                self.file.read_exact_at(bytes, offset).map_err(SliceError::io(&self.path))?;
            }
            for (value, bytes) in block.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *value = f64::from_le_bytes(*bytes);
            }
            self.read.fetch_add(bytes.len() as u64, Relaxed);
        }
        Ok(())
    }

    /// Writes values from position `start` on.
    pub(super) fn write(&self, start: usize, values: &[f64]) -> Result<(), SliceError> {
        let mut bytes = Vec::with_capacity(values.len().min(BLOCK) * 8);
        for (number, block) in values.chunks(BLOCK).enumerate() {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|value| value.to_le_bytes()));
            let offset = ((start + number * BLOCK) * 8) as u64;
            let _writing = self.guard.write().unwrap_or_else(PoisonError::into_inner);
            self.file.write_all_at(&bytes, offset).map_err(SliceError::io(&self.path))?;
        }
        Ok(())
    }

    /// Adds to the values of a block. While threads add, nobody may read or write.
    fn add(&self, block: usize, amounts: &[f64], bytes: &mut Vec<u8>) -> Result<(), SliceError> {
        bytes.resize(amounts.len() * 8, 0);
        let offset = (block * BLOCK * 8) as u64;
        let _turn = self.turns[block % TURNS].lock().unwrap_or_else(PoisonError::into_inner);
        self.file.read_exact_at(bytes, offset).map_err(SliceError::io(&self.path))?;
        for (sum, amount) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(amounts) {
            *sum = (f64::from_le_bytes(*sum) + amount).to_le_bytes();
        }
        self.file.write_all_at(bytes, offset).map_err(SliceError::io(&self.path))?;
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        Ok(())
    }
}

/// Reads a vector in ascending order of positions, block by block.
pub(super) struct Ascending<'a> {
    vector: &'a VectorFile,
    block: Vec<f64>,
    start: usize,
}

impl<'a> Ascending<'a> {
    pub(super) fn new(vector: &'a VectorFile) -> Self {
        Self { vector, block: Vec::new(), start: 0 }
    }

    /// Returns the value at `place`, which must never descend.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> Result<f64, SliceError> {
        if let Some(value) = self.block.get(place.wrapping_sub(self.start)) {
            return Ok(*value);
        }
        self.load(place)
    }

    #[cold]
    fn load(&mut self, place: usize) -> Result<f64, SliceError> {
        self.start = place - place % BLOCK;
        self.block.resize(BLOCK.min(self.vector.len().saturating_sub(self.start)), 0.0);
        self.vector.read(self.start, &mut self.block)?;
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.block
            .get(place - self.start)
            .copied()
            .ok_or_else(missing)
            .map_err(SliceError::io(&self.vector.path))
    }
}

/// Adds to a vector in ascending order of positions, block by block. Any number of threads may do so at the same time.
pub(super) struct Adding<'a> {
    vector: &'a VectorFile,
    /// Amounts to add to the block that begins at `start`.
    amounts: Vec<f64>,
    start: usize,
    bytes: Vec<u8>,
}

impl<'a> Adding<'a> {
    pub(super) fn new(vector: &'a VectorFile) -> Self {
        Self { vector, amounts: Vec::new(), start: 0, bytes: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, place: usize, amount: f64) -> Result<(), SliceError> {
        if self.amounts.get(place.wrapping_sub(self.start)).is_none() {
            self.turn(place)?;
        }
        if let Some(sum) = self.amounts.get_mut(place - self.start) {
            *sum += amount;
        }
        Ok(())
    }

    /// Adds the amounts still in memory.
    pub(super) fn finish(mut self) -> Result<(), SliceError> {
        self.vector.add(self.start / BLOCK, &self.amounts, &mut self.bytes)
    }

    #[cold]
    fn turn(&mut self, place: usize) -> Result<(), SliceError> {
        self.vector.add(self.start / BLOCK, &self.amounts, &mut self.bytes)?;
        self.start = place - place % BLOCK;
        self.amounts.clear();
        self.amounts.resize(BLOCK.min(self.vector.len().saturating_sub(self.start)), 0.0);
        Ok(())
    }
}

//! A vector of numbers in a file, read and written in blocks.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{BUFFER_BYTES, SliceError};

/// Numbers in a block.
pub(super) const BLOCK: usize = BUFFER_BYTES / 8;

/// See the module's documentation. Threads may share it: a block is read either before or after it is written.
#[derive(Debug)]
pub(super) struct VectorFile {
    path: PathBuf,
    file: File,
    length: usize,
    guard: RwLock<()>,
    read: AtomicU64,
}

impl VectorFile {
    pub(super) fn create(path: &Path, length: usize, value: f64) -> Result<Self, SliceError> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(SliceError::io(path))?;
        let vector =
            Self { path: path.into(), file, length, guard: RwLock::new(()), read: AtomicU64::new(0) };
        let block = vec![value; BLOCK];
        for start in (0..length).step_by(BLOCK) {
            vector.write(start, &block[..BLOCK.min(length - start)])?;
        }
        Ok(vector)
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Fills `values` from place `start` on.
    pub(super) fn read(&self, start: usize, values: &mut [f64]) -> Result<(), SliceError> {
        let mut bytes = vec![0; values.len().min(BLOCK) * 8];
        for (number, block) in values.chunks_mut(BLOCK).enumerate() {
            let bytes = &mut bytes[..block.len() * 8];
            let offset = ((start + number * BLOCK) * 8) as u64;
            {
                // A poisoned lock guards nothing that could be half done.
                let _reading = self.guard.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                self.file.read_exact_at(bytes, offset).map_err(SliceError::io(&self.path))?;
            }
            for (value, bytes) in block.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *value = f64::from_le_bytes(*bytes);
            }
            self.read.fetch_add(bytes.len() as u64, Relaxed);
        }
        Ok(())
    }

    /// Replaces the values from place `start` on.
    pub(super) fn write(&self, start: usize, values: &[f64]) -> Result<(), SliceError> {
        let mut bytes = Vec::with_capacity(values.len().min(BLOCK) * 8);
        for (number, block) in values.chunks(BLOCK).enumerate() {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|value| value.to_le_bytes()));
            let offset = ((start + number * BLOCK) * 8) as u64;
            let _writing = self.guard.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.file.write_all_at(&bytes, offset).map_err(SliceError::io(&self.path))?;
        }
        Ok(())
    }
}

/// Reads a vector in ascending order of places, block by block.
pub(super) struct Ascending<'a> {
    vector: &'a VectorFile,
    block: Vec<f64>,
    start: usize,
}

impl<'a> Ascending<'a> {
    pub(super) fn new(vector: &'a VectorFile) -> Self {
        Self { vector, block: Vec::new(), start: 0 }
    }

    /// The value at `place`, which never descends.
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

/// Adds to a vector in ascending order of places, block by block.
pub(super) struct Adding<'a> {
    vector: &'a VectorFile,
    block: Vec<f64>,
    start: usize,
}

impl<'a> Adding<'a> {
    pub(super) fn new(vector: &'a VectorFile) -> Self {
        Self { vector, block: Vec::new(), start: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, place: usize, amount: f64) -> Result<(), SliceError> {
        if let Some(value) = self.block.get_mut(place.wrapping_sub(self.start)) {
            *value += amount;
            return Ok(());
        }
        self.turn(place)?;
        self.add_loaded(place, amount);
        Ok(())
    }

    /// Writes what is still in memory.
    pub(super) fn finish(self) -> Result<(), SliceError> {
        self.vector.write(self.start, &self.block)
    }

    fn add_loaded(&mut self, place: usize, amount: f64) {
        if let Some(value) = self.block.get_mut(place - self.start) {
            *value += amount;
        }
    }

    #[cold]
    fn turn(&mut self, place: usize) -> Result<(), SliceError> {
        self.vector.write(self.start, &self.block)?;
        self.start = place - place % BLOCK;
        self.block.resize(BLOCK.min(self.vector.len().saturating_sub(self.start)), 0.0);
        self.vector.read(self.start, &mut self.block)
    }
}

//! A file of integer columns, in blocks of rows, so that a reader reads only what it needs.
//!
//! `storage/FORMAT.md` specifies its bytes. A chunk is the values of one column in one block; the directory has each
//! chunk's position and the range of its values. Texts that values refer to may follow the directory.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use archive_base::files::{WholeFile, if_there};
use archive_storage::backend::{OpenMode, open_regular};
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

/// Default number of rows in a block, and the maximum.
pub const BLOCK_ROWS: u32 = 1 << 15;

/// First bytes of each file; the digit is the format version.
const MAGIC: [u8; 8] = *b"archpre3";
/// First bytes of files by older versions, which count as missing.
const OLDER_MAGIC: [[u8; 8]; 2] = [*b"archpre1", *b"archpre2"];
const HEADER_BYTES: usize = 8 + 8 + 8 + 4 + 4 + 4;
const CHUNK_BYTES: usize = 8 + 4 + 8 + 8 + 8;
const FOOTER_BYTES: usize = 8 + 8;

/// Compression level: chunks of similar values compress well, and fast.
const LEVEL: i32 = 1;
/// A chunk is stored compressed only if it becomes this many times smaller.
const WORTH: usize = 6;

/// A directory with more chunks is damaged: row numbers have 32 bits.
const CHUNKS_MAX: u64 = (u32::MAX / BLOCK_ROWS + 1) as u64 * u8::MAX as u64;

/// Maximum bytes of texts in a file.
pub(super) const TEXTS_BYTES_MAX: u64 = 8 << 20;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}; delete the file, and it will be rebuilt", path.display())]
pub struct PreparedError {
    path: PathBuf,
    source: io::Error,
}

impl archive_base::error::Classified for PreparedError {}

impl PreparedError {
    /// Returns the cause.
    pub(super) fn reason(&self) -> &io::Error {
        &self.source
    }
}

/// What a file was made from; it is valid for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Identity of the state.
    pub(super) state: u64,
    /// Number of its checkpoint.
    pub(super) checkpoint: u64,
    /// Number of rows.
    pub(super) rows: u32,
    /// Number of columns.
    pub(super) columns: u32,
}

/// Position and value range of a chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    offset: u64,
    bytes: u32,
    least: u64,
    most: u64,
    sum: u64,
}

/// A file being written.
#[derive(Debug)]
pub(super) struct Writer {
    file: WholeFile,
    path: PathBuf,
    offset: u64,
    header: Vec<u8>,
    directory: Vec<u8>,
}

impl Writer {
    pub(super) fn begin(path: &Path, stamp: Stamp, block_rows: u32) -> Result<Self, PreparedError> {
        let mut header = MAGIC.to_vec();
        header.extend([stamp.state, stamp.checkpoint].map(u64::to_le_bytes).as_flattened());
        header.extend([stamp.rows, stamp.columns, block_rows].map(u32::to_le_bytes).as_flattened());
        let begin = || {
            let mut file = WholeFile::begin(path)?;
            file.write_all(&header)?;
            Ok(file)
        };
        let file = begin().map_err(failed(path))?;
        Ok(Self { file, path: path.into(), offset: HEADER_BYTES as u64, header, directory: Vec::new() })
    }

    /// Adds the values of the next column of the block, or of the first column of the next block.
    pub(super) fn add(&mut self, values: &[u64]) -> Result<(), PreparedError> {
        self.push(&self.packed(values)?)
    }

    /// Packs the values of a column in a block.
    pub(super) fn packed(&self, values: &[u64]) -> Result<Packed, PreparedError> {
        let least = values.iter().copied().min().unwrap_or_default();
        let most = values.iter().copied().max().unwrap_or_default();
        let plain = narrow(values, least, width(least, most));
        let packed = zstd::bulk::compress(&plain, LEVEL).map_err(failed(&self.path))?;
        // A chunk that does not shrink much is read faster uncompressed.
        let stored = if packed.len() < plain.len() / WORTH { packed } else { plain };
        let sum = xxh3_64(&stored);
        Ok(Packed { stored, numbers: [least, most, sum] })
    }

    /// Copies a block of another file; returns false, and adds nothing, if it is damaged.
    pub(super) fn keep(&mut self, old: &Reader, block: u32) -> Result<bool, PreparedError> {
        let stored = |column| {
            let (chunk, mut buffer) = (old.chunk(block, column)?, Vec::new());
            old.stored(chunk, &mut buffer).ok()?;
            Some((*chunk, buffer))
        };
        let chunks: Option<Vec<_>> = (0..old.stamp.columns).map(stored).collect();
        let Some(chunks) = chunks else { return Ok(false) };
        for (Chunk { least, most, sum, .. }, stored) in chunks {
            self.push(&Packed { stored, numbers: [least, most, sum] })?;
        }
        Ok(true)
    }

    /// Adds packed values, as [`Writer::add`] does.
    pub(super) fn push(&mut self, Packed { stored, numbers }: &Packed) -> Result<(), PreparedError> {
        self.file.write_all(stored).map_err(failed(&self.path))?;
        let bytes = u32::try_from(stored.len())
            .map_err(|_| failed(&self.path)(io::ErrorKind::FileTooLarge.into()))?;
        self.directory.extend(self.offset.to_le_bytes());
        self.directory.extend(bytes.to_le_bytes());
        self.directory.extend(numbers.map(u64::to_le_bytes).as_flattened());
        self.offset += u64::from(bytes);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), PreparedError> {
        self.finish_with(&[])
    }

    /// Finishes the file with texts of at most [`TEXTS_BYTES_MAX`] bytes.
    pub(super) fn finish_with(mut self, texts: &[u8]) -> Result<(), PreparedError> {
        self.directory.extend_from_slice(texts);
        let sum = xxh3_64(&[self.header.as_slice(), &self.directory].concat());
        let footer = [self.offset.to_le_bytes(), sum.to_le_bytes()].concat();
        let finish = || {
            self.file.write_all(&self.directory)?;
            self.file.write_all(&footer)?;
            self.file.commit()
        };
        finish().map_err(failed(&self.path))
    }
}

/// Stored bytes of a chunk, with the least and the greatest of its values, and the checksum of the bytes.
pub(super) struct Packed {
    stored: Vec<u8>,
    numbers: [u64; 3],
}

/// A file being read.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    path: PathBuf,
    stamp: Stamp,
    block_rows: u32,
    chunks: Vec<Chunk>,
    texts: Vec<u8>,
}

impl Reader {
    /// Opens a file; `None` if it is missing or of an older version.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, PreparedError> {
        let file = if_there(open_regular(path, OpenMode::Read)).map_err(failed(path))?;
        let Some(file) = file else { return Ok(None) };
        Self::read_directory(file, path).map_err(failed(path))
    }

    fn read_directory(file: File, path: &Path) -> io::Result<Option<Self>> {
        let mut magic = [0; MAGIC.len()];
        file.read_exact_at(&mut magic, 0)?;
        if OLDER_MAGIC.contains(&magic) {
            return Ok(None);
        }
        let length = file.metadata()?.len();
        let (mut header, mut footer) = ([0; HEADER_BYTES], [0; FOOTER_BYTES]);
        file.read_exact_at(&mut header, 0)?;
        let end = length.checked_sub(FOOTER_BYTES as u64).ok_or_else(damaged)?;
        file.read_exact_at(&mut footer, end)?;
        let [directory, sum] = numbers(&footer);
        let (stamp, block_rows) = stamp(&header).ok_or_else(damaged)?;
        let chunks = u64::from(stamp.rows.div_ceil(block_rows)) * u64::from(stamp.columns);
        let chunk_bytes = chunks.saturating_mul(CHUNK_BYTES as u64);
        let texts = end.checked_sub(directory).and_then(|bytes| bytes.checked_sub(chunk_bytes));
        if chunks > CHUNKS_MAX || texts.is_none_or(|bytes| bytes > TEXTS_BYTES_MAX) {
            return Err(damaged());
        }
        let mut bytes = vec![0; (end - directory) as usize];
        file.read_exact_at(&mut bytes, directory)?;
        if xxh3_64(&[header.as_slice(), &bytes].concat()) != sum {
            return Err(damaged());
        }
        let texts = bytes.split_off(chunk_bytes as usize);
        let chunks = bytes.as_chunks::<CHUNK_BYTES>().0.iter().map(chunk).collect();
        Ok(Some(Self { file, path: path.into(), stamp, block_rows, chunks, texts }))
    }

    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the block of a row, and its position in the block.
    pub(super) fn place(&self, row: u32) -> (u32, u32) {
        (row / self.block_rows, row % self.block_rows)
    }

    pub(super) fn texts(&self) -> &[u8] {
        &self.texts
    }

    /// Returns the error for a file whose contents are invalid.
    pub(super) fn damaged(&self) -> PreparedError {
        failed(&self.path)(damaged())
    }

    /// Whether it has the same state, columns and block size; checkpoint and number of rows may differ.
    pub(super) fn is_alike(&self, stamp: Stamp, block_rows: u32) -> bool {
        let Stamp { checkpoint, rows, .. } = self.stamp;
        Stamp { checkpoint, rows, ..stamp } == self.stamp && self.block_rows == block_rows
    }

    pub(super) fn blocks(&self) -> u32 {
        self.stamp.rows.div_ceil(self.block_rows)
    }

    /// Returns the rows of a block.
    pub(super) fn rows(&self, block: u32) -> Range<u32> {
        let first = block.saturating_mul(self.block_rows);
        first..self.stamp.rows.min(first.saturating_add(self.block_rows))
    }

    /// Returns the range of the values of a column in a block.
    pub(super) fn bounds(&self, block: u32, column: u32) -> RangeInclusive<u64> {
        self.chunk(block, column).map_or(0..=u64::MAX, |chunk| chunk.least..=chunk.most)
    }

    fn chunk(&self, block: u32, column: u32) -> Option<&Chunk> {
        // A column number past the last one would give a chunk of the next block.
        let columns = self.stamp.columns;
        self.chunks.get(block as usize * columns as usize + column as usize).filter(|_| column < columns)
    }

    /// Applies a function to the values of a column in a block.
    pub(super) fn map<T: Clone>(
        &self,
        block: u32,
        column: u32,
        of: impl Fn(u64) -> T,
    ) -> Result<Vec<T>, PreparedError> {
        self.read(block, column, of).map_err(failed(&self.path))
    }

    /// Reads all columns of all rows.
    pub(super) fn all_rows<const COLUMNS: usize>(&self) -> Result<Vec<[u64; COLUMNS]>, PreparedError> {
        let mut all = Vec::new();
        for block in 0..self.blocks() {
            let mut rows = vec![[0; COLUMNS]; self.rows(block).len()];
            for column in 0..COLUMNS {
                let values = self.map(block, column as u32, |value| value)?;
                rows.iter_mut().zip(values).for_each(|(row, value)| row[column] = value);
            }
            all.append(&mut rows);
        }
        Ok(all)
    }

    /// Returns the values of a column in some rows of a block.
    pub(super) fn pick(&self, block: u32, column: u32, rows: &[u32]) -> Result<Vec<u64>, PreparedError> {
        let picked = self.with_plain(block, column, |Chunk { least, most, .. }, plain| {
            let width = width(least, most);
            let mask = u64::MAX.checked_shr(64 - 8 * width as u32).unwrap_or_default();
            let value = |row: &u32| {
                let at = *row as usize * width;
                let value = match plain.get(at..).and_then(<[u8]>::first_chunk::<8>) {
                    Some(bytes) => u64::from_le_bytes(*bytes) & mask,
                    None => {
                        let mut value = [0; 8];
                        let bytes = plain.get(at..at + width).ok_or_else(damaged)?;
                        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                        u64::from_le_bytes(value)
                    }
                };
                Ok(least.wrapping_add(value))
            };
            rows.iter().map(value).collect::<io::Result<Vec<_>>>()
        });
        picked.and_then(|picked| picked).map_err(failed(&self.path))
    }

    fn read<T: Clone>(&self, block: u32, column: u32, of: impl Fn(u64) -> T) -> io::Result<Vec<T>> {
        let rows = self.rows(block).len();
        self.with_plain(block, column, |Chunk { least, most, .. }, plain| {
            widen(plain, width(least, most), rows, |value| of(least.wrapping_add(value)))
        })
    }

    /// Reads the stored bytes of a chunk.
    fn stored<'a>(&self, chunk: &Chunk, buffer: &'a mut Vec<u8>) -> io::Result<&'a mut [u8]> {
        // A chunk is never longer than its uncompressed values.
        if chunk.bytes > BLOCK_ROWS * 8 {
            return Err(damaged());
        }
        let stored = first_of(buffer, chunk.bytes as usize);
        self.file.read_exact_at(stored, chunk.offset)?;
        if xxh3_64(stored) == chunk.sum { Ok(stored) } else { Err(damaged()) }
    }

    /// Calls `work` with a chunk and its uncompressed values, which are relative to the least one.
    fn with_plain<T>(&self, block: u32, column: u32, work: impl FnOnce(Chunk, &[u8]) -> T) -> io::Result<T> {
        let chunk = *self.chunk(block, column).ok_or_else(damaged)?;
        let plain_bytes = self.rows(block).len() * width(chunk.least, chunk.most);
        if chunk.bytes as usize > plain_bytes {
            return Err(damaged());
        }
        let mut buffers = BUFFERS.take();
        let stored = self.stored(&chunk, &mut buffers.stored)?;
        let done = if stored.len() == plain_bytes {
            work(chunk, stored)
        } else {
            let plain = first_of(&mut buffers.plain, plain_bytes);
            let decompressor = match &mut buffers.decompressor {
                Some(decompressor) => decompressor,
                slot => slot.insert(Decompressor::new()?),
            };
            if decompressor.decompress_to_buffer(stored, plain)? != plain_bytes {
                return Err(damaged());
            }
            work(chunk, plain)
        };
        BUFFERS.set(buffers);
        Ok(done)
    }
}

/// Buffers reused from chunk to chunk.
#[derive(Default)]
struct Buffers {
    stored: Vec<u8>,
    plain: Vec<u8>,
    decompressor: Option<Decompressor<'static>>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Returns the first bytes of a buffer, growing it as needed; their contents are arbitrary.
fn first_of(buffer: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    buffer.resize(buffer.len().max(bytes), 0);
    &mut buffer[..bytes]
}

/// Decodes a header into the stamp and the number of rows in a block.
fn stamp(header: &[u8; HEADER_BYTES]) -> Option<(Stamp, u32)> {
    let (numbers_of_64, rest) = header.strip_prefix(&MAGIC)?.split_first_chunk::<16>()?;
    let [state, checkpoint] = numbers(numbers_of_64);
    let [rows, columns, block_rows] = rest.as_chunks::<4>().0 else { return None };
    let [rows, columns, block_rows] = [rows, columns, block_rows].map(|bytes| u32::from_le_bytes(*bytes));
    (1..=BLOCK_ROWS).contains(&block_rows).then_some((Stamp { state, checkpoint, rows, columns }, block_rows))
}

/// Decodes two 64-bit numbers.
fn numbers(bytes: &[u8; 16]) -> [u64; 2] {
    let mut numbers = [0; 2];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    numbers
}

fn chunk(bytes: &[u8; CHUNK_BYTES]) -> Chunk {
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    Chunk { offset: number(0), bytes: number(8) as u32, least: number(12), most: number(20), sum: number(28) }
}

/// Bytes per value, relative to the least one.
fn width(least: u64, most: u64) -> usize {
    match most.saturating_sub(least) {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        0x100_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn narrow(values: &[u64], least: u64, width: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * width);
    for value in values {
        bytes.extend((value - least).to_le_bytes().iter().take(width));
    }
    bytes
}

fn widen<T: Clone>(bytes: &[u8], width: usize, rows: usize, of: impl Fn(u64) -> T) -> Vec<T> {
    match width {
        0 => vec![of(0); rows],
        1 => bytes.iter().map(|byte| of(u64::from(*byte))).collect(),
        2 => bytes.as_chunks().0.iter().map(|bytes| of(u64::from(u16::from_le_bytes(*bytes)))).collect(),
        3 => {
            let value = |[low, middle, high]: &[u8; 3]| u32::from_le_bytes([*low, *middle, *high, 0]);
            bytes.as_chunks().0.iter().map(|bytes| of(u64::from(value(bytes)))).collect()
        }
        4 => bytes.as_chunks().0.iter().map(|bytes| of(u64::from(u32::from_le_bytes(*bytes)))).collect(),
        _ => bytes.as_chunks().0.iter().map(|bytes| of(u64::from_le_bytes(*bytes))).collect(),
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or of another version")
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PreparedError + '_ {
    move |source| PreparedError { path: path.into(), source }
}

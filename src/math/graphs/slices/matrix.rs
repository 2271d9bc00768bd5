//! The sliced matrix on disk.
//!
//! A slice file is a sequence of 16-bit little-endian words. For each source with links into the slice it has: the
//! distance from the previous source (minus one; the first is the source itself), the number of links, the first
//! target's distance from the source (zigzag), and the distances between targets (minus one). A number below 0xffff is
//! one word; a larger one is 0xffff and two words. Crawled graphs are local, so most numbers are one word. The same
//! folder has `out.degrees` and, for each slice, `NNNN.degrees` with the number of links into its pages, as 32-bit
//! little-endian numbers.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{BUFFER_BYTES, SliceError};

/// Precedes a number of two words.
const LONG: u16 = u16::MAX;

/// Maximum number of slices; each is an open file while building.
pub(super) const SLICES_MAX: usize = 512;

/// Memory of a thread besides its vectors: the words, a block of the sources' values with its bytes, and the degrees of
/// a block.
const OVERHEAD_BYTES: usize = 4 * BUFFER_BYTES;

/// A finished matrix.
#[derive(Debug)]
pub struct SlicedMatrix {
    pub(super) folder: PathBuf,
    pub(super) pages: usize,
    pub(super) slice_pages: usize,
    links: u64,
    bytes: u64,
    build_bytes: usize,
}

impl SlicedMatrix {
    /// Number of pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Number of links.
    #[must_use]
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Bytes of all slices: what a scan reads besides vectors.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of slices.
    #[must_use]
    pub fn slices(&self) -> usize {
        self.pages.div_ceil(self.slice_pages)
    }

    pub(super) fn range(&self, slice: usize) -> std::ops::Range<usize> {
        slice * self.slice_pages..self.pages.min((slice + 1) * self.slice_pages)
    }

    /// Returns the number of links of each page in `pages`.
    pub(super) fn out_degrees(&self, pages: std::ops::Range<usize>) -> Result<Vec<u32>, SliceError> {
        read_numbers(&self.folder.join("out.degrees"), pages)
    }

    /// Returns the number of links into some pages of a slice, whose pages are counted from 0.
    pub(super) fn in_degrees(
        &self,
        slice: usize,
        pages: std::ops::Range<usize>,
    ) -> Result<Vec<u32>, SliceError> {
        read_numbers(&degrees_path(&self.folder, slice), pages)
    }

    /// Calls `row` with each source and its targets in the slice, counted from the slice's first page.
    pub(super) fn scan(
        &self,
        slice: usize,
        mut row: impl FnMut(usize, &[u32]) -> Result<(), SliceError>,
    ) -> Result<(), SliceError> {
        let range = self.range(slice);
        let mut words = SliceWords::open(&slice_path(&self.folder, slice))?;
        let mut source = None::<u32>;
        let mut targets = Vec::new();
        while let Some(gap) = words.next()? {
            let page = source.map_or(Some(gap), |source| source.checked_add(gap)?.checked_add(1));
            let page = page.filter(|&page| (page as usize) < self.pages).ok_or_else(|| words.damaged())?;
            source = Some(page);
            targets.clear();
            let count = words.some()?;
            if count == 0 || count as usize > range.len() {
                return Err(words.damaged());
            }
            let mut target = i64::from(page) + unzigzag(words.some()?) - range.start as i64;
            for place in 0..count {
                if place > 0 {
                    target += i64::from(words.some()?) + 1;
                }
                targets.push(
                    u32::try_from(target)
                        .ok()
                        .filter(|&t| (t as usize) < range.len())
                        .ok_or_else(|| words.damaged())?,
                );
            }
            row(page as usize, &targets)?;
        }
        Ok(())
    }
}

/// Minimum memory in bytes to cut `pages` pages for `threads` threads.
fn least_memory(pages: usize, vectors: usize, threads: usize) -> usize {
    let threads = threads.max(1);
    // The greatest number of slices that is a multiple of the threads.
    let slices = (SLICES_MAX / threads * threads).max(1);
    let slice_bytes = 8 * vectors.max(1) * pages.div_ceil(slices).max(1);
    (slice_bytes + OVERHEAD_BYTES).saturating_mul(threads)
}

/// Writes a matrix page by page.
#[derive(Debug)]
pub struct SliceBuilder {
    matrix: SlicedMatrix,
    slices: Vec<(BufWriter<File>, Option<u32>)>,
    out_degrees: BufWriter<File>,
    next: u32,
}

impl SliceBuilder {
    /// Starts a matrix of `pages` pages in `folder`, cut so that each of `threads` threads can hold `vectors` vectors
    /// of a slice within `memory` bytes in total.
    ///
    /// # Errors
    /// When the memory is too small, or files cannot be created.
    pub fn new(
        folder: &Path,
        pages: usize,
        memory: usize,
        vectors: usize,
        threads: usize,
    ) -> Result<Self, SliceError> {
        let least = least_memory(pages, vectors, threads);
        if memory < least {
            return Err(SliceError::Memory { given: memory, pages, least });
        }
        let free = memory / threads.max(1) - OVERHEAD_BYTES;
        let slice_pages = (free / (8 * vectors.max(1))).clamp(1, pages.max(1));
        // Each thread gets the same number of slices of equal size, so that threads finish together.
        let count = pages.div_ceil(slice_pages).next_multiple_of(threads.max(1));
        let slice_pages = pages.div_ceil(count.max(1)).max(1);
        std::fs::create_dir_all(folder).map_err(SliceError::io(folder))?;
        let slices: Result<Vec<_>, SliceError> = (0..count)
            .map(|slice| {
                let path = slice_path(folder, slice);
                let file = File::create(&path).map_err(SliceError::io(&path))?;
                Ok((BufWriter::with_capacity(BUFFER_BYTES / 4, file), None))
            })
            .collect();
        let path = folder.join("out.degrees");
        let out_degrees = BufWriter::new(File::create(&path).map_err(SliceError::io(&path))?);
        let build_bytes = free;
        let matrix =
            SlicedMatrix { folder: folder.into(), pages, slice_pages, links: 0, bytes: 0, build_bytes };
        Ok(Self { matrix, slices: slices?, out_degrees, next: 0 })
    }

    /// Adds the links of the next page, ascending.
    ///
    /// # Errors
    /// When there are no more pages, a target is unknown, or the disk is full.
    pub fn push(&mut self, targets: &[u32]) -> Result<(), SliceError> {
        let page = self.next;
        if page as usize >= self.matrix.pages {
            return Err(SliceError::Page(page));
        }
        self.next += 1;
        let write = |error| SliceError::Io { path: self.matrix.folder.clone(), source: error };
        self.out_degrees.write_all(&(targets.len() as u32).to_le_bytes()).map_err(write)?;
        self.matrix.links += targets.len() as u64;
        let mut rest = targets;
        while let Some(&first) = rest.first() {
            let slice = first as usize / self.matrix.slice_pages;
            let end = ((slice + 1) * self.matrix.slice_pages) as u64;
            let count = rest.iter().position(|&target| u64::from(target) >= end).unwrap_or(rest.len());
            let (inside, after) = rest.split_at(count);
            rest = after;
            let (out, before) = self.slices.get_mut(slice).ok_or(SliceError::Page(first))?;
            write_row(out, before, page, inside, self.matrix.pages)
                .map_err(|source| SliceError::Io { path: slice_path(&self.matrix.folder, slice), source })?
                .ok_or(SliceError::Page(first))?;
        }
        Ok(())
    }

    /// Finishes the slices and counts the links into their pages.
    ///
    /// # Errors
    /// When pages are missing or the disk is full.
    pub fn finish(mut self) -> Result<SlicedMatrix, SliceError> {
        if self.next as usize != self.matrix.pages {
            return Err(SliceError::Page(self.next));
        }
        let folder = self.matrix.folder.clone();
        self.out_degrees.flush().map_err(SliceError::io(&folder))?;
        for (slice, (out, _)) in self.slices.iter_mut().enumerate() {
            let path = slice_path(&folder, slice);
            out.flush().map_err(SliceError::io(&path))?;
            self.matrix.bytes += out.get_ref().metadata().map_err(SliceError::io(&path))?.len();
        }
        self.slices.clear();
        for slice in 0..self.matrix.slices() {
            let mut degrees = vec![0u32; self.matrix.range(slice).len()];
            debug_assert!(degrees.len() * 4 <= self.matrix.build_bytes);
            self.matrix.scan(slice, |_, targets| {
                targets.iter().for_each(|&target| degrees[target as usize] += 1);
                Ok(())
            })?;
            let path = degrees_path(&folder, slice);
            let mut out = BufWriter::new(File::create(&path).map_err(SliceError::io(&path))?);
            for degree in degrees {
                out.write_all(&degree.to_le_bytes()).map_err(SliceError::io(&path))?;
            }
            out.flush().map_err(SliceError::io(&path))?;
        }
        Ok(self.matrix)
    }
}

/// Writes a source's links into a slice; `None` if they do not ascend or exceed the pages.
fn write_row(
    out: &mut impl Write,
    before: &mut Option<u32>,
    page: u32,
    targets: &[u32],
    pages: usize,
) -> io::Result<Option<()>> {
    write_number(out, before.map_or(page, |before| page - before - 1))?;
    *before = Some(page);
    write_number(out, targets.len() as u32)?;
    let mut last = None::<u32>;
    for &target in targets {
        if target as usize >= pages || last.is_some_and(|last| last >= target) {
            return Ok(None);
        }
        match last {
            None => write_number(out, zigzag(i64::from(target) - i64::from(page)))?,
            Some(last) => write_number(out, target - last - 1)?,
        }
        last = Some(target);
    }
    Ok(Some(()))
}

fn write_number(out: &mut impl Write, number: u32) -> io::Result<()> {
    match u16::try_from(number) {
        Ok(word) if word != LONG => out.write_all(&word.to_le_bytes()),
        _ => {
            out.write_all(&LONG.to_le_bytes())?;
            out.write_all(&number.to_le_bytes())
        }
    }
}

/// Encodes a signed difference. Page numbers are below 2^31, so it fits.
fn zigzag(difference: i64) -> u32 {
    ((difference << 1) ^ (difference >> 63)) as u32
}

fn unzigzag(number: u32) -> i64 {
    i64::from(number >> 1) ^ -i64::from(number & 1)
}

/// Reads numbers from a slice, a buffer at a time.
struct SliceWords {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    length: usize,
    place: usize,
    offset: u64,
}

impl SliceWords {
    fn open(path: &Path) -> Result<Self, SliceError> {
        let file = File::open(path).map_err(SliceError::io(path))?;
        Ok(Self { path: path.into(), file, buffer: vec![0; BUFFER_BYTES], length: 0, place: 0, offset: 0 })
    }

    /// Returns the next number; `None` at the end.
    #[inline]
    fn next(&mut self) -> Result<Option<u32>, SliceError> {
        // The longest number has six bytes.
        if self.place + 6 > self.length {
            self.refill()?;
            if self.place == self.length {
                return Ok(None);
            }
        }
        let rest = &self.buffer[self.place..self.length];
        let Some((&word, rest)) = rest.split_first_chunk::<2>() else { return Err(self.damaged()) };
        let word = u16::from_le_bytes(word);
        if word != LONG {
            self.place += 2;
            return Ok(Some(u32::from(word)));
        }
        let Some((&long, _)) = rest.split_first_chunk::<4>() else { return Err(self.damaged()) };
        self.place += 6;
        Ok(Some(u32::from_le_bytes(long)))
    }

    #[inline]
    fn some(&mut self) -> Result<u32, SliceError> {
        match self.next()? {
            Some(number) => Ok(number),
            None => Err(self.damaged()),
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<(), SliceError> {
        self.buffer.copy_within(self.place..self.length, 0);
        self.length -= self.place;
        self.offset += self.place as u64;
        self.place = 0;
        while self.length < self.buffer.len() {
            let read = self.file.read(&mut self.buffer[self.length..]).map_err(SliceError::io(&self.path))?;
            if read == 0 {
                return Ok(());
            }
            self.length += read;
        }
        Ok(())
    }

    #[cold]
    fn damaged(&self) -> SliceError {
        SliceError::Damaged { path: self.path.clone(), offset: self.offset + self.place as u64 }
    }
}

fn slice_path(folder: &Path, slice: usize) -> PathBuf {
    folder.join(format!("{slice:04}.slice"))
}

fn degrees_path(folder: &Path, slice: usize) -> PathBuf {
    folder.join(format!("{slice:04}.degrees"))
}

fn read_numbers(path: &Path, range: std::ops::Range<usize>) -> Result<Vec<u32>, SliceError> {
    use std::io::Seek;

    let mut file = File::open(path).map_err(SliceError::io(path))?;
    file.seek(io::SeekFrom::Start(range.start as u64 * 4)).map_err(SliceError::io(path))?;
    let mut bytes = vec![0; range.len() * 4];
    file.read_exact(&mut bytes).map_err(SliceError::io(path))?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

//! Lookup of captures in the indexes beside their segments: a few reads of some kilobytes, without decompressing a
//! record. The part of each index read last is kept, because captures are mostly looked up in the order of their lines.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use serde::Deserialize;

use super::error::{IoContext, SegmentError};
use super::read::{IndexFile, SegmentReader};
use crate::backend::{DiskFile, FileReader};
use crate::ids::{Location, SegmentId};

/// Bytes of one read from an index, at first and after repeated lookups.
const READ_BYTES: usize = 4096;
const WINDOW_BYTES_MAX: usize = 64 << 10;

/// Number of indexes whose last window is kept.
const WINDOWS_MAX: usize = 128;

/// Length limit of a line: a URL twice, escaped.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Facts about a capture that its index line has and the state does not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct IndexedFacts {
    /// The URL as it is in the record.
    pub url: String,
    /// The digest of the payload.
    pub digest: Option<String>,
    /// The HTTP status.
    pub status: Option<String>,
    offset: String,
}

/// Looks up captures one by one; cheap in the order of their SURTs and times.
#[derive(Debug)]
pub struct LookUp {
    reader: SegmentReader,
    windows: HashMap<SegmentId, IndexWindow>,
}

/// The part of an index that was read last.
#[derive(Debug)]
struct IndexWindow {
    index: IndexFile,
    /// Whole lines.
    lines: Vec<u8>,
    /// Offset of the line that is likely to be looked up next.
    place: usize,
    /// Start of the line that was looked up last.
    last: Vec<u8>,
    /// Bytes of the next read.
    bytes: usize,
}

impl SegmentReader {
    /// Returns a lookup of captures in the indexes beside segments.
    #[must_use]
    pub fn look_up(&self) -> LookUp {
        LookUp { reader: self.clone(), windows: HashMap::new() }
    }
}

impl LookUp {
    /// Finds the index line of the capture whose main record is at `location`, by its SURT and its time in the form of
    /// the index (`20260131100000`). Returns `None` if there is no index, as for an open segment, or no such line.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn find(
        &mut self,
        location: Location,
        surt: &str,
        time: &str,
    ) -> Result<Option<IndexedFacts>, SegmentError> {
        if !self.windows.contains_key(&location.segment) {
            let Some(index) = self.reader.index(location.segment)? else { return Ok(None) };
            if self.windows.len() >= WINDOWS_MAX {
                self.windows.clear();
            }
            self.windows.insert(location.segment, IndexWindow::new(index));
        }
        let Some(window) = self.windows.get_mut(&location.segment) else { return Ok(None) };
        let start = format!("{surt} {time} ");
        window.find(start.as_bytes(), location.offset).context("read", &window.index.path)
    }
}

impl IndexWindow {
    fn new(index: IndexFile) -> Self {
        Self { index, lines: Vec::new(), place: 0, last: Vec::new(), bytes: READ_BYTES }
    }

    /// Finds the line with this start, of the capture at this offset.
    fn find(&mut self, start: &[u8], offset: u64) -> io::Result<Option<IndexedFacts>> {
        if start < self.last.as_slice() {
            self.place = 0;
        }
        self.last.clear();
        self.last.extend_from_slice(start);
        if let Some(found) = self.among_read(start, offset) {
            return Ok(Some(found));
        }
        let before = before(&self.index.file, start)?;
        self.read(before)?;
        match self.among_read(start, offset) {
            Some(found) => Ok(Some(found)),
            None => from(&self.index.file, before, start, offset),
        }
    }

    /// Like `find`, but only searches the lines in memory.
    fn among_read(&mut self, start: &[u8], offset: u64) -> Option<IndexedFacts> {
        let rest = self.lines.get(self.place..)?;
        let mut at = self.place;
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_prefix(start) {
                Some(fields) => {
                    if let Some(found) = indexed(fields, offset) {
                        return Some(found);
                    }
                }
                None if line < start => self.place = at + line.len(),
                None => return None,
            }
            at += line.len();
        }
        None
    }

    /// Reads the lines from this offset on.
    fn read(&mut self, at: u64) -> io::Result<()> {
        (self.place, self.lines) = (0, Vec::with_capacity(self.bytes));
        let file = FileReader::new(Arc::clone(&self.index.file), at);
        file.take(self.bytes as u64).read_to_end(&mut self.lines)?;
        self.lines.truncate(memchr::memrchr(b'\n', &self.lines).map_or(0, |end| end + 1));
        self.bytes = (4 * self.bytes).min(WINDOW_BYTES_MAX);
        Ok(())
    }
}

/// Returns the offset of a line before those with this start, or 0.
fn before(file: &Arc<dyn DiskFile>, start: &[u8]) -> io::Result<u64> {
    let (mut low, mut high, mut line) = (0, file.len()?, Vec::new());
    while high - low > READ_BYTES as u64 {
        let middle = low + (high - low) / 2;
        let mut lines = lines(file, middle);
        let skipped = next(&mut lines, &mut line)?;
        let found = next(&mut lines, &mut line)?;
        if found > 0 && middle + skipped < high && line.as_slice() < start {
            low = middle + skipped;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Finds the line with this start, of the capture at `offset`, scanning from the line at `at`.
fn from(file: &Arc<dyn DiskFile>, at: u64, start: &[u8], offset: u64) -> io::Result<Option<IndexedFacts>> {
    let (mut lines, mut line) = (lines(file, at), Vec::new());
    while next(&mut lines, &mut line)? > 0 && (line.as_slice() < start || line.starts_with(start)) {
        if let Some(found) = line.strip_prefix(start).and_then(|fields| indexed(fields, offset)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Parses a line's fields, if they belong to the capture at this offset.
fn indexed(fields: &[u8], offset: u64) -> Option<IndexedFacts> {
    serde_json::from_slice::<IndexedFacts>(fields).ok().filter(|found| found.offset.parse() == Ok(offset))
}

fn lines(file: &Arc<dyn DiskFile>, at: u64) -> BufReader<FileReader> {
    BufReader::with_capacity(READ_BYTES, FileReader::new(Arc::clone(file), at))
}

/// Reads the next line and returns its length.
fn next(lines: &mut BufReader<FileReader>, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    Ok(lines.take(LINE_BYTES_MAX).read_until(b'\n', line)? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Disk, OpenMode, SimulatedDisk};

    #[test]
    fn every_line_is_found_and_no_other() {
        let line = |number: u32, offset: u32| {
            let (padding, name) = ("x".repeat(number as usize * 37 % 3000), number / 2);
            format!(
                "org,a)/{name:05} 20200101000000 {{\"url\":\"http://a.org/{name:05}#{padding}\",\"offset\":\"{offset}\"}}\n"
            )
        };
        for count in [0, 1, 2, 3, 40, 500] {
            let disk = SimulatedDisk::new(1);
            let file = disk.open(std::path::Path::new("/index"), OpenMode::Create).expect("open");
            let text: String = (0..count).map(|number| line(number, number)).collect();
            file.write_at(text.as_bytes(), 0).expect("write");
            let window = || IndexWindow::new(IndexFile { file: Arc::clone(&file), path: "/index".into() });
            let find = |window: &mut IndexWindow, name: u32, offset| {
                let start = format!("org,a)/{name:05} 20200101000000 ");
                window.find(start.as_bytes(), offset).expect("read")
            };
            // In ascending order, backwards, at random, and each with a fresh window.
            let (forth, mixed) =
                ((0..count).collect::<Vec<_>>(), (0..count).map(|number| number * 211 % count));
            let mut orders = [forth.clone(), forth.iter().rev().copied().collect(), mixed.collect(), forth];
            for (order, numbers) in orders.iter_mut().enumerate() {
                let mut kept = window();
                for number in numbers {
                    let mut alone = window();
                    let window = if order == 3 { &mut alone } else { &mut kept };
                    let url = format!("http://a.org/{:05}", *number / 2);
                    let found = find(window, *number / 2, u64::from(*number));
                    assert!(found.is_some_and(|found| found.url.starts_with(&url)), "{number} of {count}");
                    assert!(window.lines.capacity() <= WINDOW_BYTES_MAX);
                }
            }
            assert_eq!(find(&mut window(), 0, 7), None);
            assert_eq!(find(&mut window(), count, u64::from(count)), None);
        }
    }
}

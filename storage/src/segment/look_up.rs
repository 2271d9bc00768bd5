//! Looking captures up in the indexes beside their segments: some reads of a few kilobytes, and no record is unpacked. What was read
//! last of each index is kept, because captures are mostly looked up in the order of their lines.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use serde::Deserialize;

use super::error::{Context, SegmentError};
use super::read::{IndexFile, SegmentReader};
use crate::backend::{DiskFile, FileReader};
use crate::ids::{Location, SegmentId};

/// Bytes that are read at once, of an index that is looked into for the first time, and of one that is looked into again and again.
const READ_BYTES: usize = 4096;
const WINDOW_BYTES_MAX: usize = 64 << 10;

/// Indexes of which what was read last is kept.
const WINDOWS_MAX: usize = 128;

/// Longest line: a URL twice, escaped.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What an index says of a capture and the state does not know.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Indexed {
    /// The URL as the record has it.
    pub url: String,
    /// The digest of the payload.
    pub digest: Option<String>,
    /// The HTTP status.
    pub status: Option<String>,
    offset: String,
}

/// Looks captures up one after the other: cheap in the order of their SURTs and times.
#[derive(Debug)]
pub struct LookUp {
    reader: SegmentReader,
    windows: HashMap<SegmentId, Window>,
}

/// What was read last of an index.
#[derive(Debug)]
struct Window {
    index: IndexFile,
    /// Whole lines.
    lines: Vec<u8>,
    /// Where the line is that may come next.
    place: usize,
    /// How the line begins that was looked for last.
    last: Vec<u8>,
    /// Bytes to read next time.
    bytes: usize,
}

impl SegmentReader {
    /// What looks captures up in the indexes beside segments.
    #[must_use]
    pub fn look_up(&self) -> LookUp {
        LookUp { reader: self.clone(), windows: HashMap::new() }
    }
}

impl LookUp {
    /// What the index says of the capture whose main record lies at `location`, by its SURT and its time as an index has it
    /// (`20260131100000`). Nothing when there is no index, as beside a segment that is still written to, or no such line in it.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn find(
        &mut self,
        location: Location,
        surt: &str,
        time: &str,
    ) -> Result<Option<Indexed>, SegmentError> {
        if !self.windows.contains_key(&location.segment) {
            let Some(index) = self.reader.index(location.segment)? else { return Ok(None) };
            if self.windows.len() >= WINDOWS_MAX {
                self.windows.clear();
            }
            self.windows.insert(location.segment, Window::new(index));
        }
        let Some(window) = self.windows.get_mut(&location.segment) else { return Ok(None) };
        let start = format!("{surt} {time} ");
        window.find(start.as_bytes(), location.offset).context("read", &window.index.path)
    }
}

impl Window {
    fn new(index: IndexFile) -> Self {
        Self { index, lines: Vec::new(), place: 0, last: Vec::new(), bytes: READ_BYTES }
    }

    /// The line that begins so, of the capture at an offset.
    fn find(&mut self, start: &[u8], offset: u64) -> io::Result<Option<Indexed>> {
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

    /// The same among the lines that were read.
    fn among_read(&mut self, start: &[u8], offset: u64) -> Option<Indexed> {
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

    /// Reads the lines from a place on.
    fn read(&mut self, at: u64) -> io::Result<()> {
        (self.place, self.lines) = (0, Vec::with_capacity(self.bytes));
        let file = FileReader::new(Arc::clone(&self.index.file), at);
        file.take(self.bytes as u64).read_to_end(&mut self.lines)?;
        self.lines.truncate(memchr::memrchr(b'\n', &self.lines).map_or(0, |end| end + 1));
        self.bytes = (4 * self.bytes).min(WINDOW_BYTES_MAX);
        Ok(())
    }
}

/// Where a line is that comes before those that begin so, or the first line.
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

/// The line that begins so, of the capture at an offset, from a line on that comes before.
fn from(file: &Arc<dyn DiskFile>, at: u64, start: &[u8], offset: u64) -> io::Result<Option<Indexed>> {
    let (mut lines, mut line) = (lines(file, at), Vec::new());
    while next(&mut lines, &mut line)? > 0 && (line.as_slice() < start || line.starts_with(start)) {
        if let Some(found) = line.strip_prefix(start).and_then(|fields| indexed(fields, offset)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What a line says, if it is of the capture at an offset.
fn indexed(fields: &[u8], offset: u64) -> Option<Indexed> {
    serde_json::from_slice::<Indexed>(fields).ok().filter(|found| found.offset.parse() == Ok(offset))
}

fn lines(file: &Arc<dyn DiskFile>, at: u64) -> BufReader<FileReader> {
    BufReader::with_capacity(READ_BYTES, FileReader::new(Arc::clone(file), at))
}

/// Reads the next line, and gives its bytes.
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
            let window = || Window::new(IndexFile { file: Arc::clone(&file), path: "/index".into() });
            let find = |window: &mut Window, name: u32, offset| {
                let start = format!("org,a)/{name:05} 20200101000000 ");
                window.find(start.as_bytes(), offset).expect("read")
            };
            // One after the other, backwards, at random, and each for itself.
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

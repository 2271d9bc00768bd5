//! Looking a capture up in the index beside its segment: some reads of a few kilobytes, and no record is unpacked.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::error::{Context, SegmentError};
use super::read::SegmentReader;
use crate::backend::{DiskFile, FileReader};
use crate::ids::Location;

/// Bytes that are read at once.
const READ_BYTES: usize = 4096;

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

impl SegmentReader {
    /// What the index says of the capture whose main record lies at `location`. Nothing when there is no index, as beside a
    /// segment that is still written to, or no such line in it.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn indexed(
        &self,
        location: Location,
        surt: &str,
        time: DateTime<Utc>,
    ) -> Result<Option<Indexed>, SegmentError> {
        let Some(index) = self.index(location.segment)? else { return Ok(None) };
        let start = format!("{surt} {} ", time.format("%Y%m%d%H%M%S"));
        find(&index.file, start.as_bytes(), location.offset).context("read", &index.path)
    }
}

/// The line that begins so, of the capture at an offset.
fn find(file: &Arc<dyn DiskFile>, start: &[u8], offset: u64) -> io::Result<Option<Indexed>> {
    let from = |at| BufReader::with_capacity(READ_BYTES, FileReader::new(Arc::clone(file), at));
    // The line at `low` comes before those that are looked for, unless it is the first.
    let (mut low, mut high, mut line) = (0, file.len()?, Vec::new());
    while high - low > READ_BYTES as u64 {
        let middle = low + (high - low) / 2;
        let mut lines = from(middle);
        let skipped = next(&mut lines, &mut line)?;
        let found = next(&mut lines, &mut line)?;
        if found > 0 && middle + skipped < high && line.as_slice() < start {
            low = middle + skipped;
        } else {
            high = middle;
        }
    }
    let mut lines = from(low);
    while next(&mut lines, &mut line)? > 0 && (line.as_slice() < start || line.starts_with(start)) {
        let fields = line.get(start.len()..).filter(|_| line.starts_with(start));
        let found = fields.and_then(|fields| serde_json::from_slice::<Indexed>(fields).ok());
        if let Some(found) = found.filter(|found| found.offset.parse() == Ok(offset)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
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
            let found = |name: u32, offset| {
                find(&file, format!("org,a)/{name:05} 20200101000000 ").as_bytes(), offset).expect("read")
            };
            for number in 0..count {
                let url = format!("http://a.org/{:05}", number / 2);
                let found = found(number / 2, u64::from(number));
                assert!(found.is_some_and(|found| found.url.starts_with(&url)), "{number} of {count}");
            }
            assert_eq!(found(0, 7), None);
            assert_eq!(found(count, u64::from(count)), None);
        }
    }
}

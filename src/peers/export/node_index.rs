//! Index lines received from a node, kept in an unnamed file until they are merged.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::cdxj::IndexLines;
use super::rows::{ExportRows, RowSender};
use super::{ExportError, lost};

/// First byte of the line with a segment's name, which precedes the lines of the segment. No URL contains this byte.
pub(super) const NAME: u8 = 0;

/// Maximum number of segments of a node; each needs a buffer.
const SEGMENTS_MAX: usize = 1 << 16;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// Lines of a segment in the file.
struct SegmentLines {
    name: String,
    at: u64,
    end: u64,
}

/// Receives the lines of each segment of a node; calls `is_new` with the names of the segments.
pub(super) fn of_node(
    sender: &dyn RowSender,
    is_new: &mut dyn FnMut(&str) -> Result<(), ExportError>,
) -> Result<Vec<IndexLines<'static>>, ExportError> {
    let wrong = |what: &str| sender.senseless(what);
    let mut out = BufWriter::new(tempfile::tempfile().map_err(lost)?);
    let (mut segments, mut line, mut before): (Vec<SegmentLines>, _, _) =
        (Vec::new(), Vec::new(), Vec::new());
    sender.send(ExportRows::Index, &mut |piece| {
        let mut lines = BufReader::new(piece);
        while lines.read_until(b'\n', &mut line).map_err(lost)? > 0 {
            if let Some(name) = line.strip_prefix(&[NAME]) {
                let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
                // An answer that continues a segment repeats its name.
                if segments.last().is_none_or(|last| last.name != name) {
                    is_new(&name)?;
                    let at = segments.last().map_or(0, |last| last.end);
                    segments.push(SegmentLines { name, at, end: at });
                    before.clear();
                }
                if segments.len() > SEGMENTS_MAX {
                    return Err(wrong("it has too many segments"));
                }
            } else {
                let last = segments.last_mut().ok_or_else(|| wrong("its index names no segment"))?;
                if line.last() != Some(&b'\n') || line < before {
                    return Err(wrong("its index is not in order"));
                }
                out.write_all(&line).map_err(lost)?;
                last.end += line.len() as u64;
                std::mem::swap(&mut line, &mut before);
            }
            line.clear();
        }
        Ok(())
    })?;
    let file = Arc::new(out.into_inner().map_err(|error| lost(error.into_error()))?);
    let lines = segments.into_iter().map(|SegmentLines { at, end, .. }| {
        let window = FileWindow { file: Arc::clone(&file), at, end };
        let mut lines = BufReader::with_capacity(READ_BYTES, window);
        Box::new(move |line: &mut Vec<u8>| lines.read_until(b'\n', line).map(drop)) as IndexLines<'static>
    });
    Ok(lines.collect())
}

/// A range of a file that is shared with other readers.
struct FileWindow {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for FileWindow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

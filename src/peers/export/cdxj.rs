//! CDXJ index of the archive's own segments: one file, sorted by bytes and hence by SURT and time.
//!
//! Every closed segment has a sorted index file; these are merged. Segments that are still open, or whose index is
//! missing, are read.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, BufRead, BufReader, Write};

use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{Location, SegmentEntry, SegmentId, SegmentState, Store, segment};
use serde::Deserialize;

use super::node_index;
use super::rows::{RowPieces, RowStop};
use super::walk::{LongContents, START, are_description, walk};
use super::{ExportError, ExportPart, Exported, Selection, lost};

/// Number of lines between two progress reports.
const REPORT_EVERY: u64 = 10_000;

/// Bytes of an index that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Appends the next line of a segment to a buffer; appends nothing after the last.
pub(super) type IndexLines<'a> = Box<dyn FnMut(&mut Vec<u8>) -> io::Result<()> + 'a>;

/// Writes one index of all selections.
pub(super) fn write(
    parts: &[ExportPart<'_>],
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let (mut sources, mut names) = (Vec::new(), HashSet::new());
    let mut is_new = |file: &str| match names.insert(file.to_owned()) {
        true => Ok(()),
        false => Err(ExportError::SameSegment(file.to_owned())),
    };
    for part in parts {
        match part {
            ExportPart::Folder(store, selection) => {
                store.state().segments().try_for_each(|(_, entry)| is_new(&entry.file))?;
                sources.extend(of_part(store, selection)?);
            }
            ExportPart::Node(sender) => sources.extend(node_index::of_node(&**sender, &mut is_new)?),
        }
    }
    merge(sources, out, progress)
}

/// Sends the lines of each segment, in order, preceded by a line with its name.
pub(super) fn send(
    (store, selection): (&Store, &Selection),
    (first, sent): (SegmentId, u64),
    out: &mut RowPieces<'_>,
) -> Result<(), RowStop> {
    for (id, entry) in store.state().segments().filter(|(id, _)| *id >= first) {
        let skipped = if id == first { sent } else { 0 };
        let head = || [&[node_index::NAME], entry.file.as_bytes(), b"\n"].concat();
        out.begin((id, skipped))?;
        out.add(&head())?;
        let Some(mut lines) = stored(store, selection, id, entry) else {
            // The order of the lines of an open segment may have changed since the previous answer.
            for line in of_records(store, selection, &[id])?.iter().skip(index(skipped)) {
                out.add(line.trim_end().as_bytes())?;
                out.add(b"\n")?;
            }
            continue;
        };
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            lines(&mut line).map_err(lost)?;
            if line.is_empty() {
                break;
            }
            if number > skipped {
                out.begin((id, number))?;
            }
            if number >= skipped {
                out.add(line.trim_ascii_end())?;
                out.add(b"\n")?;
            }
            number += 1;
        }
    }
    Ok(())
}

/// Converts a number of lines to an index; memory cannot hold more than the maximum anyway.
fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the lines of each segment of one archive.
fn of_part<'a>(store: &'a Store, selection: &'a Selection) -> Result<Vec<IndexLines<'a>>, ExportError> {
    let mut sources: Vec<IndexLines<'_>> = Vec::new();
    let mut read: Vec<SegmentId> = Vec::new();
    for (id, entry) in store.state().segments() {
        match stored(store, selection, id, entry) {
            Some(lines) => sources.push(lines),
            None => read.push(id),
        }
    }
    if !read.is_empty() {
        let mut lines = of_records(store, selection, &read)?.into_iter();
        sources.push(Box::new(move |line| {
            line.extend(lines.next().into_iter().flat_map(String::into_bytes));
            Ok(())
        }));
    }
    Ok(sources)
}

/// Returns the selected lines of the index file of a closed segment.
fn stored<'a>(
    store: &Store,
    selection: &'a Selection,
    id: SegmentId,
    entry: &SegmentEntry,
) -> Option<IndexLines<'a>> {
    if entry.state != SegmentState::Closed {
        return None;
    }
    let path = store.path().join(segment::FOLDER).join(format!("{}.cdxj", entry.file));
    let mut lines = BufReader::with_capacity(READ_BYTES, open_regular(&path, OpenMode::Read).ok()?);
    let is_meant = move |line: &[u8]| {
        let has = |offset| selection.has(&Location { segment: id, offset, length: 0 });
        selection.offsets(id).is_none() || offset(line).is_some_and(has)
    };
    Some(Box::new(move |line| {
        while lines.read_until(b'\n', line)? > 0 && !is_meant(line) {
            line.clear();
        }
        Ok(())
    }))
}

/// Returns the offset of a line's record.
fn offset(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct LinePlace {
        offset: String,
    }
    let place: LinePlace =
        serde_json::from_slice(line.get(line.iter().position(|byte| *byte == b'{')?..)?).ok()?;
    place.offset.parse().ok()
}

fn of_records(
    store: &Store,
    selection: &Selection,
    segments: &[SegmentId],
) -> Result<Vec<String>, ExportError> {
    let mut lines = Vec::new();
    walk::<ExportError>(store, selection, START, LongContents::Kept, &mut |id, file, records| {
        if segments.contains(&id)
            && !are_description(&records)
            && let Some(main) = records.first()
        {
            lines.extend(segment::index_line(&records, main.offset, main.length, file));
        }
        Ok(())
    })?;
    lines.sort_unstable();
    Ok(lines)
}

/// Merges sorted lines.
fn merge(
    mut sources: Vec<IndexLines<'_>>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    // The next line of each source, and the number of the source.
    let mut heap = BinaryHeap::new();
    for (number, lines) in sources.iter_mut().enumerate() {
        let mut line = Vec::new();
        if advance(lines, &mut line).map_err(lost)? {
            heap.push(Reverse((line, number)));
        }
    }
    let mut exported = Exported::default();
    while let Some(mut first) = heap.peek_mut() {
        let Reverse((line, number)) = &mut *first;
        out.write_all(line).map_err(lost)?;
        exported.rows += 1;
        if exported.rows.is_multiple_of(REPORT_EVERY) {
            progress(exported.rows);
        }
        if !advance(&mut sources[*number], line).map_err(lost)? {
            PeekMut::pop(first);
        }
    }
    Ok(exported)
}

/// Replaces a line by the next one, with its line feed. Returns whether there is one.
fn advance(lines: &mut IndexLines<'_>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    lines(line)?;
    let is_line = !line.is_empty();
    if is_line && line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    Ok(is_line)
}

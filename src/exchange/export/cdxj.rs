//! CDXJ of the archive's own segments: one file, sorted by bytes and so by SURT and time.
//!
//! Every closed segment has its index beside it, sorted; these are merged. A segment that is still written to, or whose
//! index is missing, is read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, Write};

use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{Location, SegmentEntry, SegmentId, SegmentState, Store, segment};
use serde::Deserialize;

use super::walk::{Unit, walk};
use super::{ExportError, Exported, Selection, lost};

/// Lines between two reports of progress.
const REPORT_EVERY: u64 = 10_000;

/// The lines of one segment, in order.
type Lines<'a> = Box<dyn Iterator<Item = io::Result<String>> + 'a>;

/// Writes the index of a selection.
pub(super) fn write(
    store: &Store,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut sources: Vec<Lines<'_>> = Vec::new();
    let mut read: Vec<SegmentId> = Vec::new();
    for (id, entry) in store.state().segments() {
        match stored(store, selection, id, entry) {
            Some(lines) => sources.push(lines),
            None => read.push(id),
        }
    }
    if !read.is_empty() {
        sources.push(Box::new(of_records(store, selection, &read)?.into_iter().map(Ok)));
    }
    merge(sources, out, progress)
}

/// The index beside a closed segment, as far as it is asked for.
fn stored<'a>(
    store: &Store,
    selection: &'a Selection,
    id: SegmentId,
    entry: &SegmentEntry,
) -> Option<Lines<'a>> {
    if entry.state != SegmentState::Closed {
        return None;
    }
    let path = store.path().join(segment::FOLDER).join(format!("{}.cdxj", entry.file));
    let lines = BufReader::new(open_regular(&path, OpenMode::Read).ok()?).lines();
    Some(Box::new(lines.filter(move |line| match (line, selection.offsets(id)) {
        (Ok(line), Some(_)) => {
            offset(line).is_some_and(|offset| selection.has(&Location { segment: id, offset, length: 0 }))
        }
        _ => true,
    })))
}

/// Where a line's record lies.
fn offset(line: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Place {
        offset: String,
    }
    let place: Place = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
    place.offset.parse().ok()
}

fn of_records(
    store: &Store,
    selection: &Selection,
    segments: &[SegmentId],
) -> Result<Vec<String>, ExportError> {
    let mut lines = Vec::new();
    walk(store, selection, &mut |id, file, unit| {
        if let (true, Unit::Capture(records)) = (segments.contains(&id), unit)
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
    mut sources: Vec<Lines<'_>>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut heap = BinaryHeap::new();
    for (number, source) in sources.iter_mut().enumerate() {
        if let Some(line) = source.next() {
            heap.push(Reverse((line.map_err(lost)?, number)));
        }
    }
    let mut exported = Exported::default();
    while let Some(Reverse((line, number))) = heap.pop() {
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(lost)?;
        exported.rows += 1;
        if exported.rows.is_multiple_of(REPORT_EVERY) {
            progress(exported.rows);
        }
        if let Some(next) = sources.get_mut(number).and_then(Iterator::next) {
            heap.push(Reverse((next.map_err(lost)?, number)));
        }
    }
    Ok(exported)
}

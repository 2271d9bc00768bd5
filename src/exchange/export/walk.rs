//! The records of selected captures, in the order in which they are stored.

use archive_storage::warc::{Record, RecordType};
use archive_storage::{Location, SegmentId, Store, segment};

use super::{ExportError, Selection};

/// Bytes of a segment that are read through rather than skipped: finding another place costs about as much.
const READ_THROUGH_BYTES: u64 = 1 << 20;

/// What a segment gives.
pub(super) enum Unit {
    /// The record that describes the segment of the captures that follow.
    Description(Record),
    /// The records of a capture, the main one first.
    Capture(Vec<Record>),
}

/// Hands over every selected capture, with its segment and the segment's file name, and before the first of a segment the
/// record that describes it.
pub(super) fn walk(
    store: &Store,
    selection: &Selection,
    take: &mut dyn FnMut(SegmentId, &str, Unit) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let on_disk = segment::files(store.path())?;
    for (id, entry) in store.state().segments() {
        let is_named = |(other, name): &&(SegmentId, String)| {
            *other == id && name.trim_end_matches(".open") == entry.file
        };
        let Some((_, file)) = on_disk.iter().find(is_named) else {
            return Err(segment::SegmentError::Missing(id).into());
        };
        walk_segment(store, selection, id, file, &mut |unit| take(id, &entry.file, unit))?;
    }
    Ok(())
}

fn walk_segment(
    store: &Store,
    selection: &Selection,
    id: SegmentId,
    file: &str,
    take: &mut dyn FnMut(Unit) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let offsets = selection.offsets(id);
    if offsets.is_some_and(<[u64]>::is_empty) {
        return Ok(());
    }
    let last = offsets.and_then(|offsets| offsets.last().copied()).unwrap_or(u64::MAX);
    // What was stored after the checkpoint is not known yet.
    let end = store.state().watermarks().of(id).unwrap_or(u64::MAX);
    let mut group = Vec::new();
    let mut start = 0;
    'open: loop {
        for record in segment::records(store.path(), id, file, start)? {
            let record = record.map_err(|source| ExportError::Record { segment: id, source })?;
            if record.offset >= end || group.is_empty() && record.offset > last {
                return Ok(());
            }
            let record_type = record.header.record_type();
            if record_type == RecordType::Warcinfo {
                take(Unit::Description(record))?;
            } else {
                let ends = record_type == RecordType::Metadata;
                let end = record.offset + record.length;
                let is_wanted = !group.is_empty()
                    || selection.has(&Location { segment: id, offset: record.offset, length: 0 });
                if is_wanted {
                    group.push(record);
                }
                if ends && !group.is_empty() {
                    take(Unit::Capture(std::mem::take(&mut group)))?;
                }
                if group.is_empty()
                    && let Some(next) = next_after(offsets, end)
                    && next > end + READ_THROUGH_BYTES
                {
                    start = next;
                    continue 'open;
                }
            }
        }
        return Ok(());
    }
}

fn next_after(offsets: Option<&[u64]>, position: u64) -> Option<u64> {
    let offsets = offsets?;
    offsets.get(offsets.partition_point(|offset| *offset < position)).copied()
}

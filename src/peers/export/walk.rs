//! The records of selected captures, in the order in which they are stored.

use archive_base::files::FileError;
use archive_base::remote::is_full;
use archive_storage::warc::{Record, RecordError, RecordType};
use archive_storage::{Location, SegmentId, Store, StoreError, segment};

use super::{ExportError, Selection};

/// Gaps of at most this many bytes are read through rather than skipped, since seeking costs about as much.
const READ_THROUGH_BYTES: u64 = 1 << 20;

/// The position before all segments.
pub(super) const START: (SegmentId, u64) = (SegmentId(0), 0);

/// Whether records are the one that describes a segment, and not a capture.
pub(super) fn are_description(records: &[Record]) -> bool {
    records.first().is_some_and(|first| first.header.record_type() == RecordType::Warcinfo)
}

/// Receives the segment of records, the name of its file, and the records.
type TakeRecords<'a, E> = dyn FnMut(SegmentId, &str, Vec<Record>) -> Result<(), E> + 'a;

/// Whether a walk keeps long contents in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum LongContents {
    /// They are whole, in memory.
    Kept,
    /// Most of each is in an unnamed file ([`Record::rest`]).
    Spooled,
}

/// Calls `take` for every selected capture from a position on, which is that of a capture or [`START`], with its
/// segment, the name of the segment's file, and its records, the main one first. The record that describes a segment
/// precedes its captures.
pub(super) fn walk<E: From<ExportError>>(
    store: &Store,
    selection: &Selection,
    (first, offset): (SegmentId, u64),
    long: LongContents,
    take: &mut TakeRecords<'_, E>,
) -> Result<(), E> {
    let on_disk = segment::files(store.path()).map_err(ExportError::from)?;
    for (id, entry) in store.state().segments().filter(|(id, _)| *id >= first) {
        let is_named = |(other, name): &&(SegmentId, String)| {
            *other == id && name.trim_end_matches(".open") == entry.file
        };
        let Some((_, file)) = on_disk.iter().find(is_named) else {
            selection.leave_out(&ExportError::from(segment::SegmentError::Missing(id)));
            continue;
        };
        let start = if id == first { offset } else { 0 };
        walk_segment(store, selection, (id, start), (file, long), &mut |records| {
            take(id, &entry.file, records)
        })?;
    }
    Ok(())
}

fn walk_segment<E: From<ExportError>>(
    store: &Store,
    selection: &Selection,
    (id, mut start): (SegmentId, u64),
    (file, long): (&str, LongContents),
    take: &mut dyn FnMut(Vec<Record>) -> Result<(), E>,
) -> Result<(), E> {
    let offsets = selection.offsets(id);
    if offsets.is_some_and(<[u64]>::is_empty) {
        return Ok(());
    }
    let last = offsets.and_then(|offsets| offsets.last().copied()).unwrap_or(u64::MAX);
    // Captures stored after the checkpoint are not known yet.
    let end = store.state().watermarks().of(id).unwrap_or(u64::MAX);
    let folder = std::env::temp_dir();
    let spools = matches!(long, LongContents::Spooled).then_some(&*folder);
    // The place up to which records were read.
    let (mut group, mut read) = (Vec::new(), start);
    'open: loop {
        let mut is_first = true;
        let max = selection.content_bytes_max();
        let records = segment::records_within(max, spools, store.path(), (id, start), file);
        for record in records.map_err(ExportError::from)? {
            let record = match record {
                Ok(record) => record,
                // What is full is where long contents pass through, not the archive.
                Err(RecordError::Io(source)) if is_full(&source) => {
                    return Err(ExportError::Write(FileError::at(&folder)(source)).into());
                }
                Err(source) => {
                    // The captures after what cannot be read are exported nevertheless. Where it is the next capture
                    // that cannot be read, this is found out at its place.
                    let place = Location { segment: id, offset: read, length: 0 };
                    if !group.is_empty() || is_first && selection.has(&place) {
                        if is_longer(&source, max) {
                            return Err(ExportError::TooLong(max).into());
                        }
                        selection.leave_out(&ExportError::Record { segment: id, source });
                    }
                    group.clear();
                    let Some(next) = place_after(store, id, read).map_err(ExportError::from)? else {
                        return Ok(());
                    };
                    (start, read) = (next, next);
                    continue 'open;
                }
            };
            (read, is_first) = (record.offset, false);
            if record.offset >= end || group.is_empty() && record.offset > last {
                return Ok(());
            }
            let record_type = record.header.record_type();
            if record_type == RecordType::Warcinfo {
                take(vec![record])?;
            } else {
                let ends = record_type == RecordType::Metadata;
                let end = record.offset + record.length;
                let is_wanted = !group.is_empty()
                    || selection.has(&Location { segment: id, offset: record.offset, length: 0 });
                if is_wanted {
                    group.push(record);
                }
                if ends && !group.is_empty() {
                    take(std::mem::take(&mut group))?;
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

/// Whether a record was not read because its content is too long for this export, and not for any other.
fn is_longer(source: &RecordError, max: u64) -> bool {
    let RecordError::Broken(broken) = source else { return false };
    let length = broken.header.as_ref().and_then(|header| header.content_length());
    max < segment::CONTENT_BYTES_MAX && length.is_some_and(|length| length > max)
}

/// The place of the first capture in a segment after a position.
fn place_after(store: &Store, id: SegmentId, position: u64) -> Result<Option<u64>, StoreError> {
    let mut next: Option<u64> = None;
    for capture in store.state().captures() {
        let place = capture?.1.location;
        if place.segment == id && place.offset > position {
            next = Some(next.map_or(place.offset, |next| next.min(place.offset)));
        }
    }
    Ok(next)
}

fn next_after(offsets: Option<&[u64]>, position: u64) -> Option<u64> {
    let offsets = offsets?;
    offsets.get(offsets.partition_point(|offset| *offset < position)).copied()
}

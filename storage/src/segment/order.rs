//! The order of captures across segments, several of which are written at once.
//!
//! Captures are numbered in append order, without gaps, over the whole archive. A segment's `warcinfo` record states
//! how many captures were appended before it ([`FIELD_CAPTURES_BEFORE`]). Within the segment, numbers increase by one.
//! Where other segments took captures in between, a skippable frame states the next number ([`SKIPPABLE_NUMBER`]). So
//! the WARC files alone determine the order: a replay merges segments by number, and recovery after a crash knows which
//! captures follow the first one that was lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::dictionary;
use super::error::{IoContext, SegmentError};
use super::replay::{Assembler, RecordRole, ReplayedCapture};
use crate::backend::{Disk, DiskFile, FileReader, RealDisk, read_exact_at};
use crate::ids::{SegmentId, Watermark};
use crate::warc::{
    Broken, ReadLimits, Record, RecordError, RecordReader, RecordType, SKIPPABLE_MAGIC, parse_fields,
    skippable_frame,
};

/// The skippable frame that holds the number of the following capture.
pub const SKIPPABLE_NUMBER: u32 = SKIPPABLE_MAGIC + 3;
/// The `warcinfo` field for the number of captures appended to the archive before the segment was created.
pub(super) const FIELD_CAPTURES_BEFORE: &str = "capturesBefore";
/// Bytes of a number frame.
const NUMBER_FRAME_BYTES: u64 = 16;

/// Returns the frame before a capture whose number does not continue that of the previous one.
pub(super) fn number_frame(number: u64) -> Vec<u8> {
    skippable_frame(SKIPPABLE_NUMBER, &number.to_le_bytes())
}

/// Returns the number in the frame that ends at this offset, if there is one.
fn number_before(file: &dyn DiskFile, end: u64, path: &Path) -> Result<Option<u64>, SegmentError> {
    let Some(start) = end.checked_sub(NUMBER_FRAME_BYTES) else { return Ok(None) };
    let mut frame = [0; NUMBER_FRAME_BYTES as usize];
    read_exact_at(file, &mut frame, start).context("read", path)?;
    let number = frame.last_chunk().map(|number| u64::from_le_bytes(*number));
    Ok(number.filter(|number| number_frame(*number) == frame))
}

/// The records of a segment, each of which must have its own frame or member, as all records that we write do.
struct SegmentRecords(RecordReader<FileReader>);

impl Iterator for SegmentRecords {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.0.next()? {
            Ok(record) if record.length == 0 => record,
            other => return Some(other),
        };
        let what = "the bytes after the record are not line ends".into();
        Some(Err(Box::new(Broken { offset: record.offset, what, header: None, cut: None }).into()))
    }
}

/// Reads a segment from a position. A damaged dictionary is repaired from its guard.
fn reader(
    file: Arc<dyn DiskFile>,
    from: Watermark,
    path: &Path,
) -> Result<RecordReader<FileReader>, SegmentError> {
    Ok(match dictionary::load_if_whole(file.as_ref(), from.segment, path)? {
        None if from.offset == 0 => RecordReader::new(FileReader::new(file, 0)),
        loaded => {
            let (dictionary, first_frame) = loaded.unzip();
            let offset = from.offset.max(first_frame.unwrap_or_default());
            let dictionary = dictionary.map(|dictionary| dictionary.as_bytes().to_vec());
            RecordReader::resumed(FileReader::new(file, offset), offset, dictionary)
        }
    })
}

/// Returns the records of a segment from a position.
pub(super) fn records(
    file: Arc<dyn DiskFile>,
    from: Watermark,
    path: &Path,
) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<>, SegmentError> {
    Ok(SegmentRecords(reader(file, from, path)?))
}

/// Like [`records`], with a limit of a record's content and a folder for long ones.
pub(super) fn records_within(
    content_bytes_max: u64,
    spools: Option<&Path>,
    file: Arc<dyn DiskFile>,
    from: Watermark,
    path: &Path,
) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<>, SegmentError> {
    let limits = ReadLimits { content_bytes_max, ..ReadLimits::default() };
    let records = reader(file, from, path)?.with_limits(limits);
    Ok(SegmentRecords(match spools {
        Some(folder) => records.with_spools(Arc::new(RealDisk), folder.to_owned()),
        None => records,
    }))
}

/// A source of the captures of one segment.
pub(super) trait Captures {
    /// Returns the segment.
    fn segment(&self) -> SegmentId;
    /// Returns the next item; `None` at the segment's end.
    fn next(&mut self) -> Result<Option<StreamItem>, SegmentError>;
}

impl Captures for CaptureStream {
    fn segment(&self) -> SegmentId {
        self.segment
    }

    fn next(&mut self) -> Result<Option<StreamItem>, SegmentError> {
        Self::next(self)
    }
}

/// A stream that another thread decodes ahead.
pub(super) struct StreamAhead {
    segment: SegmentId,
    receiver: Receiver<Result<StreamItem, SegmentError>>,
}

impl Captures for StreamAhead {
    fn segment(&self) -> SegmentId {
        self.segment
    }

    fn next(&mut self) -> Result<Option<StreamItem>, SegmentError> {
        self.receiver.recv().ok().transpose()
    }
}

/// An item of a stream of captures.
#[derive(Debug)]
pub(super) enum StreamItem {
    /// The record that describes the segment.
    Warcinfo {
        /// Offset of its end.
        end: u64,
        /// The file name it states.
        name: Option<String>,
        /// Its fields.
        fields: Vec<(String, String)>,
    },
    /// A complete capture.
    Capture {
        /// Number of captures in the archive before it.
        number: u64,
        /// Number of its records, including stray ones before it.
        records: u64,
        /// Offset of the first of them.
        start: u64,
        /// Bytes of content of its last record.
        plain_bytes: u64,
        /// The capture.
        capture: Box<ReplayedCapture>,
    },
    /// Unreadable bytes.
    Broken(Box<Broken>),
}

/// The captures of one segment, in order.
pub(super) struct CaptureStream {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    segment: SegmentId,
    records: SegmentRecords,
    assembler: Assembler,
    /// Offset after the last record; unknown after unreadable bytes.
    end: Option<u64>,
    /// Number of the next capture, unless a frame states another.
    number: u64,
    pending: u64,
    /// Offset of the first pending record.
    start: u64,
}

impl CaptureStream {
    /// Reads a segment from its start, with its dictionary unrepaired. `number` applies if `warcinfo` states none.
    pub(super) fn whole(file: Arc<dyn DiskFile>, segment: SegmentId, path: &Path, number: u64) -> Self {
        let records = RecordReader::new(FileReader::new(file.clone(), 0));
        Self::over(records, file, Watermark { segment, offset: 0 }, path, number)
    }

    /// Reads a segment from a position between two captures; `number` is that of the next capture unless the segment
    /// states another. A damaged dictionary is repaired from its guard.
    pub(super) fn resumed(
        file: Arc<dyn DiskFile>,
        from: Watermark,
        path: &Path,
        number: u64,
    ) -> Result<Self, SegmentError> {
        let records = reader(file.clone(), from, path)?;
        Ok(Self::over(records, file, from, path, number))
    }

    /// Writes contents that are too long for memory to unnamed files in a folder; their captures have only the
    /// beginning of the content.
    pub(super) fn with_spools(mut self, disk: Arc<dyn Disk>, folder: &Path) -> Self {
        let SegmentRecords(reader) = self.records;
        self.records = SegmentRecords(reader.with_spools(disk, folder.to_owned()));
        self
    }

    /// Continues decoding on its own thread, at most `captures` ahead of the reader. The thread ends when the reader is
    /// dropped.
    pub(super) fn ahead(mut self, captures: usize) -> StreamAhead {
        let (sender, receiver) = sync_channel(captures);
        let segment = self.segment;
        let work = move || {
            while let Some(found) = self.next().transpose() {
                let is_last = found.is_err();
                if sender.send(found).is_err() || is_last {
                    return;
                }
            }
        };
        thread::spawn(work);
        StreamAhead { segment, receiver }
    }

    fn over(
        records: RecordReader<FileReader>,
        file: Arc<dyn DiskFile>,
        from: Watermark,
        path: &Path,
        number: u64,
    ) -> Self {
        Self {
            file,
            path: path.to_owned(),
            segment: from.segment,
            records: SegmentRecords(records),
            assembler: Assembler::default(),
            end: Some(from.offset),
            number,
            pending: 0,
            start: from.offset,
        }
    }

    /// Returns the next item; `None` at the segment's end.
    pub(super) fn next(&mut self) -> Result<Option<StreamItem>, SegmentError> {
        for record in self.records.by_ref() {
            let record = match record {
                Ok(record) => record,
                Err(RecordError::Io(error)) => return Err(error).context("read", &self.path),
                Err(RecordError::Broken(place)) => {
                    self.assembler.interrupt();
                    self.end = None;
                    return Ok(Some(StreamItem::Broken(place)));
                }
            };
            // A gap of exactly this length after the previous record can only be a number frame.
            if self.end.is_none_or(|end| end + NUMBER_FRAME_BYTES == record.offset)
                && let Some(number) = number_before(self.file.as_ref(), record.offset, &self.path)?
            {
                self.number = number;
            }
            let end = record.offset + record.length;
            self.end = Some(end);
            if self.pending == 0 {
                self.start = record.offset;
            }
            self.pending += 1;
            let plain_bytes = record.content.len() as u64;
            let mut fields = Vec::new();
            if record.header.record_type() == RecordType::Warcinfo {
                fields = parse_fields(&record.content);
                self.number = captures_before(&fields).unwrap_or(self.number);
            }
            let name = record.header.get("WARC-Filename").map(str::to_owned);
            match self.assembler.take(self.segment, record) {
                RecordRole::Capture(capture) => {
                    let (number, records) = (self.number, std::mem::take(&mut self.pending));
                    self.number += 1;
                    let start = self.start;
                    return Ok(Some(StreamItem::Capture { number, records, start, plain_bytes, capture }));
                }
                RecordRole::Warcinfo => {
                    self.pending = 0;
                    return Ok(Some(StreamItem::Warcinfo { end, name, fields }));
                }
                RecordRole::Part | RecordRole::Stray => {}
            }
        }
        Ok(None)
    }

    /// Returns the number of the next capture, as far as it is known before reading it.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

fn captures_before(fields: &[(String, String)]) -> Option<u64> {
    let field = fields.iter().find(|(name, _)| name == FIELD_CAPTURES_BEFORE);
    field.and_then(|(_, value)| value.trim().parse().ok())
}

/// A segment that takes part in a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaySegment {
    /// Where to start reading.
    pub from: Watermark,
    /// Lower bound of the numbers of all captures from there on.
    pub number: u64,
}

/// Merges the captures of many segments in append order, and returns the places that had to be skipped. A segment is
/// opened when the merge reaches it.
pub(super) fn merge<S: Captures>(
    mut sources: Vec<ReplaySegment>,
    open: impl Fn(&ReplaySegment) -> Result<S, SegmentError>,
    found: &mut dyn FnMut(ReplayedCapture),
) -> Result<Vec<(SegmentId, Broken)>, SegmentError> {
    sources.sort_by_key(|source| (source.number, source.from));
    let mut sources = sources.into_iter().peekable();
    let mut broken = Vec::new();
    // The next capture of every segment being read.
    let mut heads: BTreeMap<(u64, SegmentId), (Box<ReplayedCapture>, S)> = BTreeMap::new();
    loop {
        let lowest = heads.keys().next().map(|(number, _)| *number);
        if let Some(source) = sources.next_if(|source| lowest.is_none_or(|lowest| source.number <= lowest)) {
            advance(open(&source)?, &mut heads, &mut broken)?;
            continue;
        }
        let Some((_, (capture, stream))) = heads.pop_first() else { return Ok(broken) };
        found(*capture);
        advance(stream, &mut heads, &mut broken)?;
    }
}

/// Advances a stream to its next capture.
fn advance<S: Captures>(
    mut stream: S,
    heads: &mut BTreeMap<(u64, SegmentId), (Box<ReplayedCapture>, S)>,
    broken: &mut Vec<(SegmentId, Broken)>,
) -> Result<(), SegmentError> {
    while let Some(next) = stream.next()? {
        match next {
            StreamItem::Capture { number, capture, .. } => {
                heads.insert((number, stream.segment()), (capture, stream));
                return Ok(());
            }
            StreamItem::Broken(place) => broken.push((stream.segment(), *place)),
            StreamItem::Warcinfo { .. } => {}
        }
    }
    Ok(())
}

//! Reads records as they were before compression, byte for byte, in bounded memory.

use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe;

use super::super::codec::{Codec, FRAME_BYTES_MAX};
use super::super::error::{IoContext, SegmentError};
use super::super::read::SegmentReader;
use crate::backend::{DiskFile, read_exact_at};
use crate::ids::SegmentId;
use crate::warc::{HEAD_BYTES_MAX, RecordHeader};

/// Bytes of a segment that are read at once: more than a frame takes.
const WINDOW_BYTES: usize = 2 * FRAME_BYTES_MAX;
/// Maximum bytes of a record that is processed in one piece.
const SHORT_BYTES_MAX: u64 = FRAME_BYTES_MAX as u64;
/// Bytes of a long gzip member that are passed on at once.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes of the line ends after a record's content.
const END_BYTES: u64 = 4;

/// A range of bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteStretch {
    pub segment: SegmentId,
    pub offset: u64,
    pub length: u64,
}

/// A record before compression, including its head and line ends.
#[derive(Debug)]
pub(super) enum Raw {
    /// The record's bytes.
    Short(Vec<u8>),
    /// Location of a record that is too long for memory, and its bytes before compression.
    Long(ByteStretch, u64),
}

impl Raw {
    /// Returns the bytes before compression.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Short(bytes) => bytes.len() as u64,
            Self::Long(_, length) => *length,
        }
    }
}

/// Reads a range of a file through a window.
struct RawWindow {
    file: Arc<dyn DiskFile>,
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl RawWindow {
    /// Returns the bytes from a position on, as many as the window has of them; `refill` loads as many as it can hold.
    fn at(&mut self, position: u64, refill: bool) -> std::io::Result<&[u8]> {
        let held = self.start + self.bytes.len() as u64;
        if refill || position < self.start || position >= held {
            let count = usize::try_from(self.end - position).unwrap_or(usize::MAX).min(WINDOW_BYTES);
            self.bytes.resize(count, 0);
            self.start = position;
            read_exact_at(self.file.as_ref(), &mut self.bytes, position)?;
        }
        let skip = usize::try_from(position - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.get(skip..).unwrap_or_default())
    }
}

/// Reads records of a segment.
pub(super) struct RawReader<'a> {
    reader: &'a SegmentReader,
    segment: SegmentId,
    codec: Codec,
    path: std::path::PathBuf,
    window: RawWindow,
}

impl<'a> RawReader<'a> {
    /// Creates a reader of a stretch of complete records.
    pub(super) fn new(reader: &'a SegmentReader, stretch: ByteStretch) -> Result<Self, SegmentError> {
        let (file, path) = reader.file(stretch.segment)?;
        let codec = reader.codec(stretch.segment)?;
        let end = stretch.offset + stretch.length;
        let window = RawWindow { file, end, start: stretch.offset, bytes: Vec::new() };
        Ok(Self { reader, segment: stretch.segment, codec, path, window })
    }

    fn corrupted(&self, offset: u64, what: impl Into<String>) -> SegmentError {
        SegmentError::Corrupted { segment: self.segment, offset, what: what.into() }
    }

    /// Returns a stretch of the segment as stored.
    pub(super) fn bytes(&self, stretch: ByteStretch) -> Result<Vec<u8>, SegmentError> {
        let mut bytes = vec![0; usize::try_from(stretch.length).unwrap_or(usize::MAX)];
        read_exact_at(self.window.file.as_ref(), &mut bytes, stretch.offset).context("read", &self.path)?;
        Ok(bytes)
    }

    /// Returns all records of the stretch, with their compressed lengths.
    pub(super) fn records(&mut self) -> Result<Vec<(Raw, u64)>, SegmentError> {
        let (mut records, mut position) = (Vec::with_capacity(3), self.window.start);
        while position < self.window.end {
            let (raw, length) = match self.codec {
                Codec::Zstd => self.frames(position)?,
                Codec::Gzip => self.member(position)?,
            };
            records.push((raw, length));
            position += length;
        }
        Ok(records)
    }

    /// Returns the zstd frame at a position.
    fn frame(&mut self, position: u64) -> Result<&[u8], SegmentError> {
        let segment = self.segment;
        let length = |bytes: &[u8]| zstd_safe::find_frame_compressed_size(bytes);
        if length(self.window.at(position, false).context("read", &self.path)?).is_err() {
            self.window.at(position, true).context("read", &self.path)?;
        }
        let bytes = self.window.at(position, false).context("read", &self.path)?;
        length(bytes).ok().and_then(|length| bytes.get(..length)).ok_or_else(|| SegmentError::Corrupted {
            segment,
            offset: position,
            what: "a frame has no end".into(),
        })
    }

    /// Reads the record that starts at a position, from its zstd frames.
    fn frames(&mut self, start: u64) -> Result<(Raw, u64), SegmentError> {
        let (reader, segment) = (self.reader, self.segment);
        let frame = self.frame(start)?;
        let length = frame.len() as u64;
        let raw = reader.unpack(segment, frame)?.map_err(|what| self.corrupted(start, what))?;
        let whole = whole_length(&raw).ok_or_else(|| self.corrupted(start, "no record starts here"))?;
        let mut unpacked = raw.len() as u64;
        if unpacked == whole {
            return Ok((Raw::Short(raw), length));
        }
        let mut position = start + length;
        while unpacked < whole && position < self.window.end {
            let frame = self.frame(position)?;
            let length = frame.len() as u64;
            unpacked += zstd_safe::get_frame_content_size(frame).ok().flatten().unwrap_or_default();
            position += length;
        }
        if unpacked != whole {
            return Err(self.corrupted(start, "the record's length differs from its Content-Length"));
        }
        let stretch = ByteStretch { segment, offset: start, length: position - start };
        if whole > SHORT_BYTES_MAX {
            return Ok((Raw::Long(stretch, whole), stretch.length));
        }
        let mut record = Vec::with_capacity(whole as usize);
        self.frames_of(stretch, &mut |piece| {
            record.extend_from_slice(piece);
            Ok(())
        })?;
        Ok((Raw::Short(record), stretch.length))
    }

    /// Passes the contents of the zstd frames of a stretch to `take`.
    fn frames_of(&mut self, stretch: ByteStretch, take: &mut TakeBytes<'_>) -> Result<(), SegmentError> {
        let (reader, segment) = (self.reader, self.segment);
        let mut position = stretch.offset;
        while position < stretch.offset + stretch.length {
            let frame = self.frame(position)?;
            let length = frame.len() as u64;
            let piece = reader.unpack(segment, frame)?;
            take(&piece.map_err(|what| self.corrupted(position, what))?)?;
            position += length;
        }
        Ok(())
    }

    /// Reads the record in the gzip member at a position.
    fn member(&mut self, start: u64) -> Result<(Raw, u64), SegmentError> {
        let (mut record, mut whole) = (Vec::new(), 0_u64);
        let length = self.inflate(start, &mut |piece| {
            whole += piece.len() as u64;
            if whole <= SHORT_BYTES_MAX {
                record.extend_from_slice(piece);
            }
            Ok(())
        })?;
        if whole > SHORT_BYTES_MAX {
            let stretch = ByteStretch { segment: self.segment, offset: start, length };
            return Ok((Raw::Long(stretch, whole), length));
        }
        match whole_length(&record) {
            Some(stated) if stated == whole => Ok((Raw::Short(record), length)),
            _ => Err(self.corrupted(start, "the record's length differs from its Content-Length")),
        }
    }

    /// Passes the content of the member at a position to `take`, and returns the member's length.
    fn inflate(&mut self, start: u64, take: &mut TakeBytes<'_>) -> Result<u64, SegmentError> {
        let mut inflater = Decompress::new_gzip(15);
        let mut piece = Vec::with_capacity(PIECE_BYTES.min(256 << 10));
        loop {
            let position = start + inflater.total_in();
            let at_end = position >= self.window.end;
            let input =
                if at_end { &[] } else { self.window.at(position, false).context("read", &self.path)? };
            piece.clear();
            let status = inflater.decompress_vec(input, &mut piece, FlushDecompress::None);
            let status = status.map_err(|error| self.corrupted(start, error.to_string()))?;
            if !piece.is_empty() {
                take(&piece)?;
            }
            match status {
                Status::StreamEnd => return Ok(inflater.total_in()),
                _ if at_end && piece.is_empty() => return Err(self.corrupted(start, "the member has no end")),
                _ => {}
            }
        }
    }

    /// Passes a long record to `take`, piece by piece; the first piece contains the head.
    pub(super) fn pieces(
        &mut self,
        record: ByteStretch,
        take: &mut TakeBytes<'_>,
    ) -> Result<(), SegmentError> {
        match self.codec {
            Codec::Zstd => self.frames_of(record, take),
            Codec::Gzip => {
                let mut gathered = Vec::with_capacity(PIECE_BYTES);
                self.inflate(record.offset, &mut |piece| {
                    gathered.extend_from_slice(piece);
                    if gathered.len() >= PIECE_BYTES {
                        take(&gathered)?;
                        gathered.clear();
                    }
                    Ok(())
                })?;
                if gathered.is_empty() { Ok(()) } else { take(&gathered) }
            }
        }
    }
}

/// Callback that receives pieces.
pub(super) type TakeBytes<'a> = dyn FnMut(&[u8]) -> Result<(), SegmentError> + 'a;

/// Returns the length of a record according to its head; `beginning` must contain the head.
fn whole_length(beginning: &[u8]) -> Option<u64> {
    let head = beginning.get(..beginning.len().min(HEAD_BYTES_MAX))?;
    let (header, length) = RecordHeader::parse(head).ok()?;
    Some(length as u64 + header.content_length()? + END_BYTES)
}

//! Bodies that are too long for memory. They are read from their segments while they are sent, without the archive being
//! open: what a segment has at a place never changes.

use std::collections::VecDeque;
use std::io::Write as _;

use archive_storage::segment::{PayloadPieces, RecordPieces, SegmentError, SegmentReader};
use archive_storage::warc::RecordType;
use archive_storage::{Location, SegmentId};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::joined::JoinedPieces;

/// Maximum number of records read per capture.
const RECORDS_MAX: usize = 16;

/// Gzip compression level.
const LEVEL: u32 = 6;

/// Line ends after a record.
const RECORD_END: &[u8] = b"\r\n\r\n";

/// A body that is read piece by piece; each piece has some megabytes at most.
#[derive(Debug)]
pub struct Long {
    what: LongContent,
    /// Bytes that are still to be read, if that is known.
    left: Option<u64>,
}

#[derive(Debug)]
enum LongContent {
    Payload(Box<PayloadPieces>),
    Records(Box<MemberRecords>),
    Joined(Box<JoinedPieces>),
}

impl Long {
    pub(super) fn of_payload(payload: PayloadPieces) -> Self {
        let left = payload.length();
        Self { what: LongContent::Payload(Box::new(payload)), left }
    }

    pub(super) fn of_joined(pieces: JoinedPieces, bytes: u64) -> Self {
        Self { what: LongContent::Joined(Box::new(pieces)), left: Some(bytes) }
    }

    pub(super) fn of_records(records: MemberRecords) -> Self {
        Self { what: LongContent::Records(Box::new(records)), left: None }
    }

    /// Its length in bytes, if that can be told without reading it.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.left
    }

    /// Finds out the length of a payload by reading it once more.
    pub(super) fn count(&mut self, mut again: PayloadPieces) -> Result<(), SegmentError> {
        let bytes = again.try_fold(0, |bytes, piece| piece.map(|piece| bytes + piece.len() as u64))?;
        self.left = Some(bytes);
        Ok(())
    }

    /// Leaves `count` bytes from `first` on.
    pub(super) fn cut(&mut self, first: u64, count: u64) -> Result<(), SegmentError> {
        match &mut self.what {
            LongContent::Payload(payload) => payload.skip_bytes(first)?,
            LongContent::Joined(pieces) => pieces.skip_bytes(first),
            LongContent::Records(_) => {}
        }
        self.left = Some(count);
        Ok(())
    }
}

impl Iterator for Long {
    type Item = Result<Bytes, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == Some(0) {
            return None;
        }
        let mut piece = match &mut self.what {
            LongContent::Payload(payload) => payload.next()?,
            LongContent::Records(records) => records.next()?,
            LongContent::Joined(pieces) => pieces.next()?,
        };
        if let (Ok(piece), Some(left)) = (&mut piece, &mut self.left) {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
        }
        Some(piece)
    }
}

/// The records of captures as a WARC file, each a gzip member.
pub(super) struct MemberRecords {
    reader: SegmentReader,
    captures: VecDeque<Location>,
    /// The record that is being packed.
    record: Option<RecordPieces>,
    /// Where the next record of the capture is, and how many were read of it.
    next: Option<(SegmentId, u64)>,
    read: usize,
    packer: GzEncoder<Vec<u8>>,
    /// What is packed already.
    ready: Bytes,
}

impl std::fmt::Debug for MemberRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("captures", &self.captures).finish_non_exhaustive()
    }
}

impl MemberRecords {
    pub(super) fn new(reader: SegmentReader, captures: impl IntoIterator<Item = Location>) -> Self {
        let captures = captures.into_iter().collect();
        Self { reader, captures, record: None, next: None, read: 0, packer: packer(), ready: Bytes::new() }
    }

    /// Puts back what was read first.
    pub(super) fn after(self, ready: Bytes) -> Self {
        Self { ready, ..self }
    }

    /// Begins the next record; returns `false` after the last one.
    fn begin(&mut self) -> Result<bool, SegmentError> {
        let following = self.next.take().filter(|_| self.read < RECORDS_MAX);
        // `archive verify` reports unreadable records; what follows them is left out.
        let following = following.and_then(|(segment, offset)| self.reader.pieces_at(segment, offset).ok());
        let record = match following {
            Some(record) => record,
            None => {
                let Some(capture) = self.captures.pop_front() else { return Ok(false) };
                self.read = 0;
                self.reader.pieces(capture)?
            }
        };
        self.read += 1;
        self.write(record.header().to_string().as_bytes());
        self.record = Some(record);
        Ok(true)
    }

    fn write(&mut self, bytes: &[u8]) {
        // Writing to memory does not fail.
        let _ = self.packer.write_all(bytes);
    }

    /// Ends a record, and notes where the next one of its capture is.
    fn end(&mut self, record: RecordPieces) -> Result<Vec<u8>, SegmentError> {
        self.write(RECORD_END);
        if record.header().record_type() != RecordType::Metadata {
            self.next = Some((record.segment(), record.following()?));
        }
        Ok(std::mem::replace(&mut self.packer, packer()).finish().unwrap_or_default())
    }
}

impl Iterator for MemberRecords {
    type Item = Result<Bytes, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.ready.is_empty() {
            return Some(Ok(std::mem::take(&mut self.ready)));
        }
        loop {
            let packed = match self.record.take() {
                None => match self.begin() {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
                Some(mut record) => match record.next() {
                    Some(Ok(piece)) => {
                        self.write(&piece);
                        self.record = Some(record);
                        Ok(std::mem::take(self.packer.get_mut()))
                    }
                    Some(Err(error)) => Err(error),
                    None => self.end(record),
                },
            };
            if packed.as_ref().map_or(true, |packed| !packed.is_empty()) {
                return Some(packed.map(Bytes::from));
            }
        }
    }
}

fn packer() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::new(LEVEL))
}

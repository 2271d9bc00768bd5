//! Reads a record piece by piece: a long one takes the memory of one of its frames.
//!
//! Each frame carries a checksum, so every piece is verified before it is passed on; of a gzip member, which has one at its
//! end, at least the last piece. Frames that are skipped are not unpacked.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe;

use super::CONTENT_BYTES_MAX;
use super::codec::{Codec, FRAME_BYTES_MAX, RECORD_END};
use super::error::{IoContext, SegmentError};
use super::read::{SegmentReader, StoredRecord};
use crate::backend::{DiskFile, read_exact_at};
use crate::ids::{Location, SegmentId};
use crate::warc::{self, CHUNK_LINE_BYTES_MAX, Dechunker, HEAD_BYTES_MAX, HttpHead, RecordHeader};

/// Packed bytes that are read at once in search of a frame's end: enough for most records, for nearly all, for the frames
/// of a long one, and for the longest frame that a reader has to support.
const READ_AT_ONCE: [u64; 4] = [64 << 10, 1 << 20, 5 << 20, 2 * FRAME_BYTES_MAX as u64];
/// Maximum bytes that a frame may unpack to: a record that is not split into several, and its head.
const UNPACKED_BYTES_MAX: u64 = 2 * FRAME_BYTES_MAX as u64;
/// Bytes of a gzip member that are unpacked at once, and packed bytes that are read for them.
const INFLATED_BYTES: usize = 256 << 10;
const DEFLATED_BYTES: u64 = 64 << 10;

/// A record whose content is read piece by piece.
pub struct RecordPieces {
    reader: SegmentReader,
    location: Location,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Where the next packed bytes are, and where they end.
    position: u64,
    end: u64,
    /// For gzip, the state of the member; `None` once it has ended.
    inflater: Option<Decompress>,
    codec: Codec,
    header: RecordHeader,
    /// Content that is unpacked and has not been passed on.
    ready: Bytes,
    /// Bytes of content, and of the line ends after it, that are still packed.
    left: u64,
    ends: u64,
}

impl std::fmt::Debug for RecordPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordPieces").field("location", &self.location).finish_non_exhaustive()
    }
}

impl SegmentReader {
    /// Begins to read a record.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn pieces(&self, location: Location) -> Result<RecordPieces, SegmentError> {
        self.pieces_until(location, location.offset.checked_add(location.length.into()))
    }

    /// Begins to read the record at an offset, whose length is not known.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn pieces_at(&self, segment: SegmentId, offset: u64) -> Result<RecordPieces, SegmentError> {
        let (file, path) = self.file(segment)?;
        let end = file.len().context("read", &path)?;
        self.pieces_until(Location { segment, offset, length: 0 }, Some(end))
    }

    fn pieces_until(&self, location: Location, end: Option<u64>) -> Result<RecordPieces, SegmentError> {
        let (file, path) = self.file(location.segment)?;
        let length = file.len().context("read", &path)?;
        let Some(end) = end.filter(|end| *end <= length) else {
            let (segment, offset) = (location.segment, location.offset);
            let what = "the segment ends before the record does".into();
            return Err(SegmentError::Corrupted { segment, offset, what });
        };
        let codec = self.codec(location.segment)?;
        let mut pieces = RecordPieces {
            reader: self.clone(),
            location,
            file,
            path,
            position: location.offset,
            end,
            inflater: (codec == Codec::Gzip).then(|| Decompress::new_gzip(15)),
            codec,
            header: RecordHeader { version: String::new(), fields: Vec::new() },
            ready: Bytes::new(),
            left: u64::MAX,
            ends: 0,
        };
        pieces.read_head()?;
        Ok(pieces)
    }
}

impl RecordPieces {
    fn corrupted(&self, what: impl Into<String>) -> SegmentError {
        let Location { segment, offset, .. } = self.location;
        SegmentError::Corrupted { segment, offset, what: what.into() }
    }

    fn read_head(&mut self) -> Result<(), SegmentError> {
        self.gather(HEAD_BYTES_MAX, |record| warc::head_length(record).is_some())?;
        let parsed = RecordHeader::parse(&self.ready);
        let (header, length) = parsed.map_err(|error| self.corrupted(error.to_string()))?;
        let content = header.content_length().filter(|length| *length <= CONTENT_BYTES_MAX);
        let content = content.ok_or_else(|| self.corrupted("the record has no length, or is too long"))?;
        self.header = header;
        let unpacked = self.ready.split_off(length);
        (self.left, self.ends) = (content, RECORD_END.len() as u64);
        self.ready = self.counted(unpacked);
        self.end_if_read()
    }

    /// Reads what follows the content, once all of that is unpacked: it holds the checksum of a gzip member.
    fn end_if_read(&mut self) -> Result<(), SegmentError> {
        while self.left == 0 && (self.ends > 0 || self.inflater.is_some()) {
            let Some(more) = self.unpack()? else { break };
            self.counted(more);
        }
        Ok(())
    }

    /// Unpacks more, until `is_enough` holds for what is ready, it has this many bytes, or the record ends.
    fn gather(&mut self, bytes: usize, is_enough: impl Fn(&[u8]) -> bool) -> Result<(), SegmentError> {
        let mut gathered = Vec::new();
        while !is_enough(&self.ready) && self.ready.len() < bytes && self.left > 0 {
            let Some(more) = self.unpack()? else { break };
            let more = self.counted(more);
            self.end_if_read()?;
            if self.ready.is_empty() {
                self.ready = more;
                continue;
            }
            gathered.extend_from_slice(&self.ready);
            gathered.extend_from_slice(&more);
            self.ready = std::mem::take(&mut gathered).into();
        }
        Ok(())
    }

    /// Counts unpacked bytes; returns those that belong to the content.
    fn counted(&mut self, mut unpacked: Bytes) -> Bytes {
        let content = usize::try_from(self.left).unwrap_or(usize::MAX).min(unpacked.len());
        self.ends = self.ends.saturating_sub((unpacked.len() - content) as u64);
        // Before the head is known, everything counts as content.
        self.left = if self.left == u64::MAX { u64::MAX } else { self.left - content as u64 };
        unpacked.truncate(content);
        unpacked
    }

    /// Unpacks the next frame, or the next bytes of the member; `None` at the end.
    fn unpack(&mut self) -> Result<Option<Bytes>, SegmentError> {
        if self.codec == Codec::Gzip {
            return self.inflate();
        }
        let Some(frame) = self.frame()? else { return Ok(None) };
        let size = self.unpacked_size(&frame)?;
        if size > UNPACKED_BYTES_MAX {
            return Err(self.corrupted(format!("a frame of {size} bytes is too long")));
        }
        self.position += frame.len() as u64;
        let unpacked = self.reader.unpack(self.location.segment, &frame)?;
        Ok(Some(unpacked.map_err(|what| self.corrupted(what))?.into()))
    }

    fn unpacked_size(&self, frame: &[u8]) -> Result<u64, SegmentError> {
        let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
        size.ok_or_else(|| self.corrupted("a frame has no content size"))
    }

    fn packed(&self, count: u64) -> Result<Vec<u8>, SegmentError> {
        let mut packed = vec![0; (self.end - self.position).min(count) as usize];
        read_exact_at(self.file.as_ref(), &mut packed, self.position).context("read", &self.path)?;
        Ok(packed)
    }

    /// The next zstd frame; `None` at the end.
    fn frame(&self) -> Result<Option<Vec<u8>>, SegmentError> {
        if self.position >= self.end {
            return Ok(None);
        }
        for count in READ_AT_ONCE {
            let mut packed = self.packed(count)?;
            if let Ok(length) = zstd_safe::find_frame_compressed_size(&packed) {
                packed.truncate(length);
                return Ok(Some(packed));
            }
        }
        Err(self.corrupted("a frame has no end"))
    }

    fn inflate(&mut self) -> Result<Option<Bytes>, SegmentError> {
        let Some(mut inflater) = self.inflater.take() else { return Ok(None) };
        let packed = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let mut unpacked = Vec::with_capacity(packed.saturating_mul(4).clamp(4 << 10, INFLATED_BYTES));
        while unpacked.len() < unpacked.capacity() {
            let packed = self.packed(DEFLATED_BYTES)?;
            let (taken, before) = (inflater.total_in(), unpacked.len());
            let status = inflater.decompress_vec(&packed, &mut unpacked, FlushDecompress::None);
            let status = status.map_err(|error| self.corrupted(error.to_string()))?;
            let taken = inflater.total_in() - taken;
            self.position += taken;
            if status == Status::StreamEnd {
                return Ok(Some(unpacked.into()));
            }
            if taken == 0 && unpacked.len() == before {
                return Err(self.corrupted("the member has no end"));
            }
        }
        self.inflater = Some(inflater);
        Ok(Some(unpacked.into()))
    }

    /// The record's header fields.
    #[must_use]
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }

    /// The segment that it is in.
    #[must_use]
    pub fn segment(&self) -> SegmentId {
        self.location.segment
    }

    /// Bytes of content that have not been passed on.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left.saturating_add(self.ready.len() as u64)
    }

    /// Reads the content from here on, but hardly more than `bytes_max` of it.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn beginning(mut self, bytes_max: usize) -> Result<StoredRecord, SegmentError> {
        if self.left > 0 && self.ready.len() < bytes_max {
            let capacity = usize::try_from(self.remaining()).unwrap_or(usize::MAX).min(bytes_max);
            let mut content = Vec::with_capacity(capacity);
            while content.len() < bytes_max
                && let Some(piece) = self.next().transpose()?
            {
                content.extend_from_slice(&piece);
            }
            self.ready = content.into();
        }
        Ok(StoredRecord { location: self.location, header: self.header, content: self.ready })
    }

    /// Skips bytes of the content, as far as possible without unpacking them.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn skip_bytes(&mut self, mut count: u64) -> Result<(), SegmentError> {
        while count > 0 {
            if self.ready.is_empty() && self.left > 0 && self.codec == Codec::Zstd {
                let Some(frame) = self.frame()? else { return Err(self.too_short()) };
                let size = self.unpacked_size(&frame)?;
                if size <= count.min(self.left) {
                    self.position += frame.len() as u64;
                    (self.left, count) = (self.left - size, count - size);
                    continue;
                }
            }
            let Some(mut piece) = self.next().transpose()? else { return Ok(()) };
            let here = usize::try_from(count).unwrap_or(usize::MAX).min(piece.len());
            piece.advance(here);
            count -= here as u64;
            self.ready = piece;
        }
        Ok(())
    }

    /// Reads to the record's end, and returns the offset of what follows.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn following(mut self) -> Result<u64, SegmentError> {
        self.ready = Bytes::new();
        self.skip_bytes(u64::MAX)?;
        self.end_if_read()?;
        Ok(self.position)
    }

    /// Reads the head of the HTTP message, if the content is one; its payload follows.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn payload(mut self) -> Result<PayloadPieces, SegmentError> {
        self.gather(HEAD_BYTES_MAX, |content| warc::head_length(content).is_some())?;
        let head = warc::http_head(&self.header, &self.ready);
        let mut chunks = None;
        if warc::is_message(&self.header, &self.ready) {
            // Without an empty line everything is head.
            let length = warc::head_length(&self.ready);
            self.left = if length.is_some() { self.left } else { 0 };
            self.ready.advance(length.unwrap_or(self.ready.len()));
            self.gather(CHUNK_LINE_BYTES_MAX, |_| false)?;
            let is_chunked = head.is_chunked() && warc::begins_with_chunk(&self.ready);
            chunks = is_chunked.then(Dechunker::default);
        }
        Ok(PayloadPieces { head, record: self, chunks, ready: Bytes::new() })
    }

    fn unpack_next(&mut self) -> Result<(), SegmentError> {
        let unpacked = self.unpack()?.ok_or_else(|| self.too_short())?;
        self.ready = self.counted(unpacked);
        self.end_if_read()
    }

    fn too_short(&self) -> SegmentError {
        self.corrupted("the record is shorter than its Content-Length")
    }
}

impl Iterator for RecordPieces {
    type Item = Result<Bytes, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.left > 0 {
            if let Err(error) = self.unpack_next() {
                (self.left, self.ready) = (0, Bytes::new());
                return Some(Err(error));
            }
        }
        Some(std::mem::take(&mut self.ready)).filter(|piece| !piece.is_empty()).map(Ok)
    }
}

/// The payload of a record, without transfer coding, piece by piece.
#[derive(Debug)]
pub struct PayloadPieces {
    head: HttpHead,
    record: RecordPieces,
    chunks: Option<Dechunker>,
    /// Payload that has not been passed on.
    ready: Bytes,
}

impl PayloadPieces {
    /// The head of the HTTP message; for content without HTTP, one with just the media type.
    #[must_use]
    pub fn head(&self) -> &HttpHead {
        &self.head
    }

    /// Bytes that have not been passed on; `None` if only reading all chunks would tell.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.chunks.is_none().then(|| self.record.remaining().saturating_add(self.ready.len() as u64))
    }

    /// The next bytes, which are still passed on afterwards; empty at the end.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn peek(&mut self) -> Result<&Bytes, SegmentError> {
        if self.ready.is_empty() {
            self.ready = self.next().transpose()?.unwrap_or_default();
        }
        Ok(&self.ready)
    }

    /// Skips bytes, as far as possible without unpacking them.
    ///
    /// # Errors
    /// As [`SegmentReader::read`].
    pub fn skip_bytes(&mut self, mut count: u64) -> Result<(), SegmentError> {
        loop {
            let here = usize::try_from(count).unwrap_or(usize::MAX).min(self.ready.len());
            self.ready.advance(here);
            count -= here as u64;
            if count == 0 {
                return Ok(());
            }
            if self.chunks.is_none() {
                return self.record.skip_bytes(count);
            }
            if self.peek()?.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Iterator for PayloadPieces {
    type Item = Result<Bytes, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.ready.is_empty() {
            return Some(Ok(std::mem::take(&mut self.ready)));
        }
        let Some(chunks) = &mut self.chunks else { return self.record.next() };
        loop {
            let piece = match self.record.next()? {
                Ok(piece) => piece,
                Err(error) => return Some(Err(error)),
            };
            let mut data = Vec::with_capacity(piece.len());
            chunks.feed(&piece, |bytes| data.extend_from_slice(bytes));
            if !data.is_empty() {
                return Some(Ok(data.into()));
            }
        }
    }
}

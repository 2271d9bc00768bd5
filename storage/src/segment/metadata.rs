//! Metadata that the crawler recorded about a capture, found from its main record, and about a segment.

use std::io::Read;

use bytes::Bytes;
use zstd::zstd_safe;

use super::codec::{Codec, cut};
use super::error::{IoContext, SegmentError};
use super::{SegmentReader, order};
use crate::backend::FileReader;
use crate::ids::{Location, SegmentId, Watermark};
use crate::warc::{RecordType, parse_fields};

/// Maximum number of records of one capture: main record, request, metadata.
const GROUP_RECORDS_MAX: usize = 3;

/// Maximum bytes of a metadata record that are read; the longest ones list ten thousand links.
const METADATA_BYTES_MAX: usize = 64 << 20;

/// Bytes read at once after a main record: enough for most requests and metadata records.
pub(super) const AFTER_MAIN_BYTES: usize = 4096;

impl SegmentReader {
    /// Returns the fields of a segment's `warcinfo` record, such as the program that wrote it.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or is damaged there.
    pub fn information(&self, segment: SegmentId) -> Result<Vec<(String, String)>, SegmentError> {
        let (file, path) = self.file(segment)?;
        let mut records = order::records(file, Watermark { segment, offset: 0 }, &path)?;
        match records.next() {
            Some(Ok(record)) if record.header.record_type() == RecordType::Warcinfo => {
                Ok(parse_fields(&record.content))
            }
            Some(Err(error)) => Err(SegmentError::of_record(error, segment, &path)),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the fields of the metadata record that ends a capture's group; `capture` is the location of its first
    /// record.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or is damaged there.
    pub fn metadata(&self, capture: Location) -> Result<Vec<(String, String)>, SegmentError> {
        if self.codec(capture.segment)? == Codec::Zstd
            && let Some(fields) = self.metadata_after(capture)?
        {
            return Ok(fields);
        }
        self.metadata_from_start(capture)
    }

    /// Like [`SegmentReader::metadata`], without its assumptions about the group.
    pub(super) fn metadata_from_start(
        &self,
        capture: Location,
    ) -> Result<Vec<(String, String)>, SegmentError> {
        let Location { segment, mut offset, .. } = capture;
        for _ in 0..GROUP_RECORDS_MAX {
            let record = self.pieces_at(segment, offset)?;
            if record.header().record_type() == RecordType::Metadata {
                return Ok(record.beginning(METADATA_BYTES_MAX)?.fields());
            }
            offset = record.following()?;
        }
        let what = "the capture has no metadata record".to_owned();
        Err(SegmentError::Corrupted { segment, offset: capture.offset, what })
    }

    /// Like [`SegmentReader::metadata`], but reads short frames after a main record, without the main record itself.
    /// Returns `None` if they are long or damaged, or if `main` is not a main record: then the group has to be read
    /// from its start.
    pub(super) fn metadata_after(
        &self,
        main: Location,
    ) -> Result<Option<Vec<(String, String)>>, SegmentError> {
        let (file, path) = self.file(main.segment)?;
        let start = main.offset.saturating_add(main.length.into());
        let mut bytes = Vec::with_capacity(AFTER_MAIN_BYTES);
        let mut reader = FileReader::new(file, start).take(AFTER_MAIN_BYTES as u64);
        reader.read_to_end(&mut bytes).context("read", &path)?;
        let mut rest = bytes.as_slice();
        for _ in 1..GROUP_RECORDS_MAX {
            let Some((frame, after)) = zstd_safe::find_frame_compressed_size(rest)
                .ok()
                .and_then(|length| rest.split_at_checked(length))
            else {
                return Ok(None);
            };
            let Ok(record) = self.unpack(main.segment, frame)? else { return Ok(None) };
            let Ok((header, content)) = cut(&Bytes::from(record)) else { return Ok(None) };
            match header.record_type() {
                RecordType::Request => rest = after,
                // A capture without an answer has no main record, and the next record belongs to another capture.
                RecordType::Metadata if header.get("WARC-Concurrent-To").is_some() => {
                    return Ok(Some(parse_fields(&content)));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

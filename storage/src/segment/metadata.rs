//! Metadata that the crawler recorded about a capture, found from its main record, and about a segment.

use std::io::Read;

use bytes::Bytes;
use zstd::zstd_safe;

use super::codec::{Codec, cut};
use super::error::{Context, SegmentError};
use super::{SegmentReader, order};
use crate::backend::FileReader;
use crate::ids::{Location, SegmentId, Watermark};
use crate::warc::{RecordReader, RecordType, parse_fields};

/// Maximum number of records of one capture: main record, request, metadata.
const GROUP_RECORDS_MAX: usize = 3;

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
        let (file, path) = self.file(capture.segment)?;
        let dictionary = self.load_dictionary(capture.segment)?;
        let dictionary = dictionary.as_ref().map(|dictionary| dictionary.as_bytes().to_vec());
        let reader = FileReader::new(file, capture.offset);
        for record in RecordReader::resumed(reader, capture.offset, dictionary).take(GROUP_RECORDS_MAX) {
            match record {
                Ok(record) if record.header.record_type() == RecordType::Metadata => {
                    return Ok(parse_fields(&record.content));
                }
                Ok(_) => {}
                Err(error) => return Err(SegmentError::of_record(error, capture.segment, &path)),
            }
        }
        let what = "the capture has no metadata record".to_owned();
        Err(SegmentError::Corrupted { segment: capture.segment, offset: capture.offset, what })
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

//! What the crawler noted about a capture, found from the capture's main record.

use super::SegmentReader;
use super::error::{Context, SegmentError};
use crate::backend::FileReader;
use crate::ids::Location;
use crate::warc::parse_fields;
use crate::warc::{ReadError, RecordReader, RecordType};

/// Records of one capture: main record, request, metadata.
const GROUP_RECORDS_MAX: usize = 3;

impl SegmentReader {
    /// The fields of the metadata record that ends the group of a capture, by the location of its first record.
    ///
    /// This reads through the group: it is for looking at single captures, not for passing over many.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or is damaged there.
    pub fn metadata(&self, capture: Location) -> Result<Vec<(String, String)>, SegmentError> {
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
                Err(ReadError::Io(error)) => return Err(error).context("read", &path),
                Err(ReadError::Broken(broken)) => {
                    let (offset, what) = (broken.offset, broken.what);
                    return Err(SegmentError::Corrupted { segment: capture.segment, offset, what });
                }
            }
        }
        let what = "the capture has no metadata record".to_owned();
        Err(SegmentError::Corrupted { segment: capture.segment, offset: capture.offset, what })
    }
}

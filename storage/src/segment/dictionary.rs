//! A segment's dictionary: the first frame of its file, and once more the last.

use std::path::Path;

use zstd::zstd_safe::DDict;

use super::error::{Context, SegmentError};
use crate::backend::{DiskFile, read_exact_at};
use crate::digest::Digest;
use crate::ids::SegmentId;
use crate::warc::{self, SKIPPABLE_DICTIONARY, SKIPPABLE_MAGIC};

/// Bytes that a dictionary may have, packed or not: what the IIPC proposal obliges every reader to take.
pub const DICTIONARY_BYTES_MAX: usize = 8 << 20;

/// The skippable frame at a segment's end that holds the dictionary once more.
pub(super) const SKIPPABLE_COPY: u32 = SKIPPABLE_MAGIC + 1;

/// A zstd dictionary in the format of RFC 8878 section 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    bytes: Vec<u8>,
}

impl Dictionary {
    /// The dictionary's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest that names it in the `warcinfo` record.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.bytes)
    }

    /// The frame that a segment starts with.
    pub(super) fn first_frame(&self) -> Result<Vec<u8>, SegmentError> {
        Ok(warc::skippable_frame(SKIPPABLE_DICTIONARY, &self.packed()?))
    }

    /// The copy that a segment ends with.
    pub(super) fn last_frame(&self) -> Result<Vec<u8>, SegmentError> {
        Ok(warc::skippable_frame(SKIPPABLE_COPY, &self.packed()?))
    }

    fn packed(&self) -> Result<Vec<u8>, SegmentError> {
        let mut packed = Vec::with_capacity(zstd::zstd_safe::compress_bound(self.bytes.len()));
        zstd::zstd_safe::compress(&mut packed, &self.bytes, 9)
            .map_err(|code| SegmentError::Compression(zstd::zstd_safe::get_error_name(code).to_owned()))?;
        Ok(packed)
    }

    /// Makes it ready for decompressing.
    pub(super) fn prepare(&self) -> Option<DDict<'static>> {
        DDict::try_create(&self.bytes)
    }
}

/// Reads the dictionary at a segment's start, if it has one.
pub(super) fn read(
    file: &dyn DiskFile,
    segment: SegmentId,
    path: &Path,
) -> Result<Option<Dictionary>, SegmentError> {
    let mut start = [0; 8];
    if file.len().context("read", path)? < 8 {
        return Ok(None);
    }
    read_exact_at(file, &mut start, 0).context("read", path)?;
    let [a, b, c, d, size @ ..] = start;
    if u32::from_le_bytes([a, b, c, d]) != SKIPPABLE_DICTIONARY {
        return Ok(None);
    }
    let corrupted = |what: String| SegmentError::Corrupted { segment, offset: 0, what };
    let size = u32::from_le_bytes(size) as usize;
    if size > DICTIONARY_BYTES_MAX {
        return Err(corrupted(format!("a dictionary frame of {size} bytes is too long")));
    }
    let mut content = vec![0; size];
    read_exact_at(file, &mut content, 8).context("read", path)?;
    let bytes = warc::embedded_dictionary(&content).map_err(corrupted)?;
    Ok(Some(Dictionary { bytes }))
}

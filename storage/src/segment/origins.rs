//! Origins of the versions in a dictionary, used to rebuild it when no guard in its file can.
//!
//! A dictionary holds blocks of records of earlier segments, so all of it is in the archive a second time. The frame
//! before the guard states where: the SHA-256 of the dictionary, 32 bytes; the number of blocks, `u32`; for each block,
//! in the order of the dictionary, segment `u32`, offset `u64` and length `u32` of its record; then a zstd frame of the
//! bytes before the blocks and after them: length of the former, `u32`, the former, the latter. It takes some
//! kilobytes.
//!
//! Invariant: the records are in segments before the dictionary's own, so following them ends.

use std::path::Path;

use super::codec::Codec;
use super::dictionary::{self, DICTIONARY_BYTES_MAX, Dictionary};
use super::error::SegmentError;
use super::read::SegmentReader;
use crate::backend::DiskFile;
use crate::digest::Digest;
use crate::ids::{Location, SegmentId};
use crate::warc::{SKIPPABLE_MAGIC, skippable_frame};

/// The skippable frame that states the origins of a dictionary's versions.
pub(crate) const SKIPPABLE_ORIGINS: u32 = SKIPPABLE_MAGIC + 4;
/// Bytes at a file's end that are searched for the frame: it has at most some thousand places, followed by an eighth of
/// a packed dictionary.
const TAIL_BYTES: u64 = 2 << 20;
const PLACE_BYTES: usize = 4 + 8 + 4;
const LEVEL: i32 = 19;

/// Origins of the blocks of a dictionary, and its remaining bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origins {
    /// Locations of the records, in the order of the dictionary.
    pub records: Vec<Location>,
    /// Bytes of the dictionary before the blocks.
    pub before: Vec<u8>,
    /// Bytes of the dictionary after the blocks.
    pub after: Vec<u8>,
}

impl Origins {
    /// Returns the frame for the dictionary with this digest.
    pub(super) fn frame(&self, dictionary: Digest) -> Result<Vec<u8>, SegmentError> {
        let mut content = dictionary.as_bytes().to_vec();
        content.extend_from_slice(&(self.records.len() as u32).to_le_bytes());
        for record in &self.records {
            content.extend_from_slice(&record.segment.0.to_le_bytes());
            content.extend_from_slice(&record.offset.to_le_bytes());
            content.extend_from_slice(&record.length.to_le_bytes());
        }
        let mut rest = (self.before.len() as u32).to_le_bytes().to_vec();
        rest.extend_from_slice(&self.before);
        rest.extend_from_slice(&self.after);
        let packed = zstd::bulk::compress(&rest, LEVEL);
        content.extend(packed.map_err(|error| SegmentError::Compression(error.to_string()))?);
        Ok(skippable_frame(SKIPPABLE_ORIGINS, &content))
    }

    /// Parses a frame's content; also returns the digest of the dictionary.
    fn parse(content: &[u8]) -> Option<(Digest, Self)> {
        let (digest, rest) = content.split_first_chunk::<32>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(PLACE_BYTES)?;
        let (places, packed) = rest.split_at_checked(bytes)?;
        let records = places.as_chunks::<PLACE_BYTES>().0.iter().map(|place| {
            let [a, b, c, d, offset @ .., e, f, g, h] = *place;
            let segment = SegmentId(u32::from_le_bytes([a, b, c, d]));
            let length = u32::from_le_bytes([e, f, g, h]);
            Location { segment, offset: u64::from_le_bytes(offset), length }
        });
        let rest = zstd::bulk::decompress(packed, DICTIONARY_BYTES_MAX).ok()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (before, after) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let origins = Self { records: records.collect(), before: before.to_vec(), after: after.to_vec() };
        Some((Digest::from_sha256(*digest), origins))
    }

    /// Searches for the frame near the end of a segment, as there may be damage after it.
    fn find(file: &dyn DiskFile, path: &Path) -> Result<Option<(Digest, Self)>, SegmentError> {
        let tail = dictionary::tail(file, path, TAIL_BYTES)?;
        let found = memchr::memmem::rfind_iter(&tail, &SKIPPABLE_ORIGINS.to_le_bytes()).find_map(|start| {
            let (size, rest) = tail.get(start + 4..)?.split_first_chunk::<4>()?;
            Self::parse(rest.get(..u32::from_le_bytes(*size) as usize)?)
        });
        Ok(found)
    }
}

impl SegmentReader {
    /// Loads a segment's dictionary from its file, repaired by its guard or rebuilt from the records of earlier
    /// segments if need be. Returns `None` if the segment has none, or an unrecognizable one that cannot be rebuilt.
    pub(super) fn load_dictionary(&self, id: SegmentId) -> Result<Option<Dictionary>, SegmentError> {
        // gzip has no dictionaries, and searching for a damaged one reads megabytes.
        if self.codec(id)? == Codec::Gzip {
            return Ok(None);
        }
        let (file, path) = self.file(id)?;
        let damage = match dictionary::load(file.as_ref(), id, &path) {
            Ok(Some((dictionary, _))) => return Ok(Some(dictionary)),
            Ok(None) => None,
            Err(error @ SegmentError::Corrupted { .. }) => Some(error),
            Err(error) => return Err(error),
        };
        match (self.remade(id, file.as_ref(), &path)?, damage) {
            (None, Some(damage)) => Err(damage),
            (dictionary, _) => Ok(dictionary),
        }
    }

    fn remade(
        &self,
        id: SegmentId,
        file: &dyn DiskFile,
        path: &Path,
    ) -> Result<Option<Dictionary>, SegmentError> {
        let Some((digest, origins)) = Origins::find(file, path)? else { return Ok(None) };
        let mut bytes = origins.before.clone();
        for record in &origins.records {
            if record.segment >= id || bytes.len() > DICTIONARY_BYTES_MAX {
                return Ok(None);
            }
            match self.read(*record) {
                Ok(record) => bytes.extend_from_slice(&record.content),
                Err(SegmentError::Corrupted { .. } | SegmentError::Missing(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        bytes.extend_from_slice(&origins.after);
        if Digest::sha256(&bytes) != digest {
            return Ok(None);
        }
        Dictionary::again(bytes, origins).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_what_it_was_given_and_nothing_when_it_is_cut() {
        let record = |segment| Location { segment: SegmentId(segment), offset: 1 << 40, length: 77 };
        let origins = Origins {
            records: vec![record(3), record(9)],
            before: vec![1; 164],
            after: b"WARC/1.1".to_vec(),
        };
        let digest = Digest::sha256(b"dictionary");
        let frame = origins.frame(digest).expect("memory");
        let (_, content) = frame.split_at(8);
        assert_eq!(Origins::parse(content), Some((digest, origins)));
        assert!((0..content.len()).all(|length| Origins::parse(&content[..length]).is_none()));
    }
}

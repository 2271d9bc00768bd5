//! Surveys a closed segment from its bytes alone, for verify and repair.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::error::{IoContext, SegmentError};
use super::guard::Guard;
use super::name::SegmentName;
use super::order::{CaptureStream, StreamItem};
use super::read::SegmentReader;
use super::{order, recover};
use crate::backend::{Disk, DiskFile, OpenMode, PIECE_BYTES, RealDisk, pieces, read_exact_at};
use crate::digest::Digest;
use crate::ids::{SegmentId, Watermark};
use crate::warc::{Record, RecordError};

/// Contents of a segment's file.
#[derive(Clone, Debug)]
pub struct SegmentSurvey {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Digest of the file.
    pub sha256: Digest,
    /// Number of complete captures.
    pub captures: u64,
    /// The file name stated in its `warcinfo` record, if that can be read.
    pub written_as: Option<String>,
    /// The first unreadable places, at most [`BROKEN_MAX`]: the offset of each, and what is wrong there.
    pub broken: Vec<(u64, String)>,
    /// Total number of unreadable places.
    pub broken_places: u64,
}

/// Maximum number of unreadable places of a segment that are listed, not just counted.
pub const BROKEN_MAX: usize = 100;

impl SegmentSurvey {
    fn broken(&mut self, offset: u64, what: String) {
        self.broken_places += 1;
        if self.broken.len() < BROKEN_MAX {
            self.broken.push((offset, what));
        }
    }
}

/// Returns ids and file names of the segments in an archive's folder, including open ones.
///
/// # Errors
/// When the folder cannot be read.
pub fn files(archive: &Path) -> Result<Vec<(SegmentId, String)>, SegmentError> {
    let folder = archive.join(super::FOLDER);
    let entries = RealDisk.list(&folder).context("list", &folder)?;
    let names = entries.into_iter().filter_map(|entry| {
        let name = SegmentName::parse(&entry.name)?;
        Some((name.id, entry.name))
    });
    Ok(names.collect())
}

/// Reads a segment from its first byte to its last.
///
/// # Errors
/// When the file cannot be read at all; damage within it is part of the survey.
pub fn survey(archive: &Path, segment: SegmentId, file: &str) -> Result<SegmentSurvey, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let opened = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    let bytes = opened.len().context("read", &path)?;
    let sha256 = recover::sha256(opened.as_ref(), bytes).context("read", &path)?;
    let mut survey =
        SegmentSurvey { bytes, sha256, captures: 0, written_as: None, broken: Vec::new(), broken_places: 0 };
    let start = Watermark { segment, offset: 0 };
    let counted = CaptureStream::resumed(opened, start, &path, 0).and_then(|mut stream| {
        while let Some(found) = stream.next()? {
            match found {
                StreamItem::Capture { .. } => survey.captures += 1,
                StreamItem::Broken(place) => survey.broken(place.offset, place.what),
                StreamItem::Warcinfo { name, .. } => survey.written_as = name,
            }
        }
        Ok(())
    });
    match counted {
        Ok(()) => Ok(survey),
        // The dictionary is beyond repair.
        Err(SegmentError::Corrupted { offset, what, .. }) => {
            survey.broken(offset, what);
            Ok(survey)
        }
        Err(error) => Err(error),
    }
}

/// The outcome of repairing a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictionaryRepair {
    /// The file at the target equals the file that was closed.
    Whole,
    /// The dictionary is repaired and records are readable again, but something else is still wrong.
    Dictionary,
    /// No dictionary could be repaired, and there is no file at the target.
    Nothing,
}

/// Repairs a segment's damaged dictionary from the guard at the file's end or from earlier segments, and a damaged
/// guard from the dictionary. Writes the repaired file durably to `target`. `sha256` is the digest that it was closed
/// with.
///
/// # Errors
/// When the disk refuses.
pub fn restore(
    archive: &Path,
    segment: SegmentId,
    file: &str,
    sha256: Option<Digest>,
    target: &Path,
) -> Result<DictionaryRepair, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let source = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    let reader = SegmentReader::new(Arc::new(RealDisk), archive);
    let dictionary = match reader.load_dictionary(segment) {
        Ok(Some(dictionary)) => dictionary,
        Ok(None) | Err(SegmentError::Corrupted { .. }) => return Ok(DictionaryRepair::Nothing),
        Err(error) => return Err(error),
    };
    let first = dictionary.first_frame();
    let length = source.len().context("read", &path)?;
    // The guard is the last frame, and can be computed from the first.
    let guards = [Guard::Parity, Guard::Copy].map(|guard| guard.frame(&first));
    let ends =
        [Vec::new()].into_iter().chain(guards).filter(|end| (first.len() + end.len()) as u64 <= length);
    for end in ends {
        write_between(source.as_ref(), &first, &end, target).context("write", target)?;
        let output = RealDisk.open(target, OpenMode::Read).context("read", target)?;
        if Some(recover::sha256(output.as_ref(), length).context("read", target)?) == sha256 {
            return Ok(DictionaryRepair::Whole);
        }
    }
    let mut found = vec![0; first.len()];
    if read_exact_at(source.as_ref(), &mut found, 0).is_ok() && found == first {
        RealDisk.remove(target).context("remove", target)?;
        return Ok(DictionaryRepair::Nothing);
    }
    write_between(source.as_ref(), &first, &[], target).context("write", target)?;
    Ok(DictionaryRepair::Dictionary)
}

/// Copies a file durably, with its beginning and its end replaced by others of the same lengths.
fn write_between(source: &dyn DiskFile, first: &[u8], end: &[u8], target: &Path) -> io::Result<()> {
    let output = RealDisk.open(target, OpenMode::Create)?;
    output.set_len(0)?;
    output.write_at(first, 0)?;
    let until = source.len()?.saturating_sub(end.len() as u64);
    let between = first.len() as u64..until;
    pieces(source, between, PIECE_BYTES, |piece, offset| output.write_at(piece, offset))?;
    output.write_at(end, until)?;
    output.sync()
}

/// Returns the records of a segment as stored, from an offset on.
///
/// # Errors
/// When the segment cannot be opened or its dictionary cannot be read.
pub fn records(
    archive: &Path,
    segment: SegmentId,
    file: &str,
    offset: u64,
) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<>, SegmentError> {
    records_within(super::CONTENT_BYTES_MAX, None, archive, (segment, offset), file)
}

/// Like [`records`]; but one with more than `content_bytes_max` bytes of content is broken, and not read, and contents that
/// are too long for memory go to unnamed files in the folder `spools`, if there is one.
///
/// # Errors
/// When the segment cannot be opened or its dictionary cannot be read.
pub fn records_within(
    content_bytes_max: u64,
    spools: Option<&Path>,
    archive: &Path,
    (segment, offset): (SegmentId, u64),
    file: &str,
) -> Result<impl Iterator<Item = Result<Record, RecordError>> + use<>, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let opened: Arc<dyn DiskFile> = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    order::records_within(content_bytes_max, spools, opened, Watermark { segment, offset }, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_places_are_listed_up_to_a_limit_and_counted_beyond() {
        let mut survey = SegmentSurvey {
            bytes: 0,
            sha256: Digest::sha256(b""),
            captures: 0,
            written_as: None,
            broken: Vec::new(),
            broken_places: 0,
        };
        (0..=BROKEN_MAX as u64).for_each(|offset| survey.broken(offset, "broken".to_owned()));
        assert_eq!((survey.broken.len(), survey.broken_places), (BROKEN_MAX, BROKEN_MAX as u64 + 1));
    }
}

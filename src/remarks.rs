//! What no record tells about URLs: which are seeds, why one is not fetched, and which announcements wait.
//!
//! The state has it too, but the state can be lost. So each checkpoint first adds what is new to `remarks.jsonl.zst` in
//! the archive's folder: a zstd frame with a checksum, of a line for each remark. `archive rebuild` reads them again. A
//! frame that is damaged, or that a crash cut off, is left out.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use archive_storage::CaptureId;
use archive_storage::backend::{OpenMode, open_regular};
use serde::{Deserialize, Serialize};
use zstd::zstd_safe;

use crate::files::{self, WholeFile};

/// Name of the file in the archive's folder.
pub const FILE: &str = "remarks.jsonl.zst";

/// Maximum length of the file; a longer one is refused.
const BYTES_MAX: u64 = 4 << 30;

/// Maximum number of remarks in a frame, and of bytes of what it unpacks to.
const FRAME_MAX: usize = 4096;
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Compression level: frames are small, and written once.
const LEVEL: i32 = 9;

/// The first bytes of a zstd frame (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What [`Remark::what`] says of a seed.
pub const SEED: &str = "seed";

/// What it says of a URL that may be fetched after all.
pub const ALLOWED: &str = "allowed";

/// What it says of a page whose site has announced a change.
pub const ANNOUNCED: &str = "announced";

/// A remark on a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Canonical URL.
    pub url: String,
    /// [`SEED`], [`ALLOWED`], [`ANNOUNCED`], or the name of the reason why it is not fetched.
    pub what: String,
    /// Number of captures that the archive had then: a later capture of the URL is newer than the remark.
    pub captures: u64,
}

impl Remark {
    /// Whether the newest capture of the URL is newer than the remark.
    pub(crate) fn is_overruled_by(&self, newest: Option<CaptureId>) -> bool {
        newest.is_some_and(|newest| u64::from(newest.0) >= self.captures)
    }
}

/// Why the remarks cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the remarks on URLs, {}: {source}", path.display())]
pub struct RemarksError {
    path: PathBuf,
    source: io::Error,
}

impl RemarksError {
    /// Whether the disk was full.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.source.kind() == io::ErrorKind::StorageFull
    }

    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// Adds remarks durably.
///
/// # Errors
/// When the file cannot be written.
pub fn add(archive: &Path, remarks: &[Remark]) -> Result<(), RemarksError> {
    if remarks.is_empty() {
        return Ok(());
    }
    let path = archive.join(FILE);
    let write = || {
        let mut file = open_regular(&path, OpenMode::Create)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        for remarks in remarks.chunks(FRAME_MAX) {
            file.write_all(&frame(remarks)?)?;
        }
        file.sync_all()
    };
    write().map_err(RemarksError::at(&path))
}

fn frame(remarks: &[Remark]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    for remark in remarks {
        serde_json::to_writer(&mut encoder, remark)?;
        encoder.write_all(b"\n")?;
    }
    encoder.finish()
}

/// Passes the remarks of an archive to `take`, in the order in which they were made; returns the number of frames that
/// cannot be read.
///
/// # Errors
/// When the file cannot be read.
pub fn each(archive: &Path, mut take: impl FnMut(Remark)) -> Result<u64, RemarksError> {
    let path = archive.join(FILE);
    let bytes = files::read_if_there(&path, BYTES_MAX).map_err(RemarksError::at(&path))?.unwrap_or_default();
    let (mut rest, mut damaged) = (bytes.as_slice(), 0);
    while !rest.is_empty() {
        let unpacked = zstd_safe::find_frame_compressed_size(rest).ok().and_then(|length| {
            let (frame, after) = rest.split_at_checked(length)?;
            Some((zstd::bulk::decompress(frame, FRAME_BYTES_MAX).ok()?, after))
        });
        let remarks = unpacked.and_then(|(text, after)| {
            let remarks: Result<Vec<Remark>, _> =
                serde_json::Deserializer::from_slice(&text).into_iter().collect();
            Some((remarks.ok()?, after))
        });
        match remarks {
            Some((remarks, after)) => {
                remarks.into_iter().for_each(&mut take);
                rest = after;
            }
            None => {
                damaged += 1;
                let next = rest.get(1..).and_then(|rest| memchr::memmem::find(rest, &MAGIC));
                rest = next.and_then(|next| rest.get(next + 1..)).unwrap_or_default();
            }
        }
    }
    Ok(damaged)
}

/// Removes the remarks on these URLs.
///
/// # Errors
/// When the file cannot be read or written; it is then unchanged.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> Result<(), RemarksError> {
    let (path, mut kept, mut is_changed) = (archive.join(FILE), Vec::new(), false);
    each(archive, |remark| match urls.contains(&remark.url) {
        true => is_changed = true,
        false => kept.push(remark),
    })?;
    if !is_changed {
        return Ok(());
    }
    let write = || {
        let mut file = WholeFile::begin(&path)?;
        for remarks in kept.chunks(FRAME_MAX) {
            file.write_all(&frame(remarks)?)?;
        }
        file.commit()
    };
    write().map_err(RemarksError::at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(number: u64) -> Remark {
        Remark { url: format!("http://a.test/{number}"), what: SEED.to_owned(), captures: number }
    }

    fn read(archive: &Path) -> (Vec<Remark>, u64) {
        let mut read = Vec::new();
        let damaged = each(archive, |remark| read.push(remark)).unwrap();
        (read, damaged)
    }

    #[test]
    fn remarks_come_back_whatever_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path();
        assert_eq!(read(archive), (Vec::new(), 0));
        let many: Vec<Remark> = (0..FRAME_MAX as u64 + 1).map(remark).collect();
        add(archive, &many).unwrap();
        assert_eq!(read(archive), (many, 0));
        let path = archive.join(FILE);
        let bytes = std::fs::read(&path).unwrap();
        // The second frame is torn; what was added later is there.
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        add(archive, &[remark(9)]).unwrap();
        let (remarks, damaged) = read(archive);
        assert_eq!((remarks.len(), remarks.last(), damaged), (FRAME_MAX + 1, Some(&remark(9)), 1));
        // So is a flipped bit found.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(read(archive).1 >= 2);
    }

    #[test]
    fn what_is_forgotten_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), &[remark(1), remark(2)]).unwrap();
        forget(folder.path(), &HashSet::from([remark(1).url])).unwrap();
        assert_eq!(read(folder.path()), (vec![remark(2)], 0));
    }
}

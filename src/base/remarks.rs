//! What no record tells about URLs: which are seeds, why one is not fetched, and which announcements wait.
//!
//! The state has it too, but the state can be lost. So each checkpoint first adds what is new to `remarks.jsonl.zst` in
//! the archive's folder: a zstd frame with a checksum, of a line for each remark. `archive rebuild` reads them again. A
//! frame that is damaged, or that a crash cut off, is left out.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use archive_storage::CaptureId;
use archive_storage::backend::{OpenMode, open_regular};
use archive_storage::{State, StateError};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;
use zstd::zstd_safe;

use crate::files::{self, WholeFile};

/// Name of the file in the archive's folder.
pub const FILE: &str = "remarks.jsonl.zst";

/// Maximum length of the file; a longer one is refused.
const BYTES_MAX: u64 = 4 << 30;

/// Maximum number of remarks in a frame, and of bytes of what it unpacks to.
const FRAME_MAX: usize = 4096;
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Bytes of the file that are read at once for its checksum.
const PIECE_BYTES: usize = 1 << 20;

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
    pub fn is_overruled_by(&self, newest: Option<CaptureId>) -> bool {
        newest.is_some_and(|newest| u64::from(newest.0) >= self.captures)
    }
}

/// The setting with the [`RemarksMark`] of the file.
pub const SETTING: &str = "remarks";

/// Length and checksum of the file, by which a state knows its own file again, to which more may have been added since:
/// neither a shorter one, nor that of another archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemarksMark {
    bytes: u64,
    xxh3: u64,
}

impl RemarksMark {
    /// Notes it in a state, from the next checkpoint on.
    ///
    /// # Errors
    /// When the state cannot be changed.
    pub fn keep(self, state: &mut State) -> Result<(), StateError> {
        // Two numbers are always JSON.
        state.set_setting(SETTING, Some(&serde_json::to_vec(&self).unwrap_or_default()))
    }

    /// The mark of the first bytes of a file.
    fn of(path: &Path, bytes: u64) -> io::Result<Self> {
        let (mut hasher, mut piece) = (Xxh3::new(), vec![0; PIECE_BYTES]);
        let (mut file, mut read) = (open_regular(path, OpenMode::Read)?.take(bytes), 0);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(Self { bytes: read, xxh3: hasher.digest() }),
                count => {
                    hasher.update(piece.split_at(count).0);
                    read += count as u64;
                }
            }
        }
    }
}

/// Returns what is wrong with the remarks of an archive whose state this is.
#[must_use]
pub fn damage(archive: &Path, state: &State) -> Option<String> {
    match each(archive, |_| ()) {
        Err(error) => return Some(error.to_string()),
        Ok(0) => {}
        Ok(damaged) => return Some(format!("{FILE}: {damaged} parts cannot be read")),
    }
    let mark = serde_json::from_slice::<RemarksMark>(state.setting(SETTING)?).ok();
    let is_other =
        mark.is_none_or(|mark| RemarksMark::of(&archive.join(FILE), mark.bytes).ok() != Some(mark));
    is_other.then(|| format!("{FILE} is missing, incomplete, or of another archive"))
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
    pub fn is_disk_full(&self) -> bool {
        self.source.kind() == io::ErrorKind::StorageFull
    }

    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// Adds remarks durably; returns the mark of the file unless there are none.
///
/// # Errors
/// When the file cannot be written.
pub fn add(archive: &Path, remarks: &[Remark]) -> Result<Option<RemarksMark>, RemarksError> {
    if remarks.is_empty() {
        return Ok(None);
    }
    let path = archive.join(FILE);
    let write = || {
        let mut file = open_regular(&path, OpenMode::Create)?;
        file.seek(SeekFrom::End(0))?;
        for remarks in remarks.chunks(FRAME_MAX) {
            file.write_all(&frame(remarks)?)?;
        }
        file.sync_all()
    };
    write().map_err(RemarksError::at(&path))?;
    mark(archive)
}

/// Returns the mark of the file; `None` if there is none.
///
/// # Errors
/// When the file cannot be read.
pub fn mark(archive: &Path) -> Result<Option<RemarksMark>, RemarksError> {
    let path = archive.join(FILE);
    files::if_there(RemarksMark::of(&path, BYTES_MAX)).map_err(RemarksError::at(&path))
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

/// Removes the remarks on these URLs; returns the new mark of the file if there were any.
///
/// # Errors
/// When the file cannot be read or written; it is then unchanged.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> Result<Option<RemarksMark>, RemarksError> {
    let (mut kept, mut is_changed) = (Vec::new(), false);
    each(archive, |remark| match urls.contains(&remark.url) {
        true => is_changed = true,
        false => kept.push(remark),
    })?;
    if is_changed { replace(archive, &kept) } else { Ok(None) }
}

/// Replaces all remarks; returns the mark of the file.
///
/// # Errors
/// When the file cannot be written; it is then unchanged.
pub fn replace(archive: &Path, kept: &[Remark]) -> Result<Option<RemarksMark>, RemarksError> {
    let path = archive.join(FILE);
    let write = || {
        let mut file = WholeFile::begin(&path)?;
        for remarks in kept.chunks(FRAME_MAX) {
            file.write_all(&frame(remarks)?)?;
        }
        file.commit()
    };
    write().map_err(RemarksError::at(&path))?;
    mark(archive)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_storage::StateMode;
    use archive_storage::backend::RealDisk;

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
    fn a_state_knows_its_own_file_again_and_no_other() {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (archive, path) = (folder.path(), folder.path().join(FILE));
        let mut state = State::open(Arc::new(RealDisk), state.path(), StateMode::Own).unwrap();
        assert_eq!(damage(archive, &state), None, "none was ever made");
        add(archive, &[remark(1)]).unwrap();
        let mark = add(archive, &[remark(2)]).unwrap().unwrap();
        mark.keep(&mut state).unwrap();
        assert_eq!(damage(archive, &state), None);
        let own = std::fs::read(&path).unwrap();
        // What a crash kept out of the state is in the file already.
        add(archive, &[remark(3)]).unwrap();
        assert_eq!(damage(archive, &state), None);
        let first = add(tempfile::tempdir().unwrap().path(), &[remark(1)]).unwrap().unwrap();
        for other in [&own[..first.bytes as usize], &[]] {
            std::fs::write(&path, other).unwrap();
            assert!(damage(archive, &state).unwrap().contains("incomplete"));
        }
        replace(archive, &[remark(4), remark(2)]).unwrap();
        assert!(damage(archive, &state).is_some());
        std::fs::remove_file(&path).unwrap();
        assert!(damage(archive, &state).is_some());
    }

    #[test]
    fn what_is_forgotten_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), &[remark(1), remark(2)]).unwrap();
        forget(folder.path(), &HashSet::from([remark(1).url])).unwrap();
        assert_eq!(read(folder.path()), (vec![remark(2)], 0));
    }
}

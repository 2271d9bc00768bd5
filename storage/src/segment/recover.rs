//! What opening does after a crash, and what closing a segment and recovering one have in common.
//!
//! A crash can leave the newest segment with groups that were never synced: cut short, or with sectors of old or no
//! content in between. All that was acknowledged lies before the first such place. So the file is cut there; if whole
//! groups lie behind it, what is cut off is kept in a file of its own, because then it might be damage of another kind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::codec::Codec;
use super::dictionary::{self, Dictionary};
use super::error::{Context, SegmentError};
use super::guard::Guard;
use super::index::{Index, IndexFacts};
use super::ledger::{self, SegmentInfo};
use super::name::SegmentName;
use super::replay::{Assembler, ReplayedCapture, Seen};
use crate::backend::{Disk, DiskFile, FileReader, OpenMode, read_exact_at};
use crate::digest::Digest;
use crate::ids::{SegmentId, Watermark};
use crate::warc::{Broken, ReadError, Record, RecordReader};

/// A place in a segment that is not as it was written, before the watermark that the archive relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Bytes before it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// What was done about a segment that had not been closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The segment.
    pub segment: SegmentId,
    /// Its file name now.
    pub name: String,
    /// Whole captures in it.
    pub captures: u64,
    /// Bytes that belonged to no whole capture and were cut off.
    pub cut_bytes: u64,
    /// The file that keeps what was cut off, if whole captures were in it.
    pub kept_as: Option<String>,
    /// Damage that was left as it is, because the archive relies on what lies behind it.
    pub damage: Vec<Damage>,
}

type Closed = BTreeMap<SegmentId, SegmentInfo>;

/// Brings every segment into the closed state and gives back what is known of them.
pub(super) fn recover(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    relied_on: Watermark,
    guard: Guard,
) -> Result<(Closed, Vec<Recovered>), SegmentError> {
    let known = ledger::summaries(disk.as_ref(), folder)?;
    let mut closed = Closed::new();
    let mut open = Vec::new();
    for entry in disk.list(folder).context("list", folder)? {
        let Some(name) = SegmentName::parse(&entry.name) else { continue };
        if name.is_open {
            open.push(name);
        } else {
            let same = |info: &&SegmentInfo| info.name == entry.name && info.bytes == entry.length;
            let info = match known.get(&name.id).filter(same) {
                Some(info) => info.clone(),
                None => describe(disk, folder, &name)?,
            };
            closed.insert(name.id, info);
        }
    }
    let mut recovered = Vec::new();
    for name in open {
        recovered.extend(recover_one(disk, folder, &name, (relied_on, guard), &mut closed)?);
    }
    if known != closed {
        ledger::save(disk.as_ref(), folder, &closed)?;
    }
    Ok((closed, recovered))
}

/// The records of a segment: those that have a frame or member of their own, as all have that we write.
struct Records<R>(RecordReader<R>);

impl<R: std::io::Read> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.0.next()? {
            Ok(record) if record.length == 0 => record,
            other => return Some(other),
        };
        let what = "the bytes behind the record are not line ends".into();
        Some(Err(
            Box::new(Broken { offset: record.offset, what, header: None, content: record.content }).into()
        ))
    }
}

/// What a scan of a segment found.
struct Scan {
    info: SegmentInfo,
    index: Index,
    /// Behind the last whole group before anything broken.
    good_end: u64,
    /// Whether whole groups follow behind `good_end`.
    continues: bool,
    broken: Vec<Broken>,
}

fn scan(file: &Arc<dyn DiskFile>, name: &SegmentName, path: &Path) -> Result<Scan, SegmentError> {
    let mut info = SegmentInfo::new(name.id, name.closed());
    let mut index = Index::new(name.closed());
    let mut assembler = Assembler::default();
    let mut broken = Vec::new();
    let (mut good_end, mut continues, mut pending) = (0, false, 0);
    for record in Records(RecordReader::new(FileReader::new(file.clone(), 0))) {
        let record = match record {
            Ok(record) => record,
            Err(ReadError::Io(error)) => return Err(error).context("read", path),
            Err(ReadError::Broken(place)) => {
                assembler.interrupt();
                broken.push(*place);
                continue;
            }
        };
        let end = record.offset + record.length;
        let plain_length = record.content.len() as u64;
        pending += 1;
        match assembler.take(name.id, record) {
            Seen::Capture(capture) => {
                info.count(capture.time, pending, plain_length);
                if let Some(facts) = IndexFacts::of(&capture) {
                    index.add(&capture.url, capture.time, &facts, capture.payload_digest, capture.main);
                }
                pending = 0;
                if broken.is_empty() {
                    good_end = end;
                } else {
                    continues = true;
                }
            }
            Seen::Warcinfo => {
                info.records += 1;
                pending = 0;
                if broken.is_empty() {
                    good_end = end;
                }
            }
            Seen::Part | Seen::Stray => {}
        }
    }
    Ok(Scan { info, index, good_end, continues, broken })
}

/// Describes a closed segment of which nothing is written down.
fn describe(disk: &Arc<dyn Disk>, folder: &Path, name: &SegmentName) -> Result<SegmentInfo, SegmentError> {
    let path = folder.join(name.to_string());
    let file = disk.open(&path, OpenMode::Read).context("open", &path)?;
    let scan = scan(&file, name, &path)?;
    let mut info = scan.info;
    complete(&mut info, &file, &path)?;
    scan.index.save(disk.as_ref(), folder)?;
    Ok(info)
}

/// Fills in what closing adds.
fn complete(info: &mut SegmentInfo, file: &Arc<dyn DiskFile>, path: &Path) -> Result<(), SegmentError> {
    info.bytes = file.len().context("read", path)?;
    info.is_open = false;
    info.dictionary = dictionary::read(file.as_ref(), info.id, path)?.as_ref().map(Dictionary::digest);
    info.sha256 = Some(sha256(file.as_ref(), info.bytes).context("read", path)?);
    Ok(())
}

pub(super) fn sha256(file: &dyn DiskFile, length: u64) -> std::io::Result<Digest> {
    let (mut hasher, mut buffer, mut offset) = (Sha256::new(), vec![0; 1 << 20], 0);
    while offset < length {
        let count = usize::try_from(length - offset).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.split_at_mut(count).0;
        read_exact_at(file, piece, offset)?;
        hasher.update(&*piece);
        offset += count as u64;
    }
    Ok(Digest::from_sha256(hasher.finalize().into()))
}

fn recover_one(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    name: &SegmentName,
    (relied_on, guard): (Watermark, Guard),
    closed: &mut Closed,
) -> Result<Option<Recovered>, SegmentError> {
    let path = folder.join(name.to_string());
    let file = disk.open(&path, OpenMode::Write).context("open", &path)?;
    let scan = scan(&file, name, &path)?;
    let length = file.len().context("read", &path)?;
    let relied_length = match name.id.cmp(&relied_on.segment) {
        std::cmp::Ordering::Less => u64::MAX,
        std::cmp::Ordering::Equal => relied_on.offset,
        std::cmp::Ordering::Greater => 0,
    };
    if scan.info.captures == 0 && relied_length == 0 {
        // Nothing was ever promised of this file.
        disk.remove(&path).context("remove", &path)?;
        disk.sync_dir(folder).context("sync", folder)?;
        return Ok(None);
    }
    let mut recovered = Recovered {
        segment: name.id,
        name: name.closed().to_owned(),
        captures: scan.info.captures,
        cut_bytes: 0,
        kept_as: None,
        damage: Vec::new(),
    };
    let (mut info, mut index) = (scan.info, scan.index);
    if scan.good_end < relied_length.min(length) {
        recovered.damage =
            scan.broken.into_iter().map(|place| Damage { offset: place.offset, what: place.what }).collect();
    } else {
        if scan.continues {
            recovered.kept_as =
                Some(keep(disk.as_ref(), folder, name, file.as_ref(), scan.good_end..length)?);
        }
        file.set_len(scan.good_end).context("cut", &path)?;
        if scan.continues {
            let rest = self::scan(&file, name, &path)?;
            (info, index) = (rest.info, rest.index);
            recovered.captures = info.captures;
        }
        let tail = dictionary::read(file.as_ref(), name.id, &path)?
            .as_ref()
            .map(|dictionary| dictionary.last_frame(guard))
            .unwrap_or_default();
        rewrite(file.as_ref(), relied_length..scan.good_end).context("write", &path)?;
        file.write_at(&tail, scan.good_end).context("write", &path)?;
        recovered.cut_bytes = length.saturating_sub(scan.good_end + tail.len() as u64);
        file.sync().context("sync", &path)?;
    }
    complete(&mut info, &file, &path)?;
    seal(disk.as_ref(), folder, name, &info, &index, closed)?;
    Ok(Some(recovered))
}

/// Writes a stretch of a file over itself.
///
/// If a sync of it failed while the machine went on, the system may still show bytes that it gave up writing, and another
/// sync would not write them either. Written again, they are.
fn rewrite(file: &dyn DiskFile, range: std::ops::Range<u64>) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = range.start;
    while offset < range.end {
        let count = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.split_at_mut(count).0;
        read_exact_at(file, piece, offset)?;
        file.write_at(piece, offset)?;
        offset += count as u64;
    }
    Ok(())
}

/// Copies a stretch of a segment into a file of its own.
fn keep(
    disk: &dyn Disk,
    folder: &Path,
    name: &SegmentName,
    file: &dyn DiskFile,
    range: std::ops::Range<u64>,
) -> Result<String, SegmentError> {
    let copy_name = format!("{}.cut-{}", name.closed(), range.start);
    let path = folder.join(&copy_name);
    let copy = disk.open(&path, OpenMode::Create).context("create", &path)?;
    copy.set_len(0).context("write", &path)?;
    // A cut-off piece of a zstd segment can only be read with the dictionary in front of it.
    let mut length = 0;
    if name.codec == Codec::Zstd
        && let Some(dictionary) = dictionary::read(file, name.id, &path)?
    {
        let frame = dictionary.first_frame();
        copy.write_at(&frame, 0).context("write", &path)?;
        length = frame.len() as u64;
    }
    let mut buffer = vec![0; 1 << 20];
    let mut offset = range.start;
    while offset < range.end {
        let count = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.split_at_mut(count).0;
        read_exact_at(file, piece, offset).context("read", &path)?;
        copy.write_at(piece, length + offset - range.start).context("write", &path)?;
        offset += count as u64;
    }
    copy.sync().context("sync", &path)?;
    disk.sync_dir(folder).context("sync", folder)?;
    Ok(copy_name)
}

/// Makes a complete, synced segment immutable: writes its index, notes what is in it, and takes the suffix off its name.
fn seal(
    disk: &dyn Disk,
    folder: &Path,
    name: &SegmentName,
    info: &SegmentInfo,
    index: &Index,
    closed: &mut Closed,
) -> Result<(), SegmentError> {
    describe_closed(disk, folder, info, index, closed)?;
    rename_closed(disk, folder, name)?;
    closed.insert(info.id, info.clone());
    Ok(())
}

/// Writes a segment's index and notes what is in it, before it gets its final name: a segment of that name has both.
pub(super) fn describe_closed(
    disk: &dyn Disk,
    folder: &Path,
    info: &SegmentInfo,
    index: &Index,
    closed: &Closed,
) -> Result<(), SegmentError> {
    index.save(disk, folder)?;
    let mut with_this = closed.clone();
    with_this.insert(info.id, info.clone());
    ledger::save(disk, folder, &with_this)
}

/// Gives a segment its final name. From the first step on it must not be written to any more, whether this succeeds or
/// not: the name may be in place, and a segment of that name is never recovered.
pub(super) fn rename_closed(disk: &dyn Disk, folder: &Path, name: &SegmentName) -> Result<(), SegmentError> {
    let (open, target) = (folder.join(name.open()), folder.join(name.closed()));
    disk.rename(&open, &target).context("rename", &open)?;
    disk.sync_dir(folder).context("sync", folder)
}

/// Gives back the captures of a segment behind a position in it, and says what had to be passed over.
pub(super) fn replay(
    file: Arc<dyn DiskFile>,
    from: Watermark,
    path: &Path,
    found: &mut dyn FnMut(ReplayedCapture),
) -> Result<Vec<Broken>, SegmentError> {
    let (mut assembler, mut broken) = (Assembler::default(), Vec::new());
    for record in records(file, from, path)? {
        match record {
            Ok(record) => {
                if let Seen::Capture(capture) = assembler.take(from.segment, record) {
                    found(*capture);
                }
            }
            Err(ReadError::Io(error)) => return Err(error).context("read", path),
            Err(ReadError::Broken(place)) => {
                assembler.interrupt();
                broken.push(*place);
            }
        }
    }
    Ok(broken)
}

/// The records of a segment behind a position in it.
pub(super) fn records(
    file: Arc<dyn DiskFile>,
    from: Watermark,
    path: &Path,
) -> Result<impl Iterator<Item = Result<Record, ReadError>> + use<>, SegmentError> {
    // Both copies of the dictionary are tried; reading then starts behind the first.
    let records = match dictionary::load(file.as_ref(), from.segment, path)? {
        None if from.offset == 0 => RecordReader::new(FileReader::new(file, 0)),
        loaded => {
            let (dictionary, first_frame) = loaded.unzip();
            let offset = from.offset.max(first_frame.unwrap_or_default());
            let dictionary = dictionary.map(|dictionary| dictionary.as_bytes().to_vec());
            RecordReader::resumed(FileReader::new(file, offset), offset, dictionary)
        }
    };
    Ok(Records(records))
}

//! Recovery after a crash, and the steps that it shares with closing a segment.
//!
//! A crash can leave open segments with groups that were never synced: truncated, or with sectors of old or no content
//! in between. One segment may also have kept captures appended after some that another segment lost. Everything
//! acknowledged lies before the first such place, so each file is cut there. If complete groups follow the cut, the
//! part cut off is kept in its own file, because then it might be damage of another kind.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::codec::{Codec, SpoolingError};
use super::dictionary;
use super::error::{IoContext, SegmentError};
use super::guard::Guard;
use super::index::{self, IndexFacts, SegmentIndex};
use super::ledger::{self, Closed, SegmentInfo};
use super::name::SegmentName;
use super::options::SegmentOptions;
use super::order::{CaptureStream, StreamItem};
use super::quarantine;
use super::statements::SegmentStatements;
use crate::backend::{Disk, DiskFile, OpenMode, PIECE_BYTES, pieces};
use crate::digest::Digest;
use crate::ids::{SegmentId, Watermarks};
use crate::warc::Broken;

/// A damaged place before the watermark that the archive relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the damage.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// Report on the recovery of an open segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The segment.
    pub segment: SegmentId,
    /// Its file name after recovery.
    pub name: String,
    /// Number of complete captures in it.
    pub captures: u64,
    /// Bytes cut off because they belonged to no complete capture.
    pub cut_bytes: u64,
    /// The file with the part that was cut off, if that contained complete captures.
    pub kept_as: Option<String>,
    /// Damage left unchanged, because the archive relies on what follows it.
    pub damage: Vec<Damage>,
}

/// Result of recovery.
pub(super) struct Segmented {
    /// All segments that are present; every one is closed now.
    pub closed: Closed,
    /// Segments that were closed once but whose files are gone.
    pub missing: Closed,
    /// Reports on the segments that were open.
    pub recovered: Vec<Recovered>,
}

/// Closes every open segment of an archive, and returns the summaries of all segments.
pub(super) fn recover(
    disk: &Arc<dyn Disk>,
    archive: &Path,
    options: &SegmentOptions,
) -> Result<Segmented, SegmentError> {
    let (folder, relied_on) = (&archive.join(super::FOLDER), &options.relied_on);
    let stated = SegmentStatements::read(disk.as_ref(), folder, &options.catalogue)?;
    let entries = disk.list(folder).context("list", folder)?;
    let files: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let (names, strays) = segments(entries.iter().map(|entry| entry.name.as_str()), &stated);
    remove_old_names(disk.as_ref(), folder, &strays)?;
    let (mut closed, mut open) = (Closed::new(), Vec::new());
    // Default for segments that state no number: each is taken to follow the previous one.
    let mut captures = 0;
    for name in &names {
        if name.is_open {
            let found = UnclosedSegment::scan(disk.as_ref(), folder, name.clone(), captures)?;
            captures = captures.max(found.scan.info.captures_until);
            open.push(found);
            continue;
        }
        let has_index = files.contains(index::file_of(name.closed()).as_str());
        let info = match stated.summaries.get(name.closed()).filter(|_| has_index) {
            Some(info) if stated.agrees(name.closed()) => info.clone(),
            summary => describe(disk, folder, name, captures, &stated, summary)?,
        };
        captures = captures.max(info.captures_until);
        closed.insert(name.id, info);
    }
    let mut missing = stated.missing(&names.iter().map(|name| name.closed().to_owned()).collect());
    let put_aside = quarantine::put_aside(disk.as_ref(), archive)?.0;
    missing.retain(|_, info| !put_aside.iter().any(|entry| entry.segment == info.name));
    let guard = ledger::guard(options.guard, &closed);
    let limit = first_lost(&open, &closed, relied_on);
    // All segments become durable before the first is closed for good: it may hold captures that follow those in
    // another.
    let mut recovered = Vec::new();
    let mut cut = Vec::new();
    for found in open {
        let (report, rest) = found.cut(disk.as_ref(), folder, (relied_on, guard, limit))?;
        recovered.extend(report);
        cut.extend(rest);
    }
    for UnclosedSegment { name, path, file, mut scan, .. } in cut {
        complete(&mut scan.info, &file, &path)?;
        describe_closed(disk.as_ref(), folder, &mut scan.info, &scan.index, closed.iter().chain(&missing))?;
        rename_closed(disk.as_ref(), folder, &name)?;
        closed.insert(scan.info.id, scan.info);
    }
    ledger::save(disk.as_ref(), folder, &joined(closed.iter().chain(&missing)))?;
    Ok(Segmented { closed, missing, recovered })
}

/// Returns the segments among the files of a folder, ordered by id, and the stray files that have the id of another
/// segment.
pub(super) fn segments<'a>(
    files: impl Iterator<Item = &'a str>,
    stated: &SegmentStatements,
) -> (Vec<SegmentName>, Vec<SegmentName>) {
    let mut names: Vec<SegmentName> = files.filter_map(SegmentName::parse).collect();
    names.sort_by_key(|name| (name.id, !stated.knows(name.closed())));
    let (mut kept, mut strays): (Vec<SegmentName>, Vec<SegmentName>) = Default::default();
    for name in names {
        let is_second = kept.last().is_some_and(|last| last.id == name.id);
        if is_second { strays.push(name) } else { kept.push(name) }
    }
    (kept, strays)
}

/// Removes the open names of closed segments: a file system that journals the two halves of a rename separately may
/// show both after a crash. A file that differs from the closed one stays, and [`super::inspect`] reports it.
fn remove_old_names(disk: &dyn Disk, folder: &Path, strays: &[SegmentName]) -> Result<(), SegmentError> {
    for name in strays.iter().filter(|name| name.is_open) {
        let (open, closed) = (folder.join(name.open()), folder.join(name.closed()));
        let is_closed = disk.exists(&closed).context("look for", &closed)?;
        if is_closed && digest_of(disk, &open)? == digest_of(disk, &closed)? {
            disk.remove(&open).context("remove", &open)?;
            disk.sync_dir(folder).context("sync", folder)?;
        }
    }
    Ok(())
}

fn digest_of(disk: &dyn Disk, path: &Path) -> Result<Digest, SegmentError> {
    let file = disk.open(path, OpenMode::Read).context("open", path)?;
    let length = file.len().context("read", path)?;
    sha256(file.as_ref(), length).context("read", path)
}

/// Collects summaries into one map.
fn joined<'a>(parts: impl Iterator<Item = (&'a SegmentId, &'a SegmentInfo)>) -> Closed {
    parts.map(|(id, info)| (*id, info.clone())).collect()
}

/// Returns the number of the first lost capture; captures appended after it are not kept either.
fn first_lost(open: &[UnclosedSegment], closed: &Closed, relied_on: &Watermarks) -> u64 {
    // A crash does not cause such damage, so nothing is cut off because of it.
    if open.iter().any(|found| found.scan.good_end < found.relied_length(relied_on).min(found.length)) {
        return u64::MAX;
    }
    // When a segment is created or closed, everything before it is durable.
    let begun = open.iter().map(|found| found.scan.info.captures_before);
    let ended = closed.values().map(|info| info.captures_until);
    let mut number = begun.chain(ended).max().unwrap_or_default().max(relied_on.captures);
    let kept = open.iter().flat_map(|found| &found.scan.ends).map(|(number, _)| *number);
    let kept: BTreeSet<u64> = kept.filter(|kept| *kept >= number).collect();
    for kept in kept {
        if kept != number {
            break;
        }
        number += 1;
    }
    number
}

/// Result of scanning a segment.
struct SegmentScan {
    info: SegmentInfo,
    index: SegmentIndex,
    /// Offset of the first group.
    start: u64,
    /// Numbers of the complete groups before any damage, and the offsets of their ends.
    ends: Vec<(u64, u64)>,
    /// Offset after the last complete group before any damage.
    good_end: u64,
    /// Whether complete groups follow after `good_end`.
    continues: bool,
    broken: Vec<Broken>,
}

fn scan(
    file: &Arc<dyn DiskFile>,
    name: &SegmentName,
    path: &Path,
    captures_before: u64,
) -> Result<SegmentScan, SegmentError> {
    let mut stream = CaptureStream::whole(file.clone(), name.id, path, captures_before);
    let mut scan = SegmentScan {
        info: SegmentInfo::new(name.id, name.closed(), captures_before),
        index: SegmentIndex::new(name.closed()),
        start: 0,
        ends: Vec::new(),
        good_end: 0,
        continues: false,
        broken: Vec::new(),
    };
    while let Some(found) = stream.next()? {
        match found {
            StreamItem::Broken(place) => scan.broken.push(*place),
            StreamItem::Capture { number, records, plain_bytes, capture, .. } => {
                scan.info.count(number, capture.time, records, plain_bytes);
                if let Some(facts) = IndexFacts::of(&capture) {
                    let digest = capture.payload_digest;
                    scan.index.add(
                        (&capture.url, capture.request.as_ref()),
                        capture.time,
                        &facts,
                        digest,
                        capture.main,
                    );
                }
                if scan.broken.is_empty() {
                    scan.good_end = capture.end.offset;
                    scan.ends.push((number, capture.end.offset));
                } else {
                    scan.continues = true;
                }
            }
            StreamItem::Warcinfo { end, .. } => {
                scan.info.records += 1;
                if scan.info.captures == 0 {
                    (scan.info.captures_before, scan.info.captures_until) =
                        (stream.number(), stream.number());
                    scan.start = end;
                }
                if scan.broken.is_empty() {
                    scan.good_end = end;
                }
            }
        }
    }
    Ok(scan)
}

/// A segment that was not closed.
struct UnclosedSegment {
    name: SegmentName,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    length: u64,
    scan: SegmentScan,
}

/// Describes a closed segment whose entries are incomplete or contradict each other. If it has a summary and an index,
/// only its digest is in doubt.
fn describe(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    name: &SegmentName,
    captures_before: u64,
    stated: &SegmentStatements,
    summary: Option<&SegmentInfo>,
) -> Result<SegmentInfo, SegmentError> {
    let path = folder.join(name.to_string());
    let found = digest_of(disk.as_ref(), &path)?;
    let sha256 = Some(stated.digest(name.closed(), found));
    if let Some(summary) = summary {
        return Ok(SegmentInfo { sha256, ..summary.clone() });
    }
    let file = disk.open(&path, OpenMode::Read).context("open", &path)?;
    let mut scan = scan(&file, name, &path, captures_before)?;
    let index = Some(scan.index.save(disk.as_ref(), folder)?);
    // The remaining contents of a damaged segment do not replace what its summary states.
    if let Some(known) = stated.summaries.get(name.closed()) {
        return Ok(SegmentInfo { sha256, index, ..known.clone() });
    }
    complete(&mut scan.info, &file, &path)?;
    Ok(SegmentInfo { sha256, index, ..scan.info })
}

/// Sets the fields that are known once a segment is closed.
fn complete(info: &mut SegmentInfo, file: &Arc<dyn DiskFile>, path: &Path) -> Result<(), SegmentError> {
    info.bytes = file.len().context("read", path)?;
    info.is_open = false;
    let dictionary = dictionary::load_if_whole(file.as_ref(), info.id, path)?;
    info.dictionary = dictionary.map(|(dictionary, _)| dictionary.digest());
    info.guard = dictionary::guard_of(file.as_ref(), path)?.filter(|_| info.dictionary.is_some());
    info.sha256 = Some(sha256(file.as_ref(), info.bytes).context("read", path)?);
    Ok(())
}

pub(super) fn sha256(file: &dyn DiskFile, length: u64) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    pieces(file, 0..length, PIECE_BYTES, |piece, _| {
        hasher.update(piece);
        io::Result::Ok(())
    })?;
    Ok(Digest::from_sha256(hasher.finalize().into()))
}

impl UnclosedSegment {
    fn scan(
        disk: &dyn Disk,
        folder: &Path,
        name: SegmentName,
        captures_before: u64,
    ) -> Result<Self, SegmentError> {
        let path = folder.join(name.to_string());
        let file = disk.open(&path, OpenMode::Write).context("open", &path)?;
        let scan = scan(&file, &name, &path, captures_before)?;
        let length = file.len().context("read", &path)?;
        Ok(Self { name, path, file, length, scan })
    }

    fn relied_length(&self, relied_on: &Watermarks) -> u64 {
        relied_on.of(self.name.id).unwrap_or(u64::MAX)
    }

    /// Cuts off unreadable bytes and the captures from number `limit` on, and makes the rest durable. Removes a segment
    /// with nothing left if nothing in it was ever acknowledged.
    fn cut(
        mut self,
        disk: &dyn Disk,
        folder: &Path,
        (relied_on, guard, limit): (&Watermarks, Guard, u64),
    ) -> Result<(Option<Recovered>, Option<Self>), SegmentError> {
        let relied_length = self.relied_length(relied_on);
        let (name, path, file, scan) = (&self.name, &self.path, &self.file, &mut self.scan);
        let mut recovered = Recovered {
            segment: name.id,
            name: name.closed().to_owned(),
            captures: scan.info.captures,
            cut_bytes: 0,
            kept_as: None,
            damage: Vec::new(),
        };
        if scan.good_end < relied_length.min(self.length) {
            let broken = std::mem::take(&mut scan.broken).into_iter();
            recovered.damage =
                broken.map(|place| Damage { offset: place.offset, what: place.what }).collect();
            return Ok((Some(recovered), Some(self)));
        }
        let kept = scan.ends.iter().rev().find(|(number, _)| *number < limit).copied();
        let end = if scan.ends.is_empty() {
            scan.good_end
        } else {
            kept.map_or(scan.start, |(_, end)| end).max(relied_length.min(scan.good_end))
        };
        let continues = scan.continues || end < scan.good_end;
        if continues {
            recovered.kept_as = Some(keep(disk, folder, name, file.as_ref(), end..self.length)?);
        }
        if relied_length == 0 && (continues || scan.info.captures == 0) && kept.is_none() {
            disk.remove(path).context("remove", path)?;
            disk.sync_dir(folder).context("sync", folder)?;
            recovered.captures = 0;
            return Ok((Some(recovered).filter(|recovered| recovered.kept_as.is_some()), None));
        }
        file.set_len(end).context("cut", path)?;
        if continues {
            *scan = self::scan(file, name, path, scan.info.captures_before)?;
            recovered.captures = scan.info.captures;
        }
        let tail = dictionary::load_if_whole(file.as_ref(), name.id, path)?
            .map(|(dictionary, _)| dictionary.last_frames(guard))
            .transpose()?
            .unwrap_or_default();
        rewrite(file.as_ref(), relied_length..end).context("write", path)?;
        file.write_at(&tail, end).context("write", path)?;
        recovered.cut_bytes = self.length.saturating_sub(end + tail.len() as u64);
        file.sync().context("sync", path)?;
        Ok((Some(recovered), Some(self)))
    }
}

/// Overwrites a stretch of a file with its own bytes.
///
/// If a sync failed while the machine kept running, the system may still show bytes that it gave up writing, and
/// another sync would not write them either. Writing them again does.
fn rewrite(file: &dyn DiskFile, range: Range<u64>) -> io::Result<()> {
    pieces(file, range, PIECE_BYTES, |piece, offset| file.write_at(piece, offset))
}

/// Copies a stretch of a segment into its own file.
fn keep(
    disk: &dyn Disk,
    folder: &Path,
    name: &SegmentName,
    file: &dyn DiskFile,
    range: Range<u64>,
) -> Result<String, SegmentError> {
    let start = range.start;
    let copy_name = format!("{}.cut-{start}", name.closed());
    let path = folder.join(&copy_name);
    let copy = disk.open(&path, OpenMode::Create).context("create", &path)?;
    copy.set_len(0).context("write", &path)?;
    // A piece of a zstd segment can only be read with the dictionary in front of it.
    let mut length = 0;
    if name.codec == Codec::Zstd
        && let Some((dictionary, _)) = dictionary::load_if_whole(file, name.id, &path)?
    {
        let frame = dictionary.first_frame();
        copy.write_at(&frame, 0).context("write", &path)?;
        length = frame.len() as u64;
    }
    let copied = pieces(file, range, PIECE_BYTES, |piece, offset| {
        let written = copy.write_at(piece, length + offset - start).context("write", &path);
        written.map_err(SpoolingError::from)
    });
    copied.map_err(|error| error.at("read", &path))?;
    copy.sync().context("sync", &path)?;
    disk.sync_dir(folder).context("sync", folder)?;
    Ok(copy_name)
}

/// Writes the index of a complete, synced segment and adds it to the lists before it gets its final name: a segment
/// with that name has both.
pub(super) fn describe_closed<'a>(
    disk: &dyn Disk,
    folder: &Path,
    info: &mut SegmentInfo,
    index: &SegmentIndex,
    others: impl Iterator<Item = (&'a SegmentId, &'a SegmentInfo)>,
) -> Result<(), SegmentError> {
    info.index = Some(index.save(disk, folder)?);
    let mut with_this = joined(others);
    with_this.insert(info.id, info.clone());
    ledger::save(disk, folder, &with_this)
}

/// Gives a segment its final name. It must not be written to any more, even if this fails: the name may be in place,
/// and a segment with a final name is never recovered.
pub(super) fn rename_closed(disk: &dyn Disk, folder: &Path, name: &SegmentName) -> Result<(), SegmentError> {
    let (open, target) = (folder.join(name.open()), folder.join(name.closed()));
    disk.rename(&open, &target).context("rename", &open)?;
    disk.sync_dir(folder).context("sync", folder)
}

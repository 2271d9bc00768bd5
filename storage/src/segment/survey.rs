//! What is in a closed segment, read from its bytes alone: for whoever proves or repairs an archive.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::append::Segments;
use super::error::{Context, SegmentError};
use super::name::SegmentName;
use super::replay::ReplayedCapture;
use super::{dictionary, recover};
use crate::backend::{Disk, DiskFile, OpenMode, RealDisk, read_exact_at};
use crate::digest::Digest;
use crate::ids::{SegmentId, Watermark};
use crate::warc::{Broken, ReadError, Record};

/// Captures of one segment that are decoded ahead.
const AHEAD_MAX: usize = 64;

/// What a segment's file holds.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Bytes of the file.
    pub bytes: u64,
    /// The file's digest.
    pub sha256: Digest,
    /// Whole captures.
    pub captures: u64,
    /// Places that cannot be read.
    pub broken: Vec<Broken>,
}

/// The segments in an archive's folder by their ids, with their file names; also those that are still written to.
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
/// When the file cannot be read at all; what is wrong within it is part of the survey.
pub fn survey(archive: &Path, segment: SegmentId, file: &str) -> Result<Survey, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let opened = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    let bytes = opened.len().context("read", &path)?;
    let sha256 = recover::sha256(opened.as_ref(), bytes).context("read", &path)?;
    let mut captures = 0;
    let start = Watermark { segment, offset: 0 };
    let broken = match recover::replay(opened, start, &path, &mut |_| captures += 1) {
        Ok(broken) => broken,
        Err(SegmentError::Corrupted { offset, what, .. }) => {
            vec![Broken { offset, what, header: None, content: bytes::Bytes::new() }]
        }
        Err(error) => return Err(error),
    };
    Ok(Survey { bytes, sha256, captures, broken })
}

/// Makes a segment's damaged dictionary good from the guard at the file's end: writes the file anew to `target`, and says
/// whether it now has the digest it should have. Nothing is left at `target` if not.
///
/// # Errors
/// When the disk refuses.
pub fn restore(
    archive: &Path,
    segment: SegmentId,
    file: &str,
    sha256: Digest,
    target: &Path,
) -> Result<bool, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let source = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    let Ok(Some((dictionary, first_length))) = dictionary::load(source.as_ref(), segment, &path) else {
        return Ok(false);
    };
    let length = source.len().context("read", &path)?;
    let output = RealDisk.open(target, OpenMode::Create).context("create", target)?;
    output.set_len(0).context("write", target)?;
    output.write_at(&dictionary.first_frame(), 0).context("write", target)?;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = first_length;
    while offset < length {
        let count = usize::try_from(length - offset).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.split_at_mut(count).0;
        read_exact_at(source.as_ref(), piece, offset).context("read", &path)?;
        output.write_at(piece, offset).context("write", target)?;
        offset += count as u64;
    }
    output.sync().context("sync", target)?;
    let is_right = recover::sha256(output.as_ref(), length).context("read", target)? == sha256;
    if !is_right {
        RealDisk.remove(target).context("remove", target)?;
    }
    Ok(is_right)
}

/// The records of a segment as they are stored, from an offset on.
///
/// # Errors
/// When the segment cannot be opened or its dictionary cannot be read.
pub fn records(
    archive: &Path,
    segment: SegmentId,
    file: &str,
    offset: u64,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, SegmentError> {
    let path = archive.join(super::FOLDER).join(file);
    let opened: Arc<dyn DiskFile> = RealDisk.open(&path, OpenMode::Read).context("open", &path)?;
    recover::records(opened, Watermark { segment, offset }, &path)
}

impl Segments {
    /// As [`Segments::replay`], with segments decoded on several threads ahead of the caller's, which gets the captures in
    /// their order.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replay_on(
        &self,
        threads: usize,
        from: Watermark,
        found: &mut dyn FnMut(ReplayedCapture),
    ) -> Result<Vec<(SegmentId, Broken)>, SegmentError> {
        let starts: Vec<Watermark> = self.replay_starts(from);
        let channels: (Vec<_>, Vec<_>) = starts.iter().map(|_| sync_channel(AHEAD_MAX)).unzip();
        let (senders, receivers): (Vec<SyncSender<ReplayedCapture>>, Vec<Receiver<ReplayedCapture>>) =
            channels;
        let jobs: Vec<_> = starts.into_iter().zip(senders).map(|job| Mutex::new(Some(job))).collect();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let work = || {
                let mut broken = Vec::new();
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some((start, sender)) = super::read::locked(job).take() else { continue };
                    // Nobody listening any more means that the caller has failed: the rest is read for nothing.
                    let places = self.replay_segment(start, &mut |capture| drop(sender.send(capture)))?;
                    broken.extend(places.into_iter().map(|place| (start.segment, place)));
                }
                Ok(broken)
            };
            let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            for receiver in receivers {
                for capture in receiver {
                    found(capture);
                }
            }
            let mut broken = Vec::new();
            for worker in workers {
                broken.extend(worker.join().map_err(|_| SegmentError::Poisoned)??);
            }
            broken.sort_by_key(|(segment, place): &(SegmentId, Broken)| (*segment, place.offset));
            Ok(broken)
        })
    }
}

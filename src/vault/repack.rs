//! Rewrites closed segments: the same records in fewer bytes and fewer files.
//!
//! Closed segments are rewritten once, unless their records don't compress; what would get longer stays as it is. Small rewritten segments are rewritten
//! again together with new ones of similar size. Thus an hourly refresh leaves few files after a year, and each capture
//! is rewritten only a few times (as in log-structured merging: O'Neil et al., "The log-structured merge-tree", 1996).
//! Segments are taken in batches, oldest captures first. A batch needs disk space for its new segments in addition to
//! the old ones, and each batch replaces its own predecessors.

mod beside;

use std::thread;

use archive_base::control::Control;
use archive_storage::segment::{
    Author, Codec, HALVINGS_MAX, REWRITTEN_CAPTURES_MAX, ReplayedCapture, RewriteOptions, Rewritten,
    SegmentError, SegmentInfo,
};
use archive_storage::{SegmentId, Store, StoreError};
use serde::Serialize;

pub use beside::{Beside, PollResult};

/// A rewritten segment is rewritten again if it has at most this many times the bytes of the segments gathered so far.
const GATHERED_SHARE: u64 = 2;
/// Segments whose size is at least this percentage of their records before compression are left as they are.
const COMPRESSED_PERCENT_MAX: u64 = 90;
/// Segments of fewer bytes are gathered whatever they contain, if there are other segments.
const SMALL_BYTES: u64 = 8 << 20;
/// Bytes of memory per capture while its batch is rewritten: its locations, and the name of its page.
const CAPTURE_BYTES: u64 = 320;
/// Bytes of records for which one byte of memory holds samples.
const PLAIN_PER_BYTE: u64 = 16;
/// Bytes of memory per compressing thread: a compressor with a dictionary of 8 MiB, and records.
const THREAD_BYTES: usize = 64 << 20;

/// What to repack, and how.
#[derive(Debug, Clone)]
pub struct RepackOptions {
    /// Compression of new segments; by default that of the newest one.
    pub codec: Option<Codec>,
    /// Compression level.
    pub level: Option<i32>,
    /// Number of threads.
    pub threads: usize,
    /// Bytes of memory to use.
    pub memory: usize,
    /// Bytes on disk that new segments may take in addition to the old ones.
    pub room: u64,
    /// Also repack segments that were rewritten before.
    pub again: bool,
    /// Only estimate what would be gained.
    pub dry_run: bool,
}

impl Default for RepackOptions {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self {
            codec: None,
            level: None,
            threads,
            memory: 1 << 30,
            // A segment is closed when it is slightly longer than 1 GiB.
            room: 2 << 30,
            again: false,
            dry_run: false,
        }
    }
}

impl RepackOptions {
    /// Bytes of memory for the facts about the captures of a batch.
    fn planning(&self) -> u64 {
        // Additional threads need their own share.
        self.memory as u64 / if self.threads == 1 { 2 } else { 4 }
    }

    /// Largest number of bytes of records before compression in a batch of several segments; a single segment may have
    /// a few times as many.
    fn plain_max(&self) -> u64 {
        self.planning() * PLAIN_PER_BYTE
    }

    /// Returns how often the samples of this many bytes of records must be halved; `None` if more than `HALVINGS_MAX`
    /// times.
    fn halvings(&self, plain_bytes: u64) -> Option<u32> {
        (0..=HALVINGS_MAX).find(|halvings| plain_bytes >> halvings <= self.plain_max())
    }

    /// Options for rewriting a batch.
    fn rewriting(&self, batch: &RepackBatch) -> RewriteOptions {
        RewriteOptions {
            codec: self.codec,
            level: self.level,
            threads: self.threads.clamp(1, (self.memory / 4 / THREAD_BYTES).max(1)),
            dictionary_bytes: self.memory / if self.threads == 1 { 8 } else { 4 },
            halvings: self.halvings(batch.plain_bytes).unwrap_or(HALVINGS_MAX),
            to_shrink: true,
            ..RewriteOptions::default()
        }
    }
}

/// Segments that are rewritten together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepackBatch {
    /// The old segments.
    pub segments: Vec<SegmentId>,
    /// Number of their captures.
    pub captures: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of their records before compression.
    pub plain_bytes: u64,
}

/// The result of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repacked {
    /// Number of segments before and after.
    pub segments: (u64, u64),
    /// Bytes before and after.
    pub bytes: (u64, u64),
    /// Number of captures.
    pub captures: u64,
    /// Bytes of records before compression.
    pub plain_bytes: u64,
}

impl Repacked {
    fn of(batch: &RepackBatch, rewritten: &Rewritten) -> Self {
        let (before, bytes, is_left) = (batch.segments.len() as u64, rewritten.bytes(), rewritten.is_worse());
        Self {
            segments: (before, if is_left { before } else { rewritten.new_segments().len() as u64 }),
            bytes: if is_left { (bytes.0, bytes.0) } else { bytes },
            captures: rewritten.captures(),
            plain_bytes: rewritten.plain_bytes(),
        }
    }

    /// Adds the result of another batch.
    pub fn add(&mut self, other: &Self) {
        self.segments = (self.segments.0 + other.segments.0, self.segments.1 + other.segments.1);
        self.bytes = (self.bytes.0 + other.bytes.0, self.bytes.1 + other.bytes.1);
        self.captures += other.captures;
        self.plain_bytes += other.plain_bytes;
    }
}

/// What happens while segments are repacked.
#[derive(Clone, Copy, Debug)]
pub enum RepackEvent<'a> {
    /// So many bytes of records, before compression, were written since this was told last.
    Written(u64),
    /// A batch is in place, or in a dry run: was estimated.
    Done(&'a RepackBatch, &'a Repacked),
}

/// Hears what happens while segments are repacked.
pub type HearRepack<'a> = dyn FnMut(RepackEvent<'_>) + 'a;

/// Returns the batches that are worth repacking, and how many segments are left as they are.
#[must_use]
pub fn plan(segments: &[SegmentInfo], options: &RepackOptions) -> (Vec<RepackBatch>, u64) {
    let chosen = choose(segments, options.again);
    let captures_max = (options.planning() / CAPTURE_BYTES).min(REWRITTEN_CAPTURES_MAX);
    let mut batches: Vec<RepackBatch> = Vec::new();
    for info in chosen {
        let fits = |batch: &RepackBatch| {
            batch.captures + info.captures <= captures_max
                && batch.plain_bytes + info.plain_bytes <= options.plain_max()
                && batch.bytes + info.bytes <= options.room
        };
        let fits_alone = info.captures <= captures_max
            && options.halvings(info.plain_bytes).is_some()
            && info.bytes <= options.room;
        if !fits_alone {
            continue;
        }
        if !batches.last().is_some_and(fits) {
            batches.push(RepackBatch::default());
        }
        if let Some(batch) = batches.last_mut() {
            batch.segments.push(info.id);
            batch.captures += info.captures;
            batch.bytes += info.bytes;
            batch.plain_bytes += info.plain_bytes;
        }
    }
    // A single segment that was already rewritten gains nothing.
    let is_done = |id: &SegmentId| segments.iter().any(|info| info.id == *id && info.is_rewritten);
    batches.retain(|batch| options.again || batch.segments.len() > 1 || !batch.segments.iter().all(is_done));
    let taken: usize = batches.iter().map(|batch| batch.segments.len()).sum();
    (batches, (segments.len() - taken) as u64)
}

/// Returns the segments that are worth rewriting, those with the oldest captures first.
fn choose(segments: &[SegmentInfo], again: bool) -> Vec<&SegmentInfo> {
    let (rewritten, new): (Vec<&SegmentInfo>, Vec<&SegmentInfo>) =
        segments.iter().partition(|info| info.is_rewritten && !again);
    let is_worth = |info: &&SegmentInfo| {
        let shrinks = info.bytes * 100 < info.plain_bytes * COMPRESSED_PERCENT_MAX;
        shrinks || info.bytes < SMALL_BYTES && segments.len() > 1
    };
    let mut chosen: Vec<&SegmentInfo> = new.into_iter().filter(is_worth).collect();
    let mut bytes: u64 = chosen.iter().map(|info| info.bytes).sum();
    let mut smallest = rewritten;
    smallest.sort_by_key(|info| info.bytes);
    for info in smallest {
        if info.bytes > bytes.saturating_mul(GATHERED_SHARE) {
            break;
        }
        bytes += info.bytes;
        chosen.push(info);
    }
    chosen.sort_by_key(|info| (info.captures_until, info.id));
    chosen
}

/// Repacks `batches`. Returns `true` if all are done, `false` if `stop` came first. Batches that are in place stay.
///
/// # Errors
/// If a segment is damaged or the disk fails. The segments of the current batch are then unchanged.
pub fn run(
    store: &mut Store,
    batches: &[RepackBatch],
    options: &RepackOptions,
    stop: &Control,
    hear: &mut HearRepack<'_>,
) -> Result<bool, StoreError> {
    for batch in batches {
        if stop.is_stopped() {
            return Ok(false);
        }
        let rewriting = options.rewriting(batch);
        if options.dry_run {
            let bytes = store.estimate_rewriting(&batch.segments, &rewriting)?;
            let done = Repacked {
                segments: (batch.segments.len() as u64, 0),
                bytes: (batch.bytes, bytes),
                captures: batch.captures,
                plain_bytes: batch.plain_bytes,
            };
            hear(RepackEvent::Done(batch, &done));
            continue;
        }
        let mut author = Keeping { stop, hear };
        let rewritten = match store.rewrite(&batch.segments, &rewriting, &mut author) {
            Err(StoreError::Segment(SegmentError::Stopped)) => return Ok(false),
            rewritten => rewritten?,
        };
        if rewritten.is_worse() {
            store.leave(&rewritten)?;
        } else {
            store.put_in_place(&rewritten)?;
        }
        hear(RepackEvent::Done(batch, &Repacked::of(batch, &rewritten)));
    }
    Ok(true)
}

/// Keeps all captures, and ends the rewriting when it is stopped.
struct Keeping<'a, 'h> {
    stop: &'a Control,
    hear: &'a mut HearRepack<'h>,
}

impl Author for Keeping<'_, '_> {
    fn replaces(&mut self, _: &ReplayedCapture) -> Result<bool, SegmentError> {
        if self.stop.is_stopped() { Err(SegmentError::Stopped) } else { Ok(false) }
    }

    fn progress(&mut self, plain_bytes: u64) -> Result<(), SegmentError> {
        (self.hear)(RepackEvent::Written(plain_bytes));
        if self.stop.is_stopped() { Err(SegmentError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: u32, bytes: u64, is_rewritten: bool) -> SegmentInfo {
        let mut info = SegmentInfo::new(SegmentId(id), "A-1-00001-h.warc.zst", 0);
        (info.bytes, info.plain_bytes, info.captures) = (bytes, bytes * 6, 100);
        (info.captures_until, info.is_rewritten) = (u64::from(id) * 100, is_rewritten);
        info
    }

    fn options(room: u64) -> RepackOptions {
        RepackOptions { room, ..RepackOptions::default() }
    }

    #[test]
    fn batches_stay_within_their_room_and_nothing_is_rewritten_without_need() {
        let segments: Vec<SegmentInfo> = (0..10).map(|id| segment(id, 100, id == 9)).collect();
        let (batches, left) = plan(&segments, &options(350));
        assert_eq!(batches.iter().map(|batch| batch.segments.len()).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!(left, 1);
        let done: Vec<SegmentInfo> = (0..10).map(|id| segment(id, 100, true)).collect();
        assert_eq!(plan(&done, &options(350)), (Vec::new(), 10));
    }

    #[test]
    fn a_full_segment_is_repacked_as_well() {
        let full = |bytes: u64| vec![segment(0, bytes, false), segment(1, 100, false)];
        let (batches, left) = plan(&full((1 << 30) + 50_000), &RepackOptions::default());
        let sizes: Vec<(usize, u32)> = batches
            .iter()
            .map(|batch| (batch.segments.len(), RepackOptions::default().rewriting(batch).halvings))
            .collect();
        assert_eq!(
            (sizes, left),
            (vec![(1, 1), (1, 0)], 0),
            "6 GiB of records take more than a quarter of a GiB of memory"
        );
        assert_eq!(plan(&full((2 << 30) + 1), &RepackOptions::default()).1, 1);
    }

    #[test]
    fn an_hour_s_segment_for_a_year_is_rewritten_a_few_times_and_leaves_few_files() {
        let mut segments: Vec<SegmentInfo> = Vec::new();
        let (mut written, mut id) = (0, 0);
        for _day in 0..365 {
            for _hour in 0..24 {
                segments.push(segment(id, 1000, false));
                id += 1;
            }
            for batch in plan(&segments, &options(u64::MAX)).0 {
                written += batch.bytes;
                segments.retain(|info| !batch.segments.contains(&info.id));
                segments.push(segment(id, batch.bytes, true));
                id += 1;
            }
        }
        let all = 365 * 24 * 1000;
        assert!(segments.len() < 12, "{} files", segments.len());
        assert!(written < all * 12, "each byte was written {} times", written / all);
    }
}

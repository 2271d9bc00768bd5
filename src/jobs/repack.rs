//! Rewrites closed segments in fewer bytes.

use std::path::Path;

use archive_base::control::Control;
use archive_books::recorder;
use archive_storage::StoreError;
use archive_storage::segment::{SegmentError, SegmentOptions};
use archive_vault::repack::{self, RepackBatch, RepackObserver, RepackOptions, Repacked};

use super::{Failure, Hear, JobEvent, Opening, open};

/// What repacking has done.
#[derive(Clone, Copy, Debug)]
pub struct RepackOutcome {
    /// Whether it came to its end.
    pub is_complete: bool,
    /// Number of segments that are not worth it, and left as they are.
    pub left: u64,
    /// Number of batches.
    pub batches: u64,
    /// The totals of all batches.
    pub done: Repacked,
}

/// Repacks the segments of an archive that are worth it. Finished batches stay if it is stopped, and the next run
/// continues.
///
/// # Errors
/// If another program owns the archive, a segment is damaged, or the disk fails.
pub fn repack(
    path: &Path,
    segments: &SegmentOptions,
    options: &RepackOptions,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<RepackOutcome, Failure> {
    let mut store = open(path, &Opening { segments: segments.clone(), ..Opening::default() }, hear)?;
    let (batches, left) = repack::plan(&store.closed_segments(), options);
    let total = batches.iter().map(|batch| batch.plain_bytes).sum();
    let mut heard = RepackListener { hear, total, written: 0, batches: 0, done: Repacked::default() };
    let is_complete = repack::run(&mut store, &batches, options, control, &mut heard).map_err(advised)?;
    recorder::close(store)?;
    let RepackListener { batches, done, .. } = heard;
    Ok(RepackOutcome { is_complete, left, batches, done })
}

/// Adds advice to the error for a damaged segment.
fn advised(error: StoreError) -> Failure {
    let is_damage = matches!(error, StoreError::Segment(SegmentError::Corrupted { .. }));
    let error = Failure::from(error);
    if is_damage { error.within("nothing was changed, run `archive repair` first") } else { error }
}

/// Tells of a running repack, and adds up its batches.
struct RepackListener<'a, 'h> {
    hear: &'a mut Hear<'h>,
    total: u64,
    written: u64,
    batches: u64,
    done: Repacked,
}

impl RepackObserver for RepackListener<'_, '_> {
    fn progress(&mut self, plain_bytes: u64) {
        self.written += plain_bytes;
        (self.hear)(JobEvent::Written { bytes: self.written, total: self.total });
    }

    fn batch(&mut self, batch: &RepackBatch, done: &Repacked) {
        self.batches += 1;
        self.done.add(done);
        (self.hear)(JobEvent::Repacked(batch, done));
    }
}

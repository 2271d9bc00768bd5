//! Rewrites closed segments in fewer bytes.

use std::path::Path;

use archive_base::control::Control;
use archive_books::recorder;
use archive_storage::StoreError;
use archive_storage::segment::{SegmentError, SegmentOptions};
use archive_vault::repack::{self, RepackEvent, RepackOptions, Repacked};

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
    let mut outcome = RepackOutcome { is_complete: false, left, batches: 0, done: Repacked::default() };
    let mut written = 0;
    let mut heard = |event: RepackEvent<'_>| match event {
        RepackEvent::Written(plain_bytes) => {
            written += plain_bytes;
            hear(JobEvent::Written { bytes: written, total });
        }
        RepackEvent::Done(batch, done) => {
            outcome.batches += 1;
            outcome.done.add(done);
            hear(JobEvent::Repacked(batch, done));
        }
    };
    outcome.is_complete = repack::run(&mut store, &batches, options, control, &mut heard).map_err(advised)?;
    recorder::close(store)?;
    Ok(outcome)
}

/// Adds advice to the error for a damaged segment.
fn advised(error: StoreError) -> Failure {
    let is_damage = matches!(error, StoreError::Segment(SegmentError::Corrupted { .. }));
    let error = Failure::from(error);
    if is_damage { error.within("nothing was changed, run `archive repair` first") } else { error }
}

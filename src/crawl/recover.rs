//! Opening an archive to change it: whatever a crash kept out of the state is credited again from its records. A rebuild
//! is the same with nothing in the state.

use std::path::Path;
use std::sync::Arc;

use archive_storage::backend::{Disk, RealDisk};
use archive_storage::segment::{ReplayedCapture, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{SegmentId, State, Store, StoreError};

use crate::ledger::{CreditError, Credits, Kind, Outcome};
use crate::originals;

/// Changes that wait in memory during a replay before they are made durable, in bytes.
const DIRTY_BYTES_MAX: usize = 512 << 20;

/// Why an archive could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The books failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
}

/// An archive that is ready to be changed, and what had to be done for it.
#[derive(Debug)]
pub struct Opened {
    /// The archive.
    pub store: Store,
    /// Captures that were stored but not yet reflected in the state.
    pub replayed: u64,
    /// Bytes of unfinished captures that were cut off.
    pub cut_bytes: u64,
    /// Places in segments that cannot be read.
    pub broken: Vec<(SegmentId, Broken)>,
}

/// Opens the archive in `path` to change it; makes one that is not there.
///
/// Opening it twice gives the same state: what is replayed is checkpointed before anybody sees it.
///
/// # Errors
/// When another process owns it, when it is of a newer format, and whatever the disk refuses.
pub fn open(path: &Path, options: SegmentOptions) -> Result<Opened, OpenError> {
    open_on(Arc::new(RealDisk), path, options)
}

/// The same on any disk.
///
/// # Errors
/// As [`open`].
pub fn open_on(disk: Arc<dyn Disk>, path: &Path, options: SegmentOptions) -> Result<Opened, OpenError> {
    let mut store = Store::own_on(disk, path, options)?;
    let mut credits = Credits::open(store.state())?;
    let Replayed { captures: replayed, broken } = replay(&mut store, &mut credits, 1, &mut |_| {})?;
    if replayed > 0 {
        credits.audit(store.state())?;
        credits.save(store.state_mut())?;
        store.checkpoint_waiting()?;
    }
    let cut_bytes = store.recovered().iter().map(|segment| segment.cut_bytes).sum();
    Ok(Opened { store, replayed, cut_bytes, broken })
}

/// What was credited again.
#[derive(Debug)]
pub struct Replayed {
    /// Captures.
    pub captures: u64,
    /// Places in segments that cannot be read.
    pub broken: Vec<(SegmentId, Broken)>,
}

/// Credits every capture that the state does not reflect yet, decoded on so many threads; `progress` is told how many there
/// were so far.
///
/// # Errors
/// When the store or the books fail.
pub fn replay(
    store: &mut Store,
    credits: &mut Credits,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Replayed, OpenError> {
    let (mut captures, mut open) = (0, 0);
    let mut candidates = Vec::new();
    let mut take = |state: &mut State, capture: ReplayedCapture| {
        let original = originals::referred_to(state, &capture).map_err(StoreError::from)?;
        let outcome = Outcome::of_replayed(&capture, original.as_ref());
        open += u64::from(original.is_none() && !outcome.kind.has_payload() && outcome.kind != Kind::Failed);
        credits.credit(state, &outcome, capture.main, &mut candidates)?;
        candidates.clear();
        captures += 1;
        progress(captures);
        if state.dirty_bytes() > DIRTY_BYTES_MAX {
            // All that is replayed is durable in the segments, so the state may be too, up to here.
            credits.save(state)?;
            state.checkpoint(capture.end).map_err(StoreError::from)?;
        }
        Ok::<(), OpenError>(())
    };
    let broken = match threads {
        0 | 1 => store.replay(&mut take)?,
        threads => store.replay_on(threads, &mut take)?,
    };
    if open > 0 {
        originals::resolve_open(store, &|_| None)?;
    }
    Ok(Replayed { captures, broken })
}

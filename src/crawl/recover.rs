//! Opening an archive to change it: whatever a crash kept out of the state is credited again from its records. A rebuild
//! is the same with nothing in the state.

use std::path::Path;
use std::sync::Arc;

use archive_storage::backend::{Disk, RealDisk};
use archive_storage::segment::{ReplayedCapture, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{SegmentId, State, StateError, Store, StoreError};

use super::conduct::Conduct;
use crate::ledger::{CreditError, Credits, Kind, Outcome};
use crate::originals;

/// Why an archive could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store failed.
    #[error("{0}")]
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
    credits.set_obey_nofollow(Conduct::of_last_crawl(store.state())?.obey_nofollow);
    let Replayed { captures: replayed, broken } =
        replay(&mut store, &mut credits, false, &mut |_, _| Ok(()))?;
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

/// Credits every capture that the state does not reflect yet, decoded ahead on threads of their own if `ahead`; `progress` is told
/// how many there were so far.
///
/// # Errors
/// When the store or the books fail.
pub fn replay(
    store: &mut Store,
    credits: &mut Credits,
    ahead: bool,
    progress: &mut dyn FnMut(u64, &mut State) -> Result<(), StateError>,
) -> Result<Replayed, OpenError> {
    let (mut captures, mut open) = (0, 0);
    let (mut candidates, reader) = (Vec::new(), store.reader());
    let mut take = |state: &mut State, capture: ReplayedCapture| {
        let original = originals::referred_to(state, &capture).map_err(StoreError::from)?;
        let mut outcome = Outcome::of_replayed(&capture, original);
        originals::inherit(state, &reader, &mut outcome)?;
        open += u64::from(original.is_none() && !outcome.kind.has_payload() && outcome.kind != Kind::Failed);
        credits.credit(state, &outcome, capture.main, &mut candidates)?;
        candidates.clear();
        captures += 1;
        progress(captures, state).map_err(StoreError::from)?;
        Ok::<(), OpenError>(())
    };
    let broken = if ahead { store.replay_ahead(&mut take)? } else { store.replay(&mut take)? };
    if open > 0 {
        originals::resolve_open(store, &|_| None)?;
    }
    Ok(Replayed { captures, broken })
}

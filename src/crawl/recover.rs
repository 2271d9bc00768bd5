//! Opening an archive to change it: whatever a crash kept out of the state is credited again from its records.

use std::path::Path;
use std::sync::Arc;

use archive_storage::backend::{Disk, RealDisk};
use archive_storage::segment::{ReplayedCapture, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{Capture, SegmentId, State, Store, StoreError};

use crate::ledger::{CreditError, Credits, Outcome};

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
    let mut replayed = 0;
    let mut candidates = Vec::new();
    let broken = store.replay::<OpenError>(|state, capture| {
        let original = original(state, &capture)?;
        let outcome = Outcome::of_replayed(&capture, original.as_ref());
        if outcome.facts.robots {
            credits.know_robots(state, &outcome.url)?;
        }
        credits.credit(state, &outcome, capture.main, &mut candidates)?;
        candidates.clear();
        replayed += 1;
        Ok(())
    })?;
    if replayed > 0 {
        credits.audit(store.state())?;
        credits.save(store.state_mut())?;
        store.checkpoint_waiting()?;
    }
    let cut_bytes = store.recovered().iter().map(|segment| segment.cut_bytes).sum();
    Ok(Opened { store, replayed, cut_bytes, broken })
}

/// The capture that a revisit refers to, by URL and time.
fn original(state: &State, capture: &ReplayedCapture) -> Result<Option<Capture>, CreditError> {
    let Some((url, time)) = &capture.original else { return Ok(None) };
    let Some(id) = state.find(url)? else { return Ok(None) };
    let time = time.timestamp_micros();
    let nearest = state.nearest(id, time)?.map(|(_, capture)| capture);
    Ok(nearest.filter(|capture| capture.time == time))
}

//! Opens an archive for writing: captures that a crash kept out of the state are credited again from their records. A
//! rebuild does the same with an empty state.

use std::path::Path;
use std::sync::Arc;

use archive_storage::backend::{Disk, RealDisk};
use archive_storage::segment::{ReplayedCapture, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{CaptureKind, SegmentId, State, StateError, Store};

use super::{Recorder, RecorderError, RecorderSettings};
use crate::ledger::FetchOutcome;
use crate::originals;
use crate::prepared;

/// An archive opened for writing, and what recovery had to do.
#[derive(Debug)]
pub struct Opened {
    /// The archive.
    pub store: Store,
    /// Captures that were stored but missing from the state.
    pub replayed: u64,
    /// Bytes of unfinished captures that were truncated.
    pub cut_bytes: u64,
    /// Places in segments that cannot be read.
    pub broken: Vec<(SegmentId, Broken)>,
}

/// Opens the archive in `path` for writing, creating it if it does not exist.
///
/// Opening is idempotent: replayed captures are checkpointed before the store is returned.
///
/// # Errors
/// When another process owns the archive, when its format is newer, or when the disk refuses.
pub fn open(path: &Path, options: SegmentOptions) -> Result<Opened, RecorderError> {
    open_on(Arc::new(RealDisk), path, options)
}

/// Like [`open`], on any disk.
///
/// # Errors
/// As [`open`].
pub fn open_on(disk: Arc<dyn Disk>, path: &Path, options: SegmentOptions) -> Result<Opened, RecorderError> {
    let mut store = Store::own_on(disk, path, options)?;
    let mut recorder = Recorder::open(&mut store, RecorderSettings::default())?;
    let Replayed { captures: replayed, broken } = recorder.replay(false, &mut |_, _| Ok(()))?;
    if replayed > 0 {
        recorder.conclude()?;
    }
    // A new archive has a state from the beginning, without books: its first run may be killed long before it makes a
    // checkpoint.
    if store.state().checkpoint_number() == 0 {
        store.checkpoint_waiting()?;
    }
    let cut_bytes = store.recovered().iter().map(|segment| segment.cut_bytes).sum();
    Ok(Opened { store, replayed, cut_bytes, broken })
}

/// Result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// Captures credited again.
    captures: u64,
    /// Places in segments that cannot be read.
    pub broken: Vec<(SegmentId, Broken)>,
}

impl Recorder<'_> {
    /// Credits every capture that the state does not reflect yet, decoding ahead on separate threads if `ahead`. Calls
    /// `progress` with the number of captures so far.
    pub fn replay(
        &mut self,
        ahead: bool,
        progress: &mut dyn FnMut(u64, &mut State) -> Result<(), StateError>,
    ) -> Result<Replayed, RecorderError> {
        let Self { store, reader, credits, .. } = self;
        let (mut captures, mut open, mut candidates) = (0, 0, Vec::new());
        let mut take = |state: &mut State, capture: ReplayedCapture| {
            let original = originals::referred_to(state, &capture)?;
            let mut outcome = FetchOutcome::of_replayed(&capture, original);
            originals::inherit(state, reader, &mut outcome)?;
            let is_open =
                original.is_none() && !outcome.kind.has_payload() && outcome.kind != CaptureKind::Failed;
            open += u64::from(is_open);
            let id = credits.credit(state, &outcome, capture.main, &mut candidates)?;
            prepared::note_replayed(state, id, &capture);
            candidates.clear();
            captures += 1;
            Ok::<(), RecorderError>(progress(captures, state)?)
        };
        let broken = if ahead { store.replay_ahead(&mut take)? } else { store.replay(&mut take)? };
        if open > 0 {
            originals::resolve_open(store, &|_| None)?;
        }
        self.audited_at = None;
        Ok(Replayed { captures, broken })
    }
}

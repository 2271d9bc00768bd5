//! An archive on disk: its segments and its state under one owner.
//!
//! The order that nothing may break: a capture's records are appended to the segment, the segment is synced, and only
//! then a checkpoint makes the state that reflects them durable, with the watermarks up to which it does. What lies
//! after them after a crash is given to [`Store::replay`], through which the owner brings the state up to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::backend::{Disk, RealDisk};
use crate::catalogue::{SegmentEntry, SegmentState};
use crate::checkpoint::StateError;
use crate::history::Capture;
use crate::ids::{Location, SegmentId, UrlId, Watermarks};
use crate::segment::{
    self, Encoded, Encoder, Intent, Recovered, ReplayedCapture, SegmentError, SegmentInfo, SegmentOptions,
    SegmentReader, Segments, StoredRecord, SyncHandle,
};
use crate::state::{Checkpointed, Mode, State};

use crate::warc::Broken;

mod rewrite;

/// Compressed bytes that may be written and not yet synced: before more follow, [`Store::append`] syncs. The bound in time
/// is the caller's, who has a clock: [`Store::sync`] at least once a second.
pub const SYNC_BYTES_MAX: u64 = 64 << 20;

/// Pages whose versions are looked up for the dictionaries of a refresh.
const EXPECTED_MAX: usize = 1 << 16;

/// How long [`Store::checkpoint_waiting`] tries before it gives up on readers that do not leave.
const READERS_WAIT_MAX: Duration = Duration::from_secs(60);

/// A sync of the records of every capture so far, which any thread may carry out while appending continues.
#[derive(Debug)]
pub struct PendingSync {
    handle: SyncHandle,
    /// Captures appended since opening, and bytes not known to be durable, when it began.
    appended: u64,
    bytes: u64,
}

impl PendingSync {
    /// Carries it out. Afterwards call [`Store::synced`].
    ///
    /// # Errors
    /// When the disk refuses; after that nothing can be appended any more.
    pub fn carry_out(&self) -> Result<(), StoreError> {
        self.handle.sync()?;
        Ok(())
    }
}

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The state failed.
    #[error("{0}")]
    State(#[from] StateError),
    /// The segments failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl StoreError {
    /// Whether another process owns the archive.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::State(StateError::Locked { .. }))
    }

    /// Whether a reader found no archive.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::State(StateError::Missing { .. }))
    }

    /// Whether the record that was to be read is lost: its segment is missing or damaged.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Segment(SegmentError::Missing(_) | SegmentError::Corrupted { .. }))
    }

    /// Whether there was no room left: what failed may be tried again once there is.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::State(error) => error.is_disk_full(),
            Self::Segment(error) => error.is_disk_full(),
        }
    }
}

/// An archive, owned or read.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    state: State,
    /// Nothing for a reader.
    segments: Option<Segments>,
    reader: SegmentReader,
    recovered: Vec<Recovered>,
    /// Segments of a rewriting that came to nothing, which opening took away.
    begun_in_vain: usize,
    /// Which segments the next checkpoint puts in the place of which.
    intent: Option<Intent>,
    /// Captures appended since opening.
    appended: u64,
    /// How many of them are durable.
    acknowledged: u64,
    /// Bytes written since the last sync.
    unsynced_bytes: u64,
}

impl Store {
    /// Opens the archive in `path` to change it; makes one that is not there.
    ///
    /// Before anything else the owner has to call [`Store::replay`].
    ///
    /// # Errors
    /// When another process owns it, when it is of a newer format, and whatever the disk refuses.
    pub fn own(path: &Path, options: SegmentOptions) -> Result<Self, StoreError> {
        Self::own_on(Arc::new(RealDisk), path, options)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As [`Store::own`].
    pub fn own_on(disk: Arc<dyn Disk>, path: &Path, mut options: SegmentOptions) -> Result<Self, StoreError> {
        let state = State::open(disk.clone(), path, Mode::Own)?;
        let begun_in_vain = segment::settle(disk.as_ref(), path, state.rewrites())?;
        options.relied_on = state.watermarks();
        options.catalogue = state.catalogued();
        let (segments, recovered) = Segments::open(disk, path, options)?;
        let reader = segments.reader();
        Ok(Self { begun_in_vain, ..Self::assemble(path, state, Some(segments), reader, recovered) })
    }

    /// Opens the archive in `path` for reading, as of its last checkpoint; also while a crawl runs.
    ///
    /// # Errors
    /// When there is none, when it is of a newer format, and whatever the disk refuses.
    pub fn read_only(path: &Path) -> Result<Self, StoreError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let state = State::open(disk.clone(), path, Mode::Read)?;
        let reader = SegmentReader::new(disk, path);
        Ok(Self::assemble(path, state, None, reader, Vec::new()))
    }

    fn assemble(
        path: &Path,
        state: State,
        segments: Option<Segments>,
        reader: SegmentReader,
        recovered: Vec<Recovered>,
    ) -> Self {
        let path = path.to_owned();
        Self {
            path,
            state,
            segments,
            reader,
            recovered,
            begun_in_vain: 0,
            intent: None,
            appended: 0,
            acknowledged: 0,
            unsynced_bytes: 0,
        }
    }

    /// An archive whose state is kept elsewhere while it is rebuilt.
    pub(crate) fn of_parts(path: &Path, state: State, segments: Segments, recovered: Vec<Recovered>) -> Self {
        let reader = segments.reader();
        Self::assemble(path, state, Some(segments), reader, recovered)
    }

    /// The state and what writes segments.
    pub(crate) fn into_parts(self) -> Result<(State, Segments), StateError> {
        Ok((self.state, self.segments.ok_or(StateError::ReadOnly)?))
    }

    /// For a reader: whether a checkpoint waits for it to leave.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.state.is_awaited()
    }

    /// For a reader: lets checkpoints happen. Until [`Store::refresh`] nothing may be read.
    ///
    /// # Errors
    /// When the lock cannot be given back.
    pub fn pause(&mut self) -> Result<(), StoreError> {
        Ok(self.state.pause()?)
    }

    /// For a reader: moves on to the newest checkpoint. While there is none, segments stay open and their dictionaries ready.
    ///
    /// # Errors
    /// As [`Store::read_only`].
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let before = self.state.checkpoint_number();
        self.state.refresh()?;
        if self.state.checkpoint_number() != before {
            self.reader = self.reader.anew();
        }
        Ok(())
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, to be changed.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// What opening did about a segment that a crash had left open.
    #[must_use]
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// New segments of a repack or an erase that did not come to its end, which opening took away.
    #[must_use]
    pub fn begun_in_vain(&self) -> usize {
        self.begun_in_vain
    }

    /// Segments that were closed once and whose files are not there any more; a reader does not know.
    #[must_use]
    pub fn missing(&self) -> Vec<SegmentInfo> {
        self.segments.as_ref().map(Segments::missing).unwrap_or_default()
    }

    /// Whether a segment is one of them.
    #[must_use]
    pub fn is_missing(&self, segment: SegmentId) -> bool {
        self.segments.as_ref().is_some_and(|segments| segments.is_missing(segment))
    }

    /// What reads records, on any thread.
    #[must_use]
    pub fn reader(&self) -> SegmentReader {
        self.reader.clone()
    }

    /// What compresses captures, on any thread.
    ///
    /// # Errors
    /// For a reader.
    pub fn encoder(&self) -> Result<Encoder, StoreError> {
        Ok(self.segments.as_ref().ok_or(StateError::ReadOnly)?.encoder())
    }

    /// Hands every capture that the state does not reflect yet to `take`, in the order in which they were appended.
    ///
    /// # Errors
    /// When the disk refuses. What `take` returns is handed back: the first failure ends the replay.
    pub fn replay<E: From<StoreError>>(
        &mut self,
        take: impl FnMut(&mut State, ReplayedCapture) -> Result<(), E>,
    ) -> Result<Vec<(SegmentId, Broken)>, E> {
        self.replay_by(take, |segments, from, found| segments.replay(from, found))
    }

    /// The same, with every segment that is being read decoded ahead on its own thread.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub fn replay_ahead<E: From<StoreError>>(
        &mut self,
        take: impl FnMut(&mut State, ReplayedCapture) -> Result<(), E>,
    ) -> Result<Vec<(SegmentId, Broken)>, E> {
        self.replay_by(take, |segments, from, found| segments.replay_ahead(from, found))
    }

    fn replay_by<E: From<StoreError>>(
        &mut self,
        mut take: impl FnMut(&mut State, ReplayedCapture) -> Result<(), E>,
        decode: impl FnOnce(
            &Segments,
            Watermarks,
            &mut dyn FnMut(ReplayedCapture),
        ) -> Result<Vec<(SegmentId, Broken)>, SegmentError>,
    ) -> Result<Vec<(SegmentId, Broken)>, E> {
        let segments = self.segments.as_ref().ok_or(StoreError::State(StateError::ReadOnly))?;
        let (from, state) = (self.state.watermarks(), &mut self.state);
        let mut outcome = Ok(());
        let broken = decode(segments, from, &mut |capture| {
            if outcome.is_ok() {
                outcome = take(state, capture);
            }
        });
        let broken = broken.map_err(StoreError::from)?;
        outcome.map(|()| broken)
    }

    /// Says which pages will be captured soon, the most urgent first: their newest versions are what the next dictionaries
    /// are built of. To be called at the start of a refresh.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn expect(&mut self, pages: impl IntoIterator<Item = UrlId>) -> Result<(), StoreError> {
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        for url in pages.into_iter().take(EXPECTED_MAX) {
            let Some((_, capture)) = self.state.newest_version(url)? else { continue };
            let holder = if capture.kind.has_payload() {
                Some(capture)
            } else {
                capture.original.map(|id| self.state.capture(id)).transpose()?
            };
            // Another page's payload is a base for that page.
            if let Some(holder) = holder.filter(|holder| holder.url == url) {
                segments.expect([(self.state.url(url)?.as_str(), holder.location)]);
            }
        }
        Ok(())
    }

    /// Appends a capture's records; they are durable, and may be acknowledged, after the next [`Store::sync`] or
    /// [`Store::checkpoint`]. It syncs what came before by itself once that is [`SYNC_BYTES_MAX`].
    ///
    /// # Errors
    /// When the disk refuses: then nothing of the capture is in the archive, and it may be appended again.
    pub fn append(&mut self, encoded: &Encoded) -> Result<Location, StoreError> {
        if self.unsynced_bytes > 0 && self.unsynced_bytes + encoded.packed_length() > SYNC_BYTES_MAX {
            self.sync()?;
        }
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        segments.rotate_due()?;
        let appended = segments.append(encoded)?;
        self.appended += 1;
        self.unsynced_bytes += appended.bytes;
        Ok(appended.main)
    }

    /// Captures appended since opening that are durable: these are acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Makes the records of every capture so far durable; what a crash then keeps out of the state is replayed.
    ///
    /// # Errors
    /// When the disk refuses; after a failed sync nothing can be appended any more.
    pub fn sync(&mut self) -> Result<Watermarks, StoreError> {
        let watermarks = self.segments.as_mut().ok_or(StateError::ReadOnly)?.sync()?;
        (self.acknowledged, self.unsynced_bytes) = (self.appended, 0);
        Ok(watermarks)
    }

    /// The same for another thread to carry out.
    ///
    /// # Errors
    /// For a reader.
    pub fn sync_handle(&mut self) -> Result<PendingSync, StoreError> {
        let handle = self.segments.as_mut().ok_or(StateError::ReadOnly)?.sync_handle();
        Ok(PendingSync { handle, appended: self.appended, bytes: self.unsynced_bytes })
    }

    /// Takes note of a sync that was carried out.
    pub fn synced(&mut self, sync: &PendingSync) {
        if sync.appended > self.acknowledged {
            self.acknowledged = sync.appended;
            self.unsynced_bytes = self.unsynced_bytes.saturating_sub(sync.bytes);
        }
    }

    /// Makes everything so far durable. [`Checkpointed::Deferred`] means that readers were in the way of the state: then only
    /// the records are durable, and a crash costs a longer replay until it is tried again.
    ///
    /// # Errors
    /// When the disk refuses; what was durable before still is.
    pub fn checkpoint(&mut self) -> Result<Checkpointed, StoreError> {
        let watermarks = self.sync()?;
        let segments = self.segments.as_ref().ok_or(StateError::ReadOnly)?;
        let goes =
            |info: &SegmentInfo| self.intent.as_ref().is_some_and(|intent| intent.old.contains(&info.name));
        for info in segments.list().into_iter().filter(|info| !goes(info)) {
            let entry = entry(&info);
            if self.state.segment(info.id) != Some(&entry) {
                self.state.set_segment(info.id, Some(entry))?;
            }
        }
        self.checkpoint_state(watermarks)
    }

    /// Makes everything so far durable, however long readers take to leave.
    ///
    /// # Errors
    /// As [`Store::checkpoint`], and [`StateError::Locked`] when a reader stays for a minute.
    pub fn checkpoint_waiting(&mut self) -> Result<(), StoreError> {
        let start = Instant::now();
        while self.checkpoint()? == Checkpointed::Deferred {
            if start.elapsed() >= READERS_WAIT_MAX {
                return Err(StateError::busy_readers(&self.path).into());
            }
        }
        Ok(())
    }

    /// Closes the open segment and makes everything durable.
    ///
    /// # Errors
    /// When the disk refuses; the next opening then recovers.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.conclude()
    }

    /// The same, and leaves it open to be read.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn conclude(&mut self) -> Result<(), StoreError> {
        if let Some(segments) = &mut self.segments {
            segments.rotate(None)?;
            self.checkpoint_waiting()?;
            self.state.prepare_finding()?;
        }
        Ok(())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn record(&self, location: Location) -> Result<StoredRecord, StoreError> {
        Ok(self.reader.read(location)?)
    }

    /// What the crawler noted about a capture: the fields of its metadata record.
    ///
    /// # Errors
    /// When the records of the capture cannot be read or are damaged.
    pub fn metadata(&self, capture: &Capture) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.reader.metadata(capture.location)?)
    }

    /// The fields of the `warcinfo` record of a segment.
    ///
    /// # Errors
    /// When the segment cannot be read or is damaged there.
    pub fn information(&self, segment: SegmentId) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.reader.information(segment)?)
    }

    /// The capture whose record holds the payload of `capture`: itself, or for a revisit the one it refers to.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn original(&self, capture: &Capture) -> Result<Option<Capture>, StoreError> {
        if capture.kind.has_payload() {
            return Ok(Some(*capture));
        }
        Ok(capture.original.map(|id| self.state.capture(id)).transpose()?)
    }

    /// The payload of a capture without transfer coding; a revisit gives that of its original.
    ///
    /// # Errors
    /// When the record cannot be read or is damaged.
    pub fn payload(&self, capture: &Capture) -> Result<Option<Bytes>, StoreError> {
        match self.original(capture)? {
            Some(original) => Ok(Some(self.record(original.location)?.payload())),
            None => Ok(None),
        }
    }
}

/// What the catalogue says of a segment.
fn entry(info: &SegmentInfo) -> SegmentEntry {
    SegmentEntry {
        file: info.name.clone(),
        state: if info.is_open { SegmentState::Open } else { SegmentState::Closed },
        records: info.records,
        captures: info.captures,
        bytes: info.bytes,
        first_time: info.first.map(|time| time.timestamp_micros()),
        last_time: info.last.map(|time| time.timestamp_micros()),
        sha256: info.sha256.map(|digest| digest.to_string()),
    }
}

//! An archive on disk: its segments and its state under a single owner.
//!
//! The order that must never be broken: a capture's records are appended to the segment, the segment is synced, and
//! only then does a checkpoint make the state that reflects them durable, together with the watermarks up to which it
//! does. After a crash, captures past the watermarks are passed to [`Store::replay`], through which the owner brings
//! the state up to date.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::io::Errno;

use crate::backend::{Disk, RealDisk};
use crate::catalogue::{SegmentEntry, SegmentState};
use crate::checkpoint::StateError;
use crate::history::Capture;
use crate::ids::{Location, SegmentId, UrlId, Watermarks};
use crate::segment::{
    self, Encoded, Encoder, Recovered, ReplayedCapture, SegmentError, SegmentInfo, SegmentOptions,
    SegmentReader, Segments, StoredRecord, SwapIntent, SyncHandle,
};
use crate::state::{Checkpointed, State, StateMode};

use crate::warc::{Broken, HttpHead};

mod rewrite;

/// Compressed bytes that may be written but not yet synced; [`Store::append`] syncs before exceeding it. The bound in
/// time is up to the caller, who has a clock: call [`Store::sync`] at least once a second.
pub const SYNC_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of pages whose versions are looked up for the dictionaries of a refresh.
const EXPECTED_MAX: usize = 1 << 16;

/// How long [`Store::checkpoint_waiting`] waits for readers to leave before it gives up.
const READERS_WAIT_MAX: Duration = Duration::from_secs(60);

/// A sync of the records of every capture so far, which any thread may perform while appending continues.
#[derive(Debug)]
pub struct PendingSync {
    handle: SyncHandle,
    /// Captures appended since opening, and bytes not known to be durable, when the sync was created.
    appended: u64,
    bytes: u64,
}

impl PendingSync {
    /// Performs the sync. Call [`Store::synced`] afterwards.
    ///
    /// # Errors
    /// On an I/O error; after that, nothing more can be appended.
    pub fn carry_out(&self) -> Result<(), StoreError> {
        self.handle.sync()?;
        Ok(())
    }
}

/// Why a store operation failed.
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
        matches!(self, Self::State(StateError::Missing { .. } | StateError::Lost { .. }))
    }

    /// Whether the requested record is lost because its segment is missing or damaged.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Segment(SegmentError::Missing(_) | SegmentError::Corrupted { .. }))
    }

    /// Whether this process, or the machine, may open no more files: nothing is wrong with the archive.
    #[must_use]
    pub fn lacks_descriptors(&self) -> bool {
        let error: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(error), |error| error.source()).any(|cause| {
            let code = cause.downcast_ref().and_then(std::io::Error::raw_os_error);
            [Errno::MFILE, Errno::NFILE].iter().any(|errno| code == Some(errno.raw_os_error()))
        })
    }

    /// Whether the disk was full; the operation may be retried once there is space.
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
    /// `None` for a reader.
    segments: Option<Segments>,
    reader: SegmentReader,
    recovered: Vec<Recovered>,
    /// Segments of an unfinished rewrite, which opening removed.
    begun_in_vain: usize,
    /// Segments that the next checkpoint replaces by rewritten ones.
    intent: Option<SwapIntent>,
    /// Captures appended since opening.
    appended: u64,
    /// How many of these captures are durable.
    acknowledged: u64,
    /// Bytes written since the last sync.
    unsynced_bytes: u64,
}

impl Store {
    /// Opens the archive in `path` for writing; creates it if it does not exist.
    ///
    /// The owner must call [`Store::replay`] before anything else.
    ///
    /// # Errors
    /// When another process owns the archive, when its format is newer, and on any I/O error.
    pub fn own(path: &Path, options: SegmentOptions) -> Result<Self, StoreError> {
        Self::own_on(Arc::new(RealDisk), path, options)
    }

    /// As [`Store::own`], on any disk.
    ///
    /// # Errors
    /// As [`Store::own`].
    pub fn own_on(disk: Arc<dyn Disk>, path: &Path, mut options: SegmentOptions) -> Result<Self, StoreError> {
        let state = State::open(disk.clone(), path, StateMode::Own)?;
        let begun_in_vain = segment::settle(disk.as_ref(), path, state.rewrites())?;
        options.relied_on = state.watermarks();
        options.catalogue = state.catalogued();
        let (segments, recovered) = Segments::open(disk, path, options)?;
        let reader = segments.reader();
        Ok(Self { begun_in_vain, ..Self::assemble(path, state, Some(segments), reader, recovered) })
    }

    /// Opens the archive in `path` for reading, as of its last checkpoint. Works while a crawl is running, too.
    ///
    /// # Errors
    /// When there is no archive, when its format is newer, and on any I/O error.
    pub fn read_only(path: &Path) -> Result<Self, StoreError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let state = State::open(disk.clone(), path, StateMode::Read).map_err(|error| match error {
            StateError::Missing { path } if segment::files(&path).is_ok_and(|files| !files.is_empty()) => {
                StateError::Lost { path }
            }
            error => error,
        })?;
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

    /// Assembles an archive whose state is kept elsewhere during a rebuild.
    pub(crate) fn of_parts(path: &Path, state: State, segments: Segments, recovered: Vec<Recovered>) -> Self {
        let reader = segments.reader();
        Self::assemble(path, state, Some(segments), reader, recovered)
    }

    /// Returns the state and the segment writer.
    pub(crate) fn into_parts(self) -> Result<(State, Segments), StateError> {
        Ok((self.state, self.segments.ok_or(StateError::ReadOnly)?))
    }

    /// For a reader: whether a checkpoint is waiting for it to leave.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.state.is_awaited()
    }

    /// For a reader: lets checkpoints proceed. Nothing may be read until [`Store::refresh`].
    ///
    /// # Errors
    /// When the lock cannot be released.
    pub fn pause(&mut self) -> Result<(), StoreError> {
        Ok(self.state.pause()?)
    }

    /// For a reader: moves on to the newest checkpoint. If there is no newer one, segments stay open and their
    /// dictionaries loaded.
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

    /// The archive's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state, for reading.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, mutably.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// What opening did to segments that a crash had left open.
    #[must_use]
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// Number of new segments of an unfinished repack or erase that opening removed.
    #[must_use]
    pub fn begun_in_vain(&self) -> usize {
        self.begun_in_vain
    }

    /// Segments that were closed but whose files no longer exist; always empty for a reader.
    #[must_use]
    pub fn missing(&self) -> Vec<SegmentInfo> {
        self.segments.as_ref().map(Segments::missing).unwrap_or_default()
    }

    /// Whether a segment is one of [`Store::missing`].
    #[must_use]
    pub fn is_missing(&self, segment: SegmentId) -> bool {
        self.segments.as_ref().is_some_and(|segments| segments.is_missing(segment))
    }

    /// The reader of records, usable on any thread.
    #[must_use]
    pub fn reader(&self) -> SegmentReader {
        self.reader.clone()
    }

    /// The encoder, which compresses captures on any thread.
    ///
    /// # Errors
    /// For a reader.
    pub fn encoder(&self) -> Result<Encoder, StoreError> {
        Ok(self.segments.as_ref().ok_or(StateError::ReadOnly)?.encoder())
    }

    /// Calls `take` with every capture that the state does not reflect yet, in the order of appending.
    ///
    /// # Errors
    /// On an I/O error, and with the first error that `take` returns, after which it is not called again.
    pub fn replay<E: From<StoreError>>(
        &mut self,
        take: impl FnMut(&mut State, ReplayedCapture) -> Result<(), E>,
    ) -> Result<Vec<(SegmentId, Broken)>, E> {
        self.replay_by(take, |segments, from, found| segments.replay(from, found))
    }

    /// As [`Store::replay`], but every segment being read is decoded ahead on its own thread.
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

    /// Announces which pages will be captured soon, most urgent first: the next dictionaries are built from their
    /// newest versions. Call it at the start of a refresh.
    ///
    /// # Errors
    /// When the state cannot be read, and for a reader.
    pub fn expect(&mut self, pages: impl IntoIterator<Item = UrlId>) -> Result<(), StoreError> {
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        for url in pages.into_iter().take(EXPECTED_MAX) {
            let Some((_, capture)) = self.state.newest_version(url)? else { continue };
            let holder = if capture.kind.has_payload() {
                Some(capture)
            } else {
                capture.original.map(|id| self.state.capture(id)).transpose()?
            };
            // The payload of another page is a base for that page only.
            if let Some(holder) = holder.filter(|holder| holder.url == url) {
                segments.expect([(self.state.url(url)?.as_str(), holder.location)]);
            }
        }
        Ok(())
    }

    /// Appends a capture's records. They are durable, and may be acknowledged, after the next [`Store::sync`] or
    /// [`Store::checkpoint`]. Syncs earlier captures first if they would otherwise exceed [`SYNC_BYTES_MAX`].
    ///
    /// # Errors
    /// On an I/O error: then nothing of the capture is in the archive, and appending may be retried.
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

    /// Number of captures appended since opening that are durable, and therefore acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Makes the records of every capture so far durable. After a crash, those missing from the state are replayed.
    ///
    /// # Errors
    /// On an I/O error; after a failed sync, nothing more can be appended.
    pub fn sync(&mut self) -> Result<Watermarks, StoreError> {
        let watermarks = self.segments.as_mut().ok_or(StateError::ReadOnly)?.sync()?;
        (self.acknowledged, self.unsynced_bytes) = (self.appended, 0);
        Ok(watermarks)
    }

    /// Returns a sync for another thread to perform.
    ///
    /// # Errors
    /// For a reader.
    pub fn sync_handle(&mut self) -> Result<PendingSync, StoreError> {
        let handle = self.segments.as_mut().ok_or(StateError::ReadOnly)?.sync_handle();
        Ok(PendingSync { handle, appended: self.appended, bytes: self.unsynced_bytes })
    }

    /// Records that a sync has been performed.
    pub fn synced(&mut self, sync: &PendingSync) {
        if sync.appended > self.acknowledged {
            self.acknowledged = sync.appended;
            self.unsynced_bytes = self.unsynced_bytes.saturating_sub(sync.bytes);
        }
    }

    /// Makes everything so far durable. [`Checkpointed::Deferred`] means that readers blocked the checkpoint of the
    /// state: only the records are durable, and until a later checkpoint succeeds, a crash costs a longer replay.
    ///
    /// # Errors
    /// On an I/O error; what was durable before remains so.
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

    /// Makes everything so far durable, waiting for readers to leave.
    ///
    /// # Errors
    /// As [`Store::checkpoint`], and [`StateError::Locked`] when a reader stays longer than a minute.
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
    /// On an I/O error; the next opening then recovers.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.conclude()
    }

    /// As [`Store::close`], but leaves the archive open for reading.
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

    /// Reads a record, but hardly more than `bytes_max` of its content.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn beginning(&self, location: Location, bytes_max: usize) -> Result<StoredRecord, StoreError> {
        Ok(self.reader.pieces(location)?.beginning(bytes_max)?)
    }

    /// The head of the HTTP message in a record, whose content may be long; for content without HTTP, a head with just
    /// the media type.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn http_head(&self, location: Location) -> Result<HttpHead, StoreError> {
        Ok(self.reader.pieces(location)?.payload()?.head().clone())
    }

    /// What the crawler recorded about a capture: the fields of its metadata record.
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

    /// The capture whose record holds the payload of `capture`: the capture itself, or for a revisit the one that it
    /// refers to.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn original(&self, capture: &Capture) -> Result<Option<Capture>, StoreError> {
        if capture.kind.has_payload() {
            return Ok(Some(*capture));
        }
        Ok(capture.original.map(|id| self.state.capture(id)).transpose()?)
    }

    /// The payload of a capture without transfer coding; for a revisit, that of its original.
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

/// The catalogue entry of a segment.
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

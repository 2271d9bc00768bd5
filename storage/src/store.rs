//! An archive on disk: its segments and its state under one owner.
//!
//! The order that nothing may break: a capture's records are appended to the segment, the segment is synced, and only
//! then a checkpoint makes the state that reflects them durable, with the watermark up to which it does. What lies
//! behind the watermark after a crash is given to [`Store::replay`], through which the owner brings the state up to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::backend::{Disk, RealDisk};
use crate::catalogue::{SegmentEntry, SegmentState};
use crate::checkpoint::StateError;
use crate::history::{Capture, CaptureKind};
use crate::ids::{Location, SegmentId, UrlId, Watermark};
use crate::segment::{
    Encoded, Encoder, Recovered, ReplayedCapture, SegmentError, SegmentOptions, SegmentReader, Segments,
    StoredRecord,
};
use crate::state::{Mode, State};
use crate::warc::Broken;

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The segments failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

impl StoreError {
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
        options.relied_on = state.watermark();
        let (segments, recovered) = Segments::open(disk, path, options)?;
        let reader = segments.reader();
        Ok(Self { path: path.to_owned(), state, segments: Some(segments), reader, recovered })
    }

    /// Opens the archive in `path` for reading, as of its last checkpoint; also while a crawl runs.
    ///
    /// # Errors
    /// When there is none, when it is of a newer format, and whatever the disk refuses.
    pub fn read_only(path: &Path) -> Result<Self, StoreError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let state = State::open(disk.clone(), path, Mode::Read)?;
        let reader = SegmentReader::new(disk, path);
        Ok(Self { path: path.to_owned(), state, segments: None, reader, recovered: Vec::new() })
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
        mut take: impl FnMut(&mut State, ReplayedCapture) -> Result<(), E>,
    ) -> Result<Vec<(SegmentId, Broken)>, E> {
        let segments = self.segments.as_ref().ok_or(StoreError::State(StateError::ReadOnly))?;
        let (from, state) = (self.state.watermark(), &mut self.state);
        let mut outcome = Ok(());
        let broken = segments.replay(from, &mut |capture| {
            if outcome.is_ok() {
                outcome = take(state, capture);
            }
        });
        let broken = broken.map_err(StoreError::from)?;
        outcome.map(|()| broken)
    }

    /// Appends a capture's records; they are durable after the next [`Store::checkpoint`].
    ///
    /// # Errors
    /// When the disk refuses: then nothing of the capture is in the archive, and it may be appended again.
    pub fn append(&mut self, encoded: &Encoded) -> Result<Location, StoreError> {
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        if segments.rotation_due().is_some() {
            let plan = segments.dictionary_plan();
            let dictionary = plan.map(|plan| plan.build()).transpose()?.flatten();
            segments.rotate(dictionary.map(Arc::new))?;
        }
        Ok(segments.append(encoded)?.main)
    }

    /// Makes the records of every capture so far durable; what a crash then keeps out of the state is replayed.
    ///
    /// # Errors
    /// When the disk refuses; after a failed sync nothing can be appended any more.
    pub fn sync(&mut self) -> Result<Watermark, StoreError> {
        Ok(self.segments.as_mut().ok_or(StateError::ReadOnly)?.sync()?)
    }

    /// Makes everything so far durable.
    ///
    /// # Errors
    /// When the disk refuses; what was durable before still is.
    pub fn checkpoint(&mut self) -> Result<Watermark, StoreError> {
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        let watermark = segments.sync()?;
        for info in segments.list() {
            let entry = SegmentEntry {
                file: info.name,
                state: if info.is_open { SegmentState::Open } else { SegmentState::Closed },
                records: info.records,
                bytes: info.bytes,
                first_time: info.first.map(|time| time.timestamp_micros()),
                last_time: info.last.map(|time| time.timestamp_micros()),
                sha256: info.sha256.map(|digest| digest.to_string()),
            };
            if self.state.segment(info.id) != Some(&entry) {
                self.state.set_segment(info.id, Some(entry))?;
            }
        }
        self.state.checkpoint(watermark)?;
        Ok(watermark)
    }

    /// Closes the open segment and makes everything durable.
    ///
    /// # Errors
    /// When the disk refuses; the next opening then recovers.
    pub fn close(mut self) -> Result<(), StoreError> {
        if let Some(segments) = &mut self.segments {
            segments.rotate(None)?;
            self.checkpoint()?;
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

    /// The newest capture of a page that has a version of it: a response, or a revisit that found the payload elsewhere.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn newest_version(&self, url: UrlId) -> Result<Option<Capture>, StoreError> {
        for capture in self.state.history(url)? {
            let (_, capture) = capture?;
            let is_version = matches!(capture.kind, CaptureKind::Response | CaptureKind::Identical);
            if is_version && (200..300).contains(&capture.status) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
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

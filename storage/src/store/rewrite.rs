//! Rewrites closed segments, and makes the new locations of their captures durable with them.

use super::{Store, StoreError, entry};
use crate::checkpoint::StateError;
use crate::ids::{CaptureId, Location, SegmentId, Watermarks};
use crate::segment::{
    Author, Moved, RewriteOptions, Rewriter, Rewritten, SegmentError, SegmentInfo, Segments,
};
use crate::state::Checkpointed;

impl Store {
    /// The closed segments, in order.
    #[must_use]
    pub fn closed_segments(&self) -> Vec<SegmentInfo> {
        let list = self.segments.as_ref().map(Segments::list).unwrap_or_default();
        list.into_iter().filter(|info| !info.is_open).collect()
    }

    /// Returns a rewriter of closed segments, usable on any thread; see [`Store::rewrite`]. Only one may exist at a
    /// time, until its result is in place or abandoned. If rewritten segments still wait for a checkpoint, makes that
    /// checkpoint first.
    ///
    /// # Errors
    /// When a segment does not exist, and on an I/O error.
    pub fn rewriter(&mut self, segments: &[SegmentId]) -> Result<Rewriter, StoreError> {
        if self.is_exchanging() {
            self.checkpoint_waiting()?;
        }
        Ok(self.segments.as_mut().ok_or(StateError::ReadOnly)?.rewriter(segments)?)
    }

    /// Writes the captures of closed segments into new ones beside them, and compares every record with the old one.
    /// The archive's contents do not change before [`Store::put_in_place`]. Only one such result may exist at a time.
    ///
    /// # Errors
    /// When a segment does not exist or is damaged, and on an I/O error; then the archive is unchanged, and what was
    /// written is removed.
    pub fn rewrite(
        &mut self,
        segments: &[SegmentId],
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<Rewritten, StoreError> {
        Ok(self.rewriter(segments)?.carry_out(options, author)?)
    }

    /// Estimates the bytes that closed segments would take after rewriting, from a sample of their captures. Reads all
    /// of them.
    ///
    /// # Errors
    /// As [`Store::rewrite`].
    pub fn estimate_rewriting(
        &mut self,
        segments: &[SegmentId],
        options: &RewriteOptions,
    ) -> Result<u64, StoreError> {
        Ok(self.rewriter(segments)?.estimate(options)?)
    }

    /// Replaces the old segments by the rewritten ones, atomically with all other changes to the state since the last
    /// checkpoint: after a crash, either all of it is there or none. Waits up to a minute for readers to leave.
    ///
    /// If the new records mean anything different for a capture apart from its location, the caller must update the
    /// state beforehand.
    ///
    /// # Errors
    /// When the state does not know a capture of these segments, when a reader does not leave ([`StateError::Locked`]),
    /// and on an I/O error. Afterwards the store is unusable: open it again.
    pub fn put_in_place(&mut self, rewritten: &Rewritten) -> Result<(), StoreError> {
        self.exchange_next(rewritten)?;
        self.checkpoint_waiting()
    }

    /// Keeps old segments whose rewritten ones are worse ([`Rewritten::is_worse`]), and notes that they need not be
    /// rewritten again.
    ///
    /// # Errors
    /// On an I/O error; the segments are unchanged.
    pub fn leave(&mut self, rewritten: &Rewritten) -> Result<(), StoreError> {
        Ok(self.segments.as_mut().ok_or(StateError::ReadOnly)?.leave(rewritten)?)
    }

    /// Schedules rewritten segments to replace the old ones at the next checkpoint. Until then, the owner reads their
    /// captures from the new segments and everybody else from the old ones.
    ///
    /// # Errors
    /// When the state does not know a capture of these segments, and when there is no disk space to record the intent:
    /// nothing is changed then. Any other error comes from the state; open the archive again.
    pub fn exchange_next(&mut self, rewritten: &Rewritten) -> Result<(), StoreError> {
        let places = self.new_places(rewritten)?;
        let number = self.state.rewrites().unwrap_or_default() + 1;
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        let intent = segments.intend(rewritten, number)?;
        for (id, to) in places {
            self.state.move_capture(id, to)?;
        }
        for info in &rewritten.old {
            self.state.set_segment(info.id, None)?;
        }
        for info in &rewritten.new {
            self.state.set_segment(info.id, Some(entry(info)))?;
        }
        self.state.set_rewrites(number)?;
        segments.relocate(&rewritten.moved);
        self.intent = Some(intent);
        Ok(())
    }

    /// Whether rewritten segments are waiting for a checkpoint to put them in place.
    #[must_use]
    pub fn is_exchanging(&self) -> bool {
        self.intent.is_some()
    }

    /// Makes the state durable, and performs the intended exchange of segments with it.
    pub(super) fn checkpoint_state(&mut self, watermarks: Watermarks) -> Result<Checkpointed, StoreError> {
        let Some(intent) = &self.intent else { return Ok(self.state.checkpoint(watermarks)?) };
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        let mut exchanged = Ok(());
        let mut exchange = || exchanged = segments.exchange(intent);
        let checkpointed = self.state.checkpoint_then(watermarks, &mut exchange)?;
        exchanged?;
        if checkpointed == Checkpointed::Done {
            self.intent = None;
        }
        Ok(checkpointed)
    }

    /// Returns the new locations of all captures of the old segments.
    fn new_places(&self, rewritten: &Rewritten) -> Result<Vec<(CaptureId, Location)>, StoreError> {
        let place = |moved: &Moved| (moved.segment, moved.offset);
        let is_old = |segment: SegmentId| rewritten.old.iter().any(|info| info.id == segment);
        let mut known = Vec::with_capacity(rewritten.moved.len());
        for capture in self.state.captures() {
            let (id, capture) = capture?;
            let from = capture.location;
            if !is_old(from.segment) {
                continue;
            }
            let found = rewritten.moved.binary_search_by_key(&(from.segment, from.offset), place);
            let moved = found.ok().and_then(|found| rewritten.moved.get(found));
            let what = "no capture is where the state says; `archive repair` rebuilds the state".to_owned();
            let (segment, offset) = (from.segment, from.offset);
            let moved = moved.ok_or(SegmentError::Corrupted { segment, offset, what })?;
            known.push((id, moved.to));
        }
        if let Some(info) = rewritten.old.first().filter(|_| known.len() != rewritten.moved.len()) {
            let what = "captures in it are not in the state; `archive repair` rebuilds the state".to_owned();
            return Err(SegmentError::Corrupted { segment: info.id, offset: 0, what }.into());
        }
        Ok(known)
    }
}

//! Closed segments rewritten, and the captures' new places made durable with them.

use std::time::Instant;

use super::{READERS_WAIT_MAX, Store, StoreError, entry};
use crate::checkpoint::StateError;
use crate::ids::SegmentId;
use crate::segment::{Author, Moved, RewriteOptions, Rewritten, SegmentError, SegmentInfo, Segments};
use crate::state::Checkpointed;

impl Store {
    /// The closed segments, in order.
    #[must_use]
    pub fn closed_segments(&self) -> Vec<SegmentInfo> {
        let list = self.segments.as_ref().map(Segments::list).unwrap_or_default();
        list.into_iter().filter(|info| !info.is_open).collect()
    }

    /// Writes the captures of closed segments into new ones beside them, and compares every record with what it was.
    /// Nothing that the archive says changes before [`Store::put_in_place`]. There may be one such result at a time.
    ///
    /// # Errors
    /// When a segment is not there or damaged, and when the disk refuses; then the archive is as it was, and what was
    /// written is taken away by the next call or opening.
    pub fn rewrite(
        &mut self,
        segments: &[SegmentId],
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<Rewritten, StoreError> {
        Ok(self.segments.as_mut().ok_or(StateError::ReadOnly)?.rewrite(segments, options, author)?)
    }

    /// Bytes that closed segments would take if they were rewritten, by a sample of their captures. Reads all of them.
    ///
    /// # Errors
    /// As [`Store::rewrite`].
    pub fn estimate_rewriting(
        &mut self,
        segments: &[SegmentId],
        options: &RewriteOptions,
    ) -> Result<u64, StoreError> {
        Ok(self.segments.as_mut().ok_or(StateError::ReadOnly)?.estimate_rewriting(segments, options)?)
    }

    /// Puts rewritten segments in the place of the old ones, with whatever else was changed in the state since the last
    /// checkpoint, at once: after a crash it is all there or nothing of it. Waits a minute for readers to leave.
    ///
    /// What other records mean for a capture that was replaced, but for its place, is for the caller to put into the state
    /// before.
    ///
    /// # Errors
    /// When the state does not know a capture of these segments, when a reader does not leave ([`StateError::Locked`]), and
    /// when the disk refuses. Afterwards the store is given up: open it again.
    pub fn put_in_place(&mut self, rewritten: &Rewritten) -> Result<(), StoreError> {
        let watermarks = self.sync()?;
        self.move_captures(rewritten)?;
        for info in &rewritten.old {
            self.state.set_segment(info.id, None)?;
        }
        for info in &rewritten.new {
            self.state.set_segment(info.id, Some(entry(info)))?;
        }
        let number = self.state.rewrites().unwrap_or_default() + 1;
        self.state.set_rewrites(number)?;
        let segments = self.segments.as_mut().ok_or(StateError::ReadOnly)?;
        let intent = segments.intend(rewritten, number)?;
        let begun = Instant::now();
        loop {
            let mut exchanged = Ok(());
            let mut exchange = || exchanged = segments.exchange(&intent);
            let checkpointed = self.state.checkpoint_then(watermarks.clone(), &mut exchange)?;
            exchanged?;
            if checkpointed == Checkpointed::Done {
                return Ok(());
            }
            if begun.elapsed() >= READERS_WAIT_MAX {
                return Err(StateError::busy_readers(&self.path).into());
            }
        }
    }

    /// Puts the new places of all captures of the old segments into the state.
    fn move_captures(&mut self, rewritten: &Rewritten) -> Result<(), StoreError> {
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
            let what = "no capture is where the state says; `archive repair` makes the state anew".to_owned();
            let (segment, offset) = (from.segment, from.offset);
            let moved = moved.ok_or(SegmentError::Corrupted { segment, offset, what })?;
            known.push((id, moved.to));
        }
        if let Some(info) = rewritten.old.first().filter(|_| known.len() != rewritten.moved.len()) {
            let what =
                "captures in it are not in the state; `archive repair` makes the state anew".to_owned();
            return Err(SegmentError::Corrupted { segment: info.id, offset: 0, what }.into());
        }
        for (id, to) in known {
            self.state.move_capture(id, to)?;
        }
        Ok(())
    }
}

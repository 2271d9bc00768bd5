//! Captures, histories and payload digests.

use std::ops::Range;

use super::State;
use super::pages::unknown;
use crate::capture_kind::CaptureKind;
use crate::checkpoint::{RecordTable, Result, StateError};
use crate::history::{self, Capture, CaptureRecord, History, MimeId};
use crate::ids::{CaptureId, Location, UrlId};
use crate::index::HashIndex;
use crate::pages::VisitRecord;
use crate::validators::Validators;

/// Number of captures whose digests are collected before they are inserted into the index.
const REBUILD_CAPTURES: usize = 1 << 20;

impl State {
    /// Adds a capture to the history of its URL, ordered by time; `validators` are those that the server sent with a
    /// version.
    ///
    /// # Errors
    /// [`StateError::Unknown`] for an unknown URL, and I/O errors.
    pub fn append_capture(
        &mut self,
        capture: &Capture,
        validators: Option<&Validators>,
    ) -> Result<CaptureId> {
        self.writable()?;
        self.digests()?;
        let url = capture.url;
        let visit_id = self.visit_of(url)?;
        let visit = self.visits.get(visit_id.0)?.ok_or_else(|| unknown(url))?.visit;
        let outcome = history::append(&mut self.captures, capture, visit.last_capture, visit.captures);
        let (id, is_newest) = self.finish(outcome)?;
        let outcome = self.visits.update(visit_id.0, |record| {
            record.visit.captures += 1;
            if is_newest {
                record.visit.last_capture = Some(id);
            }
        });
        self.finish(outcome)?;
        self.note_version(id, capture, validators)?;
        if let (Some(key), Some(digests)) = (digest_key(capture), self.digests.get_mut()) {
            digests.insert(key, id.0);
        }
        self.count_capture(capture);
        Ok(id)
    }

    /// Links a revisit to the capture that holds its payload; both then have the same digest. A status and a media type
    /// that the revisit lacks are taken from its original.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn set_original(&mut self, revisit: CaptureId, original: CaptureId) -> Result<()> {
        self.writable()?;
        let Capture { digest, length, status, mime, .. } = self.capture(original)?;
        let outcome = self.captures.update(revisit.0, |record| {
            let capture = &mut record.capture;
            (capture.original, capture.digest) = (Some(original), digest);
            if capture.kind == CaptureKind::Identical {
                capture.length = length;
            }
            if capture.status == 0 {
                capture.status = status;
            }
            if capture.mime == MimeId::default() {
                capture.mime = mime;
            }
        });
        self.finish(outcome)?;
        let capture = self.capture(revisit)?;
        self.note_version(revisit, &capture, None)
    }

    /// Makes a capture the newest version of its page if it is, and stores its validators.
    fn note_version(
        &mut self,
        id: CaptureId,
        capture: &Capture,
        validators: Option<&Validators>,
    ) -> Result<()> {
        let newest = self.newest_version(capture.url)?.map(|(newest, version)| (version.time, newest));
        if !capture.is_confirmable() || newest >= Some((capture.time, id)) {
            return Ok(());
        }
        let visit_id = self.visit_of(capture.url)?;
        let before = self.visits.get(visit_id.0)?.ok_or_else(|| unknown(capture.url))?.visit;
        let position = self.push_validators(&before, validators)?;
        let note = |record: &mut VisitRecord| {
            (record.visit.version, record.visit.validators) = (Some(id), position);
        };
        let outcome = self.visits.update(visit_id.0, note);
        self.finish(outcome).map(drop)
    }

    /// The newest capture of a page, by time, that counts as a version: a response, or a revisit that found the same
    /// payload, with a status from 200 to 299.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn newest_version(&self, url: UrlId) -> Result<Option<(CaptureId, Capture)>> {
        let version = self.visit(url)?.and_then(|visit| visit.version);
        version.map(|id| Ok((id, self.capture(id)?))).transpose()
    }

    /// Sets the location of a capture's main record.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn move_capture(&mut self, capture: CaptureId, to: Location) -> Result<()> {
        self.writable()?;
        let outcome = self
            .captures
            .update(capture.0, |record| std::mem::replace(&mut record.capture.location, to).length);
        let before = self.finish(outcome)?.unwrap_or_default();
        self.take_away(super::small::STORED_BYTES, u64::from(before));
        self.add(super::small::STORED_BYTES, u64::from(to.length));
        Ok(())
    }

    /// Replaces the flags of a capture.
    ///
    /// # Errors
    /// I/O errors.
    pub fn set_capture_flags(&mut self, capture: CaptureId, flags: u8) -> Result<()> {
        self.writable()?;
        let outcome = self.captures.update(capture.0, |record| record.capture.flags = flags);
        self.finish(outcome).map(|_| ())
    }

    /// The capture with an id.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn capture(&self, id: CaptureId) -> Result<Capture> {
        let record = self.captures.get(id.0)?;
        record
            .map(|record| self.shown(id, record.capture))
            .ok_or(StateError::Unknown { what: "capture", id: u64::from(id.0) })
    }

    /// The captures with some ids, in the given order.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn captures_of(&self, ids: &[CaptureId]) -> Result<Vec<Capture>> {
        let numbers: Vec<u32> = ids.iter().map(|id| id.0).collect();
        let records = self.captures.gather(&numbers)?.into_iter().zip(ids);
        let unknown = |id: &CaptureId| StateError::Unknown { what: "capture", id: u64::from(id.0) };
        records
            .map(|(record, id)| record.map(|it| self.shown(*id, it.capture)).ok_or_else(|| unknown(id)))
            .collect()
    }

    /// Returns, for each of these captures, the capture itself or the next older one of its URL for which `is_content`
    /// holds; `None` if there is none.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn contents_of(
        &self,
        captures: &[(CaptureId, Capture)],
        is_content: impl Fn(&Capture) -> bool,
    ) -> Result<Vec<Option<(CaptureId, Capture)>>> {
        let known = captures.iter().map(|known| Some(*known).filter(|(_, capture)| is_content(capture)));
        let mut found: Vec<Option<(CaptureId, Capture)>> = known.collect();
        // Index into `captures`, the next capture to look at, and the time and id below which it must lie.
        let mut open: Vec<_> =
            captures.iter().enumerate().map(|(place, (id, _))| (place, *id, (i64::MAX, *id))).collect();
        open.retain(|(place, ..)| found.get(*place).is_some_and(Option::is_none));
        while !open.is_empty() {
            let numbers: Vec<u32> = open.iter().map(|(_, id, _)| id.0).collect();
            let records = self.captures.gather(&numbers)?;
            let mut older = Vec::new();
            for ((place, id, newer), record) in open.into_iter().zip(records) {
                let unknown = || StateError::Unknown { what: "capture", id: u64::from(id.0) };
                let record = record.ok_or_else(unknown)?;
                let this = (record.capture.time, id);
                if this >= newer {
                    return Err(self.captures.damaged(id.0, history::OUT_OF_ORDER));
                }
                if self.is_hidden(id) || !is_content(&record.capture) {
                    older.extend(record.older().map(|id| (place, id, this)));
                } else if let Some(found) = found.get_mut(place) {
                    *found = Some((id, self.shown(id, record.capture)));
                }
            }
            open = older;
        }
        Ok(found)
    }

    /// Whether captures are unchanged since a checkpoint: nothing has changed them, or others in the same blocks, since
    /// this process opened the state at that checkpoint.
    #[must_use]
    pub fn are_as_at(&self, checkpoint: u64, captures: Range<u32>) -> bool {
        self.opened_at == Some(checkpoint)
            && captures.end <= self.captures.len()
            && !self.captures.was_changed(captures)
    }

    /// All captures in the order of arrival; stops after the first error.
    pub fn captures(&self) -> impl Iterator<Item = Result<(CaptureId, Capture)>> + '_ {
        self.captures_from(CaptureId(0))
    }

    /// As [`State::captures`], starting with an id.
    pub fn captures_from(&self, first: CaptureId) -> impl Iterator<Item = Result<(CaptureId, Capture)>> + '_ {
        let stored = self.captures.scan(first.0).map(|found| {
            let (id, record) = found?;
            Ok((CaptureId(id), self.shown(CaptureId(id), record.capture)))
        });
        stored.filter(|found| !found.as_ref().is_ok_and(|(id, _)| self.is_hidden(*id)))
    }

    /// The captures of a URL, from newest to oldest.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn history(&self, url: UrlId) -> Result<History<'_>> {
        let newest = self.visit(url)?.and_then(|visit| visit.last_capture);
        Ok(History::new(&self.captures, newest).behind(self.veil()))
    }

    /// The captures of the same URL from `capture` back to the oldest.
    #[must_use]
    pub fn history_from(&self, capture: CaptureId) -> History<'_> {
        History::new(&self.captures, Some(capture)).behind(self.veil())
    }

    /// The capture of a URL nearest to a time in microseconds since 1970; the older one of two equally near ones.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn nearest(&self, url: UrlId, time: i64) -> Result<Option<(CaptureId, Capture)>> {
        if self.veil.is_some() {
            let all = self.history(url)?.collect::<Result<Vec<_>>>()?;
            let distance = |(_, capture): &(CaptureId, Capture)| capture.time.abs_diff(time);
            // The oldest of equally near ones.
            return Ok(all.into_iter().rev().min_by_key(distance));
        }
        match self.visit(url)?.and_then(|visit| visit.last_capture) {
            Some(newest) => history::nearest(&self.captures, newest, time),
            None => Ok(None),
        }
    }

    /// The first capture whose record holds a payload with this digest, given as the first 16 bytes of the digest.
    ///
    /// # Errors
    /// I/O errors.
    pub fn by_digest(&self, digest: &[u8; 16]) -> Result<Option<CaptureId>> {
        let Some(id) = self.digests()?.get(key_of(digest)) else { return Ok(None) };
        let found = self.captures.get(id)?;
        Ok(found.is_some_and(|record| record.capture.digest == *digest).then_some(CaptureId(id)))
    }
}

impl State {
    /// Whether the veil, if there is one, hides a capture.
    #[must_use]
    pub fn is_hidden(&self, capture: CaptureId) -> bool {
        self.veil.as_ref().is_some_and(|veil| veil.hides(capture))
    }

    /// A capture as the veil shows it.
    fn shown(&self, id: CaptureId, capture: Capture) -> Capture {
        self.veil.as_ref().map_or(capture, |veil| veil.shown(id, capture))
    }
}

/// Any half of a digest is an equally good hash; the rest is compared in the capture.
fn key_of(digest: &[u8; 16]) -> u64 {
    let (first, _) = digest.as_chunks::<8>();
    first.first().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn digest_key(capture: &Capture) -> Option<u64> {
    (capture.kind.has_payload() && capture.digest != [0; 16]).then(|| key_of(&capture.digest))
}

/// Adds the captures from an id on to the index of digests.
pub(super) fn index_digests(
    index: &mut HashIndex,
    captures: &RecordTable<CaptureRecord>,
    from: u32,
) -> Result<()> {
    let mut batch = Vec::new();
    for record in captures.scan(from) {
        let (id, record) = record?;
        batch.extend(digest_key(&record.capture).map(|key| (key, id)));
        if batch.len() == REBUILD_CAPTURES {
            index.insert_batches(&[index.batch(&batch)]);
            batch.clear();
        }
    }
    index.insert_batches(&[index.batch(&batch)]);
    Ok(())
}

impl State {
    fn count_capture(&mut self, capture: &Capture) {
        let payload = if matches!(capture.kind, CaptureKind::Failed) { 0 } else { u64::from(capture.length) };
        self.add(super::small::PAYLOAD_BYTES, payload);
        self.add(super::small::STORED_BYTES, u64::from(capture.location.length));
    }
}

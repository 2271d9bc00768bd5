//! Captures that arrive after newer ones of their page, as imports bring them.
//!
//! The history is in order of time whatever order captures arrive in. What a visit sums up of it (first capture,
//! versions, last change, observations of change) is told again from the whole history, so that it too does not depend
//! on the order. Two things are not in the history: the dates of change that servers stated, and the signatures of older
//! versions, of which a visit keeps the newest. Where signatures are missing, content has changed if bytes have.

use archive_storage::{Capture, CaptureId, State, StateError, UrlId, Visit};

use super::capture_flags::{BYTES_CHANGED, CONTENT_CHANGED};
use super::credit::Credits;
use super::outcome::{Facts, Kind, Outcome};
use super::record::{MICROSECONDS_PER_DAY, describe};
use super::standing::shown;
use crate::refresh::rate::{ChangeObservations, Observation};

const MICROSECONDS: i64 = 1_000_000;

impl Credits {
    /// Whether the archive has a newer capture of the page, or any, when this one says nothing of it: an import may know a
    /// request whose answer is in another file.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn is_late(state: &State, id: UrlId, outcome: &Outcome) -> Result<bool, StateError> {
        let newest = state.visit(id)?.and_then(|visit| visit.last_capture);
        let newest = newest.map(|newest| state.capture(newest)).transpose()?;
        let says_nothing = outcome.kind == Kind::Failed && outcome.facts.imported.is_some();
        Ok(newest.is_some_and(|newest| says_nothing || newest.time > outcome.time.timestamp_micros()))
    }

    /// Sums up a page's history anew, in which a capture is new or has become known to be a copy; `signature` is that
    /// of its content.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub fn retell(
        state: &mut State,
        id: UrlId,
        new: CaptureId,
        signature: Option<u64>,
    ) -> Result<(), StateError> {
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        let mut captures: Vec<(CaptureId, Capture)> = Vec::with_capacity(visit.captures as usize);
        for capture in state.history(id)? {
            captures.push(capture?);
        }
        captures.reverse();
        let new = New { id: new, signature: signature.map(|signature| signature.max(1)) };
        tell(&mut visit, &mut captures, &new, |capture, flags| state.set_capture_flags(capture, flags))?;
        state.set_visit(id, &visit)
    }
}

impl Credits {
    /// Describes a page whose newest capture has become known to be a copy of one with these facts.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub fn describe(state: &mut State, id: UrlId, copy: CaptureId, facts: &Facts) -> Result<(), StateError> {
        let Some((_, capture)) = shown(state, id)?.filter(|(newest, _)| *newest == copy) else {
            return Ok(());
        };
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        let original = capture.original.map(|original| state.capture(original)).transpose()?;
        visit.status = original.map_or(visit.status, |original| original.status);
        describe(state, &mut visit, facts)?;
        state.set_visit(id, &visit)
    }
}

/// A capture that has just come into a history.
struct New {
    id: CaptureId,
    /// Of its content, if it is known; not 0.
    signature: Option<u64>,
}

/// What is told of captures in order of time, as it is told of live captures one by one.
fn tell<E>(
    visit: &mut Visit,
    captures: &mut [(CaptureId, Capture)],
    new: &New,
    mut set_flags: impl FnMut(CaptureId, u8) -> Result<(), E>,
) -> Result<(), E> {
    let mut observations = ChangeObservations::new();
    (visit.versions, visit.last_changed) = (0, 0);
    let mut last: Option<(CaptureId, Capture)> = None;
    let newest = captures.iter().rev().find(|(_, capture)| is_page(capture)).map(|(id, _)| *id);
    for (id, capture) in captures.iter_mut().filter(|(_, capture)| is_page(capture)) {
        let bytes = last.is_none_or(|(_, last)| last.digest != capture.digest);
        let follows_new = last.is_some_and(|(last, _)| last == new.id);
        let content = match new.signature {
            Some(signature) if follows_new && newest == Some(*id) && visit.signature != 0 => {
                bytes && visit.signature != signature
            }
            _ if *id == new.id || follows_new || last.is_none() => bytes,
            _ => capture.flags & CONTENT_CHANGED != 0,
        };
        let flags = capture.flags & !(CONTENT_CHANGED | BYTES_CHANGED)
            | if content { CONTENT_CHANGED } else { 0 }
            | if bytes { BYTES_CHANGED } else { 0 };
        if flags != capture.flags {
            set_flags(*id, flags)?;
        }
        if let Some((_, last)) = last {
            let interval = (capture.time - last.time) as f64 / MICROSECONDS_PER_DAY;
            observations.observe(&Observation { interval, changed: content, last_modified: None });
        }
        visit.versions += u32::from(bytes);
        if content {
            visit.last_changed = seconds(capture);
        }
        last = Some((*id, *capture));
    }
    visit.first_seen = captures.first().map_or(0, |(_, capture)| seconds(capture));
    visit.last_seen = captures.last().map_or(0, |(_, capture)| seconds(capture));
    visit.extension = observations.to_bytes();
    Ok(())
}

fn seconds(capture: &Capture) -> u32 {
    u32::try_from(capture.time.div_euclid(MICROSECONDS)).unwrap_or(0)
}

/// [`Outcome::is_page`] of a capture that is stored.
pub(super) fn is_page(capture: &Capture) -> bool {
    use archive_storage::CaptureKind::{Failed, Identical, NotModified, Resource, Response};
    match capture.kind {
        Failed => false,
        Resource => true,
        Response => capture.status > 0 && capture.status < 400,
        Identical | NotModified => capture.status < 400,
    }
}

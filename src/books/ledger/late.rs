//! Captures that arrive after newer ones of their page, e.g. from imports.
//!
//! The history is ordered by time, in whatever order captures arrive. What a visit summarises (first capture, versions,
//! last change, observations of changes) is recomputed from the whole history, so that it does not depend on that order
//! either. Two things are not in the history: the dates of change that servers stated, and the signatures of older
//! versions, because a visit keeps only the newest one. Without signatures, content counts as changed if the bytes
//! have.

use std::collections::HashMap;
use std::convert::Infallible;

use archive_math::refresh::rate::{ChangeObservations, Observation};
use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, UrlId, Visit};

use super::aliases::newest;
use super::capture_flags::{self, BYTES_CHANGED, CONTENT_CHANGED};
use super::credit::Credits;
use super::facts::CrawlerFacts;
use super::outcome::FetchOutcome;
use super::page_flags;
use super::record::{MICROSECONDS_PER_DAY, describe};

/// The status of a 304, which confirms content with another one.
const NOT_MODIFIED: u16 = 304;

const MICROSECONDS: i64 = 1_000_000;

impl Credits {
    /// Whether the archive has a newer capture of the page. For a failed imported capture, any capture will do: an
    /// import may know a request whose answer is in another file.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn is_late(state: &State, id: UrlId, outcome: &FetchOutcome) -> Result<bool, StateError> {
        let newest = state.visit(id)?.and_then(|visit| visit.last_capture);
        let newest = newest.map(|newest| state.capture(newest)).transpose()?;
        let says_nothing = outcome.kind == CaptureKind::Failed && outcome.facts.imported.is_some();
        Ok(newest.is_some_and(|newest| says_nothing || newest.time > outcome.time.timestamp_micros()))
    }

    /// Notes a late capture. Its page is recomputed when the books are saved, with all other late ones: recomputing per
    /// capture would take quadratic time for a history that arrives in reverse order.
    pub(super) fn note_late(
        &mut self,
        state: &mut State,
        id: UrlId,
        capture: CaptureId,
        signature: Option<u64>,
    ) -> Result<(), StateError> {
        self.late.pages.entry(id).or_default().insert(capture, stored_signature(signature));
        self.late.captures += 1;
        if self.late.captures >= LATE_MAX { self.recompute_late(state) } else { Ok(()) }
    }

    /// Recomputes the pages of late captures.
    pub(super) fn recompute_late(&mut self, state: &mut State) -> Result<(), StateError> {
        for (id, new) in std::mem::take(&mut self.late).pages {
            recompute(state, id, &new)?;
        }
        Ok(())
    }

    /// Recomputes the visit of a page with a capture that turned out to be a copy; `signature` is that of its content.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub fn recompute(
        state: &mut State,
        id: UrlId,
        new: CaptureId,
        signature: Option<u64>,
    ) -> Result<(), StateError> {
        recompute(state, id, &New::from([(new, stored_signature(signature))]))
    }
}

impl Credits {
    /// Recomputes a page that lost captures to an erasure; `newest` is its newest remaining version, with these facts.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub fn summarise(
        state: &mut State,
        id: UrlId,
        newest: CaptureId,
        facts: &CrawlerFacts,
    ) -> Result<(), StateError> {
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        visit.content_status = state.capture(newest)?.status;
        visit.status = visit.content_status;
        visit.signature = stored_signature(facts.signature);
        describe(state, &mut visit, facts)?;
        state.set_visit(id, &visit)?;
        recompute(state, id, &New::new())
    }

    /// Describes a page whose newest capture turned out to be a copy of one with these facts.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub fn describe(
        state: &mut State,
        id: UrlId,
        copy: CaptureId,
        facts: &CrawlerFacts,
    ) -> Result<(), StateError> {
        let Some((_, capture)) =
            newest(state.history(id)?, is_content)?.filter(|(newest, _)| *newest == copy)
        else {
            return Ok(());
        };
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        let original = capture.original.map(|original| state.capture(original)).transpose()?;
        visit.content_status = original.map_or(visit.content_status, |original| original.status);
        if visit.failing_since == 0 {
            visit.status = visit.content_status;
        }
        describe(state, &mut visit, facts)?;
        state.set_visit(id, &visit)
    }
}

/// Maximum number of late captures before their pages are recomputed.
const LATE_MAX: usize = 1 << 16;

/// Late captures whose pages are yet to be recomputed.
#[derive(Debug, Default)]
pub(super) struct LateCaptures {
    pages: HashMap<UrlId, New>,
    captures: usize,
}

/// Captures new to a history, with the signatures of their contents; 0 for none.
type New = HashMap<CaptureId, u64>;

fn stored_signature(signature: Option<u64>) -> u64 {
    signature.map_or(0, |signature| signature.max(1))
}

fn recompute(state: &mut State, id: UrlId, new: &New) -> Result<(), StateError> {
    let Some(mut visit) = state.visit(id)? else { return Ok(()) };
    let mut captures: Vec<(CaptureId, Capture)> = Vec::with_capacity(visit.captures as usize);
    for capture in state.history(id)? {
        captures.push(capture?);
    }
    captures.reverse();
    let before = visit.contents;
    summarise(&mut visit, &mut captures, new, |capture, flags| state.set_capture_flags(capture, flags))?;
    state.set_visit(id, &visit)?;
    recount(state, id, before, visit.contents)
}

/// Corrects the count of its host when the captures with content of a page have changed from `before` to `now`.
pub(super) fn recount(state: &mut State, id: UrlId, before: u32, now: u32) -> Result<(), StateError> {
    let page = state.page(id)?;
    if before != now && !page.flags.has_any(page_flags::ROBOTS) {
        state.update_host(page.host, |host| host.contents = host.contents.saturating_sub(before) + now)?;
    }
    Ok(())
}

/// Recomputes a visit from its captures in order of time, as if each had just been made.
fn summarise<E>(
    visit: &mut Visit,
    captures: &mut [(CaptureId, Capture)],
    new: &New,
    mut set_flags: impl FnMut(CaptureId, u8) -> Result<(), E>,
) -> Result<(), E> {
    let mut observations = ChangeObservations::new();
    *visit = Visit {
        versions: 0,
        last_changed: 0,
        contents: 0,
        first_seen: 0,
        last_seen: 0,
        last_answer: 0,
        last_attempt: 0,
        failing_since: 0,
        content_status: 0,
        ..*visit
    };
    let mut last: Option<(CaptureId, Capture)> = None;
    let newest = captures.iter().rev().find(|(_, capture)| is_page(capture)).map(|(id, _)| *id);
    for (id, capture) in captures.iter_mut().filter(|(_, capture)| !capture_flags::is_erased(capture)) {
        let before = *visit;
        attempted(visit, seconds(capture), is_answer(capture), is_content(capture).then_some(capture.status));
        if !is_page(capture) {
            continue;
        }
        let bytes = last.is_none_or(|(_, last)| last.digest != capture.digest);
        let follows_new = last.and_then(|(last, _)| new.get(&last));
        let content = match follows_new {
            Some(&signature) if signature != 0 && newest == Some(*id) && visit.signature != 0 => {
                bytes && visit.signature != signature
            }
            None if !new.contains_key(id) && last.is_some() => capture_flags::content_changed(capture),
            _ => bytes,
        };
        let flags = capture.flags & !(CONTENT_CHANGED | BYTES_CHANGED)
            | if content { CONTENT_CHANGED } else { 0 }
            | if bytes { BYTES_CHANGED } else { 0 };
        if flags != capture.flags {
            set_flags(*id, flags)?;
        }
        if let Some((_, last)) = last.filter(|_| tells_of_changes(&before, seconds(capture))) {
            let interval = (capture.time - last.time) as f64 / MICROSECONDS_PER_DAY;
            observations.observe(&Observation { interval, changed: content, last_modified: None });
        }
        visit.versions += u32::from(bytes);
        if content {
            visit.last_changed = seconds(capture);
        }
        last = Some((*id, *capture));
    }
    visit.extension = observations.to_bytes();
    Ok(())
}

/// The visit of a page as it would be with only some of its `captures`, in order of time; `None` without any. Those in
/// `parted` followed others that are left out. Flags of captures that change are added to `flags`.
pub(crate) fn visit_without(
    visit: &Visit,
    captures: &mut [(CaptureId, Capture)],
    parted: &[CaptureId],
    flags: &mut HashMap<CaptureId, u8>,
) -> Option<Visit> {
    let newest =
        |is_meant: fn(&Capture) -> bool| captures.iter().rev().find(|(_, capture)| is_meant(capture));
    let last = captures.last()?.0;
    let answer = newest(is_answer).map(|(_, capture)| *capture);
    let mut kept = Visit {
        captures: captures.len() as u32,
        last_capture: Some(last),
        version: newest(Capture::is_confirmable).map(|(id, _)| *id),
        validators: None,
        ..*visit
    };
    // What differs from a capture that is left out is compared with the one before that.
    let new = parted.iter().map(|id| (*id, 0)).collect();
    let Ok(()) = summarise(&mut kept, captures, &new, |id, changed| {
        flags.insert(id, changed);
        Ok::<_, Infallible>(())
    });
    kept.status = answer.map_or(0, |answer| match answer.kind {
        CaptureKind::NotModified => kept.content_status,
        _ => answer.status,
    });
    Some(kept)
}

/// Adds the next attempt to the times and counts of a visit, with the status of its content, if it brought that.
pub(super) fn attempted(visit: &mut Visit, seconds: u32, is_answer: bool, content: Option<u16>) {
    visit.last_attempt = seconds;
    if is_answer {
        visit.last_answer = seconds;
    }
    if visit.first_seen == 0 || content.is_some() && visit.contents == 0 {
        visit.first_seen = seconds;
    }
    if let Some(status) = content {
        visit.contents += 1;
        if status != NOT_MODIFIED {
            visit.content_status = status;
        }
        (visit.last_seen, visit.failing_since) = (seconds, 0);
    } else if visit.failing_since == 0 {
        visit.failing_since = seconds;
    }
}

/// Whether content found now tells how often a page changes: not if it was gone for longer than it had been there since
/// the last capture of it. So a page that comes back is visited as often as before.
pub(super) fn tells_of_changes(visit: &Visit, now: u32) -> bool {
    let since = visit.failing_since;
    since == 0 || now.saturating_sub(since) <= since.saturating_sub(visit.last_seen)
}

fn seconds(capture: &Capture) -> u32 {
    u32::try_from(capture.time.div_euclid(MICROSECONDS)).unwrap_or(0)
}

/// Whether a server answered, or another tool stored a document.
#[must_use]
pub fn is_answer(capture: &Capture) -> bool {
    capture.kind != CaptureKind::Failed && !capture_flags::is_erased(capture)
}

/// [`FetchOutcome::is_content`] for a stored capture.
#[must_use]
pub fn is_content(capture: &Capture) -> bool {
    is_answer(capture) && is_page(capture) && (capture.kind.has_payload() || capture.original.is_some())
}

/// [`FetchOutcome::is_page`] for a stored capture.
pub(super) fn is_page(capture: &Capture) -> bool {
    use archive_storage::CaptureKind::{Failed, Identical, NotModified, Resource, Response};
    match capture.kind {
        Failed => false,
        Resource => true,
        Response => capture.status > 0 && capture.status < 400,
        Identical | NotModified => capture.status < 400,
    }
}

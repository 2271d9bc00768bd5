//! Captures that arrive after newer ones of their page, as imports bring them.
//!
//! The history is in order of time whatever order captures arrive in. What a visit sums up of it (first capture,
//! versions, last change, observations of change) is told again from the whole history, so that it too does not depend
//! on the order. Only what is not in the history is lost by it: the dates of change that servers stated.

use archive_storage::{Capture, State, UrlId, Visit};

use super::credit::{CreditError, Credits};
use super::outcome::Outcome;
use super::record::SECONDS_PER_DAY;
use crate::refresh::rate::{ChangeObservations, Observation};

const MICROSECONDS: i64 = 1_000_000;

impl Credits {
    /// Whether the archive has a newer capture of the page.
    pub(super) fn is_late(state: &State, id: UrlId, outcome: &Outcome) -> Result<bool, CreditError> {
        let newest = state.visit(id)?.and_then(|visit| visit.last_capture);
        let newest = newest.map(|newest| state.capture(newest)).transpose()?;
        Ok(newest.is_some_and(|newest| newest.time > outcome.time.timestamp_micros()))
    }

    /// Sums up a page's history anew.
    pub(super) fn retell(state: &mut State, id: UrlId) -> Result<(), CreditError> {
        let Some(mut visit) = state.visit(id)? else { return Ok(()) };
        let mut captures: Vec<Capture> = Vec::with_capacity(visit.captures as usize);
        for capture in state.history(id)? {
            captures.push(capture?.1);
        }
        captures.reverse();
        tell(&mut visit, &captures);
        Ok(state.set_visit(id, &visit)?)
    }
}

/// What is told of captures in order of time, as it is told of live captures one by one.
fn tell(visit: &mut Visit, captures: &[Capture]) {
    let mut observations = ChangeObservations::new();
    let (mut versions, mut last_seen, mut last_changed) = (0, 0, 0);
    let mut before: Option<&Capture> = None;
    for capture in captures {
        let seconds = u32::try_from(capture.time.div_euclid(MICROSECONDS)).unwrap_or(0);
        let is_page = is_page(capture);
        let is_other = before.is_none_or(|before| before.digest != capture.digest);
        let changed = is_page && capture.kind.has_payload() && is_other;
        if is_page {
            if versions > 0 {
                let interval = f64::from(seconds.saturating_sub(last_seen)) / SECONDS_PER_DAY;
                observations.observe(&Observation { interval, changed, last_modified: None });
            }
            if changed || versions == 0 {
                versions += 1;
                last_changed = seconds;
            }
        }
        if before.is_none() {
            visit.first_seen = seconds;
        }
        last_seen = seconds;
        before = Some(capture);
    }
    visit.versions = versions;
    visit.last_seen = last_seen;
    visit.last_changed = last_changed;
    visit.extension = observations.to_bytes();
}

/// [`Outcome::is_page`] of a capture that is stored.
fn is_page(capture: &Capture) -> bool {
    use archive_storage::CaptureKind::{Failed, Identical, NotModified, Resource, Response};
    match capture.kind {
        Failed => false,
        Resource => true,
        Response => capture.status > 0 && capture.status < 400,
        Identical | NotModified => capture.status < 400,
    }
}

//! A capture in the history of its page: what was seen when, and whether it had changed.

use archive_storage::{Capture, CaptureId, CaptureKind, Location, PageFlags, State, UrlId, Visit};

use super::credit::{CreditError, Credits};
use super::languages;
use super::outcome::{Kind, Outcome};
use super::page_flags as flags;
use crate::parse::DocumentKind;
use crate::refresh::rate::{ChangeObservations, Observation};

/// The unit of the refresh mathematics.
pub(super) const SECONDS_PER_DAY: f64 = 86_400.0;

impl Credits {
    /// Appends the capture and brings its page's visit up to date.
    pub(super) fn record(
        &mut self,
        state: &mut State,
        id: UrlId,
        outcome: &Outcome,
        location: Location,
        is_late: bool,
    ) -> Result<CaptureId, CreditError> {
        if is_late {
            let capture = append(state, id, outcome, location)?;
            Self::retell(state, id)?;
            return Ok(capture);
        }
        let mut visit = state.visit(id)?.unwrap_or_default();
        let seconds = u32::try_from(outcome.time.timestamp()).unwrap_or(0);
        let is_page = outcome.is_page();
        let changed = is_page && outcome.kind.has_payload() && Self::has_changed(state, &visit, outcome)?;
        if visit.captures == 0 {
            visit.first_seen = seconds;
        }
        if is_page {
            let mut observations = ChangeObservations::from_bytes(&visit.extension);
            let days = f64::from(seconds.saturating_sub(visit.last_seen)) / SECONDS_PER_DAY;
            if visit.versions > 0 {
                let age = outcome
                    .facts
                    .last_modified
                    .map(|date| (outcome.time.timestamp() - date) as f64 / SECONDS_PER_DAY);
                observations.observe(&Observation { interval: days, changed, last_modified: age });
            }
            visit.extension = observations.to_bytes();
            if changed || visit.versions == 0 {
                visit.versions += 1;
                visit.last_changed = seconds;
            }
        }
        visit.last_seen = seconds;
        visit.status = if outcome.kind == Kind::NotModified { visit.status } else { outcome.status };
        if let Some(kind) = outcome.facts.document.as_deref().and_then(document_kind) {
            visit.kind = kind.code();
        }
        if let Some(title) = &outcome.facts.title {
            let known = visit.title.map(|position| state.title(position)).transpose()?;
            if known.as_deref() != Some(title) {
                visit.title = Some(state.append_title(title)?);
            }
        }
        if outcome.kind == Kind::Response {
            let language = outcome.facts.language.as_deref().unwrap_or_default();
            visit.language = languages::number(state, language)?;
        }
        state.set_visit(id, &visit)?;
        let mut page = state.page(id)?;
        page.flags.set(PageFlags(flags::FETCHED), true);
        page.flags.set(PageFlags(flags::GONE), !is_page);
        state.set_page(id, &page)?;
        append(state, id, outcome, location)
    }

    /// Whether the content differs from that of the page's last capture that had any.
    fn has_changed(state: &State, visit: &Visit, outcome: &Outcome) -> Result<bool, CreditError> {
        let Some(last) = visit.last_capture else { return Ok(true) };
        Ok(state.capture(last)?.digest != outcome.digest)
    }
}

/// Puts a capture into its page's history.
fn append(
    state: &mut State,
    id: UrlId,
    outcome: &Outcome,
    location: Location,
) -> Result<CaptureId, CreditError> {
    let mime = state.intern_mime(&outcome.media_type)?;
    let original = match outcome.kind {
        Kind::Identical | Kind::NotModified => state.by_digest(&outcome.digest)?,
        Kind::Response | Kind::Resource | Kind::Failed => None,
    };
    Ok(state.append_capture(&Capture {
        url: id,
        time: outcome.time.timestamp_micros(),
        location,
        digest: outcome.digest,
        status: outcome.status,
        mime,
        kind: capture_kind(outcome.kind),
        length: u32::try_from(outcome.payload_bytes).unwrap_or(u32::MAX),
        flags: 0,
        original,
    })?)
}

fn document_kind(name: &str) -> Option<DocumentKind> {
    DocumentKind::all().find(|kind| kind.name() == name)
}

const fn capture_kind(kind: Kind) -> CaptureKind {
    match kind {
        Kind::Response => CaptureKind::Response,
        Kind::Resource => CaptureKind::Resource,
        Kind::Identical => CaptureKind::Identical,
        Kind::NotModified => CaptureKind::NotModified,
        Kind::Failed => CaptureKind::Failed,
    }
}

//! What the archive already has of a URL: the version that a server may confirm, and the path that led to it.

use archive_books::ledger::{CrawlerFacts, CreditError, capture_flags};
use archive_storage::segment::CaptureBody;
use archive_storage::{
    Capture, CaptureId, Digest, Page, State, StateError, Store, StoreError, UrlId, Validators,
};
use bytes::Bytes;
use chrono::DateTime;

use super::process::Previous;

/// Maximum number of hops of a path that are recorded.
const HOPS_MAX: usize = 64;

/// Returns the newest stored version of a page, and its validators for a conditional request: all from the state, no
/// record is read.
pub(super) fn find(store: &Store, id: UrlId) -> Result<Option<(Previous, Validators)>, StateError> {
    let state = store.state();
    let Some(validators) = state.validators(id)? else { return Ok(None) };
    let Some((id, version)) = state.newest_version(id)? else { return Ok(None) };
    // A revisit written by another tool may have no original here.
    let holder = if version.kind.has_payload() { Some(id) } else { version.original };
    let Some(holder) = holder else { return Ok(None) };
    let previous = Previous::of(store, (holder, state.capture(holder)?), validators.digest)?;
    Ok(previous.map(|previous| (previous, validators)))
}

impl Previous {
    /// Returns what is needed to refer to a capture with a payload, whose record has this digest; `None` if its segment
    /// is missing, because then the content must be stored again.
    pub(super) fn of(
        store: &Store,
        original: (CaptureId, Capture),
        record_digest: Digest,
    ) -> Result<Option<Self>, StateError> {
        let (_, capture) = original;
        if store.is_missing(capture.location.segment) {
            return Ok(None);
        }
        let Some(original_time) = DateTime::from_timestamp_micros(capture.time) else { return Ok(None) };
        let original_url = store.state().url(capture.url)?;
        let media_type = store.state().mime(capture.mime).to_owned();
        Ok(Some(Self {
            content: capture.digest,
            record_digest,
            original,
            original_url,
            original_time,
            media_type,
        }))
    }

    /// Returns the revisit for an answer with the same content; `received` is the digest of its body as received. What
    /// only its chunks make different is the same payload, but not what was compressed otherwise: as that is shown with the head
    /// of the original, status and type have to be the same, and there is no revisit of redirects, which say all in their heads.
    pub(super) fn revisit(
        &self,
        head: Bytes,
        received: Digest,
        (status, media_type, facts): (u16, &str, &CrawlerFacts),
    ) -> Option<CaptureBody> {
        let (original_url, original_time) = (self.original_url.clone(), self.original_time);
        let original = &self.original.1;
        let has_codings = facts.content_digest.is_some() || capture_flags::is_coded(original);
        if received == self.record_digest || !has_codings {
            return Some(CaptureBody::Identical { head, original_url, original_time });
        }
        let is_shown_alike = status == 200 && original.status == 200 && self.media_type == media_type;
        is_shown_alike.then_some(CaptureBody::SameContent { head, original_url, original_time })
    }
}

/// Returns the `WARC-Payload-Digest` of a capture's record; its content has the digest `content`. The record is read
/// only if the state does not have it. `None` if the record is lost.
pub(super) fn record_digest(
    store: &Store,
    (id, capture): (CaptureId, &Capture),
    content: Option<Digest>,
) -> Result<Option<Digest>, StoreError> {
    let state = store.state();
    let is_of_record = capture_flags::digest_is_of_record(capture);
    if let Some(digest) = content.filter(|digest| is_of_record && capture.digest == digest.prefix()) {
        return Ok(Some(digest));
    }
    if state.visit(capture.url)?.is_some_and(|visit| visit.version == Some(id))
        && let Some(validators) = state.validators(capture.url)?
    {
        return Ok(Some(validators.digest));
    }
    let record = match store.record(capture.location) {
        Err(lost) if lost.is_lost() => return Ok(None),
        record => record?,
    };
    Ok(record.header.get("WARC-Payload-Digest").and_then(|text| text.parse().ok()))
}

/// Returns the page that led to a URL, and the kinds of links from a seed to it.
pub(super) fn discovery_path(
    state: &State,
    id: UrlId,
    page: &Page,
) -> Result<(Option<String>, String), CreditError> {
    let via = page.via.filter(|via| *via != id);
    let mut letters = Vec::new();
    let mut step = *page;
    while let Some(before) = step.via {
        letters.push(char::from(step.hop));
        if letters.len() >= HOPS_MAX {
            break;
        }
        step = state.page(before)?;
    }
    letters.reverse();
    let via = via.map(|via| state.url(via)).transpose()?;
    Ok((via, letters.into_iter().collect()))
}

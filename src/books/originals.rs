//! Finds the original capture of a revisit.
//!
//! Revisits written by this program name the URL and time of their original. Other crawlers may give only a digest, in
//! an algorithm of their choice, or only say that nothing was modified, and the file with the original may be imported
//! later. So the original is looked up by the revisit's reference, then by digest, then in its page's history; a
//! revisit that remains unresolved is looked up again after each import.

use archive_storage::segment::{ReplayedCapture, SegmentReader, is_not_modified};
use archive_storage::warc::RecordHeader;
use archive_storage::{Capture, CaptureId, CaptureKind, Digest, State, StateError, Store, StoreError, UrlId};
use chrono::{DateTime, Utc};

use crate::ledger::{CrawlerFacts, Credits, FetchOutcome, canonical_of, shown};

/// Catalogue counter for the number of unresolved revisits.
const OPEN_COUNTER: &str = "revisits.open";

/// Maximum number of captures of a page whose records are read in search of a digest.
const HISTORY_MAX: usize = 256;

const MICROSECONDS: i64 = 1_000_000;

/// What a revisit states about its original.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Canonical URL of the revisit.
    pub(crate) url: String,
    /// Its time, microseconds since 1970.
    pub(crate) time: i64,
    /// URL and time of the original.
    pub(crate) refers_to: Option<(String, Option<DateTime<Utc>>)>,
    /// The stated payload digest.
    pub(crate) digest: Option<Digest>,
    /// Whether the server said that nothing was modified.
    pub(crate) is_not_modified: bool,
}

impl Reference {
    /// Reads the reference from a revisit's record header.
    pub fn of(header: &RecordHeader, url: String, time: i64) -> Self {
        Self {
            url,
            time,
            refers_to: header.refers_to().map(|(url, time)| (url.to_owned(), time)),
            digest: header.get("WARC-Payload-Digest").and_then(|text| text.parse().ok()),
            is_not_modified: header.get("WARC-Profile").is_some_and(is_not_modified),
        }
    }
}

/// The capture that holds the payload of a stored revisit.
pub(crate) fn referred_to(
    state: &State,
    capture: &ReplayedCapture,
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    if !matches!(capture.kind, CaptureKind::Identical | CaptureKind::NotModified) {
        return Ok(None);
    }
    let refers_to = capture.original.as_ref().map(|(url, time)| (url.as_str(), *time));
    holder(state, refers_to, &capture.content_digest().map(|digest| digest.prefix()).unwrap_or_default())
}

/// The capture that holds the payload of a revisit, found by reference or else by digest.
pub(crate) fn holder(
    state: &State,
    refers_to: Option<(&str, DateTime<Utc>)>,
    digest: &[u8; 16],
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    if let Some((url, time)) = refers_to
        && let Some((id, found)) = at(state, url, time)?
        && let Some(original) = payload_of(state, id, found)?
    {
        return Ok(Some(original));
    }
    state.by_digest(digest)?.map(|id| Ok((id, state.capture(id)?))).transpose()
}

/// Whether the page's current facts come from this capture or from a revisit of it.
pub fn shows(state: &State, page: UrlId, id: CaptureId) -> Result<bool, StateError> {
    let shown = shown(state, page)?;
    Ok(shown.is_some_and(|(shown, capture)| shown == id || capture.original == Some(id)))
}

/// Copies to a revisit that was not parsed itself what is known of its original document: kind, title, language and, if
/// the original has the same URL, links. Does nothing if the page already shows that document or a newer one.
pub(crate) fn inherit(
    state: &State,
    reader: &SegmentReader,
    outcome: &mut FetchOutcome,
) -> Result<(), StoreError> {
    let is_described = outcome.facts.document.is_some() || outcome.facts.robots;
    let Some((id, _)) = outcome.original.filter(|_| !is_described) else { return Ok(()) };
    // The record may have moved since it was looked up.
    let original = state.capture(id)?;
    let page = state.find(&outcome.url)?;
    if let Some(page) = page
        && (shows(state, page, id)? || Credits::is_late(state, page, outcome)?)
    {
        return Ok(());
    }
    // An unreadable record is skipped here; `archive verify` reports it.
    let Ok(fields) = reader.metadata(original.location) else { return Ok(()) };
    let CrawlerFacts {
        document, title, language, signature, similarity, copies, directives, mut links, ..
    } = CrawlerFacts::from_fields(&fields);
    if page != Some(original.url) {
        // Relative links resolve differently from this URL.
        links.clear();
    }
    let own = std::mem::take(&mut outcome.facts);
    outcome.facts =
        CrawlerFacts { document, title, language, signature, similarity, copies, directives, links, ..own };
    Ok(())
}

/// The capture of a URL at a time. A time in whole seconds matches any capture within that second.
fn at(state: &State, url: &str, time: DateTime<Utc>) -> Result<Option<(CaptureId, Capture)>, StateError> {
    let id = match state.find(url)? {
        Some(id) => id,
        None => match state.find(&canonical_of(url))? {
            Some(id) => id,
            None => return Ok(None),
        },
    };
    let micros = time.timestamp_micros();
    let is_whole = micros.rem_euclid(MICROSECONDS) == 0;
    let fits = |capture: &Capture| {
        capture.time == micros || is_whole && capture.time.div_euclid(MICROSECONDS) == time.timestamp()
    };
    Ok(state.nearest(id, micros)?.filter(|(_, capture)| fits(capture)))
}

/// Finds a revisit's original. `known` maps digests that are not in the archive's index to captures.
pub fn find(
    store: &Store,
    reference: &Reference,
    known: &dyn Fn(&Digest) -> Option<CaptureId>,
) -> Result<Option<(CaptureId, Capture)>, StoreError> {
    let state = store.state();
    let refers_to = reference.refers_to.as_ref().and_then(|(url, time)| Some((url.as_str(), (*time)?)));
    let digest = reference.digest.as_ref().map(Digest::prefix).unwrap_or_default();
    if let Some(found) = holder(state, refers_to, &digest)? {
        return Ok(Some(found));
    }
    if let Some(digest) = &reference.digest {
        if let Some(found) = known(digest) {
            return Ok(Some((found, state.capture(found)?)));
        }
        let page = reference.refers_to.as_ref().map(|(url, _)| canonical_of(url));
        for url in [Some(&reference.url), page.as_ref().filter(|page| **page != reference.url)] {
            let Some(id) = url.map(|url| state.find(url)).transpose()?.flatten() else { continue };
            if let Some(original) = by_stated_digest(store, id, digest)? {
                return Ok(Some(original));
            }
        }
    }
    // A reference with both URL and time stands for no other capture, even if that one is missing here.
    let names_it = reference.refers_to.as_ref().is_some_and(|(_, time)| time.is_some());
    Ok(if reference.is_not_modified && !names_it { version_before(state, reference)? } else { None })
}

/// The capture of a page whose record states this digest.
fn by_stated_digest(
    store: &Store,
    id: UrlId,
    digest: &Digest,
) -> Result<Option<(CaptureId, Capture)>, StoreError> {
    let history = store.state().history(id)?.take(HISTORY_MAX);
    for capture in history {
        let (id, capture) = capture?;
        if !capture.kind.has_payload() {
            continue;
        }
        let record = store.record(capture.location)?;
        let stated = record.header.get("WARC-Payload-Digest").and_then(|text| text.parse::<Digest>().ok());
        if stated.as_ref() == Some(digest) {
            return Ok(Some((id, capture)));
        }
    }
    Ok(None)
}

/// The version that the server meant when it reported "not modified".
fn version_before(state: &State, reference: &Reference) -> Result<Option<(CaptureId, Capture)>, StateError> {
    let Some(page) = state.find(&reference.url)? else { return Ok(None) };
    for capture in state.history(page)? {
        let (id, capture) = capture?;
        let is_version = capture.kind != CaptureKind::Failed && capture.status < 300;
        if capture.time < reference.time && is_version {
            return payload_of(state, id, capture);
        }
    }
    Ok(None)
}

/// The capture itself if it has a payload, otherwise its original.
fn payload_of(
    state: &State,
    id: CaptureId,
    capture: Capture,
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    if capture.kind.has_payload() {
        return Ok(Some((id, capture)));
    }
    capture.original.map(|id| Ok((id, state.capture(id)?))).transpose()
}

/// Number of revisits without an original as of the last [`resolve_open`].
pub fn open_count(state: &State) -> u64 {
    state.counter(OPEN_COUNTER)
}

/// Looks again for the originals of all revisits that have none, and returns those that remain unresolved.
pub fn resolve_open(
    store: &mut Store,
    known: &dyn Fn(&Digest) -> Option<CaptureId>,
) -> Result<Vec<Capture>, StoreError> {
    let is_open = |capture: &Capture| !capture.kind.has_payload() && capture.kind != CaptureKind::Failed;
    let mut open = Vec::new();
    for capture in store.state().captures() {
        let (id, capture) = capture?;
        if is_open(&capture) && capture.original.is_none() {
            open.push((id, capture));
        }
    }
    let mut left = Vec::new();
    for (id, capture) in open {
        let record = store.record(capture.location)?;
        let url = store.state().url(capture.url)?;
        let reference = Reference::of(&record.header, url, capture.time);
        match find(store, &reference, known)? {
            Some((original, found)) => {
                store.state_mut().set_original(id, original)?;
                // Until now it was unknown that this capture repeats the page's earlier content.
                Credits::recompute(store.state_mut(), capture.url, id, None)?;
                if let Ok(fields) = store.metadata(&found) {
                    Credits::describe(
                        store.state_mut(),
                        capture.url,
                        id,
                        &CrawlerFacts::from_fields(&fields),
                    )?;
                }
            }
            None => left.push(capture),
        }
    }
    store.state_mut().set_counter(OPEN_COUNTER, left.len() as u64)?;
    Ok(left)
}

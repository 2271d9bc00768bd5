//! Which capture a revisit stands for.
//!
//! Revisits that this program wrote name URL and time of their original. Other crawlers may give no more than a digest, in
//! an algorithm of their choice, or only say that nothing was modified; and the file with the original may be imported
//! later. So a revisit is looked up by what it refers to, then by digest, then by its page's history, and one that
//! stays open is looked up again when something was imported.

use archive_storage::segment::{ReplayedCapture, is_not_modified};
use archive_storage::warc::Header;
use archive_storage::{Capture, CaptureId, CaptureKind, Digest, State, StateError, Store, StoreError, UrlId};
use chrono::{DateTime, Utc};

use crate::ledger::{Credits, canonical_of};

/// The number under which the catalogue keeps how many revisits are open.
const OPEN_COUNTER: &str = "revisits.open";

/// Captures of a page whose records are read in search of a digest, at most.
const HISTORY_MAX: usize = 256;

const MICROSECONDS: i64 = 1_000_000;

/// What a revisit says of its original.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
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
    /// Reads what a revisit's head says.
    pub(crate) fn of(header: &Header, url: String, time: i64) -> Self {
        Self {
            url,
            time,
            refers_to: header.refers_to().map(|(url, time)| (url.to_owned(), time)),
            digest: header.get("WARC-Payload-Digest").and_then(|text| text.parse().ok()),
            is_not_modified: header.get("WARC-Profile").is_some_and(is_not_modified),
        }
    }
}

/// The capture that a stored revisit refers to by URL and time.
pub(crate) fn referred_to(state: &State, capture: &ReplayedCapture) -> Result<Option<Capture>, StateError> {
    let Some((url, time)) = &capture.original else { return Ok(None) };
    Ok(at(state, url, *time)?.map(|(_, capture)| capture))
}

/// The capture of a URL at a time; a time in whole seconds stands for its second.
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

/// Finds a revisit's original; `known` gives captures by digests that the archive does not find them by.
pub(crate) fn find(
    store: &Store,
    reference: &Reference,
    known: &dyn Fn(&Digest) -> Option<CaptureId>,
) -> Result<Option<Capture>, StoreError> {
    let state = store.state();
    if let Some((url, Some(time))) = &reference.refers_to
        && let Some((_, found)) = at(state, url, *time)?
        && let Some(original) = store.original(&found)?
    {
        return Ok(Some(original));
    }
    if let Some(digest) = &reference.digest {
        let found = match state.by_digest(&digest.prefix())? {
            Some(found) => Some(found),
            None => known(digest),
        };
        if let Some(found) = found {
            return Ok(Some(state.capture(found)?));
        }
        let page = reference.refers_to.as_ref().map(|(url, _)| canonical_of(url));
        for url in [Some(&reference.url), page.as_ref().filter(|page| **page != reference.url)] {
            let Some(id) = url.map(|url| state.find(url)).transpose()?.flatten() else { continue };
            if let Some(original) = by_stated_digest(store, id, digest)? {
                return Ok(Some(original));
            }
        }
    }
    // One that names URL and time stands for no other capture, also while that one is not here.
    let names_it = reference.refers_to.as_ref().is_some_and(|(_, time)| time.is_some());
    if reference.is_not_modified && !names_it { version_before(store, reference) } else { Ok(None) }
}

/// The capture of a page whose record states this digest.
fn by_stated_digest(store: &Store, id: UrlId, digest: &Digest) -> Result<Option<Capture>, StoreError> {
    let history = store.state().history(id)?.take(HISTORY_MAX);
    for capture in history {
        let (_, capture) = capture?;
        if !capture.kind.has_payload() {
            continue;
        }
        let record = store.record(capture.location)?;
        let stated = record.header.get("WARC-Payload-Digest").and_then(|text| text.parse::<Digest>().ok());
        if stated.as_ref() == Some(digest) {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

/// The version that a server meant when it said that nothing was modified.
fn version_before(store: &Store, reference: &Reference) -> Result<Option<Capture>, StoreError> {
    let Some(id) = store.state().find(&reference.url)? else { return Ok(None) };
    for capture in store.state().history(id)? {
        let (_, capture) = capture?;
        let is_version = capture.kind != CaptureKind::Failed && capture.status < 300;
        if capture.time < reference.time && is_version {
            return store.original(&capture);
        }
    }
    Ok(None)
}

/// How many revisits had no original when the archive was last looked through for them.
pub(crate) fn open_count(state: &State) -> u64 {
    state.counter(OPEN_COUNTER)
}

/// Looks again for the originals of all revisits that have none, and gives those back that stay open.
pub(crate) fn resolve_open(
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
        let original = find(store, &reference, known)?;
        let found = original.map(|original| store.state().by_digest(&original.digest)).transpose()?.flatten();
        match found {
            Some(original) => {
                store.state_mut().set_original(id, original)?;
                // Before, nobody could say that it was what the page had been already.
                Credits::retell(store.state_mut(), capture.url, id, None)?;
            }
            None => left.push(capture),
        }
    }
    store.state_mut().set_counter(OPEN_COUNTER, left.len() as u64)?;
    Ok(left)
}

//! What the archive already has of a URL: the version that a server may confirm, and the way that led to it.

use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, CaptureId, CaptureKind, Digest, Page, State, Store, StoreError, UrlId};
use chrono::{DateTime, Utc};

use super::process::Previous;
use crate::ledger::{CreditError, capture_flags};
use crate::originals;

/// Hops of a path that are written, at most.
const HOPS_MAX: usize = 64;

/// The newest stored version, and what its server gave to ask for it again.
pub(super) struct StoredVersion {
    pub(super) previous: Previous,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

/// Finds the newest version of a page whose payload is in the archive.
pub(super) fn find(store: &Store, id: UrlId) -> Result<Option<StoredVersion>, StoreError> {
    match store.newest_version(id)? {
        Some(capture) => of_capture(store, &capture),
        None => Ok(None),
    }
}

/// What is needed to confirm `capture`, a response or a revisit of one.
pub(super) fn of_capture(store: &Store, capture: &Capture) -> Result<Option<StoredVersion>, StoreError> {
    let record = store.record(capture.location)?;
    let header = &record.header;
    let Some(record_digest) = header.get("WARC-Payload-Digest").and_then(|text| text.parse().ok()) else {
        return Ok(None);
    };
    let refers = header.get("WARC-Refers-To-Target-URI").zip(header.get("WARC-Refers-To-Date"));
    let (original_url, original_time) = match refers {
        Some((url, date)) => match DateTime::parse_from_rfc3339(date) {
            Ok(date) => (url.to_owned(), date.with_timezone(&Utc)),
            Err(_) => return Ok(None),
        },
        None => match DateTime::<Utc>::from_timestamp_micros(capture.time) {
            Some(time) => (store.state().url(capture.url)?, time),
            None => return Ok(None),
        },
    };
    // What the record refers to, as a replay reads it: a capture with the same digest may be another page's.
    let state = store.state();
    let Some(original) = originals::holder(state, Some((&original_url, original_time)), &capture.digest)?
    else {
        return Ok(None);
    };
    let (head, _) = split(&record.content);
    let head = HttpHead::parse(&head);
    Ok(Some(StoredVersion {
        previous: Previous { entity: capture.digest, record_digest, original, original_url, original_time },
        etag: head.get("ETag").filter(|tag| is_sendable(tag)).map(str::to_owned),
        last_modified: head.get("Last-Modified").filter(|date| is_sendable(date)).map(str::to_owned),
    }))
}

/// What is needed to refer to `capture`, which has a payload of this digest, when the state alone can tell: its record
/// need not be read and decompressed.
pub(super) fn by_digest(
    store: &Store,
    id: CaptureId,
    capture: &Capture,
    digest: Digest,
) -> Option<Result<Previous, StoreError>> {
    let is_told = capture.kind == CaptureKind::Response
        && capture_flags::digest_is_of_record(capture)
        && capture.digest == digest.prefix();
    let time = DateTime::<Utc>::from_timestamp_micros(capture.time).filter(|_| is_told)?;
    let previous = |url| Previous {
        entity: capture.digest,
        record_digest: digest,
        original: (id, *capture),
        original_url: url,
        original_time: time,
    };
    Some(store.state().url(capture.url).map(previous).map_err(StoreError::from))
}

/// A field value that came from a server may be sent back only if it cannot break a request apart.
fn is_sendable(value: &str) -> bool {
    !value.is_empty() && value.len() <= 1024 && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The page that led to a URL, and the kinds of links from a seed to it.
pub(super) fn way(state: &State, id: UrlId, page: &Page) -> Result<(Option<String>, String), CreditError> {
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

//! Since when and until when pages said something: their versions are read, as the index has the newest only.
//!
//! A version is read once however often it was captured. What a page said between two captures is unknown, so each
//! period in which a page said it has four times: the last capture before it, the first and last in it, the first after it.

use std::collections::HashMap;
use std::time::Instant;

use archive_storage::{MimeId, Store, UrlId};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use crate::access::Access;
use crate::change::{VersionError, is_version, parsed_in_time};
use crate::search::Phrase;

/// A period in which a page said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The last capture before that did not say it; none if the page said it from its first capture on.
    pub not_yet: Option<DateTime<Utc>>,
    /// The first capture that did.
    pub since: DateTime<Utc>,
    /// The last one.
    pub last: DateTime<Utc>,
    /// The first capture after that did not say it; none while the page says it.
    pub gone: Option<DateTime<Utc>>,
}

impl Span {
    /// Whether a time lies in it, as far as is known.
    #[must_use]
    pub fn has(&self, time: DateTime<Utc>) -> bool {
        self.since <= time && self.gone.is_none_or(|gone| time < gone)
    }
}

/// When a page said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub id: UrlId,
    /// The periods in which it said it, the oldest first.
    pub spans: Vec<Span>,
    /// Versions that were read.
    pub read: u64,
    /// Versions that take too long to read, or are in another archive: nothing is concluded from them.
    pub unread: u64,
}

/// The pages that were read, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Pages that were read, in the order in which they were given.
    pub pages: Vec<Page>,
    /// Pages for which there was not enough time.
    pub left: usize,
}

/// Reads all versions of pages that `access` shows, on all processors and until `deadline`.
///
/// # Errors
/// When the archive cannot be read.
pub fn said(
    store: &Store,
    access: &Access,
    phrase: &Phrase,
    pages: &[UrlId],
    deadline: Instant,
) -> Result<Said, VersionError> {
    let look = |id: &UrlId| page(store, access, phrase, *id, deadline);
    let looked = pages.par_iter().map(look).collect::<Result<Vec<_>, _>>()?;
    let looked_at: Vec<Page> = looked.into_iter().flatten().collect();
    Ok(Said { left: pages.len() - looked_at.len(), pages: looked_at })
}

/// A page; none if the time is over before all of it was read.
fn page(
    store: &Store,
    access: &Access,
    phrase: &Phrase,
    id: UrlId,
    deadline: Instant,
) -> Result<Option<Page>, VersionError> {
    let mut captures = access.history(store.state(), id)?.collect::<Result<Vec<_>, _>>()?;
    captures.reverse();
    let mut known: HashMap<([u8; 16], MimeId), Option<bool>> = HashMap::new();
    let mut page = Page { id, spans: Vec::new(), read: 0, unread: 0 };
    let mut before = None;
    for (_, capture) in &captures {
        let original = store.original(capture)?;
        let said = match original.and_then(|it| known.get(&(it.digest, it.mime))) {
            // A page that is gone says nothing. Other errors show nothing of the page.
            _ if matches!(capture.status, 404 | 410) => Some(false),
            _ if !is_version(capture) => continue,
            Some(said) => *said,
            None if Instant::now() >= deadline => return Ok(None),
            None => {
                // An original may be in another archive.
                let parsed = original.map_or(Ok(None), |_| parsed_in_time(store, capture))?;
                let said = parsed.map(|it| phrase.is_in(&it.title) || phrase.is_in(&it.text));
                page.read += u64::from(said.is_some());
                page.unread += u64::from(said.is_none());
                known.extend(original.map(|it| ((it.digest, it.mime), said)));
                said
            }
        };
        if let Some(said) = said {
            let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
            add(&mut page.spans, before, (said, time));
            before = Some((said, time));
        }
    }
    Ok(Some(page))
}

/// Adds whether a page said it at a time to the periods before.
fn add(spans: &mut Vec<Span>, before: Option<(bool, DateTime<Utc>)>, (said, time): (bool, DateTime<Utc>)) {
    match (before, said, spans.last_mut()) {
        (Some((true, _)), true, Some(span)) => span.last = time,
        (Some((true, _)), false, Some(span)) => span.gone = Some(time),
        (_, true, _) => {
            let not_yet = before.map(|(_, time)| time);
            spans.push(Span { not_yet, since: time, last: time, gone: None });
        }
        _ => {}
    }
}

//! Finds out since when and until when pages had a phrase, by reading their versions: the index has only the newest.
//!
//! A version is read once, however often it was captured. What a page said between two captures is unknown, so each
//! period with the phrase has four times: the last capture before it, the first and last in it, the first after it.

use std::collections::HashMap;
use std::time::Instant;

use archive_base::access::Access;
use archive_storage::{MimeId, Store, UrlId};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use super::{VersionError, is_version, parsed_in_time};
use crate::search::Phrase;

/// A period in which a page had the phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidPeriod {
    /// Last earlier capture without the phrase; none if the page had it from its first capture on.
    pub not_yet: Option<DateTime<Utc>>,
    /// First capture with the phrase.
    pub since: DateTime<Utc>,
    /// Last capture with the phrase.
    pub last: DateTime<Utc>,
    /// First later capture without the phrase; none while the page still has it.
    pub gone: Option<DateTime<Utc>>,
}

impl SaidPeriod {
    /// Whether a time lies in the period, as far as is known.
    #[must_use]
    pub fn has(&self, time: DateTime<Utc>) -> bool {
        self.since <= time && self.gone.is_none_or(|gone| time < gone)
    }
}

/// The periods of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePeriods {
    /// The page.
    pub id: UrlId,
    /// Periods in which the page had the phrase, oldest first.
    pub spans: Vec<SaidPeriod>,
    /// Number of versions read.
    pub read: u64,
    /// Number of versions not read because they take too long or are in another archive; they prove nothing.
    pub unread: u64,
}

/// Periods of the pages read, and the number of pages not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidPeriods {
    /// Pages that were read, in the order given.
    pub pages: Vec<PagePeriods>,
    /// Number of pages left unread when the time ran out.
    pub left: usize,
}

/// Reads all versions of pages that `access` shows, on all processors, until `deadline`.
///
/// # Errors
/// When the archive cannot be read.
pub fn said(
    store: &Store,
    access: &Access,
    phrase: &Phrase,
    pages: &[UrlId],
    deadline: Instant,
) -> Result<SaidPeriods, VersionError> {
    let look = |id: &UrlId| said_by_page(store, access, phrase, *id, None, Some(deadline));
    let looked = pages.par_iter().map(look).collect::<Result<Vec<_>, _>>()?;
    let looked_at: Vec<PagePeriods> = looked.into_iter().flatten().collect();
    Ok(SaidPeriods { left: pages.len() - looked_at.len(), pages: looked_at })
}

/// Reads the versions of a page before an instant; returns none if the time runs out before it is completely read.
///
/// # Errors
/// When the archive cannot be read.
pub fn said_by_page(
    store: &Store,
    access: &Access,
    phrase: &Phrase,
    id: UrlId,
    before: Option<DateTime<Utc>>,
    deadline: Option<Instant>,
) -> Result<Option<PagePeriods>, VersionError> {
    let until = before.map(|before| before.timestamp_micros());
    let mut captures = access.history(store.state(), id)?.collect::<Result<Vec<_>, _>>()?;
    captures.reverse();
    captures.retain(|(_, capture)| until.is_none_or(|until| capture.time < until));
    let mut known: HashMap<([u8; 16], MimeId), Option<bool>> = HashMap::new();
    let mut page = PagePeriods { id, spans: Vec::new(), read: 0, unread: 0 };
    let mut before = None;
    for (_, capture) in &captures {
        let original = store.original(capture).unwrap_or_default();
        let said = match original.and_then(|it| known.get(&(it.digest, it.mime))) {
            // A page that is gone says nothing. Other errors reveal nothing about the page.
            _ if matches!(capture.status, 404 | 410) => Some(false),
            _ if !is_version(capture) => continue,
            Some(said) => *said,
            None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => return Ok(None),
            None => {
                // The original may be in another archive.
                let parsed = original.and_then(|_| parsed_in_time(store, access, capture).ok().flatten());
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

/// Extends the periods by a capture with or without the phrase.
fn add(
    spans: &mut Vec<SaidPeriod>,
    before: Option<(bool, DateTime<Utc>)>,
    (said, time): (bool, DateTime<Utc>),
) {
    match (before, said, spans.last_mut()) {
        (Some((true, _)), true, Some(span)) => span.last = time,
        (Some((true, _)), false, Some(span)) => span.gone = Some(time),
        (_, true, _) => {
            let not_yet = before.map(|(_, time)| time);
            spans.push(SaidPeriod { not_yet, since: time, last: time, gone: None });
        }
        _ => {}
    }
}

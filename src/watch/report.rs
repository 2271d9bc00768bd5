//! What changed on the pages of a watch.

use archive_storage::{Capture, Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Watch, WatchError};
use crate::access::Access;
use crate::change::{Comparison, compare, is_version, version_until};
use crate::ledger::{capture_flags, page_flags};

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum News {
    /// Its content is another.
    Changed,
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
}

impl News {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// What happened to one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNews {
    /// Its URL.
    pub url: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What happened.
    pub news: News,
    /// When it was seen.
    #[serde(with = "crate::instant")]
    pub seen: DateTime<Utc>,
    /// How the version before the report's time differs from the newest, for a changed page.
    pub difference: Option<Comparison>,
}

/// What changed on the pages of a watch in a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The watch's name.
    pub watch: String,
    /// Its query.
    pub query: String,
    /// After this time.
    #[serde(with = "crate::instant")]
    pub since: DateTime<Utc>,
    /// Up to this time.
    #[serde(with = "crate::instant")]
    pub until: DateTime<Utc>,
    /// Pages that fit the query.
    pub pages: usize,
    /// How many of them were not fetched for this report, so that it may miss something.
    pub not_fetched: usize,
    /// What happened, in the order of the query.
    pub news: Vec<PageNews>,
}

impl Report {
    /// Reports on a watch as of `until`; pages last fetched before `fetched_from` count as not fetched for it.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn of(
        watch: &Watch,
        store: &Store,
        fetched_from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Self, WatchError> {
        let access = Access::read(store.path())?;
        let pages = watch.pages(store, until)?;
        let mut report = Self {
            watch: watch.name.clone(),
            query: watch.query.clone(),
            since: watch.since,
            until,
            pages: pages.len(),
            not_fetched: 0,
            news: Vec::new(),
        };
        for id in pages {
            let visit = store.state().visit(id)?;
            let is_fetched =
                visit.is_some_and(|visit| i64::from(visit.last_seen) >= fetched_from.timestamp());
            // What must not be fetched is not waited for.
            let is_refused = page_flags::refusal_code(store.state().page(id)?.flags) != 0;
            report.not_fetched += usize::from(!is_fetched && !is_refused);
            report.news.extend(page_news(store, &access, id, watch.since.timestamp_micros())?);
        }
        Ok(report)
    }

    /// The report as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        json.map(|text| text + "\n").unwrap_or_default()
    }
}

/// What happened to a page after `since`, in microseconds since 1970.
fn page_news(store: &Store, access: &Access, id: UrlId, since: i64) -> Result<Option<PageNews>, WatchError> {
    let seen = Seen::of(store, access, id, since)?;
    let before = version_until(store, access, id, since)?;
    let Some((news, capture)) = seen.news(before.is_some()) else { return Ok(None) };
    let difference = match (news, before) {
        (News::Changed, Some(before)) => Some(compare(store, &before, &capture)?),
        _ => None,
    };
    let state = store.state();
    let title = state.visit(id)?.and_then(|visit| visit.title).map(|title| state.title(title)).transpose()?;
    Ok(Some(PageNews {
        url: state.url(id)?,
        title,
        news,
        seen: DateTime::from_timestamp_micros(capture.time).unwrap_or_default(),
        difference,
    }))
}

/// What was seen of a page after a time.
#[derive(Default)]
struct Seen {
    /// The newest answer, and the newest that found the page.
    answer: Option<Capture>,
    version: Option<Capture>,
    /// The earliest of the errors in a row that were answered last.
    gone: Option<Capture>,
    /// Whether its content changed.
    changed: bool,
}

impl Seen {
    fn of(store: &Store, access: &Access, id: UrlId, since: i64) -> Result<Self, WatchError> {
        let mut seen = Self::default();
        for capture in access.history(store.state(), id)? {
            let (_, capture) = capture?;
            if capture.time <= since {
                break;
            }
            // No answer says nothing of the page.
            if capture.status == 0 {
                continue;
            }
            seen.answer.get_or_insert(capture);
            if is_version(&capture) {
                seen.version.get_or_insert(capture);
                seen.changed |= capture_flags::content_changed(&capture);
            } else if seen.version.is_none() && matches!(capture.status, 404 | 410) {
                seen.gone = Some(capture);
            }
        }
        Ok(seen)
    }

    fn news(&self, was_there: bool) -> Option<(News, Capture)> {
        match (self.version, self.gone) {
            (_, Some(gone)) if was_there => Some((News::Gone, gone)),
            (Some(version), None) if !was_there => Some((News::New, version)),
            (Some(version), None) if self.changed => Some((News::Changed, version)),
            _ => None,
        }
    }
}

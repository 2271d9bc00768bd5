//! Changes to the pages of a watch.

use archive_base::access::Access;
use archive_books::change::{VersionComparison, compare, is_version, version_until};
use archive_books::ledger::{capture_flags, page_flags};
use archive_storage::{Capture, Store, UrlId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Watch, WatchError};

/// Kind of change to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum News {
    /// Its content changed.
    Changed,
    /// It appeared.
    New,
    /// It disappeared.
    Gone,
}

archive_base::names! { News: Changed "changed", New "new", Gone "gone" }

/// A change to one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNews {
    /// URL of the page.
    pub url: String,
    /// Title of the page, if it has one.
    pub title: Option<String>,
    /// Kind of change.
    pub news: News,
    /// Time of the capture that showed it.
    #[serde(with = "archive_base::instant")]
    pub seen: DateTime<Utc>,
    /// For a changed page, the difference between the last version before the report's period and the newest one.
    pub difference: Option<VersionComparison>,
}

/// The changes to the pages of a watch within a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchReport {
    /// Name of the watch.
    pub watch: String,
    /// Query of the watch.
    pub query: String,
    /// Start of the period (exclusive).
    #[serde(with = "archive_base::instant")]
    pub since: DateTime<Utc>,
    /// End of the period (inclusive).
    #[serde(with = "archive_base::instant")]
    pub until: DateTime<Utc>,
    /// Number of pages that match the query.
    pub pages: usize,
    /// Number of these that were not fetched for this report, so that changes may be missing.
    pub not_fetched: usize,
    /// The changes, in the order of the query.
    pub news: Vec<PageNews>,
}

impl WatchReport {
    /// Makes the report of a watch as of `until`. Pages last fetched before `fetched_from` count as not fetched.
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
                visit.is_some_and(|visit| i64::from(visit.last_attempt) >= fetched_from.timestamp());
            // Pages that must not be fetched are not waited for.
            let is_refused = page_flags::refusal_code(store.state().page(id)?.flags) != 0;
            report.not_fetched += usize::from(!is_fetched && !is_refused);
            report.news.extend(page_news(store, &access, id, watch.since.timestamp_micros())?);
        }
        Ok(report)
    }

    /// Formats the report as one line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        json.map(|text| text + "\n").unwrap_or_default()
    }
}

/// The change to a page since `since`, in microseconds since 1970, if any.
fn page_news(store: &Store, access: &Access, id: UrlId, since: i64) -> Result<Option<PageNews>, WatchError> {
    let seen = CapturedSince::of(store, access, id, since)?;
    let before = version_until(store, access, id, since)?;
    let Some((news, capture)) = seen.news(before.is_some()) else { return Ok(None) };
    let difference = match (news, before) {
        (News::Changed, Some(before)) => compare(store, access, &before, &capture)
            .inspect_err(|error| tracing::warn!(%error, "the versions of a page cannot be compared"))
            .ok(),
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

/// What was captured of a page after a time.
#[derive(Default)]
struct CapturedSince {
    /// The newest answer, and the newest capture of a version.
    answer: Option<Capture>,
    version: Option<Capture>,
    /// The first of the consecutive errors at the end.
    gone: Option<Capture>,
    /// Whether its content changed.
    changed: bool,
}

impl CapturedSince {
    fn of(store: &Store, access: &Access, id: UrlId, since: i64) -> Result<Self, WatchError> {
        let mut seen = Self::default();
        for capture in access.history(store.state(), id)? {
            let (_, capture) = capture?;
            if capture.time <= since {
                break;
            }
            // A capture without an answer says nothing about the page.
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

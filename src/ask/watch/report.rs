//! Changes to the pages of a watch.

use archive_base::access::Access;
use archive_books::change::{VersionComparison, compare, is_version, version_until, xpath};
use archive_books::ledger::{capture_flags, page_flags};
use archive_storage::{Capture, Store, UrlId};
use archive_web::parse::Selected;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Watch, WatchError};

/// Maximum number of old and of new values of an element in a report, and of characters of each.
const VALUES_MAX: usize = 20;
const VALUE_CHARS_MAX: usize = 200;

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
    /// Of a watch of an element, its values that have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ElementNews>,
}

/// The values of an element on a page that are others than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementNews {
    /// Values that were there before the report's period and are there no more, in document order, the first 20 of them,
    /// each cut to 200 characters.
    pub old: Vec<String>,
    /// Values that are there now.
    pub new: Vec<String>,
    /// Number of old and of new values beyond these.
    #[serde(default)]
    pub left: (usize, usize),
}

impl ElementNews {
    /// The values that differ; `None` if all are equal.
    fn between(old: &[String], new: &[String]) -> Option<Self> {
        if old == new {
            return None;
        }
        // In lists of equal length, each value is compared with its predecessor; otherwise only what is equal at both
        // ends is left out.
        let (mut differing, cut) = ((Vec::new(), Vec::new()), |text: &String| -> String {
            text.chars().take(VALUE_CHARS_MAX).collect()
        });
        if old.len() == new.len() {
            let pairs = old.iter().zip(new).filter(|(old, new)| old != new);
            differing = pairs.map(|(old, new)| (cut(old), cut(new))).unzip();
        } else {
            let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
            let (old, new) = (&old[first..], &new[first..]);
            let last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
            differing.0.extend(old[..old.len() - last].iter().map(cut));
            differing.1.extend(new[..new.len() - last].iter().map(cut));
        }
        let (mut old, mut new) = differing;
        let left = [&mut old, &mut new].map(|values| {
            let left = values.len().saturating_sub(VALUES_MAX);
            values.truncate(VALUES_MAX);
            left
        });
        Some(Self { old, new, left: left.into() })
    }

    /// Its values, old ones first, each with whether it is new.
    pub fn each(&self) -> impl Iterator<Item = (&str, bool)> {
        let old = self.old.iter().map(|value| (value.as_str(), false));
        old.chain(self.new.iter().map(|value| (value.as_str(), true)))
    }
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
            let (since, element) = (watch.since.timestamp_micros(), watch.element.as_deref());
            report.news.extend(page_news((store, &access), id, since, element)?);
        }
        Ok(report)
    }

    /// Formats the report as one line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        json.map(|text| text + "\n").unwrap_or_default()
    }
}

/// The change to a page, or to an element of it, since `since`, in microseconds since 1970, if any.
fn page_news(
    (store, access): (&Store, &Access),
    id: UrlId,
    since: i64,
    element: Option<&str>,
) -> Result<Option<PageNews>, WatchError> {
    let seen = CapturedSince::of(store, access, id, since)?;
    let before = version_until(store, access, id, since)?;
    let Some((news, capture)) = seen.news(before.is_some(), element.is_some()) else { return Ok(None) };
    let values = match element {
        None => None,
        Some(element) => {
            let of = |capture: Option<&Capture>| match capture {
                Some(capture) => values(store, access, capture, element),
                None => Some(Vec::new()),
            };
            let now = Some(&capture).filter(|_| news != News::Gone);
            let (Some(old), Some(new)) = (of(before.as_ref()), of(now)) else { return Ok(None) };
            let Some(values) = ElementNews::between(&old, &new) else { return Ok(None) };
            Some(values)
        }
    };
    let difference = match (news, before) {
        (News::Changed, Some(before)) if element.is_none() => compare(store, access, &before, &capture)
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
        values,
    }))
}

/// The values of an XPath expression in a capture: none if it has no XML document; `None` if it cannot be told.
fn values(store: &Store, access: &Access, capture: &Capture, expression: &str) -> Option<Vec<String>> {
    let told = |what: String| tracing::warn!(what, "the element of a page cannot be compared");
    match xpath(store, access, capture, expression) {
        Ok(None) => Some(Vec::new()),
        Ok(Some(Ok(Selected { found, .. }))) => Some(found.into_iter().map(|one| one.text).collect()),
        Ok(Some(Err(error))) => {
            told(error.to_string());
            None
        }
        Err(error) => {
            told(error.to_string());
            None
        }
    }
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

    /// What happened to the page. If `any`, each other capture may be a change.
    fn news(&self, was_there: bool, any: bool) -> Option<(News, Capture)> {
        match (self.version, self.gone) {
            (_, Some(gone)) if was_there => Some((News::Gone, gone)),
            (Some(version), None) if !was_there => Some((News::New, version)),
            (Some(version), None) if self.changed || any => Some((News::Changed, version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_are_listed_up_to_a_limit() {
        let list = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (old, new, expected) in [
            ("1 2 3", "1 2 3", None),
            ("1 2 3", "1 5 3", Some(("2", "5"))),
            ("1 2 3", "1 3", Some(("2", ""))),
            ("", "1 2", Some(("", "1 2"))),
            ("1 1", "1 1 1", Some(("", "1"))),
        ] {
            let expected = expected.map(|(old, new)| (list(old), list(new)));
            let found = ElementNews::between(&list(old), &list(new));
            assert_eq!(found.map(|news| (news.old, news.new)), expected, "{old} to {new}");
        }
        let many: Vec<String> = (0..VALUES_MAX + 3).map(|_| "é".repeat(VALUE_CHARS_MAX + 1)).collect();
        let news = ElementNews::between(&[], &many).unwrap();
        assert_eq!((news.new.len(), news.left), (VALUES_MAX, (0, 3)));
        assert!(news.new.iter().all(|value| value.chars().count() == VALUE_CHARS_MAX));
    }
}

//! The visits of a URL one by one: the outcome of each, how the URL was found, and what robots.txt said then.

use archive_base::access::Access;
use archive_base::error::Failure;
use archive_books::ledger::{CrawlerFacts, authority};
use archive_storage::{CaptureKind, Store, UrlId};
use archive_web::fetch::robots::Robots;
use chrono::{DateTime, Utc};
use serde::Serialize;
use url::Url;

use super::policy::CrawlPolicy;
use super::stored_robots;

/// One visit; times are UTC.
#[derive(Debug, Clone, Serialize)]
pub struct StoredVisit {
    /// Time of the visit.
    #[serde(serialize_with = "utc")]
    pub time: Option<DateTime<Utc>>,
    /// HTTP status; 0 if nothing answered.
    pub status: u16,
    /// What was stored.
    pub kind: CaptureKind,
    /// The page that linked here; `None` for a seed.
    pub via: Option<String>,
    /// Kinds of the links from a seed to here, one letter each, as in Heritrix.
    pub hops: String,
    /// Importance at that time; the mean over all pages is 1.
    pub importance: Option<f64>,
    /// What the robots.txt of its host said at that time.
    pub robots: Option<RobotsAnswer>,
    /// By whose decision it was fetched although robots.txt forbade it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_ignored: Option<String>,
    /// Why nothing came back.
    pub error: Option<String>,
    /// When and why the capture was erased, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<String>,
    /// Why the body is incomplete (`WARC-Truncated`).
    pub truncated: Option<String>,
    /// What the parser cut, repaired or did not understand, and why the links are not followed.
    pub problems: Vec<String>,
}

/// What robots.txt says about a URL.
#[derive(Debug, Clone, Serialize)]
pub struct RobotsAnswer {
    /// URL of the robots.txt.
    pub url: String,
    /// When it was fetched.
    #[serde(serialize_with = "utc")]
    pub time: Option<DateTime<Utc>>,
    /// HTTP status of the answer; 0 if there was none.
    pub status: u16,
    /// Why nothing answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the URL may be fetched.
    pub allowed: bool,
    /// Number of the deciding line, from 1.
    pub line: Option<u32>,
    /// The pattern of that line.
    pub pattern: Option<String>,
    /// The crawl delay in seconds.
    pub crawl_delay: Option<f64>,
}

impl RobotsAnswer {
    /// What the server said when it was asked for robots.txt, in words.
    #[must_use]
    pub fn answer(&self) -> String {
        match &self.error {
            Some(error) => format!("nothing answered: {error}"),
            None if self.status == 0 => "nothing answered".to_owned(),
            None => format!("the answer was {}", self.status),
        }
    }
}

/// Returns the newest visits of a URL that `access` permits, at most `most`, newest first.
///
/// # Errors
/// If the store cannot be read.
pub fn visits_of(
    store: &Store,
    access: &Access,
    id: UrlId,
    most: usize,
) -> Result<Vec<StoredVisit>, Failure> {
    visits(store, access, id, &CrawlPolicy::of_last_crawl(store.state())?.robots_name, most)
}

/// The same for a crawler of this name.
pub(super) fn visits(
    store: &Store,
    access: &Access,
    id: UrlId,
    robots_name: &str,
    most: usize,
) -> Result<Vec<StoredVisit>, Failure> {
    let url = store.state().url(id)?;
    let captures = access.history(store.state(), id)?.take(most).collect::<Result<Vec<_>, _>>()?;
    let mut visits = Vec::new();
    for (_, capture) in captures {
        // A record that cannot be read is said, and does not hide the others.
        let mut facts = match store.metadata(&capture) {
            Ok(fields) => CrawlerFacts::from_fields(&fields),
            Err(error) => CrawlerFacts {
                error: Some(format!("its records cannot be read: {error}")),
                ..CrawlerFacts::default()
            },
        };
        let header = (capture.kind == CaptureKind::Response).then(|| store.reader().header(capture.location));
        if let Some(Err(error)) = &header {
            facts.error.get_or_insert_with(|| format!("its records cannot be read: {error}"));
        }
        let header = header.and_then(Result::ok);
        let time = DateTime::from_timestamp_micros(capture.time);
        let at = time.map_or(i64::MAX, |time: DateTime<Utc>| time.timestamp());
        visits.push(StoredVisit {
            time,
            status: capture.status,
            kind: capture.kind,
            robots: if facts.robots { None } else { robots(store, &url, authority(&url), robots_name, at)? },
            robots_ignored: facts.robots_ignored,
            via: facts.via,
            hops: facts.hops,
            importance: facts.importance,
            error: facts.error,
            erased: facts.erased.map(|erased| erased.sentence()),
            truncated: header.and_then(|header| header.get("WARC-Truncated").map(str::to_owned)),
            problems: facts.problems,
        });
    }
    Ok(visits)
}

/// Returns the newest answer for the robots.txt of a URL's host.
///
/// # Errors
/// If the store cannot be read.
pub fn robots_of(store: &Store, url: &str) -> Result<Option<RobotsAnswer>, Failure> {
    let policy = CrawlPolicy::of_last_crawl(store.state())?;
    robots(store, url, authority(url), &policy.robots_name, i64::MAX)
}

/// Returns what the robots.txt of a host said about a URL at time `at`, in seconds since 1970.
pub(super) fn robots(
    store: &Store,
    url: &str,
    host: &str,
    robots_name: &str,
    at: i64,
) -> Result<Option<RobotsAnswer>, Failure> {
    let Ok(url) = Url::parse(url) else { return Ok(None) };
    let stored = stored_robots::find(store, host, robots_name, at)?;
    let own = format!("{}://{host}/robots.txt", url.scheme());
    let own_error = match &stored {
        // Where both schemes failed, the URL's own tells why.
        Some(stored) if stored.status == 0 => stored_robots::failure(store, &own, at)?,
        _ => None,
    };
    Ok(stored.map(|stored| {
        let robots = stored.robots.as_ref();
        let verdict = robots.map(|robots| robots.check(&url));
        let rule = verdict.as_ref().and_then(|verdict| verdict.rule);
        let allowed = match &verdict {
            Some(verdict) => verdict.allowed,
            // Without a file everything is allowed; while the server has errors, nothing.
            None => (300..500).contains(&stored.status) && stored.status != 429,
        };
        RobotsAnswer {
            time: DateTime::from_timestamp(stored.time, 0),
            status: stored.status,
            error: own_error.or(stored.error),
            allowed,
            line: rule.map(|(line, _)| line),
            pattern: rule.map(|(_, pattern)| pattern.to_owned()),
            crawl_delay: robots.and_then(Robots::crawl_delay).map(|delay| delay.as_secs_f64()),
            url: stored.url,
        }
    }))
}

/// Writes a time in seconds, or nothing, in a field of JSON.
///
/// # Errors
/// Those of the serializer.
pub fn utc<S: serde::Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)).serialize(serializer)
}

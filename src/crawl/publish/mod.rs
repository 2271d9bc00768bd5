//! Announcements by site owners: URLs that are new or have changed, in several formats.
//!
//! [`read`] understands a plain list, a sitemap (sitemaps.org) and the JSON of IndexNow (indexnow.org). [`publish`]
//! queues the URLs so that the next refresh or crawl fetches them first. An announcement that arrives over HTTP (by a
//! ping) is not trusted: it is kept as a [`Notice`] until a run has found its key on its host ([`Pending`]), or is signed
//! by a hub, a WebSub server that a run has subscribed to ([`hubs`], [`subscriptions`]).
//!
//! Invariant: nobody can announce more than the limits here and in the ledger allow, nor pages outside the crawl's
//! scope.

pub mod hubs;
mod notices;
mod proofs;
pub mod subscriptions;

use std::io;
use std::path::PathBuf;

use archive_base::remarks;
use archive_books::ledger::{CLUSTER_PAGES_MAX, CLUSTERS_MAX, CreditError, Credits, Published};
use archive_storage::address::canonical;
use archive_storage::{State, UrlId};
use archive_web::parse::{DocumentKind, FetchedDocument, LinkKind, ParseLimits, decode_content, parse};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use url::{Position, Url};

pub use notices::{
    FOLDER, HOST_NOTICES_MAX, KEPT, KEY_CHARACTERS, NOTICES_MAX, Notice, NoticeError, NoticeKind,
    NoticeQueued, Proof, QUEUE_BYTES_MAX, enqueue, forget, queued, waiting_notices,
};
pub use proofs::{KEYS_MAX, NoticeOutcome, Pending};

/// Maximum size of an announcement in bytes: the sitemap protocol's limit for a file.
pub const BYTES_MAX: usize = 50 << 20;

/// Maximum number of URLs in a list or sitemap: the sitemap protocol's limit for a file.
pub const URLS_MAX: usize = 50_000;

/// Maximum number of URLs in an IndexNow submission, according to its documentation.
pub const INDEXNOW_URLS_MAX: usize = 10_000;

/// Maximum length of a cluster's name in characters.
const CLUSTER_NAME_MAX: usize = 100;

/// Why an announcement is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// It is too long.
    #[error("an announcement has at most {BYTES_MAX} bytes; cut it into several")]
    TooLong,
    /// It has too many URLs.
    #[error("{found} URLs are more than the {limit} of one announcement; cut it into several")]
    TooMany {
        /// Number of URLs found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A line is not a URL.
    #[error("line {line}: '{text}' is not an http or https URL")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Beginning of the line.
        text: String,
    },
    /// The JSON is not a valid IndexNow submission.
    #[error("this is not an IndexNow announcement ({0}); it needs host, key and urlList")]
    IndexNow(String),
    /// An IndexNow URL is on another host than the one that announces.
    #[error("'{url}' is not on the host {host} that announces it")]
    OtherHost {
        /// The URL.
        url: String,
        /// The host.
        host: String,
    },
    /// An IndexNow key is malformed, or its key file does not cover these URLs.
    #[error("{0}; see https://www.indexnow.org/documentation")]
    Key(&'static str),
    /// The sitemap is an index of further sitemaps.
    #[error("this is a list of sitemaps: announce each of them")]
    SitemapIndex,
    /// The name or the size of a cluster is invalid, or there are too many clusters.
    #[error(
        "a cluster has a name of 1 to {CLUSTER_NAME_MAX} characters and at most {CLUSTER_PAGES_MAX} pages, and there are at most {CLUSTERS_MAX} clusters"
    )]
    Cluster,
    /// The ledger failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The state failed.
    #[error(transparent)]
    State(#[from] archive_storage::StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] archive_storage::StoreError),
    /// The announcements cannot be written where a rebuild finds them.
    #[error(transparent)]
    Remarks(#[from] remarks::RemarksError),
    /// The queue of notices cannot be read or emptied.
    #[error("{}: {source}", path.display())]
    Queue {
        /// Folder of the queue.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl archive_base::error::Classified for PublishError {}

/// An announced URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The URL.
    pub url: Url,
    /// Time of the change, in seconds since 1970; `None` means now.
    pub modified: Option<i64>,
}

/// Outcome of an announcement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnnouncementOutcome {
    /// Number of pages that are now queued.
    pub queued: usize,
    /// Number of pages that were queued already.
    pub waiting: usize,
    /// Number of pages that were fetched after the announced change.
    pub unchanged: usize,
    /// URLs outside the scope of the crawl.
    pub out_of_scope: Vec<String>,
    /// Number of URLs for which the queue had no room.
    pub over_limit: usize,
}

/// IndexNow's JSON: a single URL or a list (<https://www.indexnow.org/documentation>).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IndexNow {
    host: Option<String>,
    url: Option<String>,
    key: String,
    key_location: Option<String>,
    url_list: Vec<String>,
}

/// Reads an announcement in any of the supported formats.
///
/// # Errors
/// When anything in it is wrong; nothing of it counts then.
pub fn read(bytes: &[u8]) -> Result<Vec<Announcement>, PublishError> {
    if bytes.len() > BYTES_MAX {
        return Err(PublishError::TooLong);
    }
    let unpacked = if bytes.starts_with(&[0x1F, 0x8B]) {
        decode_content(bytes, "gzip", BYTES_MAX).body
    } else {
        bytes.into()
    };
    let text = String::from_utf8_lossy(&unpacked);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let found = if text.starts_with('{') {
        read_indexnow(text)?
    } else if text.starts_with('<') {
        read_sitemap(text.as_bytes())?
    } else {
        read_list(text)?
    };
    limited(found, URLS_MAX)
}

fn limited(found: Vec<Announcement>, limit: usize) -> Result<Vec<Announcement>, PublishError> {
    if found.len() > limit { Err(PublishError::TooMany { found: found.len(), limit }) } else { Ok(found) }
}

fn read_list(text: &str) -> Result<Vec<Announcement>, PublishError> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let url = read_url(line)
            .ok_or_else(|| PublishError::Line { line: number + 1, text: line.chars().take(80).collect() })?;
        found.push(Announcement { url, modified: None });
    }
    Ok(found)
}

fn read_indexnow(text: &str) -> Result<Vec<Announcement>, PublishError> {
    let submission: IndexNow =
        serde_json::from_str(text).map_err(|error| PublishError::IndexNow(error.to_string()))?;
    urls_of(&submission)
}

fn urls_of(submission: &IndexNow) -> Result<Vec<Announcement>, PublishError> {
    let mut found = Vec::new();
    for text in submission.url.iter().chain(&submission.url_list) {
        let url = read_url(text).ok_or_else(|| PublishError::IndexNow(format!("'{text}' is not a URL")))?;
        if let Some(host) = submission.host.as_deref()
            && !url.host_str().is_some_and(|own| own.eq_ignore_ascii_case(host))
            // Some include the port if it is not the default one.
            && !url[Position::BeforeHost..Position::AfterPort].eq_ignore_ascii_case(host)
        {
            return Err(PublishError::OtherHost { url: url.into(), host: host.to_owned() });
        }
        found.push(Announcement { url, modified: None });
    }
    if found.is_empty() {
        return Err(PublishError::IndexNow("there is no URL in it".to_owned()));
    }
    limited(found, INDEXNOW_URLS_MAX)
}

fn read_sitemap(bytes: &[u8]) -> Result<Vec<Announcement>, PublishError> {
    // Sitemaps contain only absolute URLs; a relative one is resolved against a host that does not exist.
    let Ok(base) = Url::parse("http://sitemap.invalid/sitemap.xml") else { return Ok(Vec::new()) };
    let source = FetchedDocument {
        url: &base,
        status: 200,
        content_type: Some("application/xml"),
        headers: &[],
        body: bytes,
    };
    // One more than the limit, to detect that there are too many.
    let limits =
        ParseLimits { sitemap_links_max: URLS_MAX + 1, body_bytes_max: BYTES_MAX, ..ParseLimits::default() };
    let parsed = parse(&source, &limits);
    if parsed.kind == DocumentKind::Sitemap && parsed.links.iter().any(|link| link.kind == LinkKind::Sitemap)
    {
        return Err(PublishError::SitemapIndex);
    }
    let mut modified = vec![None; parsed.links.len()];
    for entry in &parsed.entries {
        if let Some(slot) = modified.get_mut(entry.link as usize) {
            *slot = Some(entry.modified);
        }
    }
    let announced = parsed.links.iter().zip(modified).filter(|(link, modified)| {
        link.kind == LinkKind::SitemapEntry || (parsed.kind == DocumentKind::Feed && modified.is_some())
    });
    Ok(announced
        .filter_map(|(link, modified)| Some(Announcement { url: read_url(&link.url)?, modified }))
        .filter(|announcement| announcement.url.host_str() != base.host_str())
        .collect())
}

/// Parses an `http` or `https` URL with a host.
fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Accepts an announcement: pages that are new or changed since their last fetch are queued for the next refresh or
/// crawl, before everything else.
///
/// With a `cluster`, these pages replace the pages of that cluster, which are fetched together from now on.
///
/// # Errors
/// When there are too many URLs or clusters, or the store fails.
pub fn publish(
    state: &mut State,
    credits: &mut Credits,
    announced: &[Announcement],
    cluster: Option<&str>,
    now: DateTime<Utc>,
) -> Result<AnnouncementOutcome, PublishError> {
    if announced.len() > URLS_MAX {
        return Err(PublishError::TooMany { found: announced.len(), limit: URLS_MAX });
    }
    if let Some(name) = cluster {
        set_cluster(state, credits, name, announced)?;
    }
    let mut queue = credits.published(state)?;
    let mut outcome = AnnouncementOutcome::default();
    for announcement in announced {
        let url = canonical(&announcement.url);
        let modified = announcement.modified.unwrap_or_else(|| now.timestamp());
        match credits.publish(state, &mut queue, &url, modified, now)? {
            Published::Queued(_) => outcome.queued += 1,
            Published::Waiting(_) => outcome.waiting += 1,
            Published::Known(_) => outcome.unchanged += 1,
            Published::OutOfScope => outcome.out_of_scope.push(url),
            Published::Full => outcome.over_limit += 1,
        }
    }
    credits.set_published(state, &queue)?;
    credits.save(state)?;
    Ok(outcome)
}

fn set_cluster(
    state: &mut State,
    credits: &Credits,
    name: &str,
    announced: &[Announcement],
) -> Result<(), PublishError> {
    let mut clusters = credits.clusters(state)?;
    let fits = !name.is_empty() && name.chars().count() <= CLUSTER_NAME_MAX;
    let is_over = clusters.len() >= CLUSTERS_MAX && !clusters.contains_key(name);
    if !fits || is_over || announced.len() > CLUSTER_PAGES_MAX {
        return Err(PublishError::Cluster);
    }
    clusters.insert(name.to_owned(), announced.iter().map(|page| canonical(&page.url)).collect());
    Ok(credits.set_clusters(state, &clusters)?)
}

/// Removes a cluster; returns whether it existed.
///
/// # Errors
/// When the store fails.
pub fn forget_cluster(state: &mut State, credits: &Credits, name: &str) -> Result<bool, PublishError> {
    let mut clusters = credits.clusters(state)?;
    let known = clusters.remove(name).is_some();
    credits.set_clusters(state, &clusters)?;
    Ok(known)
}

/// The URLs in the queue.
///
/// # Errors
/// When the store fails.
pub fn waiting(state: &State, credits: &Credits) -> Result<Vec<String>, PublishError> {
    let urls = credits.published(state)?.into_iter().map(|id: UrlId| state.url(id));
    Ok(urls.collect::<Result<_, _>>().map_err(CreditError::from)?)
}

#[cfg(test)]
mod tests {
    use super::{PublishError, read};

    fn urls(text: &str) -> Vec<(String, Option<i64>)> {
        read(text.as_bytes()).unwrap().into_iter().map(|found| (found.url.into(), found.modified)).collect()
    }

    #[test]
    fn announcements_come_in_three_forms() {
        assert_eq!(
            urls("\u{feff}# new\nhttp://a.test/x  # why\r\n\nhttps://b.test\n"),
            [("http://a.test/x".to_owned(), None), ("https://b.test/".to_owned(), None)]
        );
        let indexnow = r#"{"host": "A.test", "key": "k", "keyLocation": "http://a.test/k.txt",
            "urlList": ["http://a.test/1", "http://a.test/2?x=1"]}"#;
        assert_eq!(urls(indexnow).len(), 2);
        assert_eq!(urls(r#"{"url": "http://a.test/1", "key": "k"}"#).len(), 1);
        assert_eq!(urls(r#"{"host": "A.test:8080", "urlList": ["http://a.test:8080/1"]}"#).len(), 1);
        let sitemap = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>
            <url><loc>http://a.test/1</loc><lastmod>2026-01-31T10:00:00Z</lastmod></url>
            <url><loc>/2</loc></url><url><loc>http://a.test/3</loc></url></urlset>";
        assert_eq!(
            urls(sitemap),
            [("http://a.test/1".to_owned(), Some(1_769_853_600)), ("http://a.test/3".to_owned(), None)]
        );
    }

    #[test]
    fn mistakes_are_reported_and_nothing_counts() {
        let wrong = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            wrong("http://a.test/\nftp://b.test/"),
            "line 2: 'ftp://b.test/' is not an http or https URL"
        );
        assert!(wrong("{\"host\": \"a.test\"}").contains("no URL in it"));
        assert!(wrong("{\"host\": 1}").contains("urlList"));
        assert!(
            wrong("{\"host\": \"a.test\", \"urlList\": [\"http://b.test/\"]}").contains("not on the host")
        );
        let index = "<sitemapindex><sitemap><loc>http://a.test/s.xml</loc></sitemap></sitemapindex>";
        assert!(wrong(index).contains("list of sitemaps"));
        let many = "http://a.test/\n".repeat(50_001);
        assert!(matches!(read(many.as_bytes()), Err(PublishError::TooMany { found: 50_001, limit: 50_000 })));
        let many = vec!["\"http://a.test/\""; 10_001].join(",");
        let many = format!("{{\"host\":\"a.test\",\"urlList\":[{many}]}}");
        assert!(matches!(read(many.as_bytes()), Err(PublishError::TooMany { limit: 10_000, .. })));
    }
}

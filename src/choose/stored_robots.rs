//! The stored robots.txt of a host.

use archive_books::ledger::{CrawlerFacts, name_as_robots_txt};
use archive_storage::address::canonical;
use archive_storage::warc::HttpHead;
use archive_storage::{Capture, CaptureId, CaptureKind, Store, StoreError};
use archive_web::fetch::robots::{ROBOTS_BYTES_MAX, Robots};
use archive_web::parse::decode_content;
use url::Url;

/// Maximum number of redirects followed to the robots.txt of one host, across hosts (RFC 9309 section 2.3.1.2).
pub const REDIRECTS_MAX: usize = 5;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The newest answer of a host to a request for its robots.txt.
#[derive(Debug)]
pub(super) struct StoredRobots {
    /// URL of the answer, after redirects.
    pub(super) url: String,
    /// Time of the answer in seconds since 1970.
    pub(super) time: i64,
    /// HTTP status; 0 if nothing answered.
    pub(super) status: u16,
    /// Why nothing answered.
    pub(super) error: Option<String>,
    /// The rules, if the answer is a file.
    pub(super) robots: Option<Robots>,
}

/// Finds the robots.txt of a host (with its port, if any) over http and https, as of `at` in seconds since 1970, and
/// follows its redirects.
pub(super) fn find(
    store: &Store,
    host: &str,
    robots_name: &str,
    at: i64,
) -> Result<Option<StoredRobots>, StoreError> {
    let mut newest: Option<(String, Capture)> = None;
    // When one scheme failed, the other was tried within the same second.
    let rank = |capture: &Capture| (seconds(capture), capture.status != 0);
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{host}/robots.txt");
        if let Some((_, found)) = answer(store, &url, at)?
            && newest.as_ref().is_none_or(|(_, known)| rank(known) < rank(&found))
        {
            newest = Some((url, found));
        }
    }
    let Some((mut url, mut capture)) = newest else { return Ok(None) };
    let mut time = seconds(&capture);
    for _ in 0..REDIRECTS_MAX {
        let Some(target) = redirect(store, &url, &capture)? else { break };
        let Some((_, next)) = answer(store, &target, at)? else { break };
        // The result is as old as the oldest answer on the way.
        (url, capture, time) = (target, next, time.min(seconds(&next)));
    }
    let is_file = (200..300).contains(&capture.status);
    let robots = if is_file { read(store, &capture, robots_name)? } else { None };
    let error = error_of(store, &capture)?;
    Ok(Some(StoredRobots { url, time, status: capture.status, error, robots }))
}

/// Returns why the newest request for this URL as a robots.txt, not after `at`, brought no answer.
pub(super) fn failure(store: &Store, url: &str, at: i64) -> Result<Option<String>, StoreError> {
    answer(store, url, at)?.map_or(Ok(None), |(_, capture)| error_of(store, &capture))
}

fn error_of(store: &Store, capture: &Capture) -> Result<Option<String>, StoreError> {
    if capture.kind != CaptureKind::Failed {
        return Ok(None);
    }
    Ok(CrawlerFacts::from_fields(&store.metadata(capture)?).error)
}

/// Time of a capture in seconds since 1970.
pub fn seconds(capture: &Capture) -> i64 {
    capture.time.div_euclid(MICROS_PER_SECOND)
}

/// Returns the newest answer, not after `at`, to a request for `url` as a robots.txt.
pub fn answer(store: &Store, url: &str, at: i64) -> Result<Option<(CaptureId, Capture)>, StoreError> {
    let Some(id) = store.state().find(&name_as_robots_txt(url))? else { return Ok(None) };
    let is_known = |entry: &Result<_, _>| entry.as_ref().map_or(true, |(_, capture)| seconds(capture) <= at);
    Ok(store.state().history(id)?.find(is_known).transpose()?)
}

/// Returns the canonical URL that this answer of `url` redirects to.
pub fn redirect(store: &Store, url: &str, capture: &Capture) -> Result<Option<String>, StoreError> {
    if !(300..400).contains(&capture.status) {
        return Ok(None);
    }
    let head = store.http_head(capture.location)?;
    let target = head.get("Location").and_then(|location| Url::parse(url).ok()?.join(location).ok());
    Ok(target.filter(|target| matches!(target.scheme(), "http" | "https")).map(|target| canonical(&target)))
}

/// Parses the rules of a capture; `None` if the archive has no payload for it.
pub fn read(store: &Store, capture: &Capture, robots_name: &str) -> Result<Option<Robots>, StoreError> {
    let Some(original) = store.original(capture)? else { return Ok(None) };
    let record = store.beginning(original.location, 2 * ROBOTS_BYTES_MAX)?;
    let head = record.http_head();
    Ok(Some(parse(&head, &record.payload(), robots_name)))
}

/// Parses a payload whose transfer coding was removed.
pub fn parse(head: &HttpHead, payload: &[u8], robots_name: &str) -> Robots {
    let plain = decode_content(payload, &head.list("Content-Encoding"), ROBOTS_BYTES_MAX);
    Robots::parse(&plain.body, robots_name)
}

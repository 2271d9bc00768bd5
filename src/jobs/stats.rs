//! The totals of an archive, and its most important sites.

use std::path::Path;

use archive_ask::query::{Question, SiteRow};
use archive_base::access::Access;
use archive_books::ledger::{Credits, PutOff};
use archive_books::prepared::Prepared;
use archive_books::search::{self, SearchReader};
use archive_choose::utc;
use archive_storage::Store;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Failure;

/// Number of sites listed.
const TOP_SITES: usize = 10;

/// The totals of an archive.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// URLs that the archive knows.
    pub urls: u64,
    /// Those that were fetched.
    pub fetched: u64,
    /// Responses, except to requests for robots.txt.
    pub captures: u64,
    /// Answers without content, such as 404 and 503.
    pub errors: u64,
    /// Requests without a response, except for robots.txt.
    pub failures: u64,
    /// Requests for robots.txt.
    pub robots: u64,
    /// Pages that the last run left to the next one, because their servers said "later" or did not answer.
    pub waiting: u64,
    /// Hosts fetched or linked to.
    pub hosts: u64,
    /// Sites fetched or linked to.
    pub sites: u64,
    /// Links.
    pub links: u64,
    /// Bytes of payloads received.
    pub payload_bytes: u64,
    /// Bytes of records.
    pub stored_bytes: u64,
    /// Segments.
    pub segments: usize,
    /// Their bytes.
    pub segment_bytes: u64,
    /// When the first capture was made.
    #[serde(serialize_with = "utc")]
    pub first: Option<DateTime<Utc>>,
    /// When the last capture was made.
    #[serde(serialize_with = "utc")]
    pub last: Option<DateTime<Utc>>,
    /// The cash that pages have paid.
    pub clock: f64,
    /// Probability of following a link, by which importance is computed.
    pub damping: f64,
    /// The past that importance is computed from, as in `--window`.
    pub window: String,
    /// Captures that are not in the full-text index yet; `None` without an index.
    pub index_behind: Option<u64>,
    /// Captures that the index of older versions has not processed yet; `None` without such an index.
    pub versions_behind: Option<u64>,
    /// Whether queries have prepared columns of this checkpoint and need not read the tables.
    pub is_prepared: bool,
    /// Seeds that have moved.
    pub moved_seeds: Vec<MovedSeed>,
    /// The most important sites with captures, then those that are only linked to.
    pub top_sites: Vec<TopSite>,
}

/// A seed that has moved: its scope extends to where it leads to.
#[derive(Clone, Debug, Serialize)]
pub struct MovedSeed {
    /// The seed.
    pub seed: String,
    /// Where it leads to.
    pub to: String,
}

/// One of the most important sites.
#[derive(Clone, Debug, Serialize)]
pub struct TopSite {
    /// Its name.
    pub site: String,
    /// Its importance.
    pub importance: f64,
    /// Number of captured pages; 0 for a site that is only linked to.
    pub pages: u64,
}

/// Returns the totals of the archive in a folder.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn stats(path: &Path) -> Result<Stats, Failure> {
    let store = Store::read_only(path)?;
    let state = store.state();
    let credits = Credits::open(state)?;
    let totals = state.totals();
    let (mut fetches, mut failures, mut captures) = (0_u64, 0_u64, 0_u64);
    for host in state.host_records() {
        let host = host?;
        fetches += u64::from(host.captures);
        failures += u64::from(host.failures);
        captures += u64::from(host.contents);
    }
    let segments = || state.segments().map(|(_, segment)| segment);
    let first = segments().filter_map(|segment| segment.first_time).min();
    let last = segments().filter_map(|segment| segment.last_time).max();
    let moved = credits.scope().moved();
    Ok(Stats {
        urls: totals.urls,
        fetched: totals.fetched,
        captures,
        errors: fetches.saturating_sub(failures + captures),
        failures,
        robots: totals.captures.saturating_sub(fetches),
        waiting: PutOff::of(state)?.pages,
        hosts: totals.hosts,
        sites: totals.sites,
        links: totals.links,
        payload_bytes: totals.payload_bytes,
        stored_bytes: totals.stored_bytes,
        segments: segments().count(),
        segment_bytes: segments().map(|segment| segment.bytes).sum(),
        first: first.and_then(DateTime::from_timestamp_micros),
        last: last.and_then(DateTime::from_timestamp_micros),
        clock: credits.pages().clock(),
        damping: credits.rules().damping,
        window: credits.rules().window.to_string(),
        index_behind: index_behind(&store, search::FOLDER),
        versions_behind: index_behind(&store, search::VERSIONS_FOLDER),
        is_prepared: Prepared::open(&store)?.is_some(),
        moved_seeds: moved
            .map(|(seed, rule)| MovedSeed { seed: seed.to_owned(), to: rule.seed.clone() })
            .collect(),
        top_sites: top_sites(&store)?,
    })
}

fn index_behind(store: &Store, folder: &str) -> Option<u64> {
    let index = SearchReader::open(&store.path().join(folder)).ok()?;
    Some(store.state().totals().captures.saturating_sub(index.watermark()))
}

fn top_sites(store: &Store) -> Result<Vec<TopSite>, Failure> {
    let text = format!("site limit {TOP_SITES}");
    let question = Question::new(store, Access::read(store.path())?, &text, Utc::now())?;
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    let top = |site: SiteRow| TopSite { site: site.name, importance: site.importance, pages: site.pages };
    Ok(sites.into_iter().map(top).collect())
}

//! The robots.txt of a host as the archive has it.

use std::sync::Arc;

use archive_storage::address::canonical;
use archive_storage::warc::{HttpHead, split};
use archive_storage::{Capture, Store, StoreError};
use url::Url;

use super::robots_cache::{REDIRECTS_MAX, Rules};
use crate::fetch::robots::Robots;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The newest answer of a host to a request for its robots.txt.
#[derive(Debug)]
pub(super) struct StoredRobots {
    /// The URL that was asked for, in the end.
    pub(super) url: String,
    /// When, seconds since 1970.
    pub(super) time: i64,
    /// What came back; 0 for nothing.
    pub(super) status: u16,
    /// What it says, if it is a file of rules.
    pub(super) robots: Option<Arc<Robots>>,
}

impl StoredRobots {
    /// What follows for the host's pages; nothing when only asking again can tell.
    pub(super) fn rules(&self) -> Option<Rules> {
        match (self.status, &self.robots) {
            (429, _) => None,
            (400..=499, _) => Some(Rules::Free),
            (_, robots) => robots.clone().map(Rules::Given),
        }
    }
}

/// Looks for the robots.txt of a host (with its port, if it has one), over http and https, and follows its redirects; as it
/// was at a time, in seconds since 1970.
pub(super) fn find(
    store: &Store,
    host: &str,
    robots_name: &str,
    at: i64,
) -> Result<Option<StoredRobots>, StoreError> {
    let mut newest: Option<StoredRobots> = None;
    for scheme in ["http", "https"] {
        let Some(found) = follow(store, format!("{scheme}://{host}/robots.txt"), robots_name, at)? else {
            continue;
        };
        // Where one scheme failed, the other was asked within the same second.
        let rank = |found: &StoredRobots| (found.time, found.status != 0);
        if newest.as_ref().is_none_or(|known| rank(known) < rank(&found)) {
            newest = Some(found);
        }
    }
    Ok(newest)
}

/// The answer to a request for `url`, or where that was redirected to as far as the archive has it. It is as old as the oldest
/// answer on the way.
fn follow(
    store: &Store,
    url: String,
    robots_name: &str,
    at: i64,
) -> Result<Option<StoredRobots>, StoreError> {
    let Some((mut found, mut location)) = read(store, url, robots_name, at)? else { return Ok(None) };
    for _ in 0..REDIRECTS_MAX {
        let target = location.and_then(|location| Url::parse(&found.url).ok()?.join(&location).ok());
        let Some(target) = target else { break };
        let Some((next, its_location)) = read(store, canonical(&target), robots_name, at)? else { break };
        found = StoredRobots { time: next.time.min(found.time), ..next };
        location = its_location;
    }
    Ok(Some(found))
}

/// The newest answer to a request for `url` until a time, and where it redirects to.
fn read(
    store: &Store,
    url: String,
    robots_name: &str,
    at: i64,
) -> Result<Option<(StoredRobots, Option<String>)>, StoreError> {
    let state = store.state();
    let Some(id) = state.find(&url)? else { return Ok(None) };
    let seconds = |capture: &Capture| capture.time.div_euclid(MICROS_PER_SECOND);
    let is_known = |entry: &Result<_, _>| entry.as_ref().map_or(true, |(_, capture)| seconds(capture) <= at);
    let Some((_, capture)) = state.history(id)?.find(is_known).transpose()? else { return Ok(None) };
    let (mut robots, mut location) = (None, None);
    match capture.status {
        200 => {
            let payload = store.payload(&capture)?;
            robots = payload.map(|payload| Arc::new(Robots::parse(&payload, robots_name)));
        }
        300..=399 => {
            let head = HttpHead::parse(&split(&store.record(capture.location)?.content).0);
            location = head.get("Location").map(str::to_owned);
        }
        _ => {}
    }
    let stored = StoredRobots { url, time: seconds(&capture), status: capture.status, robots };
    Ok(Some((stored, location)))
}

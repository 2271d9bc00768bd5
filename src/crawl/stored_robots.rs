//! The robots.txt of a host as the archive has it.

use std::sync::Arc;

use archive_storage::{Store, StoreError};

use super::robots_cache::Rules;
use crate::fetch::robots::Robots;

/// The newest answer of a host to a request for its robots.txt.
#[derive(Debug)]
pub(super) struct StoredRobots {
    /// The URL that was asked for.
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

/// Looks for the robots.txt of a host (with its port, if it has one), over http and https.
pub(super) fn find(store: &Store, host: &str, robots_name: &str) -> Result<Option<StoredRobots>, StoreError> {
    let mut newest: Option<StoredRobots> = None;
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{host}/robots.txt");
        let state = store.state();
        let Some(id) = state.find(&url)? else { continue };
        let Some(visit) = state.visit(id)?.filter(|visit| visit.captures > 0) else { continue };
        let time = i64::from(visit.last_seen);
        if newest.as_ref().is_some_and(|known| known.time >= time) {
            continue;
        }
        let version = if visit.status == 200 { store.newest_version(id)? } else { None };
        let payload = version.map(|capture| store.payload(&capture)).transpose()?.flatten();
        let robots = payload.map(|payload| Arc::new(Robots::parse(&payload, robots_name)));
        newest = Some(StoredRobots { url, time, status: visit.status, robots });
    }
    Ok(newest)
}

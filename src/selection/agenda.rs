//! What a refresh fetches, in which order: what was asked for, what was announced, and what is most obsolete.
//!
//! Pages that somebody waits for (a report that is due) come first; then those that site masters have announced, up to
//! half of what is left, so that nobody can take the whole budget; then, by the share for discovery, what was never
//! fetched; then what is worth most, no page sooner than the shortest interval allows. Pages of a cluster are fetched together
//! or not at all (Xyleme, section 6: "see such a cluster as a single document").

use std::collections::{HashMap, HashSet};

use archive_storage::{State, UrlId};
use chrono::{DateTime, Utc};

use super::due::{Choice, most_obsolete, undiscovered};
use crate::ledger::{CreditError, Credits};

/// The share of the budget that announcements may take, as a divisor.
const ANNOUNCED_DIVISOR: usize = 2;

/// At most `budget` pages, the most urgent first.
///
/// # Errors
/// When the store fails.
pub fn agenda(
    state: &State,
    credits: &Credits,
    choice: &Choice,
    budget: usize,
    now: DateTime<Utc>,
    awaited: &[UrlId],
) -> Result<Vec<UrlId>, CreditError> {
    let mut list =
        List { clusters: clusters(state, credits)?, budget, pages: Vec::new(), taken: HashSet::new() };
    awaited.iter().for_each(|page| list.take(*page));
    let announced_end = list.pages.len() + (budget - list.pages.len()).div_ceil(ANNOUNCED_DIVISOR);
    for page in credits.published(state)? {
        if list.pages.len() < announced_end {
            list.take(page);
        }
    }
    let left = budget - list.pages.len();
    undiscovered(state, credits, choice.rules.discovery, left)?.into_iter().for_each(|page| list.take(page));
    if list.pages.len() < budget {
        // Pages of clusters for which there is no room any more leave theirs to others.
        let candidates = budget + list.clusters.len();
        for page in most_obsolete(state, credits, choice, candidates, now)? {
            list.take(page);
        }
    }
    Ok(list.pages)
}

/// For each page of a cluster all its pages.
fn clusters(state: &State, credits: &Credits) -> Result<HashMap<UrlId, Vec<UrlId>>, CreditError> {
    let mut clusters = HashMap::new();
    for urls in credits.clusters(state)?.values() {
        let mut pages = Vec::with_capacity(urls.len());
        for url in urls {
            pages.extend(state.find(url)?);
        }
        clusters.extend(pages.iter().map(|page| (*page, pages.clone())));
    }
    Ok(clusters)
}

struct List {
    clusters: HashMap<UrlId, Vec<UrlId>>,
    budget: usize,
    pages: Vec<UrlId>,
    taken: HashSet<UrlId>,
}

impl List {
    fn take(&mut self, page: UrlId) {
        if self.taken.contains(&page) {
            return;
        }
        let cluster = self.clusters.get(&page).cloned().unwrap_or_else(|| vec![page]);
        let new: Vec<UrlId> = cluster.into_iter().filter(|page| !self.taken.contains(page)).collect();
        // A cluster that is larger than the whole budget would never be fetched.
        if self.pages.len() + new.len() <= self.budget || self.pages.is_empty() {
            self.taken.extend(&new);
            self.pages.extend(new);
            self.pages.truncate(self.budget);
        }
    }
}

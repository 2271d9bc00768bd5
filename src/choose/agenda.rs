//! What a refresh fetches and in which order: requested pages, announced pages, then the most obsolete ones.
//!
//! Pages that somebody waits for (a report that is due) come first. Pages announced by site masters come next, up to
//! half of the remaining budget, so that nobody can take all of it, and then, likewise, what the last run left because
//! servers said "later" or did not answer. Then come pages that were never fetched, up to the share for discovery, and
//! then the pages with the highest values. Of these, no page is fetched sooner than the shortest interval allows. Pages of a cluster are fetched together or not at all (Xyleme, section 6: "see such a
//! cluster as a single document"). One budget may serve several archives: awaited and announced pages are taken from
//! the archives in turn, everything else as if they were one archive.

use std::collections::{HashMap, HashSet};

use archive_books::ledger::{CreditError, PutOff};
use archive_storage::UrlId;
use chrono::{DateTime, Utc};

use super::due::{DueArchive, SourcePage, most_obsolete_of, undiscovered};

/// Divisor of the remaining budget that gives the share for announcements.
const ANNOUNCED_DIVISOR: usize = 2;

/// The same for pages that the last run left because of their servers.
const PUT_OFF_DIVISOR: usize = 2;

/// Returns at most `budget` pages of all sources together, grouped by source, the most urgent first. The rules of the
/// first source choose all of them.
///
/// # Errors
/// If a store fails.
pub fn agenda(
    sources: &[DueArchive<'_>],
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<Vec<UrlId>>, CreditError> {
    let mut list =
        AgendaList { clusters: clusters(sources)?, budget, pages: Vec::new(), taken: HashSet::new() };
    let is_asked = |&(place, page): &SourcePage| sources[place].choice.asks(page);
    let awaited: Vec<&[UrlId]> = sources.iter().map(|source| source.awaited).collect();
    in_turns(&awaited).filter(is_asked).for_each(|page| list.take(page));
    let announced_end = list.pages.len() + (budget - list.pages.len()).div_ceil(ANNOUNCED_DIVISOR);
    let announced = sources.iter().map(|source| source.credits.published(source.state));
    for page in in_turns(&announced.collect::<Result<Vec<_>, _>>()?).filter(is_asked) {
        if list.pages.len() < announced_end {
            list.take(page);
        }
    }
    let put_off_end = list.pages.len() + (budget - list.pages.len()).div_ceil(PUT_OFF_DIVISOR);
    for page in in_turns(&sources.iter().map(put_off).collect::<Result<Vec<_>, _>>()?) {
        if list.pages.len() < put_off_end {
            list.take(page);
        }
    }
    let left = budget - list.pages.len();
    undiscovered(sources, left)?.into_iter().for_each(|page| list.take(page));
    if list.pages.len() < budget {
        // Clusters that no longer fit leave their place to other pages.
        let candidates = budget.saturating_add(list.clusters.len());
        for page in most_obsolete_of(sources, candidates, now)? {
            list.take(page);
        }
    }
    let mut shares = vec![Vec::new(); sources.len()];
    list.pages.into_iter().for_each(|(source, page)| shares[source].push(page));
    Ok(shares)
}

/// Returns the pages that the last run left because of their servers.
fn put_off(source: &DueArchive<'_>) -> Result<Vec<UrlId>, CreditError> {
    Ok(PutOff::of(source.state)?.find(source.state)?.into_iter().map(|(page, _)| page).collect())
}

/// Interleaves the sources: the first page of each, then the second of each, and so on.
fn in_turns<P: AsRef<[UrlId]>>(sources: &[P]) -> impl Iterator<Item = SourcePage> {
    let longest = sources.iter().map(|pages| pages.as_ref().len()).max().unwrap_or(0);
    let at = move |at: usize| {
        (0..).zip(sources).filter_map(move |(source, pages)| Some((source, *pages.as_ref().get(at)?)))
    };
    (0..longest).flat_map(at)
}

/// Maps each page of a cluster to all pages of that cluster.
fn clusters(sources: &[DueArchive<'_>]) -> Result<HashMap<SourcePage, Vec<SourcePage>>, CreditError> {
    let mut clusters = HashMap::new();
    for (place, DueArchive { state, credits, choice, .. }) in sources.iter().enumerate() {
        for urls in credits.clusters(state)?.values() {
            let mut pages = Vec::with_capacity(urls.len());
            for url in urls {
                pages.extend(state.find(url)?.filter(|page| choice.asks(*page)).map(|page| (place, page)));
            }
            clusters.extend(pages.iter().map(|page| (*page, pages.clone())));
        }
    }
    Ok(clusters)
}

struct AgendaList {
    clusters: HashMap<SourcePage, Vec<SourcePage>>,
    budget: usize,
    pages: Vec<SourcePage>,
    taken: HashSet<SourcePage>,
}

impl AgendaList {
    fn take(&mut self, page: SourcePage) {
        if self.taken.contains(&page) {
            return;
        }
        let cluster = self.clusters.get(&page).cloned().unwrap_or_else(|| vec![page]);
        let new: Vec<SourcePage> = cluster.into_iter().filter(|page| !self.taken.contains(page)).collect();
        // The first cluster is always taken: one that exceeds the whole budget would otherwise never be fetched.
        if self.pages.len() + new.len() <= self.budget || self.pages.is_empty() {
            self.taken.extend(&new);
            self.pages.extend(new);
            self.pages.truncate(self.budget);
        }
    }
}

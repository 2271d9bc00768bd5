//! What was found lately: the same search of an archive that has not changed is answered from memory, whoever asks.
//!
//! Only of archives without access rules: what these show is another thing for each role, and at each time.

use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use archive_storage::Store;
use chrono::{DateTime, Utc};
use lru::LruCache;

use super::opened::Seen;
use crate::find::{self, FindError, Options, Results, Typed};
use crate::search::{FOLDER, VERSIONS_FOLDER};

/// Searches whose results are kept, and the most bytes of texts of each.
const SEARCHES_KEPT: usize = 512;
const RESULTS_BYTES_MAX: usize = 64 << 10;

/// The results of searches.
#[derive(Debug)]
pub(super) struct Searches(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    of: Option<Standing>,
    found: LruCache<Wanted, Arc<Results>>,
}

/// What a search found depends on this, and on the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    state: u64,
    checkpoint: u64,
    /// The files that tell what was committed to the indexes, each of which is written anew.
    indexes: [Option<(u64, i64, i64)>; 2],
}

/// A search, and which of its results are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) words: String,
    pub(super) before: Option<DateTime<Utc>>,
    pub(super) skip: usize,
    pub(super) limit: usize,
}

impl Default for Searches {
    fn default() -> Self {
        let found = LruCache::new(NonZeroUsize::new(SEARCHES_KEPT).unwrap_or(NonZeroUsize::MIN));
        Self(Mutex::new(Kept { of: None, found }))
    }
}

impl Searches {
    /// What a search finds, with counts.
    pub(super) fn find(
        &self,
        opened: &Seen<'_>,
        wanted: Wanted,
        typed: &Typed,
    ) -> Result<Arc<Results>, FindError> {
        let standing = opened.access.is_unlimited().then(|| Standing::of(opened.store));
        if let Some(standing) = standing
            && let Some(found) = self.kept(standing, &wanted)
        {
            return Ok(found);
        }
        let (limit, skip, before) = (wanted.limit, wanted.skip, wanted.before);
        let options = Options { limit, skip, facets: true, before, ..Options::default() };
        let found = Arc::new(find::find(opened.store, opened.access.clone(), typed, options)?);
        if let Some(standing) = standing {
            self.keep(standing, wanted, &found);
        }
        Ok(found)
    }

    fn kept(&self, standing: Standing, wanted: &Wanted) -> Option<Arc<Results>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.of != Some(standing) {
            (kept.of, _) = (Some(standing), kept.found.clear());
        }
        kept.found.get(wanted).cloned()
    }

    fn keep(&self, standing: Standing, wanted: Wanted, found: &Arc<Results>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.of == Some(standing) && bytes(found) + wanted.words.len() <= RESULTS_BYTES_MAX {
            kept.found.put(wanted, Arc::clone(found));
        }
    }
}

impl Standing {
    fn of(store: &Store) -> Self {
        let index = |folder| {
            let meta = std::fs::metadata(store.path().join(folder).join("meta.json")).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))
        };
        let state = store.state();
        Self {
            state: state.identity(),
            checkpoint: state.checkpoint_number(),
            indexes: [index(FOLDER), index(VERSIONS_FOLDER)],
        }
    }
}

/// Bytes of the texts of results, nearly.
fn bytes(found: &Results) -> usize {
    let hits = found.hits.iter().map(|hit| {
        let snippet = hit.snippet.as_ref().map_or(0, |snippet| snippet.text.len());
        hit.url.len() + hit.title.len() + hit.also.iter().map(String::len).sum::<usize>() + snippet
    });
    let values = found.facets.iter().flat_map(|(_, values)| values).map(|(value, _)| value.len());
    hits.chain(values).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(number: usize) -> Wanted {
        Wanted { words: format!("w{number}"), before: None, skip: 0, limit: 21 }
    }

    #[test]
    fn results_are_kept_within_limits_while_nothing_changes() {
        let searches = Searches::default();
        let standing = Standing { state: 1, checkpoint: 1, indexes: [None, None] };
        let of = |bytes: usize| Results {
            facets: vec![("site", vec![("s".repeat(bytes), 1)])],
            ..Results::default()
        };
        let keep = |number, bytes| {
            assert!(searches.kept(standing, &search(number)).is_none());
            searches.keep(standing, search(number), &Arc::new(of(bytes)));
        };
        let is_kept = |number| searches.kept(standing, &search(number)).is_some();
        keep(0, RESULTS_BYTES_MAX - 2);
        keep(1, RESULTS_BYTES_MAX - 1);
        assert!(is_kept(0) && !is_kept(1));
        for number in 2..=SEARCHES_KEPT {
            keep(number, 1);
        }
        assert!(is_kept(0) && is_kept(2));
        keep(SEARCHES_KEPT + 1, 1);
        assert!(is_kept(0) && is_kept(2) && !is_kept(3));
        let later = Standing { checkpoint: 2, ..standing };
        assert!(searches.kept(later, &search(0)).is_none());
        // What was found of the archive as it was is not kept of what it is.
        searches.keep(standing, search(0), &Arc::new(of(1)));
        assert!(searches.kept(later, &search(0)).is_none());
    }
}

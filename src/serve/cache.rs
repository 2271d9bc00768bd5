//! Cache of recent answers. As long as an archive has not changed, the same search is answered from memory for all
//! clients, and so are its start page and its site pages, which take passes over all pages while a crawl writes,
//! because no columns are prepared then.
//!
//! Only archives without access rules are cached: what rules show depends on the role and on the time.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use archive_ask::find::{self, CaptureTimes, FindError, ParsedSearch, Results, SearchOptions};
use archive_base::files::{FileError, FileStamp};
use archive_books::order_plot::OrderPlot;
use archive_books::search::{FOLDER, VERSIONS_FOLDER, commit_of};
use archive_books::trends::{self, Trends};
use archive_storage::Store;
use chrono::{DateTime, Utc};
use lru::LruCache;

use super::ask;
use super::opener::RoleView;
use super::page::{SiteView, StartPage};

/// Maximum number of cached answers of each kind, and maximum size of the texts of each in bytes.
const ANSWERS_KEPT: usize = 512;
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Cached data of an archive.
#[derive(Debug, Default)]
pub(super) struct ArchiveCache {
    searches: AnswerCache<SearchRange, Results>,
    pub(super) start: AnswerCache<(), StartPage>,
    pub(super) times: AnswerCache<(), Option<CaptureTimes>>,
    /// By the seconds since 1970 in which its pages were fetched first.
    pub(super) orders: AnswerCache<Option<(u32, u32)>, OrderPlot>,
    /// By site name.
    pub(super) sites: AnswerCache<String, SiteView>,
    /// As last written, with the stamp of the file.
    trends: Mutex<Option<(FileStamp, Arc<Trends>)>>,
    /// Search cache shared by all archives that are served.
    kept: Arc<find::PageTextCache>,
}

/// Cached answers of a kind, by request.
#[derive(Debug)]
pub(super) struct AnswerCache<K: Hash + Eq, V>(Mutex<CachedAnswers<K, V>>);

#[derive(Debug)]
struct CachedAnswers<K: Hash + Eq, V> {
    of: Option<Basis>,
    found: LruCache<K, Arc<V>>,
}

/// The state that answers depend on, besides the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Basis {
    state: u64,
    checkpoint: u64,
    indexes: [Option<FileStamp>; 2],
}

/// A search, and the range of results requested.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SearchRange {
    pub(super) words: String,
    pub(super) before: Option<DateTime<Utc>>,
    pub(super) skip: usize,
    pub(super) limit: usize,
}

impl<K: Hash + Eq, V> Default for AnswerCache<K, V> {
    fn default() -> Self {
        let found = LruCache::new(NonZeroUsize::new(ANSWERS_KEPT).unwrap_or(NonZeroUsize::MIN));
        Self(Mutex::new(CachedAnswers { of: None, found }))
    }
}

impl ArchiveCache {
    pub(super) fn new(kept: Arc<find::PageTextCache>) -> Self {
        Self { kept, ..Self::default() }
    }

    /// The importance of sites and pages over time, read anew when its file has changed.
    pub(super) fn trends(&self, archive: &Path) -> Result<Arc<Trends>, FileError> {
        let Some(stamp) = FileStamp::of(&archive.join(trends::FILE)) else { return Ok(Arc::default()) };
        let mut known = self.trends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, trends)) = known.as_ref().filter(|(of, _)| *of == stamp) {
            return Ok(Arc::clone(trends));
        }
        let trends = Arc::new(Trends::read(archive)?);
        *known = Some((stamp, Arc::clone(&trends)));
        Ok(trends)
    }

    /// Cached intermediate data of searches.
    pub(super) fn kept(&self) -> &find::PageTextCache {
        &self.kept
    }

    /// Runs a search with facet counts, or returns its cached result.
    pub(super) fn find(
        &self,
        opened: &RoleView<'_>,
        wanted: SearchRange,
        typed: &ParsedSearch,
    ) -> Result<Arc<Results>, FindError> {
        let (limit, skip, before) = (wanted.limit, wanted.skip, wanted.before);
        let (limits, kept) = (ask::limits(), Some(&*self.kept));
        let options =
            SearchOptions { limit, skip, facets: true, before, limits, kept, ..SearchOptions::default() };
        let bytes = wanted.words.len();
        self.searches.of(
            opened,
            wanted,
            |found| bytes + bytes_of(found),
            || find::find_in(vec![(opened.store, opened.access.clone())], typed, options),
        )
    }
}

impl<K: Hash + Eq, V> AnswerCache<K, V> {
    /// Returns the cached answer to a request, or makes and caches it; `bytes` estimates its size.
    pub(super) fn of<E>(
        &self,
        opened: &RoleView<'_>,
        asked: K,
        bytes: impl FnOnce(&V) -> usize,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let standing = opened.access.is_unlimited().then(|| Basis::of(opened.store));
        if let Some(found) = standing.and_then(|standing| self.kept(standing, &asked)) {
            return Ok(found);
        }
        let found = Arc::new(make()?);
        if let Some(standing) = standing {
            self.keep(standing, asked, &found, bytes(&found));
        }
        Ok(found)
    }

    fn kept(&self, standing: Basis, asked: &K) -> Option<Arc<V>> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.of != Some(standing) {
            (answers.of, _) = (Some(standing), answers.found.clear());
        }
        answers.found.get(asked).cloned()
    }

    fn keep(&self, standing: Basis, asked: K, found: &Arc<V>, bytes: usize) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.of == Some(standing) && bytes <= ANSWER_BYTES_MAX {
            answers.found.put(asked, Arc::clone(found));
        }
    }
}

impl Basis {
    fn of(store: &Store) -> Self {
        let index = |folder| commit_of(&store.path().join(folder));
        let state = store.state();
        Self {
            state: state.identity(),
            checkpoint: state.checkpoint_number(),
            indexes: [index(FOLDER), index(VERSIONS_FOLDER)],
        }
    }
}

/// Approximate size of the texts of results in bytes.
fn bytes_of(found: &Results) -> usize {
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

    #[test]
    fn answers_are_kept_within_limits_while_nothing_changes() {
        let answers = AnswerCache::<usize, ()>::default();
        let standing = Basis { state: 1, checkpoint: 1, indexes: [None, None] };
        let keep = |number, bytes| {
            assert!(answers.kept(standing, &number).is_none());
            answers.keep(standing, number, &Arc::new(()), bytes);
        };
        let is_kept = |number| answers.kept(standing, &number).is_some();
        keep(0, ANSWER_BYTES_MAX);
        keep(1, ANSWER_BYTES_MAX + 1);
        assert!(is_kept(0) && !is_kept(1));
        for number in 2..=ANSWERS_KEPT {
            keep(number, 1);
        }
        assert!(is_kept(0) && is_kept(2));
        keep(ANSWERS_KEPT + 1, 1);
        assert!(is_kept(0) && is_kept(2) && !is_kept(3));
        let later = Basis { checkpoint: 2, ..standing };
        assert!(answers.kept(later, &0).is_none());
        // A result from an earlier state is not cached for the current one.
        answers.keep(standing, 0, &Arc::new(()), 1);
        assert!(answers.kept(later, &0).is_none());
    }
}

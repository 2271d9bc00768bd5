//! Crawler traps: paths that keep growing, and lists that can be sorted and filtered in every way.
//!
//! Here, the URL alone decides. Hosts that serve the same page under ever new URLs are detected by their contents
//! ([`archive_books::ledger::NearDuplicates`]).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use archive_books::ledger::{Refusal, page_flags as flags};
use archive_storage::{State, StateError};
use url::Url;

/// Maximum number of times that a run of segments may repeat in a row, as in `/a/b/a/b/`; once more is a trap (as in
/// Heritrix' PathologicalPathDecideRule).
const RUNS_MAX: usize = 2;

/// Maximum number of segments in a run.
const RUN_SEGMENTS_MAX: usize = 4;

/// Maximum number of times that one segment may occur in a path.
const SAME_SEGMENT_MAX: usize = 4;

/// Maximum number of segments in a path (as in Heritrix' TooManyPathSegmentsDecideRule).
const SEGMENTS_MAX: usize = 20;

/// Maximum bytes of a path.
const PATH_BYTES_MAX: usize = 1024;

/// Queries with fewer parameters identify a page; those with this many select views of one.
const VARYING_PARAMETERS_MIN: usize = 3;

/// Maximum number of pages whose variations are counted; further pages are not limited, so that a host of endless paths
/// takes no memory.
const COUNTED_PAGES_MAX: usize = 1 << 20;

/// Returns the reason to refuse a URL whose path no person would have made.
pub(super) fn endless_path(url: &Url) -> Option<Refusal> {
    let path = url.path();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if path.len() > PATH_BYTES_MAX || segments.len() > SEGMENTS_MAX {
        return Some(Refusal::LongPath);
    }
    (repeats_in_a_row(&segments) || repeats_anywhere(&segments)).then_some(Refusal::RepeatingPath)
}

fn repeats_in_a_row(segments: &[&str]) -> bool {
    (1..=RUN_SEGMENTS_MAX).any(|length| {
        let whole = length * (RUNS_MAX + 1);
        segments.windows(whole).any(|window| {
            let (first, rest) = window.split_at(length);
            rest.chunks(length).all(|run| run == first)
        })
    })
}

fn repeats_anywhere(segments: &[&str]) -> bool {
    let count = |segment: &&str| segments.iter().filter(|other| *other == segment).count();
    segments.len() > SAME_SEGMENT_MAX && segments.iter().any(|segment| count(segment) > SAME_SEGMENT_MAX)
}

/// Maximum number of values of parameters that are remembered; all others count as known.
const VALUES_MAX: usize = 1 << 20;

/// Counts how often each page was requested with different queries, in this run and earlier ones.
///
/// A list that can be sorted and filtered in every way combines few values. So a query with a value that its page did
/// not have before, such as the number of an article, is no variation.
#[derive(Debug, Default)]
pub(super) struct Variations {
    hasher: RandomState,
    /// Hashes of pages with a parameter and its value.
    values: HashSet<u64>,
    /// Counts by the hash of the page; `None` before the first URL that may be a variation.
    counts: Option<HashMap<u64, u32>>,
}

impl Variations {
    /// Counts a canonical URL that is about to be fetched for the first time; refuses it if its page already had `most`
    /// variations. The first such URL of a run costs a pass over all URLs, because earlier variations are not stored
    /// otherwise.
    pub(super) fn count(
        &mut self,
        state: &State,
        url: &str,
        most: u32,
    ) -> Result<Option<Refusal>, StateError> {
        let Some((page, query)) = varied_page(url).filter(|_| most > 0) else { return Ok(None) };
        if self.counts.is_none() {
            self.read(state)?;
        }
        let is_new = self.note_values(page, query) || self.add(page, most);
        Ok((!is_new).then_some(Refusal::QueryVariations))
    }

    /// Counts the variations fetched so far.
    fn read(&mut self, state: &State) -> Result<(), StateError> {
        self.counts = Some(HashMap::new());
        state.scan_urls(0..state.url_count(), |id, url| {
            if let Some((page, query)) = varied_page(url)
                && state.page(id)?.flags.has_any(flags::FETCHED)
                && !self.note_values(page, query)
            {
                self.add(page, u32::MAX);
            }
            Ok(())
        })
    }

    /// Notes the values of a page's parameters; returns whether one is new.
    fn note_values(&mut self, page: &str, query: &str) -> bool {
        let mut is_new = false;
        for pair in query.split('&') {
            let value = self.hasher.hash_one((page, pair));
            is_new |= self.values.len() < VALUES_MAX && self.values.insert(value);
        }
        is_new
    }

    /// Counts a variation; returns false if its page already had `most` of them.
    fn add(&mut self, page: &str, most: u32) -> bool {
        let page = self.hasher.hash_one(page);
        let counts = self.counts.get_or_insert_default();
        if counts.len() >= COUNTED_PAGES_MAX && !counts.contains_key(&page) {
            return true;
        }
        let count = counts.entry(page).or_insert(0);
        let is_within = *count < most;
        *count += u32::from(is_within);
        is_within
    }
}

/// Returns the page that a canonical URL shows one of many views of, and its query, if so.
fn varied_page(url: &str) -> Option<(&str, &str)> {
    let (page, query) = url.split_once('?')?;
    let parameters = query.split('&').filter(|part| !part.is_empty()).count();
    (parameters >= VARYING_PARAMETERS_MIN).then_some((page, query))
}

#[cfg(test)]
mod tests {
    use super::{Variations, endless_path, varied_page};
    use archive_books::ledger::Refusal;
    use url::Url;

    fn url(path: &str) -> Url {
        Url::parse("http://a.test").unwrap().join(path).unwrap()
    }

    #[test]
    fn paths_that_grow_by_themselves_are_distinguished_from_those_that_people_make() {
        for path in [
            "/",
            "/2026/01/01/news",
            "/en/en/start",
            "/a/b/a/b/",
            "/docs/api/docs/api/x/docs",
            "/org/example/example/Example.html",
            "/1/1/2/1/2/1/",
        ] {
            assert_eq!(endless_path(&url(path)), None, "{path}");
        }
        for path in ["/a/a/a", "/x/a/b/a/b/a/b/y", "/a/b/c/d/a/b/c/d/a/b/c/d", "/a/b/a/c/a/d/a/e/a"] {
            assert_eq!(endless_path(&url(path)), Some(Refusal::RepeatingPath), "{path}");
        }
        let deep: String = (0..21).map(|number| format!("/{number}")).collect();
        assert_eq!(endless_path(&url(&deep)), Some(Refusal::LongPath));
        assert_eq!(endless_path(&url(&format!("/{}", "x".repeat(1024)))), Some(Refusal::LongPath));
    }

    #[test]
    fn views_of_a_list_are_counted_and_pages_named_by_a_query_are_not() {
        assert_eq!(varied_page("http://a.test/index.php?title=Page_7&lang=en"), None);
        assert_eq!(varied_page("http://a.test/index.php?&&title=Page_7&"), None);
        let list = "http://a.test/list";
        let query = "sort=name&colour=red&page=7";
        assert_eq!(varied_page(&format!("{list}?{query}")), Some((list, query)));
        let mut variations = Variations::default();
        for number in 0..10 {
            assert_eq!(variations.add(list, 3), number < 3);
            assert!(variations.add(&format!("{list}/{number}"), 3));
        }
        let mut is_new = |query: &str| variations.note_values(list, query);
        assert!(is_new("sort=name&colour=red&page=7") && is_new("sort=name&colour=blue&page=8"));
        assert!(!is_new("sort=name&colour=red&page=8"), "a combination of what was there");
    }
}

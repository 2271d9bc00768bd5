//! URLs of places without an end: paths that grow by themselves, lists that can be sorted and filtered in every way.
//!
//! What a URL alone tells is told here; that a host gives the same page under ever new URLs is found by its books
//! ([`crate::ledger::Sameness`]).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use url::Url;

use crate::ledger::Refusal;

/// A run of segments may stand this often one after the other, as in `/a/b/a/b/`; once more is a trap (Heritrix'
/// PathologicalPathDecideRule has the same).
const RUNS_MAX: usize = 2;

/// Segments of a run that is looked for.
const RUN_SEGMENTS_MAX: usize = 4;

/// One segment may stand this often anywhere in a path.
const SAME_SEGMENT_MAX: usize = 4;

/// Segments of a path (Heritrix' TooManyPathSegmentsDecideRule has the same).
const SEGMENTS_MAX: usize = 20;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1024;

/// A query with fewer parameters than this names a page; with this many it chooses among views of one.
const VARYING_PARAMETERS_MIN: usize = 3;

/// Pages whose variations are counted; beyond them nothing new is, so that a host of endless paths costs no memory.
const COUNTED_PAGES_MAX: usize = 1 << 20;

/// Whether a URL's path is one that no person has made.
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

/// How often each page was asked for with different choices in its query, in this run.
#[derive(Debug, Default)]
pub(super) struct Variations {
    hasher: RandomState,
    counts: HashMap<u64, u32>,
}

impl Variations {
    /// Counts a URL that is about to be fetched; whether it is beyond the `most` variations of its page.
    pub(super) fn count(&mut self, url: &Url, most: u32) -> Option<Refusal> {
        let parameters = url.query().map_or(0, |query| query.split('&').filter(|part| !part.is_empty()).count());
        if most == 0 || parameters < VARYING_PARAMETERS_MIN {
            return None;
        }
        let page = self.hasher.hash_one(&url[..url::Position::AfterPath]);
        if self.counts.len() >= COUNTED_PAGES_MAX && !self.counts.contains_key(&page) {
            return None;
        }
        let count = self.counts.entry(page).or_insert(0);
        if *count >= most {
            return Some(Refusal::QueryVariations);
        }
        *count += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Variations, endless_path};
    use crate::ledger::Refusal;
    use url::Url;

    fn url(path: &str) -> Url {
        Url::parse("http://a.test").unwrap().join(path).unwrap()
    }

    #[test]
    fn paths_that_grow_by_themselves_are_told_from_those_that_people_make() {
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
        let mut variations = Variations::default();
        for number in 0..100 {
            let named = url(&format!("/index.php?title=Page_{number}&lang=en"));
            assert_eq!(variations.count(&named, 3), None);
            let view = url(&format!("/list?sort=name&colour=red&page={number}"));
            assert_eq!(variations.count(&view, 3), (number >= 3).then_some(Refusal::QueryVariations));
            assert_eq!(variations.count(&url(&format!("/l?a=1&b=2&c={number}")), 0), None);
        }
    }
}

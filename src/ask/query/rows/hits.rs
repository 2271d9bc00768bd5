//! Results of a plan's searches, found before rows are read, and the pages that can match because of them.

use std::ops::Range;
use std::sync::Arc;

use archive_books::search::{Structures, TextQuery};
use archive_storage::UrlId;
use rayon::prelude::*;

use crate::query::language::{Filter, RowsError};
use crate::query::rows::full_text::FullText;

/// The result of a search, in any order.
pub(crate) enum SearchResult {
    Pages(Vec<UrlId>),
    /// Pages with their BM25.
    Scored(Vec<(UrlId, f32)>),
}

impl SearchResult {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.len(),
            Self::Scored(scored) => scored.len(),
        }
    }
}

/// How much the pages of a search contribute to the score.
enum Points<'a> {
    None,
    /// The BM25 of each page.
    Known(Vec<f32>),
    /// The index is queried for each page.
    Later(&'a dyn FullText, &'a TextQuery),
}

/// The results of all searches of a plan.
#[derive(Default)]
pub struct Hits<'a> {
    /// Pages sorted by id; `None` for a search that may find any page.
    searches: Vec<Option<(Arc<Vec<UrlId>>, Points<'a>)>>,
    /// The structure of the pages' XML documents, from the index.
    pub(crate) structures: Structures,
}

impl<'a> Hits<'a> {
    /// Adds the result of the next search; with `later`, BM25 is looked up in the index when needed.
    pub(crate) fn push(&mut self, found: SearchResult, later: Option<(&'a dyn FullText, &'a TextQuery)>) {
        let search = match found {
            SearchResult::Pages(mut pages) => {
                sort(&mut pages);
                (pages, later.map_or(Points::None, |(index, query)| Points::Later(index, query)))
            }
            SearchResult::Scored(mut scored) => {
                scored.par_sort_unstable_by_key(|(id, _)| *id);
                let (pages, points) = scored.into_iter().unzip();
                (pages, Points::Known(points))
            }
        };
        self.searches.push(Some((Arc::new(search.0), search.1)));
    }

    /// Adds a search that may find any page.
    pub(crate) fn push_any(&mut self) {
        self.searches.push(None);
    }

    /// Replaces the result of the search at `index` by pages sorted by id.
    pub(crate) fn set(&mut self, index: usize, pages: Vec<UrlId>) {
        if let Some(search) = self.searches.get_mut(index) {
            *search = Some((Arc::new(pages), Points::None));
        }
    }

    /// Whether the search at `index` found a page.
    pub(crate) fn has(&self, index: usize, id: UrlId) -> bool {
        let search = self.searches.get(index);
        search.is_some_and(|search| search.as_ref().is_none_or(|(pages, _)| pages.binary_search(&id).is_ok()))
    }

    /// The sum of BM25 over all searches that count for the score.
    pub(crate) fn bm25(&self, id: UrlId) -> Result<f64, RowsError> {
        let each = self.searches.iter().flatten().map(|(pages, points)| {
            Ok::<f64, RowsError>(match points {
                Points::None => 0.0,
                Points::Known(points) => {
                    let place = pages.binary_search(&id).ok();
                    place.and_then(|place| points.get(place)).map_or(0.0, |bm25| f64::from(*bm25))
                }
                Points::Later(index, query) => index.bm25(query, id)?.into(),
            })
        });
        each.sum()
    }

    /// The BM25 values already known for all pages.
    pub(crate) fn scores(&self) -> KnownScores<'_> {
        let known = self.searches.iter().flatten().filter_map(|(pages, points)| match points {
            Points::Known(points) => Some((pages.as_slice(), points.as_slice())),
            _ => None,
        });
        KnownScores(known.collect())
    }

    /// The result of the search at `index`; `None` if it may find any page.
    pub(crate) fn found(&self, index: usize) -> Option<&Arc<Vec<UrlId>>> {
        self.searches.get(index)?.as_ref().map(|(pages, _)| pages)
    }

    /// The only pages that can match `filter`, sorted by id; `None` if others may match too.
    pub(crate) fn candidates(&self, filter: &Filter) -> Option<Vec<UrlId>> {
        match filter {
            Filter::Hit(index) => Some(self.found(*index)?.to_vec()),
            Filter::All(parts) => {
                parts.iter().filter_map(|part| self.candidates(part)).reduce(|left, right| {
                    left.into_iter().filter(|id| right.binary_search(id).is_ok()).collect()
                })
            }
            Filter::Any(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.candidates(part)?);
                }
                all.sort();
                all.dedup();
                Some(all)
            }
            _ => None,
        }
    }
}

/// The pages of searches with known BM25.
pub(crate) struct KnownScores<'a>(Vec<(&'a [UrlId], &'a [f32])>);

impl KnownScores<'_> {
    /// The sums of BM25 for all pages of a range, or only for the rows `few` in it.
    pub(crate) fn of(&self, pages: Range<u32>, few: Option<&[u32]>) -> Vec<f64> {
        let mut sums = vec![0.0; few.map_or(pages.len(), <[_]>::len)];
        for (found, points) in &self.0 {
            let mut before = 0;
            let place = |page: u32| found.partition_point(|id| id.0 < page);
            let own = place(pages.start)..place(pages.end);
            let own = found.get(own.clone()).into_iter().flatten().zip(points.get(own).into_iter().flatten());
            for (id, bm25) in own {
                let row = id.0 - pages.start;
                let place = match few {
                    None => row as usize,
                    Some(few) => {
                        before += few.iter().skip(before).take_while(|other| **other < row).count();
                        match few.get(before) {
                            Some(other) if *other == row => before,
                            _ => continue,
                        }
                    }
                };
                sums[place] += f64::from(*bm25);
            }
        }
        sums
    }
}

/// Sorts pages, by means of a bitmap of the archive's pages unless they are fewer than one in [`u64::BITS`].
fn sort(pages: &mut Vec<UrlId>) {
    let Some(last) = pages.iter().max() else { return };
    let words = last.index() / u64::BITS as usize + 1;
    if pages.len() < words {
        return pages.par_sort_unstable();
    }
    let mut bits = vec![0_u64; words];
    for id in pages.drain(..) {
        bits[id.index() / u64::BITS as usize] |= 1 << (id.0 % u64::BITS);
    }
    for (first, mut word) in (0..).step_by(u64::BITS as usize).zip(bits) {
        while word != 0 {
            pages.push(UrlId(first + word.trailing_zeros()));
            word &= word - 1;
        }
    }
}

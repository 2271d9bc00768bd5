//! What the searches of a plan found before rows are read, and which pages can match at all because of it.

use std::ops::Range;
use std::sync::Arc;

use archive_storage::UrlId;
use rayon::prelude::*;

use super::FullText;
use super::filter::Filter;
use super::rows::RowsError;
use crate::search::{Structures, TextQuery};

/// Pages found, with BM25 (0 for what no text search found), by rising id.
pub(crate) type Found = Vec<(UrlId, f32)>;

/// Whether a search counts for the score.
pub(super) enum Scored<'a> {
    Not,
    Known,
    /// The index is asked for each page.
    Later(&'a dyn FullText, &'a TextQuery),
}

/// The findings of all searches of a plan.
#[derive(Default)]
pub struct Hits<'a> {
    /// None for one that may find any page.
    searches: Vec<Option<(Arc<Found>, Scored<'a>)>>,
    /// The structure of the pages' XML documents, from the index.
    pub(crate) structures: Structures,
}

impl<'a> Hits<'a> {
    /// Adds the findings of the next search.
    pub(super) fn push(&mut self, mut found: Found, scored: Scored<'a>) {
        if matches!(scored, Scored::Known) || !sort_many(&mut found) {
            found.par_sort_unstable_by_key(|(id, _)| *id);
        }
        self.searches.push(Some((Arc::new(found), scored)));
    }

    /// Adds a search that may find any page.
    pub(crate) fn push_any(&mut self) {
        self.searches.push(None);
    }

    /// Puts pages, by rising number, in the place of what the search at `index` found.
    pub(super) fn set(&mut self, index: usize, pages: Vec<UrlId>) {
        if let Some(search) = self.searches.get_mut(index) {
            let pages = pages.into_iter().map(|id| (id, 0.0)).collect();
            *search = Some((Arc::new(pages), Scored::Not));
        }
    }

    /// Whether the search at `index` found a page.
    pub(crate) fn has(&self, index: usize, id: UrlId) -> bool {
        let search = self.searches.get(index);
        search.is_some_and(|search| search.as_ref().is_none_or(|(found, _)| bm25(found, id).is_some()))
    }

    /// The sum of BM25 over all searches that count for the score.
    pub(crate) fn bm25(&self, id: UrlId) -> Result<f64, RowsError> {
        let each = self.searches.iter().flatten().map(|(found, scored)| {
            Ok::<f64, RowsError>(match scored {
                Scored::Not => 0.0,
                Scored::Known => bm25(found, id).map_or(0.0, f64::from),
                Scored::Later(index, query) => index.bm25(query, id)?.into(),
            })
        });
        each.sum()
    }

    /// What is known of BM25 of all pages.
    pub(super) fn scores(&self) -> KnownScores<'_> {
        let known = self.searches.iter().flatten().filter(|(_, scored)| matches!(scored, Scored::Known));
        KnownScores(known.map(|(found, _)| found.as_slice()).collect())
    }

    /// What the search at `index` found; none of one that may find any page.
    pub(super) fn found(&self, index: usize) -> Option<&Arc<Found>> {
        self.searches.get(index)?.as_ref().map(|(found, _)| found)
    }

    /// The only pages for which `filter` can hold, by rising id; none when it can hold for pages that were not found.
    pub(crate) fn candidates(&self, filter: &Filter) -> Option<Vec<UrlId>> {
        match filter {
            Filter::Hit(index) => Some(self.found(*index)?.iter().map(|(id, _)| *id).collect()),
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

/// What searches say of scores.
pub(super) struct KnownScores<'a>(Vec<&'a [(UrlId, f32)]>);

impl KnownScores<'_> {
    /// The sum of BM25 of each page of a range, or of a few, by their places in it.
    pub(super) fn of(&self, pages: Range<u32>, few: Option<&[u32]>) -> Vec<f64> {
        let mut sums = vec![0.0; few.map_or(pages.len(), <[_]>::len)];
        for found in &self.0 {
            let mut before = 0;
            for (id, bm25) in within(found, &pages) {
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

/// Sorts pages whose points do not matter by a bit for each page, unless they are less than one in [`u64::BITS`]; whether it did.
fn sort_many(found: &mut Found) -> bool {
    let Some(last) = found.iter().map(|(id, _)| id.index()).max() else { return true };
    let words = last / u64::BITS as usize + 1;
    if found.len() < words {
        return false;
    }
    let mut bits = vec![0_u64; words];
    for (id, _) in found.drain(..) {
        bits[id.index() / u64::BITS as usize] |= 1 << (id.0 % u64::BITS);
    }
    for (first, mut word) in (0..).step_by(u64::BITS as usize).zip(bits) {
        while word != 0 {
            found.push((UrlId(first + word.trailing_zeros()), 0.0));
            word &= word - 1;
        }
    }
    true
}

/// The hits in a range of pages.
fn within<'a>(found: &'a [(UrlId, f32)], pages: &Range<u32>) -> &'a [(UrlId, f32)] {
    let place = |page: u32| found.partition_point(|(id, _)| id.0 < page);
    found.get(place(pages.start)..place(pages.end)).unwrap_or_default()
}

fn bm25(found: &[(UrlId, f32)], id: UrlId) -> Option<f32> {
    let index = found.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    found.get(index).map(|(_, bm25)| *bm25)
}

//! What the searches of a plan found before rows are read, and which pages can match at all because of it.

use std::ops::Range;

use archive_storage::UrlId;

use super::filter::Filter;
use crate::search::Structures;

/// Pages found, with BM25 (0 for what no text search found), by rising id.
pub(crate) type Found = Vec<(UrlId, f32)>;

/// The findings of all searches of a plan.
#[derive(Default)]
pub struct Hits {
    /// None for one that may find any page.
    searches: Vec<Option<(Found, bool)>>,
    /// The structure of the pages' XML documents, from the index.
    pub(crate) structures: Structures,
}

impl Hits {
    /// Adds the findings of the next search, which `scores` or does not.
    pub(crate) fn push(&mut self, mut found: Found, scores: bool) {
        found.sort_unstable_by_key(|(id, _)| *id);
        self.searches.push(Some((found, scores)));
    }

    /// Adds a search that may find any page.
    pub(crate) fn push_any(&mut self) {
        self.searches.push(None);
    }

    /// Puts pages, by rising number, in the place of what the search at `index` found.
    pub(super) fn set(&mut self, index: usize, pages: Vec<UrlId>) {
        if let Some(search) = self.searches.get_mut(index) {
            *search = Some((pages.into_iter().map(|id| (id, 0.0)).collect(), false));
        }
    }

    /// Whether the search at `index` found a page.
    pub(crate) fn has(&self, index: usize, id: UrlId) -> bool {
        let search = self.searches.get(index);
        search.is_some_and(|search| search.as_ref().is_none_or(|(found, _)| bm25(found, id).is_some()))
    }

    /// The sum of BM25 over all searches that count for the score.
    pub(crate) fn bm25(&self, id: UrlId) -> f64 {
        self.scoring().filter_map(|found| bm25(found, id)).map(f64::from).sum()
    }

    /// The same of each page of a range.
    pub(super) fn bm25_of(&self, pages: Range<u32>) -> Vec<f64> {
        let mut sums = vec![0.0; pages.len()];
        for (id, bm25) in self.scoring().flat_map(|found| within(found, &pages)) {
            sums[(id.0 - pages.start) as usize] += f64::from(*bm25);
        }
        sums
    }

    fn scoring(&self) -> impl Iterator<Item = &Found> {
        self.searches.iter().flatten().filter(|(_, scores)| *scores).map(|(found, _)| found)
    }

    /// What the search at `index` found; none of one that may find any page.
    pub(super) fn found(&self, index: usize) -> Option<&Found> {
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
                all.sort_unstable();
                all.dedup();
                Some(all)
            }
            _ => None,
        }
    }
}

/// The hits in a range of pages.
fn within<'a>(found: &'a Found, pages: &Range<u32>) -> &'a [(UrlId, f32)] {
    let place = |page: u32| found.partition_point(|(id, _)| id.0 < page);
    found.get(place(pages.start)..place(pages.end)).unwrap_or_default()
}

fn bm25(found: &[(UrlId, f32)], id: UrlId) -> Option<f32> {
    let index = found.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    found.get(index).map(|(_, bm25)| *bm25)
}

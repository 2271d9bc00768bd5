//! Counts the pages found by site, year, type and language.

use std::collections::{BTreeMap, HashMap, HashSet};

use archive_books::prepared::Facts;
use archive_books::search::FoundPage;
use archive_storage::UrlId;
use chrono::Datelike;

use super::FindError;
use crate::query::{AsOf, PageRow, PageText, Plan, Rows, RowsError, Together};

const DAY_SECONDS: u32 = 86_400;

/// Maximum number of values listed per facet.
const FACET_VALUES_MAX: usize = 10;

/// Number of pages per value, for each facet.
#[derive(Debug, Default)]
pub(super) struct FacetCounts {
    pub(super) by: [BTreeMap<String, u64>; 4],
}

impl FacetCounts {
    const NAMES: [&str; 4] = ["site", "year", "type", "language"];

    fn add(&mut self, rows: &dyn Rows, row: &PageRow) -> Result<(), RowsError> {
        for (place, counts) in self.by.iter_mut().enumerate() {
            if let Some(value) = Self::value(place, rows, row)? {
                *counts.entry(value).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Adds many pages by their columns. The value of a column's number is looked up on one page that has it.
    fn add_sorts(&mut self, rows: &dyn Rows, pages: &[(UrlId, Facts)]) -> Result<(), RowsError> {
        let sorts: [fn(&Facts) -> u32; 4] = [
            |facts| facts.site.0,
            // Days since 1970 plus 1, as each day is in one year; 0 for none.
            |facts| facts.last_seen.checked_sub(1).map_or(0, |_| facts.last_seen / DAY_SECONDS + 1),
            |facts| facts.kind.map_or(0, |kind| u32::from(kind) + 1),
            |facts| facts.language.into(),
        ];
        for (place, (sort, counts)) in sorts.iter().zip(&mut self.by).enumerate() {
            let mut of_sorts: HashMap<u32, (UrlId, u64)> = HashMap::new();
            // Neighbouring pages mostly have the same value.
            for same in pages.chunk_by(|(_, left), (_, right)| sort(left) == sort(right)) {
                let Some((id, facts)) = same.first() else { continue };
                of_sorts.entry(sort(facts)).or_insert((*id, 0)).1 += same.len() as u64;
            }
            // Each site has its own name, so only the sites that can be listed are looked up.
            let least = if place == 0 { nth_largest(&of_sorts, FACET_VALUES_MAX) } else { 0 };
            for (id, count) in of_sorts.into_values().filter(|(_, count)| *count >= least) {
                let value = rows.page(id)?.map_or(Ok(None), |row| Self::value(place, rows, &row))?;
                if let Some(value) = value {
                    *counts.entry(value).or_default() += count;
                }
            }
        }
        Ok(())
    }

    /// Returns the page's value of the facet at `place` in [`FacetCounts::NAMES`].
    fn value(place: usize, rows: &dyn Rows, row: &PageRow) -> Result<Option<String>, RowsError> {
        let text = |text| Ok(rows.text(row, text)?.map(std::borrow::Cow::into_owned));
        match place {
            0 => text(PageText::Site),
            1 => Ok(row.last_seen.map(|time| time.year().to_string())),
            2 => Ok(row.kind.map(|kind| kind.name().to_owned())),
            _ => text(PageText::Language),
        }
    }

    pub(super) fn facets(self) -> Vec<(&'static str, Vec<(String, u64)>)> {
        let facets = Self::NAMES.into_iter().zip(self.by).map(|(name, counts)| {
            let mut values: Vec<(String, u64)> = counts.into_iter().collect();
            values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            values.truncate(FACET_VALUES_MAX);
            (name, values)
        });
        facets.filter(|(_, values)| !values.is_empty()).collect()
    }
}

/// Returns the `number`-th largest count; 0 if there are fewer counts.
fn nth_largest(of_sorts: &HashMap<u32, (UrlId, u64)>, number: usize) -> u64 {
    let mut counts: Vec<u64> = of_sorts.values().map(|(_, count)| *count).collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    counts.get(number - 1).copied().unwrap_or(0)
}

/// Counts all pages found that match, and removes the others.
pub(super) fn counted(
    today: &Together<'_>,
    past: Option<&AsOf<'_>>,
    plan: &Plan,
    found: &mut Vec<FoundPage>,
) -> Result<FacetCounts, FindError> {
    let rows: &dyn Rows = past.map_or(today, |past| past);
    let mut counts = FacetCounts::default();
    if past.is_none() {
        found.sort_unstable_by_key(|found| found.page);
        let mut ids: Vec<UrlId> = found.iter().map(|found| found.page).collect();
        ids.dedup();
        if let Some(known) = today.found_of(plan, &ids)? {
            let mut fitting = known.iter().map(|(id, _)| *id).peekable();
            found.retain(|found| {
                while fitting.next_if(|id| *id < found.page).is_some() {}
                fitting.peek() == Some(&found.page)
            });
            counts.add_sorts(rows, &known)?;
            return Ok(counts);
        }
    }
    let mut fitting = HashSet::new();
    for row in today.pages_of(found.iter().map(|found| found.page).collect()) {
        let row = match past {
            Some(past) => past.row(row?)?,
            None => Some(row?),
        };
        let Some(row) = row else { continue };
        if plan.selects(rows, row)? {
            counts.add(rows, &row)?;
            fitting.insert(row.id);
        }
    }
    found.retain(|found| fitting.contains(&found.page));
    Ok(counts)
}

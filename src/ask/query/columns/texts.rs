//! Conditions on URLs or titles alone, including calculations. No column has texts: they are stored together in the
//! logs of the state, and are read from there for whole blocks of columns.

use std::ops::Range;

use archive_books::prepared::{Column as Stored, Prepared};
use archive_storage::{State, StateError, TextPosition, UrlId};
use rayon::prelude::*;

use crate::query::columns::row_set::RowSet;
use crate::query::language::{Column, FieldPath, Filter, Found, Function, Given, PlannedExpr, TextTest};

/// Number of URLs that are read together where only some are needed.
const URLS_TOGETHER: u32 = 128;

/// Number of title blocks that are read in one go.
pub(crate) const BLOCKS_TOGETHER: u64 = 64;

/// Positions of titles are grouped by their upper bits, without this many lower ones; a group has a few hundred titles.
const POSITION_BITS: u32 = 16;

/// A condition on a single text.
#[derive(Clone, Debug)]
pub(crate) struct OnText(pub(crate) Filter);

impl OnText {
    pub(crate) fn new(column: Column, test: TextTest) -> Self {
        Self(Filter::Text(PlannedExpr::Field(FieldPath::from(column)), test))
    }

    pub(crate) fn holds(&self, text: Option<&str>) -> bool {
        let text = text.filter(|text| !text.is_empty());
        match (&self.0, text) {
            // These need no copy of the text.
            (Filter::Text(PlannedExpr::Field(path), test), _) => test.holds_of(text, Some(path.column)),
            (Filter::Number(PlannedExpr::Call(Function::Length, of), ranges), Some(text))
                if matches!(**of, PlannedExpr::Field(_)) =>
            {
                ranges.has(&(text.chars().count() as f64))
            }
            // Only reading a field can fail, and nothing is read here.
            (calculated, _) => calculated.holds(&Given(|_| text.into())).unwrap_or_default(),
        }
    }
}

/// A condition on URLs.
#[derive(Debug)]
pub(crate) struct Urls<'a> {
    pub(crate) state: &'a State,
    pub(crate) test: OnText,
}

impl Urls<'_> {
    /// The only URLs that can match, sorted by id, if the condition names them.
    pub(crate) fn named(&self) -> Result<Option<Vec<UrlId>>, StateError> {
        let Some(urls) = self.test.0.urls() else { return Ok(None) };
        let found = urls.iter().filter_map(|url| self.state.find(url).transpose());
        let mut found: Vec<UrlId> = found.collect::<Result<_, _>>()?;
        found.sort_unstable();
        Ok(Some(found))
    }

    /// The rows whose URLs match; the result is unspecified for rows outside `among`.
    pub(crate) fn rows(&self, ids: Range<u32>, among: &RowSet) -> Result<RowSet, StateError> {
        // Threads that share one regular expression would wait for each other.
        let (mut rows, test) = (vec![false; ids.len()], self.test.clone());
        for ids_together in runs(ids.clone(), among) {
            self.state.scan_urls(ids_together, |id, url| {
                if let Some(row) = rows.get_mut((id.0 - ids.start) as usize) {
                    *row = test.holds(Some(url));
                }
                Ok(())
            })?;
        }
        Ok(RowSet::of(rows))
    }
}

/// The ranges of ids to read: all those in `among`, with their neighbours.
fn runs(ids: Range<u32>, among: &RowSet) -> Vec<Range<u32>> {
    if !matches!(among, RowSet::Some(_) | RowSet::Few(..)) {
        return vec![ids];
    }
    let mut runs: Vec<Range<u32>> = Vec::new();
    for first in ids.clone().step_by(URLS_TOGETHER as usize) {
        let end = ids.end.min(first.saturating_add(URLS_TOGETHER));
        match runs.last_mut() {
            _ if !among.has_any(first - ids.start..end - ids.start) => {}
            Some(last) if last.end == first => last.end = end,
            _ => runs.push(first..end),
        }
    }
    runs
}

/// A condition on titles.
#[derive(Debug)]
pub(crate) struct Titles<'a> {
    state: &'a State,
    test: OnText,
    /// The positions of all matching titles: the lower bits of each, grouped by the upper bits. `None` until it is
    /// clear that all titles are needed.
    found: Option<Vec<Vec<u16>>>,
}

impl<'a> Titles<'a> {
    pub(crate) fn new(state: &'a State, test: OnText) -> Self {
        Self { state, test, found: None }
    }

    /// Reads all titles.
    pub(crate) fn read_all(&mut self) -> Result<(), StateError> {
        let blocks = self.state.title_blocks();
        let read = |part: u64| {
            let mut found: Vec<Vec<u16>> = Vec::new();
            let part = part * BLOCKS_TOGETHER..blocks.min((part + 1) * BLOCKS_TOGETHER);
            let (first, test) = (part.start, self.test.clone());
            self.state.scan_titles(part, |position, title| {
                if test.holds(Some(title)) {
                    let (place, rest) = split(position.0);
                    let place = place.saturating_sub(first) as usize;
                    found.resize_with(found.len().max(place + 1), Vec::new);
                    found.get_mut(place).into_iter().for_each(|found| found.push(rest));
                }
            })?;
            found.resize_with(BLOCKS_TOGETHER as usize, Vec::new);
            Ok::<_, StateError>(found)
        };
        let parts = 0..blocks.div_ceil(BLOCKS_TOGETHER);
        self.found = Some(parts.into_par_iter().map(read).collect::<Result<Vec<_>, _>>()?.concat());
        Ok(())
    }

    /// The pages of a block whose titles match; the result is unspecified for rows outside `among`.
    pub(crate) fn rows(&self, prepared: &Prepared, block: u32, among: &RowSet) -> Found<RowSet> {
        let for_none = self.test.holds(None);
        if let Some(found) = &self.found {
            let holds = |value: u64| {
                let Some(position) = value.checked_sub(1) else { return for_none };
                let (place, rest) = split(position);
                found.get(place as usize).is_some_and(|found| found.binary_search(&rest).is_ok())
            };
            return Ok(RowSet::passing((prepared, block), Stored::Title, among, holds)?);
        }
        let mut asked: Vec<(usize, u64)> = match among {
            RowSet::Few(rows, _) => {
                let values = prepared.pick(block, Stored::Title, rows)?;
                rows.iter().map(|row| *row as usize).zip(values).collect()
            }
            _ => {
                let values = prepared.values(block, Stored::Title)?;
                (0..).zip(values).filter(|(row, _)| among.has(*row)).collect()
            }
        };
        // Neighbouring titles are read together.
        asked.sort_unstable_by_key(|(_, position)| *position);
        let mut titles = self.state.title_cursor();
        let mut rows = vec![false; prepared.ids(block).len()];
        for (row, value) in asked {
            let holds = match value.checked_sub(1) {
                Some(position) => self.test.holds(Some(titles.get(TextPosition(position))?)),
                None => for_none,
            };
            rows.get_mut(row).into_iter().for_each(|row| *row = holds);
        }
        Ok(RowSet::of(rows))
    }
}

/// Splits a position into upper and lower bits.
pub(crate) fn split(position: u64) -> (u64, u16) {
    (position >> POSITION_BITS, position as u16)
}

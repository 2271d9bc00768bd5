//! Answers that prepared columns give alone: how many pages there are of each sort, and which are the most important. No row is
//! made of the others, and blocks are read on all processors. Of sites, which numbers leave out most.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use archive_grammar::Direction;
use archive_storage::UrlId;
use rayon::prelude::*;

use super::columns::Column;
use super::expr::Expr;
use super::filter::{Filter, Ranges};
use super::groups::{Aggregate, Gather};
use super::plan::Plan;
use super::prefilter::{Rows, Test, plain};
use super::top::Top;
use crate::prepared::{self, Column as Stored, Facts, Prepared, PreparedError, SiteSums};

/// Sorts of pages of one block that are counted side by side.
const SORTS_MAX: u64 = 1 << 18;

/// Of more pages than this, those before each other are told row by row.
const BEST_MAX: usize = 10_000;

/// The columns whose values are all that the groups of a plan tell apart, if it only counts rows.
pub(super) fn sorts(plan: &Plan) -> Option<Vec<Stored>> {
    let groups = plan.groups.as_ref().filter(|_| plan.sample.is_none())?;
    let counts = |aggregate: &Aggregate| aggregate.gather == Gather::Count;
    if !groups.aggregates.iter().all(counts) {
        return None;
    }
    groups.keys.iter().map(|key| plain(key).and_then(stored)).collect()
}

/// The column whose values tell those of a field.
fn stored(column: Column) -> Option<Stored> {
    Some(match column {
        Column::Type => Stored::Kind,
        Column::Host => Stored::Host,
        Column::Site => Stored::Site,
        Column::Status => Stored::Status,
        Column::Captures => Stored::Captures,
        Column::Versions => Stored::Versions,
        Column::Depth => Stored::Depth,
        Column::Language => Stored::Language,
        Column::ContentType => Stored::Mime,
        _ => return None,
    })
}

/// How many pages are asked for, if they are asked for by importance, and whether those that were captured come first.
pub(super) fn best(plan: &Plan) -> Option<(usize, bool)> {
    let limit = plan.last_row().filter(|limit| *limit <= BEST_MAX)?;
    let falling =
        |expr: &Expr, direction: &Direction| plain(expr).filter(|_| *direction == Direction::Descending);
    let order: Option<Vec<Column>> = plan.order.iter().map(|(expr, way)| falling(expr, way)).collect();
    let captured_first = match order.as_deref()? {
        [Column::Importance] => false,
        [Column::Captured, Column::Importance] => true,
        _ => return None,
    };
    (plan.groups.is_none() && plan.sample.is_none()).then_some((limit, captured_first))
}

/// Conditions on numbers of sites without which a filter does not hold.
pub(super) fn site_tests(filter: &Filter) -> Vec<(Column, Ranges<f64>)> {
    match filter {
        Filter::All(parts) => parts.iter().flat_map(site_tests).collect(),
        Filter::Number(expr, ranges) => {
            let column = plain(expr).filter(|column| site_number(&SiteSums::default(), *column).is_some());
            column.map(|column| (column, ranges.clone())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A number of a site that is known of each.
pub(super) fn site_number(site: &SiteSums, column: Column) -> Option<f64> {
    Some(match column {
        Column::Importance => site.by_links,
        Column::Pages => site.pages as f64,
        Column::Captures => site.captures as f64,
        Column::Html => site.html as f64,
        Column::Xml => site.xml as f64,
        _ => return None,
    })
}

/// The columns, and a test that says all that the filter of a plan does.
pub(super) struct Columnar<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) test: Option<Test>,
}

type Found<T> = Result<T, PreparedError>;

/// Whether a page was captured (or need not be), its importance, and its number: the best first.
type Key = (Reverse<bool>, Reverse<u64>, UrlId);

/// The best pages so far, and how many there were.
type Best = (Top<Key, fn(&Key, &Key) -> Ordering>, u64);

impl Columnar<'_> {
    /// One page of each sort, by what it has in these columns alone, and how many there are; none when there are too many sorts.
    pub(super) fn sorted(&self, columns: &[Stored]) -> Found<Option<Vec<(UrlId, Facts, u64)>>> {
        let blocks = 0..self.prepared.blocks();
        if !blocks.clone().all(|block| self.sorts_of(block, columns) <= SORTS_MAX) {
            return Ok(None);
        }
        let found: Vec<_> =
            blocks.into_par_iter().map(|block| self.sorted_in(block, columns)).collect::<Found<_>>()?;
        let mut sorts: HashMap<Vec<u64>, (UrlId, u64)> = HashMap::new();
        for (values, id, count) in found.into_iter().flatten() {
            sorts.entry(values).or_insert((id, 0)).1 += count;
        }
        let sorts =
            sorts.into_iter().map(|(values, (id, count))| (id, Facts::of_some(columns, &values), count));
        Ok(Some(sorts.collect()))
    }

    /// How many different values of all columns a block may have.
    fn sorts_of(&self, block: u32, columns: &[Stored]) -> u64 {
        columns.iter().fold(1, |sorts: u64, column| sorts.saturating_mul(self.span(block, *column)))
    }

    fn span(&self, block: u32, column: Stored) -> u64 {
        let bounds = self.prepared.bounds(block, column);
        (bounds.end() - bounds.start()).saturating_add(1)
    }

    /// The sorts of a block: their values, one page of each, how many there are.
    fn sorted_in(&self, block: u32, columns: &[Stored]) -> Found<Vec<(Vec<u64>, UrlId, u64)>> {
        let rows = self.rows(block)?;
        let urls = self.prepared.urls(block);
        if matches!(rows, Rows::None) {
            return Ok(Vec::new());
        }
        // The place of each row's sort among all that there may be.
        let mut places = vec![0_u32; urls.len()];
        for column in columns {
            let (span, least) = (self.span(block, *column), *self.prepared.bounds(block, *column).start());
            if span > 1 {
                let values = self.prepared.values(block, *column)?;
                places
                    .iter_mut()
                    .zip(values)
                    .for_each(|(place, value)| *place = *place * span as u32 + (value - least) as u32);
            }
        }
        // How many, and the last row.
        let mut sorts = vec![(0_u32, 0_u32); self.sorts_of(block, columns) as usize];
        let mut add = |(row, place): (usize, u32)| {
            if let Some((count, last)) = sorts.get_mut(place as usize) {
                (*count, *last) = (*count + 1, row as u32);
            }
        };
        match rows {
            Rows::Some(rows) => {
                let places = places.into_iter().enumerate().zip(rows);
                places.filter(|(_, is_in)| *is_in).for_each(|(row, _)| add(row));
            }
            _ => places.into_iter().enumerate().for_each(add),
        }
        let found = sorts.into_iter().enumerate().filter(|(_, (count, _))| *count > 0);
        let found = found.map(|(place, (count, last))| {
            let mut rest = place as u64;
            let mut values: Vec<u64> = Vec::with_capacity(columns.len());
            for column in columns.iter().rev() {
                let span = self.span(block, *column);
                values.push(self.prepared.bounds(block, *column).start() + rest % span);
                rest /= span;
            }
            values.reverse();
            (values, UrlId(urls.start + last), u64::from(count))
        });
        Ok(found.collect())
    }

    /// The most important pages, at most so many, and how many there are in all.
    pub(super) fn best(&self, limit: usize, captured_first: bool) -> Found<(Vec<UrlId>, u64)> {
        let nothing = || -> Best { (Top::new(Some(limit), Key::cmp), 0) };
        let blocks = (0..self.prepared.blocks()).into_par_iter();
        let each = blocks.try_fold(nothing, |best, block| self.add_best(best, block, captured_first));
        let (best, count) = each.try_reduce(nothing, |(mut left, ours), (right, theirs)| {
            right.into_sorted().into_iter().for_each(|key| left.push(key));
            Ok((left, ours + theirs))
        })?;
        Ok((best.into_sorted().into_iter().map(|(.., id)| id).collect(), count))
    }

    /// Adds the pages of a block.
    fn add_best(&self, (mut top, mut count): Best, block: u32, captured_first: bool) -> Found<Best> {
        let rows = self.rows(block)?;
        if matches!(rows, Rows::None) {
            return Ok((top, count));
        }
        let urls = self.prepared.urls(block);
        // None of the block comes before those that are there: they are only counted.
        let most = *self.prepared.bounds(block, Stored::Importance).end();
        if top.last().is_some_and(|last| *last < (Reverse(true), Reverse(most), UrlId(urls.start))) {
            return Ok((top, count + rows.count(urls.len())));
        }
        let importance = self.prepared.values(block, Stored::Importance)?;
        let is_captured = |kind| prepared::kind(kind).is_some();
        let captured = if captured_first {
            self.prepared.map(block, Stored::Kind, is_captured)?
        } else {
            vec![true; urls.len()]
        };
        for (row, ((id, importance), is_captured)) in urls.zip(importance).zip(captured).enumerate() {
            if rows.has(row) {
                count += 1;
                top.push((Reverse(is_captured), Reverse(importance), UrlId(id)));
            }
        }
        Ok((top, count))
    }

    /// The rows of a block that are pages and pass the test.
    fn rows(&self, block: u32) -> Found<Rows> {
        let rows = self.test.as_ref().map_or(Ok(Rows::All), |test| test.rows(self.prepared, block))?;
        if matches!(rows, Rows::None) || prepared::is_page(*self.prepared.bounds(block, Stored::Kind).start())
        {
            return Ok(rows);
        }
        Ok(rows.and(Rows::Some(self.prepared.map(block, Stored::Kind, prepared::is_page)?)))
    }
}

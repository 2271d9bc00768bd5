//! Answers that prepared columns give alone: how many pages there are of each sort, and which are the most important. No row is
//! made of the others, and blocks are read on all processors. Of sites, which numbers leave out most.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use archive_grammar::{Direction, Target};
use archive_storage::{SiteId, UrlId};
use rayon::prelude::*;

use super::columns::Column;
use super::expr::Expr;
use super::filter::{Filter, Ranges};
use super::groups::{Aggregate, Gather};
use super::plan::Plan;
use super::prefilter::{Rows, Test, plain};
use super::top::Top;
use crate::prepared::{self, Column as Stored, Facts, Prepared, PreparedError, SiteColumn, SiteSums, Sites};

/// Sorts of pages that are counted side by side, and in how many places at most: each takes eight bytes a sort.
const SORTS_MAX: u64 = 1 << 21;
const COUNTERS_MAX: usize = 8;

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

/// What is told of pages of which many were found.
const OF_FOUND: [Stored; 4] = [Stored::Kind, Stored::Site, Stored::LastSeen, Stored::Language];

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

/// A number that is known of each site: its column, and the number that a value of it is.
#[derive(Clone, Copy)]
pub(super) struct SiteNumber(SiteColumn, fn(u64) -> f64);

/// A condition on a number of sites.
pub(super) type SiteTest = (SiteNumber, Ranges<f64>);

/// Conditions on numbers of sites without which a filter does not hold, and whether they say all that it does.
pub(super) fn site_tests(filter: &Filter) -> (Vec<SiteTest>, bool) {
    match filter {
        Filter::All(parts) => {
            let (tests, are_exact): (Vec<_>, Vec<_>) = parts.iter().map(site_tests).unzip();
            (tests.concat(), !are_exact.contains(&false))
        }
        Filter::Number(expr, ranges) => {
            let test = site_number(expr).map(|number| (number, ranges.clone()));
            (test.iter().cloned().collect(), test.is_some())
        }
        _ => (Vec::new(), false),
    }
}

fn site_number(expr: &Expr) -> Option<SiteNumber> {
    let count = |column| SiteNumber(column, |value| value as f64);
    Some(match plain(expr)? {
        Column::Importance => SiteNumber(SiteColumn::ByLinks, f64::from_bits),
        Column::Captured => SiteNumber(SiteColumn::Captures, |captures| captures.min(1) as f64),
        Column::Pages => count(SiteColumn::Pages),
        Column::Captures => count(SiteColumn::Captures),
        Column::Html => count(SiteColumn::Html),
        Column::Xml => count(SiteColumn::Xml),
        _ => return None,
    })
}

impl SiteNumber {
    pub(super) fn of(self, site: &SiteSums) -> f64 {
        self.1(site.value(self.0))
    }

    fn of_all(self, sites: &Sites) -> Found<Vec<f64>> {
        sites.map(self.0, self.1)
    }
}

/// The sites that a plan selects and wants in its answer, and how many it selects in all, if numbers tell.
pub(super) fn best_sites(plan: &Plan, sites: &Sites) -> Found<Option<(Vec<SiteId>, u64)>> {
    let order: Option<Vec<_>> =
        plan.order.iter().map(|(expr, way)| Some((site_number(expr)?, *way))).collect();
    let (tests, are_exact) = plan.filter.as_ref().map_or((Vec::new(), true), site_tests);
    let of_rows = plan.target == Target::Sites && plan.groups.is_none() && plan.sample.is_none();
    let limit = plan.last_row().filter(|limit| of_rows && are_exact && *limit <= BEST_MAX);
    let Some((order, limit)) = order.filter(|order| !order.is_empty()).zip(limit) else { return Ok(None) };
    let mut tested = Vec::new();
    for (number, ranges) in tests {
        tested.push((number.of_all(sites)?, ranges));
    }
    let mut keys = Vec::new();
    for (number, way) in order {
        keys.push((number.of_all(sites)?, way));
    }
    let before = |left: &usize, right: &usize| {
        let orders = keys.iter().map(|(values, way)| match way {
            Direction::Ascending => values[*left].total_cmp(&values[*right]),
            Direction::Descending => values[*right].total_cmp(&values[*left]),
        });
        orders.fold(Ordering::Equal, Ordering::then).then(left.cmp(right))
    };
    let (mut top, mut matched) = (Top::new(Some(limit), before), 0);
    for site in 0..keys.first().map_or(0, |(values, _)| values.len()) {
        if tested.iter().all(|(values, ranges)| ranges.has(&values[site])) {
            matched += 1;
            top.push(site);
        }
    }
    Ok(Some((top.into_sorted().into_iter().map(|site| SiteId(site as u32)).collect(), matched)))
}

/// How many groups of a plan can be in its answer, if each sort is a group of its own and the largest come first.
pub(super) fn largest(plan: &Plan, columns: &[Stored]) -> Option<usize> {
    let is_by_count = matches!(plan.order.first(), Some((Expr::Aggregate(_), Direction::Descending)));
    let has_all = plan.groups.as_ref().is_some_and(|groups| groups.having.is_none());
    let are_groups = matches!(columns, [Stored::Host | Stored::Site]);
    plan.last_row().filter(|_| is_by_count && has_all && are_groups)
}

/// The columns, and a test that says all that the filter of a plan does.
pub(super) struct Columnar<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) test: Option<Test>,
}

type Found<T> = Result<T, PreparedError>;

/// Pages that each stand for so many.
type Sorted = Vec<(UrlId, Facts, u64)>;

/// Whether a page was captured (or need not be), its importance, and its number: the best first.
type Key = (Reverse<bool>, Reverse<u64>, UrlId);

/// The best pages so far, and how many there were.
type Best = (Top<Key, fn(&Key, &Key) -> Ordering>, u64);

impl Columnar<'_> {
    /// One page of each sort, by what it has in these columns alone, and how many there are; none when there are too many sorts.
    /// If only the `largest` so many are wanted, the others are left out, and it is said how many these were.
    pub(super) fn sorted(&self, columns: &[Stored], largest: Option<usize>) -> Found<Option<(Sorted, u64)>> {
        let spans: Vec<Range<u64>> = columns.iter().map(|column| self.span(*column)).collect();
        let size = |span: &Range<u64>| span.end - span.start;
        let sorts = spans.iter().fold(1, |sorts: u64, span| sorts.saturating_mul(size(span)));
        if sorts > SORTS_MAX {
            return Ok(None);
        }
        let blocks = self.prepared.blocks();
        let counters = rayon::current_num_threads().clamp(1, COUNTERS_MAX);
        let counted = (0..blocks).into_par_iter().with_min_len((blocks as usize).div_ceil(counters).max(1));
        let nothing = || vec![(0_u32, 0_u32); sorts as usize];
        let counted = counted.try_fold(nothing, |mut counted, block| {
            self.count(block, columns, &spans, &mut counted)?;
            Ok::<_, PreparedError>(counted)
        });
        let counted = counted.try_reduce_with(|mut ours, theirs| {
            for ((count, last), (more, later)) in ours.iter_mut().zip(theirs) {
                (*count, *last) = (*count + more, (*last).max(later));
            }
            Ok(ours)
        });
        let mut counted: Vec<_> = counted.transpose()?.unwrap_or_default().into_iter().enumerate().collect();
        counted.retain(|(_, (count, _))| *count > 0);
        let all = counted.len();
        if let Some(place) = largest.and_then(|largest| largest.checked_sub(1)).filter(|place| *place < all) {
            let mut counts: Vec<u32> = counted.iter().map(|(_, (count, _))| *count).collect();
            let (_, least, _) = counts.select_nth_unstable_by_key(place, |count| Reverse(*count));
            // Equals of the last one are told apart by what they are called.
            counted.retain(|(_, (count, _))| *count >= *least);
        }
        let left_out = (all - counted.len()) as u64;
        let sorted = counted.into_iter().map(|(place, (count, last))| {
            let (mut rest, mut values) = (place as u64, vec![0; columns.len()]);
            for (value, span) in values.iter_mut().zip(&spans).rev() {
                *value = span.start + rest % size(span);
                rest /= size(span);
            }
            (UrlId(last), Facts::of_some(columns, &values), u64::from(count))
        });
        Ok(Some((sorted.collect(), left_out)))
    }

    /// From the least value of a column to after the greatest.
    fn span(&self, column: Stored) -> Range<u64> {
        let bounds = (0..self.prepared.blocks()).map(|block| self.prepared.bounds(block, column));
        let bounds = bounds.reduce(|all, own| *all.start().min(own.start())..=*all.end().max(own.end()));
        bounds.map_or(0..1, |bounds| *bounds.start()..bounds.end().saturating_add(1))
    }

    /// Counts the sorts of a block, each at its place among all that there may be, and notes the last page of each.
    fn count(
        &self,
        block: u32,
        columns: &[Stored],
        spans: &[Range<u64>],
        counted: &mut [(u32, u32)],
    ) -> Found<()> {
        let rows = self.rows(block)?;
        if matches!(rows, Rows::None) {
            return Ok(());
        }
        let urls = self.prepared.urls(block);
        let mut places = vec![0_u32; urls.len()];
        for (column, span) in columns.iter().zip(spans) {
            let values = self.prepared.values(block, *column)?;
            let size = (span.end - span.start) as u32;
            for (place, value) in places.iter_mut().zip(values) {
                *place = *place * size + (value - span.start) as u32;
            }
        }
        for (row, (url, place)) in urls.zip(places).enumerate() {
            if rows.has(row)
                && let Some((count, last)) = counted.get_mut(place as usize)
            {
                (*count, *last) = (*count + 1, url);
            }
        }
        Ok(())
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

    /// Of some pages, given by rising number, those that pass the test, with what [`OF_FOUND`] tells of them and no more.
    pub(super) fn of(&self, ids: &[UrlId]) -> Found<Vec<(UrlId, Facts)>> {
        let of_block = |block| {
            let urls = self.prepared.urls(block);
            let place = |url: u32| ids.partition_point(|id| id.0 < url);
            let own = ids.get(place(urls.start)..place(urls.end)).unwrap_or_default();
            let rows = if own.is_empty() { Rows::None } else { self.rows(block)? };
            if matches!(rows, Rows::None) {
                return Ok(Vec::new());
            }
            let values = |column: &Stored| self.prepared.values(block, *column);
            let columns = OF_FOUND.iter().map(values).collect::<Found<Vec<_>>>()?;
            let facts = |id: &UrlId| {
                let row = (id.0 - urls.start) as usize;
                let mut values = [0; OF_FOUND.len()];
                for (value, column) in values.iter_mut().zip(&columns) {
                    *value = *column.get(row)?;
                }
                rows.has(row).then(|| (*id, Facts::of_some(&OF_FOUND, &values)))
            };
            Ok(own.iter().filter_map(facts).collect())
        };
        let blocks = (0..self.prepared.blocks()).into_par_iter().map(of_block).collect::<Found<Vec<_>>>()?;
        Ok(blocks.concat())
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

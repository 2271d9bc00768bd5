//! Answers from prepared columns alone: the first rows of an order, and samples; [`super::aggregate`] has counts and
//! sums. Only the selected rows are built, and blocks are read in parallel.

use std::cmp::{Ordering, Reverse};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use archive_books::prepared::{self, Column as Stored, Facts, Prepared};
use archive_grammar::{Direction, QueryRows};
use archive_storage::UrlId;
use rayon::prelude::*;

use crate::query::columns::filter::ColumnFilter;
use crate::query::columns::numbers::{Number, compared};
use crate::query::columns::row_set::RowSet;
use crate::query::language::{Column, Found, Plan, plural};
use crate::query::rows::{Hits, KnownScores, Running, Top, combined, lot, source};

/// Above this limit, the first rows are found row by row.
const BEST_MAX: usize = 10_000;

/// The columns to read for found pages when there are many.
const OF_FOUND: [Stored; 4] = [Stored::Kind, Stored::Site, Stored::LastSeen, Stored::Language];

/// How many of the first rows a plan wants, if columns may find them.
pub(crate) fn wanted(plan: &Plan) -> Option<usize> {
    let is_of_rows = plan.groups.is_none() && plan.sample.is_none();
    plan.last_row().filter(|limit| is_of_rows && *limit <= BEST_MAX)
}

/// The first rows in the order of one number.
pub(crate) struct BestByNumber {
    limit: usize,
    /// The column that tells which rows were captured, if these come before all others.
    captured_first: Option<CapturedColumn>,
    number: Number,
    direction: Direction,
    /// Whether the number is the importance of pages, to be combined with BM25 into scores.
    is_score: bool,
}

/// A column, and whether a row with this value was captured.
type CapturedColumn = (Stored, fn(u64) -> bool);

impl BestByNumber {
    /// The first rows that a plan wants, if its order is of this form.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let limit = wanted(plan)?;
        let order: Option<Vec<_>> =
            plan.order.iter().map(|(expr, way)| expr.own_field().map(|column| (column, *way))).collect();
        let (captured_first, (column, direction)) = match order.as_deref()? {
            [(Column::Captured, Direction::Descending), last] => {
                let captured: CapturedColumn = match plan.target {
                    QueryRows::Sites => (Stored::Captures, |captures| captures > 0),
                    _ => (Stored::Kind, |kind| prepared::kind(kind).is_some()),
                };
                (Some(captured), *last)
            }
            [only] => (None, *only),
            _ => return None,
        };
        let is_score = column == Column::Score && direction == Direction::Descending;
        let number = compared(if is_score { Column::Importance } else { column }, plan.target)?;
        Some(Self { limit, captured_first, number, direction, is_score })
    }

    /// The columns that are read in addition to those of conditions.
    pub(crate) fn columns(&self) -> Vec<Stored> {
        let captured = self.captured_first.map(|(column, _)| column);
        captured.into_iter().chain([self.number.column]).collect()
    }

    /// Returns the rank of a value: lower ranks come first, unknown values last.
    fn rank(&self, value: u64) -> u64 {
        match self.direction {
            _ if self.number.zero_is_unknown && value == 0 => u64::MAX,
            Direction::Ascending => value,
            Direction::Descending => !value,
        }
    }

    /// Like `rank`, for a page with this BM25.
    fn rank_with(&self, bm25: f64, value: u64) -> u64 {
        let stored = if self.is_score { combined(bm25, self.number.value(value)).to_bits() } else { value };
        self.rank(stored)
    }

    /// Lower bound of the ranks of values between two bounds.
    fn first_rank(&self, least: u64, most: u64) -> u64 {
        self.rank(if self.direction == Direction::Descending {
            most
        } else {
            least.max(u64::from(self.number.zero_is_unknown))
        })
    }
}

/// Prepared columns, and a filter that is equivalent to that of a plan or weaker.
pub(crate) struct Columnar<'a> {
    pub(crate) target: QueryRows,
    pub(crate) prepared: &'a Prepared,
    pub(crate) filter: ColumnFilter<'a>,
    pub(crate) running: &'a Running,
}

/// The first rows so far, and the number of rows seen.
pub(crate) type FirstRows<P, F> = (Top<P, F>, u64);

/// Sort key of a row: captured pages (or rows that need not be captured) first, then rank, then id.
type RankKey = (Reverse<bool>, u64, u32);

type ByRank = fn(&RankKey, &RankKey) -> Ordering;

/// Merges the first rows of two parts.
pub(crate) fn merged<P, F: Fn(&P, &P) -> Ordering>(
    (mut left, ours): FirstRows<P, F>,
    (right, theirs): FirstRows<P, F>,
) -> FirstRows<P, F> {
    right.into_sorted().into_iter().for_each(|row| left.push(row));
    (left, ours + theirs)
}

/// The first rows of all parts, which are read in parallel; `add` adds those of one part.
pub(crate) fn first_of<I: Send, P: Send, F: Fn(&P, &P) -> Ordering + Send>(
    parts: impl IntoParallelIterator<Item = I>,
    none: impl Fn() -> FirstRows<P, F> + Sync,
    add: impl Fn(FirstRows<P, F>, I) -> Found<FirstRows<P, F>> + Sync,
) -> Found<FirstRows<P, F>> {
    let each = parts.into_par_iter().try_fold(&none, &add);
    each.try_reduce(&none, |left, right| Ok(merged(left, right)))
}

/// Rows that are read block by block, as they are needed.
pub(crate) fn by_block<'a, T: 'a>(
    blocks: u32,
    read: impl Fn(u32) -> Found<Vec<T>> + 'a,
) -> impl Iterator<Item = Found<T>> + 'a {
    (0..blocks).flat_map(move |block| {
        let (rows, failed) = read(block).map_or_else(|error| (Vec::new(), Some(error)), |rows| (rows, None));
        rows.into_iter().map(Ok).chain(failed.map(Err))
    })
}

impl Columnar<'_> {
    /// Notes that a plan was answered from columns alone, and which ones in addition to those of conditions.
    pub(crate) fn note(&self, plan: &Plan, further: Vec<Stored>) {
        self.running.note(|seen| {
            let all = self.prepared.blocks().checked_sub(1).map_or(0, |last| self.prepared.ids(last).end);
            let further = further.into_iter().map(Some);
            let columns = self.filter.columns().into_iter().chain(further).collect();
            seen.source(source(plural(plan.target), Some(columns), true), all.into());
        });
    }

    /// The values of a column in `rows` if these are few, otherwise in all rows of the block.
    pub(crate) fn values(&self, block: u32, column: Stored, rows: &RowSet) -> Found<Vec<u64>> {
        Ok(rows.values(self.prepared, block, column)?)
    }

    /// Returns the ids of the first rows, and the number of matching rows.
    pub(crate) fn best(&self, best: &BestByNumber, hits: &Hits<'_>) -> Found<(Vec<u32>, u64)> {
        let none = || -> FirstRows<RankKey, ByRank> { (Top::new(Some(best.limit), RankKey::cmp), 0) };
        let (scores, last_rank) = (hits.scores(), AtomicU64::new(u64::MAX));
        // The most promising blocks come first, so that the number is not read from most of the others.
        let first_rank = |block| {
            let (least, most) = self.prepared.bounds(block, best.number.column).into_inner();
            best.first_rank(least, most)
        };
        let mut blocks: Vec<u32> = (0..self.prepared.blocks()).collect();
        blocks.sort_by_cached_key(|block| first_rank(*block));
        let add = |first, block| self.add_best(first, block, (best, &last_rank), &scores);
        let (top, count) = first_of(blocks, none, add)?;
        Ok((top.into_sorted().into_iter().map(|(.., id)| id).collect(), count))
    }

    /// Returns the ids of a sample of `wanted` rows drawn with `seed`, and the number of matching rows.
    pub(crate) fn drawn(&self, (wanted, seed): (usize, u64)) -> Found<(Vec<u32>, u64)> {
        let none = || (Top::new(Some(wanted), <(u64, u32)>::cmp), 0);
        let add = |(mut top, mut count): FirstRows<_, _>, block| {
            for id in self.rows(block)?.of_ids(self.prepared.ids(block)) {
                count += 1;
                top.push((lot(seed, (0, id.into())), id));
            }
            Ok((top, count))
        };
        let (top, count) = first_of(0..self.prepared.blocks(), none, add)?;
        Ok((top.into_sorted().into_iter().map(|(_, id)| id).collect(), count))
    }

    /// Adds the rows of a block. No captured page with a rank above `last_rank`, which all threads share, is among the
    /// first.
    fn add_best(
        &self,
        (mut top, mut count): FirstRows<RankKey, ByRank>,
        block: u32,
        (best, last_rank): (&BestByNumber, &AtomicU64),
        scores: &KnownScores<'_>,
    ) -> Found<FirstRows<RankKey, ByRank>> {
        let rows = self.rows(block)?;
        if matches!(rows, RowSet::None) {
            return Ok((top, count));
        }
        let ids = self.prepared.ids(block);
        // No row of the block comes before those already found: only count them.
        let (least, most) = self.prepared.bounds(block, best.number.column).into_inner();
        let bm25 = if best.is_score { scores.of(ids.clone(), rows.few()) } else { Vec::new() };
        let first_rank = match best.is_score {
            true => best.rank_with(bm25.iter().copied().fold(0.0, f64::max), most),
            false => best.first_rank(least, most),
        };
        let first = (Reverse(true), first_rank, ids.start);
        if last_rank.load(Relaxed) < first_rank || top.last().is_some_and(|last| *last < first) {
            return Ok((top, count + rows.count(ids.len())));
        }
        let factor = if best.is_score { combined(1.0, best.number.value(most)) } else { 0.0 };
        let values = self.values(block, best.number.column, &rows)?;
        let captured = match best.captured_first {
            Some((column, is_captured)) => {
                self.values(block, column, &rows)?.into_iter().map(is_captured).collect()
            }
            None => Vec::new(),
        };
        // Most scores need not be computed to see that they are too low.
        let may_come = |bm25: f64, top: &Top<RankKey, _>| {
            let first_rank = || best.rank((bm25 * factor).to_bits());
            !best.is_score || top.last().is_none_or(|last| (Reverse(true), first_rank(), 0) <= *last)
        };
        for (place, (row, value)) in rows.places(ids.len()).zip(values).enumerate() {
            let Some(row) = row else { continue };
            count += 1;
            let bm25 = bm25.get(place).copied().unwrap_or_default();
            if may_come(bm25, &top) {
                let is_captured = captured.get(place).copied().unwrap_or(true);
                top.push((Reverse(is_captured), best.rank_with(bm25, value), ids.start + row));
            }
        }
        if let Some((Reverse(true), rank, _)) = top.last() {
            last_rank.fetch_min(*rank, Relaxed);
        }
        Ok((top, count))
    }

    /// Returns those of the given pages (sorted by id) that pass the filter, with only the facts in [`OF_FOUND`].
    pub(crate) fn of(&self, ids: &[UrlId]) -> Found<Vec<(UrlId, Facts)>> {
        let of_block = |block| {
            let urls = self.prepared.ids(block);
            let place = |url: u32| ids.partition_point(|id| id.0 < url);
            let own = ids.get(place(urls.start)..place(urls.end)).unwrap_or_default();
            let rows = if own.is_empty() { RowSet::None } else { self.rows(block)? };
            if matches!(rows, RowSet::None) {
                return Ok(Vec::new());
            }
            let values = |column: &Stored| self.prepared.values(block, *column);
            let columns = OF_FOUND.iter().map(values).collect::<Result<Vec<_>, _>>()?;
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

    /// The rows of a block that pass the filter and are pages, captures of pages, or sites.
    pub(crate) fn rows(&self, block: u32) -> Found<RowSet> {
        self.running.check()?;
        let rows = self.filter.rows(self.prepared, block)?;
        let are_rows = || prepared::is_page(*self.prepared.bounds(block, Stored::Kind).start());
        if matches!(rows, RowSet::None) || self.target == QueryRows::Sites || are_rows() {
            return Ok(rows);
        }
        let pages = RowSet::passing((self.prepared, block), Stored::Kind, &rows, prepared::is_page)?;
        Ok(rows.and(pages))
    }
}

//! Counts and sums of rows by group, computed from prepared columns alone, with blocks counted in parallel.
//!
//! A bucket has all rows with the same combination of key parts; a group may consist of several buckets.

use std::cmp::Reverse;
use std::ops::Range;

use archive_books::prepared::{Column as Stored, Facts};
use archive_grammar::{Direction, QueryRows};
use rayon::prelude::*;

use crate::query::columns::first::Columnar;
use crate::query::columns::numbers::{Number, Times, compared, times, whole};
use crate::query::columns::row_set::RowSet;
use crate::query::language::{
    Aggregate, Column, FieldPath, Found, Function, Gather, Plan, PlannedExpr, RowsError,
};
use crate::query::rows::Sum;

/// Maximum number of buckets in one set of counters, and maximum number of sets that are counted in parallel. A bucket
/// takes 8 bytes, plus 32 for each number to sum (each counts as four more buckets).
const BUCKETS_MAX: u64 = 1 << 21;
const COUNTERS_MAX: usize = 8;

/// Times within one interval of this length are on the same day in every time zone.
const SPAN_SECONDS: u64 = 900;

/// A key of a plan's groups: a column, or intervals of `units` of a time column.
struct BucketKey {
    column: Stored,
    units: u64,
}

impl BucketKey {
    fn of(expr: &PlannedExpr) -> Option<Self> {
        if let PlannedExpr::Call(
            Function::Year(_) | Function::Month(_) | Function::Day(_) | Function::Period(..),
            time,
        ) = expr
        {
            let Times(number, per_second) = time.own_field().and_then(times)?;
            return Some(Self { column: number.column, units: SPAN_SECONDS * per_second });
        }
        // Whatever follows from one column has one value for each of its values.
        let mut columns = PlannedExpr::fields(std::iter::once(expr))?.into_iter().map(|path| match path {
            FieldPath { via: None, column } => stored(column),
            FieldPath { via: Some(_), .. } => None,
        });
        let column = columns.next()??;
        columns.all(|other| other == Some(column)).then_some(Self { column, units: 1 })
    }

    /// Returns the part of the key for a stored value. 0 is a part of its own, since it may mean unknown.
    fn part(&self, value: u64) -> u64 {
        if self.units == 1 { value } else { value / self.units + u64::from(value > 0) }
    }

    /// Returns a stored value that has this part.
    fn value(&self, part: u64) -> u64 {
        if self.units == 1 || part == 0 { part } else { ((part - 1) * self.units).max(1) }
    }
}

/// The groups of a plan, if columns decide everything about them.
pub(crate) struct ColumnGroups {
    keys: Vec<BucketKey>,
    /// For each aggregate, the number that it needs, if any.
    numbers: Vec<Option<Number>>,
    /// Maximum number of groups in the answer, if each bucket is a group of its own and the largest come first.
    largest: Option<usize>,
}

impl ColumnGroups {
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let groups = plan.groups.as_ref().filter(|_| plan.sample.is_none())?;
        // Distinct values are counted like groups.
        let distinct = groups.aggregates.iter().filter(|aggregate| aggregate.gather == Gather::Distinct);
        let distinct = distinct.filter_map(|aggregate| aggregate.of.as_ref());
        let keys: Vec<BucketKey> =
            groups.keys.iter().chain(distinct).map(BucketKey::of).collect::<Option<_>>()?;
        let numbers = groups
            .aggregates
            .iter()
            .map(|aggregate| summed(aggregate, plan.target))
            .collect::<Option<_>>()?;
        let is_by_count = match plan.order.first() {
            Some((PlannedExpr::Aggregate(index), Direction::Descending)) => {
                groups.aggregates.get(*index).is_some_and(|aggregate| aggregate.gather == Gather::Count)
            }
            _ => false,
        };
        let is_name = |key: &PlannedExpr| matches!(key.own_field(), Some(Column::Host | Column::Site));
        let are_groups = matches!(groups.keys.as_slice(), [key] if is_name(key));
        let is_cut = is_by_count && groups.having.is_none() && are_groups && keys.len() == groups.keys.len();
        Some(Self { keys, numbers, largest: plan.last_row().filter(|_| is_cut) })
    }

    /// The columns that are read in addition to those of conditions.
    pub(crate) fn columns(&self) -> Vec<Stored> {
        let keys = self.keys.iter().map(|key| key.column);
        keys.chain(self.numbers.iter().flatten().map(|number| number.column)).collect()
    }

    /// The facts of a page that has these values in the key columns.
    pub(crate) fn facts(&self, values: &[u64]) -> Facts {
        Facts::of_some(&self.keys.iter().map(|key| key.column).collect::<Vec<_>>(), values)
    }
}

/// The number that an aggregate needs; `Some(None)` if it only needs counts, `None` if it needs each value.
fn summed(aggregate: &Aggregate, target: QueryRows) -> Option<Option<Number>> {
    let of = match &aggregate.of {
        Some(of) => Some(of.own_field()?),
        None => None,
    };
    match (aggregate.gather, of) {
        (Gather::Count, None) | (Gather::Distinct, _) => Some(None),
        (Gather::Sum | Gather::Avg, Some(column)) => whole(column, target).map(Some),
        (Gather::Known | Gather::Min | Gather::Max, Some(column)) => compared(column, target).map(Some),
        _ => None,
    }
}

/// The column that determines the values of a field.
fn stored(column: Column) -> Option<Stored> {
    Some(match column {
        Column::Type => Stored::Kind,
        Column::Host => Stored::Host,
        Column::Site => Stored::Site,
        Column::Status => Stored::Status,
        Column::ContentStatus => Stored::ContentStatus,
        Column::Captures => Stored::Captures,
        Column::Attempts => Stored::Attempts,
        Column::Versions => Stored::Versions,
        Column::Depth => Stored::Depth,
        Column::Language => Stored::Language,
        Column::ContentType => Stored::Mime,
        Column::Seed => Stored::Seed,
        Column::Refusal => Stored::Refusal,
        Column::Hop => Stored::Hop,
        Column::Kind => Stored::Kind,
        Column::Change => Stored::Change,
        _ => return None,
    })
}

/// A bucket with its counts.
pub(crate) struct CountedBucket {
    /// A value for each key column.
    pub(crate) values: Vec<u64>,
    /// Id of the bucket's last row.
    pub(crate) last: u32,
    pub(crate) count: u64,
    /// One entry per aggregate.
    pub(crate) sums: Vec<Option<Sum>>,
}

/// The count and last row of each bucket, and the sums for each bucket and number.
struct BucketCounters {
    counts: Vec<(u32, u32)>,
    sums: Vec<StoredSums>,
}

/// Aggregates of some values. There are fewer than 2^32 rows, and each value is below 2^32, so `sum` cannot overflow.
#[derive(Clone, Copy)]
struct StoredSums {
    known: u64,
    sum: u64,
    least: u64,
    most: u64,
}

const NO_SUMS: StoredSums = StoredSums { known: 0, sum: 0, least: u64::MAX, most: 0 };

impl StoredSums {
    fn with(self, other: Self) -> Self {
        Self {
            known: self.known + other.known,
            sum: self.sum.wrapping_add(other.sum),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    fn shown(self, number: &Number) -> Sum {
        Sum {
            known: self.known,
            sum: self.sum as f64 + self.known as f64 * number.value(0),
            least: number.shown(self.least),
            most: number.shown(self.most),
        }
    }
}

impl Columnar<'_> {
    /// Returns the non-empty buckets, and how many were left out because only the largest are wanted; `None` if there
    /// are too many.
    pub(crate) fn sorted(&self, wanted: &ColumnGroups) -> Found<Option<(Vec<CountedBucket>, u64)>> {
        let spans: Vec<Range<u64>> = wanted.keys.iter().map(|key| self.span(key)).collect();
        let numbers: Vec<&Number> = wanted.numbers.iter().flatten().collect();
        let mut columns = wanted.columns().into_iter();
        if !columns.all(|column| self.prepared.has(column)) {
            return Ok(None);
        }
        let buckets = spans.iter().fold(1, |buckets: u64, span| buckets.saturating_mul(size(span)));
        if buckets.saturating_mul(1 + 4 * numbers.len() as u64) > BUCKETS_MAX {
            return Ok(None);
        }
        let blocks = self.prepared.blocks();
        let counters = rayon::current_num_threads().clamp(1, COUNTERS_MAX);
        // Rayon only splits ranges of at least twice this length.
        let counted = (0..blocks).into_par_iter().with_min_len((blocks as usize / counters).max(1));
        let nothing = || BucketCounters {
            counts: vec![(0, 0); buckets as usize],
            sums: vec![NO_SUMS; buckets as usize * numbers.len()],
        };
        let counted = counted.try_fold(nothing, |mut counters, block| {
            self.count(block, &wanted.keys, &spans, &numbers, &mut counters)?;
            Ok::<_, RowsError>(counters)
        });
        let counted = counted.try_reduce_with(|mut ours, theirs| {
            for ((count, last), (more, later)) in ours.counts.iter_mut().zip(theirs.counts) {
                (*count, *last) = (*count + more, (*last).max(later));
            }
            ours.sums.iter_mut().zip(theirs.sums).for_each(|(sum, more)| *sum = sum.with(more));
            Ok(ours)
        });
        let BucketCounters { counts, sums } = counted.transpose()?.unwrap_or_else(nothing);
        let mut counts: Vec<_> = counts.into_iter().enumerate().collect();
        counts.retain(|(_, (count, _))| *count > 0);
        let all = counts.len();
        self.running.note(|seen| seen.selected(counts.iter().map(|(_, (count, _))| u64::from(*count)).sum()));
        let place = wanted.largest.and_then(|largest| largest.checked_sub(1)).filter(|place| *place < all);
        if let Some(place) = place {
            let mut sizes: Vec<u32> = counts.iter().map(|(_, (count, _))| *count).collect();
            let (_, least, _) = sizes.select_nth_unstable_by_key(place, |count| Reverse(*count));
            // Groups as large as the last one stay: ties are broken by name later.
            counts.retain(|(_, (count, _))| *count >= *least);
        }
        let left_out = (all - counts.len()) as u64;
        let counted = counts.into_iter().map(|(place, (count, last))| {
            let sums = sums.get(place * numbers.len()..).unwrap_or_default();
            let mut shown = numbers.iter().zip(sums).map(|(number, sums)| sums.shown(number));
            CountedBucket {
                values: values(place as u64, &wanted.keys, &spans),
                last,
                count: count.into(),
                sums: wanted.numbers.iter().map(|number| number.and_then(|_| shown.next())).collect(),
            }
        });
        Ok(Some((counted.collect(), left_out)))
    }

    /// The range of parts that a key can have.
    fn span(&self, key: &BucketKey) -> Range<u64> {
        let bounds = (0..self.prepared.blocks()).map(|block| self.prepared.bounds(block, key.column));
        let bounds = bounds.reduce(|all, own| *all.start().min(own.start())..=*all.end().max(own.end()));
        bounds.map_or(0..1, |bounds| key.part(*bounds.start())..key.part(*bounds.end()).saturating_add(1))
    }

    /// Counts each row of a block in its bucket, and notes the last row of each bucket.
    fn count(
        &self,
        block: u32,
        keys: &[BucketKey],
        spans: &[Range<u64>],
        numbers: &[&Number],
        counters: &mut BucketCounters,
    ) -> Found<()> {
        let rows = self.rows(block)?;
        if matches!(rows, RowSet::None) {
            return Ok(());
        }
        let ids = self.prepared.ids(block);
        let mut places = vec![0_u32; rows.few().map_or(ids.len(), <[_]>::len)];
        for (key, span) in keys.iter().zip(spans) {
            let values = self.values(block, key.column, &rows)?;
            let size = size(span) as u32;
            for (place, value) in places.iter_mut().zip(values) {
                *place = *place * size + (key.part(value) - span.start) as u32;
            }
        }
        for (row, place) in rows.places(ids.len()).zip(&places) {
            if let Some(row) = row
                && let Some((count, last)) = counters.counts.get_mut(*place as usize)
            {
                (*count, *last) = (*count + 1, ids.start + row);
            }
        }
        for (index, number) in numbers.iter().enumerate() {
            let values = self.values(block, number.column, &rows)?;
            for ((row, value), place) in rows.places(ids.len()).zip(values).zip(&places) {
                let at = *place as usize * numbers.len() + index;
                if row.is_some()
                    && !(number.zero_is_unknown && value == 0)
                    && let Some(sums) = counters.sums.get_mut(at)
                {
                    *sums = sums.with(StoredSums { known: 1, sum: value, least: value, most: value });
                }
            }
        }
        Ok(())
    }
}

fn size(span: &Range<u64>) -> u64 {
    span.end - span.start
}

/// A value for each key column of the bucket at this position.
fn values(mut place: u64, keys: &[BucketKey], spans: &[Range<u64>]) -> Vec<u64> {
    let mut values = vec![0; keys.len()];
    for (value, (key, span)) in values.iter_mut().zip(keys.iter().zip(spans)).rev() {
        *value = key.value(span.start + place % size(span));
        place /= size(span);
    }
    values
}

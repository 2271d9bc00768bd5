//! Answers that prepared columns give alone: how many pages or captures there are of each sort and what their numbers come to, and
//! which come first. No row is made of the others, and blocks are read on all processors. Of sites, which numbers leave out most.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use archive_grammar::{Direction, Target};
use archive_storage::{SiteId, UrlId};
use rayon::prelude::*;

use super::columns::Column;
use super::expr::{Expr, Function};
use super::filter::{Filter, Ranges};
use super::groups::{Aggregate, Gather};
use super::plan::Plan;
use super::prefilter::{Number, Rows, Test, Times, number, plain, times, whole};
use super::rows::Sum;
use super::top::Top;
use crate::prepared::{self, Column as Stored, Facts, Prepared, PreparedError, SiteColumn, SiteSums, Sites};

/// Sorts of rows that are counted side by side, and in how many places at most: each takes eight bytes a sort, and 32 for each
/// number that is summed.
const SORTS_MAX: u64 = 1 << 21;
const COUNTERS_MAX: usize = 8;

/// Of more rows than this, those before each other are told row by row.
const BEST_MAX: usize = 10_000;

/// Times that are on one day in one time zone are on one in all of them if they are in one of these spans.
const SPAN_SECONDS: u64 = 900;

/// What tells the groups of a plan apart: a column, or the spans of one of times, by how many of its units a span has.
struct Key {
    column: Stored,
    units: u64,
}

impl Key {
    fn of(expr: &Expr) -> Option<Self> {
        if let Expr::Call(
            Function::Year(_) | Function::Month(_) | Function::Day(_) | Function::Date(_),
            time,
        ) = expr
        {
            let Times(number, per_second) = plain(time).and_then(times)?;
            return Some(Self { column: number.column, units: SPAN_SECONDS * per_second });
        }
        let column = plain(expr).and_then(stored)?;
        Some(Self { column, units: 1 })
    }

    /// The part of a value that counts. 0 has one of its own: it may say that nothing is known.
    fn part(&self, value: u64) -> u64 {
        if self.units == 1 { value } else { value / self.units + u64::from(value > 0) }
    }

    /// A value with this part.
    fn value(&self, part: u64) -> u64 {
        if self.units == 1 || part == 0 { part } else { ((part - 1) * self.units).max(1) }
    }
}

/// What the groups of a plan are, if columns tell all of it.
pub(super) struct Wanted {
    keys: Vec<Key>,
    /// For each aggregate the number that it is of, if it is of one.
    numbers: Vec<Option<Number>>,
    /// How many groups can be in the answer, if each sort is a group of its own and the largest come first.
    largest: Option<usize>,
}

impl Wanted {
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let groups = plan.groups.as_ref().filter(|_| plan.sample.is_none())?;
        let keys: Vec<Key> = groups.keys.iter().map(Key::of).collect::<Option<_>>()?;
        let numbers = groups.aggregates.iter().map(summed).collect::<Option<_>>()?;
        let is_by_count = match plan.order.first() {
            Some((Expr::Aggregate(index), Direction::Descending)) => {
                groups.aggregates.get(*index).is_some_and(|aggregate| aggregate.gather == Gather::Count)
            }
            _ => false,
        };
        let are_groups = matches!(keys.as_slice(), [Key { column: Stored::Host | Stored::Site, .. }]);
        let is_cut = is_by_count && groups.having.is_none() && are_groups;
        Some(Self { keys, numbers, largest: plan.last_row().filter(|_| is_cut) })
    }

    /// What the values of its keys say of a page.
    pub(super) fn facts(&self, values: &[u64]) -> Facts {
        Facts::of_some(&self.keys.iter().map(|key| key.column).collect::<Vec<_>>(), values)
    }
}

/// The number that an aggregate gathers; none of rows themselves, and nothing for what takes each value.
fn summed(aggregate: &Aggregate) -> Option<Option<Number>> {
    let of = match &aggregate.of {
        Some(of) => Some(plain(of)?),
        None => None,
    };
    let compared = |column| number(column).or_else(|| times(column).map(|times| times.0));
    match (aggregate.gather, of) {
        (Gather::Count, None) => Some(None),
        (Gather::Sum | Gather::Avg, Some(column)) => whole(column).map(Some),
        (Gather::Known | Gather::Min | Gather::Max, Some(column)) => compared(column).map(Some),
        _ => None,
    }
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
        Column::Kind => Stored::Kind,
        Column::Change => Stored::Change,
        _ => return None,
    })
}

/// The rows that come first by one number.
pub(super) struct Best {
    limit: usize,
    /// Whether pages that were captured come before all others.
    captured_first: bool,
    number: Number,
    direction: Direction,
}

impl Best {
    /// Those that a plan asks for, if it asks for such.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let of_rows = plan.groups.is_none() && plan.sample.is_none();
        let limit = plan.last_row().filter(|limit| of_rows && *limit <= BEST_MAX)?;
        let order: Option<Vec<_>> =
            plan.order.iter().map(|(expr, way)| plain(expr).map(|column| (column, *way))).collect();
        let (captured_first, (column, direction)) = match order.as_deref()? {
            [(Column::Captured, Direction::Descending), last] => (true, *last),
            [only] => (false, *only),
            _ => return None,
        };
        let number = number(column).or_else(|| times(column).map(|times| times.0))?;
        Some(Self { limit, captured_first, number, direction })
    }

    /// The place of a value among others, the first first; last what is not known.
    fn rank(&self, value: u64) -> u64 {
        match self.direction {
            _ if self.number.zero_is_unknown && value == 0 => u64::MAX,
            Direction::Ascending => value,
            Direction::Descending => !value,
        }
    }

    /// The first place that values between two can have.
    fn first_rank(&self, least: u64, most: u64) -> u64 {
        self.rank(if self.direction == Direction::Descending {
            most
        } else {
            least.max(u64::from(self.number.zero_is_unknown))
        })
    }
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

/// The columns, and a test that says all that the filter of a plan does, or holds for more.
pub(super) struct Columnar<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) test: Test,
}

type Found<T> = Result<T, PreparedError>;

/// Rows that are of one sort.
pub(super) struct Counted {
    /// What they have in the columns of the keys.
    pub(super) values: Vec<u64>,
    /// The last of them.
    pub(super) last: u32,
    pub(super) count: u64,
    /// For each aggregate.
    pub(super) sums: Vec<Option<Sum>>,
}

/// What is counted of each sort at its place, and for each sort and number what is summed.
struct Counters {
    counts: Vec<(u32, u32)>,
    sums: Vec<Sums>,
}

/// What some values come to. There are fewer than 2^32 rows, and what is summed is below 2^32.
#[derive(Clone, Copy)]
struct Sums {
    known: u64,
    sum: u64,
    least: u64,
    most: u64,
}

const NO_SUMS: Sums = Sums { known: 0, sum: 0, least: u64::MAX, most: 0 };

impl Sums {
    fn with(self, other: Self) -> Self {
        Self {
            known: self.known + other.known,
            sum: self.sum.wrapping_add(other.sum),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    fn told(self, number: &Number) -> Sum {
        Sum {
            known: self.known,
            sum: self.sum as f64 + self.known as f64 * number.value(0),
            least: number.shown(self.least),
            most: number.shown(self.most),
        }
    }
}

/// Whether a page was captured (or need not be), its place by what it is ordered by, and its number: the first first.
type Place = (Reverse<bool>, u64, u32);

/// The first rows so far, and how many there were.
type First = (Top<Place, fn(&Place, &Place) -> Ordering>, u64);

impl Columnar<'_> {
    /// The sorts of rows, and how many were left out because only the largest are wanted; none when there are too many.
    pub(super) fn sorted(&self, wanted: &Wanted) -> Found<Option<(Vec<Counted>, u64)>> {
        let spans: Vec<Range<u64>> = wanted.keys.iter().map(|key| self.span(key)).collect();
        let numbers: Vec<&Number> = wanted.numbers.iter().flatten().collect();
        let sorts = spans.iter().fold(1, |sorts: u64, span| sorts.saturating_mul(size(span)));
        if sorts.saturating_mul(1 + 4 * numbers.len() as u64) > SORTS_MAX {
            return Ok(None);
        }
        let blocks = self.prepared.blocks();
        let counters = rayon::current_num_threads().clamp(1, COUNTERS_MAX);
        let counted = (0..blocks).into_par_iter().with_min_len((blocks as usize).div_ceil(counters).max(1));
        let nothing = || Counters {
            counts: vec![(0, 0); sorts as usize],
            sums: vec![NO_SUMS; sorts as usize * numbers.len()],
        };
        let counted = counted.try_fold(nothing, |mut counters, block| {
            self.count(block, &wanted.keys, &spans, &numbers, &mut counters)?;
            Ok::<_, PreparedError>(counters)
        });
        let counted = counted.try_reduce_with(|mut ours, theirs| {
            for ((count, last), (more, later)) in ours.counts.iter_mut().zip(theirs.counts) {
                (*count, *last) = (*count + more, (*last).max(later));
            }
            ours.sums.iter_mut().zip(theirs.sums).for_each(|(sum, more)| *sum = sum.with(more));
            Ok(ours)
        });
        let Counters { counts, sums } = counted.transpose()?.unwrap_or_else(nothing);
        let mut counts: Vec<_> = counts.into_iter().enumerate().collect();
        counts.retain(|(_, (count, _))| *count > 0);
        let all = counts.len();
        let place = wanted.largest.and_then(|largest| largest.checked_sub(1)).filter(|place| *place < all);
        if let Some(place) = place {
            let mut sizes: Vec<u32> = counts.iter().map(|(_, (count, _))| *count).collect();
            let (_, least, _) = sizes.select_nth_unstable_by_key(place, |count| Reverse(*count));
            // Equals of the last one are told apart by what they are called.
            counts.retain(|(_, (count, _))| *count >= *least);
        }
        let left_out = (all - counts.len()) as u64;
        let counted = counts.into_iter().map(|(place, (count, last))| {
            let sums = sums.get(place * numbers.len()..).unwrap_or_default();
            let mut told = numbers.iter().zip(sums).map(|(number, sums)| sums.told(number));
            Counted {
                values: values(place as u64, &wanted.keys, &spans),
                last,
                count: count.into(),
                sums: wanted.numbers.iter().map(|number| number.and_then(|_| told.next())).collect(),
            }
        });
        Ok(Some((counted.collect(), left_out)))
    }

    /// From the least part of a key to after the greatest.
    fn span(&self, key: &Key) -> Range<u64> {
        let bounds = (0..self.prepared.blocks()).map(|block| self.prepared.bounds(block, key.column));
        let bounds = bounds.reduce(|all, own| *all.start().min(own.start())..=*all.end().max(own.end()));
        bounds.map_or(0..1, |bounds| key.part(*bounds.start())..key.part(*bounds.end()).saturating_add(1))
    }

    /// Counts the sorts of a block, each at its place among all that there may be, and notes the last row of each.
    fn count(
        &self,
        block: u32,
        keys: &[Key],
        spans: &[Range<u64>],
        numbers: &[&Number],
        counters: &mut Counters,
    ) -> Found<()> {
        let rows = self.rows(block)?;
        if matches!(rows, Rows::None) {
            return Ok(());
        }
        let ids = self.prepared.ids(block);
        let mut places = vec![0_u32; ids.len()];
        for (key, span) in keys.iter().zip(spans) {
            let parts = self.prepared.map(block, key.column, |value| key.part(value))?;
            let size = size(span) as u32;
            for (place, part) in places.iter_mut().zip(parts) {
                *place = *place * size + (part - span.start) as u32;
            }
        }
        for (row, (id, place)) in ids.zip(&places).enumerate() {
            if rows.has(row)
                && let Some((count, last)) = counters.counts.get_mut(*place as usize)
            {
                (*count, *last) = (*count + 1, id);
            }
        }
        for (index, number) in numbers.iter().enumerate() {
            let values = self.prepared.values(block, number.column)?;
            for (row, (value, place)) in values.into_iter().zip(&places).enumerate() {
                let at = *place as usize * numbers.len() + index;
                if rows.has(row)
                    && !(number.zero_is_unknown && value == 0)
                    && let Some(sums) = counters.sums.get_mut(at)
                {
                    *sums = sums.with(Sums { known: 1, sum: value, least: value, most: value });
                }
            }
        }
        Ok(())
    }

    /// The rows that come first, and how many there are in all.
    pub(super) fn best(&self, best: &Best) -> Found<(Vec<u32>, u64)> {
        let nothing = || -> First { (Top::new(Some(best.limit), Place::cmp), 0) };
        let blocks = (0..self.prepared.blocks()).into_par_iter();
        let each = blocks.try_fold(nothing, |first, block| self.add_best(first, block, best));
        let (top, count) = each.try_reduce(nothing, |(mut left, ours), (right, theirs)| {
            right.into_sorted().into_iter().for_each(|place| left.push(place));
            Ok((left, ours + theirs))
        })?;
        Ok((top.into_sorted().into_iter().map(|(.., id)| id).collect(), count))
    }

    /// Adds the rows of a block.
    fn add_best(&self, (mut top, mut count): First, block: u32, best: &Best) -> Found<First> {
        let rows = self.rows(block)?;
        if matches!(rows, Rows::None) {
            return Ok((top, count));
        }
        let ids = self.prepared.ids(block);
        // None of the block comes before those that are there: they are only counted.
        let (least, most) = self.prepared.bounds(block, best.number.column).into_inner();
        let first = (Reverse(true), best.first_rank(least, most), ids.start);
        if top.last().is_some_and(|last| *last < first) {
            return Ok((top, count + rows.count(ids.len())));
        }
        let values = self.prepared.values(block, best.number.column)?;
        let is_captured = |kind| prepared::kind(kind).is_some();
        let captured = if best.captured_first {
            self.prepared.map(block, Stored::Kind, is_captured)?
        } else {
            vec![true; ids.len()]
        };
        for (row, ((id, value), is_captured)) in ids.zip(values).zip(captured).enumerate() {
            if rows.has(row) {
                count += 1;
                top.push((Reverse(is_captured), best.rank(value), id));
            }
        }
        Ok((top, count))
    }

    /// Of some pages, given by rising number, those that pass the test, with what [`OF_FOUND`] tells of them and no more.
    pub(super) fn of(&self, ids: &[UrlId]) -> Found<Vec<(UrlId, Facts)>> {
        let of_block = |block| {
            let urls = self.prepared.ids(block);
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

    /// The rows of a block that are pages, or captures of pages, and pass the test.
    pub(super) fn rows(&self, block: u32) -> Found<Rows> {
        let rows = self.test.rows(self.prepared, block)?;
        if matches!(rows, Rows::None) || prepared::is_page(*self.prepared.bounds(block, Stored::Kind).start())
        {
            return Ok(rows);
        }
        Ok(rows.and(Rows::of(self.prepared.map(block, Stored::Kind, prepared::is_page)?)))
    }
}

fn size(span: &Range<u64>) -> u64 {
    span.end - span.start
}

/// What the rows of a sort have in the columns of the keys.
fn values(mut place: u64, keys: &[Key], spans: &[Range<u64>]) -> Vec<u64> {
    let mut values = vec![0; keys.len()];
    for (value, (key, span)) in values.iter_mut().zip(keys.iter().zip(spans)).rev() {
        *value = key.value(span.start + place % size(span));
        place /= size(span);
    }
    values
}

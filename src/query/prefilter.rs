//! Conditions that prepared columns can decide: they choose the pages for which rows are made at all.
//!
//! A test holds for every page for which its filter holds, and mostly for no other.

use std::cell::RefCell;
use std::ops::{Bound, Not, Range, RangeBounds, RangeInclusive};

use archive_grammar::Target;
use archive_storage::{MimeId, StateError, UrlId};
use chrono::DateTime;

use super::Instant;
use super::archive::page_type;
use super::batch::Batch;
use super::columns::{CAPTURE_KINDS, CHANGES, Column, Path};
use super::expr::Expr;
use super::filter::{Filter, Ranges, TextTest, TextTestKind};
use super::hits::Hits;
use super::rows::{PageType, RowsError};
use super::running::Running;
use super::value::Value;
use crate::ledger::{SiteRule, capture_flags, language};
use crate::prepared::{self, Block, Column as Stored, Facts, Pages, Prepared, PreparedError};

/// What tests are made from, besides a plan's conditions.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) target: Target,
    pub(super) pages: &'a Pages<'a>,
    pub(super) hits: &'a Hits,
}

/// A condition on stored values.
#[derive(Debug)]
pub(super) enum Test {
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    /// A number between bounds.
    Between(Number, Vec<(Bound<f64>, Bound<f64>)>),
    /// A text that is stored by its number: the numbers for which it holds, and whether it holds if no text is known.
    Of(Stored, Vec<bool>, bool),
    /// The same for a single number, which is faster.
    Is(Stored, u64),
    /// One of these pages, by rising number.
    Found(Vec<u32>),
}

/// A column of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) column: Stored,
    /// The number that is stored; a greater one for a greater value.
    of: fn(u64) -> f64,
    /// Whether 0 means that nothing is known.
    pub(super) zero_is_unknown: bool,
}

/// A column of times, and how many of its units are a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times(pub(super) Number, pub(super) u64);

/// The rows of a block for which a test holds.
pub(super) enum Rows {
    All,
    None,
    Some(Vec<bool>),
}

impl Test {
    /// The test of a filter, or of those of its parts that must all hold, and whether it is equivalent to the filter; none if
    /// columns say nothing about it.
    pub(super) fn of(filter: &Filter, known: Known<'_>) -> Result<(Option<Self>, bool), StateError> {
        let Filter::All(parts) = filter else {
            let test = Self::exact(filter, known)?;
            let is_exact = test.is_some();
            return Ok((test, is_exact));
        };
        let tests = parts.iter().map(|part| Self::of(part, known)).collect::<Result<Vec<_>, _>>()?;
        let is_exact = tests.iter().all(|(_, is_exact)| *is_exact);
        let mut tests: Vec<_> = tests.into_iter().filter_map(|(test, _)| test).collect();
        // Then nothing else is read of most blocks.
        tests.sort_by_key(|test| !matches!(test, Self::Found(_)));
        let holds_for_none = tests.first().is_some_and(Self::holds_for_none);
        Ok((Some(tests).filter(|tests| !tests.is_empty()).map(Self::All), is_exact || holds_for_none))
    }

    fn holds_for_none(&self) -> bool {
        matches!(self, Self::Found(pages) if pages.is_empty())
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> Vec<Stored> {
        match self {
            Self::All(tests) | Self::Any(tests) => tests.iter().flat_map(Self::columns).collect(),
            Self::Not(test) => test.columns(),
            Self::Between(Number { column, .. }, _) | Self::Of(column, ..) | Self::Is(column, _) => {
                vec![*column]
            }
            Self::Found(_) => Vec::new(),
        }
    }

    /// For how many pages at most it holds, if searches limit that.
    pub(super) fn most(&self) -> Option<usize> {
        match self {
            Self::All(tests) => tests.iter().filter_map(Self::most).min(),
            Self::Any(tests) => tests.iter().map(Self::most).sum(),
            Self::Found(pages) => Some(pages.len()),
            Self::Not(_) | Self::Between(..) | Self::Of(..) | Self::Is(..) => None,
        }
    }

    /// The test that is equivalent to a filter.
    fn exact(filter: &Filter, known: Known<'_>) -> Result<Option<Self>, StateError> {
        let each = |parts: &[Filter]| -> Result<Option<Vec<Self>>, StateError> {
            parts.iter().map(|part| Self::exact(part, known)).collect()
        };
        Ok(match filter {
            Filter::All(_) => match Self::of(filter, known)? {
                (test, true) => Some(test.unwrap_or(Self::All(Vec::new()))),
                _ => None,
            },
            Filter::Any(parts) => each(parts)?.map(Self::Any),
            Filter::Not(part) => Self::exact(part, known)?.map(|test| Self::Not(Box::new(test))),
            Filter::Number(expr, ranges) => plain(expr)
                .and_then(|column| number(column, known.target))
                .map(|number| Self::Between(number, ranges.0.clone())),
            Filter::Time(expr, Ranges(ranges)) => plain(expr).and_then(times).map(|times| {
                let ranges = ranges.iter().map(|(from, to)| (times.start(*from), times.end(*to)));
                Self::Between(times.0, ranges.collect())
            }),
            Filter::Text(expr, test) => match plain(expr) {
                Some(column) => Self::text(column, test, known.pages)?,
                None => None,
            },
            Filter::Hit(search) if known.target == Target::Pages => {
                known.hits.found(*search).map(|found| Self::Found(found.iter().map(|(id, _)| id.0).collect()))
            }
            Filter::Known(_)
            | Filter::Compare { .. }
            | Filter::Hit(_)
            | Filter::Some(..)
            | Filter::Changed(..) => None,
        })
    }

    fn text(column: Column, test: &TextTest, pages: &Pages<'_>) -> Result<Option<Self>, StateError> {
        let state = pages.state();
        let holds = |text: Option<&str>| test.holds_of(text, Some(column));
        let (stored, are) = match column {
            Column::Host => {
                let hosts = state.hosts().map(|host| host.map(|(_, name, _)| holds(Some(&name))));
                (Stored::Host, hosts.collect::<Result<_, _>>()?)
            }
            // Names of hosts and domains have small letters alone, as what is wanted has.
            Column::Site
                if let TextTestKind::Is(wanted) = &test.kind
                    && !matches!(pages.credits().rules().sites, SiteRule::Path(_)) =>
            {
                let mut are = vec![false; state.site_count() as usize];
                for name in wanted {
                    let site = state.find_site(name)?.and_then(|site| are.get_mut(site.index()));
                    site.into_iter().for_each(|is| *is = true);
                }
                (Stored::Site, are)
            }
            Column::Site => {
                let sites = state.sites().map(|site| site.map(|(_, name, _)| holds(Some(&name))));
                (Stored::Site, sites.collect::<Result<_, _>>()?)
            }
            Column::Type => {
                let name = |value| prepared::kind(value).map(page_type).map(PageType::name);
                (Stored::Kind, (0..prepared::KINDS_END).map(|value| holds(name(value))).collect())
            }
            Column::Kind => {
                let name = |value: u64| CAPTURE_KINDS.get((value as usize).checked_sub(1)?).copied();
                (Stored::Kind, (0..=CAPTURE_KINDS.len() as u64).map(|value| holds(name(value))).collect())
            }
            Column::Change => (Stored::Change, (0..CHANGE_END).map(|flags| holds(change(flags))).collect()),
            Column::Language => {
                let name = |number| language(state, number);
                (Stored::Language, (0..=u8::MAX).map(|number| holds(name(number).as_deref())).collect())
            }
            Column::ContentType => {
                // The first number is that of no type.
                let types = (1..).map(|id| state.mime(MimeId(id))).take_while(|mime| !mime.is_empty());
                let are = types.map(|mime| holds(Some(mime)));
                (Stored::Mime, std::iter::once(holds(None)).chain(are).collect())
            }
            _ => return Ok(None),
        };
        let mut wanted = (0..).zip(&are).filter(|(_, is)| **is);
        Ok(Some(match (wanted.next(), wanted.next(), holds(None)) {
            (Some((only, _)), None, false) => Self::Is(stored, only),
            (.., unknown) => Self::Of(stored, are, unknown),
        }))
    }

    pub(super) fn rows(&self, prepared: &Prepared, block: u32) -> Result<Rows, PreparedError> {
        Ok(match self {
            Self::All(tests) => all(tests.iter().map(|test| test.rows(prepared, block)))?,
            Self::Any(tests) => !all(tests.iter().map(|test| test.rows(prepared, block).map(Rows::not)))?,
            Self::Not(test) => !test.rows(prepared, block)?,
            Self::Between(number, ranges) => number.between(ranges, prepared, block)?,
            Self::Is(column, wanted) => {
                let bounds = prepared.bounds(block, *column);
                match bounds.contains(wanted) {
                    false => Rows::None,
                    true if bounds.start() == bounds.end() => Rows::All,
                    true => Rows::of(prepared.map(block, *column, |value| value == *wanted)?),
                }
            }
            Self::Found(found) => {
                let ids = prepared.ids(block);
                let place = |page: u32| found.partition_point(|id| *id < page);
                let mut rows = vec![false; ids.len()];
                for id in found.get(place(ids.start)..place(ids.end)).unwrap_or_default() {
                    rows[(id - ids.start) as usize] = true;
                }
                Rows::of(rows)
            }
            Self::Of(column, are, otherwise) => {
                let is = |value: u64| are.get(value as usize).copied().unwrap_or(*otherwise);
                let bounds = prepared.bounds(block, *column);
                if bounds.start() == bounds.end() {
                    if is(*bounds.start()) { Rows::All } else { Rows::None }
                } else {
                    Rows::of(prepared.map(block, *column, is)?)
                }
            }
        })
    }
}

impl Number {
    /// The number that is stored as this value.
    pub(super) fn value(&self, stored: u64) -> f64 {
        (self.of)(stored)
    }

    /// The value of a row, from the stored one.
    pub(super) fn shown(&self, stored: u64) -> Value {
        match self.column {
            Stored::Importance => self.value(stored).into(),
            Stored::Time => DateTime::from_timestamp_micros(stored as i64).into(),
            Stored::FirstSeen | Stored::LastSeen | Stored::Changed => {
                DateTime::from_timestamp(stored as i64, 0).into()
            }
            _ => Value::Integer(self.value(stored) as u64),
        }
    }

    fn between(
        &self,
        ranges: &[(Bound<f64>, Bound<f64>)],
        prepared: &Prepared,
        block: u32,
    ) -> Result<Rows, PreparedError> {
        let bounds = prepared.bounds(block, self.column);
        let (least, most) = ((self.of)(*bounds.start()), (self.of)(*bounds.end()));
        let meets = |(from, to): &&(Bound<f64>, Bound<f64>)| {
            (*from, Bound::Unbounded).contains(&most) && (Bound::Unbounded, *to).contains(&least)
        };
        let ranges: Vec<_> = ranges.iter().filter(meets).collect();
        let are_known = !(self.zero_is_unknown && *bounds.start() == 0);
        if ranges.is_empty() {
            return Ok(Rows::None);
        }
        if are_known && ranges.iter().any(|range| range.contains(&least) && range.contains(&most)) {
            return Ok(Rows::All);
        }
        let least = u64::from(self.zero_is_unknown).max(*bounds.start());
        let stored: Vec<_> = ranges.iter().map(|range| self.stored(range, least..=*bounds.end())).collect();
        if let [range] = stored.as_slice() {
            return Ok(Rows::of(prepared.map(block, self.column, |value| range.contains(&value))?));
        }
        let is_in = |value| stored.iter().any(|range| range.contains(&value));
        Ok(Rows::of(prepared.map(block, self.column, is_in)?))
    }

    /// The stored numbers, among those within bounds, whose numbers are in a range.
    fn stored(&self, (from, to): &(Bound<f64>, Bound<f64>), within: RangeInclusive<u64>) -> Range<u64> {
        let first_where = |holds: &dyn Fn(f64) -> bool| {
            let (mut low, mut high) = (*within.start(), within.end().saturating_add(1));
            while low < high {
                let middle = u64::midpoint(low, high);
                if holds((self.of)(middle)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        let start = first_where(&|number| (*from, Bound::Unbounded).contains(&number));
        let end = first_where(&|number| !(Bound::Unbounded, *to).contains(&number));
        start..end
    }
}

impl Rows {
    pub(super) fn of(rows: Vec<bool>) -> Self {
        // Other columns of the block need not be read then.
        if rows.contains(&true) { Self::Some(rows) } else { Self::None }
    }

    /// How many of all rows they are.
    pub(super) fn count(&self, all: usize) -> u64 {
        match self {
            Self::All => all as u64,
            Self::None => 0,
            Self::Some(rows) => rows.iter().filter(|is_in| **is_in).count() as u64,
        }
    }

    /// Whether it has a row.
    pub(super) fn has(&self, row: usize) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Some(rows) => rows.get(row).copied().unwrap_or_default(),
        }
    }

    /// Those of these numbers, a row each, that it has.
    pub(super) fn of_ids(self, ids: Range<u32>) -> Vec<u32> {
        match self {
            Self::All => ids.collect(),
            Self::None => Vec::new(),
            Self::Some(rows) => ids.zip(rows).filter_map(|(id, is)| is.then_some(id)).collect(),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, rows) | (rows, Self::All) => rows,
            (Self::Some(mut rows), Self::Some(others)) => {
                rows.iter_mut().zip(others).for_each(|(row, other)| *row &= other);
                Self::of(rows)
            }
        }
    }
}

impl Not for Rows {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::All => Self::None,
            Self::None => Self::All,
            Self::Some(mut rows) => {
                rows.iter_mut().for_each(|row| *row = !*row);
                Self::Some(rows)
            }
        }
    }
}

/// The rows that all of these have.
fn all(mut each: impl Iterator<Item = Result<Rows, PreparedError>>) -> Result<Rows, PreparedError> {
    each.try_fold(Rows::All, |rows, others| match rows {
        Rows::None => Ok(Rows::None),
        rows => Ok(rows.and(others?)),
    })
}

/// The field of the row itself that a calculation is.
pub(super) fn plain(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Field(Path { via: None, column }) => Some(*column),
        _ => None,
    }
}

fn counted(column: Stored) -> Number {
    Number { column, of: |value| value as f64, zero_is_unknown: false }
}

/// Whole numbers; their sums are exact as long as floats represent them exactly.
pub(super) fn whole(column: Column, target: Target) -> Option<Number> {
    number(column, target).filter(|number| number.column != Stored::Importance)
}

/// The column of numbers that has a field of rows of this sort.
pub(super) fn number(column: Column, target: Target) -> Option<Number> {
    Some(match column {
        // Those of a page are of its newest capture, which has no columns among those of pages.
        Column::Size | Column::Stored if target == Target::Pages => return None,
        Column::Importance => Number { of: f64::from_bits, ..counted(Stored::Importance) },
        Column::Status => Number { zero_is_unknown: true, ..counted(Stored::Status) },
        Column::Captures => counted(Stored::Captures),
        Column::Versions => counted(Stored::Versions),
        Column::Depth => counted(Stored::Depth),
        Column::Size => {
            Number { of: |value| value as f64 - 1.0, zero_is_unknown: true, ..counted(Stored::Size) }
        }
        Column::Stored => counted(Stored::Stored),
        _ => return None,
    })
}

pub(super) fn times(column: Column) -> Option<Times> {
    let seconds = |stored| Times(Number { zero_is_unknown: true, ..counted(stored) }, 1);
    Some(match column {
        Column::FirstSeen => seconds(Stored::FirstSeen),
        Column::LastSeen => seconds(Stored::LastSeen),
        Column::Changed => seconds(Stored::Changed),
        Column::Time => Times(counted(Stored::Time), 1_000_000),
        _ => return None,
    })
}

/// Values of [`Stored::Change`] are below this.
pub(super) const CHANGE_END: u64 = 4;

/// What such a value means.
fn change(flags: u64) -> Option<&'static str> {
    let [content, bytes] = CHANGES;
    let has = |flag: u8| flags & u64::from(flag) != 0;
    match has(capture_flags::CONTENT_CHANGED) {
        true => Some(content),
        false => has(capture_flags::BYTES_CHANGED).then_some(bytes),
    }
}

/// The test of captures that are versions.
pub(super) fn is_version() -> Test {
    let bytes = u64::from(capture_flags::BYTES_CHANGED);
    Test::Of(Stored::Change, (0..CHANGE_END).map(|flags| flags & bytes != 0).collect(), false)
}

impl Times {
    /// The bound on whole units from which times count.
    fn start(self, bound: Bound<Instant>) -> Bound<f64> {
        match bound {
            Bound::Included(time) | Bound::Excluded(time) if self.is_between(&time) => {
                Bound::Excluded(self.units(&time))
            }
            bound => bound.map(|time| self.units(&time)),
        }
    }

    /// The bound on whole units up to which times count.
    fn end(self, bound: Bound<Instant>) -> Bound<f64> {
        match bound {
            Bound::Included(time) | Bound::Excluded(time) if self.is_between(&time) => {
                Bound::Included(self.units(&time))
            }
            bound => bound.map(|time| self.units(&time)),
        }
    }

    /// Whole units, rounded down.
    fn units(self, time: &Instant) -> f64 {
        let parts = u64::from(time.timestamp_subsec_nanos()) * self.1 / NANOS;
        (i128::from(time.timestamp()) * i128::from(self.1) + i128::from(parts)) as f64
    }

    fn is_between(self, time: &Instant) -> bool {
        !(u64::from(time.timestamp_subsec_nanos()) * self.1).is_multiple_of(NANOS)
    }
}

/// Of a second.
const NANOS: u64 = 1_000_000_000;

/// The facts of all pages for which a test holds, by rising number; `batch` receives them.
pub(super) fn scan<'a>(
    prepared: &'a Prepared,
    test: Test,
    batch: &'a RefCell<Batch>,
    running: &'a Running,
) -> impl Iterator<Item = Result<(UrlId, Facts), RowsError>> + 'a {
    let chosen = move |block| {
        Ok(test.rows(prepared, block)?.of_ids(prepared.ids(block)).into_iter().map(UrlId).collect())
    };
    blocks(prepared, chosen, batch, running)
}

/// The facts of some pages, which are given by rising number.
pub(super) fn facts_of<'a>(
    prepared: &'a Prepared,
    ids: Vec<UrlId>,
    batch: &'a RefCell<Batch>,
    running: &'a Running,
) -> impl Iterator<Item = Result<(UrlId, Facts), RowsError>> + 'a {
    let chosen = move |block| {
        let urls = prepared.ids(block);
        let place = |url: u32| ids.partition_point(|id| id.0 < url);
        Ok(ids.get(place(urls.start)..place(urls.end)).unwrap_or_default().to_vec())
    };
    blocks(prepared, chosen, batch, running)
}

/// The facts of the pages that are chosen of each block.
fn blocks<'a>(
    prepared: &'a Prepared,
    chosen: impl Fn(u32) -> Result<Vec<UrlId>, PreparedError> + 'a,
    batch: &'a RefCell<Batch>,
    running: &'a Running,
) -> impl Iterator<Item = Result<(UrlId, Facts), RowsError>> + 'a {
    let read = move |block| -> Result<Option<(Block, Vec<UrlId>)>, RowsError> {
        running.check()?;
        let ids = chosen(block)?;
        Ok(if ids.is_empty() { None } else { Some((prepared.block(block)?, ids)) })
    };
    (0..prepared.blocks()).flat_map(move |block| {
        let (found, failed) = match read(block) {
            Ok(found) => (found, None),
            Err(error) => (None, Some(Err(error))),
        };
        let rows = found.map(|(block, ids)| {
            *batch.borrow_mut() = Batch::coming(ids.clone());
            ids.into_iter().filter_map(move |id| Some(Ok((id, block.facts(id)?))))
        });
        failed.into_iter().chain(rows.into_iter().flatten())
    })
}

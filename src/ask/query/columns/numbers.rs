//! Columns of numbers and times: how stored values are read, and which rows have a value within bounds.

use std::ops::{Bound, Range, RangeBounds, RangeInclusive};

use archive_books::prepared::{Column as Stored, Prepared, PreparedError};
use archive_grammar::QueryRows;
use chrono::DateTime;

use crate::query::columns::row_set::RowSet;
use crate::query::language::{Column, Instant, Value};

/// A numeric column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub(crate) column: Stored,
    /// Converts a stored value; monotonically increasing.
    of: fn(u64) -> f64,
    /// Whether 0 means unknown.
    pub(crate) zero_is_unknown: bool,
}

/// A time column, and the number of its units per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times(pub(crate) Number, pub(crate) u64);

impl Number {
    /// Whether the column has the bits of floats.
    fn is_of_bits(&self) -> bool {
        matches!(self.column, Stored::Importance | Stored::ByLinks)
    }

    /// Converts a stored value to a number.
    pub(crate) fn value(&self, stored: u64) -> f64 {
        (self.of)(stored)
    }

    /// Converts a stored value to the value of a row.
    pub(crate) fn shown(&self, stored: u64) -> Value {
        match self.column {
            _ if self.is_of_bits() => self.value(stored).into(),
            Stored::Time => DateTime::from_timestamp_micros(stored as i64).into(),
            Stored::FirstSeen
            | Stored::LastSeen
            | Stored::LastAnswer
            | Stored::LastAttempt
            | Stored::FailingSince
            | Stored::Changed => DateTime::from_timestamp(stored as i64, 0).into(),
            _ => Value::Integer(self.value(stored) as u64),
        }
    }

    pub(crate) fn between(
        &self,
        ranges: &[(Bound<f64>, Bound<f64>)],
        (prepared, block): (&Prepared, u32),
        among: &RowSet,
    ) -> Result<RowSet, PreparedError> {
        let bounds = prepared.bounds(block, self.column);
        let (least, most) = ((self.of)(*bounds.start()), (self.of)(*bounds.end()));
        let meets = |(from, to): &&(Bound<f64>, Bound<f64>)| {
            (*from, Bound::Unbounded).contains(&most) && (Bound::Unbounded, *to).contains(&least)
        };
        let ranges: Vec<_> = ranges.iter().filter(meets).collect();
        let are_known = !(self.zero_is_unknown && *bounds.start() == 0);
        if ranges.is_empty() {
            return Ok(RowSet::None);
        }
        if are_known && ranges.iter().any(|range| range.contains(&least) && range.contains(&most)) {
            return Ok(RowSet::All);
        }
        let least = u64::from(self.zero_is_unknown).max(*bounds.start());
        let stored: Vec<_> = ranges.iter().map(|range| self.stored(range, least..=*bounds.end())).collect();
        if let [range] = stored.as_slice() {
            return RowSet::passing((prepared, block), self.column, among, |value| range.contains(&value));
        }
        let is_in = |value| stored.iter().any(|range| range.contains(&value));
        RowSet::passing((prepared, block), self.column, among, is_in)
    }

    /// The range of stored values, restricted to `within`, whose numbers are in a range.
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

fn counted(column: Stored) -> Number {
    Number { column, of: |value| value as f64, zero_is_unknown: false }
}

/// A column of the bits of floats that are not negative.
fn of_bits(column: Stored) -> Number {
    Number { of: f64::from_bits, ..counted(column) }
}

/// A column that stores the number plus 1, and 0 for unknown.
fn one_less(column: Stored) -> Number {
    Number { of: |value| value as f64 - 1.0, zero_is_unknown: true, ..counted(column) }
}

/// Columns of whole numbers; their sums are exact as long as floats represent them exactly.
pub(crate) fn whole(column: Column, target: QueryRows) -> Option<Number> {
    number(column, target).filter(|number| !number.is_of_bits())
}

/// The numeric column of a field for rows of this target.
pub(crate) fn number(column: Column, target: QueryRows) -> Option<Number> {
    Some(match column {
        Column::Importance if target == QueryRows::Sites => of_bits(Stored::ByLinks),
        Column::Importance => of_bits(Stored::Importance),
        Column::Pages => counted(Stored::Pages),
        Column::Html => counted(Stored::Html),
        Column::Xml => counted(Stored::Xml),
        Column::Status => Number { zero_is_unknown: true, ..counted(Stored::Status) },
        Column::ContentStatus => Number { zero_is_unknown: true, ..counted(Stored::ContentStatus) },
        Column::Captures => counted(Stored::Captures),
        Column::Attempts => counted(Stored::Attempts),
        Column::Versions => counted(Stored::Versions),
        Column::Depth => counted(Stored::Depth),
        Column::Size => one_less(Stored::Size),
        // A page may have no capture.
        Column::Stored if target == QueryRows::Pages => one_less(Stored::Stored),
        Column::Stored => counted(Stored::Stored),
        _ => return None,
    })
}

pub(crate) fn times(column: Column) -> Option<Times> {
    let seconds = |stored| Times(Number { zero_is_unknown: true, ..counted(stored) }, 1);
    Some(match column {
        Column::FirstSeen => seconds(Stored::FirstSeen),
        Column::LastSeen => seconds(Stored::LastSeen),
        Column::LastAnswer => seconds(Stored::LastAnswer),
        Column::LastAttempt => seconds(Stored::LastAttempt),
        Column::FailingSince => seconds(Stored::FailingSince),
        Column::Changed => seconds(Stored::Changed),
        Column::Time => Times(counted(Stored::Time), 1_000_000),
        _ => return None,
    })
}

impl Times {
    /// The lower bound in whole units.
    pub(crate) fn start(self, bound: Bound<Instant>) -> Bound<f64> {
        match bound {
            Bound::Included(time) | Bound::Excluded(time) if self.is_between(&time) => {
                Bound::Excluded(self.units(&time))
            }
            bound => bound.map(|time| self.units(&time)),
        }
    }

    /// The upper bound in whole units.
    pub(crate) fn end(self, bound: Bound<Instant>) -> Bound<f64> {
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

/// Nanoseconds per second.
const NANOS: u64 = 1_000_000_000;

/// The column whose numbers sort like the values of a field.
pub(crate) fn compared(column: Column, target: QueryRows) -> Option<Number> {
    number(column, target).or_else(|| times(column).map(|times| times.0))
}

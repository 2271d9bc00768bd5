//! Conditions on the fetches of pages. No column has what they need: estimates are computed in a pass over all visits;
//! for changes, the histories of the pages that columns leave are read.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use archive_books::ledger::capture_flags;
use archive_books::prepared::Prepared;
use archive_choose::freshness::fresh;
use archive_math::refresh::rate::ChangeObservations;
use archive_storage::{ROWS_TOGETHER, State, UrlId};
use chrono::DateTime;
use rayon::prelude::*;

use super::Instant;
use super::archive::ArchiveRows;
use super::block_rows::Rows;
use super::columns::Column;
use super::filter::{Filter, Ranges};
use super::prefilter::{Test, plain};
use super::rows::Found;
use super::value::Value;

/// A condition on an estimate for a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected<'a> {
    /// The change rate is within some ranges.
    Rate(&'a Ranges<f64>),
    /// The freshness is within some ranges.
    Freshness(&'a Ranges<f64>),
    /// The page is due within some time ranges.
    Due(&'a Ranges<Instant>),
    /// The page is due at some time.
    EverDue,
}

impl<'a> Expected<'a> {
    /// The condition that a filter consists of, if it is one of these.
    pub(super) fn of(filter: &'a Filter) -> Option<Self> {
        match filter {
            Filter::Number(expr, ranges) => match plain(expr)? {
                Column::ChangeRate => Some(Self::Rate(ranges)),
                Column::Freshness => Some(Self::Freshness(ranges)),
                _ => None,
            },
            Filter::Time(expr, ranges) if plain(expr)? == Column::NextVisit => Some(Self::Due(ranges)),
            Filter::Known(expr) if plain(expr)? == Column::NextVisit => Some(Self::EverDue),
            _ => None,
        }
    }

    /// The column of the estimate.
    pub(super) fn column(self) -> Column {
        match self {
            Self::Rate(_) => Column::ChangeRate,
            Self::Freshness(_) => Column::Freshness,
            Self::Due(_) | Self::EverDue => Column::NextVisit,
        }
    }

    fn holds(self, value: f64) -> bool {
        match self {
            Self::Rate(ranges) | Self::Freshness(ranges) => ranges.has(&value),
            Self::Due(ranges) => time(value).is_some_and(|due| ranges.has(&due)),
            Self::EverDue => true,
        }
    }
}

/// An estimated time, from milliseconds.
fn time(milliseconds: f64) -> Option<Instant> {
    DateTime::from_timestamp_millis(milliseconds as i64)
}

/// The estimate for each page, by id; times are in milliseconds, and NaN means no estimate.
#[derive(Debug)]
pub(super) struct ExpectedValues(Column, Vec<AtomicU64>);

impl ExpectedValues {
    pub(super) fn of(&self, page: UrlId) -> f64 {
        self.1.get(page.index()).map_or(f64::NAN, |value| f64::from_bits(value.load(Relaxed)))
    }

    /// Converts an estimate to the value shown.
    pub(super) fn shown(&self, value: f64) -> Value {
        match self.0 {
            _ if value.is_nan() => Value::Empty,
            Column::NextVisit => time(value).into(),
            _ => value.into(),
        }
    }
}

impl ArchiveRows<'_> {
    /// Returns the pages that meet a condition, sorted by id.
    pub(super) fn pages_expected(&self, test: Expected<'_>) -> Found<Vec<UrlId>> {
        let (began, column) = (std::time::Instant::now(), test.column());
        let mut pages = self.each_expected(column, |page, value| test.holds(value).then_some(page))?;
        pages.par_sort_unstable();
        self.running.note(|seen| seen.passed(name(column), pages.len() as u64, began.elapsed()));
        Ok(pages)
    }

    /// Returns the estimates for all pages.
    pub(super) fn all_expected(&self, column: Column) -> Found<ExpectedValues> {
        let (began, all) = (std::time::Instant::now(), self.state.totals().fetched);
        let mut values = Vec::new();
        values.resize_with(self.state.url_count() as usize, || AtomicU64::new(f64::NAN.to_bits()));
        self.each_expected(column, |page, value| {
            values.get(page.index()).into_iter().for_each(|place| place.store(value.to_bits(), Relaxed));
            None::<()>
        })?;
        self.running.note(|seen| seen.passed(name(column), all, began.elapsed()));
        Ok(ExpectedValues(column, values))
    }

    /// Maps the estimate of each page: one parallel pass over all visits.
    fn each_expected<T: Send>(
        &self,
        column: Column,
        make: impl Fn(UrlId, f64) -> Option<T> + Sync,
    ) -> Found<Vec<T>> {
        let state = self.state;
        if column == Column::NextVisit {
            let turns = self.timetable()?.turns(state);
            turns.expect_all()?;
            return self.each_part(|first, made| {
                for visit in turns.visits(first) {
                    let (page, record, visit) = visit?;
                    let due = turns.due((page, &record), &visit)?;
                    made.extend(due.and_then(|due| make(page, due.timestamp_millis() as f64)));
                }
                Ok(())
            });
        }
        let (prior, now) = (self.prior()?, self.now);
        self.each_part(|first, made| {
            for visit in state.visits(first).take(ROWS_TOGETHER) {
                let (page, visit) = visit?;
                let value = match column {
                    _ if visit.captures == 0 => None,
                    Column::Freshness => fresh(prior, &visit, now),
                    _ => Some(ChangeObservations::from_bytes(&visit.extension).rate(prior).per_day),
                };
                made.extend(value.and_then(|value| make(page, value)));
            }
            Ok(())
        })
    }

    /// Collects what `make` adds for each part of all visits, in parallel.
    fn each_part<T: Send>(&self, make: impl Fn(u32, &mut Vec<T>) -> Found<()> + Sync) -> Found<Vec<T>> {
        let running = &self.running;
        let of_part = |first: u32| -> Found<Vec<T>> {
            running.check()?;
            let mut made = Vec::new();
            make(first, &mut made)?;
            Ok(made)
        };
        let parts = self.state.visit_parts().into_par_iter().map(of_part).collect::<Found<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

/// Describes a pass over estimates in explanations.
fn name(column: Column) -> &'static str {
    match column {
        Column::Freshness => "all visits: freshness",
        Column::NextVisit => "all visits: next_visit",
        _ => "all visits: change_rate",
    }
}

/// Whether content changed between two times, given the captures of a page (time, and whether the content changed) from
/// newest to oldest. The first version is not a change: a change only counts if an older version follows.
pub(super) fn changed(
    history: impl Iterator<Item = Found<(Instant, bool)>>,
    from: Option<Instant>,
    until: Option<Instant>,
) -> Found<bool> {
    let mut is_in = false;
    for capture in history {
        let (time, is_change) = capture?;
        if !is_change {
            continue;
        }
        if is_in {
            return Ok(true);
        }
        if from.is_some_and(|from| time < from) {
            return Ok(false);
        }
        is_in = until.is_none_or(|until| time < until);
    }
    Ok(false)
}

/// A condition on when content changed.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    pub(super) state: &'a State,
    /// A weaker test that columns decide.
    pub(super) candidates: Box<Test<'a>>,
    pub(super) from: Option<Instant>,
    pub(super) until: Option<Instant>,
}

impl Changes<'_> {
    /// The pages of a block that meet the condition; the result is unspecified for rows outside `among`.
    pub(super) fn rows(&self, prepared: &Prepared, block: u32, among: &Rows) -> Found<Rows> {
        let ids = prepared.ids(block);
        let mut rows = vec![false; ids.len()];
        let candidates = self.candidates.rows_among(prepared, block, among)?;
        for row in candidates.places(ids.len()).flatten().filter(|row| among.has(*row as usize)) {
            let history = self.state.history(UrlId(ids.start + row))?.map(|found| {
                let (_, capture) = found?;
                let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
                Ok((time, capture_flags::content_changed(&capture)))
            });
            let has_changed = changed(history, self.from, self.until)?;
            rows.get_mut(row as usize).into_iter().for_each(|row| *row = has_changed);
        }
        Ok(Rows::of(rows))
    }
}

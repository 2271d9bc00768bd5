//! Conditions on the fetches of pages. No column has what they need: estimates are computed in a pass over all visits;
//! for changes, the histories of the pages that columns leave are read.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use archive_books::ledger::capture_flags;
use archive_choose::freshness::fresh;
use archive_math::refresh::rate::ChangeObservations;
use archive_storage::{ROWS_TOGETHER, State, UrlId};
use chrono::DateTime;
use rayon::prelude::*;

use crate::query::columns::archive::ArchiveRows;
use crate::query::columns::row_set::RowSet;
use crate::query::language::{Column, Filter, Found, Given, Instant, Value};
use crate::query::rows::changed;

/// The estimate for each page, by id; times are in milliseconds, and NaN means no estimate.
#[derive(Debug)]
pub(crate) struct ExpectedValues(Vec<AtomicU64>);

impl ExpectedValues {
    pub(crate) fn of(&self, page: UrlId) -> f64 {
        self.0.get(page.index()).map_or(f64::NAN, |value| f64::from_bits(value.load(Relaxed)))
    }
}

/// The value that an estimate is shown as.
pub(crate) fn shown(column: Column, value: f64) -> Value {
    match column {
        _ if value.is_nan() => Value::Empty,
        // In milliseconds.
        Column::NextVisit => DateTime::from_timestamp_millis(value as i64).into(),
        _ => value.into(),
    }
}

impl ArchiveRows<'_> {
    /// Returns the pages that meet a condition on an estimate alone, sorted by id.
    pub(crate) fn pages_expected(&self, column: Column, filter: &Filter) -> Found<Vec<UrlId>> {
        let began = std::time::Instant::now();
        let mut pages = self.each_expected(column, |page, value| {
            // Only reading a field can fail, and nothing is read here.
            let holds = filter.holds(&Given(|_| shown(column, value))).unwrap_or_default();
            holds.then_some(page)
        })?;
        pages.par_sort_unstable();
        self.running.note(|seen| seen.passed(name(column), pages.len() as u64, began.elapsed()));
        Ok(pages)
    }

    /// Returns the estimates for all pages.
    pub(crate) fn all_expected(&self, column: Column) -> Found<ExpectedValues> {
        let (began, all) = (std::time::Instant::now(), self.state.totals().fetched);
        let mut values = Vec::new();
        values.resize_with(self.state.url_count() as usize, || AtomicU64::new(f64::NAN.to_bits()));
        self.each_expected(column, |page, value| {
            values.get(page.index()).into_iter().for_each(|place| place.store(value.to_bits(), Relaxed));
            None::<()>
        })?;
        self.running.note(|seen| seen.passed(name(column), all, began.elapsed()));
        Ok(ExpectedValues(values))
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

/// A condition on when content changed.
#[derive(Debug)]
pub(crate) struct Changes<'a> {
    pub(crate) state: &'a State,
    pub(crate) from: Option<Instant>,
    pub(crate) until: Option<Instant>,
}

impl Changes<'_> {
    /// The pages of a block that meet the condition; the result is unspecified for rows outside `among`, which columns
    /// have narrowed down: each history is read.
    pub(crate) fn rows(&self, ids: Range<u32>, among: &RowSet) -> Found<RowSet> {
        let mut rows = vec![false; ids.len()];
        for row in among.places(ids.len()).flatten() {
            let history = self.state.history(UrlId(ids.start + row))?.map(|found| {
                let (_, capture) = found?;
                let time = DateTime::from_timestamp_micros(capture.time).unwrap_or_default();
                Ok((time, capture_flags::content_changed(&capture)))
            });
            let has_changed = changed(history, self.from, self.until)?;
            rows.get_mut(row as usize).into_iter().for_each(|row| *row = has_changed);
        }
        Ok(RowSet::of(rows))
    }
}

//! Conditions on the fetches of pages. No column has what they need: change rates are worked out in a pass over all visits, and of
//! changes the histories are read of the pages that columns leave.

use archive_storage::{ROWS_TOGETHER, State, UrlId, Visit};
use chrono::DateTime;
use rayon::prelude::*;

use super::Instant;
use super::block_rows::Rows;
use super::filter::Ranges;
use super::prefilter::Test;
use super::rows::RowsError;
use super::running::Running;
use crate::ledger::capture_flags;
use crate::prepared::Prepared;
use crate::refresh::rate::{ChangeObservations, RatePrior};

type Found<T> = Result<T, RowsError>;

/// The pages whose change rates are in some ranges: one pass over all visits, on all processors.
pub(super) fn rated(
    state: &State,
    running: &Running,
    prior: &RatePrior,
    ranges: &Ranges<f64>,
) -> Found<Vec<UrlId>> {
    let rate = |visit: &Visit| ChangeObservations::from_bytes(&visit.extension).rate(prior).per_day;
    let of_part = |first: u32| -> Found<Vec<UrlId>> {
        running.check()?;
        let visits = state.visits(first).take(ROWS_TOGETHER).filter(|visit| {
            visit.as_ref().map_or(true, |(_, visit)| visit.captures > 0 && ranges.has(&rate(visit)))
        });
        Ok(visits.map(|visit| visit.map(|(page, _)| page)).collect::<Result<_, _>>()?)
    };
    let mut pages = state.visit_parts().into_par_iter().map(of_part).collect::<Found<Vec<_>>>()?.concat();
    pages.par_sort_unstable();
    Ok(pages)
}

/// Whether content changed between two times, by the captures of a page from the newest on. The oldest version is not a change: a
/// later one is known by an older version.
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
    /// Holds wherever the condition holds.
    pub(super) candidates: Box<Test<'a>>,
    pub(super) from: Option<Instant>,
    pub(super) until: Option<Instant>,
}

impl Changes<'_> {
    /// The pages of a block for which it holds; what it says of those that are not among some may be wrong.
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

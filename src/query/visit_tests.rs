//! Conditions on the fetches of pages. No column has what they need: change rates are worked out in a pass over all visits, and of
//! changes the histories are read of the pages that columns leave.

use archive_storage::{ROWS_TOGETHER, State, UrlId, Visit};
use chrono::DateTime;
use rayon::prelude::*;

use super::Instant;
use super::archive::ArchiveRows;
use super::block_rows::Rows;
use super::columns::Column;
use super::filter::{Filter, Ranges};
use super::prefilter::{Test, plain};
use super::rows::RowsError;
use super::running::Running;
use crate::ledger::capture_flags;
use crate::prepared::Prepared;
use crate::refresh::rate::ChangeObservations;
use crate::selection::freshness::fresh;

type Found<T> = Result<T, RowsError>;

/// A condition on what is expected of a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected<'a> {
    /// Its change rate is in some ranges.
    Rate(&'a Ranges<f64>),
    /// Its freshness is.
    Freshness(&'a Ranges<f64>),
    /// It is due within some times.
    Due(&'a Ranges<Instant>),
    /// It is due at some time.
    EverDue,
}

impl<'a> Expected<'a> {
    /// What a filter asks, if it is one of these.
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

    /// The pass, as a query is explained.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate(_) => "all visits: change_rate",
            Self::Freshness(_) => "all visits: freshness",
            Self::Due(_) | Self::EverDue => "all visits: next_visit",
        }
    }
}

impl ArchiveRows<'_> {
    /// The pages that a condition holds for: one pass over all visits, on all processors.
    pub(super) fn pages_expected(&self, test: Expected<'_>) -> Found<Vec<UrlId>> {
        match test {
            Expected::Rate(ranges) => {
                let prior = self.prior()?;
                self.pages_by_visit(|_, visit| {
                    Ok(ranges.has(&ChangeObservations::from_bytes(&visit.extension).rate(prior).per_day))
                })
            }
            Expected::Freshness(ranges) => {
                let (state, prior, now) = (self.state, self.prior()?, self.now);
                self.pages_by_visit(|page, visit| {
                    Ok(fresh(state, prior, (page, visit), now)?.is_some_and(|fresh| ranges.has(&fresh)))
                })
            }
            Expected::Due(ranges) => self.pages_due(|due| ranges.has(&due)),
            Expected::EverDue => self.pages_due(|_| true),
        }
    }

    fn pages_by_visit(&self, holds: impl Fn(UrlId, &Visit) -> Found<bool> + Sync) -> Found<Vec<UrlId>> {
        let state = self.state;
        pages_of_parts(state, &self.running, |first| {
            let mut found = Vec::new();
            for visit in state.visits(first).take(ROWS_TOGETHER) {
                let (page, visit) = visit?;
                if visit.captures > 0 && holds(page, &visit)? {
                    found.push(page);
                }
            }
            Ok(found)
        })
    }

    fn pages_due(&self, holds: impl Fn(Instant) -> bool + Sync) -> Found<Vec<UrlId>> {
        let state = self.state;
        let turns = self.timetable()?.turns(state);
        turns.expect_all()?;
        pages_of_parts(state, &self.running, |first| {
            let mut found = Vec::new();
            for visit in turns.visits(first) {
                let (page, record, visit) = visit?;
                if turns.due((page, &record), &visit)?.is_some_and(&holds) {
                    found.push(page);
                }
            }
            Ok(found)
        })
    }
}

/// What is found in each part of all visits, by rising number.
fn pages_of_parts(
    state: &State,
    running: &Running,
    of_part: impl Fn(u32) -> Found<Vec<UrlId>> + Sync,
) -> Found<Vec<UrlId>> {
    let of_part = |first: u32| {
        running.check()?;
        of_part(first)
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

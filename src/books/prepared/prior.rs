//! The prior of change rates for pages that were not yet fetched twice, learned from a sample of the archive's visits
//! in a pass over their table.

use std::path::Path;

use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_storage::{Page, ROWS_TOGETHER, State, StateError, Store, Visit, VisitId};
use archive_web::parse::DocumentKind;
use rayon::prelude::*;

use super::file::{BLOCK_ROWS, Stamp, Writer};
use super::{PageTables, PreparedError, open, stamp};
use crate::ledger::page_flags as flags;

/// Name of the file in the archive's folder.
pub const PRIOR_FILE: &str = "state/prior.prepared";

/// Maximum number of visits to learn from; if there are more, every n-th is used.
const VISITS_MAX: usize = 1 << 16;

/// Columns of the file: the prior's shape and its days.
const COLUMNS: usize = 2;

/// Returns the prior of an archive, if it is of the checkpoint that the archive was opened at.
///
/// # Errors
/// When the file is damaged.
pub fn prior(store: &Store) -> Result<Option<RatePrior>, PreparedError> {
    let Some(reader) = open(store, PRIOR_FILE, of_prior(store.state()))? else { return Ok(None) };
    let of_values = |[shape, days]: [u64; COLUMNS]| {
        let prior = RatePrior { shape: f64::from_bits(shape), days: f64::from_bits(days) };
        [prior.shape, prior.days].iter().all(|value| value.is_finite() && *value > 0.0).then_some(prior)
    };
    Ok(reader.all_rows()?.first().copied().and_then(of_values))
}

/// Learns the prior from the visits of whole archives.
///
/// # Errors
/// When the state cannot be read.
pub fn archive_prior(archives: &[&State]) -> Result<RatePrior, StateError> {
    let visits: usize = archives.iter().map(|state| state.visit_count() as usize).sum();
    let step = step(visits);
    let mut observed = Vec::new();
    for state in archives {
        let numbers: Vec<u32> = (0..state.visit_count()).step_by(step).collect();
        let of_part = |numbers: &[u32]| -> Result<Vec<_>, StateError> {
            let visits = state.visits_with_pages(numbers.iter().copied());
            let rates = visits.map(|visit| visit.map(|(_, page, visit)| rates_of_others(&page, &visit)));
            rates.filter_map(Result::transpose).collect()
        };
        let parts = numbers.par_chunks(ROWS_TOGETHER).map(of_part).collect::<Result<Vec<_>, _>>()?;
        observed.extend(parts.into_iter().flatten());
    }
    Ok(RatePrior::learned(&observed))
}

/// Returns what a page's visits say about the change rates of other pages. Feeds and sitemaps change whenever one of
/// their pages does, so they say nothing and give `None`.
#[must_use]
pub fn rates_of_others(page: &Page, visit: &Visit) -> Option<ChangeObservations> {
    let observations = ChangeObservations::from_bytes(&visit.extension);
    let counts = page.flags.has_any(flags::ACCOUNT) && observations.visits() > 0 && !is_signal(visit);
    counts.then_some(observations)
}

/// Whether a page is a sitemap or feed, which announces other pages.
#[must_use]
pub fn is_signal(visit: &Visit) -> bool {
    matches!(DocumentKind::from_code(visit.kind), DocumentKind::Sitemap | DocumentKind::Feed)
}

fn step(visits: usize) -> usize {
    visits.div_ceil(VISITS_MAX).max(1)
}

/// Returns the observations of the sampled pages among these, with the numbers of their visits.
pub(super) fn observed<'a>(
    state: &State,
    rows: &'a [PageTables],
) -> impl Iterator<Item = (VisitId, ChangeObservations)> + use<'a> {
    let step = step(state.visit_count() as usize) as u32;
    rows.iter().filter_map(move |PageTables { page, visit, .. }| {
        let number = page.visit.filter(|number| number.0.is_multiple_of(step))?;
        Some((number, rates_of_others(page, visit.as_ref()?)?))
    })
}

/// Learns and writes the prior of the last checkpoint.
pub(super) fn write(
    state: &State,
    folder: &Path,
    mut observed: Vec<(VisitId, ChangeObservations)>,
) -> Result<(), PreparedError> {
    observed.sort_by_key(|(number, _)| number.0);
    let observed: Vec<_> = observed.into_iter().map(|(_, observations)| observations).collect();
    let RatePrior { shape, days } = RatePrior::learned(&observed);
    let mut writer = Writer::begin(&folder.join(PRIOR_FILE), of_prior(state), BLOCK_ROWS)?;
    writer.add(&[shape.to_bits()])?;
    writer.add(&[days.to_bits()])?;
    writer.finish()
}

fn of_prior(state: &State) -> Stamp {
    stamp(state, 1, COLUMNS)
}

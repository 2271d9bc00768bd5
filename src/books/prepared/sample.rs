//! A sample of the fetched pages, used to rank one page among all others.
//!
//! It has every n-th visit, with everything that decides when its page is due. Looking these up in the tables would
//! take several blocks each.

use std::path::Path;

use archive_storage::{HostId, Page, PageFlags, State, StateError, Store, UrlId, Visit, VisitId};

use super::file::{BLOCK_ROWS, Stamp, Writer};
use super::{PageTables, Pages, PreparedError, open, stamp};
use crate::ledger::page_flags as flags;

/// Name of the file in the archive's folder.
pub const SAMPLE_FILE: &str = "state/sample.prepared";

/// Maximum number of pages in the sample. It gives the share of pages that come before another with a standard error of
/// 1.6 %.
const PAGES_MAX: u32 = 1 << 10;

/// Number of columns with single values; the others have the opaque byte fields of a visit, `credit` and `extension`.
const FIELDS: usize = 15;
const COLUMNS: usize = FIELDS + (16 + 48) / 8;

/// A page of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// URL of the page.
    pub url: UrlId,
    /// The page, with only `flags`, `host` and `cash` set.
    pub page: Page,
    /// Its visit, with only what importance, change rate and age need.
    pub visit: Visit,
    /// For an alias, the importance of the page it stands for.
    pub alias: Option<f64>,
}

/// The sample has one in this many visits.
#[must_use]
pub fn sample_step(state: &State) -> u32 {
    state.visit_count().div_ceil(PAGES_MAX).max(1)
}

/// Returns the sample of an archive, in the order of first fetches, if it is of the checkpoint that the archive was
/// opened at.
///
/// # Errors
/// When the file is damaged.
pub fn sample(store: &Store) -> Result<Option<Vec<Sampled>>, PreparedError> {
    let Some(reader) = open(store, SAMPLE_FILE, of_sample(store.state()))? else { return Ok(None) };
    Ok(Some(reader.all_rows()?.iter().map(Sampled::of_values).collect()))
}

/// Returns the sampled visits of these pages, with their numbers.
pub(super) fn sampled<'a>(
    pages: &'a Pages<'_>,
    rows: &'a [PageTables],
) -> impl Iterator<Item = Result<(VisitId, Sampled), StateError>> + 'a {
    let step = sample_step(pages.state());
    rows.iter().filter_map(move |PageTables { id: url, page, visit, .. }| {
        let (number, visit) = page.visit.filter(|number| number.0.is_multiple_of(step)).zip(*visit)?;
        let alias = match page.flags.has_any(flags::ALIAS) {
            true => pages.importance_of_alias(*url),
            false => Ok(None),
        };
        Some(alias.map(|alias| (number, Sampled { url: *url, page: *page, visit, alias })))
    })
}

/// Writes the sample of the last checkpoint, in the order of visit numbers.
pub(super) fn write(
    state: &State,
    folder: &Path,
    mut rows: Vec<(VisitId, Sampled)>,
) -> Result<(), PreparedError> {
    rows.sort_by_key(|(number, _)| number.0);
    let rows: Vec<_> = rows.iter().map(|(_, row)| row.values()).collect();
    let mut writer = Writer::begin(&folder.join(SAMPLE_FILE), of_sample(state), BLOCK_ROWS)?;
    for block in rows.chunks(BLOCK_ROWS as usize) {
        for column in 0..COLUMNS {
            writer.add(&block.iter().map(|row| row[column]).collect::<Vec<_>>())?;
        }
    }
    writer.finish()
}

fn of_sample(state: &State) -> Stamp {
    stamp(state, state.visit_count().div_ceil(sample_step(state)), COLUMNS)
}

impl Sampled {
    fn values(&self) -> [u64; COLUMNS] {
        let Self { url, page, visit, alias } = self;
        let mut values = [0; COLUMNS];
        let (fields, words) = values.split_at_mut(FIELDS);
        fields.copy_from_slice(&[
            u64::from(url.0),
            u64::from(page.host.0),
            u64::from(page.flags.0),
            page.cash.cast_unsigned(),
            alias.map_or(u64::MAX, f64::to_bits),
            u64::from(visit.kind),
            u64::from(visit.captures),
            u64::from(visit.first_seen),
            u64::from(visit.last_seen),
            u64::from(visit.contents),
            u64::from(visit.last_attempt),
            u64::from(visit.failing_since),
            u64::from(visit.announced),
            u64::from(visit.announcements),
            u64::from(visit.announcements_confirmed),
        ]);
        let bytes = visit.credit.as_chunks().0.iter().chain(visit.extension.as_chunks().0);
        words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        values
    }

    fn of_values(values: &[u64; COLUMNS]) -> Self {
        let [
            url,
            host,
            flags,
            cash,
            alias,
            kind,
            captures,
            first_seen,
            last_seen,
            contents,
            last_attempt,
            failing_since,
            announced,
            said,
            true_ones,
            words @ ..,
        ] = values;
        let mut visit = Visit {
            kind: *kind as u8,
            captures: *captures as u32,
            first_seen: *first_seen as u32,
            last_seen: *last_seen as u32,
            contents: *contents as u32,
            last_attempt: *last_attempt as u32,
            failing_since: *failing_since as u32,
            announced: *announced as u32,
            announcements: *said as u16,
            announcements_confirmed: *true_ones as u16,
            ..Visit::default()
        };
        let places = visit.credit.as_chunks_mut().0.iter_mut().chain(visit.extension.as_chunks_mut().0);
        places.zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        let (host, flags, cash) = (HostId(*host as u32), PageFlags(*flags as u16), cash.cast_signed());
        let page = Page { cash, host, via: None, depth: 0, hop: 0, flags, visit: None };
        let alias =
            Some(f64::from_bits(*alias)).filter(|importance| importance.is_finite() && *importance >= 0.0);
        Self { url: UrlId(*url as u32), page, visit, alias }
    }
}

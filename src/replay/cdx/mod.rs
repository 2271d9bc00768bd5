//! The CDX server: lists captures as lines for programs. Parameters have the same meaning as in pywb and OpenWayback.
//!
//! A single URL is looked up; `prefix`, `host` and `domain` scan the names of all URLs. Several archives can answer as
//! one: each sends its matching rows ([`sent`]), which are then merged ([`merged`]).

mod field;
mod filter;
mod query;
mod rows;
mod table;

use archive_base::access::Access;
use archive_storage::Store;

use self::field::CdxField;
use self::query::{CdxQuery, Keys};
use self::rows::{CdxRow, CdxRows};
use self::table::{CdxSource as _, SentRows, answer, too_many};
use super::{ReplayError, ReplayRequest, Response};

pub use self::query::asks_for_many;
pub use self::table::Values;

/// Maximum number of captures that a query may examine.
pub const ROWS_MAX: usize = 250_000;

/// Maximum number of captures in an answer, and default number per page.
pub(super) const ANSWER_MAX: usize = 100_000;
const PAGE_ROWS: usize = 10_000;

impl ReplayRequest<'_> {
    /// `/cdx?…`
    pub(super) fn cdx(&self, query: &str) -> Result<Response, ReplayError> {
        let query = match CdxQuery::parse(query) {
            Ok(query) => query,
            Err(problem) => return Ok(mistake(&problem)),
        };
        let rows = CdxRows::new(self.store, self.access, ROWS_MAX);
        match meant(&rows, &query)? {
            Some(found) => answer(&rows, &query, found),
            None => Ok(mistake(&too_many())),
        }
    }
}

/// The rows that a query selects, sorted by key and time; `None` if there are too many.
fn meant(rows: &CdxRows<'_>, query: &CdxQuery) -> Result<Option<Vec<CdxRow>>, ReplayError> {
    let Some(found) = rows.gather(query)? else { return Ok(None) };
    let mut kept = Vec::new();
    for row in found {
        let mut passes = true;
        for filter in &query.filters {
            passes = passes && filter.passes(rows, &row)?;
        }
        if passes {
            kept.push(row);
        }
    }
    Ok(Some(kept))
}

/// Passes the rows of one archive for a query over several archives to `take`, sorted by key and time. Returns the
/// mistake in the query, if there is one.
///
/// # Errors
/// When the archive cannot be read, and the errors of `take`.
pub fn sent<E: From<ReplayError>>(
    store: &Store,
    access: &Access,
    query: &str,
    mut take: impl FnMut(Values) -> Result<(), E>,
) -> Result<Result<(), String>, E> {
    let query = match CdxQuery::parse(query) {
        Ok(query) => query,
        Err(problem) => return Ok(Err(problem)),
    };
    let rows = CdxRows::new(store, access, ROWS_MAX);
    let Some(found) = meant(&rows, &query)? else { return Ok(Err(too_many())) };
    for row in found.iter().take(query.rows_wanted().unwrap_or(found.len())) {
        let mut values = Values::default();
        for (value, field) in values.iter_mut().zip(CdxField::CDX) {
            *value = rows.value(row, field)?.map(Into::into);
        }
        take(values)?;
    }
    Ok(Ok(()))
}

/// Answers a query from the rows that several archives have sent, each sorted by key and time.
///
/// # Errors
/// As for an answer from one archive.
pub fn merged(query: &str, mut sent: Vec<Values>) -> Result<Response, ReplayError> {
    // The sort is stable: it keeps the order of one archive's captures within a second.
    sent.sort_by(|a, b| a[..2].cmp(&b[..2]));
    match CdxQuery::parse(query) {
        Ok(query) => answer(&SentRows, &query, sent),
        Err(problem) => Ok(mistake(&problem)),
    }
}

/// The host that a capture query is about, and whether the query may cover several hosts.
pub(super) fn host_asked(query: &str) -> Result<(String, bool), String> {
    CdxQuery::parse(query).map(|query| (query.host, matches!(query.keys, Keys::Range(..))))
}

fn mistake(problem: &str) -> Response {
    Response::text(400, "text/plain; charset=utf-8", format!("{problem}\n"))
}

#[cfg(test)]
mod tests {
    use super::{ROWS_MAX, Values, merged};

    #[test]
    fn rows_of_several_archives_have_a_limit_together() {
        let status = |count| merged("url=*.org&limit=1", vec![Values::default(); count]).unwrap().status;
        assert_eq!((status(ROWS_MAX), status(ROWS_MAX + 1)), (200, 400));
    }
}

//! The CDX server: which captures there are, as lines for programs. Parameters and their meaning are those of pywb and OpenWayback.
//!
//! One URL is looked up; `prefix`, `host` and `domain` take a pass over the names of all URLs. Several archives answer as one
//! ([`sent`], [`merged`]): each sends the rows that it means, and one merges them.

mod field;
mod filter;
mod query;
mod rows;
mod table;

use archive_storage::Store;

use self::field::Field;
use self::query::{Keys, Query};
use self::rows::{Row, Rows};
use self::table::{Sent, Table as _, answer, too_many};
use super::{Asked, Error, Response};
use crate::access::Access;

pub use self::table::Values;

/// Captures that one query may look at.
pub const ROWS_MAX: usize = 250_000;

/// Captures of one answer, and of a page if no size is asked for.
pub(super) const ANSWER_MAX: usize = 100_000;
const PAGE_ROWS: usize = 10_000;

impl Asked<'_> {
    /// `/cdx?…`
    pub(super) fn cdx(&self, query: &str) -> Result<Response, Error> {
        let query = match Query::parse(query) {
            Ok(query) => query,
            Err(problem) => return Ok(mistake(&problem)),
        };
        let rows = Rows::new(self.store, self.access, ROWS_MAX);
        match meant(&rows, &query)? {
            Some(found) => answer(&rows, &query, found),
            None => Ok(mistake(&too_many())),
        }
    }
}

/// The rows of a query, by key and time; nothing when there are too many.
fn meant(rows: &Rows<'_>, query: &Query) -> Result<Option<Vec<Row>>, Error> {
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

/// Gives `take` the rows of an archive that a query of several means, by key and time; or returns the mistake in the query.
///
/// # Errors
/// When the archive cannot be read, and what `take` reports.
pub fn sent<E: From<Error>>(
    store: &Store,
    access: &Access,
    query: &str,
    mut take: impl FnMut(Values) -> Result<(), E>,
) -> Result<Result<(), String>, E> {
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(problem) => return Ok(Err(problem)),
    };
    let rows = Rows::new(store, access, ROWS_MAX);
    let Some(found) = meant(&rows, &query)? else { return Ok(Err(too_many())) };
    for row in found.iter().take(query.rows_wanted().unwrap_or(found.len())) {
        let mut values = Values::default();
        for (value, field) in values.iter_mut().zip(Field::CDX) {
            *value = rows.value(row, field)?.map(Into::into);
        }
        take(values)?;
    }
    Ok(Ok(()))
}

/// The answer to a query from the rows that archives have sent; of each its own stand by key and time.
///
/// # Errors
/// Those of an answer from one archive.
pub fn merged(query: &str, mut sent: Vec<Values>) -> Result<Response, Error> {
    // Stable: what one archive has of one second stays as it is.
    sent.sort_by(|a, b| a[..2].cmp(&b[..2]));
    match Query::parse(query) {
        Ok(query) => answer(&Sent, &query, sent),
        Err(problem) => Ok(mistake(&problem)),
    }
}

/// The host that a query for captures is about, and whether it may be about several.
pub(super) fn host_asked(query: &str) -> Result<(String, bool), String> {
    Query::parse(query).map(|query| (query.host, matches!(query.keys, Keys::Range(..))))
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

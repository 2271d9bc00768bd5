//! Turns a query's syntax tree into rows: the selection language that every subcommand shares.
//!
//! [`Plan::parse`] turns text into a plan that is known to make sense: every field exists, every value suits its field,
//! every time is resolved. [`Question::answer`] runs the plan over [`Rows`], which the store provides, and over a [`FullText`]
//! index if it searches text.
//!
//! Invariants: a valid plan never fails because of what the user wrote, only because the store or index cannot be read;
//! ties are broken by id, so the same query over the same store gives the same answer.
//!
//! A row is a page, a site, a host, a capture (a version is one with new bytes) or a link. `language/fields` has the
//! table of their fields, from which help, messages and `docs/query.md` are generated. Fields of related rows are written
//! with a dot (`site.importance`). With `as of`, the rows are those of `rows/as_of`; the rest is unchanged. A query's
//! resource limits ([`Limits`]) and its execution statistics ([`Seen`]) belong to the [`Running`] query, which the rows
//! refer to.
//!
//! The folders, each of which uses only those below it:
//!
//! - `several`: archives here and on other machines as one, and what callers ask ([`Question`]).
//! - `run`: searches first, then conditions, groups and orders, row by row where columns do not answer.
//! - `columns`: an archive on disk. Conditions become a filter on prepared columns, evaluated by block, and orders, groups
//!   and samples take the same blocks.
//! - `rows`: what a plan runs over ([`Rows`]), and the evaluation of expressions on a row.
//! - `elements`: XML documents, on trees and in the index.
//! - `language`: fields, values, expressions and conditions; from text to a [`Plan`].
//!
//! A date means the whole day: `last seen <= 2026-01-31` includes that day, `last seen > 2026-01-31` starts after it.
//! Dates and times without a zone are in the computer's zone. `host = example.org` matches that host on every port,
//! `host = "example.org:8080"` only on this one. `title = ""` is `title is empty`. Without `order by`, captured pages
//! come before pages that are only linked to, both by importance. The fields of a page are unknown before its first
//! capture: a test of an unknown value is false, its negation true.

mod columns;
mod elements;
mod language;
mod rows;
mod run;
mod several;

#[cfg(test)]
mod element_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use columns::archive::{ArchiveRows, ArchiveRowsError};
pub(crate) use columns::captures::unreadable;
pub use elements::tree::NODES_LOOKED_AT_MAX;
pub use language::error::{Error, Late, RowsError};
pub use language::fields::{ColumnKind, IMPORTANCE_TODAY};
pub use language::help::{FieldHelp, fields, functions};
pub use language::plan::{Context, Heading, Plan};
pub use language::times::Zone;
pub use language::value::Value;
pub(crate) use rows::as_of::AsOf;
pub use rows::details::{CaptureRow, HostRow, LinkRow, PageDetail, Record, ResponseField};
pub use rows::digests::{FoundDigest, PageDigest};
pub use rows::full_text::FullText;
pub use rows::limits::{Limits, MEMORY_MIN, MEMORY_USUAL, Running, SPILLED_BYTES_MAX, UnreadRows};
pub use rows::score;
pub use rows::seen::{Seen, Step};
pub use rows::{Bucket, Chosen, DocumentReader, PageRow, PageText, Row, Rows, SaidTimes, SiteRow, Sum};
pub use run::execute::Answer;
pub use several::merge::{Together, answering};
pub use several::portions::{DOUBTFUL_MAX, Doubt, Portion, Taken};
pub use several::question::Question;
pub use several::wire::Sent;

use chrono::{DateTime, Utc};

/// Returns the first instant after a time written as in `as of` (for a day, its end); `None` if the text is not a time.
#[must_use]
pub fn end_of(time: &str) -> Option<DateTime<Utc>> {
    let context = Context::bare(Utc::now(), Zone::Local);
    let text = format!("page as of {time}");
    let query = archive_grammar::parse(&text).ok()?;
    let says_no_more = archive_grammar::Query { as_of: None, ..query.clone() } == Default::default();
    Plan::new(&query, &text, &context).ok().filter(|_| says_no_more)?.as_of
}

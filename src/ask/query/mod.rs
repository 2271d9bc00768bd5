//! Turns a query's syntax tree into rows: the selection language that every subcommand shares.
//!
//! [`Plan::parse`] turns text into a plan that is known to make sense: every field exists, every value suits its field,
//! every time is resolved. [`Plan::run`] runs the plan over [`Rows`], which the store provides, and over a [`FullText`]
//! index if it searches text.
//!
//! Invariants: a valid plan never fails because of what the user wrote, only because the store or index cannot be read;
//! ties are broken by id, so the same query over the same store gives the same answer.
//!
//! A row is a page, a site, a host, a capture (a version is one with new bytes) or a link. `columns` has the table of
//! their fields, from which help, messages and `docs/query.md` are generated. Fields of related rows are written with a
//! dot (`site.importance`). [`Rows`] supplies rows; a plan reads records last, and only where a condition or column
//! needs them. With `as of`, the rows are those of `as_of`; the rest of the pipeline is unchanged. Groups are streamed:
//! see `groups`. A query's resource limits ([`Limits`]) and its execution statistics ([`Seen`]) belong to the
//! [`Running`] query, which the rows refer to.
//!
//! A date means the whole day: `last seen <= 2026-01-31` includes that day, `last seen > 2026-01-31` starts after it.
//! Dates and times without a zone are in the computer's zone. `host = example.org` matches that host on every port,
//! `host = "example.org:8080"` only on this one. `title = ""` is `title is empty`. Without `order by`, captured pages
//! come before pages that are only linked to, both by importance. The fields of a page are unknown before its first
//! capture: a test of an unknown value is false, its negation true.

mod answered;
mod archive;
mod archive_pages;
mod archive_related;
mod archive_sites;
mod as_of;
mod batch;
mod best_sites;
mod block_rows;
mod calculated;
mod captures;
mod checks;
mod coded;
mod columnar;
mod columns;
mod details;
mod digests;
mod element_checks;
mod element_index;
mod element_reading;
mod elements;
mod elsewhere;
mod execute;
mod explain;
mod expr;
mod fields;
mod filter;
mod glob;
mod group_columns;
mod group_runs;
mod groups;
mod help;
mod hits;
mod indexes;
mod keyed;
mod numbers;
mod ordered;
mod page_facts;
mod passes;
mod plan;
mod portions;
mod prefilter;
mod question;
mod reading_ahead;
mod related;
mod rows;
mod running;
pub mod score;
mod searched;
mod sent;
mod software;
mod spill;
mod structured;
mod subject;
mod text_checks;
mod text_tests;
mod times;
mod together;
mod top;
mod topics;
mod typed;
mod value;
mod visit_tests;

#[cfg(test)]
mod element_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use archive::{ArchiveRows, ArchiveRowsError};
pub(crate) use as_of::AsOf;
pub(crate) use captures::unreadable;
pub use columns::ColumnKind;
pub use columns::IMPORTANCE_TODAY;
pub use details::{Asked, CaptureRow, HostRow, LinkRow, PageDetail, Record};
pub use digests::{Digest, PageDigest};
pub use elements::NODES_LOOKED_AT_MAX;
pub use execute::Answer;
pub use explain::{Seen, Step};
pub use help::{FieldHelp, fields, functions};
pub use plan::{Context, Heading, Plan};
pub use portions::{DOUBTFUL_MAX, Doubt, Portion, Taken};
pub use question::{Question, select};
pub use rows::{
    Chosen, DocumentReader, PageRow, PageText, PageType, Row, Rows, RowsError, SiteRow, Sort, Sum,
};
pub use running::{Late, Limits, MEMORY_MIN, MEMORY_USUAL, Running, SPILLED_BYTES_MAX, UnreadRows};
pub use sent::Sent;
pub use times::Zone;
pub use together::{Together, answering};
pub use value::Value;

use archive_books::search::elements::ElementQuery;
use archive_books::search::{self, Structures, TextQuery};
use archive_storage::UrlId;
use chrono::{DateTime, Utc};

/// A point in time.
type Instant = DateTime<Utc>;

/// A full-text index of pages.
pub trait FullText {
    /// Returns every page that matches `query` with its BM25, in any order.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError>;

    /// Like [`FullText::hits`], without BM25.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn pages_with(&self, query: &TextQuery) -> Result<Vec<UrlId>, RowsError> {
        Ok(self.hits(query)?.into_iter().map(|(page, _)| page).collect())
    }

    /// Returns the BM25 of one page; 0 if it does not match `query`.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn bm25(&self, query: &TextQuery, page: UrlId) -> Result<f32, RowsError> {
        let found = self.hits(query)?.into_iter().find(|(id, _)| *id == page);
        Ok(found.map_or(0.0, |(_, bm25)| bm25))
    }

    /// Returns every page whose elements may match `query`, or only those that are known to match, in any order; `None`
    /// if the index cannot answer this.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn documents(&self, query: &ElementQuery, are_known: bool) -> Result<Option<Vec<UrlId>>, RowsError> {
        let _ = (query, are_known);
        Ok(None)
    }

    /// Returns the structure of XML documents by page, as stored in the index.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn structures(&self) -> Result<Structures, RowsError> {
        Ok(Structures::default())
    }
}

/// Only the elements of the newest versions are indexed.
impl FullText for search::View<'_> {
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError> {
        Ok(self.search(query)?)
    }

    fn pages_with(&self, query: &TextQuery) -> Result<Vec<UrlId>, RowsError> {
        Ok(search::View::pages_with(self, query)?)
    }

    fn bm25(&self, query: &TextQuery, page: UrlId) -> Result<f32, RowsError> {
        Ok(search::View::bm25(self, query, page)?)
    }

    fn documents(&self, query: &ElementQuery, are_known: bool) -> Result<Option<Vec<UrlId>>, RowsError> {
        Ok(self.with_elements(query, are_known)?)
    }

    fn structures(&self) -> Result<Structures, RowsError> {
        Ok(search::View::structures(self)?)
    }
}

/// Returns the first instant after a time written as in `as of` (for a day, its end); `None` if the text is not a time.
#[must_use]
pub fn end_of(time: &str) -> Option<DateTime<Utc>> {
    let context = Context::bare(Utc::now(), Zone::Local);
    let text = format!("page as of {time}");
    let query = archive_grammar::parse(&text).ok()?;
    let says_no_more = archive_grammar::Query { as_of: None, ..query.clone() } == Default::default();
    Plan::new(&query, &text, &context).ok().filter(|_| says_no_more)?.as_of
}

/// Why a query could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query's text is invalid.
    #[error("in the query, {0}")]
    Query(#[from] archive_grammar::ParseError),
    /// The query selects sites where pages are wanted.
    #[error("the query selects sites: select their pages, as in 'page site = \"example.org\"'")]
    Sites,
    /// The query selects something else where pages are wanted.
    #[error(
        "the query selects {what}, but pages are needed here: select pages, as in 'page site = \"example.org\"'"
    )]
    NotPages {
        /// What the query selects.
        what: &'static str,
    },
    /// The query's groups, or the rows to be sorted, do not fit into memory and temporary files.
    #[error(
        "the groups or rows of this query need more than {} MiB: select fewer rows, add `limit N`, or group by something with fewer values", (*memory as u64 + disk) >> 20
    )]
    TooMuch {
        /// Memory limit in bytes.
        memory: usize,
        /// Limit of temporary files in bytes.
        disk: u64,
    },
    /// An operation on a temporary file failed.
    #[error("a temporary file in {} cannot be used", std::env::temp_dir().display())]
    Spill(#[source] std::io::Error),
    /// The query searches text, but the archive has no index.
    #[error(
        "this archive has no full-text index, which `text contains` needs; `archive crawl` without --no-full-text makes it"
    )]
    NoIndex,
    /// The query searches text as of a time, but the archive has no index of older versions.
    #[error(transparent)]
    NoVersions(search::Error),
    /// Too many pages match for which only other archives can decide whether they count.
    #[error(
        "more than {DOUBTFUL_MAX} matching pages have no capture here, and other archives may have captured them: add `captures > 0`"
    )]
    TooManyDoubtful,
    /// The query needs something that archives on other machines cannot answer together.
    #[error(
        "{what} cannot be queried across archives on other machines: query local folders, or each archive by itself"
    )]
    NotElsewhere {
        /// What the query needs.
        what: &'static str,
    },
    /// Each of several archives is to select by itself, but the query needs something that only all of them together
    /// know.
    #[error(
        "each archive selects its rows independently, so limit, offset, sample, the score (add `order by url` to a text search) and relations to another query are not allowed"
    )]
    NotOfEach,
    /// Several archives are exported, some of them on other machines, but the query selects only part of what matches.
    #[error(
        "an export from nodes contains everything that matches: leave out limit, offset and sample, or export local folders"
    )]
    NotWhole,
    /// The query timed out.
    #[error(transparent)]
    Late(#[from] Late),
    /// The store cannot be read.
    #[error("cannot read the archive")]
    Rows(#[source] RowsError),
    /// The index cannot be read.
    #[error("cannot read the full-text index")]
    Search(#[source] RowsError),
}

impl Error {
    /// Whether the query timed out.
    #[must_use]
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Late(_))
    }

    /// Whether the query itself is at fault, rather than the store or index.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        matches!(
            self,
            Self::Query(_)
                | Self::Sites
                | Self::NotPages { .. }
                | Self::NotElsewhere { .. }
                | Self::NotOfEach
                | Self::NotWhole
        )
    }
}

impl From<RowsError> for Error {
    fn from(error: RowsError) -> Self {
        error.downcast::<Late>().map_or_else(Self::Rows, |late| Self::Late(*late))
    }
}

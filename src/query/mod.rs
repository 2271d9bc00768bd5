//! From a query's syntax tree to rows: the one selection language of every subcommand.
//!
//! [`Plan::parse`] turns text into a plan that is known to make sense: every field exists, every value suits its field,
//! every time is resolved. [`Plan::run`] runs it over [`Rows`], which the store provides, and over a [`FullText`] index
//! when it searches text.
//!
//! Invariants: a plan that was made cannot fail for what the user wrote, only for what the store or index cannot read;
//! equal rows come in the order of their ids, so the same query over the same store gives the same answer.
//!
//! | Field | of | Meaning |
//! |---|---|---|
//! | `importance` | both | mean 1 over all known pages, or sites |
//! | `url` `host` `site` `title` `language` | pages | texts; `site` also names a site |
//! | `type` | pages | `html`, `xml` (feeds and sitemaps too), `feed`, `sitemap`, `image`, …, or a content type |
//! | `status` `depth` `captures` `versions` | pages | numbers |
//! | `pages` `captures` `html` `xml` `other` | sites | captured pages, captures, captured pages by type |
//! | `first seen` `last seen` `changed` | both, `changed` only pages | times |
//! | `text` | pages | title and body of the newest version, searched with `contains` |
//! | `score` | pages | how well a page answers the search, see [`score::combined`] |
//!
//! A date means the whole day: `last seen <= 2026-01-31` includes that day, `last seen > 2026-01-31` starts after it.
//! Dates and times without a zone are those of the computer's zone. `host = example.org` finds that host on every port,
//! `host = "example.org:8080"` on this one. `title = ""` is `title is empty`. Without `order by`, what was captured comes
//! before what is only linked to, each by importance. Nothing is known of a page before its first capture:
//! a test of an unknown value is false, its negation true.

mod archive;
mod checks;
mod columns;
mod execute;
mod filter;
mod glob;
mod hits;
mod plan;
mod question;
mod rows;
pub mod score;
mod subject;
mod times;
mod top;
mod value;

#[cfg(test)]
mod tests;

pub use archive::{ArchiveRows, ArchiveRowsError};
pub use columns::ColumnKind;
pub use execute::Answer;
pub use plan::{Context, Heading, Plan};
pub use question::{Question, select};
pub use rows::{PageRow, PageText, PageType, Rows, RowsError, SiteRow};
pub use times::Zone;
pub use value::Value;

use archive_storage::UrlId;

use crate::search::{self, TextQuery};

/// An index of the texts of pages.
pub trait FullText {
    /// Every page that `query` finds, in any order, with its BM25.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError>;
}

impl FullText for search::Reader {
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError> {
        Ok(self.search(query)?)
    }
}

/// Why a query could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query's text is wrong.
    #[error("in the query, {0}")]
    Query(#[from] archive_grammar::ParseError),
    /// The query asks for sites where pages are wanted.
    #[error("the query asks for sites: ask for their pages, as in 'page site = \"example.org\"'")]
    Sites,
    /// The query searches text, and the archive has no index.
    #[error(
        "this archive has no full-text index, which `text contains` needs; `archive crawl` without --no-full-text makes it"
    )]
    NoIndex,
    /// The store cannot be read.
    #[error("cannot read the archive")]
    Rows(#[source] RowsError),
    /// The index cannot be read.
    #[error("cannot read the full-text index")]
    Search(#[source] RowsError),
}

impl Error {
    /// Whether it is a mistake in what was asked, not in what was found.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        matches!(self, Self::Query(_) | Self::Sites)
    }
}

impl From<RowsError> for Error {
    fn from(error: RowsError) -> Self {
        Self::Rows(error)
    }
}

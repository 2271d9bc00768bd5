//! What filters on columns are made from.

use archive_books::prepared::BySite;
use archive_grammar::QueryRows;

use crate::query::columns::archive::ArchiveRows;
use crate::query::rows::Hits;

/// The context from which tests are built, besides a plan's conditions.
#[derive(Clone, Copy)]
pub(crate) struct FilterContext<'a, 'r, 'h> {
    pub(crate) target: QueryRows,
    pub(crate) archive: &'a ArchiveRows<'r>,
    pub(crate) hits: &'h Hits<'h>,
    /// The pages of each site, if available.
    pub(crate) by_site: Option<&'a BySite>,
}

//! What text searches need of a full-text index.

use archive_books::search::elements::ElementQuery;
use archive_books::search::{self, Needs, Structures, TextQuery};
use archive_storage::UrlId;

use crate::query::language::RowsError;

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

    /// Returns, for some passages of a text, the pages that have each; `None` if the index cannot answer this.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn passages(&self, text: &str) -> Result<Option<Vec<Vec<UrlId>>>, RowsError> {
        let _ = text;
        Ok(None)
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

    /// Returns pages whose text surely does not fit a pattern that needs this, in any order.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn lacking(&self, needs: &Needs) -> Result<Vec<UrlId>, RowsError> {
        let _ = needs;
        Ok(Vec::new())
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
impl FullText for search::IndexView<'_> {
    fn hits(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, RowsError> {
        Ok(self.search(query)?)
    }

    fn pages_with(&self, query: &TextQuery) -> Result<Vec<UrlId>, RowsError> {
        Ok(search::IndexView::pages_with(self, query)?)
    }

    fn bm25(&self, query: &TextQuery, page: UrlId) -> Result<f32, RowsError> {
        Ok(search::IndexView::bm25(self, query, page)?)
    }

    fn passages(&self, text: &str) -> Result<Option<Vec<Vec<UrlId>>>, RowsError> {
        Ok(Some(search::IndexView::passages(self, text)?))
    }

    fn documents(&self, query: &ElementQuery, are_known: bool) -> Result<Option<Vec<UrlId>>, RowsError> {
        Ok(self.with_elements(query, are_known)?)
    }

    fn lacking(&self, needs: &Needs) -> Result<Vec<UrlId>, RowsError> {
        Ok(search::IndexView::lacking(self, needs)?)
    }

    fn structures(&self) -> Result<Structures, RowsError> {
        Ok(search::IndexView::structures(self)?)
    }
}

//! What is searched at once: the newest versions, or what stood at a time.

use std::path::Path;

use archive_storage::{Store, UrlId};
use chrono::{DateTime, Utc};
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::error::{Error, guarded};
use super::reader::Reader;
use super::versions::{Standing, VERSIONS_FOLDER};
use super::{FOLDER, TextQuery};
use crate::access::Access;

/// Indexes that are searched as one, and which of their documents count.
///
/// BM25 counts documents and words of all indexes, whether they stood then or not: for a search as of a time, of all versions.
#[derive(Debug)]
pub struct View<'a> {
    readers: Vec<Reader>,
    standing: Option<Standing<'a>>,
    behind: u64,
}

impl From<Reader> for View<'_> {
    fn from(newest: Reader) -> Self {
        Self { readers: vec![newest], standing: None, behind: 0 }
    }
}

impl<'a> View<'a> {
    /// What stood in an archive before an instant, as far as `access` shows it.
    ///
    /// # Errors
    /// As [`Reader::open`]; [`Error::NoVersions`] when the archive keeps no index of older versions.
    pub fn past(store: &'a Store, access: Access, before: DateTime<Utc>) -> Result<Self, Error> {
        let newest = Reader::open(&store.path().join(FOLDER))?;
        let older = match Reader::open(&store.path().join(VERSIONS_FOLDER)) {
            Err(Error::Missing { .. }) => return Err(Error::NoVersions),
            older => older?,
        };
        let behind = store.state().totals().captures.saturating_sub(older.watermark());
        let standing = Standing::new(store.state(), access, before, newest.watermark());
        Ok(Self { readers: vec![newest, older], standing: Some(standing), behind })
    }

    /// What stood then; none for the newest versions.
    #[must_use]
    pub fn standing(&self) -> Option<&Standing<'a>> {
        self.standing.as_ref()
    }

    /// Captures of which the index of older versions does not know yet what they replaced.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Whether a document counts.
    pub(super) fn counts(&self, page: UrlId, version: Option<u64>) -> Result<bool, Error> {
        Ok(self.standing.as_ref().map_or(Ok(true), |standing| standing.has(page, version))?)
    }

    pub(super) fn searchers(&self) -> Searchers {
        Searchers(self.readers.iter().map(Reader::searcher).collect())
    }

    /// Does something with the indexes.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        guarded(self.folder(), work)
    }

    pub(super) fn folder(&self) -> &Path {
        self.readers.first().map_or(Path::new(FOLDER), Reader::folder)
    }

    /// Every page that `query` finds, in no order, with its BM25, as [`Reader::search`] has it.
    ///
    /// # Errors
    /// When an index or a history cannot be read.
    pub fn search(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, Error> {
        let searchers = self.searchers();
        let mut found = Vec::new();
        for reader in &self.readers {
            for (page, version, bm25) in reader.hits(query, &searchers)? {
                if self.counts(page, version)? {
                    found.push((page, bm25));
                }
            }
        }
        Ok(found)
    }
}

/// What the indexes of a view had when it was looked at.
pub(super) struct Searchers(pub(super) Vec<Searcher>);

impl Searchers {
    fn sum(&self, of: impl Fn(&Searcher) -> tantivy::Result<u64>) -> tantivy::Result<u64> {
        self.0.iter().map(of).sum()
    }
}

impl Bm25StatisticsProvider for Searchers {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.total_num_tokens(field))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.sum(Searcher::total_num_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.doc_freq(term))
    }
}

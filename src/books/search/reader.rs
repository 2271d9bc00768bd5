//! Reads the last commit, even while the crawler goes on writing in another process.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use archive_base::files::FileStamp;
use archive_storage::UrlId;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Query as _};
use tantivy::{
    DocId, Index, IndexReader, ReloadPolicy, Score, Searcher, SegmentOrdinal, SegmentReader, Term,
};

use super::directory::RegularFiles;
use super::elements::{self, ElementQuery};
use super::error::{SearchError, guarded};
use super::schema::{self, IndexSchema};
use super::structures::{self, Structures};
use super::{Needs, TextQuery, collect, lacking, terms, writer};

/// Maximum attempts to open an index that is replaced by another one meanwhile.
const OPENINGS_MAX: u32 = 8;

/// An index as of one commit.
#[derive(Clone)]
pub struct SearchReader {
    folder: PathBuf,
    reader: IndexReader,
    fields: IndexSchema,
    watermark: u64,
    state: Option<u64>,
}

impl std::fmt::Debug for SearchReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("folder", &self.folder).field("watermark", &self.watermark).finish()
    }
}

/// Returns the stamp of the file that each commit of the index in `folder` rewrites, if there is one.
#[must_use]
pub fn commit_of(folder: &Path) -> Option<FileStamp> {
    FileStamp::of(&folder.join("meta.json"))
}

/// Indexes kept open between searches until their next commit: opening one costs as much as the rest of a search.
#[derive(Debug, Default)]
pub struct Readers(Mutex<HashMap<PathBuf, (FileStamp, SearchReader)>>);

impl Readers {
    /// Returns the index in `folder` as of its last commit.
    ///
    /// # Errors
    /// As [`SearchReader::open`].
    pub fn open(&self, folder: &Path) -> Result<SearchReader, SearchError> {
        let open = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before the index is opened: the next search then sees any commit made in between.
        let Some(commit) = commit_of(folder) else {
            open().remove(folder);
            return SearchReader::open(folder);
        };
        if let Some((_, reader)) = open().get(folder).filter(|(known, _)| *known == commit) {
            return Ok(reader.clone());
        }
        let reader = SearchReader::open(folder)?;
        open().insert(folder.to_owned(), (commit, reader.clone()));
        Ok(reader)
    }
}

/// Identifies a folder regardless of its name, by device and inode.
fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).ok().map(|folder| (folder.dev(), folder.ino()))
}

impl SearchReader {
    /// Opens the index in `folder` as of its last commit.
    ///
    /// # Errors
    /// [`SearchError::Missing`] when there is none; [`SearchError::OtherVersion`], [`SearchError::Damaged`] or [`SearchError::Io`].
    pub fn open(folder: &Path) -> Result<Self, SearchError> {
        let mut openings = 1;
        loop {
            let before = identity(folder);
            match guarded(folder, || Self::open_unguarded(folder)) {
                // A rebuild has put another index in its place in the meantime.
                Err(_) if openings < OPENINGS_MAX && identity(folder) != before => openings += 1,
                opened => return opened,
            }
        }
    }

    fn open_unguarded(folder: &Path) -> Result<Self, SearchError> {
        let error = |source| SearchError::opening(folder, source);
        let directory = RegularFiles::open(folder).map_err(|source| error(source.into()))?;
        let mut index = Index::open(directory).map_err(error)?;
        if !schema::is_ours(&index) {
            return Err(SearchError::OtherVersion { folder: folder.to_owned() });
        }
        index.set_tokenizers(schema::tokenizers());
        // The watermark comes first: after a commit in between, the reader knows more than its watermark says, never
        // less.
        let (watermark, state) = writer::watermark(folder, &index)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(error)?;
        let (_, fields) = IndexSchema::schema(false);
        Ok(Self { folder: folder.to_owned(), reader, fields, watermark, state })
    }

    /// Watermark of the commit; the index reflects at least this much.
    #[must_use]
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Identity of the state whose page numbers the index uses; none before the first commit.
    #[must_use]
    pub fn state(&self) -> Option<u64> {
        self.state
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Number of pages in the index.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Returns every page that `query` finds, in no order, with its BM25 (k1 = 1.2, b = 0.75; title counts double, URL
    /// half), computed from `statistics`.
    pub(super) fn scored(
        &self,
        query: &TextQuery,
        statistics: &dyn Bm25StatisticsProvider,
    ) -> Result<Vec<(UrlId, f32)>, SearchError> {
        let query = terms::compile(query, self.fields);
        self.collected(|searcher| {
            let scoring = EnableScoring::enabled_from_statistics_provider(statistics, searcher);
            collect::scored(searcher, &*query.weight(scoring)?)
        })
    }

    /// The same without BM25, which is cheaper.
    pub(super) fn pages_with(&self, query: &TextQuery) -> Result<Vec<UrlId>, SearchError> {
        let query = terms::compile(query, self.fields);
        self.collected(|searcher| {
            collect::pages_with(searcher, &*query.weight(EnableScoring::disabled_from_searcher(searcher))?)
        })
    }

    /// Returns the BM25 of one page, computed from `statistics`; 0 if the query does not find the page.
    pub(super) fn bm25(
        &self,
        query: &TextQuery,
        page: UrlId,
        statistics: &dyn Bm25StatisticsProvider,
    ) -> Result<f32, SearchError> {
        let query = terms::compile(query, self.fields);
        let term = Term::from_field_u64(self.fields.page, u64::from(page.0));
        self.collected(|searcher| {
            let scoring = EnableScoring::enabled_from_statistics_provider(statistics, searcher);
            collect::score(searcher, &*query.weight(scoring)?, &term)
        })
    }

    /// Returns every document that `query` finds: page, number of the older version if it is one, and BM25 from
    /// `statistics`.
    pub(super) fn hits(
        &self,
        query: &TextQuery,
        statistics: &dyn Bm25StatisticsProvider,
    ) -> Result<Vec<IndexHit>, SearchError> {
        let query = terms::compile(query, self.fields);
        self.collected(|searcher| searcher.search_with_statistics_provider(&query, &EveryHit, statistics))
    }

    /// Returns the pages whose elements may match `query` or, with `are_known`, only those known to match, in no order.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn with_elements(&self, query: &ElementQuery, are_known: bool) -> Result<Vec<UrlId>, SearchError> {
        self.collected(|searcher| {
            let query = elements::compile(query, are_known, self.fields, searcher)?;
            collect::pages(searcher, &*query.weight(EnableScoring::disabled_from_searcher(searcher))?)
        })
    }

    /// Returns the pages whose text cannot fit a regular expression that needs this, in no order: see [`Needs`]. Also
    /// returns up to which capture this is so: that of the commit; `None` if there is a later commit already.
    pub(super) fn lacking(&self, needs: &Needs) -> Result<Option<(Vec<UrlId>, u64)>, SearchError> {
        let found = self.collected(|searcher| lacking::lacking(searcher, self.fields, needs))?;
        let (now, _) = writer::watermark(&self.folder, self.searcher().index())?;
        Ok((now == self.watermark).then_some((found, now)))
    }

    fn collected<T>(&self, work: impl FnOnce(&Searcher) -> tantivy::Result<T>) -> Result<T, SearchError> {
        guarded(&self.folder, || {
            work(&self.reader.searcher()).map_err(|source| SearchError::of(&self.folder, source))
        })
    }

    /// Returns the document-level properties of XML documents.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn structures(&self) -> Result<Structures, SearchError> {
        self.collected(Structures::read)
    }

    /// Returns the pages of XML documents that have a document type, in ascending order.
    pub(crate) fn pages_with_doctype(&self) -> Result<Vec<UrlId>, SearchError> {
        self.collected(structures::with_doctype)
    }
}

/// Page, number of the older version if it is one, and score.
pub(super) type IndexHit = (UrlId, Option<u64>, f32);

/// Collects every document with its score.
struct EveryHit;

/// The hits of one segment.
struct SegmentHits {
    page: Column<u64>,
    version: Option<Column<u64>>,
    hits: Vec<IndexHit>,
}

impl Collector for EveryHit {
    type Fruit = Vec<IndexHit>;
    type Child = SegmentHits;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentHits> {
        let columns = segment.fast_fields();
        let version = columns.column_opt(schema::VERSION)?;
        Ok(SegmentHits { page: columns.u64("page")?, version, hits: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, segments: Vec<Vec<IndexHit>>) -> tantivy::Result<Vec<IndexHit>> {
        Ok(segments.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentHits {
    type Fruit = Vec<IndexHit>;

    fn collect(&mut self, document: DocId, score: Score) {
        let page = self.page.first(document).and_then(|page| u32::try_from(page).ok());
        let version = self.version.as_ref().and_then(|column| column.first(document));
        self.hits.extend(page.map(|page| (UrlId(page), version, score)));
    }

    fn harvest(self) -> Vec<IndexHit> {
        self.hits
    }
}

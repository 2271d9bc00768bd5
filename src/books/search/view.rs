//! What one search covers: the newest versions, or those current at a given time.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use archive_base::access::Access;
use archive_storage::{CaptureId, State, Store, UrlId, Veil};
use chrono::{DateTime, Utc};
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Searcher, SegmentReader, TERMINATED, Term};

use super::elements::ElementQuery;
use super::error::{SearchError, guarded};
use super::forms::WordForm;
use super::reader::{Readers, SearchReader};
use super::statistics::Statistics;
use super::versions::{PagesAsOf, VERSIONS_FOLDER};
use super::{FOLDER, Needs, Structures, TextQuery};

/// Indexes of an archive that are searched as one, and which of their documents count.
///
/// BM25 statistics cover all documents of all indexes, current at that time or not: a search as of a time counts all
/// versions.
pub struct IndexView<'a> {
    readers: Vec<SearchReader>,
    standing: Option<PagesAsOf<'a>>,
    behind: u64,
    /// The archive's state; none for an index by itself.
    state: Option<&'a State>,
    veil: Option<&'a Veil>,
    /// Indexes of other archives that are searched together with these, each with what it hides.
    beside: Vec<(Searcher, Option<&'a Veil>)>,
    /// Statistics of all indexes, including those on other machines.
    reported: Option<Statistics>,
    /// Forms of the words that were looked up so far.
    pub(super) forms: Mutex<HashMap<String, Vec<WordForm>>>,
}

impl From<SearchReader> for IndexView<'_> {
    fn from(newest: SearchReader) -> Self {
        Self::new(vec![newest], None, 0)
    }
}

/// Returns an index of an archive; reuses it if it is open already.
fn reader(store: &Store, name: &str, open: Option<&Readers>) -> Result<SearchReader, SearchError> {
    let folder = store.path().join(name);
    open.map_or_else(|| SearchReader::open(&folder), |open| open.open(&folder))
}

impl<'a> IndexView<'a> {
    fn new(readers: Vec<SearchReader>, standing: Option<PagesAsOf<'a>>, behind: u64) -> Self {
        let (beside, forms) = (Vec::new(), Mutex::default());
        Self { readers, standing, behind, state: None, veil: None, beside, reported: None, forms }
    }

    /// Views the versions that were current in an archive before an instant, as far as `access` shows them.
    ///
    /// # Errors
    /// As [`SearchReader::open`]; [`SearchError::NoVersions`] when the archive keeps no index of older versions.
    pub fn past(
        store: &'a Store,
        access: Access,
        before: DateTime<Utc>,
        open: Option<&Readers>,
    ) -> Result<Self, SearchError> {
        let newest = reader(store, FOLDER, open)?;
        let older = match reader(store, VERSIONS_FOLDER, open) {
            Err(SearchError::Missing { .. }) => return Err(SearchError::NoVersions),
            older => older?,
        };
        let behind = store.state().totals().captures.saturating_sub(older.watermark());
        let standing = PagesAsOf::new(store.state(), access, before, newest.watermark());
        let readers = vec![newest, older];
        Ok(Self { veil: store.state().veil(), ..Self::new(readers, Some(standing), behind) })
    }

    /// Views an archive as it was before an instant, or as it is now.
    ///
    /// # Errors
    /// As [`IndexView::past`].
    pub fn of(
        store: &'a Store,
        access: &Access,
        before: Option<DateTime<Utc>>,
        open: Option<&Readers>,
    ) -> Result<Self, SearchError> {
        let state = store.state();
        match before {
            Some(before) => Self::past(store, access.clone(), before, open),
            None => {
                let newest = reader(store, FOLDER, open)?;
                Ok(Self { state: Some(state), veil: state.veil(), ..newest.into() })
            }
        }
    }

    /// Joins views into parts of one index: scores in each are as if all documents were in a single index.
    pub fn join(views: &mut [Self]) {
        let all: Vec<Vec<_>> = views.iter().map(|view| view.searchers().all).collect();
        for (own, view) in views.iter_mut().enumerate() {
            let others = all.iter().enumerate().filter(|(other, _)| *other != own);
            view.beside = others.flat_map(|(_, searchers)| searchers.iter().cloned()).collect();
        }
    }

    /// Sets the statistics of all parts, if some are on other machines.
    pub fn join_all(&mut self, reported: Statistics) {
        self.reported = Some(reported);
    }

    /// Returns the index of newest versions, if the view is of these.
    #[must_use]
    pub fn newest(&self) -> Option<&SearchReader> {
        self.readers.first().filter(|_| self.standing.is_none())
    }

    /// Returns the pages as of the view's time; none for the newest versions.
    #[must_use]
    pub fn standing(&self) -> Option<&PagesAsOf<'a>> {
        self.standing.as_ref()
    }

    /// Number of captures that the index of older versions does not reflect yet.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Whether a document counts.
    pub(super) fn counts(&self, page: UrlId, version: Option<u64>) -> Result<bool, SearchError> {
        match &self.standing {
            Some(standing) => Ok(standing.has(page, version)?),
            None => Ok(reads(self.veil, page)),
        }
    }

    /// Of pages of the newest versions, those whose text may be read.
    fn readable(&self, mut pages: Vec<UrlId>) -> Vec<UrlId> {
        pages.retain(|page| reads(self.veil, *page));
        pages
    }

    /// Returns the pages whose elements may match `query`, or are known to; none if older versions are viewed.
    ///
    /// # Errors
    /// As [`SearchReader::with_elements`].
    pub fn with_elements(
        &self,
        query: &ElementQuery,
        are_known: bool,
    ) -> Result<Option<Vec<UrlId>>, SearchError> {
        let found = self.newest().map(|newest| newest.with_elements(query, are_known)).transpose()?;
        Ok(found.map(|found| self.readable(found)))
    }

    /// Returns pages whose text surely does not fit a regular expression that needs this. Pages whose newest version is
    /// not in the index, not with all of its words, or not to be read, are not among them.
    ///
    /// # Errors
    /// When the index or a capture cannot be read.
    pub fn lacking(&self, needs: &Needs) -> Result<Vec<UrlId>, SearchError> {
        let Some(newest) = self.newest() else { return Ok(Vec::new()) };
        let Some((found, reflected)) = newest.lacking(needs)? else { return Ok(Vec::new()) };
        let mut lacking = self.readable(found);
        if let Some(state) = self.state {
            let captures = state.totals().captures;
            // An index that is ahead of the state may have newer versions.
            if reflected > captures {
                return Ok(Vec::new());
            }
            let later = (reflected..captures).filter_map(|number| u32::try_from(number).ok());
            let later = later.map(|number| Ok(state.capture(CaptureId(number))?.url));
            let later = later.collect::<Result<HashSet<_>, SearchError>>()?;
            lacking.retain(|page| !later.contains(page));
        }
        Ok(lacking)
    }

    /// Returns the document-level properties of XML documents; none if older versions are viewed.
    ///
    /// # Errors
    /// As [`SearchReader::structures`].
    pub fn structures(&self) -> Result<Structures, SearchError> {
        let (mut shown, found) =
            (Structures::default(), self.newest().map(SearchReader::structures).transpose()?);
        shown.add(found.unwrap_or_default(), |page| reads(self.veil, page).then_some(page));
        Ok(shown)
    }

    /// Returns the archive's own indexes.
    pub(super) fn searchers(&self) -> Searchers<'a> {
        Searchers {
            all: self.readers.iter().map(|reader| (reader.searcher(), self.veil)).collect(),
            reported: None,
        }
    }

    /// Returns the archive's own indexes and those of other archives.
    pub(super) fn whole(&self) -> Searchers<'a> {
        let mut whole = self.searchers();
        whole.all.extend(self.beside.iter().cloned());
        whole.reported.clone_from(&self.reported);
        whole
    }

    /// Runs `work` on the indexes, guarded against damage.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
        guarded(self.folder(), work)
    }

    pub(super) fn folder(&self) -> &Path {
        self.readers.first().map_or(Path::new(FOLDER), SearchReader::folder)
    }

    /// Returns every page that `query` finds, in no order.
    ///
    /// # Errors
    /// When an index or a history cannot be read.
    pub fn pages_with(&self, query: &TextQuery) -> Result<Vec<UrlId>, SearchError> {
        match self.newest() {
            Some(newest) => Ok(self.readable(newest.pages_with(query)?)),
            None => Ok(self.search(query)?.into_iter().map(|(page, _)| page).collect()),
        }
    }

    /// The same, with BM25 (k1 = 1.2, b = 0.75; title counts double, URL half).
    ///
    /// # Errors
    /// As [`IndexView::pages_with`].
    pub fn search(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, SearchError> {
        let whole = self.whole();
        if let Some(newest) = self.newest() {
            let mut found = newest.scored(query, &whole)?;
            found.retain(|(page, _)| reads(self.veil, *page));
            return Ok(found);
        }
        let mut found = Vec::new();
        for reader in &self.readers {
            for (page, version, bm25) in reader.hits(query, &whole)? {
                if self.counts(page, version)? {
                    found.push((page, bm25));
                }
            }
        }
        Ok(found)
    }

    /// Returns the BM25 of one page; 0 if `query` does not find it.
    ///
    /// # Errors
    /// As [`IndexView::search`].
    pub fn bm25(&self, query: &TextQuery, page: UrlId) -> Result<f32, SearchError> {
        match self.newest() {
            Some(_) if !reads(self.veil, page) => Ok(0.0),
            Some(newest) => newest.bm25(query, page, &self.whole()),
            None => {
                let found = self.search(query)?;
                Ok(found.into_iter().find(|(id, _)| *id == page).map_or(0.0, |(_, bm25)| bm25))
            }
        }
    }
}

/// Contents of a view's indexes when it was opened.
pub(super) struct Searchers<'a> {
    /// Each with what its archive hides.
    pub(super) all: Vec<(Searcher, Option<&'a Veil>)>,
    /// Statistics that replace those of the indexes.
    reported: Option<Statistics>,
}

/// Whether the text of a page's newest version may be read.
fn reads(veil: Option<&Veil>, page: UrlId) -> bool {
    veil.is_none_or(|veil| !veil.unread.contains(&page))
}

/// Number of documents of a segment that have a term: as its index says, which counts removed ones, too, or behind a veil
/// without those that are hidden or removed, which may be hidden versions.
pub(super) fn shown_with(
    segment: &SegmentReader,
    veil: Option<&Veil>,
    term: &Term,
    counted: u64,
) -> tantivy::Result<u64> {
    if veil.is_none() {
        return Ok(counted);
    }
    let postings = segment.inverted_index(term.field())?.read_postings(term, IndexRecordOption::Basic)?;
    let Some(mut postings) = postings else { return Ok(0) };
    let (pages, mut shown) = (segment.fast_fields().u64("page")?, 0);
    while postings.doc() != TERMINATED {
        let document = postings.doc();
        let is_alive = segment.alive_bitset().is_none_or(|alive| alive.is_alive(document));
        let page = pages.first(document).and_then(|page| u32::try_from(page).ok());
        shown += u64::from(is_alive && page.is_some_and(|page| reads(veil, UrlId(page))));
        postings.advance();
    }
    Ok(shown)
}

impl Searchers<'_> {
    fn sum(&self, of: impl Fn(&Searcher) -> tantivy::Result<u64>) -> tantivy::Result<u64> {
        self.all.iter().map(|(searcher, _)| of(searcher)).sum()
    }

    /// The segments of all, each with what its archive hides.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentReader, Option<&Veil>)> {
        self.all.iter().flat_map(|(searcher, veil)| {
            searcher.segment_readers().iter().map(move |segment| (segment, *veil))
        })
    }

    /// Number of documents that are not removed.
    pub(super) fn alive(&self) -> u64 {
        let own = || self.all.iter().map(|(searcher, _)| searcher.num_docs()).sum();
        self.reported.as_ref().map_or_else(own, Statistics::alive)
    }
}

impl Bm25StatisticsProvider for Searchers<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let own = || self.sum(|searcher| searcher.total_num_tokens(field));
        self.reported.as_ref().map_or_else(own, |reported| reported.total_num_tokens(field))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        let own = || self.sum(Searcher::total_num_docs);
        self.reported.as_ref().map_or_else(own, Statistics::total_num_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let own = || {
            let in_segment = |(segment, veil): (&SegmentReader, _)| {
                let counted = segment.inverted_index(term.field())?.doc_freq(term)?;
                shown_with(segment, veil, term, u64::from(counted))
            };
            self.segments().map(in_segment).sum()
        };
        self.reported.as_ref().map_or_else(own, |reported| reported.doc_freq(term))
    }
}

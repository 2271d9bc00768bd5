//! Reading: what was committed last, also while the crawler writes on in another process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use archive_storage::UrlId;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::query::{Bm25StatisticsProvider, Query as _};
use tantivy::schema::Field;
use tantivy::snippet::SnippetGenerator;
use tantivy::{
    DocId, Index, IndexReader, ReloadPolicy, Score, Searcher, SegmentOrdinal, SegmentReader, Term,
};

use super::elements::{self, ElementQuery};
use super::error::{Error, guarded};
use super::schema::{self, Fields};
use super::structures::Structures;
use super::{TextQuery, terms, writer};

/// Characters of a snippet.
pub const SNIPPET_CHARACTERS_MAX: usize = 200;

/// Times an index is opened that was exchanged for another while it was.
const OPENINGS_MAX: u32 = 8;

/// An index as of one commit.
pub struct Reader {
    folder: PathBuf,
    index: Index,
    reader: IndexReader,
    fields: Fields,
    watermark: u64,
    state: Option<u64>,
    /// Other indexes that are searched as one with this one.
    beside: Vec<Searcher>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("folder", &self.folder).field("watermark", &self.watermark).finish()
    }
}

/// The part of a text that answers a search best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The part, at most [`SNIPPET_CHARACTERS_MAX`] characters.
    pub text: String,
    /// Where in it the words searched for stand, in bytes.
    pub found: Vec<Range<usize>>,
}

/// Which folder it is, whatever its name.
fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).ok().map(|folder| (folder.dev(), folder.ino()))
}

impl Reader {
    /// Opens the index in `folder` as of its last commit.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none; [`Error::OtherVersion`], [`Error::Damaged`] or [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut openings = 1;
        loop {
            let before = identity(folder);
            match guarded(folder, || Self::open_unguarded(folder)) {
                // A rebuild has put another index into its place in the meantime.
                Err(_) if openings < OPENINGS_MAX && identity(folder) != before => openings += 1,
                opened => return opened,
            }
        }
    }

    fn open_unguarded(folder: &Path) -> Result<Self, Error> {
        let error = |source| Error::opening(folder, source);
        let directory = MmapDirectory::open(folder).map_err(|source| error(source.into()))?;
        let mut index = Index::open(directory).map_err(error)?;
        if !schema::is_ours(&index) {
            return Err(Error::OtherVersion { folder: folder.to_owned() });
        }
        index.set_tokenizers(schema::tokenizers());
        // The watermark first: a commit in between then only makes the reader know more than it says.
        let (watermark, state) = writer::watermark(folder, &index)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(error)?;
        let (_, fields) = Fields::schema();
        Ok(Self { folder: folder.to_owned(), index, reader, fields, watermark, state, beside: Vec::new() })
    }

    /// Makes parts of one index of several: what one finds counts for as much as it would if all of it were in one.
    pub fn join(readers: &mut [Self]) {
        let all: Vec<Searcher> = readers.iter().map(Self::searcher).collect();
        for (own, reader) in readers.iter_mut().enumerate() {
            let others = all.iter().enumerate().filter(|(other, _)| *other != own);
            reader.beside = others.map(|(_, searcher)| searcher.clone()).collect();
        }
    }

    /// This index and those beside it, as one.
    pub(super) fn whole(&self) -> Whole {
        Whole([&[self.searcher()], self.beside.as_slice()].concat())
    }

    /// Sees what was committed since.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn reload(&mut self) -> Result<(), Error> {
        (self.watermark, self.state) = writer::watermark(&self.folder, &self.index)?;
        self.reader.reload().map_err(|source| Error::of(&self.folder, source))
    }

    /// The watermark of the commit, at least.
    #[must_use]
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The identity of the state by whose numbers pages are named; none before the first commit.
    #[must_use]
    pub fn state(&self) -> Option<u64> {
        self.state
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn fields(&self) -> Fields {
        self.fields
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Pages in the index.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Every page that `query` finds, in no order, with its BM25 (k1 = 1.2, b = 0.75; title twice, URL half).
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(&self, query: &TextQuery) -> Result<Vec<(UrlId, f32)>, Error> {
        let query = terms::compile(query, self.fields);
        guarded(&self.folder, || {
            let found = self.searcher().search_with_statistics_provider(&query, &EveryHit, &self.whole());
            found.map_err(|source| Error::of(&self.folder, source))
        })
    }

    /// Every page whose elements may be as `query` wants them, or only those that are known to be, in no order.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn with_elements(&self, query: &ElementQuery, are_known: bool) -> Result<Vec<UrlId>, Error> {
        let query = elements::compile(query, are_known, self.fields);
        let found = guarded(&self.folder, || {
            self.reader.searcher().search(&query, &EveryHit).map_err(|source| Error::of(&self.folder, source))
        })?;
        Ok(found.into_iter().map(|(page, _)| page).collect())
    }

    /// What XML documents are as a whole.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn structures(&self) -> Result<Structures, Error> {
        guarded(&self.folder, || {
            Structures::read(&self.reader.searcher()).map_err(|source| Error::of(&self.folder, source))
        })
    }

    /// The part of `text` that answers `query` best; none when nothing in it does. The index has no texts: they come
    /// from the archive.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn snippet(&self, query: &TextQuery, text: &str) -> Result<Option<Snippet>, Error> {
        let query = terms::compile(query, self.fields);
        let (mut words, whole) = (BTreeMap::new(), self.whole());
        let mut terms = Vec::new();
        query.query_terms(&mut |term, _| {
            terms.extend((term.field() == self.fields.body).then(|| term.clone()));
        });
        for term in terms {
            let frequency = whole.doc_freq(&term).map_err(|source| Error::of(&self.folder, source))?;
            if let Some(word) = term.value().as_str().filter(|_| frequency > 0) {
                words.insert(word.to_owned(), 1.0 / (1.0 + frequency as Score));
            }
        }
        let generator =
            SnippetGenerator::new(words, super::words::analyzer(), self.fields.body, SNIPPET_CHARACTERS_MAX);
        let snippet = generator.snippet(text);
        let found = snippet.highlighted().to_vec();
        Ok((!snippet.is_empty()).then(|| Snippet { text: snippet.fragment().to_owned(), found }))
    }
}

/// Several indexes as one.
pub(super) struct Whole(pub(super) Vec<Searcher>);

impl Whole {
    fn sum(&self, of: impl Fn(&Searcher) -> tantivy::Result<u64>) -> tantivy::Result<u64> {
        self.0.iter().map(of).sum()
    }
}

impl Bm25StatisticsProvider for Whole {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.total_num_tokens(field))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.sum(Bm25StatisticsProvider::total_num_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.doc_freq(term))
    }
}

/// Collects every page with its score.
struct EveryHit;

/// The hits of one segment.
struct SegmentHits {
    page: Column<u64>,
    hits: Vec<(UrlId, f32)>,
}

impl Collector for EveryHit {
    type Fruit = Vec<(UrlId, f32)>;
    type Child = SegmentHits;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentHits> {
        Ok(SegmentHits { page: segment.fast_fields().u64("page")?, hits: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, segments: Vec<Vec<(UrlId, f32)>>) -> tantivy::Result<Vec<(UrlId, f32)>> {
        Ok(segments.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentHits {
    type Fruit = Vec<(UrlId, f32)>;

    fn collect(&mut self, document: DocId, score: Score) {
        let page = self.page.first(document).and_then(|page| u32::try_from(page).ok());
        self.hits.extend(page.map(|page| (UrlId(page), score)));
    }

    fn harvest(self) -> Vec<(UrlId, f32)> {
        self.hits
    }
}

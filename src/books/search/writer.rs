//! Writing: the crawler's index thread adds pages and commits from time to time.
//!
//! Invariants: a commit is atomic and records the watermark up to which it has pages. A crash loses what was added
//! after the last commit; this is added again from the watermark on. There is one document per page or, in an index of
//! older versions, one per older version.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use archive_base::files::make_folder;
use archive_storage::UrlId;
use archive_web::parse::{SaidTexts, Structure};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::schema::{TantivyDocument, Term};
use tantivy::{Directory, Index, IndexWriter};

use super::directory::{RegularFiles, check_regular};
use super::error::SearchError;
use super::files;
use super::schema::{self, IndexSchema};
use super::structures;

/// Bytes of a page's text that are indexed; longer texts are cut there.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;

/// Maximum number of documents of a segment that takes part in a merge.
const MERGED_DOCUMENTS_MAX: usize = 5_000_000;

/// Maximum number of bytes that a number, or the length of a text, takes in the engine's queue.
const NUMBER_BYTES: usize = 8;

/// Limits and kind of an index to write.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// Memory for the segment being built, in bytes, at least [`IndexOptions::MEMORY_BYTES_MIN`]. Larger segments mean fewer
    /// merges.
    pub memory_bytes: usize,
    /// Bytes of text that may wait for the indexing thread; [`IndexWriterOwner::add`] waits while there are more.
    pub backlog_bytes: usize,
    /// Identity of the state whose page numbers the index uses.
    pub state: u64,
    /// Whether the index is one of older versions.
    pub of_versions: bool,
}

impl IndexOptions {
    /// Minimum that the search engine needs.
    pub const MEMORY_BYTES_MIN: usize = 16 * 1024 * 1024;
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 128 * 1024 * 1024,
            backlog_bytes: 16 * 1024 * 1024,
            state: 0,
            of_versions: false,
        }
    }
}

/// A version of a page, in the form that is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedVersion {
    /// The page.
    pub page: UrlId,
    /// Whether an earlier document of the page may be in the index and must be removed. False saves a lookup.
    pub replaces: bool,
    /// Number of the version, in an index of older versions.
    pub version: Option<u64>,
    /// The URL; its words are indexed too.
    pub url: String,
    /// The title; may be empty.
    pub title: String,
    /// The text without markup.
    pub text: String,
    /// Headings and other names of its parts, one per line.
    pub headings: String,
    /// What the page says of itself beside its text.
    pub said: SaidTexts,
    /// Terms for the document's language and, of an XML document, for its elements: see [`super::elements::terms`].
    pub elements: String,
    /// Document-level properties of an XML document.
    pub structure: Option<Structure>,
    /// Texts of its links and the pages that these lead to.
    pub links: Vec<(UrlId, String)>,
}

/// The one writer of an index.
pub struct IndexWriterOwner {
    folder: PathBuf,
    writer: IndexWriter<WaitingDocument>,
    fields: IndexSchema,
    backlog: Arc<Backlog>,
    backlog_bytes_max: usize,
    state: u64,
    watermark: u64,
    was_empty: bool,
}

impl IndexWriterOwner {
    /// Opens the index in `folder` for writing; creates an empty one if there is none.
    ///
    /// # Errors
    /// [`SearchError::Locked`] when another process writes to it; [`SearchError::OtherVersion`] or [`SearchError::Damaged`] when it must
    /// be rebuilt; [`SearchError::Io`].
    pub fn open(folder: &Path, options: IndexOptions) -> Result<Self, SearchError> {
        let error = |source| SearchError::opening(folder, source);
        make_folder(folder).map_err(|source| error(source.into()))?;
        // The engine would follow symbolic links when it writes; an index has none.
        for entry in std::fs::read_dir(folder).map_err(|source| error(source.into()))? {
            let path = entry.map_err(|source| error(source.into()))?.path();
            check_regular(&path).map_err(|source| error(source.into()))?;
        }
        files::unseal(folder).map_err(|source| error(source.into()))?;
        let directory = RegularFiles::open(folder).map_err(|source| error(source.into()))?;
        Self::open_in(folder, directory, options)
    }

    fn open_in(folder: &Path, directory: impl Directory, options: IndexOptions) -> Result<Self, SearchError> {
        let error = |source| SearchError::opening(folder, source);
        let (schema, fields) = IndexSchema::schema(options.of_versions);
        let builder = Index::builder().schema(schema).settings(schema::settings());
        let mut index = builder.open_or_create(directory).map_err(error)?;
        index.set_tokenizers(schema::tokenizers());
        let (watermark, _) = watermark(folder, &index)?;
        let was_empty = index.searchable_segment_metas().map_err(error)?.is_empty();
        let options_of_engine = IndexWriterOptions::builder()
            .memory_budget_per_thread(options.memory_bytes.max(IndexOptions::MEMORY_BYTES_MIN))
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer = index.writer_with_options(options_of_engine).map_err(error)?;
        // A killed commit may have left a file whose name the next one needs.
        writer.garbage_collect_files().wait().map_err(error)?;
        let mut policy = LogMergePolicy::default();
        policy.set_max_docs_before_merge(MERGED_DOCUMENTS_MAX);
        writer.set_merge_policy(Box::new(policy));
        Ok(Self {
            folder: folder.to_owned(),
            writer,
            fields,
            backlog: Arc::default(),
            backlog_bytes_max: options.backlog_bytes,
            state: options.state,
            watermark,
            was_empty,
        })
    }

    /// Watermark of the last commit; 0 for a new index.
    #[must_use]
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Whether the index had no documents when it was opened.
    pub(crate) fn was_empty(&self) -> bool {
        self.was_empty
    }

    /// Adds a version of a page, which is found after the next [`IndexWriterOwner::commit`]. Waits while too much text is queued
    /// for the indexing thread.
    ///
    /// # Errors
    /// When the indexing thread has failed, usually because the disk is full; the writer is unusable from then on.
    pub fn add(&mut self, document: &IndexedVersion) -> Result<(), SearchError> {
        if document.replaces {
            self.remove(document.page);
        }
        let SaidTexts { description, keywords, author, headline } = &document.said;
        let mut labels = format!("{}\n{}", cut(&document.title), document.headings);
        let mut about = Cow::Borrowed(description.as_str());
        if !headline.is_empty() && *headline != document.title {
            labels.extend(["\n", headline]);
            // What is a label is also a text.
            about = format!("{headline}\n{description}").into();
        }
        let mut links = String::with_capacity(document.links.iter().map(|(_, text)| text.len() + 1).sum());
        for (_, text) in &document.links {
            links.push_str(text);
            links.push('\n');
        }
        let texts = [
            (self.fields.url, document.url.as_str()),
            (self.fields.title, cut(&document.title)),
            (self.fields.body, cut(&document.text)),
            (self.fields.description, &*about),
            (self.fields.keywords, keywords),
            (self.fields.author, author),
            (self.fields.elements, &document.elements),
            (self.fields.places, &document.elements),
            (self.fields.labels, &labels),
            (self.fields.links, &links),
        ];
        let bytes = texts.iter().map(|(_, text)| text.len()).sum::<usize>();
        // Including the numbers of the page and its version.
        let numbers = texts.len() + document.links.len() + 2;
        let mut entry = TantivyDocument::with_capacity(bytes + NUMBER_BYTES * numbers);
        let texts = texts.iter().filter(|(_, text)| !text.is_empty());
        texts.for_each(|(field, text)| entry.add_text(*field, text));
        entry.add_u64(self.fields.page, u64::from(document.page.0));
        document.links.iter().for_each(|(target, _)| entry.add_u64(self.fields.targets, target.0.into()));
        if let Some(structure) = &document.structure {
            entry.add_text(self.fields.structure, structures::to_text(structure));
        }
        if let Some(version) = document.version {
            let column = self.writer.index().schema().get_field(schema::VERSION);
            entry.add_u64(column.map_err(|source| SearchError::of(&self.folder, source))?, version);
        }
        let held = Backlog::hold(&self.backlog, bytes, self.backlog_bytes_max);
        let added = self.writer.add_document(WaitingDocument { entry, _held: held });
        added.map(drop).map_err(|source| SearchError::of(&self.folder, source))
    }

    /// Removes a page as of the next [`IndexWriterOwner::commit`].
    pub fn remove(&mut self, page: UrlId) {
        self.writer.delete_term(Term::from_field_u64(self.fields.page, u64::from(page.0)));
    }

    /// Makes everything added so far durable and searchable, together with `watermark`.
    ///
    /// Each commit leaves at least one segment that must be merged later: commit once per many thousand pages.
    ///
    /// # Errors
    /// When the disk fails; earlier commits stay.
    pub fn commit(&mut self, watermark: u64) -> Result<(), SearchError> {
        let error = |source| SearchError::of(&self.folder, source);
        let mut commit = self.writer.prepare_commit().map_err(error)?;
        commit.set_payload(&format!("{watermark} {:016x}", self.state));
        commit.commit().map_err(error)?;
        self.watermark = watermark;
        Ok(())
    }

    /// Rewrites every segment that still has words of removed pages, without them. Call this after a commit.
    pub(crate) fn expunge(&mut self) -> Result<(), SearchError> {
        let folder = self.folder.clone();
        let error = |source| SearchError::of(&folder, source);
        self.writer.set_merge_policy(Box::new(NoMergePolicy));
        for segment in self.writer.index().searchable_segment_metas().map_err(error)? {
            if segment.num_deleted_docs() > 0 {
                self.writer.merge(&[segment.id()]).wait().map_err(error)?;
            }
        }
        self.writer.garbage_collect_files().wait().map_err(error)?;
        Ok(())
    }

    /// Waits for merges to finish and closes the index. Uncommitted pages are lost.
    ///
    /// # Errors
    /// When a merge fails; the index stays readable.
    pub fn close(self) -> Result<(), SearchError> {
        let Self { folder, writer, .. } = self;
        writer.wait_merging_threads().map_err(|source| SearchError::of(&folder, source))?;
        files::seal(&folder).map_err(|source| SearchError::of(&folder, source.into()))
    }
}

/// Returns the watermark of the last commit of `index`, and the identity of its state.
pub(crate) fn watermark(folder: &Path, index: &Index) -> Result<(u64, Option<u64>), SearchError> {
    let metas = index.load_metas().map_err(|source| SearchError::of(folder, source))?;
    let Some(payload) = metas.payload else { return Ok((0, None)) };
    let parse = |payload: &str| {
        let (watermark, state) = payload.split_once(' ')?;
        Some((watermark.parse().ok()?, Some(u64::from_str_radix(state, 16).ok()?)))
    };
    parse(&payload).ok_or_else(|| SearchError::Damaged {
        folder: folder.to_owned(),
        what: format!("its watermark cannot be read: {payload:?}"),
    })
}

/// Returns the first [`TEXT_BYTES_MAX`] bytes of `text`, cut at a character boundary.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text)
}

/// Bytes of text on the way to the indexing thread. The engine limits its queue only by number of documents.
#[derive(Default)]
struct Backlog {
    bytes: Mutex<usize>,
    freed: Condvar,
}

impl Backlog {
    /// Waits until `bytes` more fit into `bytes_max`; a larger text fits when nothing else waits.
    fn hold(backlog: &Arc<Self>, bytes: usize, bytes_max: usize) -> QueuedBytes {
        let waiting = backlog.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |waiting: &mut usize| *waiting > 0 && *waiting + bytes > bytes_max;
        let mut waiting = backlog.freed.wait_while(waiting, full).unwrap_or_else(PoisonError::into_inner);
        *waiting += bytes;
        QueuedBytes { backlog: Arc::clone(backlog), bytes }
    }
}

/// Releases its bytes when dropped.
struct QueuedBytes {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        let mut waiting = self.backlog.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = waiting.saturating_sub(self.bytes);
        self.backlog.freed.notify_all();
    }
}

/// A document in the engine's queue. Its bytes are released when the indexing thread takes the entry out.
struct WaitingDocument {
    entry: TantivyDocument,
    _held: QueuedBytes,
}

impl tantivy::Document for WaitingDocument {
    type Value<'a> = <TantivyDocument as tantivy::Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as tantivy::Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.entry.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.entry
    }
}

//! Keeps the full-text index up to date while captures are recorded: pages are passed to a thread, and those that a
//! crash kept out of the index are read again from the archive.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_base::access::Access;
use archive_storage::{Capture, CaptureId, Store, UrlId};
use archive_web::parse::{ParseLimits, ParsedDocument};
use archive_web::reading::{CallerReader, Crew, RawPage, Work};
use crossbeam::channel::{Receiver, Sender, bounded};
use url::Url;

use super::{LinkTextMemory, Memory, RecorderError, Text, has_other_type};
use crate::change::{missing_entities, whole};
use crate::ledger::page_flags;
use crate::search::{
    FOLDER, IndexOptions, IndexWriterOwner, IndexedVersion, SearchError, VERSIONS_FOLDER, is_searched,
    newest_searched, older_versions,
};

/// Maximum number of pages in the queue of the indexing thread.
const WAITING_MAX: usize = 64;

/// Interval between commits of the index: each leaves a set of files that has to be merged later.
const COMMIT_EVERY: Duration = Duration::from_secs(60);

/// Number of pages that wait before or after parsing, so that no thread waits for a long page of another.
const AHEAD: usize = 4;

/// Bytes of payloads beyond which no further page is read ahead.
const AHEAD_BYTES: usize = 4 << 20;

enum IndexerMessage {
    Add(Box<IndexedVersion>),
    Commit(u64),
}

/// The handle of the indexing thread.
pub(super) struct Indexer {
    messages: Sender<IndexerMessage>,
    /// The thread, until it has ended.
    thread: Option<JoinHandle<Result<(), SearchError>>>,
    committed: Instant,
}

impl Indexer {
    /// Opens an archive's index, brings it up to date, and starts its thread.
    pub(super) fn open(store: &Store, memory: Memory) -> Result<Self, RecorderError> {
        let mut writer = IndexWriterOwner::open(&store.path().join(FOLDER), options(store, memory))?;
        catch_up(store, &mut writer)?;
        let (messages, queue) = bounded(WAITING_MAX);
        let index = move || {
            for message in queue {
                match message {
                    IndexerMessage::Add(document) => writer.add(&document)?,
                    IndexerMessage::Commit(captures) => writer.commit(captures)?,
                }
            }
            writer.close()
        };
        let thread = thread::Builder::new().name("index".to_owned()).spawn(index);
        let thread = thread.map_err(RecorderError::Thread)?;
        Ok(Self { messages, thread: Some(thread), committed: Instant::now() })
    }

    /// Queues a page; blocks while the queue is full.
    pub(super) fn add(&mut self, document: Box<IndexedVersion>) -> Result<(), RecorderError> {
        self.send(IndexerMessage::Add(document))
    }

    /// Reports that the archive is durable up to `captures`; commits the index if the last commit was long enough ago.
    pub(super) fn checkpoint(&mut self, captures: u64) -> Result<(), RecorderError> {
        if self.committed.elapsed() < COMMIT_EVERY {
            return Ok(());
        }
        self.committed = Instant::now();
        self.send(IndexerMessage::Commit(captures))
    }

    /// Commits everything and ends the thread.
    pub(super) fn finish(mut self, captures: u64) -> Result<(), RecorderError> {
        self.send(IndexerMessage::Commit(captures))?;
        let Self { messages, thread, .. } = self;
        drop(messages);
        thread.map_or(Ok(()), join)
    }

    /// Sends a message; if the thread has ended, returns its error.
    fn send(&mut self, message: IndexerMessage) -> Result<(), RecorderError> {
        if self.messages.send(message).is_ok() {
            return Ok(());
        }
        self.thread.take().map_or(Ok(()), join)?;
        Err(RecorderError::ThreadEnded)
    }
}

fn join(thread: JoinHandle<Result<(), SearchError>>) -> Result<(), RecorderError> {
    Ok(thread.join().map_err(|_| RecorderError::ThreadEnded)??)
}

fn options(store: &Store, memory: Memory) -> IndexOptions {
    IndexOptions { state: store.state().identity(), ..memory.index() }
}

/// Builds an index of all pages of an archive in a folder.
pub fn index_all(store: &Store, folder: &Path) -> Result<(), RecorderError> {
    let mut writer = IndexWriterOwner::open(folder, options(store, Memory::default()))?;
    catch_up(store, &mut writer)?;
    Ok(writer.close()?)
}

/// Adds older versions to the index of versions, if the archive has one.
pub(super) fn index_versions(store: &Store, memory: Memory) -> Result<(), RecorderError> {
    let folder = store.path().join(VERSIONS_FOLDER);
    if folder.is_dir() { versions(store, &folder, memory) } else { Ok(()) }
}

/// Builds an index of all older versions in an archive in a folder.
pub fn index_all_versions(store: &Store, folder: &Path) -> Result<(), RecorderError> {
    versions(store, folder, Memory::default())
}

fn versions(store: &Store, folder: &Path, memory: Memory) -> Result<(), RecorderError> {
    let mut writer =
        IndexWriterOwner::open(folder, IndexOptions { of_versions: true, ..options(store, memory) })?;
    let (from, captures) = (writer.watermark(), store.state().totals().captures);
    if from < captures {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(memory.documents());
        let mut pages = HashSet::new();
        let mut pipeline = Pipeline::start(store, &mut writer, threads)?;
        for number in from..captures {
            let page = store.state().capture(CaptureId(u32::try_from(number).unwrap_or(u32::MAX)))?.url;
            if pages.insert(page) {
                pipeline.add_versions(page, from)?;
            }
        }
        pipeline.finish()?;
        writer.commit(captures)?;
    }
    Ok(writer.close()?)
}

/// Adds the remaining older versions of pages that lost some captures to an index that has none of those pages.
pub fn index_versions_again(
    store: &Store,
    folder: &Path,
    pages: impl IntoIterator<Item = UrlId>,
) -> Result<(), RecorderError> {
    let mut writer = IndexWriterOwner::open(
        folder,
        IndexOptions { of_versions: true, ..options(store, Memory::default()) },
    )?;
    let mut pipeline = Pipeline::start(store, &mut writer, 1)?;
    pages.into_iter().try_for_each(|page| pipeline.add_versions(page, 0))?;
    pipeline.finish()?;
    writer.commit(writer.watermark())?;
    Ok(writer.close()?)
}

/// Indexes documents again whose external entities may have been captured later than they were.
pub(super) fn index_again(store: &Store, folder: &Path, captures: &[Capture]) -> Result<(), RecorderError> {
    let access = Access::read(store.path())?;
    let mut referring = Vec::new();
    for capture in captures {
        if missing_entities(store, &access, capture)?.is_some() {
            referring.push(capture);
        }
    }
    if referring.is_empty() {
        return Ok(());
    }
    let mut writer = IndexWriterOwner::open(folder, options(store, Memory::default()))?;
    let mut pipeline = Pipeline::start(store, &mut writer, 1)?;
    referring.into_iter().try_for_each(|capture| pipeline.add(capture, None))?;
    pipeline.finish()?;
    writer.commit(writer.watermark())?;
    Ok(writer.close()?)
}

/// A parsed page.
struct ParsedPage {
    id: UrlId,
    url: String,
    version: Option<u64>,
    /// Bytes of its payload.
    bytes: usize,
    /// `None` if there is nothing to search for.
    text: Option<Text>,
}

/// Parses stored pages for the index.
#[derive(Clone)]
struct Parsing {
    said: LinkTextMemory,
}

/// A stored page.
#[derive(Clone)]
struct StoredPage {
    id: UrlId,
    url: String,
    page: RawPage,
    /// Whether it replaces no other version.
    is_first: bool,
    /// Whether its original has another media type.
    is_other: bool,
    /// Number of an older version.
    version: Option<u64>,
}

impl Work for Parsing {
    type Item = StoredPage;
    type Job = StoredPage;
    type Read = ParsedDocument;
    type Done = ParsedPage;

    fn take(item: StoredPage) -> Option<Result<StoredPage, ParsedPage>> {
        Some(Ok(item))
    }

    fn read(&mut self, job: &StoredPage, reader: &CallerReader) -> ParsedDocument {
        reader.page(&job.page)
    }

    fn finish(&mut self, job: StoredPage, mut parsed: ParsedDocument) -> ParsedPage {
        let mut text = Text::take(&mut parsed, job.is_first.then_some(&self.said));
        text.iter_mut().filter(|_| job.is_other).for_each(Text::read_otherwise);
        ParsedPage { id: job.id, url: job.url, version: job.version, bytes: job.page.payload.len(), text }
    }
}

/// Reads and parses stored captures for an index.
struct Pipeline<'a> {
    store: &'a Store,
    /// What everybody may see: external entities that are hidden stay out of the index.
    access: Access,
    writer: &'a mut IndexWriterOwner,
    items: Sender<StoredPage>,
    parsed: Receiver<ParsedPage>,
    _crew: Crew<Parsing>,
    /// Captures that are parsed, or wait before or after; at most `under_way_max`.
    under_way: usize,
    under_way_max: usize,
    /// Bytes of their payloads.
    bytes: usize,
}

impl<'a> Pipeline<'a> {
    /// Starts the threads. With a single one, documents are indexed in the order in which they are added.
    fn start(
        store: &'a Store,
        writer: &'a mut IndexWriterOwner,
        threads: usize,
    ) -> Result<Self, RecorderError> {
        let under_way_max = threads + AHEAD;
        let ((items, stored), (sender, parsed)) = (bounded(under_way_max), bounded(under_way_max));
        let (parsing, access) = (Parsing { said: LinkTextMemory::default() }, Access::read(store.path())?);
        let crew = Crew::start(parsing, threads, store.path(), ParseLimits::default(), &stored, &sender)
            .map_err(RecorderError::Thread)?;
        Ok(Self { store, access, writer, items, parsed, _crew: crew, under_way: 0, under_way_max, bytes: 0 })
    }

    /// Adds a searchable capture, unless it is a robots.txt file or its payload is not in the archive.
    fn add(&mut self, capture: &Capture, version: Option<u64>) -> Result<(), RecorderError> {
        let state = self.store.state();
        if state.page(capture.url)?.flags.has_any(page_flags::ROBOTS) {
            return Ok(());
        }
        let url = state.url(capture.url)?;
        let Ok(parsed_url) = Url::parse(&url) else { return Ok(()) };
        let read = self.store.record(capture.location).map(|record| (record, self.store.payload(capture)));
        let (record, mut payload) = match read {
            Ok((record, Ok(Some(payload)))) => (record, payload),
            Ok((_, Ok(None))) => return Ok(()),
            Ok((_, Err(error))) | Err(error) => {
                tracing::warn!(%error, url, "a capture cannot be read and is not in the full-text index");
                return Ok(());
            }
        };
        let mut head = record.http_head();
        if let Some((whole, _)) = whole(self.store, &self.access, capture, (&url, &head, &payload))? {
            head.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Encoding"));
            payload = whole.into();
        }
        let (status, key) = (capture.status, capture.digest);
        let page = RawPage { url: parsed_url, status, head: Arc::new(head), payload, is_decoded: false, key };
        let captures = state.visit(capture.url)?.map_or(0, |visit| visit.captures);
        let is_first = captures <= 1;
        let bytes = page.payload.len();
        while self.under_way == self.under_way_max || self.under_way > 0 && self.bytes + bytes > AHEAD_BYTES {
            self.take_parsed()?;
        }
        let is_other = has_other_type(self.store, capture)?;
        let stored = StoredPage { id: capture.url, url, page, is_first, is_other, version };
        self.items.send(stored).map_err(|_| RecorderError::ThreadEnded)?;
        self.under_way += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Adds the older versions of a page that an index of the first `captures` captures lacks.
    fn add_versions(&mut self, page: UrlId, captures: u64) -> Result<(), RecorderError> {
        // Most pages were captured once.
        if self.store.state().visit(page)?.is_some_and(|visit| visit.captures > 1) {
            for (version, capture) in older_versions(self.store.state(), page, captures)? {
                self.add(&capture, Some(version))?;
            }
        }
        Ok(())
    }

    fn take_parsed(&mut self) -> Result<(), RecorderError> {
        let ParsedPage { id, url, version, bytes, text } =
            self.parsed.recv().map_err(|_| RecorderError::ThreadEnded)?;
        self.under_way -= 1;
        self.bytes -= bytes;
        if let Some(text) = text {
            let document = text.document(self.store.state(), id, &url)?;
            let replaces = version.is_none() && !self.writer.was_empty();
            self.writer.add(&IndexedVersion { version, replaces, ..document })?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), RecorderError> {
        while self.under_way > 0 {
            self.take_parsed()?;
        }
        Ok(())
    }
}

/// Adds what was captured since the last commit of the index.
fn catch_up(store: &Store, writer: &mut IndexWriterOwner) -> Result<(), RecorderError> {
    let (from, captures) = (writer.watermark(), store.state().totals().captures);
    if from >= captures {
        return Ok(());
    }
    // A single thread parses: more would take more memory.
    let mut pipeline = Pipeline::start(store, writer, 1)?;
    for number in from..captures {
        let id = CaptureId(u32::try_from(number).unwrap_or(u32::MAX));
        let capture = store.state().capture(id)?;
        // Captures may have arrived out of order.
        if is_searched(&capture)
            && newest_searched(store.state(), capture.url, captures)?.is_some_and(|(newest, _)| newest == id)
        {
            pipeline.add(&capture, None)?;
        }
    }
    pipeline.finish()?;
    Ok(writer.commit(captures)?)
}

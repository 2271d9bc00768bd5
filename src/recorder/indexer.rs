//! The full-text index beside the recording: pages are handed over, and what a crash kept out of the index is read again
//! from the archive.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use archive_storage::warc::HttpHead;
use archive_storage::{CaptureId, CaptureKind, Store, UrlId};
use crossbeam::channel::{Sender, bounded};
use url::Url;

use super::{Memory, RecorderError, Said, Text};
use crate::ledger::page_flags;
use crate::parse::{Limits, Parsed};
use crate::reading::{Crew, Page, Reader, Work};
use crate::search::{Document, Error, FOLDER, Options, Writer};

/// Pages that wait for the indexing thread.
const WAITING_MAX: usize = 64;

/// Between two commits of the index: each leaves a set of files that has to be merged with others later.
const COMMIT_EVERY: Duration = Duration::from_secs(60);

enum Message {
    Add(Box<Document>),
    Commit(u64),
}

/// The handle of the indexing thread.
pub(super) struct Indexer {
    messages: Sender<Message>,
    /// The thread, until it has ended.
    thread: Option<JoinHandle<Result<(), Error>>>,
    committed: Instant,
}

impl Indexer {
    /// Opens the index of an archive, brings it up to date, and starts its thread.
    pub(super) fn open(store: &Store, memory: Memory) -> Result<Self, RecorderError> {
        let mut writer = Writer::open(&store.path().join(FOLDER), options(store, memory))?;
        catch_up(store, &mut writer)?;
        let (messages, queue) = bounded(WAITING_MAX);
        let index = move || {
            for message in queue {
                match message {
                    Message::Add(document) => writer.add(&document)?,
                    Message::Commit(captures) => writer.commit(captures)?,
                }
            }
            writer.close()
        };
        let thread = thread::Builder::new().name("index".to_owned()).spawn(index);
        let thread = thread.map_err(RecorderError::Thread)?;
        Ok(Self { messages, thread: Some(thread), committed: Instant::now() })
    }

    /// Hands over a page; waits while too many are waiting.
    pub(super) fn add(&mut self, document: Box<Document>) -> Result<(), RecorderError> {
        self.send(Message::Add(document))
    }

    /// Says that the archive is durable up to `captures`; the index follows from time to time.
    pub(super) fn checkpoint(&mut self, captures: u64) -> Result<(), RecorderError> {
        if self.committed.elapsed() < COMMIT_EVERY {
            return Ok(());
        }
        self.committed = Instant::now();
        self.send(Message::Commit(captures))
    }

    /// Commits everything and ends the thread.
    pub(super) fn finish(mut self, captures: u64) -> Result<(), RecorderError> {
        self.send(Message::Commit(captures))?;
        let Self { messages, thread, .. } = self;
        drop(messages);
        thread.map_or(Ok(()), join)
    }

    /// Hands a message over; when the thread is gone, its own error says why.
    fn send(&mut self, message: Message) -> Result<(), RecorderError> {
        if self.messages.send(message).is_ok() {
            return Ok(());
        }
        self.thread.take().map_or(Ok(()), join)?;
        Err(RecorderError::ThreadEnded)
    }
}

fn join(thread: JoinHandle<Result<(), Error>>) -> Result<(), RecorderError> {
    Ok(thread.join().map_err(|_| RecorderError::ThreadEnded)??)
}

fn options(store: &Store, memory: Memory) -> Options {
    Options { state: store.state().identity(), ..memory.index() }
}

/// Makes an index of a whole archive in a folder.
pub(crate) fn index_all(store: &Store, folder: &Path) -> Result<(), RecorderError> {
    let mut writer = Writer::open(folder, options(store, Memory::default()))?;
    catch_up(store, &mut writer)?;
    Ok(writer.close()?)
}

/// Parses stored pages for the index.
#[derive(Clone)]
struct Parsing {
    said: Said,
}

/// A stored page.
#[derive(Clone)]
struct Stored {
    id: UrlId,
    url: String,
    page: Page,
    /// Whether it takes the place of no other version.
    is_first: bool,
}

impl Work for Parsing {
    type Item = Stored;
    type Job = Stored;
    type Read = Parsed;
    type Done = Option<(UrlId, String, Text)>;

    fn take(item: Stored) -> Option<Result<Stored, Self::Done>> {
        Some(Ok(item))
    }

    fn read(&mut self, job: &Stored, reader: &Reader) -> Parsed {
        reader.page(&job.page)
    }

    fn finish(&mut self, job: Stored, mut parsed: Parsed) -> Self::Done {
        Text::take(&mut parsed, job.is_first.then_some(&self.said)).map(|text| (job.id, job.url, text))
    }
}

/// Adds what was captured since the index was last committed.
fn catch_up(store: &Store, writer: &mut Writer) -> Result<(), RecorderError> {
    let captures = store.state().totals().captures;
    let from = writer.watermark();
    if from >= captures {
        return Ok(());
    }
    // One page is parsed while the next comes from disk: the newest version of a page has to come last, and more would take memory.
    let ((items, stored), (sender, parsed)) = (bounded(1), bounded(1));
    let parsing = Parsing { said: Said::default() };
    let _crew = Crew::start(parsing, 1, store.path(), Limits::default(), &stored, &sender)
        .map_err(RecorderError::Thread)?;
    drop((stored, sender));
    let mut under_way = false;
    let add_parsed = |writer: &mut Writer| match parsed.recv() {
        Ok(Some((page, url, text))) => Ok(writer.add(&text.document(store.state(), page, &url)?)?),
        Ok(None) => Ok(()),
        Err(_) => Err(RecorderError::ThreadEnded),
    };
    for number in from..captures {
        let id = CaptureId(u32::try_from(number).unwrap_or(u32::MAX));
        let capture = store.state().capture(id)?;
        // A page that is a copy of another one has a text of its own to be found by.
        let is_resource = capture.kind == CaptureKind::Resource;
        let is_version = matches!(capture.kind, CaptureKind::Response | CaptureKind::Identical);
        let is_searched = is_resource || is_version && capture.status == 200;
        if !is_searched {
            continue;
        }
        if store.state().page(capture.url)?.flags.has_any(page_flags::ROBOTS) {
            continue;
        }
        let url = store.state().url(capture.url)?;
        let Ok(parsed_url) = Url::parse(&url) else { continue };
        let record = store.record(capture.location)?;
        let head = HttpHead::parse(&archive_storage::warc::split(&record.content).0);
        let Some(payload) = store.payload(&capture)? else { continue };
        let (status, key) = (capture.status, capture.digest);
        let page = Page { url: parsed_url, status, head: Arc::new(head), payload, key };
        if std::mem::replace(&mut under_way, true) {
            add_parsed(writer)?;
        }
        let captures_of_page = store.state().visit(capture.url)?.map_or(0, |visit| visit.captures);
        let is_first = captures_of_page <= 1;
        items
            .send(Stored { id: capture.url, url, page, is_first })
            .map_err(|_| RecorderError::ThreadEnded)?;
    }
    if under_way {
        add_parsed(writer)?;
    }
    Ok(writer.commit(captures)?)
}

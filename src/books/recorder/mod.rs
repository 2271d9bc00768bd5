//! The single path by which every capture enters an archive: from a crawl, a refresh, an import, a repair, a rebuild,
//! or the replay after a crash.
//!
//! A `Recorder` owns the writing side of an archive: the store, the books, the full-text index, and the syncing of
//! records. Each capture takes the same steps:
//!
//! 1. `Recorder::record` appends the records and credits the capture. A revisit whose payload was not parsed first
//!    inherits what is known about the document from its original. A replayed capture is already in a segment, and is
//!    only credited.
//! 2. `Recorder::index` passes its text to the index, if it is the newest version of its page.
//! 3. `Recorder::checkpoint`, when due, makes everything durable: first records, then the state with its watermarks,
//!    then (less often) the index. The books are balanced first. Between checkpoints, a crawl has a thread sync
//!    records.
//! 4. `Recorder::settle` ends a run with rounds over the stored links, `Recorder::conclude` with a last checkpoint, and
//!    `Recorder::close_index` with the remaining texts. Then [`close`] checks XML documents and prepares columns.
//!
//! The books are audited over all accounts once the captures since the last audit, over all runs, reach a thirtieth of
//! the number of URLs, so that audits cost a bounded share of recording. They are also audited whenever accounts were
//! changed by anything but new captures: after a replay and after settling.

mod checkpoint_timer;
mod error;
mod indexer;
mod memory;
mod open;
mod syncing;
mod text;
mod validation;

use std::thread::Scope;
use std::time::{Duration, Instant};

use archive_base::beside;
use archive_storage::segment::{Encoded, SegmentReader};
use archive_storage::{Capture, CaptureId, Checkpointed, State, Store, StoreError, UrlId};

use self::checkpoint_timer::CheckpointTimer;
use self::indexer::Indexer;
use self::syncing::Syncing;
use crate::ledger::{Candidate, Credits, FetchOutcome, Refusal};
use crate::originals;
use crate::prepared;
use crate::search::newest_searched;

pub use error::RecorderError;
pub use indexer::{index_all, index_all_versions, index_versions_again};
pub use memory::Memory;
pub use open::{Opened, open, open_on};
pub use text::{LinkTextMemory, Text};
pub use validation::check;
pub use validation::close;

/// Default interval between checkpoints; bounds what has to be replayed after a crash.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// An audit of this many accounts costs about as much as crediting one capture.
const ACCOUNTS_PER_CREDIT: u64 = 30;

/// How captures are recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecorderSettings {
    /// Memory for the state, the index and settling.
    pub memory: Memory,
    /// Minimum interval between checkpoints.
    pub checkpoint_every: Duration,
    /// Whether texts are indexed.
    pub full_text: bool,
}

impl Default for RecorderSettings {
    fn default() -> Self {
        Self { memory: Memory::default(), checkpoint_every: CHECKPOINT_EVERY, full_text: false }
    }
}

/// The writing side of an archive.
pub struct Recorder<'a> {
    store: &'a mut Store,
    reader: SegmentReader,
    credits: Credits,
    index: Option<Indexer>,
    memory: Memory,
    checkpoints: CheckpointTimer,
    /// Makes records durable while appending continues.
    syncing: Option<Syncing>,
    /// Captures at the last audit of all accounts; `None` if the next checkpoint has to make one.
    audited_at: Option<u64>,
    /// Time spent on appending since the last [`Recorder::take_times`].
    appending: Duration,
}

impl<'a> Recorder<'a> {
    /// Starts recording into a store whose state reflects its segments.
    pub fn open(store: &'a mut Store, settings: RecorderSettings) -> Result<Self, RecorderError> {
        let RecorderSettings { memory, checkpoint_every, full_text } = settings;
        store.state_mut().set_cache_bytes(memory.state());
        // As if a single run had recorded everything: a small run leaves the audit to the run that completes the
        // interval.
        let captures = store.state().totals().captures;
        let since = captures % (u64::from(store.state().url_count()) / ACCOUNTS_PER_CREDIT).max(1);
        Ok(Self {
            reader: store.reader(),
            credits: Credits::open(store.state())?,
            index: if full_text { Some(Indexer::open(store, memory)?) } else { None },
            memory,
            checkpoints: CheckpointTimer::new(checkpoint_every),
            syncing: None,
            audited_at: Some(captures - since),
            appending: Duration::ZERO,
            store,
        })
    }

    /// The archive that is written.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// The archive that is written, for what is not a capture.
    pub fn store_mut(&mut self) -> &mut Store {
        self.store
    }

    /// Its state, with what was recorded so far.
    pub fn state(&self) -> &State {
        self.store.state()
    }

    /// Its state, for what is not a capture.
    pub fn state_mut(&mut self) -> &mut State {
        self.store.state_mut()
    }

    /// The pages' accounts.
    pub fn credits(&self) -> &Credits {
        &self.credits
    }

    /// Returns the books and the state that holds them.
    pub fn books(&mut self) -> (&mut Credits, &mut State) {
        (&mut self.credits, self.store.state_mut())
    }

    /// Records why a page is not fetched now.
    pub fn put_off(&mut self, page: UrlId, why: Refusal) -> Result<(), RecorderError> {
        self.credits.put_off(self.store.state_mut(), page, why)?;
        Ok(())
    }

    /// Appends a capture's records and credits it; adds URLs that became worth fetching to `candidates`. If the disk is
    /// full, nothing of the capture is in the archive, and it may be recorded again.
    pub fn record(
        &mut self,
        records: &Encoded,
        outcome: &mut FetchOutcome,
        candidates: &mut Vec<Candidate>,
    ) -> Result<CaptureId, RecorderError> {
        let begun = Instant::now();
        originals::inherit(self.store.state(), &self.reader, outcome)?;
        let location = self.store.append(records)?;
        self.appending += begun.elapsed();
        let state = self.store.state_mut();
        let id = self.credits.credit(state, outcome, location, candidates)?;
        prepared::note(state, id, outcome.kind, records.group());
        Ok(id)
    }

    /// Returns the time spent on appending and on paying out cash since the last call.
    pub fn take_times(&mut self) -> (Duration, Duration) {
        (std::mem::take(&mut self.appending), self.credits.take_paying())
    }

    /// Passes a document's text to the index, unless there is no index or the page has a newer version.
    pub fn index(&mut self, capture: CaptureId, url: &str, mut text: Text) -> Result<(), RecorderError> {
        if self.index.is_none() {
            return Ok(());
        }
        let stored = self.store.state().capture(capture)?;
        if has_other_type(self.store, &stored)? {
            text.read_otherwise();
        }
        let page = stored.url;
        let visit = self.store.state().visit(page)?;
        let Some(visit) = visit else { return Ok(()) };
        if visit.last_capture != Some(capture)
            && newest_searched(self.state(), page, u64::MAX)?.is_none_or(|(newest, _)| newest != capture)
        {
            return Ok(());
        }
        let mut document = text.document(self.store.state(), page, url)?;
        document.replaces = visit.captures > 1;
        self.index.as_mut().map_or(Ok(()), |index| index.add(Box::new(document)))
    }

    /// Whether a checkpoint is due.
    pub fn checkpoint_is_due(&self) -> bool {
        self.checkpoints.is_due(|| self.store.state().dirty_bytes() > self.memory.state())
    }

    /// Makes everything so far durable and moves the point at which a restart resumes. While readers block the state,
    /// only records are made durable, and the index stays no newer than the state.
    pub fn checkpoint(&mut self) -> Result<Checkpointed, RecorderError> {
        let begun = Instant::now();
        self.balance()?;
        let checkpointed = self.store.checkpoint();
        // After a failure nothing is urgent: the next attempt waits for free space.
        self.checkpoints.ended(begun, *checkpointed.as_ref().unwrap_or(&Checkpointed::Done));
        let checkpointed = checkpointed?;
        let is_deferred = checkpointed == Checkpointed::Deferred;
        let captures = self.store.state().totals().captures;
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(captures, deferred = is_deferred, milliseconds, "checkpoint");
        if is_deferred {
            return Ok(checkpointed);
        }
        if let Some(index) = &mut self.index {
            index.checkpoint(captures)?;
        }
        let folder = self.store.path().to_owned();
        if let Err(error) = prepared::write_much(self.store.state_mut(), &folder) {
            tracing::warn!(%error, "cannot write the columns of answers; they stay in memory");
        }
        Ok(checkpointed)
    }

    /// Balances the books, audits all accounts when due, and saves the books in the state. First, [`Credits::seal`]
    /// takes out what belongs to other partitions.
    fn balance(&mut self) -> Result<(), RecorderError> {
        self.credits.seal(self.store.state_mut())?;
        let state = self.store.state();
        let (captures, urls) = (state.totals().captures, u64::from(state.url_count()));
        self.credits.balance(state)?;
        if self.audited_at.is_none_or(|at| (captures - at) * ACCOUNTS_PER_CREDIT >= urls) {
            self.credits.audit(state)?;
            self.audited_at = Some(captures);
        }
        self.credits.write_remarks::<RecorderError>(self.store)?;
        let archive = self.store.path().to_owned();
        beside::note(self.store.state_mut(), &archive)?;
        Ok(self.credits.save(self.store.state_mut())?)
    }

    /// Starts a thread that makes records durable while appending continues: see [`Recorder::sync_beside`].
    pub fn start_syncing<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<(), RecorderError> {
        self.syncing = Some(Syncing::start(scope)?);
        Ok(())
    }

    /// Starts a sync of everything so far, unless one was started within `every`, and stores `mark`, a number of the
    /// caller's choice. Returns the mark of a sync that has ended.
    pub fn sync_beside(&mut self, every: Duration, mark: u64) -> Result<Option<u64>, RecorderError> {
        let Some(syncing) = &mut self.syncing else { return Ok(None) };
        let ended = syncing.look(self.store)?;
        if syncing.since_last() >= every {
            syncing.begin(self.store, mark)?;
        }
        Ok(ended)
    }

    /// Passes cash along the stored links so that importance follows from them, while records are being synced. Returns
    /// the number of rounds.
    pub fn settle(&mut self) -> Result<u32, RecorderError> {
        if let Some(syncing) = &mut self.syncing {
            syncing.begin(self.store, 0)?;
        }
        let rounds = self.credits.settle(self.store.state_mut(), self.memory.settling())?;
        tracing::info!(rounds, "cash was passed along the stored links");
        if rounds > 0 {
            self.audited_at = None;
        }
        Ok(rounds)
    }

    /// Makes everything durable, however long readers block the state.
    pub fn conclude(&mut self) -> Result<(), RecorderError> {
        if let Some(syncing) = &mut self.syncing {
            syncing.wait(self.store)?;
        }
        self.balance()?;
        Ok(self.store.checkpoint_waiting()?)
    }

    /// Commits the remaining texts, ends the index's thread, and adds replaced versions to the index of older versions.
    pub fn close_index(&mut self) -> Result<(), RecorderError> {
        let Some(index) = self.index.take() else { return Ok(()) };
        index.finish(self.store.state().totals().captures)?;
        indexer::index_versions(self.store, self.memory)
    }
}

/// Whether a capture has another media type than the original that holds its payload, and by which it is read.
fn has_other_type(store: &Store, capture: &Capture) -> Result<bool, StoreError> {
    Ok(store.original(capture)?.is_none_or(|original| original.mime != capture.mime))
}

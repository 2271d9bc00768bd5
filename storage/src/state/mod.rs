//! Everything the archive knows besides the segments: URLs, pages, visits, captures, titles, validators, links, hosts,
//! sites.
//!
//! One owner changes a [`State`] in memory and makes all changes durable at once with [`State::checkpoint`], together
//! with the [`Watermarks`] that say which part of the segments it reflects. Readers, in this or other processes, open the
//! last checkpoint while the owner writes. Nothing in here locks: reading needs `&State`, changing `&mut State`.
//!
//! Invariants: URL `i` has page `i`; a page's `visit`, a visit's `captures`, `last_capture`, `links`, `version`
//! and `validators` are kept by the store, whatever the caller puts there; what was changed since the last checkpoint is gone after a crash, and is made
//! again by replaying the segments from the watermark.

mod captures;
mod check;
mod commit;
mod files;
mod names;
mod open;
mod pages;
mod scrub;
mod small;
mod texts;

use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::backend::{Disk, DiskFile};
use crate::catalogue::{Catalogue, Contents, GENERATION, IDENTITY, NUMBER};
use crate::checkpoint::{Journal, RecordLog, Result, StateError, Table};
use crate::history::CaptureRecord;
use crate::ids::Watermarks;
use crate::index::HashIndex;
use crate::links::LinkLog;
use crate::pages::{Host, Page, Site, VisitRecord};
use crate::urls::{Finder, NameTable};

pub use check::Inconsistency;
pub use commit::Checkpointed;
pub use names::{TextCache, UrlCursor};
pub(crate) use open::FOLDER;
pub use pages::{PAGES_TOGETHER, ROWS_TOGETHER};
pub use scrub::Scrub;
pub use small::{LedgerNumbers, SETTING_BYTES_MAX, Totals};
pub use texts::{TITLE_BYTES_MAX, TitleCursor};

/// What a [`State`] is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To change it; there is one owner at a time. An archive that is not there is made.
    Own,
    /// To read it as of the last checkpoint, beside an owner. Checkpoints wait while a reader is open.
    Read,
}

/// How a state uses the machine.
#[derive(Clone, Copy, Debug)]
pub struct StateOptions {
    /// Memory for blocks of pages, visits, captures, hosts and sites, in bytes. `None` goes with the archive: two bytes for
    /// every URL known, at least 32 MiB and at most 256 MiB.
    pub cache_bytes: Option<usize>,
    /// How long a checkpoint waits for readers before it is deferred.
    pub reader_wait: Duration,
}

impl Default for StateOptions {
    fn default() -> Self {
        Self { cache_bytes: None, reader_wait: Duration::from_secs(2) }
    }
}

/// By how much the sums of the field `cash` have changed; they wrap around at 2^64 as the field does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CashWritten {
    /// Over all pages.
    pub pages: i64,
    /// Over all sites.
    pub sites: i64,
}

/// The state; see the module.
#[derive(Debug)]
pub struct State {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    mode: Mode,
    options: StateOptions,
    /// Held for as long as the state is open for changing.
    owner: Option<Arc<dyn DiskFile>>,
    checkpoint_lock: Arc<dyn DiskFile>,
    catalogue: Catalogue,
    /// The sum of the catalogue's file that a reader has read.
    read_sum: Option<u64>,
    /// A reader's: [`lock::calls`] when it came.
    calls: u64,
    /// What the catalogue holds.
    committed: Contents,
    /// The checkpoint that the owner opened it at.
    opened_at: Option<u64>,
    /// What it will hold after the next checkpoint, except lengths and open blocks.
    contents: Contents,
    journal: Journal,
    urls: NameTable,
    /// What finds URLs for a reader: nothing if there is no file, or one that is too old.
    finder: OnceLock<Option<Finder>>,
    host_names: NameTable,
    site_names: NameTable,
    pages: Table<Page>,
    visits: Table<VisitRecord>,
    captures: Table<CaptureRecord>,
    hosts: Table<Host>,
    sites: Table<Site>,
    titles: RecordLog,
    validators: RecordLog,
    links: LinkLog,
    /// Captures that hold a payload, by the first eight bytes of its digest.
    digests: OnceLock<HashIndex>,
    mime_ids: std::collections::HashMap<String, u16>,
    cash_written: CashWritten,
    /// See [`State::kept`].
    kept: Option<Box<dyn Any + Send + Sync>>,
    /// Why the state was given up, if it was.
    poison: Option<String>,
}

impl State {
    /// Makes a state that has no checkpoint yet the successor of another one: its checkpoints continue counting after that
    /// one's, and its generation says that all ids are others.
    pub(crate) fn follow(&mut self, checkpoint: u64, generation: u64) {
        // A checkpoint that was deferred may have left a journal with the next number.
        self.committed.numbers.insert(NUMBER.to_owned(), checkpoint + 2);
        self.contents.numbers.insert(GENERATION.to_owned(), generation + 1);
    }

    /// What holds the archive for its owner.
    pub(crate) fn owner(&self) -> Result<Arc<dyn DiskFile>> {
        self.owner.clone().ok_or(StateError::ReadOnly)
    }

    /// The number of the last checkpoint; 0 before the first.
    #[must_use]
    pub fn checkpoint_number(&self) -> u64 {
        self.committed.number(NUMBER)
    }

    /// What distinguishes this state from every other: ids of one mean nothing in another.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.contents.number(IDENTITY)
    }

    /// What whoever changes the state keeps beside it, in memory alone, for whoever closes it; none if it is of another type.
    #[must_use]
    pub fn kept<T: Any>(&self) -> Option<&T> {
        self.kept.as_deref().and_then(<dyn Any + Send + Sync>::downcast_ref)
    }

    /// The same, to be changed; begun if there is none.
    pub fn kept_mut<T: Any + Send + Sync + Default>(&mut self) -> Option<&mut T> {
        self.kept.get_or_insert_with(|| Box::new(T::default())).downcast_mut()
    }

    /// How often its files have been replaced by others, in which records lie elsewhere.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.contents.number(GENERATION)
    }

    /// Which part of the segments the last checkpoint reflects.
    #[must_use]
    pub fn watermarks(&self) -> Watermarks {
        small::watermarks(&self.committed)
    }

    /// What it was opened for.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Bytes of memory in use by tables, indexes and caches.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        [&self.urls, &self.host_names, &self.site_names].map(NameTable::memory_bytes).iter().sum::<usize>()
            + self.pages.memory_bytes()
            + self.visits.memory_bytes()
            + self.captures.memory_bytes()
            + self.hosts.memory_bytes()
            + self.sites.memory_bytes()
            + self.titles.log().memory_bytes()
            + self.validators.log().memory_bytes()
            + self.links.log().memory_bytes()
            + self.digests.get().map_or(0, HashIndex::memory_bytes)
    }

    /// Bytes of changes in place that wait in memory for the next checkpoint: a reason to make one.
    #[must_use]
    pub fn dirty_bytes(&self) -> usize {
        self.pages.dirty_bytes()
            + self.visits.dirty_bytes()
            + self.captures.dirty_bytes()
            + self.hosts.dirty_bytes()
            + self.sites.dirty_bytes()
    }

    /// Fails unless the state may be changed.
    #[inline]
    fn writable(&self) -> Result<()> {
        if self.mode == Mode::Own && self.poison.is_none() { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    fn refusal(&self) -> StateError {
        match &self.poison {
            Some(reason) => StateError::Poisoned { reason: reason.clone() },
            None => StateError::ReadOnly,
        }
    }

    /// Passes the outcome of a step on; a failure halfway through a change gives the state up.
    fn finish<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome {
            self.poison.get_or_insert_with(|| error.to_string());
        }
        outcome
    }
}

#[cfg(test)]
mod tests;

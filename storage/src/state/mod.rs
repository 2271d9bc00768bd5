//! Everything the archive knows apart from the segments: URLs, pages, visits, captures, titles, validators, links,
//! hosts, sites.
//!
//! One owner changes a [`State`] in memory and makes all changes durable atomically with [`State::checkpoint`],
//! together with the [`Watermarks`] that record which part of the segments it reflects. Readers, in this or other
//! processes, open the last checkpoint while the owner writes. Nothing in here locks: reading takes `&State`, changing
//! `&mut State`.
//!
//! Invariants: URL `i` has page `i`; a page's `visit`, and a visit's `captures`, `last_capture`, `links`, `version` and
//! `validators`, are maintained by the store, whatever the caller sets. Changes since the last checkpoint are lost in a
//! crash, and are restored by replaying the segments from the watermark.

mod alike;
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
use crate::catalogue::{Catalogue, CatalogueContents, GENERATION, IDENTITY, NUMBER};
use crate::checkpoint::{Journal, RecordLog, RecordTable, Result, StateError};
use crate::history::CaptureRecord;
use crate::ids::UrlId;
use crate::ids::Watermarks;
use crate::index::HashIndex;
use crate::links::LinkLog;
use crate::pages::{Host, Page, Site, Visit, VisitRecord};
use crate::urls::{Finder, NameTable};
use crate::veil::Veil;
use alike::KeyIndex;

pub use check::Inconsistency;
pub use commit::Checkpointed;
pub use names::{TextCache, UrlCursor};
pub(crate) use open::FOLDER;
pub use pages::{PAGES_TOGETHER, ROWS_TOGETHER};
pub use scrub::Scrub;
pub use small::{SETTING_BYTES_MAX, Totals};
pub use texts::{TITLE_BYTES_MAX, TitleCursor};

/// The purpose for which a [`State`] is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMode {
    /// For changing it; there is one owner at a time. Creates an archive that does not exist.
    Own,
    /// For reading it as of the last checkpoint, concurrently with an owner. Checkpoints wait while a reader is open.
    Read,
}

/// Resource limits of a state.
#[derive(Clone, Copy, Debug)]
pub struct StateOptions {
    /// Memory for blocks of pages, visits, captures, hosts and sites, in bytes. `None` adapts it to the archive: two
    /// bytes per known URL, at least 32 MiB and at most 256 MiB.
    pub cache_bytes: Option<usize>,
    /// How long a checkpoint waits for readers before it is deferred.
    pub reader_wait: Duration,
}

impl Default for StateOptions {
    fn default() -> Self {
        Self { cache_bytes: None, reader_wait: Duration::from_secs(2) }
    }
}

/// Change of the sums of the field `cash`; wraps around at 2^64 as the field does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CashWritten {
    /// Change of the sum over all pages.
    pub pages: i64,
    /// Change of the sum over all sites.
    pub sites: i64,
}

/// The state; see the module documentation.
#[derive(Debug)]
pub struct State {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    mode: StateMode,
    options: StateOptions,
    /// Held while the state is open for changing.
    owner: Option<Arc<dyn DiskFile>>,
    checkpoint_lock: Arc<dyn DiskFile>,
    catalogue: Catalogue,
    /// For a reader: checksum of the catalogue file that it has read.
    read_sum: Option<u64>,
    /// For a reader: [`lock::calls`] when it was opened.
    calls: u64,
    /// Contents of the catalogue on disk.
    committed: CatalogueContents,
    /// The checkpoint at which the owner opened the state.
    opened_at: Option<u64>,
    /// Contents of the catalogue after the next checkpoint, except lengths and open blocks.
    contents: CatalogueContents,
    journal: Journal,
    urls: NameTable,
    /// Finds URLs for a reader; `None` if the file does not exist or is too old.
    finder: OnceLock<Option<Finder>>,
    /// Finds captured URLs by their keys.
    keys: OnceLock<KeyIndex>,
    host_names: NameTable,
    site_names: NameTable,
    pages: RecordTable<Page>,
    visits: RecordTable<VisitRecord>,
    captures: RecordTable<CaptureRecord>,
    hosts: RecordTable<Host>,
    sites: RecordTable<Site>,
    titles: RecordLog,
    validators: RecordLog,
    links: LinkLog,
    /// Captures that hold a payload, by the first eight bytes of the payload digest.
    digests: OnceLock<HashIndex>,
    mime_ids: std::collections::HashMap<String, u16>,
    cash_written: CashWritten,
    /// See [`State::kept`].
    kept: Option<Box<dyn Any + Send + Sync>>,
    veil: Option<Arc<Veil>>,
    /// Why the state was given up, if it was.
    poison: Option<String>,
}

impl State {
    /// Makes a state without checkpoints the successor of another one: its checkpoint numbers continue from
    /// `checkpoint`, and its new generation shows that all ids have changed.
    pub(crate) fn follow(&mut self, checkpoint: u64, generation: u64) {
        // A deferred checkpoint may have left a journal with the next number.
        self.committed.numbers.insert(NUMBER.to_owned(), checkpoint + 2);
        self.contents.numbers.insert(GENERATION.to_owned(), generation + 1);
    }

    /// The lock by which the owner holds the archive.
    pub(crate) fn owner(&self) -> Result<Arc<dyn DiskFile>> {
        self.owner.clone().ok_or(StateError::ReadOnly)
    }

    /// The number of the last checkpoint; 0 before the first.
    #[must_use]
    pub fn checkpoint_number(&self) -> u64 {
        self.committed.number(NUMBER)
    }

    /// Distinguishes this state from every other; the ids of one state mean nothing in another.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.contents.number(IDENTITY)
    }

    /// In-memory data that callers attach to the state; `None` if there is none of type `T`.
    #[must_use]
    pub fn kept<T: Any>(&self) -> Option<&T> {
        self.kept.as_deref().and_then(<dyn Any + Send + Sync>::downcast_ref)
    }

    /// As [`State::kept`], mutably; creates the default if there is none.
    pub fn kept_mut<T: Any + Send + Sync + Default>(&mut self) -> Option<&mut T> {
        self.kept.get_or_insert_with(|| Box::new(T::default())).downcast_mut()
    }

    /// For a reader: shows the state behind a veil that was made for this checkpoint, until [`State::refresh`].
    pub fn set_veil(&mut self, veil: Arc<Veil>) {
        self.veil = Some(veil);
    }

    /// The veil over the state, if there is one.
    #[must_use]
    pub fn veil(&self) -> Option<&Veil> {
        self.veil.as_deref()
    }

    /// What the veil shows instead of a page and its visit.
    #[inline]
    fn veiled(&self, url: UrlId) -> Option<&(Page, Option<Visit>)> {
        self.veil.as_ref()?.pages.get(&url)
    }

    /// Number of times that its files have been replaced by others, in which records have other positions.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.contents.number(GENERATION)
    }

    /// The part of the segments that the last checkpoint reflects.
    #[must_use]
    pub fn watermarks(&self) -> Watermarks {
        small::watermarks(&self.committed)
    }

    /// The mode in which the state was opened.
    #[must_use]
    pub fn mode(&self) -> StateMode {
        self.mode
    }

    /// Bytes of memory used by tables, indexes and caches.
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

    /// Bytes of in-place changes that wait in memory for the next checkpoint: a reason to make one.
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
        if self.mode == StateMode::Own && self.poison.is_none() { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    fn refusal(&self) -> StateError {
        match &self.poison {
            Some(reason) => StateError::Poisoned { reason: reason.clone() },
            None => StateError::ReadOnly,
        }
    }

    /// Passes the outcome of a step through; a failure halfway through a change makes the state unusable.
    fn finish<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome {
            self.poison.get_or_insert_with(|| error.to_string());
        }
        outcome
    }
}

#[cfg(test)]
mod tests;

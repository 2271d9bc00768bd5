//! Opening a state: recovery for the owner, a consistent view for readers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{CashWritten, State, StateMode, StateOptions, captures};
use crate::backend::{Disk, DiskFile, Lock, OpenMode};
use crate::catalogue::{Catalogue, CatalogueContents, GENERATION, IDENTITY, NUMBER};
use crate::checkpoint::{Journal, RecordLog, RecordTable, Result, StateError, lock, write_block};
use crate::index::HashIndex;
use crate::links::LinkLog;
use crate::rebuild;
use crate::urls::NameTable;

/// Name of the folder of state files within the archive's folder.
pub(crate) const FOLDER: &str = "state";
/// How long an owner waits for readers when it opens the state.
const OPEN_WAIT: Duration = Duration::from_secs(60);
/// Raw bytes at which a block of titles is closed.
const TITLE_BLOCK_BYTES: u16 = 16 * 1024;
/// As for titles, for blocks of validators, which a refresh reads one at a time.
const VALIDATORS_BLOCK_BYTES: u16 = 4 * 1024;

/// Names of tables; the index is the number in the journal.
pub(super) const TABLES: [&str; 5] = ["pages", "visits", "captures", "hosts", "sites"];
/// Names of the block logs.
pub(super) const LOGS: [&str; 6] = ["urls", "host-names", "site-names", "titles", "validators", "links"];

pub(super) fn table_file(table: &str) -> String {
    format!("{table}.table")
}

/// Divisors that give each table's part of the cache.
const PAGES_SHARE: usize = 2;
const VISITS_SHARE: usize = 4;
const CAPTURES_SHARE: usize = 8;
const HOSTS_SHARE: usize = 16;
const SITES_SHARE: usize = 16;

/// Default cache size: bytes per URL, and the minimum and maximum in total. A crawl accesses the pages of a few sites
/// at a time, and the page cache of the operating system backs this cache.
const CACHE_BYTES_PER_URL: usize = 2;
const CACHE_BYTES_MIN: usize = 32 << 20;
const CACHE_BYTES_MAX: usize = 256 << 20;

impl State {
    /// Sets the size of the cache of pages, visits, captures, hosts and sites from now on.
    pub fn set_cache_bytes(&mut self, bytes: usize) {
        self.options.cache_bytes = Some(bytes);
        self.fit_cache();
    }

    /// Divides the cache among the tables; its size depends on the number of URLs unless it was given.
    pub(super) fn fit_cache(&mut self) {
        let fitting = self.urls.len() as usize * CACHE_BYTES_PER_URL;
        let bytes =
            self.options.cache_bytes.unwrap_or_else(|| fitting.clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX));
        self.pages.set_capacity(bytes / PAGES_SHARE);
        self.visits.set_capacity(bytes / VISITS_SHARE);
        self.captures.set_capacity(bytes / CAPTURES_SHARE);
        self.hosts.set_capacity(bytes / HOSTS_SHARE);
        self.sites.set_capacity(bytes / SITES_SHARE);
    }

    /// Opens the archive in a folder.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another process owns it, [`StateError::Missing`] when a reader finds none,
    /// [`StateError::NewerFormat`], [`StateError::Corrupted`], and any I/O error.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path, mode: StateMode) -> Result<Self> {
        Self::open_with(disk, folder, mode, StateOptions::default())
    }

    /// Opens the archive in a folder with options; see [`State::open`].
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn open_with(
        disk: Arc<dyn Disk>,
        folder: &Path,
        mode: StateMode,
        options: StateOptions,
    ) -> Result<Self> {
        match mode {
            StateMode::Own => Self::open_own(disk, folder, options),
            StateMode::Read => Self::open_read(disk, folder, options),
        }
    }

    fn open_own(disk: Arc<dyn Disk>, folder: &Path, options: StateOptions) -> Result<Self> {
        let state_folder = folder.join(FOLDER);
        let failed = |error| StateError::io(&state_folder, error);
        disk.create_dir_all(folder).map_err(failed)?;
        let owner = lock::own(disk.as_ref(), folder)?;
        rebuild::finish_exchange(disk.as_ref(), folder).map_err(failed)?;
        disk.create_dir_all(&state_folder).map_err(failed)?;
        let lock_path = state_folder.join(lock::CHECKPOINT_LOCK);
        let failed = |error| StateError::io(&lock_path, error);
        let checkpoint_lock = disk.open(&lock_path, OpenMode::Create).map_err(failed)?;
        if !lock::exclude_readers(checkpoint_lock.as_ref(), &lock_path, OPEN_WAIT)? {
            return Err(StateError::busy_readers(folder));
        }
        let catalogue = Catalogue::new(disk.clone(), &state_folder);
        let committed = catalogue.load()?;
        let is_begun = committed.number(IDENTITY) > 0;
        let contents = if is_begun { committed.clone() } else { CatalogueContents::begun() };
        let journal = Journal::open(disk.as_ref(), state_folder.join("journal"), OpenMode::Create)?;
        if journal.is_pending(contents.number(NUMBER))? {
            catalogue.settle()?;
            redo(disk.as_ref(), &state_folder, &journal, contents.number(NUMBER))?;
        }
        let mut state = Self::assemble(
            disk,
            folder,
            StateMode::Own,
            options,
            Some(owner),
            checkpoint_lock,
            catalogue,
            contents,
        )?;
        state.committed = committed;
        state.opened_at = Some(state.checkpoint_number());
        for folder in [&state_folder, folder] {
            state.disk.sync_dir(folder).map_err(|error| StateError::sync(folder, error))?;
        }
        state.checkpoint_lock.unlock().map_err(failed)?;
        Ok(state)
    }

    fn open_read(disk: Arc<dyn Disk>, folder: &Path, options: StateOptions) -> Result<Self> {
        let state_folder = folder.join(FOLDER);
        let catalogue = Catalogue::new(disk.clone(), &state_folder);
        let lock_path = state_folder.join(lock::CHECKPOINT_LOCK);
        let failed = |error| StateError::io(&lock_path, error);
        if !disk.exists(&lock_path).map_err(failed)? {
            return Err(StateError::Missing { path: folder.to_owned() });
        }
        let checkpoint_lock = disk.open(&lock_path, OpenMode::Read).map_err(failed)?;
        checkpoint_lock.lock(Lock::Shared).map_err(failed)?;
        let calls = lock::calls(checkpoint_lock.as_ref());
        if !catalogue.exists()? {
            return Err(StateError::Missing { path: folder.to_owned() });
        }
        let (contents, sum) = catalogue.load_newer(None)?.unwrap_or_default();
        if contents.number(NUMBER) == 0 {
            return Err(StateError::Missing { path: folder.to_owned() });
        }
        let mut state = Self::assemble(
            disk,
            folder,
            StateMode::Read,
            options,
            None,
            checkpoint_lock,
            catalogue,
            contents,
        )?;
        state.read_sum = Some(sum);
        state.calls = calls;
        state.overlay_journal()?;
        Ok(state)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts that differ between owner and reader")]
    pub(super) fn assemble(
        disk: Arc<dyn Disk>,
        folder: &Path,
        mode: StateMode,
        options: StateOptions,
        owner: Option<Arc<dyn DiskFile>>,
        checkpoint_lock: Arc<dyn DiskFile>,
        catalogue: Catalogue,
        contents: CatalogueContents,
    ) -> Result<Self> {
        let state_folder = folder.join(FOLDER);
        let open_mode = if mode == StateMode::Own { OpenMode::Create } else { OpenMode::Read };
        let files =
            StateFiles { disk: disk.as_ref(), folder: &state_folder, mode: open_mode, contents: &contents };
        let mime_ids = mime_ids(&contents.mimes);
        let mut state = Self {
            urls: files.names("urls", "pages")?,
            finder: OnceLock::new(),
            keys: OnceLock::new(),
            host_names: files.names("host-names", "hosts")?,
            site_names: files.names("site-names", "sites")?,
            pages: files.table(0)?,
            visits: files.table(1)?,
            captures: files.table(2)?,
            hosts: files.table(3)?,
            sites: files.table(4)?,
            titles: files.records("titles", TITLE_BLOCK_BYTES)?,
            validators: files.records("validators", VALIDATORS_BLOCK_BYTES)?,
            links: files.links()?,
            journal: Journal::open(disk.as_ref(), state_folder.join("journal"), open_mode)?,
            digests: OnceLock::new(),
            folder: folder.to_owned(),
            mode,
            options,
            owner,
            checkpoint_lock,
            catalogue,
            read_sum: None,
            calls: 0,
            committed: contents.clone(),
            opened_at: None,
            contents,
            mime_ids,
            cash_written: CashWritten::default(),
            kept: None,
            veil: None,
            poison: None,
            disk,
        };
        state.fit_cache();
        Ok(state)
    }

    /// Overlays the tables with the journal of a checkpoint that was committed but not applied.
    fn overlay_journal(&mut self) -> Result<()> {
        let journal = self.journal.clone();
        journal.replay(self.checkpoint_number(), |entry| {
            match entry.table {
                0 => self.pages.overlay(entry.block, entry.bytes),
                1 => self.visits.overlay(entry.block, entry.bytes),
                2 => self.captures.overlay(entry.block, entry.bytes),
                3 => self.hosts.overlay(entry.block, entry.bytes),
                4 => self.sites.overlay(entry.block, entry.bytes),
                _ => {}
            }
            Ok(())
        })
    }

    /// Swaps a folder with the folder `name` in the state's folder while no reader is active.
    ///
    /// # Errors
    /// [`StateError::ReadOnly`], [`StateError::Locked`] when readers do not leave, and I/O errors.
    pub fn exchange(&self, new: &Path, name: &str) -> Result<()> {
        self.writable()?;
        let (path, old) = (self.lock_path(), self.folder.join(FOLDER).join(name));
        if !lock::exclude_readers(self.checkpoint_lock.as_ref(), &path, OPEN_WAIT)? {
            return Err(StateError::busy_readers(&self.folder));
        }
        let outcome = rebuild::exchange(new, &old).map_err(|error| StateError::io(&old, error));
        self.checkpoint_lock.unlock().map_err(|error| StateError::io(&path, error))?;
        outcome
    }

    /// Removes a state that cannot be opened, including its settings, so that it can be opened again and rebuilt.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another process owns the archive, and I/O errors.
    pub fn discard(disk: Arc<dyn Disk>, folder: &Path) -> Result<()> {
        let _owner = lock::own(disk.as_ref(), folder)?;
        Catalogue::new(disk, &folder.join(FOLDER)).remove()
    }

    /// For a reader: moves on to the newest checkpoint. Nothing may be read between [`State::pause`] and this.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn refresh(&mut self) -> Result<()> {
        if self.mode == StateMode::Own {
            return Ok(());
        }
        self.pause()?;
        self.veil = None;
        let path = self.lock_path();
        self.checkpoint_lock.lock(Lock::Shared).map_err(|error| StateError::io(&path, error))?;
        self.calls = lock::calls(self.checkpoint_lock.as_ref());
        let Some((found, _)) = self.catalogue.load_newer(self.read_sum)? else { return Ok(()) };
        let is_same = |name: &str| found.number(name) == self.committed.number(name);
        if is_same(NUMBER) && is_same(GENERATION) {
            return Ok(());
        }
        let mut newer = Self::open_read(self.disk.clone(), &self.folder, self.options)?;
        if is_same(GENERATION) {
            newer.adopt_indexes(self)?;
        }
        *self = newer;
        Ok(())
    }

    /// Takes over the indexes that a reader of an earlier checkpoint has built, and adds what is new.
    fn adopt_indexes(&mut self, earlier: &mut Self) -> Result<()> {
        self.urls.adopt_index(&mut earlier.urls)?;
        self.host_names.adopt_index(&mut earlier.host_names)?;
        self.site_names.adopt_index(&mut earlier.site_names)?;
        self.adopt_keys(earlier)?;
        if let Some(mut index) = earlier.digests.take() {
            captures::index_digests(&mut index, &self.captures, earlier.captures.len())?;
            self.digests = OnceLock::from(index);
        }
        Ok(())
    }

    /// For a reader: whether a checkpoint has started waiting for readers since this one was opened.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.mode == StateMode::Read && lock::calls(self.checkpoint_lock.as_ref()) != self.calls
    }

    /// For a reader: lets checkpoints proceed until [`State::refresh`].
    ///
    /// # Errors
    /// When the lock cannot be released.
    pub fn pause(&mut self) -> Result<()> {
        if self.mode == StateMode::Own {
            return Ok(());
        }
        let path = self.lock_path();
        self.checkpoint_lock.unlock().map_err(|error| StateError::io(&path, error))
    }

    pub(super) fn lock_path(&self) -> std::path::PathBuf {
        self.folder.join(FOLDER).join(lock::CHECKPOINT_LOCK)
    }

    /// The index of digests, built on first use.
    pub(super) fn digests(&self) -> Result<&HashIndex> {
        match self.digests.get() {
            Some(index) => Ok(index),
            None => {
                let mut index = HashIndex::with_capacity(self.captures.len() as usize);
                captures::index_digests(&mut index, &self.captures, 0)?;
                Ok(self.digests.get_or_init(|| index))
            }
        }
    }
}

/// Numbers of media types; of those that are empty, the first counts.
pub(super) fn mime_ids(mimes: &[String]) -> HashMap<String, u16> {
    (0..=u16::MAX).zip(mimes).rev().map(|(id, mime)| (mime.clone(), id)).collect()
}

/// Writes the blocks in the journal of the committed checkpoint to the tables again.
fn redo(disk: &dyn Disk, folder: &Path, journal: &Journal, number: u64) -> Result<()> {
    let mut files: [Option<Arc<dyn DiskFile>>; TABLES.len()] = Default::default();
    let path_of = |table: usize| folder.join(table_file(TABLES[table]));
    journal.replay(number, |entry| {
        let table = entry.table as usize;
        let Some(slot) = files.get_mut(table) else {
            return Err(StateError::corrupted(journal.path(), 0, "a table that does not exist"));
        };
        let path = path_of(table);
        let file = match slot {
            Some(file) => file,
            None => {
                slot.insert(disk.open(&path, OpenMode::Write).map_err(|error| StateError::io(&path, error))?)
            }
        };
        write_block(file.as_ref(), &path, entry.block, entry.bytes)
    })?;
    for (table, file) in files.iter().enumerate() {
        if let Some(file) = file {
            file.sync().map_err(|error| StateError::sync(&path_of(table), error))?;
        }
    }
    journal.clear()
}

/// Opens files with the lengths recorded by a checkpoint.
struct StateFiles<'a> {
    disk: &'a dyn Disk,
    folder: &'a Path,
    mode: OpenMode,
    contents: &'a CatalogueContents,
}

impl StateFiles<'_> {
    fn number(&self, name: &str) -> u64 {
        self.contents.number(name)
    }

    fn open_block(&self, log: &str) -> Vec<u8> {
        self.contents.blocks.get(log).cloned().unwrap_or_default()
    }

    fn count(&self, table: &str) -> u32 {
        u32::try_from(self.number(&count_of(table))).unwrap_or(u32::MAX)
    }

    fn names(&self, log: &str, table: &str) -> Result<NameTable> {
        let (stem, block) = (self.folder.join(log), self.open_block(log));
        let mut names = NameTable::open(self.disk, &stem, self.count(table), &block, self.mode)?;
        names.log_mut().set_sum(self.sum(log));
        Ok(names)
    }

    /// The checksum of a log's frames.
    fn sum(&self, log: &str) -> u64 {
        match self.number(&sum_of(log)) {
            0 => self.number(IDENTITY),
            sum => sum,
        }
    }

    /// Opens a table with the minimum cache.
    fn table<R: crate::checkpoint::TableRecord>(&self, id: u32) -> Result<RecordTable<R>> {
        let name = TABLES[id as usize];
        let path = self.folder.join(table_file(name));
        RecordTable::open(self.disk, path, id, self.count(name), self.mode, self.number(IDENTITY))
    }

    fn records(&self, log: &str, block_bytes: u16) -> Result<RecordLog> {
        let (stem, blocks) = (self.folder.join(log), self.number(&blocks_of(log)));
        let block = self.open_block(log);
        let mut records = RecordLog::open(self.disk, &stem, blocks, block, self.mode, block_bytes)?;
        records.log_mut().set_sum(self.sum(log));
        Ok(records)
    }

    fn links(&self) -> Result<LinkLog> {
        let blocks = self.number(&blocks_of("links"));
        let (stem, block) = (self.folder.join("links"), self.open_block("links"));
        let mut links = LinkLog::open(self.disk, &stem, blocks, block, self.mode)?;
        links.log_mut().set_sum(self.sum("links"));
        Ok(links)
    }
}

/// Key of the number of records in a table.
pub(super) fn count_of(table: &str) -> String {
    format!("count.{table}")
}

/// Key of the checksum of a log's full blocks.
pub(super) fn sum_of(log: &str) -> String {
    format!("sum.{log}")
}

/// Key of the number of full blocks in a log.
pub(super) fn blocks_of(log: &str) -> String {
    format!("blocks.{log}")
}

//! The catalogue: one small redb file whose transactions are the commit points of checkpoints.
//!
//! It holds small data: numbers (lengths of all files, watermark, totals, counters), the open blocks of the logs,
//! media types, segments and settings. All of it is in memory while the state is open ([`CatalogueContents`]).
//!
//! Invariant: the file is written only while the checkpoint lock is held exclusively, from opening to closing the file.
//! So a reader under the shared lock always copies a file that is not being written.

mod backend;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::DateTime;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::backend::{Disk, OpenMode, read_file};
use crate::checkpoint::{Result, StateError};
use crate::ids::SegmentId;
use crate::quietly;
use crate::segment::{Catalogued, SegmentInfo};
use crate::warc::MEDIA_TYPE_BYTES_MAX;
use backend::{FileBackend, memory_backend};

/// Key of the checkpoint's number in [`CatalogueContents::numbers`].
pub(crate) const NUMBER: &str = "checkpoint";
/// Key of the number of rebuilds in [`CatalogueContents::numbers`]: ids of different generations are unrelated.
pub(crate) const GENERATION: &str = "generation";
/// Key of the state's identity in [`CatalogueContents::numbers`]: it seeds the checksums of the files, and so distinguishes them
/// from those of other states.
pub(crate) const IDENTITY: &str = "identity";
/// Key of the number of rewrites of segments in [`CatalogueContents::numbers`], by which an interrupted rewrite is settled.
pub(crate) const REWRITES: &str = "rewrites";
/// Key of the format of all state files in [`CatalogueContents::numbers`].
pub(crate) const FORMAT: &str = "format";
/// The format that this code writes.
pub(crate) const FORMAT_VERSION: u64 = 4;

/// File name in the state's folder.
pub(crate) const FILE: &str = "catalogue.redb";
/// Maximum size of a catalogue: every command reads it into memory.
const FILE_BYTES_MAX: u64 = 1 << 30;
const CACHE_BYTES: usize = 16 << 20;
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const BLOCKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("blocks");
const MIMES: TableDefinition<'_, u16, &str> = TableDefinition::new("mimes");
const SEGMENTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("segments");
const SETTINGS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("settings");

/// Life cycle of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SegmentState {
    /// The segment is being written.
    Open,
    /// The segment never changes again.
    Closed,
    /// The segment is damaged and was moved to quarantine.
    Quarantined,
}

/// The catalogue's entry of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// File name in the folder of segments, without `.open`.
    pub file: String,
    /// State of the segment.
    pub state: SegmentState,
    /// Number of WARC records.
    pub records: u64,
    /// Number of captures.
    pub captures: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time of the oldest capture, microseconds since 1970.
    pub first_time: Option<i64>,
    /// Time of the newest capture, microseconds since 1970.
    pub last_time: Option<i64>,
    /// SHA-256 of the closed file, lowercase hex.
    pub sha256: Option<String>,
}

impl SegmentEntry {
    /// The entry for a list of segments; `None` for a segment without captures, which cannot be missing.
    fn info(&self, id: SegmentId) -> Option<SegmentInfo> {
        let mut info = SegmentInfo::new(id, &self.file, 0);
        info.is_open = self.state == SegmentState::Open;
        (info.bytes, info.captures, info.records) = (self.bytes, self.captures, self.records);
        let time = |micros: Option<i64>| DateTime::from_timestamp_micros(micros?);
        (info.first, info.last) = (time(self.first_time), time(self.last_time));
        info.sha256 = self.sha256.as_ref().and_then(|digest| digest.parse().ok());
        (self.captures > 0).then_some(info)
    }
}

/// The complete contents of the catalogue.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogueContents {
    pub(crate) numbers: BTreeMap<String, u64>,
    pub(crate) blocks: BTreeMap<String, Vec<u8>>,
    pub(crate) mimes: Vec<String>,
    pub(crate) segments: BTreeMap<SegmentId, SegmentEntry>,
    pub(crate) settings: BTreeMap<String, Vec<u8>>,
}

impl CatalogueContents {
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// The contents of a new state.
    pub(crate) fn begun() -> Self {
        // Never 0, which stands for a missing number.
        let identity = RandomState::new().hash_one(std::process::id()) | 1;
        Self { numbers: BTreeMap::from([(IDENTITY.to_owned(), identity)]), ..Self::default() }
    }

    /// The entries of segments by file name.
    pub(crate) fn catalogued(&self) -> Catalogued {
        let infos = self.segments.iter().filter_map(|(id, entry)| entry.info(*id));
        infos.map(|info| (info.name.clone(), info)).collect()
    }
}

/// The catalogue's file.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

impl Catalogue {
    pub(crate) fn new(disk: Arc<dyn Disk>, folder: &Path) -> Self {
        Self { path: folder.join(FILE), disk }
    }

    /// Removes the catalogue, and the state with it.
    pub(crate) fn remove(&self) -> Result<()> {
        if self.exists()? {
            self.disk.remove(&self.path).map_err(|error| StateError::io(&self.path, error))?;
            let folder = self.path.parent().unwrap_or(Path::new("."));
            self.disk.sync_dir(folder).map_err(|error| StateError::sync(folder, error))?;
        }
        Ok(())
    }

    /// Whether there is a catalogue.
    pub(crate) fn exists(&self) -> Result<bool> {
        self.disk.exists(&self.path).map_err(|error| StateError::io(&self.path, error))
    }

    /// Reads everything from an in-memory copy, in which redb repairs the effects of a crash; the file stays unchanged.
    /// A missing or empty file means an archive without a checkpoint.
    pub(crate) fn load(&self) -> Result<CatalogueContents> {
        let (contents, _) = self.load_newer(None)?.unwrap_or_default();
        Ok(contents)
    }

    /// As [`Catalogue::load`], with the checksum of the file; `None` if its checksum is still `sum`.
    pub(crate) fn load_newer(&self, sum: Option<u64>) -> Result<Option<(CatalogueContents, u64)>> {
        if !self.exists()? {
            return Ok(Some(Default::default()));
        }
        let bytes = self.bytes()?;
        let now = xxh3_64(&bytes);
        if sum == Some(now) {
            return Ok(None);
        }
        if bytes.is_empty() {
            return Ok(Some((CatalogueContents::default(), now)));
        }
        // redb checks only what it needs itself, and panics on some kinds of damage.
        let contents = quietly(|| self.read(&self.open_copy(&bytes)?)).unwrap_or_else(|| Err(self.damaged()));
        Ok(Some((contents?, now)))
    }

    /// As [`Catalogue::load`], for any format: gives a rebuild the contents to take over.
    pub(crate) fn load_any_format(&self) -> Result<CatalogueContents> {
        if !self.exists()? {
            return Ok(CatalogueContents::default());
        }
        let bytes = self.bytes()?;
        let read = || self.read_tables(&self.open_copy(&bytes)?).map_err(|error| self.failed(error));
        quietly(read).unwrap_or_else(|| Err(self.damaged()))
    }

    /// Opens an in-memory copy of the file, in which redb repairs the effects of a crash.
    fn open_copy(&self, bytes: &[u8]) -> Result<Database> {
        let backend = memory_backend(bytes).map_err(|error| StateError::io(&self.path, error))?;
        let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(backend);
        let mut database = database.map_err(|error| self.failed(error))?;
        if !database.check_integrity().map_err(|error| self.failed(error))? {
            return Err(self.damaged());
        }
        Ok(database)
    }

    fn damaged(&self) -> StateError {
        StateError::corrupted(&self.path, 0, "redb finds it inconsistent")
    }

    /// Makes durable what [`Catalogue::load`] reads, whatever happened to the commit that wrote it.
    ///
    /// A commit that was killed may be visible but not yet durable; one whose sync failed may be visible and never
    /// become durable unless its bytes are written again.
    pub(crate) fn settle(&self) -> Result<()> {
        let bytes = self.bytes()?;
        let file =
            self.disk.open(&self.path, OpenMode::Write).map_err(|error| StateError::io(&self.path, error))?;
        file.write_at(&bytes, 0).map_err(|error| StateError::io(&self.path, error))?;
        file.sync().map_err(|error| StateError::sync(&self.path, error))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let failed = |error| StateError::io(&self.path, error);
        let length =
            self.disk.open(&self.path, OpenMode::Read).and_then(|file| file.len()).map_err(failed)?;
        if length > FILE_BYTES_MAX {
            return Err(StateError::corrupted(&self.path, length, "longer than any catalogue"));
        }
        read_file(self.disk.as_ref(), &self.path).map_err(failed)
    }

    /// Writes the differences from `before` in one durable transaction, under the exclusive lock. The first commit
    /// creates the file and puts it in place once it is complete.
    pub(crate) fn commit(&self, before: &CatalogueContents, after: &CatalogueContents) -> Result<()> {
        if self.exists()? {
            return self.commit_to(&self.path, before, after);
        }
        let new = self.path.with_extension("new");
        let failed = |error| StateError::io(&new, error);
        self.disk.open(&new, OpenMode::Create).and_then(|file| file.set_len(0)).map_err(failed)?;
        self.commit_to(&new, before, after)?;
        self.disk.rename(&new, &self.path).map_err(failed)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        self.disk.sync_dir(folder).map_err(|error| StateError::sync(folder, error))
    }

    fn commit_to(&self, path: &Path, before: &CatalogueContents, after: &CatalogueContents) -> Result<()> {
        let failed = |error: redb::Error| StateError::catalogue(path, error);
        let file = self.disk.open(path, OpenMode::Write).map_err(|error| StateError::io(path, error))?;
        let backend = FileBackend::new(file);
        let failure = backend.failure();
        let database = redb::Builder::new()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(backend)
            .map_err(|error| failed(error.into()))?;
        let transaction = database.begin_write().map_err(|error| failed(error.into()))?;
        write(&transaction, before, after).map_err(failed)?;
        transaction.commit().map_err(|error| failed(error.into()))?;
        // Closing also writes and syncs, but does not report failures.
        drop(database);
        match failure.take() {
            Some(error) => Err(StateError::sync(path, error)),
            None => Ok(()),
        }
    }

    fn failed(&self, error: impl Into<redb::Error>) -> StateError {
        StateError::catalogue(&self.path, error)
    }

    fn read(&self, database: &Database) -> Result<CatalogueContents> {
        let contents = self.read_tables(database).map_err(|error| self.failed(error))?;
        let found = contents.number(FORMAT);
        if found > FORMAT_VERSION {
            return Err(StateError::NewerFormat { found, supported: FORMAT_VERSION });
        }
        if found < FORMAT_VERSION && contents.number(NUMBER) > 0 {
            return Err(StateError::OlderFormat { found, supported: FORMAT_VERSION });
        }
        Ok(contents)
    }

    fn read_tables(&self, database: &Database) -> Result<CatalogueContents, redb::Error> {
        let transaction = database.begin_read()?;
        let mut contents = CatalogueContents::default();
        let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
        // The first commit creates all tables.
        if !names.iter().any(|name| name == NUMBERS.name()) {
            return Ok(contents);
        }
        for row in transaction.open_table(NUMBERS)?.iter()? {
            let (name, number) = row?;
            contents.numbers.insert(name.value().to_owned(), number.value());
        }
        for row in transaction.open_table(BLOCKS)?.iter()? {
            let (name, bytes) = row?;
            contents.blocks.insert(name.value().to_owned(), bytes.value().to_vec());
        }
        for row in transaction.open_table(MIMES)?.iter()? {
            let (_, mime) = row?;
            // Earlier releases numbered types of any length.
            let is_type = mime.value().len() <= MEDIA_TYPE_BYTES_MAX;
            contents.mimes.push(if is_type { mime.value().to_owned() } else { String::new() });
        }
        for row in transaction.open_table(SEGMENTS)?.iter()? {
            let (id, entry) = row?;
            let entry = serde_json::from_slice(entry.value())
                .map_err(|error| redb::Error::Corrupted(format!("segment {}: {error}", id.value())))?;
            contents.segments.insert(SegmentId(id.value()), entry);
        }
        for row in transaction.open_table(SETTINGS)?.iter()? {
            let (name, bytes) = row?;
            contents.settings.insert(name.value().to_owned(), bytes.value().to_vec());
        }
        Ok(contents)
    }
}

fn write(
    transaction: &redb::WriteTransaction,
    before: &CatalogueContents,
    after: &CatalogueContents,
) -> Result<(), redb::Error> {
    let mut numbers = transaction.open_table(NUMBERS)?;
    for (name, number) in &after.numbers {
        if before.numbers.get(name) != Some(number) {
            numbers.insert(name.as_str(), number)?;
        }
    }
    write_changes(&mut transaction.open_table(BLOCKS)?, &before.blocks, &after.blocks)?;
    write_changes(&mut transaction.open_table(SETTINGS)?, &before.settings, &after.settings)?;
    for name in before.numbers.keys().filter(|name| !after.numbers.contains_key(*name)) {
        numbers.remove(name.as_str())?;
    }
    let mut mimes = transaction.open_table(MIMES)?;
    for id in after.mimes.len()..before.mimes.len() {
        mimes.remove(id as u16)?;
    }
    for (id, mime) in (0..).zip(&after.mimes).skip(before.mimes.len()) {
        mimes.insert(id, mime.as_str())?;
    }
    let mut segments = transaction.open_table(SEGMENTS)?;
    for (id, entry) in &after.segments {
        if before.segments.get(id) != Some(entry) {
            let bytes = serde_json::to_vec(entry).map_err(|error| redb::Error::Io(error.into()))?;
            segments.insert(id.0, bytes.as_slice())?;
        }
    }
    for id in before.segments.keys().filter(|id| !after.segments.contains_key(id)) {
        segments.remove(id.0)?;
    }
    Ok(())
}

fn write_changes(
    table: &mut redb::Table<'_, &str, &[u8]>,
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> Result<(), redb::Error> {
    for (name, bytes) in after {
        if before.get(name) != Some(bytes) {
            table.insert(name.as_str(), bytes.as_slice())?;
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        table.remove(name.as_str())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

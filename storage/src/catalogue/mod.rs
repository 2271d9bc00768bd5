//! The catalogue: one small redb file whose transactions are the commit points of checkpoints.
//!
//! It holds what is small: numbers (lengths of all files, watermark, totals, the ledger), the open blocks of the logs,
//! media types, segments and settings. All of it is in memory while the state is open ([`Contents`]).
//!
//! Invariant: the file is written only while the checkpoint lock is held exclusively, from opening to closing it. So a
//! reader under the shared lock copies a file that is not being written.

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

/// The number of the checkpoint, in [`Contents::numbers`].
pub(crate) const NUMBER: &str = "checkpoint";
/// How often the state was rebuilt, in [`Contents::numbers`]: ids of different generations have nothing in common.
pub(crate) const GENERATION: &str = "generation";
/// What distinguishes the files of one state from those of another, in [`Contents::numbers`]: they are sealed with it.
pub(crate) const IDENTITY: &str = "identity";
/// How often segments were rewritten, in [`Contents::numbers`]: what an interrupted rewriting looks at.
pub(crate) const REWRITES: &str = "rewrites";
/// The format of all state files, in [`Contents::numbers`].
pub(crate) const FORMAT: &str = "format";
/// The format this code writes.
pub(crate) const FORMAT_VERSION: u64 = 3;

/// Its name in the folder of the state.
pub(crate) const FILE: &str = "catalogue.redb";
/// What a catalogue has at most: it is read into memory by every command.
const FILE_BYTES_MAX: u64 = 1 << 30;
const CACHE_BYTES: usize = 16 << 20;
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const BLOCKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("blocks");
const MIMES: TableDefinition<'_, u16, &str> = TableDefinition::new("mimes");
const SEGMENTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("segments");
const SETTINGS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("settings");

/// Whether a segment still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SegmentState {
    /// It is being written.
    Open,
    /// It never changes again.
    Closed,
    /// It is damaged and was put aside.
    Quarantined,
}

/// What the catalogue says of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Name in the folder of segments, without `.open`.
    pub file: String,
    /// Whether it still grows.
    pub state: SegmentState,
    /// WARC records.
    pub records: u64,
    /// Captures.
    pub captures: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Time of its oldest capture, microseconds since 1970.
    pub first_time: Option<i64>,
    /// Time of its newest capture, microseconds since 1970.
    pub last_time: Option<i64>,
    /// SHA-256 of the closed file, lowercase hex.
    pub sha256: Option<String>,
}

impl SegmentEntry {
    /// As a list of segments has it; a segment without captures is nothing that could be missing.
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

/// All that the catalogue holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) numbers: BTreeMap<String, u64>,
    pub(crate) blocks: BTreeMap<String, Vec<u8>>,
    pub(crate) mimes: Vec<String>,
    pub(crate) segments: BTreeMap<SegmentId, SegmentEntry>,
    pub(crate) settings: BTreeMap<String, Vec<u8>>,
}

impl Contents {
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// What a new state begins with.
    pub(crate) fn begun() -> Self {
        // Never 0, which is what a number has that is not there.
        let identity = RandomState::new().hash_one(std::process::id()) | 1;
        Self { numbers: BTreeMap::from([(IDENTITY.to_owned(), identity)]), ..Self::default() }
    }

    /// What it says of segments.
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

    /// Takes the catalogue away, and with it the state.
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

    /// Reads everything from a copy in memory, in which redb repairs what a crash left; the file stays as it is. A file
    /// that is not there or empty is an archive without a checkpoint.
    pub(crate) fn load(&self) -> Result<Contents> {
        let (contents, _) = self.load_newer(None)?.unwrap_or_default();
        Ok(contents)
    }

    /// The same with the sum of the file; nothing while it has this one.
    pub(crate) fn load_newer(&self, sum: Option<u64>) -> Result<Option<(Contents, u64)>> {
        if !self.exists()? {
            return Ok(Some(Default::default()));
        }
        let bytes = self.bytes()?;
        let now = xxh3_64(&bytes);
        if sum == Some(now) {
            return Ok(None);
        }
        if bytes.is_empty() {
            return Ok(Some((Contents::default(), now)));
        }
        // redb checks what it needs for its own work, and panics over some of the damage it meets.
        let contents = quietly(|| self.read(&self.open_copy(&bytes)?)).unwrap_or_else(|| Err(self.damaged()));
        Ok(Some((contents?, now)))
    }

    /// As [`Catalogue::load`], whatever the format: for what a rebuild takes over.
    pub(crate) fn load_any_format(&self) -> Result<Contents> {
        if !self.exists()? {
            return Ok(Contents::default());
        }
        let bytes = self.bytes()?;
        let read = || self.read_tables(&self.open_copy(&bytes)?).map_err(|error| self.failed(error));
        quietly(read).unwrap_or_else(|| Err(self.damaged()))
    }

    /// Opens a copy of the file in memory, in which redb repairs what a crash left.
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

    /// Makes what [`Catalogue::load`] reads durable, whatever the commit that wrote it met.
    ///
    /// A commit that was killed may be visible and not durable yet; one whose sync failed may be visible and never
    /// become durable, unless its bytes are written again.
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

    /// Writes what differs from `before` in one durable transaction, under the exclusive lock. The first one makes the
    /// file, and puts it in place when it is whole.
    pub(crate) fn commit(&self, before: &Contents, after: &Contents) -> Result<()> {
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

    fn commit_to(&self, path: &Path, before: &Contents, after: &Contents) -> Result<()> {
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
        // Closing writes and syncs too, but does not report failures.
        drop(database);
        match failure.take() {
            Some(error) => Err(StateError::sync(path, error)),
            None => Ok(()),
        }
    }

    fn failed(&self, error: impl Into<redb::Error>) -> StateError {
        StateError::catalogue(&self.path, error)
    }

    fn read(&self, database: &Database) -> Result<Contents> {
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

    fn read_tables(&self, database: &Database) -> Result<Contents, redb::Error> {
        let transaction = database.begin_read()?;
        let mut contents = Contents::default();
        let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
        // All tables are made by the first commit.
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
            // Types without a limit were numbered once.
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
    before: &Contents,
    after: &Contents,
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

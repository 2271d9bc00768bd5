//! Appending to segments: group commit, rotation and closing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::codec::Codec;
use super::dictionary::Dictionary;
use super::encode::{Encoded, Encoder};
use super::error::{Context, SegmentError};
use super::guard::Guard;
use super::index::{self, Index};
use super::ledger::SegmentInfo;
use super::name::SegmentName;
use super::read::{SegmentReader, StoredRecord, locked};
use super::recover::{self, Recovered};
use super::replay::ReplayedCapture;
use super::versions::{DictionaryPlan, Versions};
use crate::backend::{Disk, DiskFile, OpenMode};
use crate::clock::Clock;
use crate::digest::{Algorithm, Digest};
use crate::ids::{Location, SegmentId, Watermark};
use crate::warc::{Broken, HeadWriter, RecordIds};

/// How segments are written.
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    /// The compression of new segments. `None` is that of the newest segment, and zstd for a new archive.
    pub codec: Option<Codec>,
    /// The level without a dictionary: 1 to 19 for zstd, 0 to 9 for gzip. `None` is 3 and 6.
    pub level: Option<i32>,
    /// The zstd level with a dictionary. Below 7 the match finder's table has no room for a dictionary of megabytes: real
    /// recaptures took 3.60 MB at level 6 (400 MB/s), 3.41 at 7 (300), 3.30 at 8 (265) and 3.27 at 9 (180).
    pub dictionary_level: i32,
    /// How dictionaries are guarded against damage.
    pub guard: Guard,
    /// The algorithm of block digests.
    pub algorithm: Algorithm,
    /// First part of file names: who or what crawls.
    pub prefix: String,
    /// Last part of file names: the machine.
    pub host: String,
    /// Fields of every segment's `warcinfo` record: software, operator, http-header-user-agent, robots, …
    pub info: Vec<(String, String)>,
    /// Bytes at which a segment should be closed.
    pub bytes_max: u64,
    /// Captures at which a segment should be closed: its index is kept in memory until then.
    pub captures_max: u64,
    /// The age at which a segment should be closed.
    pub age_max: Duration,
    /// The watermark up to which the rest of the archive relies on segments. Recovery never cuts off what lies before
    /// it, however damaged; it reports it.
    pub relied_on: Watermark,
    /// What time it is.
    pub clock: Clock,
    /// Makes record ids repeatable, for tests.
    pub seed: Option<u64>,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            codec: None,
            level: None,
            dictionary_level: 8,
            guard: Guard::default(),
            algorithm: Algorithm::Sha256,
            prefix: "ARCHIVE".into(),
            host: "localhost".into(),
            info: Vec::new(),
            bytes_max: 1 << 30,
            captures_max: 100_000,
            age_max: Duration::from_hours(24),
            relied_on: Watermark::default(),
            clock: Clock::default(),
            seed: None,
        }
    }
}

impl SegmentOptions {
    fn plain_level(&self, codec: Codec) -> i32 {
        self.level.unwrap_or(match codec {
            Codec::Zstd => 3,
            Codec::Gzip => 6,
        })
    }
}

/// Where an appended group lies. It is not durable before a sync returned a watermark at or behind `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The main record.
    pub main: Location,
    /// The position behind the group.
    pub end: Watermark,
}

/// Why a segment should be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationReason {
    /// It is as long as it may be.
    Full,
    /// It is as old as it may be.
    Old,
    /// A dictionary of today's versions would save what it costs.
    DictionaryPays,
}

/// What syncs and appends agree on across threads.
#[derive(Debug, Default)]
struct Durability {
    poisoned: AtomicBool,
    watermark: Mutex<Watermark>,
}

impl Durability {
    fn check(&self) -> Result<(), SegmentError> {
        if self.poisoned.load(Ordering::Acquire) { Err(SegmentError::Poisoned) } else { Ok(()) }
    }

    /// Syncs a file up to a watermark; poisons everything when that fails.
    fn sync(&self, file: &dyn DiskFile, path: &Path, end: Watermark) -> Result<Watermark, SegmentError> {
        self.check()?;
        if let Err(error) = file.sync() {
            self.poisoned.store(true, Ordering::Release);
            return Err(error).context("sync", path);
        }
        let mut watermark = locked(&self.watermark);
        *watermark = (*watermark).max(end);
        Ok(*watermark)
    }
}

/// A sync that any thread may carry out while appending goes on.
#[derive(Debug)]
pub struct SyncHandle {
    file: Option<(Arc<dyn DiskFile>, PathBuf)>,
    end: Watermark,
    durability: Arc<Durability>,
}

impl SyncHandle {
    /// Makes everything durable that had been appended when the handle was made.
    ///
    /// # Errors
    /// When the disk fails; then nothing can be appended any more.
    pub fn sync(&self) -> Result<Watermark, SegmentError> {
        match &self.file {
            Some((file, path)) => self.durability.sync(file.as_ref(), path, self.end),
            None => self.durability.check().map(|()| self.end),
        }
    }
}

/// The segment that is written to.
#[derive(Debug)]
struct Active {
    name: SegmentName,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    info: SegmentInfo,
    hasher: Sha256,
    opened: DateTime<Utc>,
    dictionary: Option<Arc<Dictionary>>,
    index: Index,
}

impl Active {
    fn end(&self) -> Watermark {
        Watermark { segment: self.info.id, offset: self.info.bytes }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        if let Err(error) = self.file.write_at(bytes, self.info.bytes) {
            // What was written of it lies behind the end and is written over next time. Cutting it off as well
            // keeps the file whole if there is no next time; if that fails too, recovery does it.
            let _ = self.file.set_len(self.info.bytes);
            return Err(error).context("write", &self.path);
        }
        self.hasher.update(bytes);
        self.info.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The segments of an archive and their one writer.
#[derive(Debug)]
pub struct Segments {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    options: SegmentOptions,
    /// The compression of new segments.
    codec: Codec,
    encoder: Encoder,
    reader: SegmentReader,
    durability: Arc<Durability>,
    closed: BTreeMap<SegmentId, SegmentInfo>,
    active: Option<Active>,
    versions: Versions,
    /// The dictionary of the next segment.
    next_dictionary: Option<Arc<Dictionary>>,
}

impl Segments {
    /// Opens the segments of an archive for writing, and recovers them from a crash.
    ///
    /// Whoever calls must own the archive: no other process may write to it. A new segment starts with the first
    /// append.
    ///
    /// # Errors
    /// When the disk refuses. Damage within segments is no error but part of what is returned.
    pub fn open(
        disk: Arc<dyn Disk>,
        archive: &Path,
        options: SegmentOptions,
    ) -> Result<(Self, Vec<Recovered>), SegmentError> {
        let folder = archive.join(super::FOLDER);
        disk.create_dir_all(&folder).context("create", &folder)?;
        disk.sync_dir(archive).context("sync", archive)?;
        let (closed, recovered) = recover::recover(&disk, &folder, options.relied_on, options.guard)?;
        let ids = options.seed.map_or_else(RecordIds::random, |seed| {
            // Opening again must not give the same ids again.
            RecordIds::seeded(seed ^ ((closed.len() as u64) << 32))
        });
        let newest = closed.values().next_back().and_then(|info| SegmentName::parse(&info.name));
        let codec = options.codec.or(newest.map(|name| name.codec)).unwrap_or(Codec::Zstd);
        let encoder = Encoder::new(options.algorithm, ids, codec, options.plain_level(codec));
        let reader = SegmentReader::new(disk.clone(), archive);
        let mut versions = Versions::new(options.guard);
        if let Some(info) = closed.values().next_back().filter(|_| codec == Codec::Zstd) {
            index::recall(disk.as_ref(), &folder, info, &mut versions);
        }
        let segments = Self {
            disk,
            folder,
            options,
            codec,
            encoder,
            reader,
            durability: Arc::default(),
            closed,
            active: None,
            versions,
            next_dictionary: None,
        };
        *locked(&segments.durability.watermark) = segments.watermark();
        Ok((segments, recovered))
    }

    /// What compresses groups for this archive.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// What reads records of this archive, on any thread.
    #[must_use]
    pub fn reader(&self) -> SegmentReader {
        self.reader.clone()
    }

    /// The position behind the last group.
    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.active.as_ref().map_or(Watermark { segment: self.next_id(), offset: 0 }, Active::end)
    }

    fn next_id(&self) -> SegmentId {
        // An id that something relies on is not given again, even if its file was taken away.
        let last = self.closed.keys().next_back().map_or(0, |last| last.0 + 1);
        let relied_on = self.options.relied_on;
        SegmentId(last.max(relied_on.segment.0 + u32::from(relied_on.offset > 0)))
    }

    /// Appends a group. It takes the group's bytes by reference, so that the caller can try again when the disk was full.
    ///
    /// # Errors
    /// When the disk refuses: then nothing of the group is in the archive.
    pub fn append(&mut self, encoded: &Encoded) -> Result<Appended, SegmentError> {
        self.durability.check()?;
        if self.active.is_none() {
            self.active = Some(self.create()?);
        }
        let again;
        let encoded = if encoded.generation == self.encoder.generation_number() {
            encoded
        } else {
            again = self.encoder.encode(encoded.group.clone())?;
            &again
        };
        // Created above if there was none.
        let Some(active) = &mut self.active else { return Err(SegmentError::Missing(self.next_id())) };
        let start = active.info.bytes;
        active.write(&encoded.packed)?;
        active.info.count(encoded.group.time, u64::from(encoded.records), encoded.plain_length);
        let (offset, length) = encoded.main;
        let main = Location { segment: active.info.id, offset: start + u64::from(offset), length };
        if let Some(facts) = &encoded.facts {
            let group = &encoded.group;
            active.index.add(&group.url, group.time, facts, group.payload_digest, main);
            if encoded.is_version() {
                self.versions.count(&group.url, encoded.plain_length, main);
            }
        }
        Ok(Appended { main, end: active.end() })
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// When the disk fails; then nothing can be appended any more.
    pub fn sync(&mut self) -> Result<Watermark, SegmentError> {
        self.sync_handle().sync()
    }

    /// A sync of everything appended so far, to be carried out by another thread.
    #[must_use]
    pub fn sync_handle(&self) -> SyncHandle {
        let file = self.active.as_ref().map(|active| (active.file.clone(), active.path.clone()));
        SyncHandle { file, end: self.watermark(), durability: self.durability.clone() }
    }

    /// Whether the segment should be closed. The caller then calls [`Segments::rotate`], with a dictionary if it has one.
    #[must_use]
    pub fn rotation_due(&self) -> Option<RotationReason> {
        let active = self.active.as_ref().filter(|active| active.info.captures > 0)?;
        if active.info.bytes >= self.options.bytes_max || active.info.captures >= self.options.captures_max {
            return Some(RotationReason::Full);
        }
        let age = (self.options.clock.now() - active.opened).to_std().unwrap_or_default();
        if age >= self.options.age_max {
            return Some(RotationReason::Old);
        }
        (self.codec == Codec::Zstd && self.versions.dictionary_pays())
            .then_some(RotationReason::DictionaryPays)
    }

    /// Closes the segment; the next one gets this dictionary. gzip knows no dictionaries and passes it over.
    ///
    /// # Errors
    /// When the disk refuses. What was appended is then as safe as before, and the segment may be closed later; unless
    /// giving it its final name failed, which ends writing as a failed sync does.
    pub fn rotate(&mut self, dictionary: Option<Arc<Dictionary>>) -> Result<(), SegmentError> {
        self.finish()?;
        self.next_dictionary = dictionary.filter(|_| self.codec == Codec::Zstd);
        let level = match &self.next_dictionary {
            Some(_) => self.options.dictionary_level,
            None => self.options.plain_level(self.codec),
        };
        self.encoder.change(self.codec, level, self.next_dictionary.clone());
        self.versions.rotate(self.next_dictionary.as_deref());
        Ok(())
    }

    /// What the next segment's dictionary can be built from: the newest versions of the pages captured of late, in this
    /// segment and those before it. `None` for gzip, which knows no dictionaries.
    ///
    /// Also of use before the first append after opening.
    #[must_use]
    pub fn dictionary_plan(&self) -> Option<DictionaryPlan> {
        (self.codec == Codec::Zstd).then(|| self.versions.plan(self.reader()))
    }

    /// Closes the segment and ends writing.
    ///
    /// # Errors
    /// When the disk refuses; the next opening then recovers.
    pub fn close(mut self) -> Result<(), SegmentError> {
        self.finish()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or holds something else at this place.
    pub fn read(&self, location: Location) -> Result<StoredRecord, SegmentError> {
        self.reader.read(location)
    }

    /// What is known of every segment, in order.
    #[must_use]
    pub fn list(&self) -> Vec<SegmentInfo> {
        let active = self.active.as_ref().map(|active| active.info.clone());
        self.closed.values().cloned().chain(active).collect()
    }

    /// Gives back every capture behind a watermark, in the order of appending, and says what it had to pass over.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replay(
        &self,
        from: Watermark,
        found: &mut dyn FnMut(ReplayedCapture),
    ) -> Result<Vec<(SegmentId, Broken)>, SegmentError> {
        let mut broken = Vec::new();
        for info in self.list().into_iter().filter(|info| info.id >= from.segment) {
            let offset = if info.id == from.segment { from.offset } else { 0 };
            let start = Watermark { segment: info.id, offset };
            broken.extend(self.replay_segment(start, found)?.into_iter().map(|place| (info.id, place)));
        }
        Ok(broken)
    }

    /// Gives back the captures of one segment behind a position in it. Several threads may replay several segments.
    ///
    /// # Errors
    /// When the disk refuses or there is no such segment.
    pub fn replay_segment(
        &self,
        from: Watermark,
        found: &mut dyn FnMut(ReplayedCapture),
    ) -> Result<Vec<Broken>, SegmentError> {
        let active = self.active.as_ref().filter(|active| active.info.id == from.segment);
        let closed = || self.closed.get(&from.segment).map(|info| info.name.as_str());
        let path = match active {
            Some(active) => active.path.clone(),
            None => self.folder.join(closed().ok_or(SegmentError::Missing(from.segment))?),
        };
        let file = self.disk.open(&path, OpenMode::Read).context("open", &path)?;
        recover::replay(file, from, &path, found)
    }

    /// Starts a segment. If that fails, no trace of it is left.
    fn create(&self) -> Result<Active, SegmentError> {
        let opened = self.options.clock.now();
        let id = self.next_id();
        let name = SegmentName::new(&self.options.prefix, &self.options.host, id, self.codec, opened);
        let path = self.folder.join(name.open());
        let file = self.disk.open(&path, OpenMode::Create).context("create", &path)?;
        let outcome = self.start(name, &path, file, opened);
        if outcome.is_err() {
            // Should this fail too, the file has no groups, and the next opening removes it.
            let _ = self.disk.remove(&path);
        }
        outcome
    }

    fn start(
        &self,
        name: SegmentName,
        path: &Path,
        file: Arc<dyn DiskFile>,
        opened: DateTime<Utc>,
    ) -> Result<Active, SegmentError> {
        file.set_len(0).context("write", path)?;
        let dictionary = self.next_dictionary.clone();
        let mut info = SegmentInfo::new(name.id, name.closed());
        info.dictionary = dictionary.as_deref().map(Dictionary::digest);
        let (path, hasher, index) = (path.to_owned(), Sha256::new(), Index::new(name.closed()));
        let mut active = Active { name, path, file, info, hasher, opened, dictionary, index };
        if let Some(dictionary) = &active.dictionary.clone() {
            active.write(&dictionary.first_frame())?;
        }
        let warcinfo = self.warcinfo(&active)?;
        active.write(&warcinfo)?;
        active.info.records += 1;
        self.durability.sync(active.file.as_ref(), &active.path, active.end())?;
        self.disk.sync_dir(&self.folder).context("sync", &self.folder)?;
        Ok(active)
    }

    fn warcinfo(&self, active: &Active) -> Result<Vec<u8>, SegmentError> {
        let mut fields = String::new();
        let mut line = |name: &str, value: &str| {
            fields.extend([name, ": ", &value.replace(['\r', '\n'], " "), "\r\n"]);
        };
        for (name, value) in &self.options.info {
            line(name, value);
        }
        line("format", "WARC File Format 1.1");
        line("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/");
        if let Some(digest) = active.info.dictionary {
            line("dictionary", &digest.to_string());
        }
        let mut head = HeadWriter::new("warcinfo", &self.encoder.ids().next(), active.opened);
        head.field("WARC-Filename", active.name.closed());
        head.field("Content-Type", "application/warc-fields");
        head.field("WARC-Block-Digest", Digest::of(self.encoder.algorithm(), fields.as_bytes()));
        self.encoder.single(&head.finish(fields.len()), fields.as_bytes())
    }

    /// Closes the segment that is written to, if there is one.
    fn finish(&mut self) -> Result<(), SegmentError> {
        self.durability.check()?;
        let Some(active) = &mut self.active else { return Ok(()) };
        self.durability.sync(active.file.as_ref(), &active.path, active.end())?;
        // Were closing to fail below, more groups may still follow: so the tail is written, but not counted.
        let tail = active
            .dictionary
            .as_deref()
            .map(|dictionary| dictionary.last_frame(self.options.guard))
            .unwrap_or_default();
        let mut info = active.info.clone();
        let mut hasher = active.hasher.clone();
        // An earlier try may have left a tail that reaches further.
        active.file.set_len(info.bytes).context("cut", &active.path)?;
        active.file.write_at(&tail, info.bytes).context("write", &active.path)?;
        hasher.update(&tail);
        info.bytes += tail.len() as u64;
        info.is_open = false;
        info.sha256 = Some(Digest::from_sha256(hasher.finalize().into()));
        self.durability.sync(active.file.as_ref(), &active.path, active.end())?;
        recover::describe_closed(self.disk.as_ref(), &self.folder, &info, &active.index, &self.closed)?;
        if let Err(error) = recover::rename_closed(self.disk.as_ref(), &self.folder, &active.name) {
            self.durability.poisoned.store(true, Ordering::Release);
            return Err(error);
        }
        self.reader.forget(info.id);
        self.closed.insert(info.id, info);
        self.active = None;
        let end = self.watermark();
        *locked(&self.durability.watermark) = end;
        Ok(())
    }
}

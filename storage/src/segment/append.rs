//! Owner of the segments: appends by host group, group commit, replay.

mod file;
mod rotation;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::Codec;
use super::encode::{CompressedGroup, Encoded, Encoder};
use super::error::{IoContext, SegmentError};
use super::guard::Guard;
use super::host_group::{HostGroup, host_hash};
use super::index;
use super::ledger::{self, Closed, SegmentInfo};
use super::name::SegmentName;
use super::options::SegmentOptions;
use super::order::{self, CaptureStream, ReplaySegment};
use super::read::{SegmentReader, StoredRecord};
use super::recover::{self, Recovered};
use super::replay::ReplayedCapture;
use super::rewrite::Moved;
use super::versions::{PAGES_MAX, PageHash, Versions};
use super::writer::{Active, Durability, GroupWriter, SyncHandle};
use crate::backend::{Disk, OpenMode};
use crate::ids::{Location, SegmentId, Watermark, Watermarks};
use crate::warc::{Broken, RecordIds};

pub(super) use file::warcinfo;
pub use rotation::RotationReason;

/// Captures of one segment that [`Segments::replay_ahead`] decodes ahead.
const AHEAD_MAX: usize = 64;

/// Location of an appended group. It is durable only once a sync has returned watermarks that include it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The main record.
    pub main: Location,
    /// The position after the group.
    pub end: Watermark,
    /// Bytes that the group takes in the segment.
    pub bytes: u64,
}

/// The segments of an archive, owned by their only writer.
#[derive(Debug)]
pub struct Segments {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) folder: PathBuf,
    pub(super) options: SegmentOptions,
    /// The compression of new segments.
    pub(super) codec: Codec,
    /// How their dictionaries are guarded.
    pub(super) guard: Guard,
    pub(super) encoder: Encoder,
    pub(super) reader: SegmentReader,
    pub(super) durability: Arc<Durability>,
    pub(super) closed: Closed,
    /// Segments that were closed once but whose files are gone; their summaries are kept.
    pub(super) missing: Closed,
    /// One writer for each host group; together they hold every host.
    writers: Vec<GroupWriter>,
    /// Whether the versions in closed segments still have to be recalled. The first append does that, so that a process
    /// that appends nothing never pays for it.
    recalls: bool,
    /// Versions of pages that will be captured soon, kept until they are recalled; at most [`PAGES_MAX`].
    expected: Vec<(PageHash, Location)>,
    /// Number of captures appended so far, which is the number of the next one.
    captures: u64,
}

impl Segments {
    /// Opens the segments of an archive for writing, and recovers them after a crash.
    ///
    /// The caller must own the archive: no other process may write to it. The first append creates a new segment.
    ///
    /// # Errors
    /// When the disk refuses. Damage within segments is not an error; it is reported in the returned list.
    pub fn open(
        disk: Arc<dyn Disk>,
        archive: &Path,
        options: SegmentOptions,
    ) -> Result<(Self, Vec<Recovered>), SegmentError> {
        let folder = archive.join(super::FOLDER);
        disk.create_dir_all(&folder).context("create", &folder)?;
        disk.sync_dir(archive).context("sync", archive)?;
        let recover::Segmented { closed, missing, recovered } = recover::recover(&disk, archive, &options)?;
        let ids = options.seed.map_or_else(RecordIds::random, |seed| {
            // Reopening must not generate the same ids again.
            RecordIds::seeded(seed ^ ((closed.len() as u64) << 32))
        });
        let newest = closed.values().next_back().and_then(|info| SegmentName::parse(&info.name));
        let codec = options.codec.or(newest.map(|name| name.codec)).unwrap_or(Codec::Zstd);
        let encoder = Encoder::new(disk.clone(), folder.clone(), options.algorithm, ids, codec);
        let reader = SegmentReader::new(disk.clone(), archive);
        let guard = ledger::guard(options.guard, &closed);
        let groups = HostGroup::first(if codec == Codec::Zstd { options.host_groups } else { 1 });
        let writer = |hosts| {
            let generation = encoder.generation(options.plain_level(codec), None);
            let versions = Versions::new(guard).split_off(hosts);
            GroupWriter { hosts, active: None, versions, generation, building: None }
        };
        let writers = groups.into_iter().map(writer).collect();
        let last = closed.values().chain(missing.values()).map(|info| info.captures_until).max();
        let captures = last.unwrap_or_default().max(options.relied_on.captures);
        let durability = Arc::default();
        let segments = Self {
            disk,
            folder,
            options,
            codec,
            guard,
            encoder,
            reader,
            durability,
            closed,
            missing,
            writers,
            recalls: codec == Codec::Zstd,
            expected: Vec::new(),
            captures,
        };
        segments.route();
        Ok((segments, recovered))
    }

    /// Returns the encoder that compresses groups for this archive.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Returns a reader of this archive's records, for use on any thread.
    #[must_use]
    pub fn reader(&self) -> SegmentReader {
        self.reader.clone()
    }

    fn active(&self) -> impl Iterator<Item = &Active> {
        self.writers.iter().filter_map(|writer| writer.active.as_ref())
    }

    /// Returns the watermarks after everything appended so far.
    #[must_use]
    pub fn watermarks(&self) -> Watermarks {
        let mut open: Vec<Watermark> = self.active().map(Active::end).collect();
        open.sort_unstable();
        Watermarks { captures: self.captures, next: self.next_id(), open }
    }

    pub(super) fn next_id(&self) -> SegmentId {
        // An id that something relies on is never reused, even if its file was removed.
        let open = self.active().map(|active| active.info.id);
        let closed = self.closed.keys().next_back().into_iter().chain(self.missing.keys().next_back());
        let last = open.chain(closed.copied()).max();
        let next = SegmentId(last.map_or(0, |last| last.0 + 1));
        next.max(self.options.relied_on.next)
    }

    fn writer_of(&self, url: &str) -> usize {
        let hash = host_hash(url);
        self.writers.iter().position(|writer| writer.hosts.holds(hash)).unwrap_or_default()
    }

    /// Appends a group to the segment of its host group. Takes the group by reference, so that the caller can retry
    /// after the disk was full.
    ///
    /// # Errors
    /// When the disk refuses; then nothing of the group is in the archive.
    pub fn append(&mut self, encoded: &Encoded) -> Result<Appended, SegmentError> {
        self.durability.check()?;
        self.recall();
        for active in self.writers.iter_mut().filter_map(|writer| writer.active.as_mut()) {
            active.repair(&self.durability)?;
        }
        let place = self.writer_of(&encoded.group.url);
        if self.writers.get(place).is_some_and(|writer| writer.active.is_none()) {
            let active = self.create(place)?;
            self.writers.get_mut(place).map(|writer| writer.active.insert(active));
        }
        // Every host has a writer, and the writer got a segment above.
        let missing = SegmentError::Missing(self.next_id());
        let Some(writer) = self.writers.get_mut(place) else { return Err(missing) };
        let Some(active) = &mut writer.active else { return Err(missing) };
        let again;
        let is_fitting = |packed: &&CompressedGroup| packed.generation == writer.generation.number;
        let packed = match encoded.packed.as_ref().filter(is_fitting) {
            Some(packed) => packed,
            None => {
                again = self.encoder.packed(&encoded.group)?;
                &again
            }
        };
        let group = &encoded.group;
        let main = active.append(packed, group.time, self.captures)?;
        self.captures += 1;
        if let Some(facts) = &packed.facts {
            active.index.add(
                (&group.url, group.request.as_ref()),
                group.time,
                facts,
                group.payload_digest,
                main,
            );
            if encoded.is_version() && writer.versions.count(&group.url, packed.plain_length, main) {
                writer.versions.sample(group);
            }
        }
        Ok(Appended { main, end: active.end(), bytes: packed.length() })
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// When the disk fails; then nothing more can be appended.
    pub fn sync(&mut self) -> Result<Watermarks, SegmentError> {
        self.sync_handle().sync()
    }

    /// Returns a sync of everything appended so far, for another thread to carry out.
    #[must_use]
    pub fn sync_handle(&mut self) -> SyncHandle {
        let files = self.active().filter_map(Active::unsynced).collect();
        if self.active().count() > 1 {
            self.writers.iter_mut().filter_map(|writer| writer.active.as_mut()).for_each(Active::say_number);
        }
        SyncHandle { files, end: self.watermarks(), durability: self.durability.clone() }
    }

    fn route(&self) {
        let route = |writer: &GroupWriter| (writer.hosts, writer.generation.clone());
        self.encoder.route(self.writers.iter().map(route).collect());
    }

    /// Notes the locations of the newest versions of pages that will be captured soon; dictionaries are built from
    /// these first.
    pub fn expect<'a>(&mut self, pages: impl IntoIterator<Item = (&'a str, Location)>) {
        let pages = pages.into_iter().map(|(url, location)| (PageHash::of(url), location));
        if self.recalls {
            self.expected.extend(pages.take(PAGES_MAX.saturating_sub(self.expected.len())));
            return;
        }
        for (page, location) in pages {
            self.expect_page(page, location);
        }
    }

    fn expect_page(&mut self, page: PageHash, location: Location) {
        if let Some(writer) = self.writers.iter_mut().find(|writer| writer.hosts.holds(page.host)) {
            writer.versions.expect(page, location);
        }
    }

    /// Recalls the newest versions in closed segments, then the expected ones, unless that has been done.
    fn recall(&mut self) {
        if !std::mem::take(&mut self.recalls) {
            return;
        }
        let mut versions = Versions::new(self.guard);
        index::recall(self.disk.as_ref(), &self.folder, &self.closed, &mut versions);
        self.writers.iter_mut().for_each(|writer| writer.versions = versions.split_off(writer.hosts));
        for (page, location) in std::mem::take(&mut self.expected) {
            self.expect_page(page, location);
        }
    }

    /// Updates the locations of captures that were moved; `moved` is sorted by their old locations.
    pub(crate) fn relocate(&mut self, moved: &[Moved]) {
        if !self.expected.is_empty() {
            self.recall();
        }
        self.writers.iter_mut().for_each(|writer| writer.versions.relocate(moved));
    }

    /// Closes all segments and ends writing.
    ///
    /// # Errors
    /// When the disk refuses; opening the archive again recovers it.
    pub fn close(mut self) -> Result<(), SegmentError> {
        self.rotate(None)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When the segment is missing, cannot be read, or holds something else at this location.
    pub fn read(&self, location: Location) -> Result<StoredRecord, SegmentError> {
        self.reader.read(location)
    }

    /// Returns the summary of every segment, in the order of their ids.
    #[must_use]
    pub fn list(&self) -> Vec<SegmentInfo> {
        let mut list: Vec<SegmentInfo> = self.closed.values().cloned().collect();
        list.extend(self.active().map(|active| active.info.clone()));
        list.sort_unstable_by_key(|info| info.id);
        list
    }

    /// Returns the segments that were closed once but whose files are gone.
    #[must_use]
    pub fn missing(&self) -> Vec<SegmentInfo> {
        self.missing.values().cloned().collect()
    }

    /// Whether a segment was closed once but its file is gone.
    #[must_use]
    pub fn is_missing(&self, segment: SegmentId) -> bool {
        self.missing.contains_key(&segment)
    }

    /// Replays every capture that the watermarks do not include, in append order. Returns the places that could not be
    /// read.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replay(
        &self,
        from: impl Into<Watermarks>,
        found: &mut dyn FnMut(ReplayedCapture),
    ) -> Result<Vec<(SegmentId, Broken)>, SegmentError> {
        order::merge(self.sources(&from.into()), |source| self.stream(source), found)
    }

    /// Like [`Segments::replay`], but decodes each segment being read ahead on its own thread.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replay_ahead(
        &self,
        from: impl Into<Watermarks>,
        found: &mut dyn FnMut(ReplayedCapture),
    ) -> Result<Vec<(SegmentId, Broken)>, SegmentError> {
        order::merge(self.sources(&from.into()), |source| Ok(self.stream(source)?.ahead(AHEAD_MAX)), found)
    }

    /// Returns where to start reading in each segment that holds captures not included in the watermarks.
    fn sources(&self, from: &Watermarks) -> Vec<ReplaySegment> {
        let source = |info: SegmentInfo| {
            let offset = from.of(info.id)?;
            let number = if offset > 0 { from.captures } else { info.captures_before };
            Some(ReplaySegment { from: Watermark { segment: info.id, offset }, number })
        };
        self.list().into_iter().filter_map(source).collect()
    }

    fn stream(&self, source: &ReplaySegment) -> Result<CaptureStream, SegmentError> {
        let segment = source.from.segment;
        let active = self.active().find(|active| active.info.id == segment);
        let closed = || self.closed.get(&segment).map(|info| info.name.as_str());
        let path = match active {
            Some(active) => active.path.clone(),
            None => self.folder.join(closed().ok_or(SegmentError::Missing(segment))?),
        };
        let file = self.disk.open(&path, OpenMode::Read).context("open", &path)?;
        CaptureStream::resumed(file, source.from, &path, source.number)
    }
}

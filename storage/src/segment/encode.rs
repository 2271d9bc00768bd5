//! Compression of capture groups, on any number of threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::codec::{Codec, Compressor, FRAME_BYTES_MAX};
use super::dictionary::Dictionary;
use super::error::{IoContext, SegmentError};
use super::group::{CaptureBody, CaptureGroup, ImportedRecord, RecordBlock, RecordContent, blocks};
use super::host_group::{HostGroup, host_hash};
use super::index::{IndexFacts, REVISIT_MEDIA_TYPE, UNKNOWN_MEDIA_TYPE};
use super::read::locked;
use crate::backend::{Disk, Spool};
use crate::digest::Algorithm;
use crate::warc::{self, HttpHead, RecordIds};

/// The part of a host group's current segment that compression depends on.
#[derive(Debug)]
pub(super) struct Generation {
    pub number: u64,
    codec: Codec,
    level: i32,
    pub dictionary: Option<Arc<Dictionary>>,
}

impl Generation {
    /// Returns the level to compress at. A dictionary of whole versions keeps its own level, which suits it best.
    fn level(&self, has_time: bool) -> i32 {
        let is_of_versions = self.dictionary.as_ref().is_some_and(|dictionary| !dictionary.is_trained());
        if has_time && self.codec == Codec::Zstd && !is_of_versions {
            self.level.max(LEVEL_WITH_TIME)
        } else {
            self.level
        }
    }
}

/// zstd level for pages captured for the first time when there is time. On nine sites level 9 takes 0.70 of the bytes
/// of our gzip at level 6; level 10 takes some 0.6 % less in a fifth more time. A trained dictionary for each site
/// takes hardly less than one for all sites.
const LEVEL_WITH_TIME: i32 = 10;

/// Number of captures, and their bytes before and after compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrinking {
    /// Number of captures.
    pub captures: u64,
    /// Bytes of their records before compression.
    pub plain_bytes: u64,
    /// Bytes of their records in the segment.
    pub packed_bytes: u64,
}

/// Totals of captures compressed in a hurry, and with time to spare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressionTotals {
    /// Without time to spare.
    pub hurried: Shrinking,
    /// With time to spare, see [`Encoder::take_time`].
    pub at_leisure: Shrinking,
}

impl CompressionTotals {
    fn count(&mut self, has_time: bool, packed: &CompressedGroup) {
        let sum = if has_time { &mut self.at_leisure } else { &mut self.hurried };
        sum.captures += 1;
        sum.plain_bytes += packed.plain_length;
        sum.packed_bytes += packed.length();
    }
}

/// Idle compressors that are kept. One with a dictionary of 8 MiB takes some 30 MB.
const IDLE_COMPRESSORS_MAX: usize = 16;

/// Turns capture groups into the bytes of a segment. Clones share everything.
#[derive(Clone)]
pub struct Encoder {
    shared: Arc<EncoderQueue>,
}

struct EncoderQueue {
    disk: Arc<dyn Disk>,
    /// The folder for spools, in which records too long for memory are assembled.
    spools: PathBuf,
    algorithm: Algorithm,
    ids: RecordIds,
    codec: Codec,
    generations: AtomicU64,
    /// Whether there is time to compress well.
    has_time: AtomicBool,
    packing: Mutex<CompressionTotals>,
    routes: RwLock<Vec<(HostGroup, Arc<Generation>)>>,
    /// Idle compressors with the number of their generation and their level, the most recently used one last.
    idle: Mutex<Vec<((u64, i32), Compressor)>>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("codec", &self.shared.codec).finish_non_exhaustive()
    }
}

/// A capture to be appended. If it has not been compressed yet, or was compressed for another segment than the one it
/// goes into, appending compresses it.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(super) group: CaptureGroup,
    pub(super) packed: Option<CompressedGroup>,
}

/// A group in its compressed form.
#[derive(Clone, Debug)]
pub(super) struct CompressedGroup {
    pub generation: u64,
    /// The first record, if it is too long for memory.
    pub spooled: Option<Arc<Spool>>,
    /// All other records of the group.
    pub bytes: Vec<u8>,
    /// Offset of the main record within the group, and its length.
    pub main: (u32, u32),
    pub records: u32,
    /// Bytes of the records before compression.
    pub plain_length: u64,
    /// `None` for a capture without an answer.
    pub facts: Option<IndexFacts>,
}

impl CompressedGroup {
    /// Bytes that the group takes in the segment.
    pub(super) fn length(&self) -> u64 {
        self.spooled.as_ref().map_or(0, |spool| spool.len()) + self.bytes.len() as u64
    }
}

impl Encoded {
    /// Wraps a capture that is not compressed yet.
    #[must_use]
    pub fn later(group: CaptureGroup) -> Self {
        Self { group, packed: None }
    }

    /// Returns the capture.
    #[must_use]
    pub fn group(&self) -> &CaptureGroup {
        &self.group
    }

    /// Returns the capture for changes; discards its compressed records.
    pub fn change(&mut self) -> &mut CaptureGroup {
        self.packed = None;
        &mut self.group
    }

    /// Whether it holds a payload, so that the page's next version can be based on it.
    pub(super) fn is_version(&self) -> bool {
        match &self.group.body {
            CaptureBody::Response { .. } | CaptureBody::Resource { .. } => true,
            CaptureBody::Imported(record) => record.has_payload(),
            _ => false,
        }
    }

    /// Returns the bytes that it takes in the segment; 0 if it is not compressed.
    #[must_use]
    pub fn packed_length(&self) -> u64 {
        self.packed.as_ref().map_or(0, CompressedGroup::length)
    }

    /// Returns the bytes of its records before compression; 0 if it is not compressed.
    #[must_use]
    pub fn plain_length(&self) -> u64 {
        self.packed.as_ref().map_or(0, |packed| packed.plain_length)
    }

    /// Returns the compressed bytes that are in memory.
    #[must_use]
    pub fn packed_in_memory(&self) -> u64 {
        self.packed.as_ref().map_or(0, |packed| packed.bytes.len() as u64)
    }
}

impl Encoder {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        spools: PathBuf,
        algorithm: Algorithm,
        ids: RecordIds,
        codec: Codec,
    ) -> Self {
        let (generations, routes, idle) = (AtomicU64::new(0), RwLock::default(), Mutex::default());
        let has_time = AtomicBool::new(false);
        let packing = Mutex::default();
        let shared = EncoderQueue {
            disk,
            spools,
            algorithm,
            ids,
            codec,
            generations,
            has_time,
            packing,
            routes,
            idle,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the generation for the next segment of a host group.
    pub(super) fn generation(&self, level: i32, dictionary: Option<Arc<Dictionary>>) -> Arc<Generation> {
        let number = self.shared.generations.fetch_add(1, Ordering::Relaxed);
        Arc::new(Generation { number, codec: self.shared.codec, level, dictionary })
    }

    /// Sets the generation of each host group from now on; captures encoded for another generation will be encoded
    /// again.
    pub(super) fn route(&self, routes: Vec<(HostGroup, Arc<Generation>)>) {
        *self.shared.routes.write().unwrap_or_else(PoisonError::into_inner) = routes;
        let routes = self.routes();
        let is_used = |number: u64| routes.iter().any(|(_, generation)| generation.number == number);
        locked(&self.shared.idle).retain(|((number, _), _)| is_used(*number));
    }

    fn routes(&self) -> RwLockReadGuard<'_, Vec<(HostGroup, Arc<Generation>)>> {
        self.shared.routes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation_of(&self, url: &str) -> Arc<Generation> {
        let hash = host_hash(url);
        let found = self.routes().iter().find(|(hosts, _)| hosts.holds(hash)).map(|(_, found)| found.clone());
        // Every host is in a group once segments are open; without segments, default compression will do.
        found.unwrap_or_else(|| self.generation(0, None))
    }

    pub(super) fn ids(&self) -> &RecordIds {
        &self.shared.ids
    }

    /// Returns the digest algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.shared.algorithm
    }

    /// Sets whether there is time to compress new content well from now on. By default there is none.
    pub fn take_time(&self, has_time: bool) {
        self.shared.has_time.store(has_time, Ordering::Relaxed);
    }

    /// Returns the totals compressed so far.
    #[must_use]
    pub fn packing(&self) -> CompressionTotals {
        *locked(&self.shared.packing)
    }

    fn with_compressor<T>(
        &self,
        generation: &Generation,
        has_time: bool,
        work: impl FnOnce(&mut Compressor) -> Result<T, SegmentError>,
    ) -> Result<T, SegmentError> {
        let level = generation.level(has_time);
        let key = (generation.number, level);
        let idle = {
            let mut idle = locked(&self.shared.idle);
            let place = idle.iter().rposition(|(found, _)| *found == key);
            place.map(|place| idle.remove(place).1)
        };
        let mut compressor = match idle {
            Some(compressor) => compressor,
            None => {
                let dictionary = generation.dictionary.as_deref().map(Dictionary::as_bytes);
                Compressor::new(generation.codec, level, dictionary)?
            }
        };
        // After an error the state of the compressor is unknown, so it is dropped.
        let outcome = work(&mut compressor)?;
        let mut idle = locked(&self.shared.idle);
        if idle.len() >= IDLE_COMPRESSORS_MAX {
            idle.remove(0);
        }
        idle.push((key, compressor));
        Ok(outcome)
    }

    /// Compresses a record that belongs to no group.
    pub(super) fn single(
        &self,
        generation: &Generation,
        head: &str,
        content: &[u8],
    ) -> Result<Vec<u8>, SegmentError> {
        let mut packed = Vec::new();
        self.with_compressor(generation, false, |compressor| {
            compressor.record(head.as_bytes(), content, &mut packed)
        })?;
        Ok(packed)
    }

    /// Builds and compresses the records of a capture.
    ///
    /// # Errors
    /// When a record is longer than [`super::CONTENT_BYTES_MAX`] or there is no memory to compress.
    pub fn encode(&self, group: CaptureGroup) -> Result<Encoded, SegmentError> {
        let packed = Some(self.packed(&group)?);
        Ok(Encoded { group, packed })
    }

    /// Compresses the capture unless that has been done.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn pack(&self, encoded: &mut Encoded) -> Result<(), SegmentError> {
        if encoded.packed.is_none() {
            encoded.packed = Some(self.packed(&encoded.group)?);
        }
        Ok(())
    }

    pub(super) fn packed(&self, group: &CaptureGroup) -> Result<CompressedGroup, SegmentError> {
        let generation = self.generation_of(&group.url);
        let spools = &self.shared.spools;
        let blocks = blocks(group, &self.shared.ids, self.shared.algorithm).context("read", spools)?;
        let (mut bytes, mut spooled, mut plain_length) = (Vec::new(), None, 0);
        let mut places = Vec::with_capacity(blocks.len());
        let has_time = self.shared.has_time.load(Ordering::Relaxed);
        self.with_compressor(&generation, has_time, |compressor| {
            for block in &blocks {
                let (length, maximum) = (block.content.len(), super::CONTENT_BYTES_MAX);
                if length > maximum {
                    return Err(SegmentError::TooLong { bytes: length, maximum });
                }
                plain_length += block.head.len() as u64 + length + 4;
                let start = bytes.len();
                spooled = self.record(block, compressor, &mut bytes)?.or(spooled.take());
                places.push((start as u32, (bytes.len() - start) as u32));
            }
            Ok(())
        })?;
        if let (Some(spool), Some(first)) = (&spooled, places.first_mut()) {
            // Not much longer than the content, whose length was checked above.
            *first = (0, spool.len() as u32);
        }
        let records = blocks.len() as u32;
        let main = if matches!(group.body, CaptureBody::Failed) { places.last() } else { places.first() };
        let main = main.copied().unwrap_or_default();
        let facts = facts(&group.body);
        let spooled = spooled.map(Arc::new);
        let generation = generation.number;
        let packed = CompressedGroup { generation, spooled, bytes, main, records, plain_length, facts };
        locked(&self.shared.packing).count(has_time, &packed);
        Ok(packed)
    }

    /// Appends a compressed record to `packed`; a long spooled record goes into a spool of its own, which is returned.
    fn record(
        &self,
        block: &RecordBlock<'_>,
        compressor: &mut Compressor,
        packed: &mut Vec<u8>,
    ) -> Result<Option<Spool>, SegmentError> {
        let head = block.head.as_bytes();
        let (beginning, body) = match &block.content {
            RecordContent::Bytes(content) => return compressor.record(head, content, packed).map(|()| None),
            RecordContent::Spooled(beginning, body) => (*beginning, *body),
        };
        let folder = &self.shared.spools;
        if block.content.len() < FRAME_BYTES_MAX as u64 {
            let mut content = beginning.to_vec();
            content.extend_from_slice(&body.beginning(FRAME_BYTES_MAX).context("read", folder)?);
            return compressor.record(head, &content, packed).map(|()| None);
        }
        let mut output = Spool::create(self.shared.disk.as_ref(), folder).context("create", folder)?;
        let written = compressor.spooled_record(head, beginning, body, &mut output);
        written.map_err(|error| error.at("write to a file in", folder)).map(|()| Some(output))
    }
}

fn imported_facts(record: &ImportedRecord) -> (Option<u16>, String) {
    let head = record.is_http().then(|| HttpHead::parse(&warc::split(&record.content).0));
    let status = head.as_ref().and_then(HttpHead::status);
    if !record.has_payload() {
        return (status, REVISIT_MEDIA_TYPE.to_owned());
    }
    let stated = record.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    let mime = match &head {
        Some(head) => head.media_type(),
        None => stated.and_then(|(_, value)| warc::media_type(value)),
    };
    (status, mime.unwrap_or_else(|| UNKNOWN_MEDIA_TYPE.to_owned()))
}

/// Returns the index facts of a capture.
fn facts(body: &CaptureBody) -> Option<IndexFacts> {
    let head = |message| HttpHead::parse(&warc::split(message).0);
    let unknown = || UNKNOWN_MEDIA_TYPE.to_owned();
    let (status, mime) = match body {
        CaptureBody::Response { http: message, .. } | CaptureBody::Spooled { head: message, .. } => {
            let head = head(message);
            (head.status(), head.media_type().unwrap_or_else(unknown))
        }
        CaptureBody::Identical { head: message, .. }
        | CaptureBody::SameContent { head: message, .. }
        | CaptureBody::NotModified { head: message, .. } => {
            (head(message).status(), REVISIT_MEDIA_TYPE.to_owned())
        }
        CaptureBody::Resource { content_type, .. } => {
            (None, warc::media_type(content_type).unwrap_or_else(unknown))
        }
        CaptureBody::Imported(record) => imported_facts(record),
        CaptureBody::Failed => return None,
    };
    Some(IndexFacts { status, mime })
}

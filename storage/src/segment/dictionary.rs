//! Base-page dictionaries: earlier versions of a segment's pages, so that new versions take only the bytes that
//! changed.
//!
//! A dictionary is a standard zstd dictionary (RFC 8878 section 5): entropy tables, then content. The content is whole
//! records of earlier captures and the heads that all records have in common. It is the first frame of its file, as the
//! IIPC proposal requires. The last frame guards it, see [`Guard`]. As its versions are also in earlier segments, a
//! frame before the last one records their locations.

use std::path::Path;

use bytes::Bytes;
use zstd::zstd_safe::{self, CCtx, CParameter, DDict};

use super::error::{IoContext, SegmentError};
use super::group;
use super::guard::{self, Guard, SKIPPABLE_COPY, SKIPPABLE_PARITY};
use super::origins::Origins;
use super::samples::{self, Samples};
use crate::backend::{DiskFile, read_exact_at};
use crate::digest::Digest;
use crate::ids::{Location, SegmentId};
use crate::warc::{self, SKIPPABLE_DICTIONARY};

/// Maximum bytes of a dictionary, packed or not: the size that the IIPC proposal requires every reader to accept.
pub(crate) const DICTIONARY_BYTES_MAX: usize = 8 << 20;
/// Maximum bytes of the frame that guards a dictionary.
const FRAME_BYTES_MAX: u64 = DICTIONARY_BYTES_MAX as u64 + 8;
/// Bytes of a trained dictionary. Doubling it saves only one hundredth more.
pub(super) const TRAINED_BYTES_MAX: usize = 112 << 10;
/// Maximum bytes of the packed dictionary in the frames that we write: FastWARC 2.0 refuses more.
const PACKED_BYTES_MAX: usize = 1 << 20;
/// Magic number of a formatted dictionary.
const DICTIONARY_MAGIC: [u8; 4] = 0xec30_a437_u32.to_le_bytes();
/// zstd level for packing a segment's dictionary while other segments are written: 3 to 10 MB/s, on its own thread.
const PACKING_LEVEL: i32 = 19;
/// zstd level for packing trained dictionaries, which a busy crawl builds several times: a tenth larger, in a tenth of
/// the time.
const TRAINED_PACKING_LEVEL: i32 = 9;
/// zstd level for estimating a dictionary's packed size, and the ratio of the final packed size to that estimate.
const QUICK_LEVEL: i32 = 3;
const WELL_SHARE: f64 = 0.82;
/// log2 of the window for packing a dictionary: all of it.
const PACKING_WINDOW_LOG: u32 = 23;
/// log2 of the entries of the match table for packing. zstd's default is twice as many: 85 MB instead of 51, for 0.3 %
/// of the bytes.
const PACKING_CHAIN_LOG: u32 = 23;

/// The entropy tables and first offsets of every dictionary.
///
/// `ZDICT_finalizeDictionary` made them once from recaptures of 20 real pages and 8 MiB of their bases; every offset
/// length that occurs has a code. Tables made for each dictionary gained 0.02 % over these on the same pages: a page is
/// long enough to bring its own where that pays.
const ENTROPY_TABLES: [u8; 156] = [
    0x3d, 0x10, 0xb8, 0xda, 0xa6, 0x03, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xe1, 0xa9, 0xfe,
    0x47, 0x37, 0x11, 0x52, 0xeb, 0x26, 0xa4, 0xd8, 0xc4, 0x6e, 0xb9, 0x65, 0x79, 0x9d, 0x69, 0xfc, 0xc7,
    0xff, 0xd7, 0x8f, 0xf8, 0xaf, 0xf1, 0x1f, 0x11, 0xdf, 0xc9, 0x4d, 0xdd, 0x64, 0x92, 0x32, 0xc9, 0x94,
    0x52, 0x22, 0x71, 0xf8, 0x73, 0xd0, 0x81, 0x31, 0xd2, 0x63, 0x02, 0x73, 0x01, 0x00, 0x18, 0x0c, 0x09,
    0x86, 0xa3, 0x11, 0x71, 0x3c, 0x1c, 0x0b, 0x25, 0x69, 0xa2, 0xc2, 0x40, 0x3b, 0x00, 0x04, 0x80, 0x80,
    0x1a, 0x1a, 0x94, 0x0f, 0x8c, 0x88, 0x07, 0xc7, 0x42, 0x91, 0x40, 0x18, 0x0e, 0x87, 0x82, 0xc1, 0x50,
    0x38, 0x14, 0x08, 0x84, 0x01, 0x81, 0x30, 0x20, 0x10, 0x83, 0x51, 0x10, 0x84, 0x41, 0x2c, 0x4a, 0x73,
    0x30, 0x5a, 0x92, 0x00, 0x00, 0x64, 0xf3, 0x88, 0x54, 0x39, 0x4d, 0x62, 0xca, 0x18, 0x42, 0x00, 0x18,
    0x06, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x08,
    0x00, 0x00, 0x00,
];

/// Bytes of a dictionary before its content: magic number, id, tables.
const BEFORE_CONTENT_BYTES: usize = 4 + 4 + ENTROPY_TABLES.len();

/// A stored version that a dictionary is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryBase {
    /// URL of the page.
    pub url: String,
    /// The content of its main record: HTTP head and body as received.
    pub content: Bytes,
    /// Where that record lies in the archive, if it is stored there.
    pub origin: Option<Location>,
}

/// A segment's dictionary, ready to be written.
#[derive(Clone, PartialEq, Eq)]
pub struct Dictionary {
    bytes: Vec<u8>,
    /// The same bytes compressed, as the frames hold them.
    packed: Vec<u8>,
    /// Whether this process trained it: such a dictionary suits low levels.
    is_trained: bool,
    /// Where its versions lie in earlier segments; `None` unless that is known for all of them.
    origins: Option<Origins>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary")
            .field("bytes", &self.bytes.len())
            .field("packed", &self.packed.len())
            .finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Builds a dictionary from the newest stored versions of the pages that a segment will receive, most valuable
    /// first; those that do not fit are left out. Returns `None` if there is nothing to build from.
    ///
    /// Takes some seconds for 8 MiB; any thread can do it while the previous segment is still written to.
    ///
    /// # Errors
    /// When there is no memory to compress it.
    pub fn build(bases: &[DictionaryBase]) -> Result<Option<Self>, SegmentError> {
        Self::packed_at(PACKING_LEVEL, bases)
    }

    /// Like [`Dictionary::build`], packed at the given zstd level.
    pub(super) fn packed_at(level: i32, bases: &[DictionaryBase]) -> Result<Option<Self>, SegmentError> {
        let heads = group::typical_heads(bases.iter().map(|base| base.url.as_str()));
        let mut room = DICTIONARY_BYTES_MAX - ENTROPY_TABLES.len() - 8 - heads.len();
        let mut chosen = Vec::new();
        for base in bases.iter().filter(|base| !base.content.is_empty()) {
            if base.content.len() <= room {
                room -= base.content.len();
                chosen.push(base);
            }
        }
        if chosen.is_empty() {
            return Ok(None);
        }
        // Packing at a high level takes seconds, so bases that will not fit are dropped first.
        let quickly = pack(&content(&chosen, &heads), QUICK_LEVEL)?.len();
        leave(&mut chosen, (quickly as f64 * WELL_SHARE) as usize);
        while !chosen.is_empty() {
            let dictionary = Self::of(&chosen, &heads, level)?;
            let packed = dictionary.packed.len();
            if packed <= PACKED_BYTES_MAX {
                return Ok(Some(dictionary));
            }
            leave(&mut chosen, packed);
        }
        // Bases that do not compress at all, such as images, are of no use as bases either.
        Ok(None)
    }

    fn of(chosen: &[&DictionaryBase], heads: &[u8], level: i32) -> Result<Self, SegmentError> {
        let mut bytes = content(chosen, heads);
        name(&mut bytes);
        let records: Option<Vec<Location>> = chosen.iter().rev().map(|base| base.origin).collect();
        let before = bytes.get(..BEFORE_CONTENT_BYTES).unwrap_or_default().to_vec();
        let origins = records.map(|records| Origins { records, before, after: heads.to_vec() });
        let packed = pack(&bytes, level)?;
        Ok(Self { bytes, packed, is_trained: false, origins })
    }

    /// Wraps a dictionary that was rebuilt from its origins.
    pub(super) fn again(bytes: Vec<u8>, origins: Origins) -> Result<Self, SegmentError> {
        let packed = pack(&bytes, PACKING_LEVEL)?;
        Ok(Self { bytes, packed, is_trained: false, origins: Some(origins) })
    }

    /// Trains a small dictionary on records that stand for similar ones to come. Returns `None` if there is too little
    /// to learn from. Takes less than a second.
    ///
    /// # Errors
    /// When there is no memory to compress it.
    pub(super) fn train(samples: &Samples) -> Result<Option<Self>, SegmentError> {
        Self::trained(samples.train(TRAINED_BYTES_MAX))
    }

    /// Trains a small dictionary on records, each with head and content; some hundreds of them are enough. Returns
    /// `None` if there is too little to learn from.
    ///
    /// # Errors
    /// When there is no memory to compress it.
    pub fn learned<'a>(records: impl Iterator<Item = &'a [u8]>) -> Result<Option<Self>, SegmentError> {
        Self::trained(samples::learned(records, TRAINED_BYTES_MAX))
    }

    fn trained(bytes: Option<Vec<u8>>) -> Result<Option<Self>, SegmentError> {
        let Some(mut bytes) = bytes else { return Ok(None) };
        name(&mut bytes);
        let packed = pack(&bytes, TRAINED_PACKING_LEVEL)?;
        Ok(Some(Self { bytes, packed, is_trained: true, origins: None }))
    }

    /// Whether it was trained on a sample and holds no whole versions.
    pub(super) fn is_trained(&self) -> bool {
        self.is_trained
    }

    /// Returns the dictionary's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes that the dictionary and its guard take in a segment.
    pub(crate) fn stored_length(&self, guard: Guard) -> u64 {
        let first = self.packed.len() as u64 + 8;
        first + guard.length(first)
    }

    /// Returns the digest that identifies it in the `warcinfo` record.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.bytes)
    }

    /// Returns the first frame of a file whose records are compressed with this dictionary.
    #[must_use]
    pub fn first_frame(&self) -> Vec<u8> {
        warc::skippable_frame(SKIPPABLE_DICTIONARY, &self.packed)
    }

    /// Returns the last frames of a segment: the origins of the dictionary's versions, unless the guard is a copy, and
    /// then the guard.
    ///
    /// # Errors
    /// When there is no memory to compress.
    pub(super) fn last_frames(&self, guard: Guard) -> Result<Vec<u8>, SegmentError> {
        let origins = self.origins.as_ref().filter(|_| guard == Guard::Parity);
        let mut frames = origins.map(|origins| origins.frame(self.digest())).transpose()?.unwrap_or_default();
        frames.extend_from_slice(&guard.frame(&self.first_frame()));
        Ok(frames)
    }

    /// Prepares the dictionary for decompression.
    pub(super) fn prepare(&self) -> Option<DDict<'static>> {
        DDict::try_create(&self.bytes)
    }

    fn unpacked(packed: Vec<u8>) -> Result<Self, String> {
        let bytes = warc::embedded_dictionary(&packed)?;
        if !bytes.starts_with(&DICTIONARY_MAGIC) {
            return Err("the dictionary is not in the format of RFC 8878 section 5".into());
        }
        Ok(Self { bytes, packed, is_trained: false, origins: None })
    }
}

/// Returns the bytes of a dictionary made of these bases, without its id.
fn content(chosen: &[&DictionaryBase], heads: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DICTIONARY_BYTES_MAX);
    bytes.extend_from_slice(&DICTIONARY_MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&ENTROPY_TABLES);
    // What stands last is nearest to the data, and short offsets cost less.
    for base in chosen.iter().rev() {
        bytes.extend_from_slice(&base.content);
    }
    bytes.extend_from_slice(heads);
    bytes
}

/// Drops the least valuable bases if a dictionary of `packed` bytes is too large: as many as needed if the bytes pack
/// evenly, and at least one.
fn leave(chosen: &mut Vec<&DictionaryBase>, packed: usize) {
    if packed <= PACKED_BYTES_MAX {
        return;
    }
    let content: usize = chosen.iter().map(|base| base.content.len()).sum();
    let mut surplus = content - (content as f64 * PACKED_BYTES_MAX as f64 / packed as f64) as usize;
    while let Some(base) = chosen.pop() {
        surplus = surplus.saturating_sub(base.content.len());
        if surplus == 0 {
            break;
        }
    }
}

/// Gives a dictionary its id, derived from its content. RFC 8878 section 5 leaves 32768 to 2^31 free for use; below
/// 65536 the id takes two bytes of a frame.
fn name(bytes: &mut [u8]) {
    let Some(place) = bytes.get_mut(4..8) else { return };
    place.fill(0);
    let [low, high, ..] = Digest::sha256(bytes).prefix();
    if let Some(place) = bytes.get_mut(4..8) {
        place.copy_from_slice(&[low, high | 0x80, 0, 0]);
    }
}

fn pack(bytes: &[u8], level: i32) -> Result<Vec<u8>, SegmentError> {
    let explain = |code| SegmentError::Compression(zstd_safe::get_error_name(code).to_owned());
    let mut context = CCtx::try_create().ok_or_else(|| SegmentError::Compression("out of memory".into()))?;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::WindowLog(PACKING_WINDOW_LOG),
        CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).map_err(explain)?;
    }
    if level == PACKING_LEVEL {
        context.set_parameter(CParameter::ChainLog(PACKING_CHAIN_LOG)).map_err(explain)?;
    }
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    context.compress2(&mut packed, bytes).map_err(explain)?;
    packed.shrink_to_fit();
    Ok(packed)
}

/// Reads the dictionary at the start of a segment, if there is one.
fn read(file: &dyn DiskFile, segment: SegmentId, path: &Path) -> Result<Option<Dictionary>, SegmentError> {
    let mut start = [0; 8];
    let length = file.len().context("read", path)?;
    if length < 8 {
        return Ok(None);
    }
    read_exact_at(file, &mut start, 0).context("read", path)?;
    let [a, b, c, d, size @ ..] = start;
    if u32::from_le_bytes([a, b, c, d]) != SKIPPABLE_DICTIONARY {
        return Ok(None);
    }
    let corrupted = |what: String| SegmentError::Corrupted { segment, offset: 0, what };
    let size = u32::from_le_bytes(size) as usize;
    if size > DICTIONARY_BYTES_MAX || size as u64 + 8 > length {
        return Err(corrupted(format!("a dictionary frame of {size} bytes is too long")));
    }
    let mut packed = vec![0; size];
    read_exact_at(file, &mut packed, 8).context("read", path)?;
    Dictionary::unpacked(packed).map(Some).map_err(corrupted)
}

/// Reads a segment's dictionary, repaired by the last frame if it is damaged. Also returns the length of the first
/// frame.
pub(super) fn load(
    file: &dyn DiskFile,
    segment: SegmentId,
    path: &Path,
) -> Result<Option<(Dictionary, u64)>, SegmentError> {
    let dictionary = match read(file, segment, path) {
        Ok(Some(dictionary)) => Some(dictionary),
        // A damaged magic number looks like no dictionary.
        Ok(None) => restore(file, path)?,
        Err(error @ SegmentError::Corrupted { .. }) => Some(restore(file, path)?.ok_or(error)?),
        Err(error) => return Err(error),
    };
    Ok(dictionary.map(|dictionary| {
        let length = dictionary.packed.len() as u64 + 8;
        (dictionary, length)
    }))
}

/// Like [`load`], but returns `None` for a dictionary beyond repair; damage is reported for the records that need it.
pub(super) fn load_if_whole(
    file: &dyn DiskFile,
    segment: SegmentId,
    path: &Path,
) -> Result<Option<(Dictionary, u64)>, SegmentError> {
    match load(file, segment, path) {
        Err(SegmentError::Corrupted { .. }) => Ok(None),
        loaded => loaded,
    }
}

/// Restores a damaged dictionary from the last frame, if possible.
fn restore(file: &dyn DiskFile, path: &Path) -> Result<Option<Dictionary>, SegmentError> {
    let tail = tail(file, path, FRAME_BYTES_MAX)?;
    for content in last_frames(&tail, SKIPPABLE_COPY) {
        if let Ok(dictionary) = Dictionary::unpacked(content.to_vec()) {
            return Ok(Some(dictionary));
        }
    }
    for content in last_frames(&tail, SKIPPABLE_PARITY) {
        let Some(first_length) = guard::guarded_length(content) else { continue };
        let mut first = vec![0; first_length];
        read_exact_at(file, &mut first, 0).context("read", path)?;
        let Some(first) = guard::repair(&first, content) else { continue };
        if let Ok(dictionary) = Dictionary::unpacked(first.get(8..).unwrap_or_default().to_vec()) {
            return Ok(Some(dictionary));
        }
    }
    Ok(None)
}

/// Detects from the last frame how a closed segment's dictionary is guarded.
pub(super) fn guard_of(file: &dyn DiskFile, path: &Path) -> Result<Option<Guard>, SegmentError> {
    let tail = tail(file, path, FRAME_BYTES_MAX)?;
    let is_parity =
        last_frames(&tail, SKIPPABLE_PARITY).any(|content| guard::guarded_length(content).is_some());
    let is_copy = || last_frames(&tail, SKIPPABLE_COPY).any(|content| content.starts_with(&warc::ZSTD_MAGIC));
    Ok(if is_parity { Some(Guard::Parity) } else { is_copy().then_some(Guard::Copy) })
}

/// Reads the last bytes of a file, at most `bytes_max`.
pub(super) fn tail(file: &dyn DiskFile, path: &Path, bytes_max: u64) -> Result<Vec<u8>, SegmentError> {
    let length = file.len().context("read", path)?;
    let tail_length = length.min(bytes_max);
    let mut tail = vec![0; tail_length as usize];
    read_exact_at(file, &mut tail, length - tail_length).context("read", path)?;
    Ok(tail)
}

/// Returns the contents of all candidates for a file's last frame. They are searched from the end, because only the end
/// of the file is known, not where the frame starts.
fn last_frames(tail: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    let starts: Vec<usize> = memchr::memmem::rfind_iter(tail, &number.to_le_bytes()).collect();
    starts.into_iter().filter_map(|start| {
        let (size, content) = tail.get(start + 4..)?.split_first_chunk::<4>()?;
        (u32::from_le_bytes(*size) as usize == content.len()).then_some(content)
    })
}

#[cfg(test)]
mod tests {
    use zstd::zstd_safe::CDict;

    use super::*;

    fn base(url: &str, length: usize) -> DictionaryBase {
        let text =
            (0..length as u32).map(|place| b'a' + (place.wrapping_mul(place) % 23) as u8).collect::<Vec<_>>();
        DictionaryBase { url: url.into(), content: text.into(), origin: None }
    }

    #[test]
    fn zstd_takes_what_we_build() {
        let dictionary = Dictionary::build(&[base("http://a/", 5000)]).expect("memory").expect("a base");
        assert!(dictionary.prepare().is_some());
        // zstd checks the entropy tables here.
        let prepared = CDict::try_create(dictionary.as_bytes(), 6).expect("a dictionary");
        let id = prepared.get_dict_id().expect("an id").get();
        assert!((32_768..65_536).contains(&id));
        assert_eq!(zstd_safe::get_dict_id_from_dict(dictionary.as_bytes()).map(u32::from), Some(id));
    }

    #[test]
    fn bases_fill_the_room_and_no_more() {
        let third = DICTIONARY_BYTES_MAX / 3;
        let bases = [
            base("http://a/", third),
            base("http://b/", third),
            base("http://c/", third),
            base("http://d/", 900),
        ];
        let dictionary = Dictionary::build(&bases).expect("memory").expect("bases");
        assert!(dictionary.as_bytes().len() <= DICTIONARY_BYTES_MAX);
        assert!(dictionary.as_bytes().len() > 2 * third + 900);
        assert!(dictionary.as_bytes().len() < 3 * third);
        assert!(dictionary.prepare().is_some());
        assert_eq!(Dictionary::build(&[base("http://a/", DICTIONARY_BYTES_MAX)]).expect("memory"), None);
        assert_eq!(Dictionary::build(&[]).expect("memory"), None);
    }

    #[test]
    fn bases_that_pack_badly_leave_until_the_frame_is_small_enough() {
        let mut bits = 1_u64;
        let mut noise = |url: &str| {
            let content = std::iter::repeat_with(|| {
                bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (bits >> 56) as u8
            });
            DictionaryBase { content: content.take(300_000).collect(), ..base(url, 0) }
        };
        let bases = ["http://a/", "http://b/", "http://c/", "http://d/", "http://e/"].map(&mut noise);
        let dictionary = Dictionary::build(&bases).expect("memory").expect("bases");
        assert!(dictionary.packed.len() <= PACKED_BYTES_MAX);
        let (kept, left) = bases.split_at(3);
        let holds =
            |base: &DictionaryBase| memchr::memmem::find(dictionary.as_bytes(), &base.content).is_some();
        assert!(kept.iter().all(holds) && !left.iter().any(holds));
    }

    #[test]
    fn frames_are_those_of_the_proposal() {
        let dictionary = Dictionary::build(&[base("http://a/", 3000)]).expect("memory").expect("a base");
        let frame = dictionary.first_frame();
        assert_eq!(frame[..4], [0x5d, 0x2a, 0x4d, 0x18]);
        assert_eq!(u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]) as usize, frame.len() - 8);
        assert_eq!(warc::embedded_dictionary(&frame[8..]).as_deref(), Ok(dictionary.as_bytes()));
    }
}

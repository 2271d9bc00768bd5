//! Writes a new segment, makes it durable, and compares it with the old ones.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

use chrono::DateTime;
use sha2::Digest as _;

use super::super::append::warcinfo;
use super::super::codec::{Codec, Compressor};
use super::super::dictionary::{Dictionary, DictionaryBase};
use super::super::encode::CompressedGroup;
use super::super::error::{IoContext, SegmentError};
use super::super::group::{CaptureBody, blocks};
use super::super::index::{IndexFacts, SegmentIndex};
use super::super::ledger::SegmentInfo;
use super::super::name::SegmentName;
use super::super::read::locked;
use super::super::replay::ReplayedCapture;
use super::super::writer::Active;
use super::choice::DictionaryChoice;
use super::plan::{Planned, Rewrite, metadata_text};
use super::raw::ByteStretch;
use super::records::{Packers, RawRecords};
use super::{Author, BETTER_LEVEL, Moved, RewriteOptions, Rewriter, SAVED_PERCENT_MIN};
use crate::backend::OpenMode;
use crate::digest::Digest;
use crate::ids::{Location, SegmentId};

/// Approximate bytes of records before compression in one batch.
const BATCH_BYTES: u64 = 16 << 20;
/// Maximum number of captures in one batch.
const BATCH_CAPTURES: usize = 1024;
/// Level for records that do not shrink, such as images and archives.
const QUICK_LEVEL: i32 = 1;
/// zstd level for packing dictionaries: on nine sites level 19 took a third of the total time to save 1 %.
const DICTIONARY_LEVEL: i32 = 13;
/// Maximum bytes of a capture's records for copying in memory; longer ones are recompressed piece by piece.
const COPIED_BYTES_MAX: u64 = 16 << 20;
/// One capture in this many is compressed for an estimate.
const SAMPLED_ONE_IN: usize = 16;
/// Approximate bytes before compression of a sample for choosing a level.
const SAMPLED_BYTES_MAX: u64 = 16 << 20;

/// A new segment being written.
pub(super) struct NewSegment<'a> {
    pub from: &'a Rewriter,
    pub options: &'a RewriteOptions,
    pub codec: Codec,
    pub id: SegmentId,
    /// Compression level.
    pub level: i32,
}

/// A new segment that is complete.
pub(super) struct WrittenSegment {
    pub info: SegmentInfo,
    pub moved: Vec<Moved>,
}

/// A capture in a new segment.
struct CopiedCapture {
    records: ByteStretch,
    main: Location,
    digest: u128,
}

impl NewSegment<'_> {
    /// Builds the dictionary chosen for a range of captures.
    pub(super) fn dictionary(
        &self,
        plan: &Rewrite,
        captures: &Range<usize>,
        choice: &DictionaryChoice,
    ) -> Result<Option<Dictionary>, SegmentError> {
        let mut taken = plan.texts.taken(captures);
        let mut bases = Vec::with_capacity(choice.texts.len());
        for text in &choice.texts {
            let Some(planned) = plan.captures.get(text / 2) else { continue };
            let mut records = RawRecords::read(&self.from.reader, planned.stretch, planned.main)?;
            let capture = records.capture(planned.stretch)?;
            let bytes = if text % 2 == 0 { capture.content.to_vec() } else { metadata_text(&capture) };
            let stretches = plan.texts.stretches(&bytes, &mut taken).into_iter();
            let content: Vec<u8> =
                stretches.flat_map(|stretch| bytes.get(stretch).unwrap_or_default()).copied().collect();
            bases.push(DictionaryBase { url: capture.url.clone(), content: content.into(), origin: None });
        }
        Dictionary::packed_at(DICTIONARY_LEVEL, &bases)
    }

    /// Estimates the bytes of a range of captures from a sample.
    pub(super) fn estimate(
        &mut self,
        plan: &Rewrite,
        captures: &Range<usize>,
        choice: &DictionaryChoice,
    ) -> Result<u64, SegmentError> {
        let dictionary = self.dictionary(plan, captures, choice)?;
        self.choose_level(plan, captures, dictionary.as_ref())?;
        let all = plan.captures.get(captures.clone()).unwrap_or_default();
        let (packed, plain) = self.sampled(all, u64::MAX, self.level, dictionary.as_ref())?;
        let all: u64 = all.iter().map(|planned| planned.plain).sum();
        let records = u128::from(packed) * u128::from(all) / u128::from(plain.max(1));
        let dictionary = dictionary.map_or(0, |dictionary| dictionary.stored_length(self.from.guard));
        Ok(u64::try_from(records).unwrap_or(u64::MAX).saturating_add(dictionary))
    }

    /// Chooses the better level if it saves enough of a sample.
    pub(super) fn choose_level(
        &mut self,
        plan: &Rewrite,
        captures: &Range<usize>,
        dictionary: Option<&Dictionary>,
    ) -> Result<(), SegmentError> {
        if self.options.chooses(self.codec) {
            let all = plan.captures.get(captures.clone()).unwrap_or_default();
            let of = |level| Ok(self.sampled(all, SAMPLED_BYTES_MAX, level, dictionary)?.0);
            let (usual, better) = (of(self.level)?, of(BETTER_LEVEL)?);
            if better * 100 <= usual * (100 - SAVED_PERCENT_MIN) {
                self.level = BETTER_LEVEL;
            }
        }
        Ok(())
    }

    /// Compresses a sample of captures, of at most so many bytes and one more capture; returns its bytes after and
    /// before.
    fn sampled(
        &self,
        captures: &[Planned],
        bytes_max: u64,
        level: i32,
        dictionary: Option<&Dictionary>,
    ) -> Result<(u64, u64), SegmentError> {
        let mut packers = self.packers(level, dictionary)?;
        let (mut packed, mut plain) = (0, 0);
        let sample: Vec<Planned> = captures.iter().step_by(SAMPLED_ONE_IN).copied().collect();
        for batch in batches(&sample) {
            if plain > bytes_max {
                break;
            }
            let packed_batch =
                self.pack(batch.iter().map(|planned| (*planned, None)).collect(), &mut packers)?;
            packed += packed_batch.iter().map(|(_, packed)| packed.length()).sum::<u64>();
            plain += batch.iter().map(|planned| planned.plain).sum::<u64>();
        }
        Ok((packed, plain))
    }

    fn packers(&self, level: i32, dictionary: Option<&Dictionary>) -> Result<Vec<Packers>, SegmentError> {
        let loaded = dictionary.map(Dictionary::as_bytes);
        let compressor = |level| Compressor::new(self.codec, level, loaded)?.attached();
        let packers =
            || Ok(Packers { well: compressor(level)?, quickly: compressor(level.min(QUICK_LEVEL))? });
        (0..self.options.threads.max(1)).map(|_| packers()).collect()
    }

    /// Writes captures, given in append order, and verifies that they are unchanged.
    pub(super) fn write(
        &self,
        plan: &Rewrite,
        captures: &[Planned],
        dictionary: Option<&Arc<Dictionary>>,
        author: &mut dyn Author,
        begun: &mut Vec<SegmentName>,
    ) -> Result<WrittenSegment, SegmentError> {
        let mut packers = self.packers(self.level, dictionary.map(AsRef::as_ref))?;
        let before = captures.first().map_or(0, |capture| capture.number);
        let mut active = self.begin(before, dictionary.cloned(), begun)?;
        self.describe(&mut active, plan, &mut packers)?;
        let mut copied = Vec::with_capacity(captures.len());
        for batch in batches(captures) {
            self.copy(batch, plan, &mut active, &mut packers, author, &mut copied)?;
            author.progress(batch.iter().map(|capture| capture.plain).sum())?;
        }
        drop(packers);
        self.close(&mut active)?;
        self.compare(&mut active, captures, &copied)?;
        let moved = captures.iter().zip(&copied).map(|(planned, copied)| Moved {
            segment: planned.stretch.segment,
            offset: planned.main,
            to: copied.main,
        });
        Ok(WrittenSegment { moved: moved.collect(), info: active.info })
    }

    fn begin(
        &self,
        before: u64,
        dictionary: Option<Arc<Dictionary>>,
        begun: &mut Vec<SegmentName>,
    ) -> Result<Active, SegmentError> {
        let Rewriter { disk, folder, options, .. } = self.from;
        let opened = options.clock.now();
        let name = SegmentName::new(&options.prefix, &options.host, self.id, self.codec, opened);
        let path = folder.join(name.rewritten());
        begun.push(name.clone());
        let file = disk.open(&path, OpenMode::Create).context("create", &path)?;
        file.set_len(0).context("write", &path)?;
        let mut active = Active::new(name, &path, file, opened, dictionary.clone(), before);
        if let Some(dictionary) = dictionary {
            active.write(&dictionary.first_frame())?;
        }
        Ok(active)
    }

    /// Writes the record that describes the segment. Further ones within the segment state the number of the next
    /// capture.
    fn describe(
        &self,
        active: &mut Active,
        plan: &Rewrite,
        packers: &mut [Packers],
    ) -> Result<(), SegmentError> {
        let mut info = self.from.options.info.clone();
        info.extend(plan.info.iter().filter(|field| !self.from.options.info.contains(field)).cloned());
        let (head, fields) = warcinfo(&self.from.encoder, &active.info, active.opened, &info);
        let mut packed = Vec::new();
        if let Some(packers) = packers.first_mut() {
            packers.well.record(head.as_bytes(), fields.as_bytes(), &mut packed)?;
        }
        active.write(&packed)?;
        active.info.records += 1;
        Ok(())
    }

    fn copy(
        &self,
        batch: &[Planned],
        plan: &Rewrite,
        active: &mut Active,
        packers: &mut [Packers],
        author: &mut dyn Author,
        copied: &mut Vec<CopiedCapture>,
    ) -> Result<(), SegmentError> {
        let mut work = Vec::with_capacity(batch.len());
        for planned in batch {
            let made = if planned.is_replaced { Some(self.made(planned, author)?) } else { None };
            work.push((*planned, made));
        }
        for (planned, (digest, packed)) in batch.iter().zip(self.pack(work, packers)?) {
            let jumps = active.info.captures > 0 && planned.number != active.info.captures_until;
            if jumps && self.codec == Codec::Gzip {
                // gzip has no number frames.
                let before = std::mem::replace(&mut active.info.captures_before, planned.number);
                let described = self.describe(active, plan, packers);
                active.info.captures_before = before;
                active.info.captures_until = planned.number;
                described?;
            }
            let time = DateTime::from_timestamp_micros(planned.time).unwrap_or_default();
            let main = active.append(&packed, time, planned.number)?;
            let offset = main.offset - u64::from(packed.main.0);
            let records = ByteStretch { segment: self.id, offset, length: packed.length() };
            copied.push(CopiedCapture { records, main, digest });
        }
        Ok(())
    }

    /// Reads the captures that were not newly made, compresses all of them, and returns their digests.
    fn pack(
        &self,
        work: Vec<(Planned, Option<RawRecords<'_>>)>,
        packers: &mut [Packers],
    ) -> Result<Vec<(u128, CompressedGroup)>, SegmentError> {
        let Rewriter { disk, reader, folder, .. } = self.from;
        let pack = |packers: &mut Packers, (planned, made): (Planned, Option<RawRecords<'_>>)| {
            let mut records = match made {
                Some(made) => made,
                None => RawRecords::read(reader, planned.stretch, planned.main)?,
            };
            let copies = self.options.verbatim && !planned.is_replaced;
            let packed = if copies && planned.stretch.length <= COPIED_BYTES_MAX {
                records.as_they_lie(planned.stretch)?
            } else {
                records.pack(packers, self.codec, (disk.as_ref(), folder))?
            };
            Ok((records.digest()?, packed))
        };
        on_threads(work, packers, &pack)
    }

    /// Makes the records that replace those of a capture.
    fn made(&self, planned: &Planned, author: &mut dyn Author) -> Result<RawRecords<'static>, SegmentError> {
        let mut old = RawRecords::read(&self.from.reader, planned.stretch, planned.main)?;
        let mut capture = old.capture(planned.stretch)?;
        // The assembled capture does not know its offset.
        capture.main = Location { offset: planned.main, ..capture.main };
        let group = author.replacement(&capture)?;
        let encoder = &self.from.encoder;
        let folder = &self.from.folder;
        let blocks = blocks(&group, encoder.ids(), encoder.algorithm()).context("read", folder)?;
        let main = if matches!(group.body, CaptureBody::Failed) { blocks.len() - 1 } else { 0 };
        RawRecords::made(&blocks, main).context("read", folder)
    }

    /// Completes the file and makes it durable.
    fn close(&self, active: &mut Active) -> Result<(), SegmentError> {
        let guard = self.from.guard;
        if let Some(dictionary) = active.dictionary.clone() {
            active.write(&dictionary.last_frames(guard)?)?;
            active.info.guard = Some(guard);
        }
        active.info.is_open = false;
        active.info.is_rewritten = true;
        active.info.sha256 = Some(Digest::from_sha256(active.hasher.clone().finalize().into()));
        active.file.sync().context("sync", &active.path)
    }

    /// Reads everything back, compares it with the original, and writes the index.
    fn compare(
        &self,
        active: &mut Active,
        captures: &[Planned],
        copied: &[CopiedCapture],
    ) -> Result<(), SegmentError> {
        let reader = &self.from.reader;
        let mut index = SegmentIndex::new(&active.info.name);
        let mut readers = vec![(); self.options.threads.max(1)];
        let mut rest = copied;
        for batch in batches(captures) {
            let Some((some, others)) = rest.split_at_checked(batch.len()) else { break };
            rest = others;
            let look = |(): &mut (), copied: &CopiedCapture| {
                let mut records = RawRecords::read(reader, copied.records, copied.main.offset)?;
                if records.digest()? != copied.digest {
                    let (segment, offset) = (self.id, copied.records.offset);
                    let what = "a rewritten record is not what it was; nothing was changed".to_owned();
                    return Err(SegmentError::Corrupted { segment, offset, what });
                }
                records.capture(copied.records)
            };
            let found: Vec<Box<ReplayedCapture>> = on_threads(some.iter().collect(), &mut readers, &look)?;
            for (capture, copied) in found.iter().zip(some) {
                if let Some(facts) = IndexFacts::of(capture) {
                    index.add(
                        (&capture.url, capture.request.as_ref()),
                        capture.time,
                        &facts,
                        capture.payload_digest,
                        copied.main,
                    );
                }
            }
        }
        active.info.index = Some(index.save(self.from.disk.as_ref(), &self.from.folder)?);
        Ok(())
    }
}

/// Splits captures into batches.
fn batches(captures: &[Planned]) -> impl Iterator<Item = &[Planned]> {
    let mut rest = captures;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let within = rest.iter().take(BATCH_CAPTURES).take_while(|capture| {
            bytes += capture.plain;
            bytes <= BATCH_BYTES
        });
        let count = within.count().max(1);
        let (batch, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(batch)
    })
}

/// Processes work on one thread per context, and returns the results in order.
pub(super) fn on_threads<W: Send, C: Send, D: Send>(
    work: Vec<W>,
    contexts: &mut [C],
    carry_out: &(dyn Fn(&mut C, W) -> Result<D, SegmentError> + Sync),
) -> Result<Vec<D>, SegmentError> {
    let queue = Mutex::new(work.into_iter().enumerate());
    let take = || locked(&queue).next();
    let work = |context: &mut C| {
        let mut done = Vec::new();
        while let Some((place, work)) = take() {
            done.push((place, carry_out(context, work)?));
        }
        Ok::<_, SegmentError>(done)
    };
    let done = thread::scope(|scope| {
        let threads: Vec<_> = contexts.iter_mut().map(|context| scope.spawn(|| work(context))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(SegmentError::Poisoned)))
            .collect::<Vec<_>>()
    });
    let mut all = Vec::new();
    for done in done {
        all.extend(done?);
    }
    all.sort_unstable_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}

//! Rewriting of closed segments: the same captures in fewer bytes, or with the records of some replaced.
//!
//! More is known of a segment's captures when it is closed than when they were appended: which pages have content in
//! common, and how often each was recaptured. So the captures of some segments are read ([`plan`]), ordered by site and
//! page, and written into new segments whose dictionaries hold what they have in common ([`choice`]). The records of a
//! kept capture stay the same byte for byte, and so does its number. So a replay returns the same captures in the same
//! order.
//!
//! There are three steps, and only the last changes the archive:
//!
//! 1. [`Rewriter::carry_out`] writes the new segments beside the old ones under names that nothing looks for, syncs
//!    them, reads them back and compares every record with the original ([`write`]).
//! 2. The owner puts the new locations of the captures into the state.
//! 3. The checkpoint that makes them durable also exchanges the files ([`swap`]).
//!
//! Disk space: the new segments of one call in addition to the old ones. Memory: [`RewriteOptions::dictionary_bytes`],
//! some 40 MB for each of [`RewriteOptions::threads`], samples of the texts, and a few captures decoded ahead.

mod choice;
mod plan;
mod raw;
mod records;
mod sample;
mod swap;
mod write;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::append::Segments;
use super::codec::Codec;
use super::encode::Encoder;
use super::error::{IoContext, SegmentError};
use super::group::CaptureGroup;
use super::guard::Guard;
use super::ledger::{self, SegmentInfo};
use super::name::SegmentName;
use super::options::SegmentOptions;
use super::read::SegmentReader;
use super::replay::ReplayedCapture;
use crate::backend::Disk;
use crate::ids::{Location, SegmentId};
use choice::{DictionaryChoice, SampleCounts, TextSamples};
use plan::Rewrite;
use write::{NewSegment, on_threads};

pub(super) use swap::FILE;
pub(crate) use swap::{SwapIntent, settle};

/// Maximum number of new segments of one call: a rebuild reads all of them in parallel.
const NEW_SEGMENTS_MAX: usize = 16;
/// A stretch whose captures take fewer bytes before compression is not split.
const CUT_BYTES_MIN: u64 = 4 << 20;

/// Levels of zstd: the usual one, one that takes some 1.6 times as long, and the last resort, which takes ten times as
/// long.
const USUAL_LEVEL: i32 = 7;
const BETTER_LEVEL: i32 = 12;
const BEST_LEVEL: i32 = 19;
/// Percentage of the bytes that the better level has to save. Of 399 captures of 19 large pages it saves 15 %.
const SAVED_PERCENT_MIN: u64 = 6;

/// Maximum number of captures rewritten by one call: the plan needs some memory for each.
pub const REWRITTEN_CAPTURES_MAX: u64 = 1 << 20;

/// Maximum of [`RewriteOptions::halvings`].
pub const HALVINGS_MAX: u32 = 3;

/// Options for rewriting segments.
#[derive(Clone, Debug)]
pub struct RewriteOptions {
    /// Compression of the new segments; `None` means that of the newest segment.
    pub codec: Option<Codec>,
    /// Level: 1 to 19 for zstd, 0 to 9 for gzip. `None` means 9 for gzip, and for zstd 7, or 12 for captures of which that
    /// saves 6 %: versions of large pages, but not pages captured once. On nine sites level 8 of zstd
    /// takes 1 % less space than level 7 and an eighth more time; level 6 takes 4 % more space and a fifth less time. If
    /// the new segments would be longer than the old ones, they are written once more, at level 19.
    pub level: Option<i32>,
    /// Number of compressing threads, some 40 MB each.
    pub threads: usize,
    /// Bytes of old segments' dictionaries that are kept prepared.
    pub dictionary_bytes: usize,
    /// How often to halve the memory for samples of the records' texts; dictionaries get slightly worse. At most
    /// [`HALVINGS_MAX`].
    pub halvings: u32,
    /// Copies the compressed records of kept captures, with the dictionaries of their segments: one new segment for
    /// each old one, of about the same length, in a fraction of the time. Codec and level then only apply to replaced
    /// records.
    pub verbatim: bool,
    /// New segments are of use only if they are shorter than the old ones, see [`Rewritten::is_worse`].
    pub to_shrink: bool,
}

impl Default for RewriteOptions {
    fn default() -> Self {
        Self {
            codec: None,
            level: None,
            threads: 1,
            dictionary_bytes: 128 << 20,
            halvings: 0,
            verbatim: false,
            to_shrink: false,
        }
    }
}

impl RewriteOptions {
    fn level(&self, codec: Codec) -> i32 {
        self.level.unwrap_or(match codec {
            Codec::Zstd => USUAL_LEVEL,
            Codec::Gzip => 9,
        })
    }

    /// Whether the level may be chosen.
    fn chooses(&self, codec: Codec) -> bool {
        self.level.is_none() && !self.verbatim && codec == Codec::Zstd
    }
}

/// Decides what becomes of each capture, and receives progress reports.
pub trait Author {
    /// Whether the records of this capture are to be replaced. Called once for each capture, in the order of the
    /// segments. If a record is too long for memory, its content is only the beginning.
    ///
    /// # Errors
    /// Any error ends the rewrite; nothing is changed then.
    fn replaces(&mut self, _capture: &ReplayedCapture) -> Result<bool, SegmentError> {
        Ok(false)
    }

    /// Returns the replacement of a capture for which [`Author::replaces`] returned true. It keeps the capture's
    /// number, and so its position in the order of captures. An author that replaces nothing needs no implementation.
    ///
    /// # Errors
    /// As [`Author::replaces`].
    fn replacement(&mut self, capture: &ReplayedCapture) -> Result<CaptureGroup, SegmentError> {
        Err(SegmentError::Missing(capture.main.segment))
    }

    /// Reports that this many more bytes, before compression, were written.
    ///
    /// # Errors
    /// As [`Author::replaces`]; [`SegmentError::Stopped`] stops the rewrite.
    fn progress(&mut self, _plain_bytes: u64) -> Result<(), SegmentError> {
        Ok(())
    }
}

/// Keeps every capture unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAll;

impl Author for KeepAll {}

/// New location of a capture's main record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The old segment.
    pub segment: SegmentId,
    /// Offset of the main record in it.
    pub offset: u64,
    /// The new location.
    pub to: Location,
}

/// New segments that are ready to replace old ones. If this is dropped, the archive stays unchanged; the new files are
/// removed when it is next opened for writing.
#[derive(Debug)]
pub struct Rewritten {
    pub(crate) old: Vec<SegmentInfo>,
    pub(crate) new: Vec<SegmentInfo>,
    /// Sorted by old segment and offset.
    pub(crate) moved: Vec<Moved>,
    /// Whether only their length matters.
    to_shrink: bool,
}

impl Rewritten {
    /// Returns the segments that will be replaced.
    #[must_use]
    pub fn old(&self) -> &[SegmentInfo] {
        &self.old
    }

    /// Returns the segments that will replace them.
    #[must_use]
    pub fn new_segments(&self) -> &[SegmentInfo] {
        &self.new
    }

    /// Returns the bytes on disk before and after.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |segments: &[SegmentInfo]| segments.iter().map(|info| info.bytes).sum();
        (sum(&self.old), sum(&self.new))
    }

    /// Whether the new segments were to be shorter than the old ones and are longer, although their compression is of the
    /// same kind: they should not replace them.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        let (before, after) = self.bytes();
        self.to_shrink && after > before
    }

    /// Returns the number of captures that were rewritten.
    #[must_use]
    pub fn captures(&self) -> u64 {
        self.moved.len() as u64
    }

    /// Returns the bytes of the records before compression.
    #[must_use]
    pub fn plain_bytes(&self) -> u64 {
        self.new.iter().map(|info| info.plain_bytes).sum()
    }
}

/// Rewrites closed segments on any thread while their owner appends.
#[derive(Debug)]
pub struct Rewriter {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    options: SegmentOptions,
    /// Compression of the newest segment.
    codec: Codec,
    guard: Guard,
    encoder: Encoder,
    /// A separate reader, so that others never wait for a thread of low priority.
    reader: SegmentReader,
    old: Vec<SegmentInfo>,
    /// First of the ids reserved for new segments.
    first: SegmentId,
}

impl Rewriter {
    /// Writes the captures of the segments into new ones beside them; see the module.
    ///
    /// # Errors
    /// When a segment is missing or damaged, when the disk refuses, or when `author` returns an error: nothing is
    /// changed then, and the new files are removed.
    pub fn carry_out(
        self,
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<Rewritten, SegmentError> {
        let rewritten = self.attempt(options, author)?;
        if !rewritten.is_worse() || !options.chooses(options.codec.unwrap_or(self.codec)) {
            return Ok(rewritten);
        }
        swap::clear(self.disk.as_ref(), &self.folder)?;
        rewritten.new.iter().for_each(|info| self.reader.forget(info.id));
        self.attempt(&RewriteOptions { level: Some(BEST_LEVEL), ..options.clone() }, author)
    }

    fn attempt(&self, options: &RewriteOptions, author: &mut dyn Author) -> Result<Rewritten, SegmentError> {
        let mut new = Vec::new();
        let outcome = self.write(options, author, &mut new);
        if outcome.is_err() {
            for name in &new {
                // Files that cannot be removed now are removed when the archive is next opened.
                let _ = swap::take_away(self.disk.as_ref(), &self.folder, name);
            }
        }
        outcome
    }

    /// Like `carry_out`; `begun` receives the names of new segments before their files are created.
    fn write(
        &self,
        options: &RewriteOptions,
        author: &mut dyn Author,
        begun: &mut Vec<SegmentName>,
    ) -> Result<Rewritten, SegmentError> {
        let (plan, parts) = self.plan(options, author)?;
        let (mut codecs, codec) = (self.old.iter(), options.codec.unwrap_or(self.codec));
        let is_of_codec = codecs.all(|info| self.reader.codec(info.id).is_ok_and(|old| old == codec));
        let to_shrink = options.to_shrink && is_of_codec;
        let mut rewritten =
            Rewritten { old: self.old.clone(), new: Vec::new(), moved: Vec::new(), to_shrink };
        let segment = |(number, part): (u32, SegmentPlan)| {
            let id = SegmentId(self.first.0 + number);
            (
                NewSegment { from: self, options, codec: part.codec, id, level: options.level(part.codec) },
                part,
            )
        };
        let mut new: Vec<(NewSegment<'_>, SegmentPlan)> = (0..).zip(parts).map(segment).collect();
        // One thread takes seconds for a dictionary.
        for some in new.chunks_mut(options.threads.max(1)) {
            let dictionary =
                |(): &mut (), (segment, part): &(NewSegment<'_>, SegmentPlan)| match &part.content {
                    DictionarySource::Chosen(choice) => segment.dictionary(&plan, &part.range, choice),
                    DictionarySource::Of(old) => self.reader.load_dictionary(*old),
                };
            let dictionaries = on_threads(some.iter().collect(), &mut vec![(); some.len()], &dictionary)?;
            for ((segment, part), dictionary) in some.iter_mut().zip(dictionaries) {
                segment.choose_level(&plan, &part.range, dictionary.as_ref())?;
                let mut captures = plan.captures.get(part.range.clone()).unwrap_or_default().to_vec();
                captures.sort_unstable_by_key(|capture| capture.number);
                author.progress(0)?;
                let dictionary = dictionary.map(Arc::new);
                let written = segment.write(&plan, &captures, dictionary.as_ref(), author, begun)?;
                rewritten.new.push(written.info);
                rewritten.moved.extend(written.moved);
            }
        }
        rewritten.moved.sort_unstable_by_key(|moved| (moved.segment, moved.offset));
        self.disk.sync_dir(&self.folder).context("sync", &self.folder)?;
        Ok(rewritten)
    }

    /// Estimates the bytes of the rewritten segments from a sample of their captures.
    ///
    /// # Errors
    /// When a segment is missing or damaged.
    pub fn estimate(&self, options: &RewriteOptions) -> Result<u64, SegmentError> {
        let (plan, parts) = self.plan(options, &mut KeepAll)?;
        let mut bytes = 0;
        for SegmentPlan { range, codec, content } in parts {
            let level = options.level(codec);
            let mut segment = NewSegment { from: self, options, codec, id: self.first, level };
            bytes += match content {
                DictionarySource::Chosen(choice) => segment.estimate(&plan, &range, &choice)?,
                DictionarySource::Of(old) => {
                    self.old.iter().filter(|info| info.id == old).map(|info| info.bytes).sum()
                }
            };
        }
        Ok(bytes)
    }

    /// Reads the segments and decides which captures go together.
    fn plan(
        &self,
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<(Rewrite, Vec<SegmentPlan>), SegmentError> {
        self.reader.keep_dictionaries(options.dictionary_bytes);
        let (mut plan, mut parts) = (Rewrite::default(), Vec::new());
        plan.texts = TextSamples::new(options.halvings.min(HALVINGS_MAX));
        for info in &self.old {
            let before = plan.captures.len();
            let replaces = &mut |capture: &ReplayedCapture| author.replaces(capture);
            plan.read(&self.disk, &self.folder, info, !options.verbatim, replaces)?;
            if options.verbatim {
                let (range, codec) = (before..plan.captures.len(), self.reader.codec(info.id)?);
                parts.push(SegmentPlan { range, codec, content: DictionarySource::Of(info.id) });
            }
        }
        if !options.verbatim {
            plan.arrange();
            let codec = options.codec.unwrap_or(self.codec);
            let stretches = match codec {
                Codec::Zstd => stretches(&plan),
                Codec::Gzip => vec![(0..plan.captures.len(), DictionaryChoice::default())],
            };
            let part =
                |(range, choice)| SegmentPlan { range, codec, content: DictionarySource::Chosen(choice) };
            parts = stretches.into_iter().map(part).collect();
        }
        Ok((plan, parts))
    }
}

impl Segments {
    /// Creates a rewriter of closed segments. There may be one at a time; leftovers of an earlier one are removed.
    ///
    /// # Errors
    /// When a segment is missing, or the disk refuses.
    pub(crate) fn rewriter(&mut self, old: &[SegmentId]) -> Result<Rewriter, SegmentError> {
        swap::clear(self.disk.as_ref(), &self.folder)?;
        let info = |id: &SegmentId| self.closed.get(id).cloned().ok_or(SegmentError::Missing(*id));
        let old = old.iter().map(info).collect::<Result<Vec<_>, _>>()?;
        let first = self.next_id();
        // Reserves the ids, so that a concurrent append gets another.
        self.options.relied_on.next = SegmentId(first.0 + old.len().max(NEW_SEGMENTS_MAX) as u32);
        Ok(Rewriter {
            disk: self.disk.clone(),
            folder: self.folder.clone(),
            options: self.options.clone(),
            codec: self.codec,
            guard: self.guard,
            encoder: self.encoder.clone(),
            reader: SegmentReader::in_folder(self.disk.clone(), self.folder.clone()),
            old,
            first,
        })
    }

    /// Removes new segments that are worse than the old ones, and notes that the old ones need no rewriting.
    pub(crate) fn leave(&mut self, rewritten: &Rewritten) -> Result<(), SegmentError> {
        swap::clear(self.disk.as_ref(), &self.folder)?;
        let noted = |info: &SegmentInfo| SegmentInfo { is_rewritten: true, ..info.clone() };
        let noted: Vec<SegmentInfo> = rewritten.old.iter().map(noted).collect();
        let names: Vec<String> = noted.iter().map(|info| info.name.clone()).collect();
        ledger::exchange(self.disk.as_ref(), &self.folder, &names, &noted)?;
        self.closed.extend(noted.into_iter().map(|info| (info.id, info)));
        Ok(())
    }

    /// Records durably that new segments will replace old ones once the catalogue has this number.
    pub(crate) fn intend(&self, rewritten: &Rewritten, number: u64) -> Result<SwapIntent, SegmentError> {
        let old = rewritten.old.iter().map(|info| info.name.clone()).collect();
        let intent = SwapIntent { number, old, new: rewritten.new.clone() };
        let saved = intent.save(self.disk.as_ref(), &self.folder);
        if saved.is_err() {
            // Files that cannot be removed now are removed when the archive is next opened.
            let _ = swap::clear(self.disk.as_ref(), &self.folder);
        }
        saved?;
        Ok(intent)
    }

    /// Carries out an exchange that the catalogue has committed.
    pub(crate) fn exchange(&mut self, intent: &SwapIntent) -> Result<(), SegmentError> {
        self.durability.check()?;
        let outcome = intent.carry_out(self.disk.as_ref(), &self.folder);
        if outcome.is_err() {
            // It is unknown which files are in place; the next opening continues the exchange.
            self.durability.poison();
        }
        outcome?;
        for (id, _) in self.closed.extract_if(.., |_, info| intent.old.contains(&info.name)) {
            // An open file would keep its disk space.
            self.reader.forget(id);
        }
        for info in &intent.new {
            self.reader.forget(info.id);
            self.closed.insert(info.id, info.clone());
        }
        Ok(())
    }
}

/// Captures that go into one new segment.
struct SegmentPlan {
    range: Range<usize>,
    codec: Codec,
    content: DictionarySource,
}

/// Source of a new segment's dictionary.
enum DictionarySource {
    /// Chosen texts.
    Chosen(DictionaryChoice),
    /// The dictionary of an old segment.
    Of(SegmentId),
}

/// A stretch of captures and the choice for its dictionary.
type ChosenStretch = (Range<usize>, DictionaryChoice);

/// Splits the captures into stretches.
fn stretches(plan: &Rewrite) -> Vec<ChosenStretch> {
    let mut counts = plan.texts.counts();
    let all = 0..plan.captures.len();
    let choice = plan.texts.choose(&all, &mut counts);
    let mut stretches = vec![(all, choice)];
    let mut place = 0;
    while let Some((range, choice)) = stretches.get(place) {
        match halves(plan, range, choice.cost, &mut counts) {
            Some(halves) if stretches.len() < NEW_SEGMENTS_MAX => {
                stretches.splice(place..=place, halves);
            }
            _ => place += 1,
        }
    }
    stretches
}

/// Splits a stretch in two, if two dictionaries save more than they cost.
fn halves(
    plan: &Rewrite,
    range: &Range<usize>,
    cost: f64,
    counts: &mut SampleCounts,
) -> Option<[ChosenStretch; 2]> {
    let plain: u64 = plan.captures.get(range.clone())?.iter().map(|capture| capture.plain).sum();
    if plain < CUT_BYTES_MIN {
        return None;
    }
    let middle = plan.middle(range)?;
    let halves = [range.start..middle, middle..range.end].map(|half| {
        let choice = plan.texts.choose(&half, counts);
        (half, choice)
    });
    (halves.iter().map(|(_, choice)| choice.cost).sum::<f64>() < cost).then_some(halves)
}

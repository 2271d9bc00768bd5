//! Closed segments rewritten: the same captures in fewer bytes, or with other records in the place of some.
//!
//! What is known of a segment's captures when it is closed is more than when they were appended: which pages share what, how
//! often each of them came again. So the captures of some segments are read ([`plan`]), put together by site and page, and
//! written into new segments whose dictionaries hold what they have in common ([`choice`]). A kept capture's records stay
//! byte for byte as they were and its number stays, so a replay gives the same captures in the same order.
//!
//! Three steps, of which only the last changes what the archive says:
//!
//! 1. [`Rewriter::carry_out`] writes the new segments beside the old ones under names that nothing looks for, syncs them, reads
//!    them back and compares every record with what was read ([`write`]).
//! 2. The owner puts the captures' new places into the state.
//! 3. The checkpoint that makes them durable carries the exchange of files with it ([`swap`]).
//!
//! Room on disk: the new segments of one call beside the old ones. Memory: [`RewriteOptions::memory_bytes`].

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
use super::error::{Context, SegmentError};
use super::group::CaptureGroup;
use super::guard::Guard;
use super::ledger::SegmentInfo;
use super::name::SegmentName;
use super::options::SegmentOptions;
use super::read::SegmentReader;
use super::replay::ReplayedCapture;
use crate::backend::Disk;
use crate::ids::{Location, SegmentId};
use choice::{Choice, Counts, Texts};
use plan::Rewrite;
use write::NewSegment;

pub(super) use swap::FILE;
pub(crate) use swap::{Intent, settle};

/// New segments of one call at most: a rebuild reads all of them side by side.
const NEW_SEGMENTS_MAX: usize = 16;
/// A stretch whose captures take fewer bytes before compression is not cut in two.
const CUT_BYTES_MIN: u64 = 4 << 20;

/// Captures that are rewritten by one call at most: what is known of each takes some memory.
pub const REWRITTEN_CAPTURES_MAX: u64 = 1 << 20;

/// The most that [`RewriteOptions::halvings`] may be.
pub const HALVINGS_MAX: u32 = 3;

/// How segments are rewritten.
#[derive(Clone, Debug)]
pub struct RewriteOptions {
    /// The compression of the new segments; `None` is that of the newest segment.
    pub codec: Option<Codec>,
    /// The level: 1 to 19 for zstd, 0 to 9 for gzip. `None` is 7 and 9. On nine sites level 8 of zstd takes 1 % less room and an
    /// eighth more time, level 6 takes 4 % more room and a fifth less time.
    pub level: Option<i32>,
    /// Threads that compress: some 40 MB each.
    pub threads: usize,
    /// Bytes of dictionaries of old segments that are kept ready.
    pub dictionary_bytes: usize,
    /// What is known of the records' texts takes half of the usual memory, so many times; dictionaries get a little worse. At most
    /// [`HALVINGS_MAX`].
    pub halvings: u32,
    /// Copies the records of kept captures as they lie, with the dictionaries of their segments: one new segment for each old one,
    /// about as long, in a fraction of the time. Codec and level are then those of the records that are replaced.
    pub verbatim: bool,
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
        }
    }
}

impl RewriteOptions {
    fn level(&self, codec: Codec) -> i32 {
        self.level.unwrap_or(match codec {
            Codec::Zstd => 7,
            Codec::Gzip => 9,
        })
    }
}

/// Decides what becomes of each capture, and hears how far it is.
pub trait Author {
    /// Whether other records take the place of this capture's. It is asked once for each, in the order of the segments. The
    /// content of a record that is too long for memory is its beginning.
    ///
    /// # Errors
    /// What it returns ends the rewriting; nothing is changed then.
    fn replaces(&mut self, _capture: &ReplayedCapture) -> Result<bool, SegmentError> {
        Ok(false)
    }

    /// The capture whose records take the place of this one's: one for which [`Author::replaces`] said so. It keeps its
    /// number, and so its place in the order of captures.
    /// Who replaces nothing has none.
    ///
    /// # Errors
    /// As [`Author::replaces`].
    fn replacement(&mut self, capture: &ReplayedCapture) -> Result<CaptureGroup, SegmentError> {
        Err(SegmentError::Missing(capture.main.segment))
    }

    /// So many more bytes, before compression, were written.
    ///
    /// # Errors
    /// As [`Author::replaces`]; [`SegmentError::Stopped`] for who wants it to end.
    fn progress(&mut self, _plain_bytes: u64) -> Result<(), SegmentError> {
        Ok(())
    }
}

/// Keeps every capture as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAll;

impl Author for KeepAll {}

/// Where a capture's main record lies from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The old segment.
    pub segment: SegmentId,
    /// The main record's place in it.
    pub offset: u64,
    /// The new place.
    pub to: Location,
}

/// New segments that wait to take the place of old ones. Dropped, they leave the archive as it was; their files are taken
/// away when it is opened for writing.
#[derive(Debug)]
pub struct Rewritten {
    pub(crate) old: Vec<SegmentInfo>,
    pub(crate) new: Vec<SegmentInfo>,
    /// By old segments and offsets.
    pub(crate) moved: Vec<Moved>,
}

impl Rewritten {
    /// The segments that go.
    #[must_use]
    pub fn old(&self) -> &[SegmentInfo] {
        &self.old
    }

    /// The segments that come.
    #[must_use]
    pub fn new_segments(&self) -> &[SegmentInfo] {
        &self.new
    }

    /// Bytes on disk before and after.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |segments: &[SegmentInfo]| segments.iter().map(|info| info.bytes).sum();
        (sum(&self.old), sum(&self.new))
    }

    /// Captures that were read and written.
    #[must_use]
    pub fn captures(&self) -> u64 {
        self.moved.len() as u64
    }

    /// Bytes of the records before compression.
    #[must_use]
    pub fn plain_bytes(&self) -> u64 {
        self.new.iter().map(|info| info.plain_bytes).sum()
    }
}

/// Rewrites closed segments on any thread, while their owner appends.
#[derive(Debug)]
pub struct Rewriter {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    options: SegmentOptions,
    /// The compression of the newest segment.
    codec: Codec,
    guard: Guard,
    encoder: Encoder,
    /// A separate one, so that nothing waits for a thread of low priority.
    reader: SegmentReader,
    old: Vec<SegmentInfo>,
    /// The first of the ids that are kept for new segments.
    first: SegmentId,
}

impl Rewriter {
    /// Writes the captures of the segments into new ones beside them; see the module.
    ///
    /// # Errors
    /// When one of them is not there or damaged, when the disk refuses, and when `author` wants it to end: nothing is changed
    /// then, and what was written is taken away.
    pub fn carry_out(
        self,
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<Rewritten, SegmentError> {
        let mut new = Vec::new();
        let outcome = self.write(options, author, &mut new);
        if outcome.is_err() {
            for name in &new {
                // What cannot be removed now is removed when the archive is opened next.
                let _ = swap::take_away(self.disk.as_ref(), &self.folder, name);
            }
        }
        outcome
    }

    /// The same; `begun` gets the names of new segments as soon as there may be something of them.
    fn write(
        &self,
        options: &RewriteOptions,
        author: &mut dyn Author,
        begun: &mut Vec<SegmentName>,
    ) -> Result<Rewritten, SegmentError> {
        let (plan, parts) = self.plan(options, author)?;
        let mut rewritten = Rewritten { old: self.old.clone(), new: Vec::new(), moved: Vec::new() };
        for (number, Part { range, codec, content }) in (0..).zip(parts) {
            let id = SegmentId(self.first.0 + number);
            let segment = NewSegment { from: self, options, codec, id };
            let dictionary = match content {
                Content::Chosen(choice) => segment.dictionary(&plan, &range, &choice)?,
                Content::Of(old) => self.reader.load_dictionary(old)?,
            };
            let dictionary = dictionary.map(Arc::new);
            let mut captures = plan.captures.get(range).unwrap_or_default().to_vec();
            captures.sort_unstable_by_key(|capture| capture.number);
            author.progress(0)?;
            let written = segment.write(&plan, &captures, dictionary.as_ref(), author, begun)?;
            rewritten.new.push(written.info);
            rewritten.moved.extend(written.moved);
        }
        rewritten.moved.sort_unstable_by_key(|moved| (moved.segment, moved.offset));
        self.disk.sync_dir(&self.folder).context("sync", &self.folder)?;
        Ok(rewritten)
    }

    /// Bytes that the segments would take if they were rewritten, by a sample of their captures.
    ///
    /// # Errors
    /// When one of them is not there or damaged.
    pub fn estimate(&self, options: &RewriteOptions) -> Result<u64, SegmentError> {
        let (plan, parts) = self.plan(options, &mut KeepAll)?;
        let mut bytes = 0;
        for Part { range, codec, content } in parts {
            let segment = NewSegment { from: self, options, codec, id: self.first };
            bytes += match content {
                Content::Chosen(choice) => segment.estimate(&plan, &range, &choice)?,
                Content::Of(old) => {
                    self.old.iter().filter(|info| info.id == old).map(|info| info.bytes).sum()
                }
            };
        }
        Ok(bytes)
    }

    /// Reads the segments, and says which captures go together.
    fn plan(
        &self,
        options: &RewriteOptions,
        author: &mut dyn Author,
    ) -> Result<(Rewrite, Vec<Part>), SegmentError> {
        self.reader.keep_dictionaries(options.dictionary_bytes);
        let (mut plan, mut parts) = (Rewrite::default(), Vec::new());
        plan.texts = Texts::new(options.halvings.min(HALVINGS_MAX));
        for info in &self.old {
            let before = plan.captures.len();
            let replaces = &mut |capture: &ReplayedCapture| author.replaces(capture);
            plan.read(&self.disk, &self.folder, info, !options.verbatim, replaces)?;
            if options.verbatim {
                let (range, codec) = (before..plan.captures.len(), self.reader.codec(info.id)?);
                parts.push(Part { range, codec, content: Content::Of(info.id) });
            }
        }
        if !options.verbatim {
            plan.arrange();
            let codec = options.codec.unwrap_or(self.codec);
            let stretches = match codec {
                Codec::Zstd => stretches(&plan),
                Codec::Gzip => vec![(0..plan.captures.len(), Choice::default())],
            };
            let part = |(range, choice)| Part { range, codec, content: Content::Chosen(choice) };
            parts = stretches.into_iter().map(part).collect();
        }
        Ok((plan, parts))
    }
}

impl Segments {
    /// What rewrites closed segments. There may be one at a time; what one before has left is taken away.
    ///
    /// # Errors
    /// When one of them is not there, and when the disk refuses.
    pub(crate) fn rewriter(&mut self, old: &[SegmentId]) -> Result<Rewriter, SegmentError> {
        swap::clear(self.disk.as_ref(), &self.folder)?;
        let info = |id: &SegmentId| self.closed.get(id).cloned().ok_or(SegmentError::Missing(*id));
        let old = old.iter().map(info).collect::<Result<Vec<_>, _>>()?;
        let first = self.next_id();
        // An append meanwhile gets another.
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

    /// Writes down, durably, that new segments are to take the place of old ones, once the catalogue has this number.
    pub(crate) fn intend(&self, rewritten: &Rewritten, number: u64) -> Result<Intent, SegmentError> {
        let old = rewritten.old.iter().map(|info| info.name.clone()).collect();
        let intent = Intent { number, old, new: rewritten.new.clone() };
        let saved = intent.save(self.disk.as_ref(), &self.folder);
        if saved.is_err() {
            // What cannot be removed now is removed when the archive is opened next.
            let _ = swap::clear(self.disk.as_ref(), &self.folder);
        }
        saved?;
        Ok(intent)
    }

    /// Carries out what the catalogue has decided.
    pub(crate) fn exchange(&mut self, intent: &Intent) -> Result<(), SegmentError> {
        self.durability.check()?;
        let outcome = intent.carry_out(self.disk.as_ref(), &self.folder);
        if outcome.is_err() {
            // What is in place is not known; the next opening continues it.
            self.durability.poison();
        }
        outcome?;
        for (id, _) in self.closed.extract_if(.., |_, info| intent.old.contains(&info.name)) {
            // An open file would keep its room on disk.
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
struct Part {
    range: Range<usize>,
    codec: Codec,
    content: Content,
}

/// What the dictionary of a new segment holds.
enum Content {
    /// What was chosen.
    Chosen(Choice),
    /// That of an old segment.
    Of(SegmentId),
}

/// A stretch of captures, and what its dictionary should hold.
type Chosen = (Range<usize>, Choice);

/// Cuts the captures into stretches.
fn stretches(plan: &Rewrite) -> Vec<Chosen> {
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

/// The two halves of a stretch, if two dictionaries save more than they cost.
fn halves(plan: &Rewrite, range: &Range<usize>, cost: f64, counts: &mut Counts) -> Option<[Chosen; 2]> {
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

//! Chooses what a dictionary should hold when the captures to compress with it are known.
//!
//! This is the greedy algorithm for the weighted maximum coverage problem with a budget (Khuller, Moss and Naor, "The
//! budgeted maximum coverage problem", 1999): it takes texts by their worth per byte, counting only stretches that no
//! text taken earlier has. The worth of a stretch depends on how many texts have it. Only the new stretches of a chosen
//! text go into the dictionary. So the versions of a page store what they share once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::super::dictionary::DICTIONARY_BYTES_MAX;
use super::sample::{SAMPLE_BYTES, samples};

/// Bytes that a byte of a stretch takes in its own record.
const ALONE: f64 = 0.2;
/// Bytes that it takes in a record whose dictionary has it.
const REFERRED: f64 = 0.008;
/// Bytes that it takes in a dictionary, packed and guarded.
const STORED: f64 = 0.16;
/// Maximum bytes of texts in a dictionary, leaving space for the heads of records.
const TEXT_BYTES_MAX: usize = DICTIONARY_BYTES_MAX - (256 << 10);
/// Fixed cost of a segment in bytes, besides its records and the content of its dictionary.
const SEGMENT_BYTES: f64 = 16_384.0;
/// Bytes of a text that are sampled at most.
const TEXT_SAMPLED_MAX: usize = 4 << 20;

/// Samples of many texts.
#[derive(Debug, Default)]
pub(super) struct TextSamples {
    /// Samples of all texts, concatenated; [`TextSamples::arrange`] replaces them by small numbers.
    samples: Vec<u32>,
    /// End of each text's samples.
    ends: Vec<usize>,
    /// Bytes of each text.
    lengths: Vec<u32>,
    /// Number of distinct samples.
    distinct: usize,
    /// Samples by number.
    names: Vec<u32>,
    /// How often the number of samples is halved.
    halvings: u32,
}

/// The texts chosen for a dictionary.
#[derive(Debug, Default)]
pub(super) struct DictionaryChoice {
    /// Texts, most valuable first.
    pub texts: Vec<usize>,
    /// Estimated bytes of the segment with this dictionary.
    pub cost: f64,
}

/// A text that may be chosen.
struct TextCandidate {
    density: f64,
    text: usize,
}

impl PartialEq for TextCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for TextCandidate {}

impl PartialOrd for TextCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TextCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.density.total_cmp(&other.density).then(other.text.cmp(&self.text))
    }
}

/// Counters for choosing texts.
pub(super) struct SampleCounts {
    /// Number of texts of the range that have each sample.
    texts: Vec<u32>,
    /// Whether a chosen text has each sample.
    covered: Vec<bool>,
}

impl TextSamples {
    /// Creates an empty collection; see [`samples`] for `halvings`.
    pub(super) fn new(halvings: u32) -> Self {
        Self { halvings, ..Self::default() }
    }

    pub(super) fn add(&mut self, text: &[u8]) {
        let sampled = text.get(..text.len().min(TEXT_SAMPLED_MAX)).unwrap_or_default();
        samples(sampled, self.halvings, |sample, _| self.samples.push(sample));
        self.ends.push(self.samples.len());
        self.lengths.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
    }

    fn of(&self, text: usize) -> &[u32] {
        let start = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.samples[start..self.ends[text]]
    }

    /// Orders the texts by their captures, numbers the samples, and drops those that only one text has.
    pub(super) fn arrange(&mut self, captures: &[u32]) {
        let mut all = self.samples.clone();
        all.sort_unstable();
        self.names = all.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).map(|same| same[0]).collect();
        drop(all);
        self.distinct = self.names.len();
        let mut arranged = Self { names: std::mem::take(&mut self.names), ..Self::new(self.halvings) };
        arranged.distinct = self.distinct;
        for text in captures.iter().flat_map(|capture| [*capture as usize * 2, *capture as usize * 2 + 1]) {
            let mut numbers: Vec<u32> =
                self.of(text).iter().filter_map(|sample| arranged.number(*sample)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            arranged.samples.extend(numbers);
            arranged.ends.push(arranged.samples.len());
            arranged.lengths.push(self.lengths[text]);
        }
        *self = arranged;
    }

    fn number(&self, sample: u32) -> Option<u32> {
        self.names.binary_search(&sample).ok().map(|number| number as u32)
    }

    /// Returns empty counters.
    pub(super) fn counts(&self) -> SampleCounts {
        SampleCounts { texts: vec![0; self.distinct], covered: vec![false; self.distinct] }
    }

    /// Chooses the texts for the dictionary of a range of captures.
    pub(super) fn choose(&self, captures: &Range<usize>, counts: &mut SampleCounts) -> DictionaryChoice {
        let range = captures.start * 2..captures.end * 2;
        for sample in range.clone().flat_map(|text| self.of(text)) {
            counts.texts[*sample as usize] += 1;
        }
        let plain: f64 = range.clone().map(|text| f64::from(self.lengths[text])).sum();
        let mut choice = DictionaryChoice { texts: Vec::new(), cost: plain * ALONE + SEGMENT_BYTES };
        let mut heap: BinaryHeap<TextCandidate> = range
            .clone()
            .filter_map(|text| {
                let (worth, bytes) = self.worth(text, counts);
                (worth > 0.0).then(|| TextCandidate { density: worth / bytes, text })
            })
            .collect();
        let mut room = TEXT_BYTES_MAX as f64;
        while let Some(candidate) = heap.pop() {
            let (worth, bytes) = self.worth(candidate.text, counts);
            if worth <= 0.0 || bytes > room {
                continue;
            }
            let density = worth / bytes;
            if heap.peek().is_some_and(|next| next.density > density) {
                heap.push(TextCandidate { density, ..candidate });
                continue;
            }
            room -= bytes;
            choice.cost -= worth;
            choice.texts.push(candidate.text);
            self.of(candidate.text).iter().for_each(|sample| counts.covered[*sample as usize] = true);
        }
        for sample in range.flat_map(|text| self.of(text)) {
            counts.texts[*sample as usize] = 0;
            counts.covered[*sample as usize] = false;
        }
        choice
    }

    /// Returns the bytes that adding this text to a dictionary saves, and the bytes it adds there.
    fn worth(&self, text: usize, counts: &SampleCounts) -> (f64, f64) {
        let fresh = self.of(text).iter().filter(|sample| !counts.covered[**sample as usize]);
        let (mut worth, mut bytes) = (0.0, 0.0);
        for sample in fresh {
            let texts = f64::from(counts.texts[*sample as usize]);
            // A sample that no other text of the range has is of no use.
            if texts > 1.0 {
                worth += texts * (ALONE - REFERRED) - STORED;
                bytes += 1.0;
            }
        }
        let bytes_of_one = (SAMPLE_BYTES << self.halvings) as f64;
        (worth * bytes_of_one, bytes * bytes_of_one)
    }

    /// Returns the stretches of a chosen text that belong in the dictionary: those that texts of the range share and
    /// that no earlier text had. `taken` records what earlier texts had.
    pub(super) fn stretches(&self, text: &[u8], taken: &mut TakenSamples) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut before = 0;
        let sampled = text.get(..text.len().min(TEXT_SAMPLED_MAX)).unwrap_or_default();
        samples(sampled, self.halvings, |sample, end| {
            let is_new = self.number(sample).is_some_and(|number| {
                let number = number as usize;
                taken.shared[number] && !std::mem::replace(&mut taken.held[number], true)
            });
            if is_new {
                match found.last_mut() {
                    Some(last) if before <= last.end + GAP_BYTES => last.end = end,
                    _ => found.push(before..end),
                }
            }
            before = end;
        });
        found
    }

    /// Returns which samples a range shares, with none in the dictionary yet.
    pub(super) fn taken(&self, captures: &Range<usize>) -> TakenSamples {
        let mut texts = vec![0_u8; self.distinct];
        for sample in (captures.start * 2..captures.end * 2).flat_map(|text| self.of(text)) {
            let count = &mut texts[*sample as usize];
            *count = count.saturating_add(1);
        }
        TakenSamples {
            shared: texts.into_iter().map(|count| count > 1).collect(),
            held: vec![false; self.distinct],
        }
    }
}

/// Largest gap in bytes between two stretches that is included to join them.
const GAP_BYTES: usize = 512;

/// Samples already in a dictionary being built.
pub(super) struct TakenSamples {
    shared: Vec<bool>,
    held: Vec<bool>,
}

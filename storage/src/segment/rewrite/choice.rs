//! What a dictionary should hold, known what will be compressed with it.
//!
//! A greedy choice of the weighted maximum coverage problem with a budget (Khuller, Moss and Naor, "The budgeted maximum
//! coverage problem", 1999): text after text is taken whose stretches are worth most for each byte, counting only what
//! no text taken before has. What a stretch is worth follows from how many texts have it; of a taken text only what is
//! new goes into the dictionary. So the versions of a page share what they have in common, once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::super::dictionary::DICTIONARY_BYTES_MAX;
use super::sample::{SAMPLE_BYTES, samples};

/// Bytes that a stretch takes in its own record, of those it has.
const ALONE: f64 = 0.2;
/// Bytes that it takes in a record whose dictionary has it.
const REFERRED: f64 = 0.008;
/// Bytes that it takes in a dictionary, packed and guarded.
const STORED: f64 = 0.16;
/// Bytes of text for a dictionary, beside which heads of records have to fit.
const TEXT_BYTES_MAX: usize = DICTIONARY_BYTES_MAX - (256 << 10);
/// Bytes that a segment takes besides its records and what its dictionary holds.
const SEGMENT_BYTES: f64 = 16_384.0;
/// Longer texts are not examined to their end.
const TEXT_SAMPLED_MAX: usize = 4 << 20;

/// Samples of many texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Samples of all texts, one after the other; after [`Texts::number`] small numbers.
    samples: Vec<u32>,
    /// Where each text's end.
    ends: Vec<usize>,
    /// Bytes of each text.
    lengths: Vec<u32>,
    /// How many different samples there are.
    distinct: usize,
    /// The samples by their numbers.
    names: Vec<u32>,
    /// How often there are half as many samples as there might be.
    halvings: u32,
}

/// What is to be in a dictionary.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Texts, the most valuable first.
    pub texts: Vec<usize>,
    /// Bytes that all is estimated to take.
    pub cost: f64,
}

/// A text that may be taken.
struct Candidate {
    density: f64,
    text: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.density.total_cmp(&other.density).then(other.text.cmp(&self.text))
    }
}

/// What counts while texts are chosen.
pub(super) struct Counts {
    /// In how many texts of the range each sample is.
    texts: Vec<u32>,
    /// Samples that a taken text has.
    covered: Vec<bool>,
}

impl Texts {
    /// No text yet; see [`samples`] for `halvings`.
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

    /// Puts the texts of captures in the order of the captures, numbers the samples, and forgets those that are in one
    /// text only.
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

    /// Room for counting.
    pub(super) fn counts(&self) -> Counts {
        Counts { texts: vec![0; self.distinct], covered: vec![false; self.distinct] }
    }

    /// Chooses what a dictionary for a range of captures should hold.
    pub(super) fn choose(&self, captures: &Range<usize>, counts: &mut Counts) -> Choice {
        let range = captures.start * 2..captures.end * 2;
        for sample in range.clone().flat_map(|text| self.of(text)) {
            counts.texts[*sample as usize] += 1;
        }
        let plain: f64 = range.clone().map(|text| f64::from(self.lengths[text])).sum();
        let mut choice = Choice { texts: Vec::new(), cost: plain * ALONE + SEGMENT_BYTES };
        let mut heap: BinaryHeap<Candidate> = range
            .clone()
            .filter_map(|text| {
                let (worth, bytes) = self.worth(text, counts);
                (worth > 0.0).then(|| Candidate { density: worth / bytes, text })
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
                heap.push(Candidate { density, ..candidate });
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

    /// Bytes that a dictionary with this text saves, and how many it puts there.
    fn worth(&self, text: usize, counts: &Counts) -> (f64, f64) {
        let fresh = self.of(text).iter().filter(|sample| !counts.covered[**sample as usize]);
        let (mut worth, mut bytes) = (0.0, 0.0);
        for sample in fresh {
            let texts = f64::from(counts.texts[*sample as usize]);
            // Nothing is gained by what no other text of the range has.
            if texts > 1.0 {
                worth += texts * (ALONE - REFERRED) - STORED;
                bytes += 1.0;
            }
        }
        let bytes_of_one = (SAMPLE_BYTES << self.halvings) as f64;
        (worth * bytes_of_one, bytes * bytes_of_one)
    }

    /// The stretches of a chosen text that belong into the dictionary: those that texts of the range share and that no text
    /// before had. `taken` knows what those before had.
    pub(super) fn stretches(&self, text: &[u8], taken: &mut Taken) -> Vec<Range<usize>> {
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

    /// What is shared in a range, of which nothing is in the dictionary yet.
    pub(super) fn taken(&self, captures: &Range<usize>) -> Taken {
        let mut texts = vec![0_u8; self.distinct];
        for sample in (captures.start * 2..captures.end * 2).flat_map(|text| self.of(text)) {
            let count = &mut texts[*sample as usize];
            *count = count.saturating_add(1);
        }
        Taken { shared: texts.into_iter().map(|count| count > 1).collect(), held: vec![false; self.distinct] }
    }
}

/// Bytes between two stretches that are taken along.
const GAP_BYTES: usize = 512;

/// What is in a dictionary that grows.
pub(super) struct Taken {
    shared: Vec<bool>,
    held: Vec<bool>,
}

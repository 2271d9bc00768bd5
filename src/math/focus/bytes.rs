//! Binary form of [`Knowledge`], little-endian: number of classes (`u32`); for the links of each class, the share of
//! each target class (`f64`); then the classifiers of pages, URLs and link texts. A classifier has the number of words
//! (`u32`), ln p of each class (`f64`), for each word its bucket (`u32`), its rarity and its weight for each class
//! (`f32`), and the constants of the classes (`f32`). The bucket 2^18 stands for all other words, if they count for the
//! length of a vector. If there are finer classes, their number (`u32`) and their classifier follow.

use std::ops::RangeInclusive;

use super::Knowledge;
use super::knowledge::Teller;
use crate::learn::{Multinomial, TfIdf};

/// Maximum number of classes accepted.
const CLASSES_MAX: usize = 256;

/// Minimum of ln p of a class; that of one in a million examples is -14.
const LOG_PRIOR_MIN: f64 = -100.0;

impl Knowledge {
    /// Encodes the knowledge for [`Knowledge::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = (self.classes() as u32).to_le_bytes().to_vec();
        self.leads_to.iter().flatten().for_each(|share| out.extend(share.to_le_bytes()));
        [&self.pages, &self.urls, &self.anchors].into_iter().for_each(|teller| teller.put(&mut out));
        if let Some(leaves) = &self.leaves {
            out.extend((leaves.prior.len() as u32).to_le_bytes());
            leaves.put(&mut out);
        }
        out
    }

    /// Decodes knowledge; `None` if the bytes are invalid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = UnreadBytes(bytes);
        let classes = rest.u32()? as usize;
        if !(1..=CLASSES_MAX).contains(&classes) {
            return None;
        }
        let mut leads_to = Vec::with_capacity(classes);
        for _ in 0..classes {
            leads_to.push(rest.f64s(classes, 0.0..=1.0)?);
        }
        let mut teller = || Teller::take(&mut rest, classes);
        let (pages, urls, anchors) = (teller()?, teller()?, teller()?);
        let mut leaves = None;
        if !rest.0.is_empty() {
            let count = rest.u32()? as usize;
            leaves = Some(Teller::take(
                &mut rest,
                Some(count).filter(|count| (1..=CLASSES_MAX).contains(count))?,
            )?);
        }
        rest.0.is_empty().then_some(Self { pages, urls, anchors, leads_to, leaves })
    }
}

impl Teller {
    fn put(&self, out: &mut Vec<u8>) {
        let classes = self.prior.len();
        out.extend((self.words.width() as u32).to_le_bytes());
        self.prior.iter().for_each(|prior| out.extend(prior.to_le_bytes()));
        let mut weights = self.model.weights().chunks_exact(classes);
        let mut row = |out: &mut Vec<u8>| {
            weights.next().into_iter().flatten().for_each(|weight| out.extend(weight.to_le_bytes()));
        };
        for (bucket, rarity) in self.words.entries() {
            out.extend(bucket.to_le_bytes());
            out.extend(rarity.to_le_bytes());
            row(out);
        }
        row(out);
    }

    fn take(rest: &mut UnreadBytes<'_>, classes: usize) -> Option<Self> {
        let width = rest.u32()? as usize;
        let prior = rest.f64s(classes, LOG_PRIOR_MIN..=0.0)?;
        // Limit the capacity by the bytes that are left: a word has its bucket, its rarity and its weights.
        let words_max = rest.0.len() / (size_of::<u32>() * (2 + classes));
        let mut entries = Vec::with_capacity(width.min(words_max));
        let mut weights = Vec::with_capacity(width.min(words_max) * classes);
        for _ in 0..width {
            entries.push((rest.u32()?, rest.f32()?));
            for _ in 0..classes {
                weights.push(rest.f32()?);
            }
        }
        for _ in 0..classes {
            weights.push(rest.f32()?);
        }
        let (words, model) = (TfIdf::from_entries(&entries)?, Multinomial::from_weights(classes, weights)?);
        Some(Self { words, model, prior })
    }
}

/// Unread bytes.
struct UnreadBytes<'a>(&'a [u8]);

impl UnreadBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn f32(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }

    /// Reads `count` numbers in a range.
    fn f64s(&mut self, count: usize, range: RangeInclusive<f64>) -> Option<Vec<f64>> {
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            numbers.push(self.take().map(f64::from_le_bytes).filter(|number| range.contains(number))?);
        }
        Some(numbers)
    }
}

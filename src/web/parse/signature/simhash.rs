//! Similarity hash of a text: each bit is the majority of that bit among the hashes of the text's word trigrams.

use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of bits in which the texts of near-duplicates differ: as many of 48 as Manku et al. have of 64
/// (section 4).
const NEAR_BITS_MAX: u32 = 2;

/// The bits of a similarity hash that stand for details: numbers and pictures.
const DETAILS: u64 = 0xFFFF;

/// Whether two similarity hashes are those of pages whose texts are nearly the same, but for numbers and pictures. A
/// page without text is near to no page.
#[must_use]
pub fn is_near(one: u64, other: u64) -> bool {
    one != 0 && other != 0 && ((one ^ other) & !DETAILS).count_ones() <= NEAR_BITS_MAX
}

/// Whether two similarity hashes are those of pages with nearly the same text, the same numbers, and the same pictures.
#[must_use]
pub fn is_alike(one: u64, other: u64) -> bool {
    is_near(one, other) && (one ^ other) & DETAILS == 0
}

/// Returns the similarity hash of a text with these details; 0 without text.
pub(super) fn with_details(text: u64, details: u64) -> u64 {
    let details = if details == 0 { 0 } else { xxh3_64(&details.to_le_bytes()) & DETAILS };
    if text == 0 { 0 } else { (text & !DETAILS | details).max(1) }
}

/// Sums up hashes bit by bit: a bit of the result is set if it is set in more than half of them.
///
/// Each word of `lanes` has eight one-byte counters, so one addition counts eight bits; the counters are emptied before
/// they overflow.
pub(super) struct Simhash {
    lanes: [u64; 8],
    pending: u32,
    counts: [u32; 64],
    total: u32,
    last: [u64; 2],
    words: u32,
}

/// Spreads the bits of a byte over the bytes of a word.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Simhash {
    pub(super) fn new() -> Self {
        Self { lanes: [0; 8], pending: 0, counts: [0; 64], total: 0, last: [0; 2], words: 0 }
    }

    /// Adds a word, and with it the trigram that it ends. The first two words count as trigrams of their own, so that
    /// even the shortest text has a similarity.
    #[inline]
    pub(super) fn word(&mut self, word: &[u8]) {
        let hash = hash_of_word(word);
        self.words = self.words.saturating_add(1);
        self.add(hash_of_row(self.last[0], self.last[1], hash));
        self.last = [self.last[1], hash];
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        for (lane, byte) in self.lanes.iter_mut().zip(hash.to_le_bytes()) {
            *lane += SPREAD[usize::from(byte)];
        }
        self.pending += 1;
        if self.pending == u32::from(u8::MAX) {
            self.empty();
        }
    }

    fn empty(&mut self) {
        for (lane, counts) in self.lanes.iter_mut().zip(self.counts.chunks_exact_mut(8)) {
            for (count, byte) in counts.iter_mut().zip(lane.to_le_bytes()) {
                *count = count.saturating_add(u32::from(byte));
            }
            *lane = 0;
        }
        self.total = self.total.saturating_add(self.pending);
        self.pending = 0;
    }

    pub(super) fn finish(mut self) -> u64 {
        self.empty();
        if self.words == 0 {
            return 0;
        }
        let bits = self.counts.iter().enumerate();
        let hash = bits.fold(0, |hash, (bit, &count)| hash | (u64::from(count > self.total / 2) << bit));
        // 0 is reserved for documents without text.
        hash.max(1)
    }
}

/// Odd constants with random bits: the fractional parts of the square roots of 2, 3 and 5.
const FACTORS: [u64; 3] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// Hashes a word; fast for short words, which make up most of a text: mixes the first and last bytes, which may
/// overlap, and the length.
#[inline]
fn hash_of_word(word: &[u8]) -> u64 {
    let (first, last) = if let (Some(first), Some(last), ..=16) =
        (word.first_chunk::<8>(), word.last_chunk::<8>(), word.len())
    {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last), ..=8) =
        (word.first_chunk::<4>(), word.last_chunk::<4>(), word.len())
    {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else if let (Some(first), Some(last), ..=3) = (word.first(), word.last(), word.len()) {
        (u64::from(*first) | u64::from(word[word.len() / 2]) << 8, u64::from(*last))
    } else {
        (xxh3_64(word), 0)
    };
    let mixed =
        (first ^ word.len() as u64).wrapping_mul(FACTORS[0]) ^ last.wrapping_mul(FACTORS[1]).rotate_left(32);
    mixed ^ (mixed >> 29)
}

/// Hashes three words in order; every bit of the result depends on all of their bits.
#[inline]
fn hash_of_row(first: u64, second: u64, third: u64) -> u64 {
    let mut mixed = first.wrapping_mul(FACTORS[1]) ^ second.wrapping_mul(FACTORS[2]).rotate_left(21) ^ third;
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_do_not_overflow() {
        let mut simhash = Simhash::new();
        for _ in 0..1000 {
            simhash.add(u64::MAX);
        }
        simhash.words = 1;
        assert_eq!(simhash.finish(), u64::MAX);
    }
}

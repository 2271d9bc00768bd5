//! Finds what texts have in common, by sampling positions.
//!
//! A rolling hash runs over a text (the gear hash of Xia et al., "Ddelta: a deduplication-inspired fast delta
//! compression approach", 2014, whose value depends on the last [`GEAR_BYTES`] bytes). A position is sampled if some
//! bits of the hash are zero. So texts with equal stretches have equal samples there, wherever the stretches are. A
//! sample stands for the bytes since the previous one, [`SAMPLE_BYTES`] on average.

/// Average number of bytes that a sample stands for.
pub(super) const SAMPLE_BYTES: usize = 256;
/// Number of hash bits that are tested; the uppermost depend on the most bytes.
const SAMPLE_BITS: u32 = SAMPLE_BYTES.trailing_zeros();
/// Number of bytes on which the tested bits depend.
#[cfg(test)]
const GEAR_BYTES: usize = 64;

/// A random number for each byte value (SplitMix64).
const GEAR: [u64; 256] = {
    let mut table = [0; 256];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = 0;
    while byte < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[byte] = value ^ (value >> 31);
        byte += 1;
    }
    table
};

/// Passes the samples of a text to `take`: the hash and the end of each. Each halving halves their number.
pub(super) fn samples(text: &[u8], halvings: u32, mut take: impl FnMut(u32, usize)) {
    let bits = SAMPLE_BITS + halvings;
    let mut hash = 0_u64;
    for (place, byte) in text.iter().enumerate() {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash >> (64 - bits) == 0 {
            // The tested bits are all zero; the lower ones distinguish samples.
            take((hash >> (32 - bits)) as u32, place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_in_common_have_samples_in_common() {
        let noise = |seed: u32, length: u32| -> Vec<u8> {
            (0..length)
                .map(|place| (place.wrapping_mul(2_654_435_761).wrapping_mul(seed) >> 13) as u8)
                .collect()
        };
        let (shared, one, other) = (noise(3, 60_000), noise(5, 30_000), noise(7, 20_000));
        for halvings in 0..3 {
            let of = |text: &[u8]| {
                let mut found = Vec::new();
                samples(text, halvings, |hash, end| found.push((hash, end)));
                found
            };
            let first = of(&[&one[..], &shared].concat());
            let second = of(&[&other[..], &shared].concat());
            let inside = |found: &[(u32, usize)], start: usize| -> Vec<(u32, usize)> {
                let later = found.iter().filter(|(_, end)| *end > start + GEAR_BYTES);
                later.map(|(hash, end)| (*hash, end - start)).collect()
            };
            let common = inside(&first, one.len());
            assert_eq!(common, inside(&second, other.len()));
            let expected = (shared.len() / SAMPLE_BYTES) >> halvings;
            assert!((expected / 2..expected * 2).contains(&common.len()), "{} for {expected}", common.len());
        }
    }
}

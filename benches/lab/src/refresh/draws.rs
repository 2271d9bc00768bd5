//! The random numbers of the reference simulator, numpy's `default_rng(seed).random()`, so that ties are broken alike.
//!
//! A policy that knows nothing about the pages cycles through them in the order in which the first ties were broken. On
//! a few hundred pages of unequal importance, that order alone moves its result by two points. The generator is PCG64
//! (O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms for random number generation",
//! 2014; 128-bit state, output XSL-RR), seeded like numpy's `SeedSequence`.

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
const POOL: usize = 4;

/// A stream of numbers; the same seed gives the same stream.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u128,
    increment: u128,
}

impl Draws {
    /// Returns the stream of `numpy.random.default_rng(seed)`.
    pub fn new(seed: u64) -> Self {
        let words = seed_words(seed);
        let wide = |at: usize| {
            let half = |at: usize| u128::from(words[at]) | u128::from(words[at + 1]) << 32;
            half(at) << 64 | half(at + 2)
        };
        let mut draws = Self { state: 0, increment: wide(4) << 1 | 1 };
        draws.step();
        draws.state = draws.state.wrapping_add(wide(0));
        draws.step();
        draws
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        let bits = folded.rotate_right((self.state >> 122) as u32);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Mixes a word with a constant that changes at each use: one step of the seeding hash.
fn spread(word: u32, constant: &mut u32, factor: u32) -> u32 {
    let word = word ^ *constant;
    *constant = constant.wrapping_mul(factor);
    let word = word.wrapping_mul(*constant);
    word ^ word >> 16
}

/// Returns `SeedSequence(seed).generate_state(8)`.
fn seed_words(seed: u64) -> [u32; 8] {
    let mut constant = 0x43b0_d7e5;
    let mut next = |word| spread(word, &mut constant, 0x931e_8875);
    let mut pool: [u32; POOL] = [seed as u32, (seed >> 32) as u32, 0, 0].map(&mut next);
    for source in 0..POOL {
        for target in (0..POOL).filter(|target| *target != source) {
            let other = next(pool[source]).wrapping_mul(0x4973_f715);
            let mixed = pool[target].wrapping_mul(0xca01_f9dd).wrapping_sub(other);
            pool[target] = mixed ^ mixed >> 16;
        }
    }
    let mut constant = 0x8b51_f9dd;
    std::array::from_fn(|i| spread(pool[i % POOL], &mut constant, 0x58f3_8ded))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers were printed by `numpy.random.default_rng(seed).random(3)`.
    #[test]
    fn numbers_are_numpys() {
        let drawn = |seed| {
            let mut draws = Draws::new(seed);
            [draws.unit(), draws.unit(), draws.unit()]
        };
        assert_eq!(drawn(1), [0.5118216247002567, 0.9504636963259353, 0.14415961271963373]);
        assert_eq!(drawn(12345), [0.22733602246716966, 0.31675833970975287, 0.7973654573327341]);
    }
}

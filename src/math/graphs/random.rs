//! Reproducible randomness: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).

/// A stream of random numbers; the same seed gives the same stream.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the stream of one item among many, so that it can be generated independently of the others.
    #[must_use]
    pub fn for_item(seed: u64, item: u64) -> Self {
        let mut random = Self(seed ^ item.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(random.bits())
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `limit`; 0 if the limit is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(limit) * (self.bits() >> 32)) >> 32) as u32
    }

    /// Returns a number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns `count` distinct numbers below `limit`, or all of them, in random order.
    pub fn choose(&mut self, limit: u32, count: usize) -> Vec<u32> {
        let count = count.min(limit as usize);
        let mut chosen = Vec::with_capacity(count);
        let mut seen = std::collections::HashSet::with_capacity(count);
        while chosen.len() < count {
            let number = self.below(limit);
            if seen.insert(number) {
                chosen.push(number);
            }
        }
        chosen
    }
}

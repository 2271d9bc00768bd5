//! Random numbers that can be drawn in any order: every number is a pure function of a key.
//!
//! A [`Key`] identifies one decision (a seed, then a subject, then indices). Two keys that differ in any part give
//! independent numbers, so nothing needs to be stored and any page can be generated without generating another one
//! first.

/// The odd constant of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64: a bijection on 64 bits in which each input bit flips about half of the output.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Purpose of a draw. Subjects keep decisions about the same page independent of each other.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(super) enum Subject {
    Language = 1,
    Section,
    Slug,
    Form,
    Topic,
    Text,
    Paragraph,
    Links,
    Popularity,
    Rate,
    Changes,
    SiteChanges,
    TakesPart,
    Created,
    Birth,
    Death,
    Duplicate,
    Noise,
    Robots,
    Busy,
    Validators,
    Transfer,
    Encoding,
    Requisites,
    Traps,
    Sites,
    Bytes,
}

/// Identifies one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// Returns the key of a web.
    pub(super) const fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN_GAMMA)))
    }

    /// Derives the key for `subject`.
    pub(super) const fn of(self, subject: Subject) -> Self {
        self.at(subject as u64)
    }

    /// Derives the key for the index `number`.
    pub(super) const fn at(self, number: u64) -> Self {
        Self(mix(self.0 ^ mix(number.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA))))
    }

    /// Returns 64 uniformly distributed bits.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(super) const fn below(self, bound: u64) -> u64 {
        scale(self.0, bound)
    }

    /// Returns a number in [0, 1).
    pub(super) const fn unit(self) -> f64 {
        to_unit(self.0)
    }

    /// True with the given probability.
    pub(super) const fn chance(self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns the sequence of numbers that starts at this key.
    pub(super) const fn stream(self) -> Stream {
        Stream(self.0)
    }
}

const fn scale(bits: u64, bound: u64) -> u64 {
    ((bits as u128 * bound as u128) >> 64) as u64
}

const fn to_unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A sequence of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Stream(u64);

impl Stream {
    /// Returns the next 64 bits.
    pub(super) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    /// Returns the next number below `bound`; 0 if `bound` is 0.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        scale(self.bits(), bound)
    }

    /// Returns the next number in [0, 1).
    pub(super) const fn unit(&mut self) -> f64 {
        to_unit(self.bits())
    }

    /// Returns the next standard normal number (Box and Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns the number of heads among `count` fair coins: Binomial(count, 1/2), exactly.
    pub(super) fn heads(&mut self, mut count: u64) -> u64 {
        let mut heads = 0;
        while count >= 64 {
            heads += u64::from(self.bits().count_ones());
            count -= 64;
        }
        if count > 0 {
            heads += u64::from((self.bits() >> (64 - count)).count_ones());
        }
        heads
    }

    /// Returns a Poisson number: by inversion up to a mean of 200, above it by the rounded normal approximation, whose
    /// error is not visible to a test of a few thousand pages.
    pub(super) fn poisson(&mut self, mean: f64) -> u64 {
        const INVERSION_MEAN_MAX: f64 = 200.0;
        if mean <= 0.0 {
            return 0;
        }
        if mean > INVERSION_MEAN_MAX {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let mut left = self.unit();
        let mut probability = (-mean).exp();
        let mut count = 0;
        // The limit only ends the loop when rounding errors leave a remainder that no probability covers.
        while left >= probability && count < 1000 {
            left -= probability;
            count += 1;
            probability *= mean / count as f64;
        }
        count
    }
}

/// Ranks 0..count drawn with probabilities that fall as a power of the rank (Zipf), by inversion in closed form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    /// 1 − exponent of the law.
    power: f64,
    /// 1/`power` if that is a small integer; the inverse then takes only a few multiplications.
    whole_inverse: Option<i32>,
    /// Integral of the density over all ranks.
    span: f64,
    count: u64,
}

impl Zipf {
    /// Creates the law rank^−`exponent` over `count` ranks; an exponent of 0 is uniform.
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let power = 1.0 - exponent;
        let edge = count as f64 + 1.0;
        let span = if power.abs() < 1e-6 { edge.ln() } else { edge.powf(power) - 1.0 };
        let inverse = 1.0 / power;
        let is_whole = (1.0..=64.0).contains(&inverse.abs()) && (inverse - inverse.round()).abs() < 1e-9;
        Self { power, whole_inverse: is_whole.then(|| inverse.round() as i32), span, count }
    }

    /// Returns the share of all draws that falls on ranks below `rank`.
    pub(super) fn share_below(&self, rank: u64) -> f64 {
        let edge = rank as f64 + 1.0;
        let part = if self.power.abs() < 1e-6 { edge.ln() } else { edge.powf(self.power) - 1.0 };
        part / self.span
    }

    /// Returns the rank at the point `unit` in [0, 1) of the distribution.
    pub(super) fn rank(&self, unit: f64) -> u64 {
        let point = unit * self.span;
        let edge = match self.whole_inverse {
            Some(inverse) => (point + 1.0).powi(inverse),
            None if self.power.abs() < 1e-6 => point.exp(),
            None => (point + 1.0).powf(1.0 / self.power),
        };
        ((edge - 1.0).max(0.0) as u64).min(self.count.saturating_sub(1))
    }
}

/// `total` items divided into `parts` parts of at least one item each, earlier parts getting more, in closed form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    parts: u64,
    total: u64,
    law: Zipf,
}

impl Partition {
    /// Divides `total` into `parts`; requires `1 <= parts <= total`.
    pub(super) fn new(parts: u64, total: u64, exponent: f64) -> Self {
        debug_assert!(parts >= 1 && parts <= total);
        Self { parts, total, law: Zipf::new(parts, exponent) }
    }

    /// Returns the number of parts.
    pub(super) const fn parts(&self) -> u64 {
        self.parts
    }

    /// Returns the first item of part `part`; the total for the part after the last.
    pub(super) fn first(&self, part: u64) -> u64 {
        if part >= self.parts {
            return self.total;
        }
        let spare = (self.total - self.parts) as f64;
        part + (spare * self.law.share_below(part)) as u64
    }

    /// Returns the part that contains the item `thing`, which must be below the total.
    pub(super) fn part_of(&self, thing: u64) -> u64 {
        let guess = self.law.rank(thing as f64 / self.total as f64);
        let (mut low, mut high, mut step) = (guess, guess + 1, 1);
        while low > 0 && self.first(low) > thing {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while self.first(high) <= thing && high < self.parts {
            high = (high + step).min(self.parts);
            step *= 2;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.first(middle) <= thing {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A permutation of 0..count that can be applied in both directions in constant time: x ↦ (a·x + b) mod count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shuffle {
    count: u64,
    multiplier: u64,
    inverse: u64,
    offset: u64,
}

impl Shuffle {
    /// Creates a permutation of 0..`count`, which is at most 2^32.
    pub(super) fn new(key: Key, count: u64) -> Self {
        let count = count.max(1);
        // A multiplier near the golden section of `count` sends consecutive ranks far from each other.
        let mut multiplier = ((count as f64 * 0.618_033_988_75) as u64 + key.below(7)).max(1);
        while greatest_common_divisor(multiplier, count) != 1 {
            multiplier += 1;
        }
        multiplier %= count;
        Self {
            count,
            multiplier,
            inverse: modular_inverse(multiplier, count),
            offset: key.at(1).below(count),
        }
    }

    /// Returns the image of `index`.
    pub(super) const fn forward(&self, index: u64) -> u64 {
        (index * self.multiplier + self.offset) % self.count
    }

    /// Returns the index whose image is `place`.
    pub(super) const fn backward(&self, place: u64) -> u64 {
        ((place + self.count - self.offset) % self.count) * self.inverse % self.count
    }
}

const fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// Returns the x with `number`·x ≡ 1 (mod `modulus`) by the extended Euclidean algorithm; 0 for the modulus 1.
const fn modular_inverse(number: u64, modulus: u64) -> u64 {
    let (mut rest, mut next_rest) = (modulus as i128, number as i128);
    let (mut factor, mut next_factor) = (0i128, 1i128);
    while next_rest != 0 {
        let quotient = rest / next_rest;
        (rest, next_rest) = (next_rest, rest - quotient * next_rest);
        (factor, next_factor) = (next_factor, factor - quotient * next_factor);
    }
    factor.rem_euclid(modulus as i128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_finds_every_thing_again() {
        for (parts, total, exponent) in
            [(1, 1, 0.8), (7, 7, 0.8), (13, 5000, 0.8), (100, 1000, 1.0), (50, 90, 0.3)]
        {
            let partition = Partition::new(parts, total, exponent);
            for part in 0..parts {
                assert!(partition.first(part + 1) > partition.first(part), "part {part} is empty");
            }
            for thing in 0..total {
                let part = partition.part_of(thing);
                assert!(partition.first(part) <= thing && thing < partition.first(part + 1));
            }
        }
    }

    #[test]
    fn partition_of_a_large_web() {
        let partition = Partition::new(1_000_000, 100_000_000, 0.8);
        for step in 0..10_000u64 {
            let thing = Key::new(step).below(100_000_000);
            let part = partition.part_of(thing);
            assert!(partition.first(part) <= thing && thing < partition.first(part + 1));
        }
        assert_eq!(partition.part_of(99_999_999), 999_999);
    }

    #[test]
    fn shuffle_is_a_permutation() {
        for count in [1, 2, 3, 10, 97, 1000] {
            let shuffle = Shuffle::new(Key::new(count), count);
            let mut seen = vec![false; count as usize];
            for index in 0..count {
                let place = shuffle.forward(index);
                assert_eq!(shuffle.backward(place), index);
                seen[place as usize] = true;
            }
            assert!(seen.into_iter().all(|hit| hit));
        }
    }

    #[test]
    fn zipf_ranks_follow_the_law() {
        let law = Zipf::new(1000, 0.9);
        let draws = 200_000;
        let mut below_ten = 0;
        for index in 0..draws {
            let rank = law.rank(Key::new(3).at(index).unit());
            assert!(rank < 1000);
            below_ten += u64::from(rank < 10);
        }
        let share = below_ten as f64 / draws as f64;
        assert!(
            (share - law.share_below(10)).abs() < 0.01,
            "{share} of the draws, law {}",
            law.share_below(10)
        );
    }

    #[test]
    fn counts_have_the_right_mean_and_variance() {
        for mean in [0.3, 4.0, 150.0, 900.0] {
            let mut stream = Key::new(mean as u64).stream();
            let draws: Vec<f64> = (0..20_000).map(|_| stream.poisson(mean) as f64).collect();
            let average = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance =
                draws.iter().map(|draw| (draw - average).powi(2)).sum::<f64>() / draws.len() as f64;
            assert!((average / mean - 1.0).abs() < 0.03, "mean {average} for {mean}");
            assert!((variance / mean - 1.0).abs() < 0.06, "variance {variance} for {mean}");
        }
        let mut stream = Key::new(9).stream();
        let heads: u64 = (0..10_000).map(|_| stream.heads(130)).sum();
        assert!((heads as f64 / 650_000.0 - 1.0).abs() < 0.01);
    }
}

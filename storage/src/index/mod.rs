//! From 64-bit fingerprints to 32-bit ids, in memory, in about eleven bytes an entry.
//!
//! The table is cut into [`SHARDS`] by the fingerprint's first bits; each shard is a small hash table that grows alone
//! by an eighth, so that there is never a long pause nor a second copy of the whole. A shard's lines are one cache line
//! long. An entry lives in its home line or, when that is full, in one alternate line (buckets with two choices: Azar,
//! Broder, Karlin, Upfal 1999; moving an entry to its other line on insertion: Pagh, Rodler, "Cuckoo Hashing" 2004).
//!
//! Invariant: an entry's line and the bits stored in it determine 62 bits of the fingerprint, always. The line implies
//! the leading bits (Knuth's quotienting), so the more lines a shard has, the fewer bits its entries store. Two
//! fingerprints that agree in these 62 bits are taken for the same; among 10^8 random ones there is such a pair with
//! probability 0.1 %.
//!
//! Fingerprints come from the outside (URLs), so before use they are permuted by a key of this process: nobody can
//! choose URLs that fall into the same line.

mod line;
mod shard;

use std::hash::BuildHasher;

use shard::Shard;

/// Bits of a fingerprint that matter.
const FINGERPRINT_BITS: u32 = 62;
const FINGERPRINT_MASK: u64 = (1 << FINGERPRINT_BITS) - 1;
const SHARD_BITS: u32 = 12;
/// Parts of the table.
const SHARDS: usize = 1 << SHARD_BITS;
/// Bits of a permuted fingerprint that a shard does not imply.
const REST_BITS: u32 = FINGERPRINT_BITS - SHARD_BITS;
const REST_MASK: u64 = (1 << REST_BITS) - 1;

/// The index; see the module.
#[derive(Debug)]
pub(crate) struct HashIndex {
    key: u64,
    shards: Vec<Shard>,
}

/// Entries sorted by the shards of one index.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Where the entries of each shard start in `sorted`.
    starts: Vec<usize>,
    sorted: Vec<(u64, u32)>,
}

impl HashIndex {
    /// An empty index that takes so many entries without growing.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let key = std::hash::RandomState::new().hash_one(SHARDS);
        Self { key, shards: (0..SHARDS).map(|_| Shard::with_capacity(entries / SHARDS)).collect() }
    }

    /// A permutation of the 62-bit numbers: each step can be undone.
    #[inline]
    fn permute(&self, fingerprint: u64) -> u64 {
        let mut bits = (fingerprint >> (64 - FINGERPRINT_BITS)) ^ (self.key & FINGERPRINT_MASK);
        bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) & FINGERPRINT_MASK;
        bits ^= bits >> 31;
        bits = bits.wrapping_mul(0xd6e8_feb8_6659_fd93 ^ (self.key >> 32 << 1)) & FINGERPRINT_MASK;
        bits ^ (bits >> 31)
    }

    #[inline]
    fn place(&self, fingerprint: u64) -> (usize, u64) {
        let bits = self.permute(fingerprint);
        ((bits >> REST_BITS) as usize, bits & REST_MASK)
    }

    /// Brings the lines of many fingerprints into the processor's cache: memory is waited for once for several of them,
    /// as no read depends on another one, and not once for each.
    pub(crate) fn warm(&self, fingerprints: impl IntoIterator<Item = u64>) {
        let mut read = 0;
        for fingerprint in fingerprints {
            let (shard, rest) = self.place(fingerprint);
            read ^= self.shards[shard].touch(rest);
        }
        std::hint::black_box(read);
    }

    /// The id stored for a fingerprint.
    #[inline]
    pub(crate) fn get(&self, fingerprint: u64) -> Option<u32> {
        let (shard, rest) = self.place(fingerprint);
        self.shards[shard].get(rest)
    }

    /// Stores an id unless the fingerprint has one already, which is then returned.
    #[inline]
    pub(crate) fn insert(&mut self, fingerprint: u64, id: u32) -> Option<u32> {
        let (shard, rest) = self.place(fingerprint);
        self.shards[shard].insert(rest, id)
    }

    /// Sorts entries by their shards, for [`HashIndex::insert_batches`].
    pub(crate) fn batch(&self, entries: &[(u64, u32)]) -> Batch {
        let mut starts = vec![0; SHARDS + 1];
        for &(fingerprint, _) in entries {
            starts[self.place(fingerprint).0 + 1] += 1;
        }
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut ends = starts.clone();
        let mut sorted = vec![(0, 0); entries.len()];
        for &(fingerprint, id) in entries {
            let (shard, rest) = self.place(fingerprint);
            sorted[ends[shard]] = (rest, id);
            ends[shard] += 1;
        }
        Batch { starts, sorted }
    }

    /// Stores the entries of many batches, on all processors; the first id of a fingerprint stays.
    pub(crate) fn insert_batches(&mut self, batches: &[Batch]) {
        let chunk = SHARDS.div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
        std::thread::scope(|scope| {
            for (part, shards) in self.shards.chunks_mut(chunk).enumerate() {
                scope.spawn(move || {
                    for (shard, number) in shards.iter_mut().zip(part * chunk..) {
                        for batch in batches {
                            for &(rest, id) in &batch.sorted[batch.starts[number]..batch.starts[number + 1]] {
                                shard.insert(rest, id);
                            }
                        }
                    }
                });
            }
        });
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.shards.iter().map(Shard::memory_bytes).sum::<usize>() + SHARDS * size_of::<Shard>()
    }
}

#[cfg(test)]
mod tests;

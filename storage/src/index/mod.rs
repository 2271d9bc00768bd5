//! An in-memory map from 64-bit fingerprints to 32-bit ids that takes about eleven bytes per entry.
//!
//! The table is divided into [`SHARDS`] by the leading bits of the fingerprint. Each shard is a small hash table that
//! grows on its own by an eighth, so there is never a long pause nor a second copy of the whole table. A shard's lines
//! are one cache line long, in memory for which huge pages are requested. An entry is in its home line or, if that is
//! full, in one alternate line (buckets with two choices: Azar, Broder, Karlin, Upfal 1999; moving an entry to its
//! other line on insertion: Pagh, Rodler, "Cuckoo Hashing" 2004).
//!
//! Invariant: an entry's line and the bits stored in it always determine 62 bits of the fingerprint. The line implies
//! the leading bits (Knuth's quotienting), so the more lines a shard has, the fewer bits its entries store. Two
//! fingerprints that agree in these 62 bits are treated as equal; among 10^8 random ones there is such a pair with
//! probability 0.1 %, among 10^9 with 10 %.
//!
//! Fingerprints can come from outside (digests of payloads), so they are first permuted with a per-process key: nobody
//! can choose fingerprints that fall into the same line.

mod line;
mod lines;
mod pool;
mod shard;

use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};

use pool::{Pool, Spot};
use shard::Shard;

/// Number of significant bits of a fingerprint.
const FINGERPRINT_BITS: u32 = 62;
const FINGERPRINT_MASK: u64 = (1 << FINGERPRINT_BITS) - 1;
const SHARD_BITS: u32 = 12;
/// Number of shards.
const SHARDS: usize = 1 << SHARD_BITS;
/// Number of shards that share a memory pool and are filled by the same thread. There are few pools because half a huge
/// page of each is unused on average.
const SHARDS_PER_POOL: usize = SHARDS / 4;
/// Bits of a permuted fingerprint that the shard does not imply.
const REST_BITS: u32 = FINGERPRINT_BITS - SHARD_BITS;
const REST_MASK: u64 = (1 << REST_BITS) - 1;

/// Number of fingerprints whose lines are prefetched together: more than the reads that a CPU has in flight.
const WARMED_AT_ONCE: usize = 64;

/// The index; see the module documentation.
#[derive(Debug)]
pub(crate) struct HashIndex {
    key: u64,
    shards: Vec<Shard>,
    /// One pool per [`SHARDS_PER_POOL`] shards.
    pools: Vec<Pool>,
}

/// Entries sorted by the shards of one index.
#[derive(Debug)]
pub(crate) struct ShardBatch {
    /// Start of each shard's entries in `sorted`.
    starts: Vec<usize>,
    sorted: Vec<(u64, u32)>,
}

impl HashIndex {
    /// Returns an empty index that holds `entries` entries without growing.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let key = std::hash::RandomState::new().hash_one(SHARDS);
        let mut pools: Vec<Pool> = (0..SHARDS / SHARDS_PER_POOL).map(|_| Pool::default()).collect();
        let each = entries / SHARDS;
        let shards = (0..SHARDS)
            .map(|shard| Shard::with_capacity(&mut pools[shard / SHARDS_PER_POOL], each))
            .collect();
        Self { key, shards, pools }
    }

    /// A permutation of the 62-bit numbers: every step is invertible.
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

    /// Prefetches the lines of many fingerprints into the CPU cache, so that several memory accesses overlap instead of
    /// being waited for one by one.
    ///
    /// A CPU executes past a read that waits for memory, but only by some hundred instructions. So the addresses are
    /// computed first, and then the reads follow each other closely: first those at which lookups start, then those at
    /// which some continue.
    pub(crate) fn warm(&self, fingerprints: impl IntoIterator<Item = u64>) {
        let mut fingerprints = fingerprints.into_iter();
        let mut places = [(0, 0); WARMED_AT_ONCE];
        loop {
            let mut count = 0;
            for (place, fingerprint) in places.iter_mut().zip(&mut fingerprints) {
                *place = self.place(fingerprint);
                count += 1;
            }
            let places = &places[..count];
            self.touch(places, |shard, _, rest| shard.home_spot(rest));
            self.touch(places, Shard::other_spot);
            if count < WARMED_AT_ONCE {
                return;
            }
        }
    }

    /// Reads one byte of a line for each entry that has such a line.
    #[inline]
    fn touch(&self, places: &[(usize, u64)], line: impl Fn(&Shard, &Pool, u64) -> Option<Spot>) {
        let mut spots = [(0, Spot::default()); WARMED_AT_ONCE];
        let mut count = 0;
        for &(shard, rest) in places {
            if let Some(spot) = line(&self.shards[shard], self.pool(shard), rest) {
                spots[count] = (shard / SHARDS_PER_POOL, spot);
                count += 1;
            }
        }
        let read = spots[..count].iter().fold(0, |read, &(pool, spot)| read ^ self.pools[pool].line(spot)[0]);
        std::hint::black_box(read);
    }

    #[inline]
    fn pool(&self, shard: usize) -> &Pool {
        &self.pools[shard / SHARDS_PER_POOL]
    }

    /// The id stored for a fingerprint.
    #[inline]
    pub(crate) fn get(&self, fingerprint: u64) -> Option<u32> {
        let (shard, rest) = self.place(fingerprint);
        self.shards[shard].get(self.pool(shard), rest)
    }

    /// Stores an id unless the fingerprint already has one, which is then returned.
    #[inline]
    pub(crate) fn insert(&mut self, fingerprint: u64, id: u32) -> Option<u32> {
        let (shard, rest) = self.place(fingerprint);
        self.shards[shard].insert(&mut self.pools[shard / SHARDS_PER_POOL], rest, id)
    }

    /// Sorts entries by shard, for [`HashIndex::insert_batches`].
    pub(crate) fn batch(&self, entries: &[(u64, u32)]) -> ShardBatch {
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
        ShardBatch { starts, sorted }
    }

    /// Stores the entries of many batches, using all CPUs. The first id of a fingerprint stays; the others are
    /// returned.
    pub(crate) fn insert_batches(&mut self, batches: &[ShardBatch]) -> Vec<u32> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pools_each = self.pools.len().div_ceil(threads);
        let shards_each = pools_each * SHARDS_PER_POOL;
        let parts = self.pools.chunks_mut(pools_each).zip(self.shards.chunks_mut(shards_each));
        let later = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let later = &later;
            for (part, (pools, shards)) in parts.enumerate() {
                scope.spawn(move || {
                    for (place, shard) in shards.iter_mut().enumerate() {
                        let pool = &mut pools[place / SHARDS_PER_POOL];
                        let number = part * shards_each + place;
                        for batch in batches {
                            for &(rest, id) in &batch.sorted[batch.starts[number]..batch.starts[number + 1]] {
                                if shard.insert(pool, rest, id).is_some() {
                                    later.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                                }
                            }
                        }
                    }
                });
            }
        });
        later.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.shards.iter().map(|shard| size_of::<Shard>() + shard.memory_bytes()).sum::<usize>()
            + self.pools.iter().map(Pool::memory_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;

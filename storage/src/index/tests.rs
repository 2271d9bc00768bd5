//! The index against a plain map, over every layout of its lines.

use std::collections::HashMap;

use super::HashIndex;
use super::pool::Pool;
use super::shard::Shard;

#[test]
fn a_shard_finds_what_it_holds_through_all_its_layouts() {
    let (mut pool, mut shard) = (Pool::default(), Shard::default());
    let mut model = HashMap::new();
    let mut random = fastrand::Rng::with_seed(7);
    // 1024 lines of 7 slots are full at about 6 600 entries, so this covers both changes of layout.
    for id in 0..20_000 {
        let rest = random.u64(..) & super::REST_MASK;
        assert_eq!(shard.get(&pool, rest), model.get(&rest).copied());
        shard.insert(&mut pool, rest, id);
        model.entry(rest).or_insert(id);
        if id % 1000 == 0 {
            assert!(model.iter().all(|(&rest, &id)| shard.get(&pool, rest) == Some(id)), "after {id}");
        }
    }
    assert!(model.iter().all(|(&rest, &id)| shard.get(&pool, rest) == Some(id)));
    assert!((0..100_000).all(|_| {
        let rest = random.u64(..) & super::REST_MASK;
        shard.get(&pool, rest) == model.get(&rest).copied()
    }));
    let bytes = (shard.memory_bytes() + pool.memory_bytes()) as f64 / model.len() as f64;
    assert!(bytes < 11.5, "{bytes} bytes an entry");
}

#[test]
fn numbers_that_differ_in_one_bit_are_distinguished() {
    let (mut pool, mut shard) = (Pool::default(), Shard::default());
    let mut random = fastrand::Rng::with_seed(3);
    for id in 0..10_000 {
        shard.insert(&mut pool, random.u64(..) & super::REST_MASK, id);
    }
    let known = random.u64(..) & super::REST_MASK;
    shard.insert(&mut pool, known, 77);
    for bit in 0..super::REST_BITS {
        assert_eq!(shard.get(&pool, known ^ (1 << bit)), None, "bit {bit}");
    }
    assert_eq!(shard.get(&pool, known), Some(77));
}

#[test]
fn chosen_numbers_only_make_a_shard_larger() {
    let (mut pool, mut shard) = (Pool::default(), Shard::default());
    let chosen: Vec<u64> = (0..200).map(|low| 0x1234_5600_0000 | low).collect();
    for (&rest, id) in chosen.iter().zip(0..) {
        shard.insert(&mut pool, rest, id);
    }
    assert!(chosen.iter().zip(0..).all(|(&rest, id)| shard.get(&pool, rest) == Some(id)));
}

#[test]
fn the_index_keeps_the_first_id_of_a_fingerprint() {
    let mut index = HashIndex::with_capacity(0);
    assert_eq!(index.insert(42, 1), None);
    assert_eq!(index.insert(42, 2), Some(1));
    assert_eq!(index.get(42), Some(1));
}

#[test]
fn inserting_batches_is_inserting_one_by_one() {
    let mut random = fastrand::Rng::with_seed(11);
    let fingerprints: Vec<u64> = (0..50_000).map(|_| random.u64(..)).collect();
    let entries: Vec<(u64, u32)> = fingerprints.iter().copied().zip(100..).collect();
    for capacity in [0, 50_000, 1_000_000] {
        let mut index = HashIndex::with_capacity(capacity);
        index.insert(fingerprints[123], 9);
        let again = [(fingerprints[30_000], 7)];
        let batches = [&entries[..20_000], &entries[20_000..], &again].map(|entries| index.batch(entries));
        let mut later = index.insert_batches(&batches);
        later.sort_unstable();
        assert_eq!(later, [7, 223], "what came later for a known fingerprint");
        for &(fingerprint, id) in &entries {
            let expected = if fingerprint == fingerprints[123] { 9 } else { id };
            assert_eq!(index.get(fingerprint), Some(expected));
        }
    }
}

#[test]
fn a_pool_of_many_regions_gives_every_chunk_once() {
    let mut pool = Pool::default();
    // One chunk more than a region holds.
    let chunks: Vec<_> = (0..8193_u32).map(|number| (number, pool.allocate())).collect();
    for &(number, chunk) in &chunks {
        for line in [0, 63] {
            assert_eq!(pool.line(chunk.spot(line)), &[0; 64]);
            pool.line_mut(chunk.spot(line))[..4].copy_from_slice(&(number + 1).to_le_bytes());
        }
    }
    for &(number, chunk) in &chunks {
        for line in [0, 63] {
            assert_eq!(pool.line(chunk.spot(line))[..4], (number + 1).to_le_bytes());
        }
    }
    pool.clear(chunks[8192].1);
    assert_eq!(pool.line(chunks[8192].1.spot(63)), &[0; 64]);
    assert_ne!(pool.line(chunks[8191].1.spot(63)), &[0; 64]);
    assert_eq!(pool.memory_bytes(), 8193 * 4096);
}

#[test]
fn a_shard_made_for_its_entries_does_not_grow() {
    for count in [1, 5, 100, 2000, 5000, 6000, 7000, 24_414] {
        let mut pool = Pool::default();
        let mut shard = Shard::with_capacity(&mut pool, count as usize);
        let bytes = shard.memory_bytes() + pool.memory_bytes();
        let mut random = fastrand::Rng::with_seed(u64::from(count));
        for id in 0..count {
            shard.insert(&mut pool, random.u64(..) & super::REST_MASK, id);
        }
        assert_eq!(shard.memory_bytes() + pool.memory_bytes(), bytes, "{count} entries");
    }
}

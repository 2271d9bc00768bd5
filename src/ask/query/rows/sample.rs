//! Samples: which rows are drawn.

use std::hash::Hasher as _;

use xxhash_rust::xxh3::Xxh3;

/// The position in the draw of the row with this number in an archive.
pub(crate) fn lot(seed: u64, (archive, id): (usize, u64)) -> u64 {
    let mut hasher = Xxh3::with_seed(seed);
    hasher.write_u64(id);
    if archive > 0 {
        hasher.write_usize(archive);
    }
    hasher.finish()
}

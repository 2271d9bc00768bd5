//! The array of lines of one shard: few of them in memory of its own, more in chunks of a pool.
//!
//! A growing array keeps its chunks: arrays that grow little by little would leave holes all over the heap (measured: a
//! fourth of the memory at 10^8 entries).

use super::line::{LINE_BYTES, Line};
use super::pool::{Address, Array, CHUNK_LINES, Pool};

/// Lines that are not worth a chunk. What they took stays with the allocator when they move into one, so it must not be
/// much: with up to 63 lines in each of 4096 shards it can be 16 MiB.
const FEW_LINES_MAX: usize = 16;

/// An array of lines; see the module. Every call is given the same pool.
#[derive(Debug)]
pub(super) struct Lines {
    /// All lines, up to [`FEW_LINES_MAX`]; else none.
    few: Box<[Line]>,
    many: Array,
    count: u32,
}

impl Lines {
    /// No lines.
    pub(super) fn new(pool: &mut Pool) -> Self {
        Self { few: Box::default(), many: pool.array(), count: 0 }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    #[inline]
    pub(super) fn get<'a>(&'a self, pool: &'a Pool, line: usize) -> &'a Line {
        match self.few.get(line) {
            Some(line) => line,
            None => pool.line(pool.spot(pool.address(self.many, line))),
        }
    }

    /// Where to learn where a line lies in the pool; nothing when it does not.
    #[inline]
    pub(super) fn address(&self, pool: &Pool, line: usize) -> Option<Address> {
        (self.count() > FEW_LINES_MAX).then(|| pool.address(self.many, line))
    }

    #[inline]
    pub(super) fn get_mut<'a>(&'a mut self, pool: &'a mut Pool, line: usize) -> &'a mut Line {
        match self.few.get_mut(line) {
            Some(line) => line,
            None => pool.line_mut(pool.spot(pool.address(self.many, line))),
        }
    }

    /// Empties all lines and makes them as many as asked for, or a few more; never fewer than there are.
    pub(super) fn reset(&mut self, pool: &mut Pool, count: usize) {
        if count <= FEW_LINES_MAX {
            self.few = vec![[0; LINE_BYTES]; count].into_boxed_slice();
            self.count = count as u32;
            return;
        }
        self.few = Box::default();
        let before = if self.count() > FEW_LINES_MAX { self.count() } else { 0 };
        for line in 0..before {
            pool.line_mut(pool.spot(pool.address(self.many, line))).fill(0);
        }
        let chunks = count.div_ceil(CHUNK_LINES);
        pool.extend(self.many, before / CHUNK_LINES, chunks);
        self.count = (chunks * CHUNK_LINES) as u32;
    }

    /// Bytes in memory outside the pool.
    pub(super) fn memory_bytes(&self) -> usize {
        self.few.len() * LINE_BYTES
    }
}

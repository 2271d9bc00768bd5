//! The array of lines of one shard: a few lines in its own memory, more in chunks of a pool.
//!
//! A growing array keeps its chunks: arrays that grow little by little would leave holes all over the heap (measured: a
//! quarter of the memory at 10^8 entries).

use super::line::{IndexLine, LINE_BYTES};
use super::pool::{CHUNK_LINES, Pool, PoolChunk, Spot};

/// Maximum number of lines outside the pool. Their memory stays with the allocator when they move into a chunk, so it
/// must be small: with up to 63 lines in each of 4096 shards it would be 16 MiB.
const FEW_LINES_MAX: usize = 16;

/// An array of lines; see the module documentation. Every call must be given the same pool.
#[derive(Debug, Default)]
pub(super) struct LineArray {
    /// All lines, while there are at most [`FEW_LINES_MAX`].
    few: Box<[IndexLine]>,
    chunks: Vec<PoolChunk>,
    count: usize,
}

impl LineArray {
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn get<'a>(&'a self, pool: &'a Pool, line: usize) -> &'a IndexLine {
        match self.chunks.get(line / CHUNK_LINES) {
            Some(&chunk) => pool.line(chunk.spot(line % CHUNK_LINES)),
            None => &self.few[line],
        }
    }

    /// The spot of a line in the pool; `None` if it is not in the pool.
    #[inline]
    pub(super) fn spot(&self, line: usize) -> Option<Spot> {
        self.chunks.get(line / CHUNK_LINES).map(|chunk| chunk.spot(line % CHUNK_LINES))
    }

    #[inline]
    pub(super) fn get_mut<'a>(&'a mut self, pool: &'a mut Pool, line: usize) -> &'a mut IndexLine {
        match self.chunks.get(line / CHUNK_LINES) {
            Some(&chunk) => pool.line_mut(chunk.spot(line % CHUNK_LINES)),
            None => &mut self.few[line],
        }
    }

    /// Empties all lines and resizes the array to `count` lines or slightly more; it never shrinks.
    pub(super) fn reset(&mut self, pool: &mut Pool, count: usize) {
        if count <= FEW_LINES_MAX {
            self.few = vec![[0; LINE_BYTES]; count].into_boxed_slice();
            self.count = count;
            return;
        }
        self.few = Box::default();
        for &chunk in &self.chunks {
            pool.clear(chunk);
        }
        self.chunks.resize_with(count.div_ceil(CHUNK_LINES), || pool.allocate());
        self.count = self.chunks.len() * CHUNK_LINES;
    }

    /// Bytes of memory outside the pool.
    pub(super) fn memory_bytes(&self) -> usize {
        self.few.len() * LINE_BYTES + self.chunks.capacity() * size_of::<PoolChunk>()
    }
}

//! The array of lines of one shard: few of them in memory of its own, more in chunks of a pool.
//!
//! A growing array keeps its chunks: arrays that grow little by little would leave holes all over the heap (measured: a
//! fourth of the memory at 10^8 entries).

use super::line::{LINE_BYTES, Line};
use super::pool::{CHUNK_LINES, Chunk, Pool, Spot};

/// Lines that are not worth a chunk. What they took stays with the allocator when they move into one, so it must not be
/// much: with up to 63 lines in each of 4096 shards it can be 16 MiB.
const FEW_LINES_MAX: usize = 16;

/// An array of lines; see the module. Every call is given the same pool.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// All lines, up to [`FEW_LINES_MAX`].
    few: Box<[Line]>,
    chunks: Vec<Chunk>,
    count: usize,
}

impl Lines {
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn get<'a>(&'a self, pool: &'a Pool, line: usize) -> &'a Line {
        match self.chunks.get(line / CHUNK_LINES) {
            Some(&chunk) => pool.line(chunk.spot(line % CHUNK_LINES)),
            None => &self.few[line],
        }
    }

    /// Where a line lies in the pool; nothing when it does not.
    #[inline]
    pub(super) fn spot(&self, line: usize) -> Option<Spot> {
        self.chunks.get(line / CHUNK_LINES).map(|chunk| chunk.spot(line % CHUNK_LINES))
    }

    #[inline]
    pub(super) fn get_mut<'a>(&'a mut self, pool: &'a mut Pool, line: usize) -> &'a mut Line {
        match self.chunks.get(line / CHUNK_LINES) {
            Some(&chunk) => pool.line_mut(chunk.spot(line % CHUNK_LINES)),
            None => &mut self.few[line],
        }
    }

    /// Empties all lines and makes them as many as asked for, or a few more; never fewer than there are.
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

    /// Bytes in memory outside the pool.
    pub(super) fn memory_bytes(&self) -> usize {
        self.few.len() * LINE_BYTES + self.chunks.capacity() * size_of::<Chunk>()
    }
}

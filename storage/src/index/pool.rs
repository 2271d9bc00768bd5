//! Memory for the lines of many shards, allocated in chunks of one page.
//!
//! The chunks lie in large regions for which huge pages are requested (2 MiB on x86-64): with pages of 4 KiB, nearly
//! every lookup in an index of a gigabyte has to wait for the page tables as well. Unallocated memory has not been
//! touched, so it costs address space only. Regions are released only with the pool.

use std::alloc::{Layout, handle_alloc_error};

use memmap2::MmapMut;

use super::line::{IndexLine, LINE_BYTES};

/// Number of lines in a chunk of 4 KiB.
pub(super) const CHUNK_LINES: usize = 64;
/// Number of chunks in a region of 32 MiB.
const REGION_CHUNKS: usize = 1 << 13;
const REGION_LINES: usize = REGION_CHUNKS * CHUNK_LINES;
const REGION_BYTES: usize = REGION_LINES * LINE_BYTES;
/// Bytes of a pool that use small pages, so that an index that barely needs a pool does not occupy huge ones.
const SMALL_PAGES_BYTES: usize = 2 << 20;

/// A chunk of a pool. With 2^32 ids and at least five slots per line, line numbers of all pools together stay below
/// 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolChunk(u32);

/// The place of a line in a pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spot(u32);

impl PoolChunk {
    /// The place of a line of the chunk.
    #[inline]
    pub(super) fn spot(self, line: usize) -> Spot {
        Spot(self.0 * CHUNK_LINES as u32 + line as u32)
    }
}

/// Chunks for some shards; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct Pool {
    regions: Vec<MmapMut>,
    /// Number of chunks allocated.
    chunks: usize,
}

impl Pool {
    /// Allocates a chunk of empty lines.
    pub(super) fn allocate(&mut self) -> PoolChunk {
        if self.chunks == self.regions.len() * REGION_CHUNKS {
            let region = self.map();
            self.regions.push(region);
        }
        self.chunks += 1;
        PoolChunk((self.chunks - 1) as u32)
    }

    fn map(&self) -> MmapMut {
        let Ok(region) = MmapMut::map_anon(REGION_BYTES) else {
            handle_alloc_error(Layout::new::<[u8; REGION_BYTES]>());
        };
        #[cfg(target_os = "linux")]
        {
            let small = if self.regions.is_empty() { SMALL_PAGES_BYTES } else { 0 };
            // Without huge pages lookups are slower, but the results are the same.
            let _ = region.advise_range(memmap2::Advice::HugePage, small, REGION_BYTES - small);
        }
        region
    }

    #[inline]
    pub(super) fn line(&self, spot: Spot) -> &IndexLine {
        let number = spot.0 as usize;
        &self.regions[number / REGION_LINES].as_chunks().0[number % REGION_LINES]
    }

    #[inline]
    pub(super) fn line_mut(&mut self, spot: Spot) -> &mut IndexLine {
        let number = spot.0 as usize;
        &mut self.regions[number / REGION_LINES].as_chunks_mut().0[number % REGION_LINES]
    }

    /// Empties the lines of a chunk.
    pub(super) fn clear(&mut self, chunk: PoolChunk) {
        for line in 0..CHUNK_LINES {
            self.line_mut(chunk.spot(line)).fill(0);
        }
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks * CHUNK_LINES * LINE_BYTES
    }
}

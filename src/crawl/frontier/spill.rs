//! URLs of the frontier on disk: chains of small blocks in one file without a name.
//!
//! The frontier is derived data, filled again when a crawl starts, so the file is never synced and vanishes with the
//! process. A chain is read at its head and written at its tail; blocks are reused once read. Invariant: an entry is in
//! one chain until it is taken out, even after failures: a failed write changes no chain.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use archive_storage::UrlId;

/// Bytes of a block: the number of the next block, then entries.
const BLOCK_BYTES: usize = 128;

/// Bytes of the number of the next block.
const NEXT_BYTES: usize = 4;

/// Bytes of an entry: level and URL.
const ENTRY_BYTES: usize = 5;

/// Entries per block.
pub(super) const BLOCK_ENTRIES: usize = (BLOCK_BYTES - NEXT_BYTES) / ENTRY_BYTES;

/// The level of a waiting URL, and the URL.
pub(super) type SpilledUrl = (u8, UrlId);

/// A chain of entries in the order in which they were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
    /// Number of entries in the last block.
    tail_entries: u8,
}

/// The file.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    blocks: u32,
    free: Vec<u32>,
    entries: u64,
}

impl Spill {
    /// Creates a spill in a file that nobody else uses.
    pub(super) fn new(file: File) -> Self {
        Self { file, blocks: 0, free: Vec::new(), entries: 0 }
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.blocks) * BLOCK_BYTES as u64
    }

    /// Entries in all chains.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.free.capacity() * size_of::<u32>()
    }

    /// Appends entries to a chain, or starts a new chain.
    pub(super) fn append(
        &mut self,
        chain: Option<Chain>,
        mut entries: &[SpilledUrl],
    ) -> io::Result<Option<Chain>> {
        let mut chain = chain;
        while !entries.is_empty() {
            let used = chain.map_or(BLOCK_ENTRIES, |chain| usize::from(chain.tail_entries));
            let (now, later) = entries.split_at(entries.len().min(match used {
                BLOCK_ENTRIES => BLOCK_ENTRIES,
                used => BLOCK_ENTRIES - used,
            }));
            let mut bytes = Vec::with_capacity(BLOCK_BYTES);
            now.iter().for_each(|(level, url)| {
                bytes.push(*level);
                bytes.extend_from_slice(&url.0.to_le_bytes());
            });
            match &mut chain {
                Some(chain) if used < BLOCK_ENTRIES => {
                    self.file
                        .write_all_at(&bytes, place(chain.tail) + (NEXT_BYTES + used * ENTRY_BYTES) as u64)?;
                    chain.tail_entries += now.len() as u8;
                }
                chain => {
                    let block = self.free.last().copied().unwrap_or(self.blocks);
                    bytes.splice(..0, [0; NEXT_BYTES]);
                    self.file.write_all_at(&bytes, place(block))?;
                    if let Some(chain) = chain {
                        self.file.write_all_at(&block.to_le_bytes(), place(chain.tail))?;
                    }
                    if self.free.pop().is_none() {
                        self.blocks += 1;
                    }
                    let head = chain.map_or(block, |chain| chain.head);
                    *chain = Some(Chain { head, tail: block, tail_entries: now.len() as u8 });
                }
            }
            self.entries += now.len() as u64;
            entries = later;
        }
        Ok(chain)
    }

    /// Takes out the first block of a chain; returns the rest of the chain.
    pub(super) fn take(&mut self, chain: Chain, entries: &mut Vec<SpilledUrl>) -> io::Result<Option<Chain>> {
        let is_last = chain.head == chain.tail;
        let count = if is_last { usize::from(chain.tail_entries) } else { BLOCK_ENTRIES };
        let mut block = [0; BLOCK_BYTES];
        let used = &mut block[..NEXT_BYTES + count * ENTRY_BYTES];
        self.file.read_exact_at(used, place(chain.head))?;
        let (next, used) = used.split_at(NEXT_BYTES);
        entries.extend(used.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
            let (level, url) = entry.split_first()?;
            Some((*level, UrlId(u32::from_le_bytes(url.try_into().ok()?))))
        }));
        self.free.push(chain.head);
        self.entries -= count as u64;
        let next = next.try_into().map_or(0, u32::from_le_bytes);
        Ok((!is_last).then_some(Chain { head: next, ..chain }))
    }
}

fn place(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_ENTRIES, Spill};
    use archive_storage::UrlId;

    #[test]
    fn chains_give_back_what_was_written_in_its_order_and_blocks_are_used_again() {
        let mut spill = Spill::new(tempfile::tempfile().unwrap());
        for round in 0..3 {
            let mut chains = [None; 3];
            for number in 0..1000u32 {
                let entries: Vec<_> = (0..number % 60).map(|url| (number as u8, UrlId(url))).collect();
                let chain = &mut chains[number as usize % 3];
                *chain = spill.append(*chain, &entries).unwrap();
            }
            for (place, chain) in (0..).zip(chains) {
                let expected = (0..1000u32)
                    .filter(|number| number % 3 == place)
                    .flat_map(|number| (0..number % 60).map(move |url| (number as u8, UrlId(url))));
                let (mut found, mut rest) = (Vec::new(), chain);
                while let Some(chain) = rest {
                    rest = spill.take(chain, &mut found).unwrap();
                }
                assert!(found.into_iter().eq(expected), "round {round}, chain {place}");
            }
            assert_eq!(spill.entries(), 0);
        }
        let blocks = 1000 * 30 / BLOCK_ENTRIES as u64;
        assert!(spill.bytes() < 2 * blocks * 128, "{} bytes", spill.bytes());
    }
}

//! Divides the memory that a crawl or an import may use.
//!
//! It bounds the bodies in flight, the documents being parsed, the segment of the full-text index being built, the
//! rules of robots.txt files, and the cache of the state. What grows with the archive is small and known: about 12
//! bytes for every known URL (its entries in the frontier and in the table of URLs), 11 for every capture (to find
//! copies of it), 10 more for every capture of this run (what its answer said), 80 for every capture whose segment is
//! open (the segment's index), and 300 for every host with waiting URLs. The program itself takes some 40 MiB, and
//! recent captures, used to train dictionaries, another 40. A crawl of pages that are already in the archive compresses
//! them with dictionaries built from their versions: up to 16 compressors of some 30 MB, one for each thread and group
//! of hosts.

use crate::search;

/// Memory of the program itself: code, sockets, threads, the catalogue's cache, compressors.
const OWN_BYTES: usize = 64 << 20;

/// How much memory a crawl or an import may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes to divide among the parts below.
    divided: usize,
}

impl Memory {
    /// Minimum for a crawl, in bytes.
    pub const BYTES_MIN: usize = 192 << 20;
    /// Minimum for a repack, in bytes.
    pub const REPACKING_MIN: usize = 256 << 20;
    /// Minimum for a crawl with concurrent repacking, in bytes.
    pub const WITH_REPACKING_MIN: usize = OWN_BYTES + 3 * Self::REPACKING_MIN;

    /// Divides this many bytes; at least [`Memory::BYTES_MIN`].
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { divided: bytes.max(Self::BYTES_MIN) - OWN_BYTES }
    }

    /// Sets a share aside for concurrent repacking: returns what is left and that share in bytes; `None` if the share
    /// would be too small.
    #[must_use]
    pub fn with_repacking(self) -> Option<(Self, usize)> {
        let share = self.divided / 3;
        (share >= Self::REPACKING_MIN).then_some((Self { divided: self.divided - share }, share))
    }

    /// Bytes for bodies, from the first byte received to the last one stored. Beyond this, bodies are spooled to files.
    #[must_use]
    pub fn bodies(self) -> usize {
        self.divided / 4
    }

    /// Bytes for a single document being parsed; longer ones are truncated. A document takes several times its length
    /// while links and text are extracted.
    #[must_use]
    pub fn document(self) -> usize {
        self.divided / 32
    }

    /// Bytes for the rules of the most recently used robots.txt files.
    #[must_use]
    pub fn robots(self) -> usize {
        self.divided / 32
    }

    /// Number of documents that may be parsed at the same time.
    #[must_use]
    pub fn documents(self) -> usize {
        (self.divided / READING_BYTES).max(1)
    }

    /// Memory for the full-text index: the segment being built, and the queue of texts.
    #[must_use]
    pub fn index(self) -> search::IndexOptions {
        let share = self.divided / 4;
        search::IndexOptions {
            memory_bytes: (share - share / 8).clamp(search::IndexOptions::MEMORY_BYTES_MIN, INDEX_BYTES_MAX),
            backlog_bytes: (share / 8).min(INDEX_BACKLOG_BYTES_MAX),
            ..search::IndexOptions::default()
        }
    }

    /// Bytes for the state: pages, visits and captures in use.
    #[must_use]
    pub fn state(self) -> usize {
        self.divided / 4
    }

    /// Bytes for the rounds over the stored links that end a run, when nothing else is in progress: all but the index's
    /// share.
    #[must_use]
    pub fn settling(self) -> usize {
        self.divided / 4 * 3
    }
}

/// Maximum memory for parsing a document: the payload without its content coding, and what is extracted from it.
const READING_BYTES: usize = 128 << 20;

/// Larger segments of the index gain nothing.
const INDEX_BYTES_MAX: usize = 512 << 20;

/// Maximum bytes of texts waiting for the index. With more, texts leave the processor's cache before their turn comes,
/// and more work remains at the end, when a single thread does it alone.
const INDEX_BACKLOG_BYTES_MAX: usize = 4 << 20;

impl Default for Memory {
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_within_the_whole() {
        for bytes in [0, Memory::BYTES_MIN, 1 << 30, 64 << 30] {
            let memory = Memory::new(bytes);
            let index = memory.index();
            let sum =
                memory.bodies() + memory.state() + memory.robots() + index.memory_bytes + index.backlog_bytes;
            assert!(sum + OWN_BYTES <= bytes.max(Memory::BYTES_MIN), "{bytes}");
        }
    }
}

//! How the memory that a crawl or an import may use is divided.
//!
//! Bounded by it are the bodies under way, the documents being read, the segment of the full-text index being built, the
//! rules of robots.txt files and the cache of the state. What grows with the archive is small and stated: for every known URL some 12 bytes (its place in
//! the frontier and in the table of URLs), for every capture some 11 (by which copies of it are found), for every one of this run
//! 10 (what its answer said) and, while its segment is open, 80 for the segment's index, for every host from which something waits some 300, and for the program itself some
//! 40 MiB, and 40 for the pages captured lately, of which dictionaries are made. A crawl of pages that are in the archive already compresses them with dictionaries of their versions: up to 16
//! compressors of some 30 MB, one for each thread and group of hosts.

use crate::search;

/// What the program takes by itself: code, sockets, threads, the catalogue's cache, compressors.
const OWN_BYTES: usize = 64 << 20;

/// How much memory a crawl or an import may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// What is left for the parts below.
    divided: usize,
}

impl Memory {
    /// The least that a crawl can do with, in bytes.
    pub const BYTES_MIN: usize = 192 << 20;
    /// The least that a repack can do with, in bytes.
    pub const REPACKING_MIN: usize = 256 << 20;
    /// The least that a crawl can do with which repacks beside, in bytes.
    pub const WITH_REPACKING_MIN: usize = OWN_BYTES + 3 * Self::REPACKING_MIN;

    /// A crawl within this many bytes, at least [`Memory::BYTES_MIN`].
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { divided: bytes.max(Self::BYTES_MIN) - OWN_BYTES }
    }

    /// What is left when segments are repacked beside, and the bytes for that; nothing if it is too little.
    #[must_use]
    pub fn with_repacking(self) -> Option<(Self, usize)> {
        let share = self.divided / 3;
        (share >= Self::REPACKING_MIN).then_some((Self { divided: self.divided - share }, share))
    }

    /// For bodies, from the first byte received to the last one stored. What is more goes through files.
    #[must_use]
    pub fn bodies(self) -> usize {
        self.divided / 4
    }

    /// For a single document that is being read; what is longer is looked at up to here. A document takes several times
    /// its length while links and text are drawn from it.
    #[must_use]
    pub fn document(self) -> usize {
        self.divided / 32
    }

    /// For the rules of robots.txt files that were needed last.
    #[must_use]
    pub fn robots(self) -> usize {
        self.divided / 32
    }

    /// Documents that may be read at the same time.
    #[must_use]
    pub fn documents(self) -> usize {
        (self.divided / READING_BYTES).max(1)
    }

    /// For the full-text index: the segment being built, and texts that wait.
    #[must_use]
    pub fn index(self) -> search::Options {
        let share = self.divided / 4;
        search::Options {
            memory_bytes: (share - share / 8).clamp(search::Options::MEMORY_BYTES_MIN, INDEX_BYTES_MAX),
            backlog_bytes: (share / 8).min(INDEX_BACKLOG_BYTES_MAX),
            ..search::Options::default()
        }
    }

    /// For the state: pages, visits and captures that are being worked on.
    #[must_use]
    pub fn state(self) -> usize {
        self.divided / 4
    }

    /// For the rounds over the stored links that end a run, when nothing is under way any more: all but the index's share.
    #[must_use]
    pub fn settling(self) -> usize {
        self.divided / 4 * 3
    }
}

/// What reading a document takes at most: a payload without its content coding, and what is drawn from it.
const READING_BYTES: usize = 128 << 20;

/// A larger segment of the index gains nothing.
const INDEX_BYTES_MAX: usize = 512 << 20;

/// Texts that wait for the index, at most. With more of them they have left the processor's cache when their turn comes, and more is left to
/// do at the end, when one processor has nothing else to do.
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

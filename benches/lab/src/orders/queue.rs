//! Priority queues of waiting pages.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use archive_math::importance::order::{PageQueue, PerPage};

/// Waiting pages, best first. A page that was taken is never handed out again.
pub trait PriorityQueue: PageQueue {
    /// Returns the best priority of all waiting pages.
    fn best(&mut self) -> Option<f64>;

    /// Removes and returns the best page.
    fn take(&mut self) -> Option<u32>;
}

/// Low bits of an `f32` that are dropped: 128 levels remain between 1 and 2, a precision of 0.8 %.
const ROUNDED_BITS: u32 = 16;

/// Marks a level while stale entries are removed; levels themselves need 15 bits.
const KEPT: u16 = 1 << 15;

/// Maximum number of entries per waiting page before stale entries are removed.
const ENTRIES_A_PAGE_MAX: usize = 4;

/// Number of entries below which stale ones are not removed.
const ENTRIES_MIN: usize = 1 << 16;

/// The highest level of a positive finite number, plus 1.
const LEVELS: usize = 0x7f80;

/// Level of a page that was taken.
const NO_LEVEL: u16 = u16::MAX;

/// A queue for priorities of 0 or more, rounded to levels; first in, first out within a level. Every operation is O(1).
///
/// A page whose level changes is entered again, and the stale entry stays until it comes up. When most entries are
/// stale, they are removed, so a waiting page takes at most `ENTRIES_A_PAGE_MAX` entries of 4 bytes, and 2 bytes for
/// its level.
#[derive(Debug)]
pub struct LevelQueue {
    /// Level of each waiting page, plus 1.
    levels: PerPage<u16>,
    waiting: Vec<VecDeque<u32>>,
    entries: usize,
    pages: usize,
    /// One bit for each level with entries, and one bit for each non-zero word of these.
    filled: Vec<u64>,
    filled_words: Vec<u64>,
}

impl Default for LevelQueue {
    fn default() -> Self {
        Self {
            levels: PerPage::default(),
            waiting: vec![VecDeque::new(); LEVELS],
            entries: 0,
            pages: 0,
            filled: vec![0; LEVELS.div_ceil(64)],
            filled_words: vec![0; LEVELS.div_ceil(64 * 64)],
        }
    }
}

impl LevelQueue {
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    fn level(priority: f64) -> usize {
        let rounded = (priority.max(0.0) as f32).to_bits() >> ROUNDED_BITS;
        (rounded as usize).min(LEVELS - 1)
    }

    fn highest(&self) -> Option<usize> {
        let (group, words) = self.filled_words.iter().enumerate().rev().find(|(_, words)| **words != 0)?;
        let word = group * 64 + words.ilog2() as usize;
        Some(word * 64 + self.filled[word].checked_ilog2()? as usize)
    }

    /// Removes stale entries, and all but the first entry of a page that left a level and came back.
    fn throw_out(&mut self) {
        let levels = &mut self.levels;
        for (level, waiting) in self.waiting.iter_mut().enumerate().filter(|(_, waiting)| !waiting.is_empty())
        {
            waiting.retain(|&page| {
                let known = levels.at(page);
                let valid = usize::from(*known) == level + 1;
                if valid {
                    *known |= KEPT;
                }
                valid
            });
            waiting.iter().for_each(|&page| *levels.at(page) &= !KEPT);
            waiting.shrink_to_fit();
        }
        self.entries = self.waiting.iter().map(VecDeque::len).sum();
    }

    /// Returns the highest level with a valid entry; removes the stale entries above it.
    fn settle(&mut self) -> Option<usize> {
        while let Some(level) = self.highest() {
            while let Some(&page) = self.waiting[level].front() {
                if usize::from(self.levels.get(page)) == level + 1 {
                    return Some(level);
                }
                self.waiting[level].pop_front();
                self.entries -= 1;
            }
            self.waiting[level] = VecDeque::new();
            self.filled[level / 64] &= !(1 << (level % 64));
            if self.filled[level / 64] == 0 {
                self.filled_words[level / 64 / 64] &= !(1 << (level / 64 % 64));
            }
        }
        None
    }
}

impl PageQueue for LevelQueue {
    fn put(&mut self, page: u32, priority: f64) {
        let level = Self::level(priority);
        let known = self.levels.at(page);
        if *known == NO_LEVEL || usize::from(*known) == level + 1 {
            return;
        }
        self.pages += usize::from(*known == 0);
        *known = level as u16 + 1;
        self.waiting[level].push_back(page);
        self.entries += 1;
        self.filled[level / 64] |= 1 << (level % 64);
        self.filled_words[level / 64 / 64] |= 1 << (level / 64 % 64);
        if self.entries > ENTRIES_MIN.max(ENTRIES_A_PAGE_MAX * self.pages) {
            self.throw_out();
        }
    }
}

impl PriorityQueue for LevelQueue {
    fn best(&mut self) -> Option<f64> {
        self.settle().map(|level| f64::from(f32::from_bits((level as u32) << ROUNDED_BITS)))
    }

    fn take(&mut self) -> Option<u32> {
        let level = self.settle()?;
        let page = self.waiting[level].pop_front()?;
        self.entries -= 1;
        self.pages -= 1;
        *self.levels.at(page) = NO_LEVEL;
        Some(page)
    }
}

/// A queue for arbitrary priorities, kept exactly; ties are ordered by the last change. A heap with stale entries.
#[derive(Debug, Default)]
pub struct ExactQueue {
    heap: BinaryHeap<QueuedPage>,
    /// Number of the valid entry of each page; 0 for none.
    valid: PerPage<u64>,
    entries: u64,
}

/// Entry number of a page that was taken.
const TAKEN: u64 = u64::MAX;

#[derive(Debug)]
struct QueuedPage {
    priority: f64,
    number: u64,
    page: u32,
}

impl PartialEq for QueuedPage {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for QueuedPage {}

impl PartialOrd for QueuedPage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedPage {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.total_cmp(&other.priority).then_with(|| other.number.cmp(&self.number))
    }
}

impl ExactQueue {
    fn settle(&mut self) -> Option<&QueuedPage> {
        while self.heap.peek().is_some_and(|entry| self.valid.get(entry.page) != entry.number) {
            self.heap.pop();
        }
        self.heap.peek()
    }
}

impl PageQueue for ExactQueue {
    fn put(&mut self, page: u32, priority: f64) {
        let valid = self.valid.at(page);
        if *valid != TAKEN {
            self.entries += 1;
            *valid = self.entries;
            self.heap.push(QueuedPage { priority, number: self.entries, page });
        }
    }
}

impl PriorityQueue for ExactQueue {
    fn best(&mut self) -> Option<f64> {
        self.settle().map(|entry| entry.priority)
    }

    fn take(&mut self) -> Option<u32> {
        self.settle()?;
        let entry = self.heap.pop()?;
        *self.valid.at(entry.page) = TAKEN;
        Some(entry.page)
    }
}

//! The level of each page in a focused order, one byte each.

use archive_books::ledger::LEVEL_PAGE_MAX;
use archive_math::importance::order::PageQueue;

/// Maximum number of pages per generation that an order learns about; others are ordered by cash.
const KNOWN_MAX: usize = 1 << 18;

/// Maximum number of links per generation that an order learns from.
const LINKS_MAX: usize = 1 << 21;

/// Minimum change of a level that moves a page in the frontier.
const STEP: u8 = 4;

/// Level of pages that the order does not know.
pub(super) const MIDDLE: u8 = LEVEL_PAGE_MAX / 2;

/// Values in place of a level: for a page moved to the front by its age, and for a fetched page.
pub(super) const EXPLORED: u8 = u8::MAX - 1;
pub(super) const FETCHED: u8 = u8::MAX;

/// The pages and links that an order has seen.
#[derive(Debug, Default)]
pub(super) struct SeenPages {
    /// One bit per page.
    pages: Vec<u64>,
    count: usize,
    links: usize,
}

impl SeenPages {
    /// Counts a link and returns whether its target is new; `None` if there are too many links or pages.
    pub(super) fn take(&mut self, target: u32) -> Option<bool> {
        let (word, bit) = (target as usize / 64, 1 << (target % 64));
        let is_new = self.pages.get(word).is_none_or(|word| word & bit == 0);
        if self.links == LINKS_MAX || is_new && self.count == KNOWN_MAX {
            return None;
        }
        self.links += 1;
        if is_new {
            if word >= self.pages.len() {
                self.pages.resize((word + 1).next_power_of_two(), 0);
            }
            self.pages[word] |= bit;
            self.count += 1;
        }
        Some(is_new)
    }
}

/// Levels of all pages that an order knows, one byte each; 0 means none.
pub(super) struct FocusLevels {
    range: (f64, f64),
    of: Vec<u8>,
    /// Pages whose level has changed.
    pub(super) changed: Vec<u32>,
}

impl FocusLevels {
    /// Creates levels for scores within `range`.
    pub(super) fn new(range: (f64, f64)) -> Self {
        Self { range, of: Vec::new(), changed: Vec::new() }
    }

    pub(super) fn get(&self, page: u32) -> u8 {
        self.of.get(page as usize).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, page: u32, level: u8) {
        let place = page as usize;
        if place >= self.of.len() {
            self.of.resize((place + 1).next_power_of_two(), 0);
        }
        self.of[place] = level;
    }
}

impl PageQueue for FocusLevels {
    fn put(&mut self, page: u32, priority: f64) {
        let (least, most) = self.range;
        let share = ((priority - least) / (most - least)).clamp(0.0, 1.0);
        let level = 1 + (share * f64::from(LEVEL_PAGE_MAX - 1)) as u8;
        let before = self.get(page);
        if before < EXPLORED && (before == 0 || before.abs_diff(level) >= STEP) {
            self.set(page, level);
            self.changed.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_order_knows_is_bounded() {
        let mut known = SeenPages::default();
        assert!((0..KNOWN_MAX as u32).all(|page| known.take(page) == Some(true)));
        assert_eq!((known.take(KNOWN_MAX as u32), known.take(0)), (None, Some(false)));
        assert!((known.links..LINKS_MAX).all(|_| known.take(1) == Some(false)));
        assert_eq!(known.take(1), None);
    }

    #[test]
    fn levels_follow_scores_and_small_steps_move_nothing() {
        let mut levels = FocusLevels::new((-6.0, 6.0));
        levels.put(3, -20.0);
        levels.put(4, 0.0);
        levels.put(5, f64::MAX);
        assert_eq!((levels.get(3), levels.get(5)), (1, LEVEL_PAGE_MAX));
        assert!(levels.get(4).abs_diff(MIDDLE) <= 1);
        assert_eq!(std::mem::take(&mut levels.changed), [3, 4, 5]);
        levels.put(4, 0.1);
        assert!(levels.changed.is_empty());
        levels.put(4, -1.0);
        assert_eq!(levels.changed, [4]);
        // Fetched and explored pages keep their state.
        levels.set(4, FETCHED);
        levels.set(3, EXPLORED);
        levels.put(4, 8.0);
        levels.put(3, 0.0);
        assert_eq!((levels.get(4), levels.get(3), levels.get(1000)), (FETCHED, EXPLORED, 0));
    }
}

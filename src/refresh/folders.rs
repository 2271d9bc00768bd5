//! Pages in folders by the time unit in which they are due: what is due now is found without looking at the rest.
//!
//! A page stands in at most one folder. The folders form a ring; a page that is due later than the ring reaches is put
//! into the folder that comes last and looked at again when its turn has come. Folders are lists through one array, so that
//! eight bytes a page hold them all and a move costs the same however many pages there are.

/// Ends a list.
const NONE: u32 = u32::MAX;

/// All folders, and the time unit that is being worked on.
#[derive(Clone, Debug)]
pub struct DueFolders {
    /// First page of each folder.
    first: Vec<u32>,
    /// The page that follows each in its folder.
    next: Vec<u32>,
    /// When each page is due, in time units since the beginning.
    due: Vec<u32>,
    /// First and last of the pages that were due in earlier units and not taken.
    overdue: (u32, u32),
    now: u32,
}

impl DueFolders {
    /// Room for `pages` pages (at most 2³² - 1), of which none is due yet, in a ring of `folders` time units.
    pub fn new(pages: usize, folders: usize) -> Self {
        assert!(pages < NONE as usize, "pages are numbered in 32 bits");
        Self {
            first: vec![NONE; folders.max(2)],
            next: vec![NONE; pages],
            due: vec![0; pages],
            overdue: (NONE, NONE),
            now: 0,
        }
    }

    /// The present time unit.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Makes `page`, which must stand in no folder, due `units` after now; what would be due in this very unit is due in it
    /// still.
    pub fn put(&mut self, page: u32, units: u32) {
        self.due[page as usize] = self.now.saturating_add(units);
        self.file(page);
    }

    /// Takes a page that is due out of its folder, the longest overdue first. `None` when nothing is due in this unit any
    /// more: then [`advance`](Self::advance).
    pub fn take(&mut self) -> Option<u32> {
        let folder = self.now as usize % self.first.len();
        loop {
            let list = if self.overdue.0 == NONE { &mut self.first[folder] } else { &mut self.overdue.0 };
            let page = *list;
            *list = *self.next.get(page as usize)?;
            if self.due[page as usize] <= self.now {
                return Some(page);
            }
            // It was due later than the ring reaches.
            self.file(page);
        }
    }

    /// Goes on to the next time unit. Pages that were due but not taken stay due.
    pub fn advance(&mut self) {
        let folder = self.now as usize % self.first.len();
        let left = std::mem::replace(&mut self.first[folder], NONE);
        if left != NONE {
            match self.overdue {
                (NONE, _) => self.overdue.0 = left,
                (_, last) => self.next[last as usize] = left,
            }
            // A page is walked over once, when it becomes overdue.
            self.overdue.1 = left;
            while self.next[self.overdue.1 as usize] != NONE {
                self.overdue.1 = self.next[self.overdue.1 as usize];
            }
        }
        self.now += 1;
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * (self.first.len() + self.next.len() + self.due.len())
    }

    fn file(&mut self, page: u32) {
        let folders = self.first.len() as u32;
        let ahead = (self.due[page as usize] - self.now).min(folders - 1);
        let folder = ((self.now + ahead) % folders) as usize;
        self.next[page as usize] = std::mem::replace(&mut self.first[folder], page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refresh::schedule::{Budget, obsolescence};

    fn drain(folders: &mut DueFolders) -> Vec<u32> {
        let mut pages: Vec<u32> = std::iter::from_fn(|| folders.take()).collect();
        pages.sort_unstable();
        pages
    }

    #[test]
    fn pages_come_when_they_are_due() {
        let mut folders = DueFolders::new(6, 4);
        for (page, units) in [(0, 0), (1, 1), (2, 3), (3, 4), (4, 9), (5, 100)] {
            folders.put(page, units);
        }
        let mut came = Vec::new();
        for unit in 0..=100 {
            came.extend(drain(&mut folders).into_iter().map(|page| (unit, page)));
            folders.advance();
        }
        assert_eq!(came, [(0, 0), (1, 1), (3, 2), (4, 3), (9, 4), (100, 5)]);
    }

    #[test]
    fn what_is_not_taken_stays_due() {
        let mut folders = DueFolders::new(5, 3);
        (0..5).for_each(|page| folders.put(page, page / 3));
        let first = folders.take().unwrap();
        folders.advance();
        // The two that are left of the first unit come before those of the second.
        let next = [folders.take().unwrap(), folders.take().unwrap()];
        assert!(next.iter().all(|page| *page < 3 && *page != first), "{next:?}");
        folders.advance();
        assert_eq!(drain(&mut folders), [3, 4]);
        folders.advance();
        assert_eq!(folders.take(), None);
    }

    /// Equation 22 through folders: the fetches settle at G a time unit, obsolescence at Ω(G), under pages that come and go.
    #[test]
    fn folders_keep_the_equilibrium_of_equation_22() {
        let count = 20_000_u32;
        let page = |page: u32| {
            let x = f64::from(page);
            (0.05 + 3.0 * (x * 0.618).fract(), 0.0005 * (4.0 * (x * 0.414).fract()).exp())
        };
        let mut budget = Budget::new(200.0, 0.0);
        (0..count).for_each(|number| budget.add(page(number).0, page(number).1));
        let mut folders = DueFolders::new(count as usize, 400);
        let mut fetched = vec![0.0; count as usize];
        // Everywhere in their cycle at the beginning, as after a long run.
        for number in 0..count {
            let (importance, rate) = page(number);
            let interval = budget.interval(importance, rate);
            let phase = (f64::from(number) * 0.7548).fract() * interval;
            fetched[number as usize] = phase - interval;
            folders.put(number, phase.ceil() as u32);
        }
        let (warm, end) = (500, 1500);
        let (mut fetches, mut total) = (0_u32, 0.0);
        for unit in 0..end {
            let now = f64::from(unit);
            while let Some(number) = folders.take() {
                let (importance, rate) = page(number);
                let last = &mut fetched[number as usize];
                // The period is kept although units round it up.
                let period = budget.interval(importance, rate);
                if unit >= warm {
                    fetches += 1;
                    total += obsolescence(importance, rate, period) * period / 2.0;
                }
                *last += period;
                folders.put(number, (*last + period - now).ceil().max(0.0) as u32);
            }
            folders.advance();
        }
        let units = f64::from(end - warm);
        let per_unit = f64::from(fetches) / units;
        assert!((per_unit / 200.0 - 1.0).abs() < 0.01, "{per_unit} fetches a unit");
        let mean = total / units;
        assert!((mean / budget.mean_obsolescence() - 1.0).abs() < 0.01, "{mean} obsolescence");
    }
}

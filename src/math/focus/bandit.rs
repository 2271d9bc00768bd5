//! Folders as the arms of a bandit.

use std::collections::{BTreeMap, HashMap};

use super::links::folders;
use super::{FetchedPage, Focus};
use crate::importance::order::PageQueue;

/// Width of the bound. The bound for outcomes between 0 and 1 is too wide, because outcomes rarely differ that much.
const WIDTH: f64 = 0.2;

/// Mean outcome of a folder before its first page.
const PRIOR: f64 = 0.1;

/// Number of fetched pages after which the priorities of all arms are updated, at least; and one in this many waiting
/// pages.
const UPDATE_EVERY: u32 = 16;
const PAGES_AN_UPDATE: usize = 64;

/// Minimum change of an arm's priority that moves its waiting pages.
const STEP: f64 = 0.001;

/// UCB1 over folders (Auer, Cesa-Bianchi, Fischer 2002): mean outcome + width · sqrt(2 ln n / n of the folder).
#[derive(Clone, Debug)]
pub struct FolderBandit {
    class: usize,
    /// The arms by the hash of their folder.
    arms: BTreeMap<u64, Arm>,
    arm_of: HashMap<u32, u64>,
    fetched: u32,
    updated: u32,
    waiting: usize,
}

#[derive(Clone, Debug, Default)]
struct Arm {
    sum: f64,
    count: f64,
    /// The waiting pages in the order in which they were found: of equals the first comes first.
    waiting: Vec<u32>,
    /// Priority of the waiting pages.
    priority: f64,
}

impl FolderBandit {
    /// Looks for pages of `class`.
    #[must_use]
    pub fn new(class: usize) -> Self {
        Self { class, arms: BTreeMap::new(), arm_of: HashMap::new(), fetched: 0, updated: 0, waiting: 0 }
    }
}

impl Arm {
    fn bound(&self, fetched: u32) -> f64 {
        let count = self.count + 1.0;
        (self.sum + PRIOR) / count + WIDTH * (2.0 * f64::from(fetched + 1).ln() / count).sqrt()
    }

    /// Moves the waiting pages if the priority has changed.
    fn update(&mut self, fetched: u32, queue: &mut dyn PageQueue) {
        let bound = self.bound(fetched);
        if (bound - self.priority).abs() >= STEP {
            self.priority = bound;
            self.waiting.iter().for_each(|&page| queue.put(page, bound));
        }
    }
}

impl Focus for FolderBandit {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        self.fetched += 1;
        let fetched = self.fetched;
        if let Some(arm) = self.arm_of.get(&page.page).and_then(|arm| self.arms.get_mut(arm)) {
            arm.sum += page.classes[self.class];
            arm.count += 1.0;
            if let Some(place) = arm.waiting.iter().position(|&waiting| waiting == page.page) {
                arm.waiting.remove(place);
                self.waiting -= 1;
            }
            arm.update(fetched, queue);
        }
        for lead in page.leads {
            if self.arm_of.contains_key(&lead.target) {
                continue;
            }
            let Some(folder) = folders(lead.url).pop() else { continue };
            self.arm_of.insert(lead.target, folder);
            let arm = self.arms.entry(folder).or_default();
            arm.update(fetched, queue);
            arm.waiting.push(lead.target);
            self.waiting += 1;
            queue.put(lead.target, arm.priority);
        }
        if (fetched - self.updated) as usize >= (UPDATE_EVERY as usize).max(self.waiting / PAGES_AN_UPDATE) {
            self.updated = fetched;
            self.arms.values_mut().for_each(|arm| arm.update(fetched, queue));
        }
    }
}

//! RankMass and windowed RankMass (Cho, Schonfeld, "RankMass crawler", VLDB 2007).
//!
//! Jumps lead to the seeds. Each page holds the mass that has reached it and was not yet passed on; mass counts as
//! covered once it is passed on. The covered mass of downloaded pages is a proven lower bound of their personalised
//! PageRank.

use std::collections::BinaryHeap;

use archive_math::importance::order::{DAMPING, OrderLink, PageQueue, PerPage};

use super::SimulatedOrder;
use super::queue::PriorityQueue;

/// Links of downloaded pages, kept because mass is passed on repeatedly.
#[derive(Debug, Default)]
pub(super) struct KeptLinks {
    pages: Vec<u32>,
    offsets: Vec<usize>,
    targets: Vec<u32>,
    /// Index of each downloaded page, plus 1.
    places: PerPage<u32>,
}

impl KeptLinks {
    pub(super) fn keep(&mut self, page: u32, links: &[OrderLink]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.pages.push(page);
        self.targets.extend(links.iter().map(|link| link.target));
        self.offsets.push(self.targets.len());
        *self.places.at(page) = self.pages.len() as u32;
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        self.places.get(page) > 0
    }

    /// Returns the page at index `place` in download order, and its links.
    pub(super) fn at(&self, place: usize) -> (u32, &[u32]) {
        (self.pages[place], &self.targets[self.offsets[place]..self.offsets[place + 1]])
    }

    fn of(&self, page: u32) -> &[u32] {
        match self.places.get(page) {
            0 => &[],
            place => self.at(place as usize - 1).1,
        }
    }
}

/// Always takes the page with the most mass: downloads it if it is new, and passes on its mass.
///
/// Exact up to the rounding of the levels of the queue, and slow: it passes mass around among downloaded pages.
#[derive(Debug, Default)]
pub struct RankMass {
    mass: PerPage<f64>,
    links: KeptLinks,
    /// Downloaded pages that hold mass again, keyed by its bits, which sort like the non-negative numbers.
    again: BinaryHeap<(u64, u32)>,
    covered: f64,
    operations: u64,
}

impl RankMass {
    fn pass_on(&mut self, page: u32, queue: &mut dyn PriorityQueue) {
        let mass = std::mem::take(self.mass.at(page));
        self.covered += mass;
        let targets = self.links.of(page);
        let gift = DAMPING * mass / targets.len().max(1) as f64;
        self.operations += targets.len() as u64;
        for &target in targets {
            let mass = self.mass.at(target);
            *mass += gift;
            if self.links.contains(target) {
                self.again.push((mass.to_bits(), target));
            } else {
                queue.put(target, *mass);
            }
        }
    }
}

impl SimulatedOrder for RankMass {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PriorityQueue) {
        for &seed in seeds {
            let mass = (1.0 - DAMPING) / seeds.len() as f64;
            *self.mass.at(seed) = mass;
            queue.put(seed, mass);
        }
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PriorityQueue) {
        self.links.keep(page, links);
        self.pass_on(page, queue);
        while let Some(&(mass, page)) = self.again.peek() {
            let stale = self.mass.get(page).to_bits() != mass;
            if !stale && queue.best().is_some_and(|best| f64::from_bits(mass) <= best) {
                break;
            }
            self.again.pop();
            // With nothing left to download, the remaining mass decides nothing.
            if !stale && queue.best().is_some() {
                self.pass_on(page, queue);
            }
        }
    }

    fn operations(&self) -> Option<u64> {
        Some(self.operations)
    }

    fn covered(&self) -> Option<f64> {
        Some(self.covered)
    }
}

/// Alternates between downloading the best share of the waiting pages and passing on the mass of every downloaded page
/// once.
///
/// The paper does not say what the window is a share of; here it is a share of the pages waiting when the window
/// begins.
#[derive(Debug)]
pub struct WindowedRankMass {
    window: f64,
    mass: PerPage<f64>,
    links: KeptLinks,
    waiting: Vec<u32>,
    known: PerPage<bool>,
    left: usize,
    covered: f64,
    operations: u64,
}

impl WindowedRankMass {
    /// `window` is a share; most of the paper uses 0.05.
    #[must_use]
    pub fn new(window: f64) -> Self {
        Self {
            window,
            mass: PerPage::default(),
            links: KeptLinks::default(),
            waiting: Vec::new(),
            known: PerPage::default(),
            left: 0,
            covered: 0.0,
            operations: 0,
        }
    }

    fn next_window(&mut self, queue: &mut dyn PageQueue) {
        for place in 0..self.links.len() {
            let (page, targets) = self.links.at(place);
            let mass = std::mem::take(self.mass.at(page));
            self.covered += mass;
            if mass > 0.0 {
                let gift = DAMPING * mass / targets.len().max(1) as f64;
                self.operations += targets.len() as u64;
                for &target in targets {
                    *self.mass.at(target) += gift;
                }
            }
        }
        let links = &self.links;
        self.waiting.retain(|&page| !links.contains(page));
        for &page in &self.waiting {
            queue.put(page, self.mass.get(page));
        }
        self.left = ((self.waiting.len() as f64 * self.window) as usize).max(1);
    }
}

impl SimulatedOrder for WindowedRankMass {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PriorityQueue) {
        for &seed in seeds {
            let mass = (1.0 - DAMPING) / seeds.len() as f64;
            *self.mass.at(seed) = mass;
            *self.known.at(seed) = true;
            self.waiting.push(seed);
            queue.put(seed, mass);
        }
        self.left = ((seeds.len() as f64 * self.window) as usize).max(1);
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PriorityQueue) {
        self.links.keep(page, links);
        for link in links {
            if !std::mem::replace(self.known.at(link.target), true) {
                self.waiting.push(link.target);
                // It has no mass until the next window, but must not be lost when the queue runs dry.
                queue.put(link.target, 0.0);
            }
        }
        self.left -= 1;
        if self.left == 0 {
            self.next_window(queue);
        }
    }

    fn operations(&self) -> Option<u64> {
        Some(self.operations)
    }

    fn covered(&self) -> Option<f64> {
        Some(self.covered)
    }
}

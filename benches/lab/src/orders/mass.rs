//! Exact RankMass (Cho, Schonfeld, "RankMass crawler", VLDB 2007); the windowed one is an order of the crawler.

use std::collections::BinaryHeap;

use archive_math::importance::order::{DAMPING, KeptLinks, OrderLink, PerPage};

use super::SimulatedOrder;
use super::queue::PriorityQueue;

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

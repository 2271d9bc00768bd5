//! Orders that need no arithmetic: random, breadth first, depth, and number of backlinks.

use super::{DownloadOrder, OrderLink, PageQueue, PageStage, PerPage};

/// Known pages in random order.
#[derive(Debug)]
pub struct RandomOrder {
    numbers: fastrand::Rng,
    known: PerPage<bool>,
}

impl RandomOrder {
    /// Creates an order; the same `seed` gives the same order.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { numbers: fastrand::Rng::with_seed(seed), known: PerPage::default() }
    }

    fn enqueue(&mut self, page: u32, queue: &mut dyn PageQueue) {
        if !std::mem::replace(self.known.at(page), true) {
            queue.put(page, self.numbers.u64(..) as f64);
        }
    }
}

impl DownloadOrder for RandomOrder {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|&seed| self.enqueue(seed, queue));
    }

    fn downloaded(&mut self, _page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        links.iter().for_each(|link| self.enqueue(link.target, queue));
    }
}

/// In order of discovery.
#[derive(Debug, Default)]
pub struct BreadthFirst {
    known: PerPage<bool>,
}

impl BreadthFirst {
    fn enqueue(&mut self, page: u32, queue: &mut dyn PageQueue) {
        if !std::mem::replace(self.known.at(page), true) {
            queue.put(page, 1.0);
        }
    }
}

impl DownloadOrder for BreadthFirst {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|&seed| self.enqueue(seed, queue));
    }

    fn downloaded(&mut self, _page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        links.iter().for_each(|link| self.enqueue(link.target, queue));
    }
}

/// Fewest links from the entrance of the page's own site first; a link from another host leads to depth 0.
///
/// This is the depth score of the slides: paths are counted inside the site, so that all sites advance at the same
/// pace.
#[derive(Debug, Default)]
pub struct Depth {
    /// Depth plus 1; 0 if unknown.
    depths: PerPage<u32>,
    stages: PerPage<PageStage>,
}

impl Depth {
    fn enqueue(&mut self, page: u32, depth: u32, queue: &mut dyn PageQueue) {
        if *self.stages.at(page) == PageStage::Downloaded {
            return;
        }
        let known = self.depths.at(page);
        if *known == 0 || depth + 1 < *known {
            *known = depth + 1;
            *self.stages.at(page) = PageStage::Waiting;
            queue.put(page, 1.0 / f64::from(depth + 1));
        }
    }
}

impl DownloadOrder for Depth {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|&seed| self.enqueue(seed, 0, queue));
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        *self.stages.at(page) = PageStage::Downloaded;
        let next = self.depths.get(page);
        for link in links {
            self.enqueue(link.target, if link.between_hosts { 0 } else { next }, queue);
        }
    }
}

/// Most links from downloaded pages first.
#[derive(Debug, Default)]
pub struct Backlinks {
    counts: PerPage<u32>,
}

impl DownloadOrder for Backlinks {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|&seed| queue.put(seed, 0.0));
    }

    fn downloaded(&mut self, _page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        for link in links {
            let count = self.counts.at(link.target);
            *count += 1;
            queue.put(link.target, f64::from(*count));
        }
    }
}

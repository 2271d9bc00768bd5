//! Orders that are recomputed from time to time over all links seen: PageRank of the known part (Cho, Garcia-Molina, Page,
//! "Efficient crawling through URL ordering", 1998) and windowed RankMass (Cho, Schonfeld, "RankMass crawler", VLDB 2007).
//!
//! They keep the links of all downloaded pages in memory, 4 bytes each. A computation follows each of them, PageRank
//! [`SWEEPS`] times, and puts every waiting page anew.

use super::{DAMPING, DownloadOrder, OrderLink, PageQueue, PerPage};

/// When an order is computed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Renewal {
    /// After this number of downloads.
    Pages(u32),
    /// After a share: of the downloaded pages for PageRank, of those that waited at the last computation for RankMass.
    Share(f64),
}

impl Renewal {
    /// Returns the number of downloads until the next computation.
    fn after(self, pages: usize) -> usize {
        match self {
            Self::Pages(pages) => pages as usize,
            Self::Share(share) => (share * pages as f64) as usize,
        }
        .max(1)
    }
}

/// Links of downloaded pages, kept because value is passed on repeatedly.
#[derive(Debug, Default)]
pub struct KeptLinks {
    pages: Vec<u32>,
    offsets: Vec<usize>,
    targets: Vec<u32>,
    /// Index of each downloaded page, plus 1.
    places: PerPage<u32>,
}

impl KeptLinks {
    /// Adds a downloaded page.
    pub fn keep(&mut self, page: u32, links: &[OrderLink]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.pages.push(page);
        self.targets.extend(links.iter().map(|link| link.target));
        self.offsets.push(self.targets.len());
        *self.places.at(page) = self.pages.len() as u32;
    }

    /// Whether the page was downloaded.
    #[must_use]
    pub fn contains(&self, page: u32) -> bool {
        self.places.get(page) > 0
    }

    /// Returns the links of a page; none if it was not downloaded.
    #[must_use]
    pub fn of(&self, page: u32) -> &[u32] {
        match self.places.get(page) {
            0 => &[],
            place => self.at(place as usize - 1).1,
        }
    }

    /// Returns the page at index `place` in download order, and its links.
    fn at(&self, place: usize) -> (u32, &[u32]) {
        (self.pages[place], &self.targets[self.offsets[place]..self.offsets[place + 1]])
    }
}

/// Number of sweeps per computation, starting from the last ranks.
const SWEEPS: usize = 8;

/// Highest PageRank in the known graph first. A page that was not downloaded gives to all pages equally.
///
/// Between two computations a page is worth what the ranks of the pages that link to it give.
#[derive(Debug)]
pub struct PageRankSoFar {
    renewal: Renewal,
    left: usize,
    links: KeptLinks,
    known: PerPage<bool>,
    pages: Vec<u32>,
    /// Ranks with mean 1; without the jump, which is the same for all.
    ranks: PerPage<f64>,
    next: PerPage<f64>,
    jump: f64,
    operations: u64,
}

impl PageRankSoFar {
    /// Creates the order.
    #[must_use]
    pub fn new(renewal: Renewal) -> Self {
        Self {
            renewal,
            left: 1,
            links: KeptLinks::default(),
            known: PerPage::default(),
            pages: Vec::new(),
            ranks: PerPage::default(),
            next: PerPage::default(),
            jump: 1.0,
            operations: 0,
        }
    }

    fn know(&mut self, page: u32) {
        if !std::mem::replace(self.known.at(page), true) {
            self.pages.push(page);
        }
    }

    fn compute(&mut self) {
        let pages = self.pages.len() as f64;
        for _ in 0..SWEEPS {
            self.pages.iter().for_each(|&page| *self.next.at(page) = 0.0);
            let (mut total, mut given) = (0.0, 0.0);
            for &page in &self.pages {
                let rank = self.ranks.get(page) + self.jump;
                total += rank;
                let targets = self.links.of(page);
                if !targets.is_empty() {
                    given += DAMPING * rank;
                    let gift = DAMPING * rank / targets.len() as f64;
                    targets.iter().for_each(|&target| *self.next.at(target) += gift);
                }
                self.operations += targets.len() as u64;
            }
            self.jump = (total - given) / total;
            for &page in &self.pages {
                *self.ranks.at(page) = self.next.get(page) * pages / total;
            }
        }
    }
}

impl DownloadOrder for PageRankSoFar {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        for &seed in seeds {
            self.know(seed);
            queue.put(seed, 1.0);
        }
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        self.know(page);
        self.links.keep(page, links);
        self.left -= 1;
        let gift = DAMPING * (self.ranks.get(page) + self.jump) / links.len().max(1) as f64;
        for link in links {
            self.know(link.target);
            if !self.links.contains(link.target) {
                let rank = self.ranks.at(link.target);
                *rank += gift;
                queue.put(link.target, *rank);
            }
        }
        if self.left == 0 {
            self.compute();
            self.left = self.renewal.after(self.links.pages.len());
            for &page in self.pages.iter().filter(|&&page| !self.links.contains(page)) {
                queue.put(page, self.ranks.get(page));
            }
        }
    }

    fn operations(&self) -> Option<u64> {
        Some(self.operations)
    }
}

/// Most mass first, passed on from the seeds over all links of downloaded pages, once in each window.
///
/// Jumps lead to the seeds. Each page holds the mass that has reached it and was not yet passed on; mass counts as covered
/// once it is passed on. The covered mass of downloaded pages is a proven lower bound of their personalised PageRank. The
/// paper does not say what its window is a share of; here it is the pages waiting when the window begins.
#[derive(Debug)]
pub struct WindowedRankMass {
    renewal: Renewal,
    mass: PerPage<f64>,
    links: KeptLinks,
    waiting: Vec<u32>,
    known: PerPage<bool>,
    left: usize,
    covered: f64,
    operations: u64,
}

impl WindowedRankMass {
    /// Creates the order; most of the paper uses windows of a share of 0.05.
    #[must_use]
    pub fn new(renewal: Renewal) -> Self {
        Self {
            renewal,
            mass: PerPage::default(),
            links: KeptLinks::default(),
            waiting: Vec::new(),
            known: PerPage::default(),
            left: 0,
            covered: 0.0,
            operations: 0,
        }
    }

    fn know(&mut self, page: u32) -> bool {
        let is_new = !std::mem::replace(self.known.at(page), true);
        if is_new {
            self.waiting.push(page);
        }
        is_new
    }

    fn next_window(&mut self, queue: &mut dyn PageQueue) {
        for place in 0..self.links.pages.len() {
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
        self.left = self.renewal.after(self.waiting.len());
    }
}

impl DownloadOrder for WindowedRankMass {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        for &seed in seeds {
            let mass = (1.0 - DAMPING) / seeds.len() as f64;
            *self.mass.at(seed) = mass;
            self.know(seed);
            queue.put(seed, mass);
        }
        self.left = self.renewal.after(seeds.len());
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        self.know(page);
        self.links.keep(page, links);
        for link in links {
            if self.know(link.target) {
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

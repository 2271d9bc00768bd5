//! Crawl orders: which known page to download next, so that important pages come early.
//!
//! An [`Order`] turns what a crawl sees (seeds, and the links of each downloaded page) into priorities of pages that
//! wait; a [`Queue`] hands out the best. The crawler puts politeness between the two, the lab does not; both run the
//! same orders. Pages are dense numbers.

mod endowed;
mod fractional;
mod mass;
mod queue;
mod rank;
mod simple;

pub use endowed::Endowed;
pub use fractional::Fractional;
pub use mass::{RankMass, WindowedRankMass};
pub use queue::{ExactQueue, LevelQueue, Queue};
pub use rank::{GreedyCash, PageRankSoFar};
pub use simple::{Backlinks, BreadthFirst, Depth, Random};

/// The damping of all orders that follow PageRank.
const DAMPING: f64 = 0.85;

/// A link of a page that was downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The page it leads to.
    pub target: u32,
    /// Whether that page lies on another host.
    pub between_hosts: bool,
}

/// Decides priorities; see the module's documentation.
pub trait Order {
    /// The crawl begins with these pages: put them into `queue`. Called once, first.
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn Queue);

    /// `page`, which came from `queue`, was downloaded and has these links (each target once): put or raise what waits.
    fn downloaded(&mut self, page: u32, links: &[Link], queue: &mut dyn Queue);

    /// Links over which anything was passed on so far: the order's cost, whatever the machine.
    fn operations(&self) -> u64;

    /// Whether priorities have to be kept exactly, in an [`ExactQueue`]: they may be negative or differ by very little.
    fn is_exact(&self) -> bool {
        false
    }

    /// A lower bound of the PageRank of all downloaded pages together, if the order proves one.
    fn covered(&self) -> Option<f64> {
        None
    }
}

/// Where a page stands in the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Unknown,
    Waiting,
    Downloaded,
}

/// A value for each page that was met so far.
#[derive(Clone, Debug, Default)]
struct PerPage<T>(Vec<T>);

impl<T: Copy + Default> PerPage<T> {
    fn get(&self, page: u32) -> T {
        self.0.get(page as usize).copied().unwrap_or_default()
    }

    fn at(&mut self, page: u32) -> &mut T {
        let place = page as usize;
        if place >= self.0.len() {
            // Grow by doubling: pages are met in no order.
            self.0.resize((place + 1).next_power_of_two(), T::default());
        }
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests;

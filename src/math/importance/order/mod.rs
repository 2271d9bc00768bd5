//! Crawl orders: which known page to download next, so that important pages come early.
//!
//! An [`Order`] turns what a crawl sees (the seeds and the links of each downloaded page) into priorities of waiting
//! pages. A [`Queue`] hands out the best. The crawler adds politeness in between, the lab does not; both run the same
//! orders. Pages are dense numbers.

mod fractional;
mod mass;
mod queue;
mod rank;
mod simple;

pub use fractional::Fractional;
pub use mass::{RankMass, WindowedRankMass};
pub use queue::{ExactQueue, LevelQueue, Queue};
pub use rank::{GreedyCash, PageRankSoFar};
pub use simple::{Backlinks, BreadthFirst, Depth, Random};

/// Damping factor of all orders that follow PageRank.
const DAMPING: f64 = 0.85;

/// A link of a downloaded page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The target page.
    pub target: u32,
    /// Whether the target is on another host.
    pub between_hosts: bool,
}

/// A crawl order; see the module documentation.
pub trait Order {
    /// Starts the crawl: puts the seeds into `queue`. Called once, first.
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn Queue);

    /// Handles the download of `page`, taken from `queue`, with its links (each target once): adds waiting pages or
    /// raises their priorities.
    fn downloaded(&mut self, page: u32, links: &[Link], queue: &mut dyn Queue);

    /// Number of links over which value was passed on so far: the cost of the order, independent of the machine. `None`
    /// if that was once for each link of the downloaded pages.
    fn operations(&self) -> Option<u64> {
        None
    }

    /// Whether priorities need an [`ExactQueue`], because they can be negative or differ very little.
    fn is_exact(&self) -> bool {
        false
    }

    /// Returns a lower bound of the total PageRank of all downloaded pages, if the order proves one.
    fn covered(&self) -> Option<f64> {
        None
    }
}

/// Stage of a page in the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Unknown,
    Waiting,
    Downloaded,
}

/// A value for each page seen so far.
#[derive(Clone, Debug, Default)]
struct PerPage<T>(Vec<T>);

impl<T: Copy + Default> PerPage<T> {
    fn get(&self, page: u32) -> T {
        self.0.get(page as usize).copied().unwrap_or_default()
    }

    fn at(&mut self, page: u32) -> &mut T {
        let place = page as usize;
        if place >= self.0.len() {
            // Double the size, because pages come in arbitrary order.
            self.0.resize((place + 1).next_power_of_two(), T::default());
        }
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests;

//! Crawl orders: which known page to download next, so that important pages come early.
//!
//! A [`DownloadOrder`] turns what a crawl sees (the seeds and the links of each downloaded page) into priorities of waiting
//! pages, in a [`PageQueue`]. The crawler adds politeness, the lab does not and has more orders; both run these. Pages are
//! dense numbers.

mod fractional;
mod recomputed;
mod simple;

pub use fractional::Fractional;
pub use recomputed::{KeptLinks, PageRankSoFar, Renewal, WindowedRankMass};
pub use simple::{Backlinks, BreadthFirst, Depth, RandomOrder};

/// Damping factor of all orders that follow PageRank.
pub const DAMPING: f64 = 0.85;

/// The priorities of waiting pages.
pub trait PageQueue {
    /// Adds `page` with this priority, or changes its priority. A page that was taken never returns.
    fn put(&mut self, page: u32, priority: f64);
}

/// A link of a downloaded page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLink {
    /// The target page.
    pub target: u32,
    /// Whether the target is on another host.
    pub between_hosts: bool,
}

/// A crawl order; see the module documentation.
pub trait DownloadOrder {
    /// Starts the crawl: puts the seeds into `queue`. Called once, first.
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue);

    /// Handles the download of `page`, taken from `queue`, with its links (each target once): adds waiting pages or
    /// raises their priorities.
    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue);

    /// Number of links over which value was passed on so far: the cost of the order, independent of the machine. `None`
    /// if that was once for each link of the downloaded pages.
    fn operations(&self) -> Option<u64> {
        None
    }

    /// Returns a lower bound of the total PageRank of all downloaded pages, if the order proves one.
    fn covered(&self) -> Option<f64> {
        None
    }
}

/// How far a page has come in the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageStage {
    /// No link to it was seen.
    #[default]
    Unknown,
    /// It can be downloaded.
    Waiting,
    /// It was downloaded.
    Downloaded,
}

/// A value for each page seen so far.
#[derive(Clone, Debug, Default)]
pub struct PerPage<T>(Vec<T>);

impl<T: Copy + Default> PerPage<T> {
    /// Returns the value of a page; the default if it was never set.
    #[must_use]
    pub fn get(&self, page: u32) -> T {
        self.0.get(page as usize).copied().unwrap_or_default()
    }

    /// Returns the place of a page's value.
    pub fn at(&mut self, page: u32) -> &mut T {
        let place = page as usize;
        if place >= self.0.len() {
            // Double the size, because pages come in arbitrary order.
            self.0.resize((place + 1).next_power_of_two(), T::default());
        }
        &mut self.0[place]
    }
}

#[cfg(test)]
pub(crate) mod tests;

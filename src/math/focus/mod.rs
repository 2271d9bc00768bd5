//! Focused crawling: which pages are of a topic, and which links lead to such pages. Pure computation without I/O.
//!
//! The classifiers themselves are in [`crate::learn`], which knows neither pages nor crawls; the topics that people teach
//! an archive, with their files and their examples, are a room of the archive's books (`books/topics`).
//!
//! [`Knowledge`] is learned from examples: pages of known classes, and the links among them. One of the classes is the
//! topic of a crawl. A [`Focus`] turns what the crawl sees (the classes of each fetched page, its links and their
//! texts) into priorities of waiting pages, as a [`crate::importance::order::DownloadOrder`] does from links alone.

mod bandit;
mod bytes;
mod context;
mod knowledge;
mod learned;
mod links;
mod mode;
mod recall;
mod reinforced;
mod relatives;
mod simple;
mod texts;
mod waiting_pages;
mod words;

use crate::importance::order::PageQueue;

pub use bandit::FolderBandit;
pub use context::ContextGraph;
pub use knowledge::{Knowledge, LabelledPage, Model, TopicText, UnknownModel, held_out};
pub use learned::{LearnedFocus, Tuning};
pub use mode::{FocusMode, LearnOrder, UnknownMode};
pub use recall::{LevelOutcomes, OUTCOMES_MIN, Recall};
pub use reinforced::Reinforced;
pub use simple::{Fish, ParentAnchor, Shark, Soft, Tunnel};

/// A link of a fetched page to a page that can be fetched.
#[derive(Clone, Copy, Debug)]
pub struct Lead<'a> {
    /// The target page, a dense number.
    pub target: u32,
    /// URL of the target.
    pub url: &'a str,
    /// Text of the link.
    pub anchor: &'a str,
    /// The heading above the link.
    pub heading: &'a str,
    /// The line in which the link is, with its text: a sentence, an item of a list.
    pub context: &'a str,
    /// Position among the links of the page.
    pub place: u32,
}

/// A fetched page.
#[derive(Clone, Copy, Debug)]
pub struct FetchedPage<'a> {
    /// Number of the page.
    pub page: u32,
    /// Probability of each class; see [`Knowledge::page`].
    pub classes: &'a [f64],
    /// Content of the page.
    pub text: &'a TopicText<'a>,
    /// Links of the page, each target once.
    pub leads: &'a [Lead<'a>],
}

/// Memory use of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderMemory {
    /// Number of waiting pages.
    pub waiting: usize,
    /// Bytes used for waiting and fetched pages, without fixed-size parts.
    pub bytes: usize,
}

/// Orders the waiting pages; see the module documentation.
pub trait Focus {
    /// Starts the crawl: puts the seeds, given with their URLs, into `queue`. Called once, first.
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue);

    /// Handles the fetch of a page taken from `queue`: adds waiting pages or changes their priorities. A page that was
    /// taken never returns to the queue.
    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue);

    /// Returns the named parts of the score of a waiting page; empty if the score has a single part.
    fn parts(&self, page: u32) -> Vec<(&'static str, f64)> {
        let _ = page;
        Vec::new()
    }

    /// Returns the memory use; `None` if the order does not count it.
    fn memory(&self) -> Option<OrderMemory> {
        None
    }
}

#[cfg(test)]
mod tests;

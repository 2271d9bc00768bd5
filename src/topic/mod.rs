//! Focused crawling: which pages are of a topic, and which links lead to such pages. Numbers and words in, numbers out, no I/O.
//!
//! [`Knowledge`] is learned from examples: pages of known classes, and the links among them. A class is the topic of a crawl. A
//! [`Focus`] turns what the crawl sees (the classes of each fetched page, its links and what they say) into priorities of pages
//! that wait, as a [`crate::importance::order::Order`] does from links alone.

mod bytes;
mod context;
mod knowledge;
mod learned;
mod links;
mod recall;
mod relatives;
mod simple;
mod texts;
mod waiting;

use crate::importance::order::Queue;

pub use context::Context;
pub use knowledge::{Example, Knowledge, Model, PageText, UnknownModel, held_out};
pub use learned::{Learned, Part, Tuning};
pub use recall::{OUTCOMES_MIN, Outcomes, Recall};
pub use simple::{Fish, ParentAnchor, Shark, Soft, Tunnel, Ucb, Unfocused};

/// A link of a fetched page to a page that can be fetched.
#[derive(Clone, Copy, Debug)]
pub struct Lead<'a> {
    /// The page it leads to, a dense number.
    pub target: u32,
    /// The URL of that page.
    pub url: &'a str,
    /// What the link says.
    pub anchor: &'a str,
    /// The heading that it stands below.
    pub heading: &'a str,
    /// Its place among the page's links.
    pub place: u32,
}

/// A page that was fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'a> {
    /// Its number.
    pub page: u32,
    /// The probability of each class, as [`Knowledge::page`] gives it.
    pub classes: &'a [f64],
    /// What it says.
    pub text: &'a PageText<'a>,
    /// Its links, each target once.
    pub leads: &'a [Lead<'a>],
}

/// What an order remembers of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// How many pages wait.
    pub waiting: usize,
    /// Bytes that it takes, with what is remembered of fetched pages, without what does not grow.
    pub bytes: usize,
}

/// Decides in which order waiting pages are fetched; see the module's documentation.
pub trait Focus {
    /// The crawl begins with these pages, given with their URLs: put them into `queue`. Called once, first.
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn Queue);

    /// A page, which came from `queue`, was fetched: put or change what waits. A page that was taken stays out of the queue
    /// whatever is put.
    fn fetched(&mut self, page: &Fetched<'_>, queue: &mut dyn Queue);

    /// What the score of a waiting page consists of, each part with its name; nothing if it has one part only.
    fn parts(&self, page: u32) -> Vec<(&'static str, f64)> {
        let _ = page;
        Vec::new()
    }

    /// What it remembers; none if it does not count that.
    fn memory(&self) -> Option<Memory> {
        None
    }
}

#[cfg(test)]
mod tests;

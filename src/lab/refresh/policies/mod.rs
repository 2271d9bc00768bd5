//! Policies by name: what to fetch next, from what was seen so far.

mod activity;
mod adaptive;
mod allocation;
mod estimates;
mod events;
mod hindsight;
mod name;
mod outlook;
mod ranked;

pub use name::{PolicyName, UnknownPolicy};

use super::replay::Visit;

/// Decides which pages to fetch by giving each a value; those of the highest value are fetched.
pub trait Policy {
    /// The value of fetching each of `pages` now, whose copies are `ages` old; a negative value forbids a fetch.
    ///
    /// Times are days since the experiment began. `values` has a place for each page.
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]);

    /// What the fetches of one moment showed.
    fn seen(&mut self, _now: f64, _visits: &[Visit]) {}

    /// Pages that answered 404 and will not be asked for again.
    fn gone(&mut self, _now: f64, _pages: &[usize]) {}
}

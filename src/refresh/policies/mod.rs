//! Refresh policies that learn on line, by name: what to fetch next, from what visits have shown so far.
//!
//! The lab replays recorded histories with them, `archive refresh` what the archive's captures say; both run this code.
//! A policy sees a [`Known`] and the visits it is shown, never a change that was not fetched.

mod activity;
mod adaptive;
mod estimates;
mod events;
mod name;
mod ranked;
mod shared;

pub use name::{PolicyName, UnknownPolicy, allocated};
pub use shared::SharedModel;

pub use super::change_model::Sighting;

/// What a policy may know before it fetches anything.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Importance of each page.
    pub importance: Vec<f64>,
    /// Site of each page.
    pub site: Vec<usize>,
    /// Directory of each page.
    pub directory: Vec<usize>,
    /// Relations of each page, from [`relations`](super::change_model::relations).
    pub relations: Vec<super::change_model::Relations>,
    /// Number of sites.
    pub sites: usize,
    /// Number of directories.
    pub directories: usize,
    /// When each page is found and first fetched, in days.
    pub found: Vec<f64>,
    /// Whether pages that are found after day 0 came into being then, or are only met then.
    pub found_at_birth: bool,
    /// Fetches a day.
    pub budget: f64,
    /// The mean change rate that is assumed before anything was seen, in changes a day; without it one that the budget
    /// could keep up with.
    pub mean_rate: Option<f64>,
    /// How long the experiment lasts, in days.
    pub days: f64,
    /// Days from one moment of fetching to the next.
    pub tick: f64,
}

/// Decides which pages to fetch by giving each a value; those of the highest value are fetched.
pub trait Policy {
    /// The value of fetching each of `pages` now, whose copies are `ages` old; a negative value forbids a fetch.
    ///
    /// Times are days since the experiment began. `values` has a place for each page.
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]);

    /// What the fetches of one moment showed.
    fn seen(&mut self, _now: f64, _sightings: &[Sighting]) {}

    /// Pages that answered 404 and will not be asked for again.
    fn gone(&mut self, _now: f64, _pages: &[usize]) {}

    /// Somebody said that a page changed since its last visit, which is as good as so many expected changes. Policies
    /// that rank by due dates alone do not listen.
    fn announced(&mut self, _page: usize, _changes: f64) {}
}

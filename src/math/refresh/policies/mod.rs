//! Online refresh policies by name: what to fetch next, given what visits have shown so far.
//!
//! The lab replays recorded histories with them, and `archive refresh` the captures of the archive; both run this code.
//! A policy sees only a [`RefreshProblem`] and the visits it is shown, never a change that was not fetched.

mod activity;
mod adaptive;
mod estimates;
mod events;
mod name;
mod ranked;
mod shared;

pub use name::{PolicyName, UnknownPolicy, allocated};

pub use super::change_model::Sighting;

/// What a policy may know before any fetch.
#[derive(Clone, Debug, Default)]
pub struct RefreshProblem {
    /// Importance of each page.
    pub importance: Vec<f64>,
    /// Site of each page.
    pub site: Vec<usize>,
    /// Directory of each page.
    pub directory: Vec<usize>,
    /// Relations of each page; see [`relations`](super::change_model::relations).
    pub relations: Vec<super::change_model::Relations>,
    /// Number of sites.
    pub sites: usize,
    /// Number of directories.
    pub directories: usize,
    /// When each page is found and first fetched, in days.
    pub found: Vec<f64>,
    /// Whether pages found after day 0 are new then; otherwise they are only discovered then.
    pub found_at_birth: bool,
    /// Fetches per day.
    pub budget: f64,
    /// Initial mean change rate in changes per day; by default one that the budget can keep up with.
    pub mean_rate: Option<f64>,
    /// Changes a day that the site announces for each page; empty if none does. Only the lab knows any: on recorded
    /// histories true words gain nothing (`docs/refreshing.md`).
    pub promised: Vec<f64>,
    /// Length of the experiment in days.
    pub days: f64,
    /// Days between runs.
    pub tick: f64,
}

/// A refresh policy assigns a value to each page; pages with the highest values are fetched.
pub trait RefreshPolicy {
    /// Computes the value of fetching each of `pages` now, whose copies are `ages` days old; a negative value forbids a
    /// fetch.
    ///
    /// Times are in days since the beginning of the experiment. `values` has an element for each page.
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]);

    /// Learns from the fetches of one run.
    fn seen(&mut self, _now: f64, _sightings: &[Sighting]) {}

    /// Learns that pages answered 404 and will not be fetched again.
    fn gone(&mut self, _now: f64, _pages: &[usize]) {}

    /// Learns of an announced change since the last visit of a page, worth `changes` expected changes. Policies that
    /// rank by due dates alone ignore it.
    fn announced(&mut self, _page: usize, _changes: f64) {}
}

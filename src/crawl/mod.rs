//! The pipeline and the frontier: what to fetch next, and what becomes of it.
//!
//! A page's way is a straight line of values: the [`Frontier`] picks what is due, the fetcher brings the bytes, a
//! processing thread parses and compresses them, and the thread that owns the store appends, credits and queues.

mod agenda;
mod budget;
mod due;
mod engine;
mod frontier;
mod monitor;
mod options;
mod order;
mod pace;
mod payload;
mod policy;
mod previous;
mod process;
mod robots_cache;
mod seeds;
mod seen;
mod settings_file;
mod stored_robots;
mod timings;
mod traps;
mod visits;
mod why;

pub use agenda::agenda;
pub use budget::Budgets;
pub use due::{
    Choice, Discovery, FOLDERS_FROM, Idle, RefreshRules, Weighing, WeightError, Weights, archive_prior,
    most_obsolete, refreshable,
};
pub use engine::{CrawlError, run};
pub use frontier::{Frontier, Pick, Politeness};
pub use options::{End, Options, Plan, Status, TRAINED_LEVEL, WORKERS_MAX};
pub use order::{CrawlOrder, UnknownOrder};
pub use pace::{Pace, Part};
pub use policy::CrawlPolicy;
pub use seeds::{Seed, SeedError, read_duration, read_seeds, scope_of};
pub use settings_file::{SETTINGS_FILE, SettingsError};
pub use timings::Timings;
pub use visits::{RobotsAnswer, Visit, visits_of};
pub use why::{Found, LastFetch, Outlook, Spent, Why, why};

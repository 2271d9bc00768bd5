//! The crawl pipeline and the frontier: what to fetch next, and what happens to the answers.
//!
//! A page passes through a straight sequence of values: the [`Frontier`] picks what is due, the fetcher reads the
//! bytes, a processing thread parses and compresses them, and the thread that owns the store appends, credits and
//! queues.

mod engine;
mod frontier;
mod harvest;
mod later;
mod manners;
mod monitor;
mod options;
mod pace;
mod payload;
mod previous;
mod process;
mod robots_cache;
mod seeds;
mod seen;
mod settings_file;
mod timings;
mod traps;

pub use engine::{CrawlError, run};
pub use frontier::{Frontier, Pick, Politeness};
pub use harvest::{HarvestRules, PAGES_MAX as HARVEST_PAGES_MAX};
pub use manners::Manners;
pub use options::{CopyTo, End, Options, Purpose, Status, TRAINED_LEVEL, WORKERS_MAX};
pub use pace::{Pace, Part};
pub use seeds::{Seed, SeedError, read_seeds, scope_of};
pub use settings_file::{SETTINGS_FILE, SettingsError};
pub use timings::Timings;

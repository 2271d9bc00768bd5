//! The pipeline and the frontier: what to fetch next, and what becomes of it.
//!
//! A page's way is a straight line of values: the [`Frontier`] picks what is due, the fetcher brings the bytes, a
//! processing thread parses and compresses them, and the thread that owns the store appends, credits and queues.

mod agenda;
mod conduct;
mod due;
mod engine;
mod frontier;
mod indexer;
mod options;
mod previous;
mod process;
mod recover;
mod robots_cache;
mod seeds;
mod stored_robots;
mod timings;
mod why;

pub use agenda::agenda;
pub use conduct::Conduct;
pub use due::{REFRESH_RULE, archive_prior, most_obsolete, refreshable};
pub use engine::{CrawlError, run};
pub use frontier::{Frontier, Pick, Politeness};
pub use options::{End, Options, Plan, SYNC_EVERY, Status};
pub use recover::{OpenError, Opened, open, open_on};
pub use seeds::{Seed, SeedError, read_duration, read_seeds, scope_of};
pub use timings::Timings;
pub use why::{Found, LastFetch, Outlook, RobotsAnswer, Spent, Why, why};

//! The crawl pipeline and the frontier: what to fetch next, and what happens to the answers.
//!
//! A page passes through a straight sequence of values: the [`Frontier`] picks what is due, the fetcher reads the
//! bytes, a processing thread parses and compresses them, and the thread that owns the store appends, credits and
//! queues.
//!
//! # Invariants
//! * A host is asked as often as its delay and its rules allow, whatever asks: pages, parts, robots.txt, sitemaps.
//! * A crawl that was killed goes on where its last checkpoint was; no acknowledged capture is lost.
//! * What was left out is counted, with the option that lifts the limit.
//!
//! ```
//! use archive_crawl::read_seeds;
//!
//! let seeds = read_seeds("# of the town\nhttps://example.org/ depth=2\n").unwrap();
//! assert_eq!(seeds.len(), 1);
//! assert_eq!(read_seeds("https://").unwrap_err()[0].line, 1);
//! ```

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
pub mod publish;
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
pub use options::{
    CookieUse, CopyTo, CrawlOptions, CrawlStatus, EndReason, Purpose, TRAINED_LEVEL, WORKERS_MAX,
};
pub use pace::{CrawlPace, PacePart};
pub use seeds::{Seed, SeedError, listed_seeds, read_seeds, scope_of};
pub use settings_file::{SETTINGS_FILE, SettingsError};
pub use timings::Timings;

//! What is done with a whole archive, each as one call: [`open()`], [`crawl()`], [`refresh()`], [`report()`], [`import()`],
//! [`repack()`], [`erase()`], [`stats()`] and [`plan()`].
//!
//! A job is given as a value with typed options and tells what happens, as [`JobEvent`]s, to the function that it is given.
//! It neither prints nor reads a command line: `cli` makes jobs of options and sentences of events, and another program
//! may do the same. What concerns pages, queries or bytes is in the crates below.
//!
//! # Invariants
//! * Jobs open an archive for writing by [`open()`] alone: unfinished repairs are refused, and unfinished erases and the
//!   orders of a cluster are carried out before anything else is written.
//! * What servers were to be treated like, and which pages a refresh chooses by, holds for later runs of any program.
//! * A job that is stopped keeps what it has stored; the same job continues it.
//! * Every error knows its [`kind`](Failure::kind).
//!
//! ```
//! use archive::jobs::{self, CrawlJob};
//!
//! let folder = tempfile::tempdir()?;
//! // Without seeds there is nothing to fetch.
//! let outcome = jobs::crawl(folder.path(), CrawlJob::default(), &jobs::Control::default(), &mut |_| {})?;
//! assert_eq!(outcome.end, jobs::EndReason::Complete);
//! assert_eq!(jobs::stats(folder.path())?.captures, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cash;
mod crawl;
mod erase;
mod import;
mod manners;
mod notices;
mod open;
mod orders;
mod plan;
mod refresh;
mod repack;
mod report;
mod stats;
mod turns;

use std::path::Path;

use archive_ask::watch::Delivery;
pub use archive_base::control::Control;
pub use archive_base::error::{ErrorKind, Failure};
pub use archive_books::ledger::ScopeKind;
pub use archive_crawl::{CrawlOptions, CrawlStatus, EndReason, Manners, Seed, read_seeds};
use archive_vault::{import as importing, repack as repacking};

pub use cash::CashChange;
pub use crawl::{ClusterPlace, CrawlJob, CrawlOutcome, crawl};
pub use erase::{copies_hold, erase, lift, plan_erase};
pub use import::{ImportJob, import};
pub use open::{Opening, check_exists, finish_erase, open, segment_options};
pub use orders::{CONFLICTS_NAMED_MAX, OrderNews, carry_out as carry_out_orders};
pub use plan::{BudgetForecast, PlanJob, PlanOutcome, copies, plan, retries};
pub use refresh::{ArchiveRefreshed, RefreshJob, RefreshOutcome, RulesChange, refresh};
pub use repack::{RepackOutcome, repack};
pub use report::{ReportJob, report};
pub use stats::{MovedSeed, Stats, TopSite, stats};
pub use turns::ClusterTurns;

/// Hears what happens while a job runs.
pub type Hear<'a> = dyn FnMut(JobEvent<'_>) + 'a;

/// What happens while a job runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobEvent<'a> {
    /// Something to know, in a sentence.
    Notice(String),
    /// Fetching begins, of at most so many pages if that is known.
    Begun(Option<u64>),
    /// Fetching goes on; a few times a second.
    Fetching(&'a CrawlStatus),
    /// Fetching has ended in one of several archives.
    Ended(&'a ArchiveRefreshed),
    /// The report of a watch of this archive was made, or was not.
    Reported(&'a Path, &'a Delivery),
    /// An import goes on; a few times a second.
    Importing(&'a importing::ImportStatus),
    /// An import has found something that may need attention.
    Found(&'a importing::ImportNote),
    /// Segments are rewritten: so many bytes before compression, of about this total.
    Written {
        /// Bytes written.
        bytes: u64,
        /// All bytes to be written.
        total: u64,
    },
    /// A batch of segments is in place, or in a dry run: was estimated.
    Repacked(&'a repacking::RepackBatch, &'a repacking::Repacked),
}

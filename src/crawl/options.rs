//! How a crawl behaves, and what it tells while it runs.

use std::time::Duration;

use archive_storage::UrlId;

use super::conduct::Conduct;
use super::frontier::Politeness;
use super::seeds::Seed;
use super::timings::Timings;
use crate::fetch;
use crate::ledger::Scope;

/// The usual [`Options::sync_every`].
pub const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How a crawl behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Requests under way at the same time, at most.
    pub workers: usize,
    /// Threads that parse and compress.
    pub threads: usize,
    /// Stop after this many captures (robots.txt not counted).
    pub limit: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// How servers are treated.
    pub politeness: Politeness,
    /// How URLs are fetched.
    pub fetch: fetch::Settings,
    /// How often records are made durable, besides the store's own bound in bytes: a power failure loses no more.
    pub sync_every: Duration,
    /// What is taken and what is left.
    pub conduct: Conduct,
    /// Longest time between two checkpoints: what a crash makes the next start replay.
    pub checkpoint_every: Duration,
    /// Whether text is indexed for searching.
    pub full_text: bool,
}

/// What a run is to do.
#[derive(Debug)]
pub enum Plan {
    /// Go on from the seeds and from what is known, to what was never fetched.
    Discover {
        /// Where to begin; those already known are no news.
        seeds: Vec<Seed>,
        /// How far to go.
        scope: Scope,
    },
    /// Fetch these pages again, in this order of urgency.
    Refresh {
        /// The most urgent first.
        pages: Vec<UrlId>,
    },
}

/// How far a run has come.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Since the start of the run.
    pub elapsed: Duration,
    /// Captures stored by this run, without robots.txt.
    pub captures: u64,
    /// Of these, those that are durable, so that not even a power failure can take them away.
    pub acknowledged: u64,
    /// Of all captures, those that said that nothing had changed.
    pub unchanged: u64,
    /// Fetches that gave no answer, or one that says there is no page (status 400 and above).
    pub errors: u64,
    /// Bytes received.
    pub bytes: u64,
    /// URLs that wait.
    pub queued: u64,
    /// Requests under way.
    pub active: usize,
    /// Hosts that are being asked.
    pub hosts_active: usize,
    /// URLs that were not fetched because of robots.txt or another rule.
    pub refused: u64,
    /// The most important sites so far.
    pub top_sites: Vec<(String, f64)>,
    /// Where the time went; known at the end of a run.
    pub timings: Timings,
}

/// Why a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to fetch.
    Complete,
    /// The limit of captures is reached.
    Limit,
    /// The time is over.
    Time,
    /// Somebody asked for it.
    Stopped,
}

impl Status {
    /// Captures a second over the whole run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.captures as f64 / seconds } else { 0.0 }
    }
}

//! How a crawl behaves, and what it reports while it runs.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use archive_storage::UrlId;
use serde::{Serialize, Serializer};

use super::frontier::Politeness;
use super::harvest::HarvestRules;
use super::seeds::Seed;
use super::timings::Timings;
use crate::cluster::Member;
use crate::exchange::repack;
use crate::fetch;
use crate::ledger::Scope;
use crate::publish::hubs::Asked;
use crate::recorder::{CHECKPOINT_EVERY, Memory};
use crate::runs::Tallies;
use crate::selection::{CrawlPolicy, TopicStatus};

/// The usual [`Options::sync_every`].
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The usual [`Options::disk_min`].
const DISK_MIN: u64 = 256 << 20;

/// The zstd level of pages captured for the first time: a crawl spends a fifth of its time on compression at level 3.
pub const TRAINED_LEVEL: i32 = 1;

/// Requests under way at the same time that [`Options::workers`] may ask for: each takes a socket and memory.
pub const WORKERS_MAX: usize = 4096;

/// How a crawl behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the run is called among the archive's [`crate::runs`]; by its plan if this is empty.
    pub name: &'static str,
    /// Pages that it fetches because of notices, for its account.
    pub noticed: Tallies,
    /// Requests under way at the same time, at most; 1 to [`WORKERS_MAX`].
    pub workers: usize,
    /// Threads that parse and compress.
    pub threads: usize,
    /// Stop after this many pages, with what belongs to them; pictures, style sheets and robots.txt are not counted. It stops
    /// earlier when it has asked for 1000 robots.txt files, and 100 more for each of these pages.
    pub limit: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// When a focused crawl stops.
    pub harvest: HarvestRules,
    /// URLs that wait in memory, about; all others wait on disk.
    pub front_max: usize,
    /// How servers are treated.
    pub politeness: Politeness,
    /// How URLs are fetched.
    pub fetch: fetch::Settings,
    /// How often records are made durable, besides the store's own bound in bytes: a power failure loses no more.
    pub sync_every: Duration,
    /// What is taken and what is left.
    pub policy: CrawlPolicy,
    /// Time between two checkpoints: what a crash makes the next start replay. Longer when they would take more than a
    /// twentieth of it, shorter when what changed fills its memory.
    pub checkpoint_every: Duration,
    /// Whether people's verdicts decide what is fetched.
    pub obey_decisions: bool,
    /// Whether text is indexed for searching.
    pub full_text: bool,
    /// The crawl pauses while fewer bytes than this are free on the disk of the archive; with 0 a full disk ends it.
    pub disk_min: u64,
    /// Where the state of the run is served to programs: JSON and Prometheus metrics.
    pub status: Option<SocketAddr>,
    /// How much memory may be used.
    pub memory: Memory,
    /// How closed segments are repacked while processors have time to spare, if they are; with memory of its own.
    pub repack: Option<repack::Options>,
    /// Whether processors have time to spare, if the caller knows; otherwise the system is asked.
    pub has_spare_time: Option<bool>,
    /// The place of a crawl among several nodes that crawl together.
    pub cluster: Option<Member>,
    /// Whether another run of the same program follows in its cluster: all others wait for that.
    pub goes_on: bool,
    /// Whether the process that began this one says, over standard input, when it may ask for something ([`crate::cluster::Slots`]).
    pub has_slots: bool,
    /// Where the archive is copied to after each checkpoint, if it is.
    pub copies: Option<CopyTo>,
}

/// A place for copies beside a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyTo {
    /// Its URL.
    pub url: String,
    /// How many copies stay there.
    pub keep: u64,
}

impl Default for Options {
    /// As polite as the command line is by itself: two seconds between requests to a host, public addresses only, no limits.
    fn default() -> Self {
        Self {
            name: "",
            noticed: Tallies::default(),
            workers: 256,
            threads: thread::available_parallelism().map_or(1, usize::from),
            limit: None,
            time: None,
            harvest: HarvestRules::default(),
            front_max: 1_000_000,
            politeness: Politeness::default(),
            fetch: fetch::Settings {
                user_agent: concat!("archive/", env!("CARGO_PKG_VERSION")).to_owned(),
                ..fetch::Settings::default()
            },
            sync_every: SYNC_EVERY,
            policy: CrawlPolicy::default(),
            checkpoint_every: CHECKPOINT_EVERY,
            obey_decisions: true,
            full_text: true,
            disk_min: DISK_MIN,
            status: None,
            memory: Memory::default(),
            repack: None,
            has_spare_time: None,
            cluster: None,
            goes_on: false,
            has_slots: false,
            copies: None,
        }
    }
}

/// What a run is to do.
#[derive(Debug)]
pub enum Purpose {
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
    /// Fetch nothing, but ask the hubs of subscriptions that are due, in this node's turns at their addresses.
    Subscribe {
        /// The URL at which hubs reach the server.
        callback: String,
    },
}

/// How far a run has come.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Status {
    /// Since the start of the run, pauses left out; in data as seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
    /// Why nothing new is asked for, if that is so.
    pub paused: Option<String>,
    /// Captures stored by this run, without robots.txt.
    pub captures: u64,
    /// Of these, those that are durable, so that not even a power failure can take them away.
    pub acknowledged: u64,
    /// Of all captures, pages: without pictures, style sheets and other parts of pages.
    pub pages: u64,
    /// Of all captures, those with the content of another one: unchanged since, or the same under another URL.
    pub identical: u64,
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
    /// Hosts that have something to be asked for, and are left alone for politeness.
    pub hosts_waiting: usize,
    /// URLs that were not fetched because of robots.txt or another rule.
    pub refused: u64,
    /// What a focused crawl has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicStatus>,
    /// The most important sites so far.
    pub top_sites: Vec<(String, f64)>,
    /// Checkpoints of this run.
    pub checkpoints: u64,
    /// What repacking in spare time has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repacked: Option<repack::Done>,
    /// Room on the disk of the archive.
    pub disk_free_bytes: u64,
    /// What a person should know, since the last report.
    #[serde(skip)]
    pub notices: Vec<String>,
    /// Hubs that it has asked.
    #[serde(skip)]
    pub hubs: Asked,
    /// Where the time went; known at the end of a run.
    #[serde(skip)]
    pub timings: Timings,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Why a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to fetch.
    Complete,
    /// The limit of pages is reached.
    Limit,
    /// The time is over.
    Time,
    /// So many pages of the topic are found as were asked for.
    Found,
    /// Too few of the last pages are of the topic.
    Harvest,
    /// So large a share of the topic's pages is probably found as was asked for.
    Recall,
    /// Somebody asked for it.
    Stopped,
    /// Another node is to have the partition.
    Drained,
}

impl End {
    /// Its name in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Limit => "limit",
            Self::Time => "time",
            Self::Found => "found",
            Self::Harvest => "harvest",
            Self::Recall => "recall",
            Self::Stopped => "stopped",
            Self::Drained => "drained",
        }
    }
}

impl Status {
    /// Adds what the run of another archive did after this one.
    pub fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.captures += other.captures;
        self.acknowledged += other.acknowledged;
        self.pages += other.pages;
        self.identical += other.identical;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.queued += other.queued;
        self.refused += other.refused;
    }

    /// Captures a second over the whole run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.captures as f64 / seconds } else { 0.0 }
    }
}

//! How a crawl behaves, and what it reports while it runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use archive_base::decisions::RobotsDecision;
use archive_base::files::FileError;
use archive_base::program;
use archive_base::runs;
use archive_base::runs::Exchanged;
use archive_books::cluster::Member;
use archive_books::ledger::{CrawlScope, Refusal};
use archive_books::recorder::{CHECKPOINT_EVERY, Memory};
use archive_choose::{CrawlPolicy, TopicStatus};
use archive_storage::UrlId;
use archive_vault::repack;
use archive_web::fetch::{self, Cookies, Logins};
use serde::{Deserialize, Serialize, Serializer};

use super::frontier::Politeness;
use super::harvest::HarvestRules;
use super::manners::Manners;
use super::seeds::Seed;
use super::timings::Timings;
use crate::publish::hubs::HubOutcome;

/// Default of [`CrawlOptions::sync_every`].
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Default of [`CrawlOptions::disk_min`].
const DISK_MIN: u64 = 256 << 20;

/// zstd level of pages captured for the first time: at level 3, compression takes a fifth of a crawl's time.
pub const TRAINED_LEVEL: i32 = 1;

/// Maximum of [`CrawlOptions::workers`]: each request takes a socket and memory.
pub const WORKERS_MAX: usize = 4096;

/// How a crawl behaves.
#[derive(Debug, Clone)]
pub struct CrawlOptions {
    /// The run's account among the archive's [`archive_base::runs`], as far as the caller knows it; `None` for one that is
    /// named after the purpose.
    pub account: Option<runs::RunReport>,
    /// Maximum number of requests in flight; 1 to [`WORKERS_MAX`].
    pub workers: usize,
    /// Number of threads that parse and compress.
    pub threads: usize,
    /// Stop after this many pages and their requisites; images, style sheets and robots.txt files are not counted. The
    /// run also stops after 1000 requests for robots.txt, plus 100 for each page of the limit.
    pub limit: Option<u64>,
    /// Stop after this many bytes were received; responses under way are still received.
    pub bytes: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// The longest wait for servers that said "later" or did not answer, once nothing else is left; `None` for 30
    /// seconds, or five minutes with a time limit.
    pub patience: Option<Duration>,
    /// When a focused crawl stops.
    pub harvest: HarvestRules,
    /// Approximate number of waiting URLs in memory; the others wait on disk.
    pub front_max: usize,
    /// What the archive's runs were told, to be kept for later ones; `None` to leave what is kept as it is.
    pub manners: Option<Manners>,
    /// How servers are treated.
    pub politeness: Politeness,
    /// How URLs are fetched.
    pub fetch: fetch::FetchSettings,
    /// Interval at which records are made durable, besides the store's own limit in bytes: a power failure loses no
    /// more.
    pub sync_every: Duration,
    /// What becomes of cookies.
    pub cookies: CookieUse,
    /// What is taken and what is left.
    pub policy: CrawlPolicy,
    /// Minimum interval between checkpoints; bounds what has to be replayed after a crash. It is longer when
    /// checkpoints would take more than a twentieth of the time, and shorter when changes fill their memory.
    pub checkpoint_every: Duration,
    /// Whether people's decisions are obeyed.
    pub obey_decisions: bool,
    /// What becomes of the robots.txt of hosts on which nobody decided.
    pub robots: RobotsDecision,
    /// Whether text is indexed for searches.
    pub full_text: bool,
    /// The crawl pauses while fewer bytes than this are free on the archive's disk; with 0, a full disk ends it.
    pub disk_min: u64,
    /// Address at which the state of the run is served to programs: JSON and Prometheus metrics.
    pub status: Option<SocketAddr>,
    /// Limits of memory.
    pub memory: Memory,
    /// How closed segments are repacked while processors are idle; `None` for no repacking. It has memory of its own.
    pub repack: Option<repack::RepackOptions>,
    /// Whether processors are idle, if the caller knows; otherwise the system is asked.
    pub has_spare_time: Option<bool>,
    /// The crawl's role among several nodes that crawl together.
    pub cluster: Option<Member>,
    /// Whether another run of the same program follows in its cluster, for which all others wait.
    pub is_continued: bool,
    /// Whether the parent process grants request slots over standard input ([`archive_books::cluster::Slots`]).
    pub has_slots: bool,
    /// Destination of the archive's copy after each checkpoint, if any.
    pub copies: Option<CopyTo>,
}

/// What becomes of cookies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CookieUse {
    /// None are taken or sent.
    Off,
    /// Each run begins without any.
    #[default]
    Run,
    /// Those of earlier runs are sent, too; they are in a file among the archive's secrets.
    Kept,
}

archive_base::names! { CookieUse: Off "off", Run "run", Kept "kept" }

impl CrawlOptions {
    /// Returns the jar for a run of an archive, with the cookies of its log-ins; `None` for none.
    ///
    /// # Errors
    /// When the cookies of earlier runs cannot be read, or others can read them.
    pub(crate) fn open_cookies(&self, archive: &Path, logins: &Logins) -> Result<Option<Cookies>, FileError> {
        let now = self.fetch.clock.now().timestamp();
        let cookies = match self.cookies {
            CookieUse::Off => return Ok(None),
            CookieUse::Run => Cookies::default(),
            CookieUse::Kept => Cookies::read(archive, now)?,
        };
        cookies.add(logins.cookies(), now);
        Ok(Some(cookies))
    }
}

/// Destination for copies during a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyTo {
    /// Its URL.
    pub url: String,
    /// Number of copies to keep there.
    pub keep: u64,
}

impl Default for CrawlOptions {
    /// As polite as the command line by default: two seconds between requests to a host, public addresses only, no
    /// limits.
    fn default() -> Self {
        Self {
            account: None,
            workers: 256,
            threads: thread::available_parallelism().map_or(1, usize::from),
            limit: None,
            bytes: None,
            time: None,
            patience: None,
            harvest: HarvestRules::default(),
            front_max: 1_000_000,
            manners: None,
            politeness: Politeness::default(),
            fetch: fetch::FetchSettings {
                user_agent: program::PRODUCT.to_owned(),
                ..fetch::FetchSettings::default()
            },
            sync_every: SYNC_EVERY,
            cookies: CookieUse::default(),
            policy: CrawlPolicy::default(),
            checkpoint_every: CHECKPOINT_EVERY,
            obey_decisions: true,
            robots: RobotsDecision::default(),
            full_text: true,
            disk_min: DISK_MIN,
            status: None,
            memory: Memory::default(),
            repack: None,
            has_spare_time: None,
            cluster: None,
            is_continued: false,
            has_slots: false,
            copies: None,
        }
    }
}

/// Purpose of a run.
#[derive(Debug)]
pub enum Purpose {
    /// Crawl from the seeds, and from everything known, to what was never fetched.
    Discover {
        /// Where to start; known seeds are not fetched again.
        seeds: Vec<Seed>,
        /// How far to go.
        scope: CrawlScope,
    },
    /// Fetch these pages again.
    Refresh {
        /// The pages, the most urgent first.
        pages: Vec<UrlId>,
    },
    /// Fetch nothing, but ask the hubs of subscriptions that are due, in this node's turns at their addresses.
    Subscribe {
        /// URL at which hubs reach the server.
        callback: String,
    },
}

/// Progress of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CrawlStatus {
    /// Time since the start of the run, without pauses; in JSON in seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
    /// Why the run is paused, if so.
    pub paused: Option<String>,
    /// Captures stored by this run, without robots.txt.
    pub captures: u64,
    /// Number of those that are durable: even a power failure cannot lose them.
    pub acknowledged: u64,
    /// Number of captures that are pages: no images, style sheets or other requisites.
    pub pages: u64,
    /// Pages of the archive that were read, in this run or before.
    pub read: u64,
    /// Share of the importance of all pages known so far that these have.
    pub gathered: f64,
    /// The clock G of importance: how often all cash was handed on, in all runs.
    pub clock: f64,
    /// What passed between this node and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchanged: Option<Exchanged>,
    /// Number of captures with the content of another one: unchanged, or the same under another URL.
    pub identical: u64,
    /// Parts of pages (style sheets, pictures and so on) that were asked again with their pages.
    pub parts: u64,
    /// Parts that would have been asked, but for the limit of [`archive_choose::RefreshRules::parts`].
    pub parts_left: u64,
    /// Responses whose bodies were not received, because they are longer than allowed.
    pub unloaded: u64,
    /// Fetches without an answer, or with status 400 and above.
    pub errors: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Number of waiting URLs.
    pub queued: u64,
    /// Number of requests in flight.
    pub active: usize,
    /// Hosts with a request in flight.
    pub hosts_active: usize,
    /// Hosts with waiting URLs whose delay is not over.
    pub hosts_waiting: usize,
    /// URLs not fetched because of robots.txt or another rule.
    pub refused: u64,
    /// Pages left to the next run, because their servers said "later" or did not answer; known at the end.
    pub waiting: u64,
    /// Those of the refused that an option would let through, by reason.
    pub left: BTreeMap<Refusal, u64>,
    /// Results of a focused crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicStatus>,
    /// The most important sites so far.
    pub top_sites: Vec<(String, f64)>,
    /// Number of checkpoints in this run.
    pub checkpoints: u64,
    /// Results of repacking in idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repacked: Option<repack::Repacked>,
    /// Free bytes on the archive's disk.
    pub disk_free_bytes: u64,
    /// Notices for the user since the last report.
    #[serde(skip)]
    pub notices: Vec<String>,
    /// Hubs that were asked.
    #[serde(skip)]
    pub hubs: HubOutcome,
    /// Where the time went; known at the end of a run.
    #[serde(skip)]
    pub timings: Timings,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Nothing is left to fetch.
    Complete,
    /// All that is left has to wait for servers that said "later" or did not answer.
    Waiting,
    /// The limit of pages was reached.
    Limit,
    /// The time limit was reached.
    Time,
    /// The requested number of on-topic pages was found.
    Found,
    /// Too few of the last pages were on topic.
    Harvest,
    /// The requested share of all on-topic pages was probably found.
    Recall,
    /// A stop was requested.
    Stopped,
    /// Another node takes over the partition.
    Drained,
}

impl EndReason {
    /// Name in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Waiting => "waiting",
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

impl CrawlStatus {
    /// Adds the counts of another archive's run that followed this one.
    pub fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.captures += other.captures;
        self.acknowledged += other.acknowledged;
        self.pages += other.pages;
        self.identical += other.identical;
        self.parts += other.parts;
        self.parts_left += other.parts_left;
        self.unloaded += other.unloaded;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.queued += other.queued;
        self.refused += other.refused;
        self.waiting += other.waiting;
        for (why, urls) in &other.left {
            *self.left.entry(*why).or_default() += urls;
        }
    }

    /// Captures per second over the whole run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.captures as f64 / seconds } else { 0.0 }
    }
}

//! Starts or continues a crawl.

use std::path::Path;
use std::time::Instant;

use archive_base::control::Control;
use archive_base::runs;
use archive_books::cluster::{ClusterError, Division, Member, Mode};
use archive_books::ledger::{CrawlerFacts, Credits, Refusal, ScopeKind, page_flags};
use archive_books::{recorder, search, topics};
use archive_choose::{FocusPolicy, robots_of};
use archive_crawl::publish::KEYS_MAX;
use archive_crawl::{CrawlOptions, CrawlStatus, EndReason, Manners, Purpose, Seed, scope_of};
use archive_storage::Store;
use archive_storage::address::canonical;
use archive_storage::segment::SegmentOptions;
use archive_web::fetch::FetchError;

use super::{CashChange, Failure, Hear, JobEvent, Opening, manners, notices, open};

/// A crawl: from where, how far, and how.
#[derive(Clone, Debug, Default)]
pub struct CrawlJob {
    /// Where to start.
    pub seeds: Vec<Seed>,
    /// How servers are treated and how far the crawl goes; what is `None` holds as earlier runs of the archive were told.
    /// This overrides the politeness, the user agent, the limits of responses, and the limits of the policy in `options`.
    pub manners: Manners,
    /// Everything else.
    pub options: CrawlOptions,
    /// Changes of the rules by which importance is computed.
    pub cash: CashChange,
    /// How new segments are written.
    pub segments: SegmentOptions,
    /// The cluster that the archive is to be a partition of.
    pub cluster: Option<ClusterPlace>,
    /// Whether older versions are indexed from now on; `None` leaves it as it is.
    pub index_versions: Option<bool>,
}

/// The place that an archive is to take in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterPlace {
    /// URL of the object store.
    pub url: String,
    /// Number of the partition, from 1, and the number of partitions.
    pub partition: (u16, u16),
    /// The mode, if given.
    pub mode: Option<Mode>,
    /// What decides which partition a site belongs to, if given.
    pub by: Option<Division>,
    /// Name of the node; by default the name of the machine.
    pub node: Option<String>,
    /// If given, the partition is taken over only if this is its newest epoch.
    pub after: Option<u64>,
}

impl ClusterPlace {
    fn find(&self) -> Result<Member, ClusterError> {
        let treats = (self.mode, self.by.as_ref());
        let member = Member::find(&self.url, self.partition, treats, self.node.as_deref())?;
        Ok(match self.after {
            Some(epoch) => member.after(epoch),
            None => member,
        })
    }
}

/// What a crawl has done.
#[derive(Debug)]
pub struct CrawlOutcome {
    /// Why it ended.
    pub end: EndReason,
    /// What it stored and left.
    pub status: CrawlStatus,
    /// The seeds without a result so far, each with the reason, in a sentence.
    pub failed_seeds: Vec<String>,
    /// Whether no seed has a result.
    pub is_in_vain: bool,
}

/// Crawls into the archive in a folder, which is created if there is none; the same job continues it where the last run
/// stopped.
///
/// # Errors
/// If the job is not possible, another program owns the archive, or the disk fails.
pub fn crawl(
    path: &Path,
    job: CrawlJob,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<CrawlOutcome, Failure> {
    let CrawlJob { seeds, manners, mut options, cash, segments, cluster, index_versions } = job;
    let urls: Vec<String> = seeds.iter().map(|seed| canonical(&seed.url)).collect();
    manners::settle(path, manners, &mut options, hear)?;
    if let Some(focus) = &options.policy.focus {
        check_focus(path, focus)?;
    }
    cash.check(path)?;
    let member = cluster.as_ref().map(ClusterPlace::find).transpose()?;
    let opening = Opening {
        segments,
        fetch: Some(&options.fetch),
        cluster: cluster.as_ref().map(|cluster| cluster.url.as_str()),
        partition: member.as_ref().map(|member| &member.partition),
    };
    let mut store = open(path, &opening, hear)?;
    cash.apply(&mut store, options.obey_decisions)?;
    if let Some(keep) = index_versions {
        search::keep_versions(path, keep)?;
    }
    options.cluster = member;
    settle_notices(&mut store, &mut options, control, hear)?;
    let told = options.manners.clone().unwrap_or_default();
    let scope = scope_of(&seeds, &told.scope.unwrap_or(ScopeKind::Site), told.max_depth.unwrap_or(u8::MAX));
    hear(JobEvent::Begun(options.limit));
    let plan = Purpose::Discover { seeds, scope };
    let (end, status) = archive_crawl::run(&mut store, plan, &options, control, &mut |status| {
        hear(JobEvent::Fetching(status));
    })?;
    let failed_seeds = failed_seeds(&store, &urls)?;
    recorder::close(store)?;
    let is_in_vain = failed_seeds.len() == urls.len();
    Ok(CrawlOutcome { end, status, failed_seeds, is_in_vain })
}

fn check_focus(path: &Path, focus: &FocusPolicy) -> Result<(), Failure> {
    if !(0.0..=1.0).contains(&focus.weight) {
        return Err(Failure::usage("--focus has to be between 0 and 1"));
    }
    if !topics::names(path)?.contains(&focus.topic) {
        let advice = "`archive topic list` shows the topics, `archive topic learn` makes one";
        return Err(Failure::usage(format!("there is no topic '{}'; {advice}", focus.topic)));
    }
    Ok(())
}

/// Processes the waiting notices as a run of its own, which takes part of the time.
fn settle_notices(
    store: &mut Store,
    options: &mut CrawlOptions,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    options.is_continued = true;
    let (keys, noticed) = notices::settle(store, options, KEYS_MAX, control, hear)?;
    let mut account = runs::RunReport::begins("crawl", options.fetch.clock.now());
    account.noticed = noticed;
    (options.account, options.is_continued) = (Some(account), false);
    options.time = options.time.map(|time| time.saturating_sub(begun.elapsed()));
    if keys > 0 {
        let epoch = Credits::epoch(store.state())?;
        options.cluster = options.cluster.take().map(|member| member.after(epoch));
    }
    Ok(())
}

/// The seeds without a result so far, each with the reason: the user has to know about them.
fn failed_seeds(store: &Store, urls: &[String]) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for url in urls {
        let Some(id) = store.state().find(url)? else { continue };
        let newest = store.state().history(id)?.next().transpose()?;
        let why = match newest {
            Some((_, capture)) => {
                let (error, erased) = CrawlerFacts::failure(store, &capture)?;
                erased.or(error)
            }
            None => {
                let refusal = Refusal::from_code(page_flags::refusal_code(store.state().page(id)?.flags));
                let robots = match refusal {
                    Some(Refusal::RobotsUnreachable) => robots_of(store, url)?,
                    _ => None,
                };
                let answer =
                    robots.as_ref().map_or_else(String::new, |robots| format!(": {}", robots.answer()));
                // Whoever has no secure connection has none for any URL of the host.
                let insecure = robots.and_then(|robots| robots.error);
                let insecure = insecure.filter(|error| error.starts_with(FetchError::NOT_SECURE));
                insecure.or_else(|| refusal.map(|why| why.sentence().to_owned() + &answer))
            }
        };
        lines.extend(why.map(|why| format!("the seed {url} could not be fetched: {why}")));
    }
    Ok(lines)
}

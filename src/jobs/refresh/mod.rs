//! Fetches again, within a budget, the pages that matter most and have probably changed: of one archive, or of several
//! that share the budget as if they were one.

mod choice;
mod hubs;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archive_ask::query::{self, Question};
use archive_ask::watch::{self, Awaited, Delivery};
use archive_base::access::Access;
use archive_base::control::Control;
use archive_base::runs::{self, Tallies};
use archive_books::cluster::Member;
use archive_books::ledger::Credits;
use archive_books::{recorder, search};
use archive_choose::{DueArchive, NothingDue, RefreshChoice, RefreshRules, agenda};
use archive_crawl::{CrawlOptions, CrawlStatus, EndReason, Manners, Purpose};
use archive_storage::{Clock, Store, UrlId};
use chrono::{DateTime, Utc};

pub use choice::RulesChange;

use super::{ClusterTurns, Failure, Hear, JobEvent, Opening, check_exists, manners, notices, open};

/// The part of the time reserved for the end (last checkpoint, reports), as a divisor and as a maximum.
const TIME_FOR_END: u32 = 10;
const TIME_FOR_END_MAX: Duration = Duration::from_secs(20);

/// Maximum time for requests to hubs, in absolute terms and as a fraction of the run, if other nodes of a cluster may
/// send requests to the same addresses.
const HUBS_TIME_IN_CLUSTER: (Duration, u32) = (Duration::from_secs(300), 2);

/// A refresh: how much, of what, and how.
#[derive(Clone, Debug, Default)]
pub struct RefreshJob {
    /// Maximum number of pages to fetch, of all archives together.
    pub budget: u64,
    /// Query that selects the pages: no others are fetched, and watches wait for another run. `None` for all pages.
    pub query: Option<String>,
    /// Time within which to finish.
    pub time: Option<Duration>,
    /// Changes of the rules by which pages are chosen.
    pub rules: RulesChange,
    /// URL at which hubs reach `archive serve --pings`; subscribes to the hubs that pages of watches name.
    pub callback: Option<String>,
    /// Folders below which watches may write their files.
    pub outputs: Vec<PathBuf>,
    /// How servers are treated; as for [`CrawlJob`](super::CrawlJob).
    pub manners: Manners,
    /// Everything else.
    pub options: CrawlOptions,
    /// The cluster with whose nodes to take turns.
    pub turns: ClusterTurns,
    /// Whether older versions are indexed from now on; `None` leaves it as it is.
    pub index_versions: Option<bool>,
}

/// What a refresh has done in one archive.
#[derive(Clone, Debug)]
pub struct ArchiveRefreshed {
    /// The archive.
    pub path: PathBuf,
    /// Its share of the budget.
    pub share: u64,
    /// Why its run ended.
    pub end: EndReason,
    /// What was stored and left.
    pub status: CrawlStatus,
    /// Number of reports made.
    pub reports: usize,
}

/// What a refresh has done.
#[derive(Clone, Debug)]
pub struct RefreshOutcome {
    /// Why it ended.
    pub end: EndReason,
    /// What was stored and left, in all archives.
    pub status: CrawlStatus,
    /// Number of reports made.
    pub reports: usize,
    /// Whether there was less to fetch than the budget.
    pub has_all_due: bool,
    /// Why nothing was fetched, if so.
    pub idle: Option<NothingDue>,
    /// The rules by which pages were chosen.
    pub rules: RefreshRules,
    /// The time when they were chosen.
    pub begun: DateTime<Utc>,
    /// What was done in each archive.
    pub archives: Vec<ArchiveRefreshed>,
    /// Options that earlier runs had and this one has not, of those that are not taken from an archive.
    pub lacking: BTreeSet<&'static str>,
}

/// An archive being refreshed, alone or with others.
struct Refreshed {
    store: Store,
    options: CrawlOptions,
    /// The pages that its watches wait for.
    awaited: Vec<Awaited>,
    /// Pages that are proven to have changed.
    noticed: Tallies,
    choice: RefreshChoice,
    /// Whether its stored rules change.
    is_changed: bool,
    /// Its membership in a cluster, if it takes turns with other nodes.
    member: Option<Member>,
}

/// Fetches again the pages of the archives in these folders that matter most and have probably changed, makes the reports
/// of watches that are due, and renews subscriptions.
///
/// # Errors
/// If there is no archive in one of the folders, the job is not possible, another program owns an archive, or the disk
/// fails.
pub fn refresh(
    folders: &[PathBuf],
    job: &RefreshJob,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<RefreshOutcome, Failure> {
    let started = Instant::now();
    let mut lacking = BTreeSet::new();
    let mut all_options = Vec::new();
    for folder in folders {
        check_exists(folder)?;
        let mut options = job.options.clone();
        lacking.extend(manners::settle(folder, job.manners.clone(), &mut options, hear)?);
        all_options.push(options);
    }
    let stores = open_all(job, folders, &all_options, hear)?;
    let (rules, answering) = (job.rules.over_kept(&stores)?, answering(&stores)?);
    let (archives, budget, begun) = prepare(job, stores, all_options, &rules, started, control, hear)?;
    let (pages, idle) = divide(&archives, &answering, budget, begun)?;
    let shares: Vec<usize> = pages.iter().map(Vec::len).collect();
    let run = Refreshing { job, begun, control, tells_shares: archives.len() > 1 && idle.is_none() };
    let mut outcome = RefreshOutcome {
        end: EndReason::Complete,
        status: CrawlStatus::default(),
        reports: 0,
        has_all_due: shares.iter().sum::<usize>() < budget,
        idle,
        rules,
        begun,
        archives: Vec::new(),
        lacking,
    };
    for (place, (mut archive, pages)) in archives.into_iter().zip(pages).enumerate() {
        // An archive that needs less than its part of the time leaves the rest to the others.
        let part = match shares[place] {
            0 => 1.0,
            share => share as f64 / shares[place..].iter().sum::<usize>() as f64,
        };
        archive.options.time = job.time.map(|time| left(time, started).mul_f64(part));
        let done = run.refresh(archive, pages, outcome.end == EndReason::Stopped, hear)?;
        outcome.add(done);
    }
    Ok(outcome)
}

impl RefreshOutcome {
    fn add(&mut self, one: ArchiveRefreshed) {
        if one.end != EndReason::Complete {
            self.end = one.end;
        }
        self.status.add(&one.status);
        self.reports += one.reports;
        self.archives.push(one);
    }
}

/// Opens all archives, which this process owns until the end.
fn open_all(
    job: &RefreshJob,
    folders: &[PathBuf],
    options: &[CrawlOptions],
    hear: &mut Hear<'_>,
) -> Result<Vec<Store>, Failure> {
    let mut opened = HashSet::new();
    for folder in folders {
        if !opened.insert(folder.canonicalize()?) {
            let problem = format!("{} is named twice; name it once", folder.display());
            return Err(Failure::usage(problem));
        }
    }
    let open = |(folder, options): (&PathBuf, &CrawlOptions)| {
        let cluster = job.turns.cluster.as_deref();
        let opening = Opening { fetch: Some(&options.fetch), cluster, ..Opening::default() };
        let store = open(folder, &opening, hear)?;
        if let Some(keep) = job.index_versions {
            search::keep_versions(folder, keep)?;
        }
        Ok(store)
    };
    folders.iter().zip(options).map(open).collect()
}

/// Which of several archives answers for each site.
fn answering(stores: &[Store]) -> Result<Vec<Vec<usize>>, Failure> {
    if let [_] = stores {
        return Ok(vec![Vec::new()]);
    }
    // A page that is in two archives would be fetched twice.
    let archives: Vec<_> = stores.iter().map(|store| (store, Access::unlimited())).collect();
    Ok(query::answering(&archives)?)
}

/// Handles the notices that wait, finds what watches wait for, and makes each archive choose by the rules. Returns the
/// archives, what is left of the budget, and the time then.
fn prepare(
    job: &RefreshJob,
    mut stores: Vec<Store>,
    mut all_options: Vec<CrawlOptions>,
    rules: &RefreshRules,
    started: Instant,
    control: &Control,
    hear: &mut Hear<'_>,
) -> Result<(Vec<Refreshed>, usize, DateTime<Utc>), Failure> {
    let mut budget = usize::try_from(job.budget).unwrap_or(usize::MAX);
    // As for announced pages, at most half of the budget.
    let mut keys_left = budget.div_ceil(2);
    let mut watched = Vec::new();
    for (store, options) in stores.iter_mut().zip(&mut all_options) {
        options.time = job.time.map(|time| left(time, started));
        options.cluster = job.turns.member(store, hear)?;
        let (asked, noticed) = notices::settle(store, options, keys_left, control, hear)?;
        (keys_left, budget) = (keys_left - asked, budget - asked);
        let now = options.fetch.clock.now();
        // A report is due with the newest state of all its pages.
        let watches = if job.query.is_some() { Vec::new() } else { watch::list(store.path())? };
        let due = watches.into_iter().filter(|watch| watch.is_due(now)).collect();
        watched.push((awaited(due, store, now, hear), noticed, options.cluster.take()));
    }
    let clock = all_options.first().map_or_else(Clock::default, |options| options.fetch.clock);
    let now = clock.now();
    let only = job.query.as_deref().map(|query| selected(query, &stores, now, hear)).transpose()?;
    let choices = choice::choices(rules, &mut stores, job.options.obey_decisions, only)?;
    let archives = stores.into_iter().zip(all_options).zip(watched).zip(choices);
    let archives = archives.map(|(((store, options), (awaited, noticed, member)), (choice, is_changed))| {
        Refreshed { store, options, awaited, noticed, choice, is_changed, member }
    });
    Ok((archives.collect(), budget, now))
}

/// The pages that watches wait for; a watch that fails is reported and skipped.
pub(super) fn awaited(
    due: Vec<watch::Watch>,
    store: &Store,
    now: DateTime<Utc>,
    hear: &mut Hear<'_>,
) -> Vec<Awaited> {
    let (awaited, failed) = watch::await_pages(due, store, now);
    for (watch, error) in failed {
        hear(JobEvent::Notice(format!("the watch '{}' cannot be served: {error}", watch.name)));
    }
    awaited
}

/// The pages of each archive that a query finds in all of them as one.
fn selected(
    query: &str,
    stores: &[Store],
    now: DateTime<Utc>,
    hear: &mut Hear<'_>,
) -> Result<Vec<HashSet<UrlId>>, Failure> {
    let archives = stores.iter().map(|store| (store, Access::unlimited())).collect();
    let pages = Question::of(archives, query, now)?.of_pages()?.pages_by_archive(stores.len())?;
    if pages.iter().all(HashSet::is_empty) {
        hear(JobEvent::Notice(format!("no page matches '{query}'")));
    }
    Ok(pages)
}

/// Returns the pages to fetch of each archive within the budget, and if there are none, the reason.
fn divide(
    archives: &[Refreshed],
    answering: &[Vec<usize>],
    budget: usize,
    now: DateTime<Utc>,
) -> Result<(Vec<Vec<UrlId>>, Option<NothingDue>), Failure> {
    let credits = archives.iter().map(|archive| Credits::open(archive.store.state()));
    let credits = credits.collect::<Result<Vec<_>, _>>()?;
    let awaited: Vec<_> = archives.iter().map(|archive| watch::pages_of(&archive.awaited)).collect();
    let sources = archives.iter().enumerate().map(|(place, Refreshed { store, choice, .. })| DueArchive {
        state: store.state(),
        credits: &credits[place],
        choice,
        awaited: &awaited[place],
        answering: &answering[place],
    });
    let sources: Vec<DueArchive<'_>> = sources.collect();
    let pages = agenda(&sources, budget, now)?;
    let idle = if pages.iter().all(Vec::is_empty) { Some(NothingDue::of(&sources, now)?) } else { None };
    Ok((pages, idle))
}

/// What the archives of a run have in common.
struct Refreshing<'a> {
    job: &'a RefreshJob,
    begun: DateTime<Utc>,
    control: &'a Control,
    /// Whether the end in each archive is told.
    tells_shares: bool,
}

impl Refreshing<'_> {
    /// Fetches the chosen pages of an archive and makes its reports; if the run was stopped earlier, only closes the
    /// archive.
    fn refresh(
        &self,
        archive: Refreshed,
        pages: Vec<UrlId>,
        is_stopped: bool,
        hear: &mut Hear<'_>,
    ) -> Result<ArchiveRefreshed, Failure> {
        let Self { job, begun, control, .. } = *self;
        let Refreshed { mut store, options, awaited, noticed, is_changed, member, .. } = archive;
        let callback = job.callback.as_deref();
        let mut account = runs::RunReport::begins("refresh", options.fetch.clock.now());
        account.noticed = noticed;
        let mut options = CrawlOptions { account: Some(account), cluster: member, ..options };
        let mut hubs = CrawlOptions { time: None, ..options.clone() };
        if callback.is_some() && options.cluster.is_some() {
            let (most, part) = HUBS_TIME_IN_CLUSTER;
            let time = options.time.map_or(most, |time| (time / part).min(most));
            (options.time, hubs.time) = (options.time.map(|all| all.saturating_sub(time)), Some(time));
        }
        let share = pages.len() as u64;
        let path = store.path().to_owned();
        if is_stopped || (pages.is_empty() && awaited.is_empty() && !is_index_behind(&path)) {
            let has_run = !is_stopped && hubs::subscribe(callback, &mut store, hubs, begun, control, hear)?;
            // Without changes there is nothing to make durable.
            if is_changed || has_run || store.state().dirty_bytes() > 0 {
                recorder::close(store)?;
            }
            let end = if is_stopped { EndReason::Stopped } else { EndReason::Complete };
            return Ok(ArchiveRefreshed { path, share, end, status: CrawlStatus::default(), reports: 0 });
        }
        hear(JobEvent::Begun(Some(share)));
        let plan = Purpose::Refresh { pages };
        let (end, status) = archive_crawl::run(&mut store, plan, &options, control, &mut |status| {
            hear(JobEvent::Fetching(status));
        })?;
        let mut reports = 0;
        if end != EndReason::Stopped {
            // A partition that is being handed over to another node must not be taken back.
            if end != EndReason::Drained {
                hubs::subscribe(callback, &mut store, hubs, begun, control, hear)?;
            }
            reports = deliver(awaited, &store, options.fetch.clock.now(), &job.outputs, hear);
        }
        recorder::close(store)?;
        let done = ArchiveRefreshed { path, share, end, status, reports };
        if self.tells_shares {
            hear(JobEvent::Ended(&done));
        }
        Ok(done)
    }
}

/// Whether a run that was killed left an index behind: the next one catches up, even if there is nothing to fetch.
fn is_index_behind(path: &Path) -> bool {
    [search::FOLDER, search::VERSIONS_FOLDER].iter().any(|index| search::is_unsealed(&path.join(index)))
}

/// Makes the reports of watches, and returns their number.
pub(super) fn deliver(
    awaited: Vec<Awaited>,
    store: &Store,
    now: DateTime<Utc>,
    outputs: &[PathBuf],
    hear: &mut Hear<'_>,
) -> usize {
    let deliveries = watch::deliver(awaited, store, now, outputs);
    deliveries.iter().for_each(|delivery| hear(JobEvent::Reported(store.path(), delivery)));
    deliveries.iter().filter(|delivery| matches!(delivery, Delivery::Made { .. })).count()
}

/// The time left for fetching.
pub(super) fn left(time: Duration, started: Instant) -> Duration {
    time.saturating_sub((time / TIME_FOR_END).min(TIME_FOR_END_MAX)).saturating_sub(started.elapsed())
}

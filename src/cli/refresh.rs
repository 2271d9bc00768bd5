//! `archive refresh`: fetches again, within a budget, the pages that matter most and have probably changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archive_ask::query::{self, Question};
use archive_ask::watch::{self, Awaited};
use archive_base::access::Access;
use archive_base::control::Control;
use archive_base::runs::{self, Tallies};
use archive_books::cluster;
use archive_books::ledger::{Credits, Refusal};
use archive_books::recorder;
use archive_books::search;
use archive_choose::{Choice, Idle, Source, agenda};
use archive_crawl::publish::hubs::{self, Asked};
use archive_crawl::{End, Manners, Options, Purpose, Status};
use archive_storage::{Store, UrlId};
use chrono::{DateTime, Local, Utc};
use indicatif::HumanCount;
use serde::Serialize;
use url::Url;

use self::choice::RulesArgs;
use super::cluster::turns::TurnsArgs;
use super::fetching::FetchArgs;
use super::options::{ArchivesArgs, OutputsArgs, duration};
use super::progress::{self, Progress};
use super::{EXIT_STOPPED, UsageError, deliveries, interrupt, notices, open, output};

mod choice;

/// The part of the time reserved for the end (last checkpoint, reports), as a divisor and as a maximum.
const TIME_FOR_END: u32 = 10;
const TIME_FOR_END_MAX: Duration = Duration::from_secs(20);

/// Maximum time for requests to hubs, in absolute terms and as a fraction of the run, if other nodes of a cluster may
/// send requests to the same addresses.
const HUBS_TIME_IN_CLUSTER: (Duration, u32) = (Duration::from_secs(300), 2);

/// Fetch again the pages that matter most and have probably changed, up to a budget.
///
/// Pages are chosen by their importance and by how often they were found changed. Pages of due watches come first, then
/// pages announced by site owners. Requests are conditional: if a page has not changed, only a revisit is stored. The
/// command suits cron: a second run at the same time exits with code 3; after missed runs, the next one fetches no more
/// than its budget, the most urgent pages first. No page is fetched twice within the shortest interval. Several
/// archives, such as the partitions of a cluster, share one budget as if they were one archive: each gets what its most
/// urgent pages need, and they are refreshed one after the other.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive refresh --budget 5000
  archive refresh --budget 5000 --for 50m      # an hourly cron job that ends before the next one
  archive refresh --budget 500 --where 'page site = \"example.org\"'     # only these pages
  archive refresh --budget 5000 --policy xyleme --shortest 1d     # equation 22 of Xyleme, no page twice a day
  archive refresh --budget 5000 --weight pagerank                 # by a column of archive rank --save
  archive refresh --budget 5000 --archive A1 --archive A2         # the partitions of a cluster share one budget
  archive refresh --budget 5000 --archive A1 --cluster s3://crawl/cluster     # beside the crawls of other nodes

A cron line to start with (more of them and systemd units are in examples/):
  7 * * * *  archive refresh --archive /srv/web.archive --budget 5000 --for 50m

The last line on standard error sums up the run. Exit codes: 0 done (also if the time is up),
1 failed, 2 wrong usage, 3 the archive is in use, 4 stopped by a signal, or no page could be had
because all servers said \"later\" or did not answer.")]
pub(crate) struct Args {
    /// Maximum number of pages to fetch; parts of these pages come on top (--parts)
    #[arg(long, value_name = "N")]
    budget: u64,
    #[command(flatten)]
    archives: ArchivesArgs,
    /// Query that selects the pages, as for `archive query`: no others are fetched, and watches wait for another run
    #[arg(long = "where", value_name = "QUERY")]
    where_: Option<String>,
    /// Time within which to finish (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// URL at which WebSub hubs reach `archive serve --pings`, for example https://archive.example.org; subscribes to
    /// the hubs that pages of watches name
    #[arg(long, value_name = "URL", value_parser = callback)]
    callback: Option<String>,
    #[command(flatten)]
    turns: TurnsArgs,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    outputs: OutputsArgs,
    /// One JSON object per report and one for the run, with the part of each archive if there are several
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fetch: FetchArgs,
}

#[derive(Default, Serialize)]
struct Summary {
    /// The archive, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<PathBuf>,
    /// The archive's share of the budget, if there are several.
    budget: u64,
    captures: u64,
    /// Captures with the same content as another one.
    identical: u64,
    /// Parts of pages that were asked again, and those left to the next run.
    parts: u64,
    parts_left: u64,
    errors: u64,
    refused: u64,
    /// Pages left to the next run because of their servers.
    waiting: u64,
    /// URLs that an option of the crawl would let through, by reason.
    left: BTreeMap<Refusal, u64>,
    bytes: u64,
    seconds: f64,
    end: &'static str,
    reports: usize,
    /// A summary of each archive, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archives: Vec<Self>,
}

/// An archive being refreshed, alone or with others.
struct Member {
    store: Store,
    /// The pages that its watches wait for.
    awaited: Vec<Awaited>,
    /// Pages that are proven to have changed.
    noticed: Tallies,
    choice: Choice,
    /// Whether its stored rules change.
    is_changed: bool,
    /// Its membership in a cluster, if it takes turns with other nodes.
    place: Option<cluster::Member>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let folders = args.archives.folders()?;
    let mut all_options = Vec::new();
    for folder in folders {
        open::check_exists(folder)?;
        all_options.push(args.fetch.options(folder, Manners::default())?);
    }
    let told: Vec<Manners> = all_options.iter().filter_map(|options| options.manners.clone()).collect();
    args.fetch.start_log(folders)?;
    let stop = interrupt::install()?;
    let mut stores = open_all(args, folders, &all_options)?;
    let rules = args.rules.over_kept(&stores)?;
    let answering = answering(&stores)?;
    let mut budget = usize::try_from(args.budget).unwrap_or(usize::MAX);
    // As for announced pages, at most half of the budget.
    let mut keys_left = budget.div_ceil(2);
    let mut watched = Vec::new();
    for (store, options) in stores.iter_mut().zip(&mut all_options) {
        options.time = args.time.map(|time| left(time, started));
        options.cluster = args.turns.place(store)?;
        let (asked, noticed) = notices::settle(store, options, keys_left, &stop)?;
        (keys_left, budget) = (keys_left - asked, budget - asked);
        let now = options.fetch.clock.now();
        // A report is due with the newest state of all its pages.
        let watches = if args.where_.is_some() { Vec::new() } else { watch::list(store.path())? };
        let due = watches.into_iter().filter(|watch| watch.is_due(now)).collect();
        watched.push((deliveries::awaited(due, store, options), noticed, options.cluster.take()));
    }
    let now = all_options[0].fetch.clock.now();
    let only = args.where_.as_deref().map(|query| selected(query, &stores, now)).transpose()?;
    let choices = choice::choices(&rules, &mut stores, !args.fetch.no_decisions, only)?;
    let members = stores.into_iter().zip(watched).zip(choices);
    let members: Vec<Member> = members
        .map(|((store, (awaited, noticed, place)), (choice, is_changed))| Member {
            store,
            awaited,
            noticed,
            choice,
            is_changed,
            place,
        })
        .collect();
    let (pages, idle) = divide(args, &members, &answering, budget, now)?;
    let shares: Vec<usize> = pages.iter().map(Vec::len).collect();
    let complete = if shares.iter().sum::<usize>() < budget {
        "everything that was due is fetched".to_owned()
    } else {
        format!("budget of {} spent", HumanCount(args.budget))
    };
    let run = Run { args, begun: now, stop: &stop, are_several: members.len() > 1, is_idle: idle.is_some() };
    let (mut total, mut sums, mut last) = (Sum::default(), Vec::new(), None);
    for (place, ((member, pages), mut options)) in members.into_iter().zip(pages).zip(all_options).enumerate()
    {
        // An archive that needs less than its part of the time leaves the rest to the others.
        let part = match shares[place] {
            0 => 1.0,
            share => share as f64 / shares[place..].iter().sum::<usize>() as f64,
        };
        options.time = args.time.map(|time| left(time, started).mul_f64(part));
        let path = member.store.path().to_owned();
        let (done, progress) = run.refresh(member, pages, &options, total.end == End::Stopped)?;
        last = progress.map(|progress| (progress, path.clone()));
        total.add(&done);
        sums.push(done.summary(Some(path), shares[place] as u64));
    }
    match (idle, last) {
        (Some(idle), _) => output::note(format_args!("{idle}")),
        (None, Some((progress, path))) if !run.are_several => {
            progress.finish(total.end, &complete, &total.status, &path);
        }
        _ => output::note(format_args!(
            "{}: {}",
            progress::reason(total.end, &complete),
            progress::sum(&total.status)
        )),
    }
    if args.json {
        let summary = total.summary(None, args.budget);
        let archives = if run.are_several { sums } else { Vec::new() };
        output::json_line(&Summary { archives, ..summary })?;
    }
    let lacking: BTreeSet<&str> = told.iter().flat_map(|told| args.fetch.lacking(told)).collect();
    if total.status.captures == 0 && total.status.errors + total.status.refused > 0 && !lacking.is_empty() {
        let lacking = lacking.into_iter().collect::<Vec<_>>().join(" ");
        output::note(format_args!("nothing could be fetched without {lacking}"));
        return Ok(ExitCode::FAILURE);
    }
    // Pages that wait are usual in a refresh; only where nothing but those was due, somebody has to look.
    let is_in_vain = total.end == End::Waiting && total.status.captures <= total.status.errors;
    let is_stopped = total.end == End::Stopped || is_in_vain;
    Ok(if is_stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// Opens all archives, which this process owns until the end.
fn open_all(args: &Args, folders: &[PathBuf], options: &[Options]) -> anyhow::Result<Vec<Store>> {
    let mut opened = HashSet::new();
    for folder in folders {
        if !opened.insert(folder.canonicalize()?) {
            return Err(UsageError(format!("{} is named twice; name it once", folder.display())).into());
        }
    }
    let open = |(folder, options): (&PathBuf, &Options)| {
        let store = args.turns.own(folder, options)?;
        args.fetch.versions.apply(folder)?;
        Ok(store)
    };
    folders.iter().zip(options).map(open).collect()
}

/// The pages of each archive that a query finds in all of them as one.
fn selected(query: &str, stores: &[Store], now: DateTime<Utc>) -> anyhow::Result<Vec<HashSet<UrlId>>> {
    let archives = stores.iter().map(|store| (store, Access::unlimited())).collect();
    let pages = Question::of(archives, query, now)?.of_pages()?.pages_by_archive(stores.len())?;
    if pages.iter().all(HashSet::is_empty) {
        output::note(format_args!("no page matches '{query}'"));
    }
    Ok(pages)
}

/// Which of several archives answers for each site.
fn answering(stores: &[Store]) -> anyhow::Result<Vec<Vec<usize>>> {
    if let [_] = stores {
        return Ok(vec![Vec::new()]);
    }
    // A page that is in two archives would be fetched twice.
    Ok(query::answering(&stores.iter().map(|store| (store, Access::unlimited())).collect::<Vec<_>>())?)
}

/// Returns the pages to fetch of each archive within the budget, and if there are none, the reason.
fn divide(
    args: &Args,
    members: &[Member],
    answering: &[Vec<usize>],
    budget: usize,
    now: DateTime<Utc>,
) -> anyhow::Result<(Vec<Vec<UrlId>>, Option<String>)> {
    let credits = members.iter().map(|member| Credits::open(member.store.state()));
    let credits = credits.collect::<Result<Vec<_>, _>>()?;
    let awaited: Vec<_> = members.iter().map(|member| watch::pages_of(&member.awaited)).collect();
    let sources = members.iter().enumerate().map(|(place, Member { store, choice, .. })| Source {
        state: store.state(),
        credits: &credits[place],
        choice,
        awaited: &awaited[place],
        answering: &answering[place],
    });
    let sources: Vec<Source<'_>> = sources.collect();
    let pages = agenda(&sources, budget, now)?;
    let idle = if pages.iter().all(Vec::is_empty) { Some(idle(args, &sources, now)?) } else { None };
    Ok((pages, idle))
}

/// Settings shared by the archives of a run.
struct Run<'a> {
    args: &'a Args,
    begun: DateTime<Utc>,
    stop: &'a Control,
    are_several: bool,
    is_idle: bool,
}

/// The results of a run.
struct Sum {
    end: End,
    status: Status,
    reports: usize,
}

impl Default for Sum {
    fn default() -> Self {
        Self { end: End::Complete, status: Status::default(), reports: 0 }
    }
}

impl Sum {
    fn add(&mut self, one: &Self) {
        if one.end != End::Complete {
            self.end = one.end;
        }
        self.status.add(&one.status);
        self.reports += one.reports;
    }

    fn summary(&self, archive: Option<PathBuf>, budget: u64) -> Summary {
        let Self { end, status, reports } = self;
        Summary {
            archive,
            budget,
            captures: status.captures,
            identical: status.identical,
            parts: status.parts,
            parts_left: status.parts_left,
            errors: status.errors,
            refused: status.refused,
            waiting: status.waiting,
            left: status.left.clone(),
            bytes: status.bytes,
            seconds: status.elapsed.as_secs_f64(),
            end: end.name(),
            reports: *reports,
            archives: Vec::new(),
        }
    }
}

impl Run<'_> {
    /// Fetches the chosen pages of an archive and makes its reports; if the run was stopped earlier, only closes the
    /// archive.
    fn refresh(
        &self,
        member: Member,
        pages: Vec<UrlId>,
        options: &Options,
        is_stopped: bool,
    ) -> anyhow::Result<(Sum, Option<Progress>)> {
        let Member { mut store, awaited, noticed, is_changed, place, .. } = member;
        let Self { args, begun, stop, .. } = *self;
        let mut account = runs::Run::begins("refresh", options.fetch.clock.now());
        account.noticed = noticed;
        let mut options = Options { account: Some(account), cluster: place, ..options.clone() };
        let mut hubs = Options { time: None, ..options.clone() };
        if args.callback.is_some() && options.cluster.is_some() {
            let (most, part) = HUBS_TIME_IN_CLUSTER;
            let time = options.time.map_or(most, |time| (time / part).min(most));
            (options.time, hubs.time) = (options.time.map(|all| all.saturating_sub(time)), Some(time));
        }
        let path = store.path().to_owned();
        // A run that was killed leaves the index behind: the next one catches up, even if there is nothing to fetch.
        let is_unsealed = |index: &&str| search::is_unsealed(&path.join(index));
        let is_behind = || [search::FOLDER, search::VERSIONS_FOLDER].iter().any(is_unsealed);
        if is_stopped || (pages.is_empty() && awaited.is_empty() && !is_behind()) {
            let has_run = !is_stopped && subscribe(args, &mut store, hubs, begun, stop)?;
            // Without changes there is nothing to make durable.
            if is_changed || has_run || store.state().dirty_bytes() > 0 {
                recorder::close(store)?;
            }
            let end = if is_stopped { End::Stopped } else { End::Complete };
            return Ok((Sum { end, ..Sum::default() }, None));
        }
        let count = pages.len() as u64;
        let mut progress = Progress::start(Some(count));
        let (end, status) =
            archive_crawl::run(&mut store, Purpose::Refresh { pages }, &options, stop, &mut |status| {
                progress.show(status);
            })?;
        let mut reports = 0;
        if end != End::Stopped {
            // A partition that is being handed over to another node must not be taken back.
            if end != End::Drained {
                subscribe(args, &mut store, hubs, begun, stop)?;
            }
            let now = options.fetch.clock.now();
            let deliveries = watch::deliver(awaited, &store, now, &args.outputs.outputs);
            reports = deliveries::print(&path, &deliveries, args.json)?;
        }
        recorder::close(store)?;
        let done = Sum { end, status, reports };
        if !self.are_several || self.is_idle {
            return Ok((done, Some(progress)));
        }
        progress.finish(end, &format!("share of {} spent", HumanCount(count)), &done.status, &path);
        Ok((done, None))
    }
}

/// Parses the URL at which hubs reach the server; paths are appended to it.
fn callback(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.ok_or("write it like https://archive.example.org, because paths are appended to it")?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Subscribes to the hubs named by the watches' pages that this run has fetched, and renews subscriptions whose lease
/// is about to end. Returns whether this included a run in the archive's cluster.
fn subscribe(
    args: &Args,
    store: &mut Store,
    options: Options,
    begun: DateTime<Utc>,
    stop: &Control,
) -> anyhow::Result<bool> {
    let Some(callback) = args.callback.clone() else { return Ok(false) };
    let now = options.fetch.clock.now();
    let mut pages = BTreeSet::new();
    for watch in watch::list(store.path())? {
        match watch.pages(store, now) {
            Ok(found) => pages.extend(found),
            Err(error) => {
                output::note(format_args!("no hubs were asked: the watch '{}' fails: {error}", watch.name));
                return Ok(false);
            }
        }
    }
    hubs::look(store, &pages, begun)?;
    let takes_turns = options.cluster.is_some() && hubs::are_due(store.path(), now)?;
    let asked = if takes_turns {
        let options = Options { full_text: false, status: None, ..options };
        archive_crawl::run(store, Purpose::Subscribe { callback }, &options, stop, &mut |_| {})?.1.hubs
    } else {
        hubs::ask(store.path(), &callback, &options.fetch, options.politeness.host_delay, stop)?
    };
    if asked != Asked::default() {
        let taken = output::count(asked.taken, "hub");
        output::note(format_args!("subscriptions: requested from {taken}, {} failed", asked.failed.len()));
    }
    if asked.waiting > 0 {
        let wait = if asked.waiting == 1 {
            "was not asked in time, and waits"
        } else {
            "were not asked in time, and wait"
        };
        output::note(format_args!("{} {wait} for the next run", output::count(asked.waiting, "hub")));
    }
    for (hub, why) in &asked.failed {
        output::note(format_args!("{hub}: {why}"));
    }
    Ok(takes_turns)
}

/// The time left for fetching.
pub(crate) fn left(time: Duration, started: Instant) -> Duration {
    time.saturating_sub((time / TIME_FOR_END).min(TIME_FOR_END_MAX)).saturating_sub(started.elapsed())
}

/// Describes why a refresh has nothing to fetch, and when it will.
fn idle(args: &Args, sources: &[Source<'_>], now: DateTime<Utc>) -> anyhow::Result<String> {
    if args.budget == 0 {
        return Ok("nothing is fetched: --budget is 0".to_owned());
    }
    Ok(match Idle::of(sources, now)? {
        Idle::NoPages if args.where_.is_some() => {
            "nothing is due: none of the pages that --where finds was fetched yet".to_owned()
        }
        Idle::NoPages => "nothing is due: no page was fetched yet; begin with `archive crawl`".to_owned(),
        Idle::Until(next) => {
            let (next, now) = (next.with_timezone(&Local), now.with_timezone(&Local));
            let form = if next.date_naive() == now.date_naive() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
            format!("nothing is due; next at {} (see --shortest)", next.format(form))
        }
        Idle::NoneWorth(pages) => format!(
            "nothing is due: by the policy {} none of {} is worth another fetch",
            sources[0].choice.rules.policy,
            output::count(pages, "page")
        ),
    })
}

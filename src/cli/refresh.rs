//! `archive refresh`: fetch again, up to a budget, what matters most and has probably changed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archive::crawl::{self, End, Options, Purpose, Status};
use archive::decisions::Decisions;
use archive::ledger::Credits;
use archive::prepared;
use archive::publish::hubs;
use archive::recorder::Control;
use archive::refresh::policies::PolicyName;
use archive::search;
use archive::selection::{
    Choice, Discovery, FOLDERS_FROM, Idle, RefreshRules, Weighing, WeightError, Weights, agenda,
};
use archive::watch::{self, Awaited, Delivery, Format, Watch};
use archive_storage::Store;
use chrono::{DateTime, Local, Utc};
use indicatif::HumanCount;
use serde::Serialize;
use url::Url;

use super::fetching::FetchArgs;
use super::open::SegmentArgs;
use super::options::{ArchiveArgs, OutputsArgs, duration};
use super::progress::Progress;
use super::{EXIT_STOPPED, UsageError, interrupt, notices, open, output};

/// The part of the time that is kept for the end (the last checkpoint, reports), as a divisor, and at most.
const TIME_FOR_END: u32 = 10;
const TIME_FOR_END_MAX: Duration = Duration::from_secs(20);

/// Fetch again the pages that matter most and have probably changed, up to a budget.
///
/// Pages are chosen by their importance and by how often they were found changed. Pages of due watches come first, then pages
/// that site owners announced. Requests are conditional: if a page has not changed, only that is stored (a revisit). Suited to
/// cron: a second run beside another exits with code 3; after missed runs the next one fetches no more than its budget, the most
/// urgent pages first. No page is fetched twice within the shortest interval.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive refresh --budget 5000
  archive refresh --budget 5000 --for 50m      # an hourly cron job that ends before the next one
  archive refresh --budget 5000 --policy xyleme --shortest 1d     # equation 22 of Xyleme, no page twice a day
  archive refresh --budget 5000 --weight pagerank                 # by a column of archive rank --save

A first cron line (examples/ has more, and systemd units):
  7 * * * *  archive refresh --archive /srv/web.archive --budget 5000 --for 50m

The last line on standard error sums up the run. Exit codes: 0 done (also when the time is up), 1 failed, 2 wrong usage,
3 the archive is in use, 4 stopped by a signal.")]
pub(crate) struct Args {
    /// Pages to fetch, at most
    #[arg(long, value_name = "N")]
    budget: u64,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Be done within this time (30s, 10m, 2h)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Subscribe to the hubs (WebSub) that pages of watches name; URL at which hubs reach `archive serve --pings`, for example
    /// https://archive.example.org
    #[arg(long, value_name = "URL", value_parser = callback)]
    callback: Option<String>,
    #[command(flatten)]
    rules: RulesArgs,
    #[command(flatten)]
    outputs: OutputsArgs,
    /// Print one JSON object for each report and one for the run
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fetch: FetchArgs,
}

/// How pages are chosen; what is not said is as it was said last.
#[derive(clap::Args)]
#[command(next_help_heading = "Choice of pages (stored for later runs and plans)")]
struct RulesArgs {
    /// Policy: default, uniform, prop, xyleme, index, hindex (LambdaCrawl's greedy form), chogm, lambda, azar, evh_hindex, nutch, …,
    /// as in `archive-lab refresh` [usual: default]
    #[arg(long, value_name = "NAME")]
    policy: Option<PolicyName>,
    /// What pages weigh: importance; interest (HTML pages by the column `interest` of `archive rank`, if there is one, all others
    /// by importance); or a column's name [usual: interest]
    #[arg(long, value_name = "NAME")]
    weight: Option<String>,
    /// Share of the budget for known pages that were never fetched: 0.1, 10%, or auto (their share of all importance, at most
    /// half) [usual: 0]
    #[arg(long, value_name = "SHARE")]
    discovery: Option<Discovery>,
    /// Fetch no page again sooner than this, except awaited and announced pages [usual: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    shortest: Option<Duration>,
    /// Unit to which --shortest is rounded: runs may begin early by half of it [usual: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_unit: Option<Duration>,
}

#[derive(Serialize)]
struct Summary {
    budget: u64,
    captures: u64,
    /// Captures with the content of another one.
    identical: u64,
    errors: u64,
    refused: u64,
    bytes: u64,
    seconds: f64,
    end: &'static str,
    reports: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut options = args.fetch.options()?;
    args.fetch.start_log(&args.archive.path)?;
    let stop = interrupt::install()?;
    open::check_exists(&args.archive.path)?;
    let mut store = open::own(&args.archive.path, SegmentArgs::default(), Some(&options.fetch))?;
    args.fetch.versions.apply(&args.archive.path)?;
    let budget = usize::try_from(args.budget).unwrap_or(usize::MAX);
    options.time = args.time.map(|time| left(time, started));
    // As of what is announced, no more than half of the budget.
    let (asked, noticed) = notices::settle(&mut store, &options, budget.div_ceil(2), &stop)?;
    let budget = budget - asked;
    options.noticed = noticed;
    let now = options.fetch.clock.now();
    let due = watch::list(&args.archive.path)?.into_iter().filter(|watch| watch.is_due(now)).collect();
    let awaited = awaited(due, &store, &options);
    let (choice, is_new) = choice(args, &mut store)?;
    let credits = Credits::open(store.state())?;
    let pages = agenda(store.state(), &credits, &choice, budget, now, &watch::pages_of(&awaited))?;
    drop(credits);
    let idle = if pages.is_empty() { Some(idle(args, &store, &choice, now)?) } else { None };
    // A run that was killed left the index as it was: the next one catches up, even with nothing to fetch.
    let is_behind = [search::FOLDER, search::VERSIONS_FOLDER]
        .iter()
        .any(|index| search::is_unsealed(&args.archive.path.join(index)));
    if let Some(idle) = idle.as_ref().filter(|_| awaited.is_empty() && !is_behind) {
        subscribe(args, &store, &options, now, &stop)?;
        // Where nothing was changed there is nothing to make durable.
        if is_new || store.state().dirty_bytes() > 0 {
            prepared::close(store)?;
        }
        output::note(format_args!("{idle}"));
        if args.json {
            output::json_line(&summary(args.budget, End::Complete, &Status::default(), 0))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let complete = if pages.len() < budget {
        "everything that was due is fetched".to_owned()
    } else {
        format!("budget of {} spent", HumanCount(args.budget))
    };
    options.time = args.time.map(|time| left(time, started));
    let mut progress = Progress::start(Some(pages.len() as u64));
    let (end, status) = crawl::run(&mut store, Purpose::Refresh { pages }, &options, &stop, &mut |status| {
        progress.show(status);
    })?;
    if end != End::Stopped {
        subscribe(args, &store, &options, now, &stop)?;
    }
    let reports = if end == End::Stopped {
        0
    } else {
        let now = options.fetch.clock.now();
        let deliveries = watch::deliver(awaited, &store, now, &args.outputs.outputs);
        print_deliveries(&args.archive.path, &deliveries, args.json)?
    };
    prepared::close(store)?;
    match idle {
        Some(idle) => output::note(format_args!("{idle}")),
        None => progress.finish(end, &complete, &status, &args.archive.path),
    }
    if args.json {
        output::json_line(&summary(args.budget, end, &status, reports))?;
    }
    Ok(if end == End::Stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// The URL at which hubs reach the server; paths are appended to it.
fn callback(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.ok_or("write it like https://archive.example.org, because paths are appended to it")?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Subscribes to the hubs that pages of watches name which this run has fetched, and to those whose lease ends.
fn subscribe(
    args: &Args,
    store: &Store,
    options: &Options,
    begun: DateTime<Utc>,
    stop: &Control,
) -> anyhow::Result<()> {
    let Some(callback) = &args.callback else { return Ok(()) };
    let now = options.fetch.clock.now();
    let mut pages = BTreeSet::new();
    for watch in watch::list(&args.archive.path)? {
        match watch.pages(store, now) {
            Ok(found) => pages.extend(found),
            Err(error) => {
                output::note(format_args!("no hubs were asked: the watch '{}' fails: {error}", watch.name));
                return Ok(());
            }
        }
    }
    hubs::look(store, &pages, begun)?;
    let asked = hubs::ask(store.path(), callback, &options.fetch, options.politeness.host_delay, stop)?;
    if asked.taken > 0 || !asked.failed.is_empty() {
        let taken = output::count(asked.taken, "hub");
        output::note(format_args!("subscriptions: {taken} asked, {} did not take it", asked.failed.len()));
    }
    for (hub, why) in &asked.failed {
        output::note(format_args!("{hub}: {why}"));
    }
    Ok(())
}

/// How pages are chosen: as the run before did, but for what was said now, which is kept; and whether any of that is new.
fn choice(args: &Args, store: &mut Store) -> anyhow::Result<(Choice, bool)> {
    let kept = RefreshRules::kept(store.state())?;
    let said = &args.rules;
    if said.time_unit.is_some_and(|unit| unit.is_zero()) {
        return Err(UsageError("--time-unit has to be more than 0".to_owned()).into());
    }
    let rules = RefreshRules {
        policy: said.policy.clone().unwrap_or_else(|| kept.policy.clone()),
        weight: said.weight.clone().map_or_else(|| kept.weight.clone(), Weighing::from),
        discovery: said.discovery.unwrap_or(kept.discovery),
        shortest: said.shortest.unwrap_or(kept.shortest),
        unit: said.time_unit.unwrap_or(kept.unit),
    };
    let weights = Weights::read(&args.archive.path, &rules.weight).map_err(|error| match error {
        WeightError::Missing(_) => anyhow::Error::from(UsageError(error.to_string())),
        error => error.into(),
    })?;
    let weights = if args.fetch.no_decisions {
        weights
    } else {
        weights.with_decisions(store.state(), Decisions::read(&args.archive.path)?)?
    };
    let is_new = rules != kept;
    if is_new {
        rules.keep(store.state_mut())?;
    }
    Ok((Choice::new(rules, weights).with_folders(&args.archive.path, FOLDERS_FROM), is_new))
}

/// What is left of the time for fetching.
pub(crate) fn left(time: Duration, started: Instant) -> Duration {
    time.saturating_sub((time / TIME_FOR_END).min(TIME_FOR_END_MAX)).saturating_sub(started.elapsed())
}

/// The pages that watches wait for; a watch that fails is reported and left out.
pub(crate) fn awaited(due: Vec<Watch>, store: &Store, options: &Options) -> Vec<Awaited> {
    let (awaited, failed) = watch::await_pages(due, store, options.fetch.clock.now());
    for (watch, error) in failed {
        output::note(format_args!("the watch '{}' cannot be served: {error}", watch.name));
    }
    awaited
}

/// Prints reports that go nowhere else, and says what became of the others; returns how many were made.
pub(crate) fn print_deliveries(archive: &Path, deliveries: &[Delivery], json: bool) -> anyhow::Result<usize> {
    let mut made = 0;
    for delivery in deliveries {
        match delivery {
            Delivery::Made { report, withheld } => {
                made += 1;
                note_withheld(delivery);
                let watch = watch::get(archive, &report.watch)?;
                if json {
                    output::json_line(report)?;
                } else if watch.output.is_none() || withheld.is_some() {
                    let text = watch::render(archive, &watch, Format::Text)?;
                    text.lines().try_for_each(output::line)?;
                    output::line("")?;
                }
            }
            Delivery::Postponed { watch, missing } => output::note(format_args!(
                "the report of '{}' waits for {}; the next refresh continues with them",
                watch.name,
                output::count(*missing as u64, "page")
            )),
            Delivery::Failed { watch, error } => {
                output::note(format_args!("the report of '{}' cannot be made: {error}", watch.name));
            }
        }
    }
    Ok(made)
}

/// Says that a watch's own file was not written, and how to have it written.
pub(crate) fn note_withheld(delivery: &Delivery) {
    if let Delivery::Made { report, withheld: Some(file) } = delivery {
        output::note(format_args!(
            "the report of '{}' was not written to {}; to permit that, name its folder with --outputs",
            report.watch,
            file.display()
        ));
    }
}

/// Why a refresh has nothing to fetch, and when it will have something.
fn idle(args: &Args, store: &Store, choice: &Choice, now: DateTime<Utc>) -> anyhow::Result<String> {
    if args.budget == 0 {
        return Ok("nothing is fetched: --budget is 0".to_owned());
    }
    let idle = Idle::of(store.state(), &Credits::open(store.state())?, choice, now)?;
    let rules = &choice.rules;
    Ok(match idle {
        Idle::NoPages => "nothing is due: no page was fetched yet; begin with `archive crawl`".to_owned(),
        Idle::Until(next) => {
            let (next, now) = (next.with_timezone(&Local), now.with_timezone(&Local));
            let form = if next.date_naive() == now.date_naive() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
            format!("nothing is due; next at {} (see --shortest)", next.format(form))
        }
        Idle::NoneWorth(pages) => format!(
            "nothing is due: by the policy {} none of {} is worth another fetch",
            rules.policy,
            output::count(pages, "page")
        ),
    })
}

fn summary(budget: u64, end: End, status: &Status, reports: usize) -> Summary {
    Summary {
        budget,
        captures: status.captures,
        identical: status.identical,
        errors: status.errors,
        refused: status.refused,
        bytes: status.bytes,
        seconds: status.elapsed.as_secs_f64(),
        end: end.name(),
        reports,
    }
}

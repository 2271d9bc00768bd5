//! `archive refresh`: fetches again, within a budget, the pages that matter most and have probably changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{self, ArchiveRefreshed, RefreshJob, RefreshOutcome, RulesChange};
use archive_books::ledger::Refusal;
use archive_choose::{Discovery, NothingDue, Weighing};
use archive_crawl::{CrawlStatus, EndReason};
use archive_math::refresh::policies::PolicyName;
use chrono::Local;
use indicatif::HumanCount;
use serde::Serialize;
use url::Url;

use super::cluster::TurnsArgs;
use super::fetching::FetchArgs;
use super::messages::Hearing;
use super::options::{ArchivesArgs, OutputsArgs, duration};
use super::{EXIT_STOPPED, Result, interrupt, output, progress};

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
  archive refresh --budget 5000 --policy penalty:1:4 --floor 0.1    # old and stale copies; nothing for unimportant pages
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

/// Choice of pages; an omitted option keeps its stored value.
#[derive(clap::Args)]
#[command(next_help_heading = "Choice of pages (stored for later runs and plans)")]
struct RulesArgs {
    /// Refresh policy: default, uniform, prop, xyleme, penalty:ALPHA:BETA (Xyleme's penalties for old and for stale
    /// copies, as in penalty:1:4), index, hindex (LambdaCrawl's greedy form), chogm, lambda, azar,
    /// evh_hindex, nutch, …, as in `archive-lab refresh` [default: default]
    #[arg(long, value_name = "NAME")]
    policy: Option<PolicyName>,
    /// Weight of pages: importance; interest (HTML pages by the column `interest` of `archive rank`, if there is one,
    /// all others by importance); or the name of a column [default: interest]
    #[arg(long, value_name = "NAME")]
    weight: Option<String>,
    /// Weight (importance has a mean of 1) below which pages are neither fetched again nor discovered [default: 0]
    #[arg(long, value_name = "N", value_parser = floor)]
    floor: Option<f64>,
    /// Share of the budget for known pages that were never fetched: 0.1, 10%, or auto (their share of all importance,
    /// at most half) [default: 0]
    #[arg(long, value_name = "SHARE")]
    discovery: Option<Discovery>,
    /// Shortest interval between two fetches of a page, except for awaited and announced pages [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    shortest: Option<Duration>,
    /// Parts of pages (style sheets, pictures and so on) to ask again with them, at most N per page of the budget on
    /// average; 0 for none [default: 20]
    #[arg(long, value_name = "N")]
    parts: Option<u32>,
    /// Unit to which --shortest is rounded: runs may start up to half of it early [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_unit: Option<Duration>,
}

impl RulesArgs {
    fn change(&self) -> RulesChange {
        RulesChange {
            policy: self.policy.clone(),
            weight: self.weight.clone().map(Weighing::from),
            floor: self.floor,
            discovery: self.discovery,
            shortest: self.shortest,
            parts: self.parts,
            unit: self.time_unit,
        }
    }
}

#[derive(Default, Serialize)]
struct RefreshSummary {
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

impl RefreshSummary {
    fn of(end: EndReason, status: &CrawlStatus, reports: usize, budget: u64) -> Self {
        Self {
            archive: None,
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
            reports,
            archives: Vec::new(),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folders = args.archives.folders()?;
    let job = RefreshJob {
        budget: args.budget,
        query: args.where_.clone(),
        time: args.time,
        rules: args.rules.change(),
        callback: args.callback.clone(),
        outputs: args.outputs.outputs.clone(),
        manners: args.fetch.manners(),
        options: args.fetch.options()?,
        turns: args.turns.turns(),
        index_versions: args.fetch.versions.index_versions,
    };
    args.fetch.start_log(folders)?;
    let stop = interrupt::install()?;
    let mut hearing = Hearing::new(args.json);
    hearing.prints_reports = true;
    let outcome = jobs::refresh(folders, &job, &stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    say(args, &outcome);
    let RefreshOutcome { end, status, reports, archives, lacking, .. } = &outcome;
    if args.json {
        let mut summary = RefreshSummary::of(*end, status, *reports, args.budget);
        if archives.len() > 1 {
            let of = |one: &ArchiveRefreshed| RefreshSummary {
                archive: Some(one.path.clone()),
                ..RefreshSummary::of(one.end, &one.status, one.reports, one.share)
            };
            summary.archives = archives.iter().map(of).collect();
        }
        output::json_line(&summary)?;
    }
    if status.captures == 0 && status.errors + status.refused > 0 && !lacking.is_empty() {
        let lacking = lacking.iter().copied().collect::<Vec<_>>().join(" ");
        note!("nothing could be fetched without {lacking}");
        return Ok(ExitCode::FAILURE);
    }
    // Pages that wait are usual in a refresh; only where nothing but those was due, somebody has to look.
    let is_in_vain = *end == EndReason::Waiting && status.captures <= status.errors;
    let is_stopped = *end == EndReason::Stopped || is_in_vain;
    Ok(if is_stopped { ExitCode::from(EXIT_STOPPED) } else { ExitCode::SUCCESS })
}

/// Sums up the run.
fn say(args: &Args, outcome: &RefreshOutcome) {
    let RefreshOutcome { end, status, has_all_due, idle, archives, .. } = outcome;
    let complete = if *has_all_due {
        "everything that was due is fetched".to_owned()
    } else {
        format!("budget of {} spent", HumanCount(args.budget))
    };
    match (idle, archives.as_slice()) {
        (Some(why), _) => {
            progress::end();
            note!("{}", idle_text(args, outcome, *why));
        }
        (None, [only]) => progress::finish(*end, &complete, status, &only.path),
        _ => {
            let (reason, sum) = (progress::reason(*end, &complete), progress::sum(status));
            note!("{reason}: {sum}");
        }
    }
}

/// For clap: parses a weight.
fn floor(text: &str) -> Result<f64, String> {
    let floor = text.parse().ok().filter(|floor: &f64| *floor >= 0.0 && floor.is_finite());
    floor.ok_or_else(|| format!("'{text}' is no weight; write a number like 0.1"))
}

/// Parses the URL at which hubs reach the server; paths are appended to it.
fn callback(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.ok_or("write it like https://archive.example.org, because paths are appended to it")?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Describes why a refresh has nothing to fetch, and when it will.
fn idle_text(args: &Args, outcome: &RefreshOutcome, why: NothingDue) -> String {
    match why {
        _ if args.budget == 0 => "nothing is fetched: --budget is 0".to_owned(),
        NothingDue::NoPages if args.where_.is_some() => {
            "nothing is due: none of the pages that --where finds was fetched yet".to_owned()
        }
        NothingDue::NoPages if outcome.rules.floor > 0.0 => {
            format!(
                "nothing is due: no page was fetched yet whose weight is {} or more (--floor)",
                outcome.rules.floor
            )
        }
        NothingDue::NoPages => {
            "nothing is due: no page was fetched yet; begin with `archive crawl`".to_owned()
        }
        NothingDue::Until(next) => {
            let (next, now) = (next.with_timezone(&Local), outcome.begun.with_timezone(&Local));
            let form = if next.date_naive() == now.date_naive() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
            format!("nothing is due; next at {} (see --shortest)", next.format(form))
        }
        NothingDue::NoneWorth(pages) => format!(
            "nothing is due: by the policy {} none of {} is worth another fetch",
            outcome.rules.policy,
            output::count(pages, "page")
        ),
    }
}

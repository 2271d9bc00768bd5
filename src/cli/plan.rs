//! `archive plan`: predicts what a budget buys.

use std::process::ExitCode;
use std::time::Duration;

use archive::jobs::{self, BudgetForecast, PlanJob};
use archive_ask::query::Limits;
use archive_choose::plan::{Guarantee, Period};
use archive_math::refresh::policies::PolicyName;
use indicatif::HumanCount;

use super::Result;
use super::freshness::{class_text, say_if_none, span};
use super::options::{AskArgs, ClockArgs, duration};
use super::output::{self, Listing};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Predict how many copies a refresh budget keeps fresh, and how many a smaller or larger one would.
///
/// The budget is that of `archive refresh --budget`, for one run; --every is the time between runs. Fresh copies have
/// missed no change of their page; "requests" are the fetches of pages and of their parts (style sheets, pictures and so
/// on) that are asked again with them; "out of date" is the time since the first missed change. Numbers are averages over
/// the coming days, weighted by importance. --current finds what it takes that this share of the copies has missed no
/// change older than a grace period: the budget of refreshes, and how often pages that change at different rates, or all
/// pages alike, would have to be fetched. Several archives, such as the partitions of a cluster, are planned as one
/// that has all their pages and one budget.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive plan --budget 5000
  archive plan --budget 500 --days 7 --every 1h
  archive plan --budget 5000 --target 0.9       # budget for 90 % freshness
  archive plan --budget 5000 --current 95% --grace 1d      # what it takes to miss no change for longer than a day
  archive plan --budget 5000 --policy uniform    # freshness under another policy
  archive plan --budget 5000 --archive A1 --archive A2     # partitions of a cluster, as one
  archive plan --budget 5000 --archive http://node1:8070/ --archive http://node2:8070/
  archive plan --budget 5000 'page site = \"example.org\"'   # as if only these were refreshed")]
pub(crate) struct Args {
    /// Maximum number of pages that a run fetches
    #[arg(long, value_name = "N")]
    budget: u64,
    /// Number of days to look ahead
    #[arg(long, default_value_t = 30.0, value_name = "D")]
    days: f64,
    /// Query that selects the pages, as if only they were refreshed
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
    /// Time between runs
    #[arg(long, default_value = "1d", value_name = "TIME", value_parser = duration)]
    every: Duration,
    /// Policy to assume [default: that of the last refresh]
    #[arg(long, value_name = "NAME")]
    policy: Option<PolicyName>,
    /// Freshness (0.9, or 90%) for which to find the budget, too
    #[arg(long, value_name = "SHARE", value_parser = share)]
    target: Option<f64>,
    /// Share of copies (0.95, or 95%) that are to have missed no change older than --grace
    #[arg(long, value_name = "SHARE", value_parser = share)]
    current: Option<f64>,
    /// Time for which missed changes are forgiven
    #[arg(long, default_value = "1d", value_name = "TIME", value_parser = duration, requires = "current")]
    grace: Duration,
    /// One JSON object per budget, and with --current one per class of pages
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

/// For clap: parses a share.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number / whole);
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("'{text}' is not a share; write it like 0.9 or 90%"))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let job = PlanJob {
        budget: args.budget,
        every_days: args.every.as_secs_f64() / SECONDS_PER_DAY,
        days: args.days,
        policy: args.policy.clone(),
        target: args.target,
        guarantee: args.current.map(|current| {
            let grace_days = args.grace.as_secs_f64() / SECONDS_PER_DAY;
            Guarantee { current, grace_days }
        }),
    };
    job.check()?;
    let now = args.clock.clock().now();
    let query = Some(args.query.join(" ")).filter(|query| !query.is_empty());
    let answering = args.ask.open()?;
    let archives = answering.archives();
    let (copies, code) = match answering.asked(&args.ask.nodes, Limits::USUAL)? {
        Some(mut asked) => (asked.copies(query.as_deref(), now)?, answering.exit_code_of(&asked)),
        None => (jobs::copies(&archives, query.as_deref(), now)?, answering.exit_code()),
    };
    say_if_none(&copies.sampled, &args.query);
    let outcome = jobs::plan(&job, &copies)?;
    print(&outcome.budgets, job.guarantee, args.json)?;
    if !outcome.periods.is_empty() {
        print_periods(&outcome.periods, args.json)?;
    }
    if query.is_none() && !args.ask.has_nodes() {
        let (failing, again) = jobs::retries(&archives, &job, now)?;
        if failing > 0 {
            let share = 100.0 * again as f64 / (job.budget as f64 * job.days / job.every_days).max(1.0);
            note!(
                "{} bring nothing now: refreshes ask them again at growing intervals, {} in these days, {share:.1} % of the budget",
                output::count(failing, "page"),
                output::count(again, "time"),
            );
        }
    }
    if let Some(sample) = outcome.sample {
        note!("computed from a sample of the {} pages", HumanCount(sample as u64));
    }
    if let Some(target) = args.target.filter(|_| outcome.is_out_of_reach) {
        note!(
            "no budget makes {:.1} % fresh, not even one with which each run fetches all pages",
            100.0 * target
        );
    }
    if let Some(guarantee) = job.guarantee.filter(|_| outcome.is_never_current) {
        note!(
            "no budget makes {}, not even one with which each run fetches all pages; let runs be more frequent (--every)",
            words(guarantee)
        );
    }
    Ok(code)
}

/// What a guarantee promises.
fn words(guarantee: Guarantee) -> String {
    format!("{:.1} % current within {}", 100.0 * guarantee.current, span(guarantee.grace_days))
}

fn print(rows: &[BudgetForecast], guarantee: Option<Guarantee>, json: bool) -> Result<()> {
    let current = guarantee.map(|guarantee| format!("current within {}", span(guarantee.grace_days)));
    let mut headings =
        vec!["budget of a run", "fetches", "requests", "fresh", "fresh, all pages alike", "out of date"];
    headings.extend(current.as_deref());
    headings.push("");
    let mut listing = Listing::new(json, &headings, &[0, 1, 2, 3, 4, 5, 6]);
    for row in rows {
        listing.add(row, |row| {
            let forecast = &row.forecast;
            let note = match (row.target, row.guarantee, row.asked) {
                (Some(target), ..) => format!("the least for {:.1} %", 100.0 * target),
                (_, Some(guarantee), _) => format!("the least for {}", words(guarantee)),
                (.., true) => "your budget".to_owned(),
                (.., false) => String::new(),
            };
            let mut cells = vec![
                HumanCount(forecast.budget).to_string(),
                HumanCount(forecast.fetches).to_string(),
                HumanCount(row.requests).to_string(),
                format!("{:.1} %", 100.0 * forecast.freshness),
                format!("{:.1} %", 100.0 * forecast.freshness_unweighted),
                format!("{:.2} d", forecast.age_days),
            ];
            cells.extend(guarantee.map(|_| format!("{:.1} %", 100.0 * forecast.current)));
            cells.push(note);
            cells
        })?;
    }
    listing.end()
}

/// Prints how often pages have to be fetched.
fn print_periods(periods: &[Period], json: bool) -> Result<()> {
    let headings = ["time between changes", "pages", "fetch each every", "fetches a run"];
    let mut listing = Listing::new(json, &headings, &[1, 2, 3]);
    for period in periods {
        listing.add(period, |period| {
            [
                period.changes_every_days.map_or("all pages alike".to_owned(), class_text),
                HumanCount(period.pages as u64).to_string(),
                period.period_days.map_or("never".to_owned(), |days| format!("{days:.2} d")),
                period
                    .budget
                    .map_or("more often than runs".to_owned(), |budget| HumanCount(budget).to_string()),
            ]
        })?;
    }
    listing.end()
}

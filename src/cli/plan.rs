//! `archive plan`: predicts what a budget buys.

use std::process::ExitCode;
use std::time::Duration;

use archive_ask::query::{self, Limits, Question};
use archive_choose::freshness::{PartModel, copies_of};
use archive_choose::plan::{Forecast, RUNS_MAX, Ranking, Runs, Sample, requests};
use archive_choose::{RefreshRules, Timetable};
use archive_math::refresh::policies::PolicyName;
use archive_peers::nodes::CopySample;
use chrono::{DateTime, Utc};
use indicatif::HumanCount;
use serde::Serialize;

use super::freshness::say_if_none;
use super::options::{Answering, AskArgs, ClockArgs, duration};
use super::{UsageError, output};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Budgets of the curve, relative to the given one.
const CURVE: [f64; 8] = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// Predict how many copies a refresh budget keeps fresh, and how many a smaller or larger one would.
///
/// The budget is that of `archive refresh --budget`, for one run; --every is the time between runs. Fresh copies have
/// missed no change of their page; "requests" are the fetches of pages and of their parts (style sheets, pictures and so
/// on) that are asked again with them; "out of date" is the time since the first missed change. Numbers are averages over
/// the coming days, weighted by importance. Several archives, such as the partitions of a cluster, are planned as one
/// that has all their pages and one budget.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive plan --budget 5000
  archive plan --budget 500 --days 7 --every 1h
  archive plan --budget 5000 --target 0.9       # budget for 90 % freshness
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
    /// One JSON object per budget
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    forecast: Forecast,
    /// Expected requests of all runs in total, with those for parts of pages.
    requests: u64,
    /// Whether this is the given budget.
    asked: bool,
    /// The target freshness, if this is the lowest budget that reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

/// For clap: parses a share.
fn share(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 0.01),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number * factor);
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("'{text}' is not a share; write it like 0.9 or 90%"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let every = args.every.as_secs_f64() / SECONDS_PER_DAY;
    let is_time = args.days > 0.0 && args.days.is_finite() && every > 0.0;
    if !is_time || args.days / every > RUNS_MAX as f64 {
        let text = format!("--days and --every have to be more than 0, and give at most {RUNS_MAX} runs");
        return Err(UsageError(text).into());
    }
    let now = args.clock.clock().now();
    let answering = args.ask.open()?;
    let (all, code) = match answering.asked(&args.ask.nodes, Limits::USUAL)? {
        Some(mut asked) => {
            let query = Some(args.query.join(" ")).filter(|query| !query.is_empty());
            (asked.copies(query.as_deref(), now)?, answering.exit_code_of(&asked))
        }
        None => (copies(args, &answering, now)?, answering.exit_code()),
    };
    let mut ranking = None;
    for rules in &all.rules {
        let own = self::ranking(args, rules)?;
        if *ranking.get_or_insert(own) != own {
            let text =
                "these archives were last refreshed by different policies or intervals; plan each by itself";
            return Err(UsageError(text.to_owned()).into());
        }
    }
    say_if_none(&all.sampled, &args.query);
    let sample = Sample::drawn(all.sampled.iter().collect(), all.count);
    let ranking = ranking.ok_or_else(|| UsageError("there is no archive".to_owned()))?;
    let runs = Runs { budget: args.budget as f64, every, days: args.days };
    let row = |forecast: Forecast, target: Option<f64>| {
        let parts_max = all.rules.iter().map(|rules| rules.parts_max(forecast.budget)).max().unwrap_or(0);
        let requests = requests(&forecast, &runs, sample.len(), &all.parts, parts_max);
        Row { asked: forecast.budget == args.budget, forecast, requests, target }
    };
    let of_budget = |budget: u64| sample.forecast(&ranking, &Runs { budget: budget as f64, ..runs });
    let budgets = budgets(args.budget, sample.len()).into_iter();
    let mut rows: Vec<Row> = budgets.map(|budget| row(of_budget(budget), None)).collect();
    let reached = args.target.map(|target| (target, sample.budget_for(&ranking, &runs, target)));
    if let Some((target, Some(forecast))) = reached {
        rows.retain(|row| row.asked || row.forecast.budget != forecast.budget);
        rows.push(row(forecast, Some(target)));
    }
    rows.sort_by_key(|row| row.forecast.budget);
    if args.json {
        rows.iter().try_for_each(output::json_line)?;
    } else {
        print(&rows)?;
    }
    let (mut failing, mut again) = (0, 0);
    if args.query.is_empty() && !args.ask.has_nodes() {
        for (store, _) in answering.archives() {
            let (pages, attempts) = Timetable::of(store, now)?.retries(store.state(), args.days)?;
            (failing, again) = (failing + pages, again + attempts);
        }
    }
    if failing > 0 {
        let share = 100.0 * again as f64 / (args.budget as f64 * args.days / every).max(1.0);
        output::note(format_args!(
            "{} bring nothing now: refreshes ask them again at growing intervals, {} in these days, {share:.1} % of the budget",
            output::count(failing, "page"),
            output::count(again, "time"),
        ));
    }
    if sample.is_part() {
        output::note(format_args!("computed from a sample of the {} pages", HumanCount(sample.len() as u64)));
    }
    if let Some((target, None)) = reached {
        output::note(format_args!(
            "no budget makes {:.1} % fresh, not even one with which each run fetches all pages",
            100.0 * target
        ));
    }
    Ok(code)
}

/// The copies in folders, sampled down to the number used for a plan.
fn copies(args: &Args, answering: &Answering, now: DateTime<Utc>) -> anyhow::Result<CopySample> {
    let archives = answering.archives();
    // A page that is in two archives would be planned twice.
    query::answering(&archives)?;
    let found = match args.query.as_slice() {
        [] => None,
        words => {
            let question = Question::of(answering.archives(), &words.join(" "), Utc::now())?;
            Some(answering.found(&question.of_pages()?)?)
        }
    };
    let (mut all, mut rules, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (archive, (store, _)) in archives.iter().enumerate() {
        let (copies, kept) = (
            copies_of(store, found.as_ref().map(|found| &found[archive]), now)?,
            RefreshRules::kept(store.state())?,
        );
        parts.extend(PartModel::of(store.state(), &copies, kept.shortest_days())?);
        all.extend(copies);
        rules.push(kept);
    }
    let count = all.len();
    Ok(CopySample { rules, count, parts, sampled: all.into_iter().step_by(Sample::step(count)).collect() })
}

/// How runs will rank pages: as in the last refresh, or as requested.
fn ranking(args: &Args, kept: &RefreshRules) -> anyhow::Result<Ranking> {
    let policy = args.policy.as_ref().unwrap_or(&kept.policy);
    let Some(by) = policy.rule() else {
        let text = format!("there is no forecast for the policy {policy}; name another one with --policy");
        return Err(UsageError(text).into());
    };
    Ok(Ranking { by, shortest: kept.shortest_days() })
}

/// The budgets of the curve: around the given one, and no more than there are pages.
fn budgets(asked: u64, pages: usize) -> Vec<u64> {
    let mut budgets: Vec<u64> = CURVE.iter().map(|part| (asked as f64 * part).round() as u64).collect();
    budgets.retain(|budget| *budget <= asked || *budget < pages as u64);
    budgets.dedup();
    budgets
}

fn print(rows: &[Row]) -> anyhow::Result<()> {
    let mut table = output::table(
        &["budget of a run", "fetches", "requests", "fresh", "fresh, all pages alike", "out of date", ""],
        &[0, 1, 2, 3, 4, 5],
    );
    for row in rows {
        let forecast = &row.forecast;
        let note = match (row.target, row.asked) {
            (Some(target), _) => format!("the least for {:.1} %", 100.0 * target),
            (None, true) => "your budget".to_owned(),
            (None, false) => String::new(),
        };
        table.add_row([
            HumanCount(forecast.budget).to_string(),
            HumanCount(forecast.fetches).to_string(),
            HumanCount(row.requests).to_string(),
            format!("{:.1} %", 100.0 * forecast.freshness),
            format!("{:.1} %", 100.0 * forecast.freshness_unweighted),
            format!("{:.2} d", forecast.age_days),
            note,
        ]);
    }
    output::print(&table)
}

//! `archive freshness`: reports how fresh the copies are.

use std::time::Duration;

use archive_ask::query::Question;
use archive_choose::freshness::{self, Expected, Observed, PageModel, PartsShown};
use chrono::{DateTime, TimeDelta, Utc};
use indicatif::HumanCount;
use serde::Serialize;

use super::options::{ClockArgs, ReadArgs, duration};
use super::{Result, output};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Default grace periods for missed changes, in days: none, an hour, a day, a week, a month.
const BETAS_USUAL: [f64; 5] = [0.0, 1.0 / 24.0, 1.0, 7.0, 30.0];

/// Show how many copies are up to date, and for how long the others have been out of date.
///
/// Expected values follow from the change rates of pages, observed values from past fetches. All are weighted by
/// importance. Changes younger than a grace period β can be forgiven: a copy is (α,β)-current if, with a probability of
/// at least α, it has missed no change older than β.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive freshness
  archive freshness 'page site = \"example.org\" and type = html'
  archive freshness --alpha 0.95 --beta 12h --beta 3d --json")]
pub(crate) struct Args {
    /// Query that selects the pages
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    archive: ReadArgs,
    /// Probability α
    #[arg(long, default_value_t = 0.9, value_name = "P")]
    alpha: f64,
    /// Grace period β: younger changes are forgiven; may be repeated [default: 0, 1h, 1d, 7d, 30d]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    beta: Vec<Duration>,
    /// Length of the past for observed values
    #[arg(long, default_value = "90d", value_name = "TIME", value_parser = duration)]
    back: Duration,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    clock: ClockArgs,
}

#[derive(Serialize)]
struct FreshnessReport {
    alpha: f64,
    back_days: f64,
    expected: Expected,
    observed: Option<Observed>,
    /// The parts of the copies.
    parts: PartsShown,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !(0.0..=1.0).contains(&args.alpha) {
        refuse!("--alpha is a probability, from 0 to 1");
    }
    let now = args.clock.clock().now();
    let (store, access) = args.archive.open()?;
    let selection = match args.query.as_slice() {
        [] => None,
        words => Some(Question::pages_of(&store, access, &words.join(" "))?.into_iter().collect()),
    };
    let copies = freshness::copies_of(&store, selection.as_ref(), now)?;
    say_if_none(&copies, &args.query);
    let betas: Vec<f64> = match args.beta.as_slice() {
        [] => BETAS_USUAL.to_vec(),
        given => given.iter().map(|beta| beta.as_secs_f64() / SECONDS_PER_DAY).collect(),
    };
    let from = TimeDelta::from_std(args.back).ok().and_then(|back| now.checked_sub_signed(back));
    let from = from.unwrap_or(DateTime::<Utc>::MIN_UTC);
    let report = FreshnessReport {
        alpha: args.alpha,
        back_days: args.back.as_secs_f64() / SECONDS_PER_DAY,
        expected: freshness::expect(&copies, args.alpha, &betas),
        observed: freshness::observe(store.state(), &copies, from, &betas)?,
        parts: PartsShown::of(store.state(), &copies)?,
    };
    if args.json {
        output::json_line(&report)?;
    } else {
        print(&report)?;
    }
    Ok(())
}

/// Reports it if there are no copies.
pub(crate) fn say_if_none(copies: &[PageModel], words: &[String]) {
    if copies.is_empty() {
        let which = if words.is_empty() { "no page" } else { "no page that matches the query" };
        note!("{which} has a copy yet");
    }
}

fn print(report: &FreshnessReport) -> Result<()> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let days = |days: f64| format!("{days:.2} d");
    let observed =
        |value: &dyn Fn(&Observed) -> String| report.observed.as_ref().map_or("-".to_owned(), value);
    let expected = &report.expected;
    let mut table = output::table(&["", "expected now", "observed"], &[1, 2]);
    let count = HumanCount(expected.pages as u64).to_string();
    table.add_row(["pages with a copy", &count, ""]);
    table.add_row([
        "fresh copies",
        &percent(expected.freshness),
        &observed(&|observed| percent(observed.freshness)),
    ]);
    table.add_row(["fresh copies, all pages alike", &percent(expected.freshness_unweighted), ""]);
    table.add_row([
        "time since the first missed change",
        &days(expected.age_days),
        &observed(&|observed| days(observed.age_days)),
    ]);
    table.add_row(["time since copies were known to be fresh", &days(expected.copy_age_days), ""]);
    for (place, current) in expected.currency.iter().enumerate() {
        let seen = observed(&|observed| {
            observed.currency.get(place).map_or("-".to_owned(), |(_, share)| percent(*share))
        });
        let label = if current.beta_days > 0.0 {
            format!("no change missed that is older than {}", span(current.beta_days))
        } else {
            "no change missed".to_owned()
        };
        table.add_row([label, percent(current.share), seen]);
        let label = format!("  with a probability of at least {}", percent(report.alpha));
        table.add_row([label, percent(current.share_alpha), String::new()]);
    }
    let parts = &report.parts;
    if parts.parts > 0 {
        table.add_row(["parts of the copies", &HumanCount(parts.parts).to_string(), ""]);
        table.add_row(["  as the server gave them with their page", &percent(parts.right), ""]);
        let apart = format!("{} (at most {})", days(parts.age_days), days(parts.age_days_max));
        table.add_row(["  time between their capture and the page's", &apart, ""]);
    }
    let checks = observed(&|observed| {
        format!("{} of {} found a change", HumanCount(observed.changed), HumanCount(observed.checks))
    });
    let label = format!("later fetches in the last {}", span(report.back_days));
    table.add_row([label, String::new(), checks]);
    output::print(&table)
}

/// Formats days in a suitable unit.
fn span(days: f64) -> String {
    if days > 0.0 && days < 1.0 { format!("{:.0} h", days * 24.0) } else { format!("{days:.0} d") }
}

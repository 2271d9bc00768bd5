//! `archive freshness`: reports how fresh the copies are.

use std::path::Path;
use std::time::Duration;

use archive_ask::query::Question;
use archive_base::runs::{CopiesState, RunHistory};
use archive_choose::freshness::{
    self, DaysClass, DaysSpread, Expected, Grouping, Lives, Observed, PageModel, PartsShown,
};
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
///
/// Further tables show how old pages are (the time since their last known change), how long they stay the same (the mean
/// time between changes by their change rates, and the times between changes that fetches found), how long the pages
/// were there that are gone, and how many appeared and disappeared. There all pages count alike. Each run notes at its end
/// how many pages there are and how fresh their copies are; the last table shows up to 24 of these notes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive freshness
  archive freshness 'page site = \"example.org\" and type = html'
  archive freshness --by type                   # also for each type of pages; or by site, or by domain
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
    /// Also show the pages of each site, domain (org, co.uk) or type: the 50 with most pages
    #[arg(long, value_name = "site|domain|type")]
    by: Option<Grouping>,
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
    /// How long pages live and stay the same.
    lives: Lives,
    /// The copies at the ends of past runs, oldest first; empty for the pages of a query.
    curve: Vec<CurvePoint>,
}

/// Maximum number of runs whose ends are shown.
const CURVE_MAX: usize = 24;

#[derive(Serialize)]
struct CurvePoint {
    time: DateTime<Utc>,
    #[serde(flatten)]
    copies: CopiesState,
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
    let betas: Vec<f64> = match args.beta.as_slice() {
        [] => BETAS_USUAL.to_vec(),
        given => given.iter().map(|beta| beta.as_secs_f64() / SECONDS_PER_DAY).collect(),
    };
    let from = TimeDelta::from_std(args.back).ok().and_then(|back| now.checked_sub_signed(back));
    let from = from.unwrap_or(DateTime::<Utc>::MIN_UTC);
    let (copies, lives) = freshness::copies_and_lives(&store, selection.as_ref(), args.by, from, now)?;
    say_if_none(&copies, &args.query);
    let report = FreshnessReport {
        alpha: args.alpha,
        back_days: args.back.as_secs_f64() / SECONDS_PER_DAY,
        expected: freshness::expect(&copies, args.alpha, &betas),
        observed: freshness::observe(store.state(), &copies, from, &betas)?,
        parts: PartsShown::of(store.state(), &copies)?,
        lives,
        curve: if selection.is_some() { Vec::new() } else { curve(store.path())? },
    };
    if args.json {
        output::json_line(&report)?;
    } else {
        print(&report)?;
    }
    Ok(())
}

fn curve(archive: &Path) -> Result<Vec<CurvePoint>> {
    let curve = RunHistory::of(archive)?.curve(CURVE_MAX).into_iter();
    Ok(curve.map(|(time, copies)| CurvePoint { time, copies }).collect())
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
    output::print(&table)?;
    print_spreads(report)?;
    print_growth(&report.lives)?;
    print_curve(&report.curve)?;
    print_groups(&report.lives)
}

/// Prints the distributions of times.
fn print_spreads(report: &FreshnessReport) -> Result<()> {
    let all = &report.lives.all;
    let classes: Vec<String> = DaysClass::all().map(class_text).collect();
    let mut headings = vec!["pages and changes by time"];
    headings.extend(classes.iter().map(String::as_str));
    headings.extend(["median", "mean"]);
    let right: Vec<usize> = (1..headings.len()).collect();
    let mut table = output::table(&headings, &right);
    let spreads = [
        ("pages, since their last change", Some(&all.age_days)),
        ("pages, between changes by their change rate", Some(&all.lifetime_days)),
        (
            "changes, since the change found before",
            report.observed.as_ref().map(|observed| &observed.change_days),
        ),
        ("pages that are gone, for as long as they were there", Some(&all.life_days)),
    ];
    let spreads = spreads.map(|(label, spread)| Some((label, spread.filter(|spread| spread.count > 0)?)));
    if spreads.iter().all(Option::is_none) {
        return Ok(());
    }
    for (label, spread) in spreads.into_iter().flatten() {
        let mut row = vec![label.to_owned()];
        row.extend(spread.classes.iter().map(|count| HumanCount(*count).to_string()));
        row.extend([median(spread), format!("{:.2} d", spread.mean)]);
        table.add_row(row);
    }
    output::print(&table)
}

/// Prints how many pages appeared and disappeared.
fn print_growth(lives: &Lives) -> Result<()> {
    if lives.growth.is_empty() {
        return Ok(());
    }
    let mut table =
        output::table(&["from", "new pages", "a day", "gone", "a day", "there at the end"], &[1, 2, 3, 4, 5]);
    for part in &lives.growth {
        let each_day = |count: u64| format!("{:.1}", count as f64 / part.days);
        table.add_row([
            output::minute(part.from),
            HumanCount(part.new).to_string(),
            each_day(part.new),
            HumanCount(part.gone).to_string(),
            each_day(part.gone),
            HumanCount(part.pages).to_string(),
        ]);
    }
    output::print(&table)
}

/// Prints the copies at the ends of past runs.
fn print_curve(curve: &[CurvePoint]) -> Result<()> {
    if curve.len() < 2 {
        return Ok(());
    }
    let mut table =
        output::table(&["end of a run", "pages", "gone", "fresh copies", "out of date"], &[1, 2, 3, 4]);
    for CurvePoint { time, copies } in curve {
        table.add_row([
            output::minute(*time),
            HumanCount(copies.pages).to_string(),
            HumanCount(copies.gone).to_string(),
            format!("{:.1} %", 100.0 * copies.freshness),
            format!("{:.2} d", copies.age_days),
        ]);
    }
    output::print(&table)
}

/// Prints the pages of each site, domain or type.
fn print_groups(lives: &Lives) -> Result<()> {
    if lives.groups.is_empty() {
        return Ok(());
    }
    let headings =
        ["", "pages", "gone", "fresh copies", "unchanged for", "time between changes", "gone after"];
    let mut table = output::table(&headings, &[1, 2, 3, 4, 5, 6]);
    for group in &lives.groups {
        table.add_row([
            group.group.clone().unwrap_or_default(),
            HumanCount(group.pages).to_string(),
            HumanCount(group.gone).to_string(),
            format!("{:.1} %", 100.0 * group.freshness),
            median(&group.age_days),
            median(&group.lifetime_days),
            median(&group.life_days),
        ]);
    }
    output::print(&table)?;
    if lives.groups_left_out > 0 {
        note!("{} with fewer pages are left out", output::count(lives.groups_left_out as u64, "group"));
    }
    note!("times are medians; fresh copies are expected ones, all pages alike");
    Ok(())
}

fn median(spread: &DaysSpread) -> String {
    if spread.count == 0 { "-".to_owned() } else { format!("{:.2} d", spread.quartiles[1]) }
}

/// Describes a class of times.
pub(crate) fn class_text(class: DaysClass) -> String {
    match class.below {
        Some(below) if class.from <= 0.0 => format!("below {}", span(below)),
        Some(below) => format!("{} to {}", span(class.from), span(below)),
        None => format!("{} or more", span(class.from)),
    }
}

/// Formats days in a suitable unit.
pub(crate) fn span(days: f64) -> String {
    if days > 0.0 && days < 1.0 { format!("{:.0} h", days * 24.0) } else { format!("{days:.0} d") }
}

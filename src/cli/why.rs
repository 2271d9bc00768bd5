//! `archive why`: explains why a URL is or is not in the archive.

use archive_base::texts::Language;
use archive_books::ledger::Tested;
use archive_books::veil;
use archive_choose::{FocusReport, NextVisit, PartVisit, RobotsAnswer, StoredVisit, UrlStory, Weights};
use chrono::Utc;
use indicatif::HumanCount;

use super::options::ReadArgs;
use super::{Result, output};

/// Explain why a URL was or was not fetched: how it was found, which rule refused it, its budget, and when it is due.
///
/// Everything is read from the archive; the network is not used.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive why https://www.example.org/private/
  archive why https://www.example.org/ --fetches-per-day 5000
  archive why https://www.example.org/ --json
  archive why https://www.example.org/ --visits 1000 --json")]
pub(crate) struct Args {
    /// URL to explain
    url: String,
    #[command(flatten)]
    archive: ReadArgs,
    /// Daily budget of refreshes from which to compute when the page is due [default: what the archive fetched per day]
    #[arg(long, value_name = "N")]
    fetches_per_day: Option<f64>,
    /// Number of visits to show, newest first [default: 10]; with --json, only visits are printed, one object per line
    #[arg(long, value_name = "N")]
    visits: Option<usize>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Change rate that counts as none, per day: once in ten years.
const RARE: f64 = 1.0 / 3652.5;

/// Default number of visits shown.
const VISITS: usize = 10;

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.fetches_per_day.is_some_and(|number| !(number > 0.0 && number.is_finite())) {
        refuse!("--fetches-per-day has to be more than 0");
    }
    let (mut store, access) = args.archive.open()?;
    let id = super::find_shown(&store, &access, &args.url)?;
    veil::lay(&mut store, &access)?;
    let visits = || archive_choose::visits_of(&store, &access, id, args.visits.unwrap_or(VISITS));
    if args.json && args.visits.is_some() {
        for visit in visits()? {
            output::json_line(&visit)?;
        }
        return Ok(());
    }
    let (weights, now) = (Weights::kept(&store)?, Utc::now());
    let why =
        archive_choose::why(&store, &access, id, weights, args.fetches_per_day, now, Language::English)?;
    if args.json {
        output::json_line(&why)?;
    } else {
        print(&why)?;
        print_visits(&visits()?)?;
    }
    Ok(())
}

fn print(why: &UrlStory) -> Result<()> {
    say!("{} {}", why.url, why.verdict)?;
    output::line("")?;
    let mut table = output::table(&["", ""], &[]);
    let mut row = |name: &str, text: String| {
        table.add_row([name.to_owned(), text]);
    };
    row("found", found(why));
    for page in why.found.via.iter().skip(1) {
        row("", format!("by way of {page}"));
    }
    row("scope", why.scope.clone());
    row("robots.txt", why.robots.as_ref().map_or("not asked for yet".to_owned(), robots));
    for tested in &why.parameters {
        row("parameter", parameter(tested));
    }
    if let Some(decided) = &why.decided {
        row("decided", decided.clone());
    }
    if !why.missing_entities.is_empty() {
        row("entities", format!("not in the archive: {}", why.missing_entities.join(", ")));
    }
    if let Some(announced) = &why.announced {
        row("announced", announced.clone());
    }
    let spent = &why.spent;
    let pages = |number: u32| output::count(number.into(), "page");
    let pages = |fetched: u32, budget: Option<u32>| match budget {
        Some(budget) => format!("{} of {} fetched", HumanCount(fetched.into()), pages(budget)),
        None => pages(fetched) + " fetched",
    };
    row("host", format!("{}: {}", spent.host, pages(spent.host_pages, spent.host_budget)));
    let fetched = pages(spent.site_pages, spent.site_budget);
    row("site", format!("{}: {fetched}, importance {:.2}", spent.site, spent.site_importance));
    if let Some(last) = &why.last_fetch {
        let visit = &last.visit;
        let times = output::count(last.captures.into(), "time");
        row(
            "last fetch",
            format!("{}, {}; fetched {} in all", output::local_or_none(visit.time), what(visit), times),
        );
        for note in notes(visit) {
            row("", note);
        }
    }
    row(
        "importance",
        why.importance.map_or("-, as it is not a page".to_owned(), |number| format!("{number:.2}")),
    );
    if let Some(standing) = &why.topic {
        topic(standing).into_iter().zip(["topic", ""]).for_each(|(text, name)| row(name, text));
    }
    if let Some(next_visit) = &why.next_visit {
        let names = ["next due"].into_iter().chain(std::iter::repeat(""));
        due(next_visit).into_iter().zip(names).for_each(|(text, name)| row(name, text));
    }
    output::print(&table)
}

/// What tests of a parameter on the page's host have shown.
fn parameter(tested: &Tested) -> String {
    let Tested { name, same, different, is_dropped } = tested;
    let tests = output::count((same + different).into(), "test");
    let what = if *is_dropped { "left out of links" } else { "kept in links" };
    format!("{name}: {what}; without it the page was the same in {same} of {tests}")
}

/// How the last crawl judges a page by its topic; one or two lines.
fn topic(standing: &FocusReport) -> Vec<String> {
    let FocusReport { name, mode, weight, .. } = standing;
    let how = format!("{name}, {mode} with a weight of {weight}");
    let said = match (standing.probability, standing.promise) {
        (Some(probability), _) => format!("of it with a probability of {probability:.2}"),
        (None, Some(promise)) => format!("it promises {promise:.2} of 1"),
        (None, None) => "nothing is known of it".to_owned(),
    };
    let mut lines = vec![format!("{how}: {said}")];
    if !standing.parts.is_empty() {
        let parts = standing.parts.iter().map(|(part, says)| format!("{part} {says:+.1}"));
        lines.push(parts.collect::<Vec<_>>().join(", "));
    }
    lines
}

/// Prints the visits as a table, newest first.
fn print_visits(visits: &[StoredVisit]) -> Result<()> {
    if visits.is_empty() {
        return Ok(());
    }
    let mut table = output::table(&["visited", "answer", "found on", "importance", "robots.txt then"], &[3]);
    for visit in visits {
        let way = match &visit.via {
            Some(page) => format!("{page} ({})", visit.hops),
            None => "-".to_owned(),
        };
        let answer = [vec![what(visit)], notes(visit)].concat().join("; ");
        let cells = [
            output::local_or_none(visit.time),
            answer,
            way,
            visit.importance.map_or("-".to_owned(), |number| format!("{number:.2}")),
            visit.robots.as_ref().map_or("-".to_owned(), verdict),
        ];
        table.add_row(cells);
    }
    output::line("")?;
    output::print(&table)
}

fn what(visit: &StoredVisit) -> String {
    match (&visit.erased, &visit.error) {
        (Some(erased), _) => erased.clone(),
        (None, Some(error)) => format!("no answer: {error}"),
        (None, None) => format!("status {}", visit.status),
    }
}

/// Remarks on the response.
fn notes(visit: &StoredVisit) -> Vec<String> {
    let cut = visit.truncated.iter().map(|reason| format!("the body is cut: {reason}"));
    let ignored =
        visit.robots_ignored.iter().map(|origin| format!("fetched though robots.txt forbids it: {origin}"));
    cut.chain(visit.problems.iter().cloned()).chain(ignored).collect()
}

fn found(why: &UrlStory) -> String {
    let found = &why.found;
    match (found.seed, found.via.first()) {
        (true, _) => "it is a seed".to_owned(),
        (false, Some(page)) => {
            let links = output::count(found.depth.into(), "link");
            format!("{} on {page}, {links} from a seed ({})", output::local_or_none(found.time), found.hops)
        }
        (false, None) => "not known how".to_owned(),
    }
}

fn robots(robots: &RobotsAnswer) -> String {
    let delay =
        robots.crawl_delay.map_or(String::new(), |seconds| format!(", asks for a delay of {seconds} s"));
    format!("{} ({}, {}){delay}", verdict(robots), robots.url, output::local_or_none(robots.time))
}

/// Whether robots.txt allows the URL to be fetched, and why.
fn verdict(robots: &RobotsAnswer) -> String {
    let verdict = if robots.allowed { "allowed" } else { "forbidden" };
    let ground = match (robots.line, &robots.pattern) {
        (Some(line), Some(pattern)) => format!("by line {line}: {pattern}"),
        _ if robots.status == 200 => "as no line matches".to_owned(),
        _ => format!("as {}", robots.answer()),
    };
    format!("{verdict} {ground}")
}

/// When the next fetch is due, and why then; one line each.
fn due(next_visit: &NextVisit) -> Vec<String> {
    let failing = match next_visit.failing_since {
        Some(since) => format!("; it has brought nothing since {}", output::local_or_none(Some(since))),
        None => String::new(),
    };
    let when = match next_visit.due {
        Some(_) => output::local_or_none(next_visit.due) + &failing,
        None if next_visit.below_floor => "never: it weighs less than refreshes ask for (--floor)".to_owned(),
        None => "never: it changes too often to keep up with, never changes, or has no importance".to_owned(),
    };
    let place = match next_visit.before {
        0 => "no other page is more urgent".to_owned(),
        1 => "one other page is more urgent".to_owned(),
        before => {
            let estimated = if next_visit.estimated { " (estimated)" } else { "" };
            let of = output::count(next_visit.of, "page");
            format!("{} of {of} are more urgent{estimated}", HumanCount(before))
        }
    };
    let changes = match next_visit.changes_per_day {
        rate if rate >= 1.0 => format!("{rate:.1} times a day"),
        rate if rate < RARE => "less than once in ten years".to_owned(),
        rate => format!("once in {:.1} days", rate.recip()),
    };
    let budget = output::count(next_visit.fetches_per_day.round() as u64, "page");
    let mut lines = vec![when];
    if let Some(PartVisit { page, shortest_days, missing }) = &next_visit.part {
        let reason = if *missing { "as it is missing" } else { "by its own visits" };
        lines.push(format!(
            "a part: asked again with the pages that have it, such as {page}, but {reason} not within {shortest_days:.1} \
             days of its last fetch"
        ));
    }
    let of_page = if next_visit.part.is_some() { "the page is " } else { "" };
    lines.push(format!("{of_page}expected to change {changes}; {place}"));
    lines.push(format!(
        "by policy {}, if refreshes fetch {budget} a day (--fetches-per-day)",
        next_visit.policy
    ));
    lines
}

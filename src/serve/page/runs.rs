//! Runs: a list of all, and one of them, as it goes on.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Local, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::picture::Picture;
use super::{Asked, Problem, Reply, address, count, moment, page_of, utc};
use crate::access::Access;
use crate::ledger::Refusal;
use crate::runs::{NOT_TO_BE_KEPT, Run, Runs, Stage, Tallies, Tally};

pub(super) const SCRIPT: &str = include_str!("runs.js");

/// Runs on one page.
const LISTED: usize = 50;

/// The rules that keep a crawl out of traps.
const TRAPS: [Refusal; 4] =
    [Refusal::RepeatingPath, Refusal::LongPath, Refusal::QueryVariations, Refusal::SameContent];

/// The rules that keep it within its budgets.
const BUDGETS: [Refusal; 2] = [Refusal::PagesPerHost, Refusal::PagesPerSite];

/// Which run is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Which {
    /// The newest.
    Current,
    /// That of a number.
    Number(u64),
}

/// The run that an address is about.
pub(in crate::serve) fn told_run(path: &str) -> Option<Which> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    match path.strip_prefix("/runs/")? {
        "current" => Some(Which::Current),
        number => number.parse().ok().map(Which::Number),
    }
}

#[derive(Serialize)]
struct Row {
    id: u64,
    command: String,
    stage: Stage,
    end: Option<String>,
    #[serde(serialize_with = "utc")]
    began: Option<DateTime<Utc>>,
    seconds: f64,
    pages: u64,
    bytes: u64,
    errors: u64,
}

pub(super) fn list(asked: &Asked<'_>) -> Result<Reply, Problem> {
    let before = match asked.parameter("before") {
        "" => u64::MAX,
        number => number.parse().map_err(|_| Problem::Wrong(format!("“{number}” is no number of a run.")))?,
    };
    let runs = Runs::of(asked.opened.store.path())?;
    let older = runs.ids().partition_point(|id| *id < before);
    let mut rows = Vec::new();
    for id in runs.ids()[..older].iter().rev().take(LISTED) {
        if let Some((run, stage)) = runs.get(*id) {
            let Run { id, command, end, began, progress, .. } = run;
            let (seconds, pages, bytes, errors) =
                (progress.seconds, progress.pages, progress.bytes, progress.errors);
            rows.push(Row { id, command, stage, end, began: Some(began), seconds, pages, bytes, errors });
        }
    }
    let oldest = runs.ids()[..older].iter().rev().nth(LISTED).map(|id| id + 1);
    Ok(asked.reply("Runs", &rows, || {
        html! {
            h1 { "Runs" }
            @if rows.is_empty() { p { "No crawl or refresh has left an account of itself yet." } } @else {
                div .wide { table {
                    thead { tr {
                        th .number scope="col" { "Run" } th scope="col" { "Started by" } th scope="col" { "Began" } th .number scope="col" { "Took" }
                        th scope="col" { "End" } th .number scope="col" { "Pages" } th .number scope="col" { "Received" } th .number scope="col" { "Errors" }
                    } }
                    tbody { @for row in &rows { tr {
                        th .number scope="row" { a href=(format!("/runs/{}", row.id)) { (row.id) } }
                        td { (row.command) }
                        td { (moment(row.began)) }
                        td .number { (span(row.seconds)) }
                        td { (ending(row.stage, row.end.as_deref())) }
                        td .number { (count(row.pages)) }
                        td .number { (indicatif::HumanBytes(row.bytes)) }
                        td .number { (count(row.errors)) }
                    } } }
                } }
                @if let Some(before) = oldest { p { a href=(address("/runs", &[("before", &before.to_string())])) { "Older runs" } } }
            }
        }
    }))
}

/// A run as data.
#[derive(Serialize)]
struct Told {
    stage: Stage,
    #[serde(flatten)]
    run: Run,
}

pub(super) fn one(asked: &Asked<'_>, which: Which) -> Result<Reply, Problem> {
    let told = find(asked.opened.store.path(), &asked.opened.access, which)?;
    let told = told.ok_or_else(|| Problem::Missing("There is no such run.".to_owned()))?;
    let title = format!("Run {}", told.run.id);
    let reply = asked.reply(&title, &told, || {
        html! {
            @if told.stage == Stage::UnderWay || which == Which::Current { script src="/runs.js" defer {} }
            div #live { (shown(&told)) }
            @if told.stage == Stage::UnderWay {
                noscript { p { a .button href=(asked.path) { "Read the numbers again" } } }
            }
            p { a href="/runs" { "All runs" } }
        }
    });
    Ok(reply.with_script(None))
}

/// What is to be seen of a run now, and whether that is all there will be; nothing if it cannot be said.
pub(in crate::serve) fn told(archive: &Path, which: Which) -> Option<(String, bool)> {
    let told = find(archive, &Access::read(archive).ok()?, which).ok()??;
    let is_over = told.stage != Stage::UnderWay && which != Which::Current;
    Some((shown(&told).into_string(), is_over))
}

/// A run, with those of its examples that may be shown.
fn find(archive: &Path, access: &Access, which: Which) -> Result<Option<Told>, Problem> {
    let runs = Runs::of(archive)?;
    let id = match which {
        Which::Number(id) => Some(id),
        Which::Current => runs.ids().last().copied(),
    };
    let found = id.and_then(|id| runs.get(id));
    Ok(found.map(|(mut run, stage)| {
        for tally in run.errors.0.iter_mut().chain(&mut run.refused.0) {
            tally
                .examples
                .retain(|example| access.hiding(&example.url, example.time.timestamp_micros()).is_none());
        }
        Told { stage, run }
    }))
}

fn shown(told: &Told) -> Markup {
    let Told { stage, run } = told;
    let progress = &run.progress;
    let fact = |name: &str, value: String| html! { div { dt { (name) } dd { (value) } } };
    let is_under_way = *stage == Stage::UnderWay;
    html! {
        h1 { "Run " (run.id) ": " (run.command) }
        p {
            strong { (ending(*stage, run.end.as_deref())) } ". Began " (moment(Some(run.began)))
            ", " @match stage { Stage::UnderWay => "these numbers are of ", Stage::Ended => "ended ", Stage::BrokenOff => "was heard of last " }
            time datetime=(run.told.to_rfc3339()) { (run.told.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S")) } "."
        }
        @if let Some(error) = &run.error { p .mistake { (error) } }
        @if let Some(paused) = progress.paused.as_ref().filter(|_| is_under_way) { p .mistake { "Paused: " (paused) } }
        dl .facts {
            (fact("Pages", count(progress.pages)))
            @if is_under_way {
                (fact("Pages a second", format!("{:.1}", progress.pages_per_second)))
                (fact("Received a second", indicatif::HumanBytes(progress.bytes_per_second as u64).to_string()))
            }
            (fact("Received", indicatif::HumanBytes(progress.bytes).to_string()))
            (fact("Captures", count(progress.captures)))
            (fact("Of these, copies", count(progress.identical)))
            (fact("Errors", count(progress.errors)))
            (fact("Left out by rules", count(progress.refused)))
            (fact("URLs that wait", count(progress.queued)))
            @if is_under_way {
                (fact("Requests under way", count(progress.active as u64)))
                (fact("Hosts being asked", count(progress.hosts_active as u64)))
                (fact("Hosts left alone for politeness", count(progress.hosts_waiting as u64)))
                (fact("Room on the disk", indicatif::HumanBytes(progress.disk_free_bytes).to_string()))
            }
            (fact("Checkpoints", count(progress.checkpoints)))
            (fact("Took", span(progress.seconds)))
        }
        @if run.moments.len() > 1 { section { h2 { "Pages over time" } (pace(run)) } }
        section { h2 { "Budgets" } (budgets(run)) }
        @if !run.errors.0.is_empty() { section { h2 { "Errors" } (reasons(run.errors.0.iter())) } }
        @let groups = [
            ("Traps", chosen(&run.refused, |name| is_one(&TRAPS, name))),
            ("Over budget", chosen(&run.refused, |name| is_one(&BUDGETS, name))),
            ("Left out by other rules", chosen(&run.refused, |name| !is_one(&TRAPS, name) && !is_one(&BUDGETS, name))),
        ];
        @for (title, tallies) in groups {
            @if !tallies.is_empty() { section { h2 { (title) } (reasons(tallies.into_iter())) } }
        }
    }
}

fn is_one(rules: &[Refusal], name: &str) -> bool {
    rules.iter().any(|rule| rule.name() == name)
}

fn chosen(tallies: &Tallies, is_meant: impl Fn(&str) -> bool) -> Vec<&Tally> {
    tallies.0.iter().filter(|tally| is_meant(&tally.reason)).collect()
}

/// How a run ended, in words.
fn ending(stage: Stage, end: Option<&str>) -> &'static str {
    match (stage, end) {
        (Stage::UnderWay, _) => "Under way",
        (Stage::BrokenOff, _) => "Broken off: its program ended before it did",
        (Stage::Ended, Some("complete")) => "Complete",
        (Stage::Ended, Some("limit")) => "Its limit of pages was reached",
        (Stage::Ended, Some("time")) => "Its time was over",
        (Stage::Ended, Some("found")) => "Enough pages of the topic were found",
        (Stage::Ended, Some("harvest")) => "Too few pages were of the topic",
        (Stage::Ended, Some("stopped")) => "Stopped by somebody",
        (Stage::Ended, Some("failed")) => "Failed",
        (Stage::Ended, _) => "Ended",
    }
}

/// What a run may do, and how much of that it has done.
fn budgets(run: &Run) -> Markup {
    let (limits, progress) = (&run.limits, &run.progress);
    let [hosts, sites] = BUDGETS.map(|rule| run.refused.of(&[rule.name()]));
    let each = |limit: Option<u32>, left_out: u64| {
        html! { td { @match limit { Some(pages) => (count(pages.into())), None => "no limit" } } td { (count(left_out)) " URLs put off" } }
    };
    html! { div .wide { table {
        thead { tr { th scope="col" { "Of" } th scope="col" { "At most" } th scope="col" { "So far" } } }
        tbody {
            tr {
                th scope="row" { "Pages" }
                @match limits.pages {
                    Some(most) => { td { (count(most)) } td { progress max=(most.max(1)) value=(progress.pages.min(most)) aria-label="Share of the pages" {} " " (count(progress.pages)) } }
                    None => { td { "no limit" } td { (count(progress.pages)) } }
                }
            }
            tr {
                th scope="row" { "Time" }
                td { @match limits.seconds { Some(seconds) => (span(seconds)), None => "no limit" } } td { (span(progress.seconds)) }
            }
            tr { th scope="row" { "Pages of a host" } (each(limits.pages_per_host, hosts)) }
            tr { th scope="row" { "Pages of a site" } (each(limits.pages_per_site, sites)) }
        }
    } } }
}

fn reasons<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Markup {
    let mut tallies: Vec<&Tally> = tallies.collect();
    tallies.sort_by_key(|tally| std::cmp::Reverse(tally.count));
    html! { div .wide { table .reasons {
        thead { tr { th scope="col" { "Why" } th .number scope="col" { "Times" } th scope="col" { "For example" } } }
        tbody { @for tally in tallies { tr {
            th scope="row" { (because(&tally.reason)) }
            td .number { (count(tally.count)) }
            td .url { @for example in &tally.examples { div { a href=(page_of(&example.url)) { (example.url) } } } }
        } } }
    } } }
}

/// A reason, or what the rule of that name says.
fn because(reason: &str) -> &str {
    match Refusal::ALL.into_iter().find(|rule| rule.name() == reason) {
        Some(rule) => rule.sentence(),
        None if reason == NOT_TO_BE_KEPT => "the page asks not to be kept",
        None => reason,
    }
}

/// How many pages there were when.
fn pace(run: &Run) -> Markup {
    let points: Vec<(f64, f64)> = run.moments.iter().map(|at| (at.seconds, at.pages as f64)).collect();
    let most = points.last().map_or(0.0, |at| at.1);
    let title = format!("{} pages in {}", count(most as u64), span(run.progress.seconds));
    let to = run.moments.last().map_or(String::new(), |at| span(at.seconds));
    Picture { title: &title, most: format!("{} pages", count(most as u64)), from: "0 s".to_owned(), to }
        .line(&points, most)
}

/// A time that passed, for people.
fn span(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.0} s");
    }
    // What no clock says is none.
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    let (days, hours, minutes, seconds) = (time / 86_400, time / 3600 % 24, time / 60 % 60, time % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {seconds} s"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

//! Runs: a list of all, and a live page for each.

use std::path::Path;

use archive_base::access::{Access, Role};
use archive_base::runs::{NOT_TO_BE_KEPT, ReasonTally, RunHistory, RunReport, RunStage, Tallies};
use archive_books::ledger::Refusal;
use archive_books::order_plot::OrderPlot;
use chrono::{DateTime, Local, Utc};
use maud::{Markup, html};
use serde::Serialize;

use super::early;
use super::picture::Picture;
use super::{ArchiveRequest, PageProblem, Reply, Speech, utc};

pub(super) const SCRIPT: &str = include_str!("runs.js");

/// Maximum number of runs per page.
const LISTED: usize = 50;

/// Rules that keep a crawl out of traps.
const TRAPS: [Refusal; 4] =
    [Refusal::RepeatingPath, Refusal::LongPath, Refusal::QueryVariations, Refusal::SameContent];

/// Rules that keep a crawl within its budgets.
const BUDGETS: [Refusal; 2] = [Refusal::PagesPerHost, Refusal::PagesPerSite];

/// Which run to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Which {
    /// The newest run.
    Current,
    /// The run with this number.
    Number(u64),
}

/// The run in a path.
pub(in crate::serve) fn run_at(path: &str) -> Option<Which> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    match path.strip_prefix("/runs/")? {
        "current" => Some(Which::Current),
        number => number.parse().ok().map(Which::Number),
    }
}

#[derive(Serialize)]
struct RunRow {
    id: u64,
    command: String,
    stage: RunStage,
    end: Option<String>,
    #[serde(serialize_with = "utc")]
    began: Option<DateTime<Utc>>,
    seconds: f64,
    pages: u64,
    bytes: u64,
    errors: u64,
}

pub(super) fn list(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    let t = asked.speech;
    let before = match asked.parameter("before") {
        "" => u64::MAX,
        number => number
            .parse()
            .map_err(|_| PageProblem::Wrong(t.fill("“{}” is not the number of a run.", &[&number])))?,
    };
    let runs = RunHistory::of(asked.opened.store.path())?;
    let older = runs.ids().partition_point(|id| *id < before);
    let mut rows = Vec::new();
    for id in runs.ids()[..older].iter().rev().take(LISTED) {
        if let Some((run, stage)) = runs.get(*id) {
            let RunReport { id, command, end, began, progress, .. } = run;
            let (seconds, pages, bytes, errors) =
                (progress.seconds, progress.pages, progress.bytes, progress.errors);
            rows.push(RunRow { id, command, stage, end, began: Some(began), seconds, pages, bytes, errors });
        }
    }
    let oldest = runs.ids()[..older].iter().rev().nth(LISTED).map(|id| id + 1);
    Ok(asked.reply(t.say("Runs"), &rows, || {
        html! {
            h1 { (t.say("Runs")) }
            @if rows.is_empty() { p { (t.say("No crawl or refresh has been recorded yet.")) } } @else {
                div .wide role="region" aria-label=(t.say("Runs")) tabindex="0" { table {
                    thead { tr {
                        th .number scope="col" { (t.say("Run")) } th scope="col" { (t.say("Started by")) } th scope="col" { (t.say("Began")) } th .number scope="col" { (t.say("Took")) }
                        th scope="col" { (t.say("End")) } th .number scope="col" { (t.say("Pages")) } th .number scope="col" { (t.say("Received")) } th .number scope="col" { (t.say("Errors")) }
                    } }
                    tbody { @for row in &rows { tr {
                        th .number scope="row" { a href=(t.address(&format!("/runs/{}", row.id), &[])) { (row.id) } }
                        td { code { (row.command) } }
                        td { (t.moment(row.began)) }
                        td .number { (t.span(row.seconds)) }
                        td { (t.say(ending(row.stage, row.end.as_deref()))) }
                        td .number { (t.count(row.pages)) }
                        td .number { (t.bytes(row.bytes)) }
                        td .number { (t.count(row.errors)) }
                    } } }
                } }
                @if let Some(before) = oldest { p { a href=(t.address("/runs", &[("before", &before.to_string())])) { (t.say("Older runs")) } } }
            }
            p { a href=(t.address("/watches", &[])) { (t.say("Watches")) } }
        }
    }))
}

/// The page of a run as data.
#[derive(Serialize)]
struct RunPage<'a> {
    #[serde(flatten)]
    report: &'a RunData,
    /// Once it is over: the order in which it found the importance of the pages that it was the first to fetch.
    order: Option<&'a OrderPlot>,
}

/// A run as data.
#[derive(Serialize)]
struct RunData {
    stage: RunStage,
    #[serde(flatten)]
    run: RunReport,
}

pub(super) fn at(asked: &ArchiveRequest<'_>) -> Result<Reply, PageProblem> {
    run_at(asked.path).map_or_else(|| super::everywhere(asked), |which| one(asked, which))
}

fn one(asked: &ArchiveRequest<'_>, which: Which) -> Result<Reply, PageProblem> {
    let report = find(asked.opened.store.path(), &asked.opened.access, which)?;
    let t = asked.speech;
    let report = report.ok_or_else(|| PageProblem::Missing(t.say("There is no such run.").to_owned()))?;
    let title = t.fill("Run {}", &[&report.run.id]);
    let order = match early::has_order(&report.run, report.stage) {
        true => Some(early::order(asked, Some(&report.run))?),
        false => None,
    };
    let data = RunPage { report: &report, order: order.as_deref() };
    let reply = asked.reply(&title, &data, || {
        html! {
            @if report.stage == RunStage::UnderWay || which == Which::Current { script src="/runs.js" defer {} }
            div #live { (shown(t, &report)) }
            @if let Some(order) = &order { (early::order_section(t, order)) }
            @if report.stage == RunStage::UnderWay {
                noscript { p { a .button href=(t.address(asked.path, &[])) { (t.say("Read the numbers again")) } } }
            }
            p { a href=(t.address("/runs", &[])) { (t.say("All runs")) } }
        }
    });
    Ok(reply.with_script(None))
}

/// The current state of a run, and whether it is final; `None` if the run cannot be read.
pub(in crate::serve) fn report(
    archive: &Path,
    which: Which,
    t: Speech,
    role: Option<Role>,
) -> Option<(String, bool)> {
    let report = find(archive, &Access::read(archive).ok()?.to(role), which).ok()??;
    let is_over = report.stage != RunStage::UnderWay && which != Which::Current;
    Some((shown(t, &report).into_string(), is_over))
}

/// Reads a run, with only those examples that may be shown.
fn find(archive: &Path, access: &Access, which: Which) -> Result<Option<RunData>, PageProblem> {
    let runs = RunHistory::of(archive)?;
    let id = match which {
        Which::Number(id) => Some(id),
        Which::Current => runs.ids().last().copied(),
    };
    let found = id.and_then(|id| runs.get(id));
    Ok(found.map(|(mut run, stage)| {
        for tally in run.errors.0.iter_mut().chain(&mut run.refused.0).chain(&mut run.noticed.0) {
            tally
                .examples
                .retain(|example| access.hiding(&example.url, example.time.timestamp_micros()).is_none());
        }
        RunData { stage, run }
    }))
}

fn shown(t: Speech, report: &RunData) -> Markup {
    let RunData { stage, run } = report;
    let progress = &run.progress;
    let fact = |name: &'static str, value: String| html! { div { dt { (t.say(name)) } dd { (value) } } };
    let is_under_way = *stage == RunStage::UnderWay;
    html! {
        h1 { (t.fill("Run {}", &[&run.id])) ": " (run.command) }
        p {
            strong { (t.say(ending(*stage, run.end.as_deref()))) } ". "
            (t.markup(match stage {
                RunStage::UnderWay => "Began {}, these numbers are of {}.",
                RunStage::Ended => "Began {}, ended {}.",
                RunStage::BrokenOff => "Began {}, last report {}.",
            }, &[second(t, run.began), second(t, run.reported)]))
        }
        @if let Some(error) = &run.error { p .mistake lang="en" { (error) } }
        @if let Some(paused) = progress.paused.as_ref().filter(|_| is_under_way) {
            p .mistake { (t.markup("Paused: {}", &[html! { span lang="en" { (paused) } }])) }
        }
        dl .facts {
            (fact("Pages", t.count(progress.pages)))
            @if is_under_way {
                (fact("Pages a second", t.decimal(progress.pages_per_second, 1)))
                (fact("Received a second", t.bytes(progress.bytes_per_second as u64)))
            }
            (fact("Received", t.bytes(progress.bytes)))
            (fact("Captures", t.count(progress.captures)))
            (fact("Of these, copies", t.count(progress.identical)))
            (fact("Errors", t.count(progress.errors)))
            (fact("Left out by rules", t.count(progress.refused)))
            (fact("URLs waiting", t.count(progress.queued)))
            @if progress.read > 0 {
                (fact("Read, of the pages to be read", t.percent(progress.read as f64 / (progress.read + progress.queued) as f64, 1)))
                (fact("Importance that these have", t.percent(progress.gathered, 1)))
            }
            @if let Some(exchanged) = &progress.exchanged {
                @let each = |number: u64| number as f64 / progress.pages.max(1) as f64;
                (fact("Pages of other partitions", t.count(exchanged.abroad)))
                (fact("Links sent, a page", t.decimal(each(exchanged.links), 2)))
                (fact("Bytes sent, a page", t.decimal(each(exchanged.bytes), 1)))
            }
            @if is_under_way {
                (fact("Requests under way", t.count(progress.active as u64)))
                (fact("Hosts being asked", t.count(progress.hosts_active as u64)))
                (fact("Hosts left alone for politeness", t.count(progress.hosts_waiting as u64)))
                (fact("Room on the disk", t.bytes(progress.disk_free_bytes)))
            }
            (fact("Checkpoints", t.count(progress.checkpoints)))
            (fact("Took", t.span(progress.seconds)))
        }
        @if run.moments.len() > 1 { section { h2 { (t.say("Pages over time")) } (pace(t, run)) } }
        @if run.moments.iter().any(|at| at.gathered > 0.0) { section { h2 { (t.say("Importance found over time")) } (found(t, run)) } }
        @let clocks: Vec<(u64, f64)> = run.moments.iter().filter(|at| at.clock > 0.0).map(|at| (at.pages, at.clock)).collect();
        @if clocks.len() > 1 { section { h2 { (t.say("Convergence of importance")) } (early::clock_picture(t, &clocks)) } }
        section { h2 { (t.say("Budgets")) } (budgets(t, run)) }
        @if !run.errors.0.is_empty() { section { h2 { (t.say("Errors")) } (reasons(t, "Errors", run.errors.0.iter())) } }
        @if !run.noticed.0.is_empty() { section { h2 { (t.say("Fetched first for notices")) } (reasons(t, "Fetched first for notices", run.noticed.0.iter())) } }
        @let groups = [
            ("Traps", chosen(&run.refused, |name| is_one(&TRAPS, name))),
            ("Over budget", chosen(&run.refused, |name| is_one(&BUDGETS, name))),
            ("Left out by other rules", chosen(&run.refused, |name| !is_one(&TRAPS, name) && !is_one(&BUDGETS, name))),
        ];
        @for (title, tallies) in groups {
            @if !tallies.is_empty() { section { h2 { (t.say(title)) } (reasons(t, title, tallies.into_iter())) } }
        }
    }
}

fn is_one(rules: &[Refusal], name: &str) -> bool {
    rules.iter().any(|rule| rule.name() == name)
}

fn chosen(tallies: &Tallies, is_meant: impl Fn(&str) -> bool) -> Vec<&ReasonTally> {
    tallies.0.iter().filter(|tally| is_meant(&tally.reason)).collect()
}

/// Describes how a run ended.
fn ending(stage: RunStage, end: Option<&str>) -> &'static str {
    match (stage, end) {
        (RunStage::UnderWay, _) => "Under way",
        (RunStage::BrokenOff, _) => "Broken off: its program ended before it did",
        (RunStage::Ended, Some("complete")) => "Complete",
        (RunStage::Ended, Some("waiting")) => "Ended: what is left waits for its servers",
        (RunStage::Ended, Some("limit")) => "Its limit was reached",
        (RunStage::Ended, Some("time")) => "Its time limit was reached",
        (RunStage::Ended, Some("found")) => "Enough pages of the topic were found",
        (RunStage::Ended, Some("harvest")) => "Too few pages were of the topic",
        (RunStage::Ended, Some("stopped")) => "Stopped by somebody",
        (RunStage::Ended, Some("failed")) => "Failed",
        (RunStage::Ended, _) => "Ended",
    }
}

/// The limits of a run, and how much of them it has used.
fn budgets(t: Speech, run: &RunReport) -> Markup {
    let (limits, progress) = (&run.limits, &run.progress);
    let no_limit = t.say("no limit");
    let [hosts, sites] = BUDGETS.map(|rule| run.refused.of(&[rule.name()]));
    let each = |limits: [Option<String>; 2], left_out: u64| {
        let given: Vec<String> = limits.into_iter().flatten().collect();
        html! {
            td { @if given.is_empty() { (no_limit) } @else { (given.join(", ")) } }
            td { (t.counted(left_out, "{} URL put off", "{} URLs put off")) }
        }
    };
    let most = |pages: Option<u32>, bytes: Option<u64>| {
        let pages = pages.map(|pages| t.counted(pages.into(), "{} page", "{} pages"));
        [pages, bytes.map(|bytes| t.bytes(bytes))]
    };
    html! { div .wide role="region" aria-label=(t.say("Budgets")) tabindex="0" { table {
        thead { tr { th scope="col" { (t.say("Of")) } th scope="col" { (t.say("At most")) } th scope="col" { (t.say("So far")) } } }
        tbody {
            tr {
                th scope="row" { (t.say("Pages")) }
                @match limits.pages {
                    Some(most) => { td { (t.count(most)) } td { progress max=(most.max(1)) value=(progress.pages.min(most)) aria-label=(t.say("Share of the pages")) {} " " (t.count(progress.pages)) } }
                    None => { td { (no_limit) } td { (t.count(progress.pages)) } }
                }
            }
            tr {
                th scope="row" { (t.say("Time")) }
                td { @match limits.seconds { Some(seconds) => (t.span(seconds)), None => (no_limit) } } td { (t.span(progress.seconds)) }
            }
            @if let Some(bytes) = limits.bytes {
                tr { th scope="row" { (t.say("Received")) } td { (t.bytes(bytes)) } td { (t.bytes(progress.bytes)) } }
            }
            tr { th scope="row" { (t.say("A host")) } (each(most(limits.pages_per_host, limits.bytes_per_host), hosts)) }
            tr { th scope="row" { (t.say("A site")) } (each(most(limits.pages_per_site, limits.bytes_per_site), sites)) }
        }
    } } }
}

fn reasons<'a>(t: Speech, title: &'static str, tallies: impl Iterator<Item = &'a ReasonTally>) -> Markup {
    let mut tallies: Vec<&ReasonTally> = tallies.collect();
    tallies.sort_by_key(|tally| std::cmp::Reverse(tally.count));
    html! { div .wide role="region" aria-label=(t.say(title)) tabindex="0" { table .reasons {
        thead { tr { th scope="col" { (t.say("Why")) } th .number scope="col" { (t.say("Times")) } th scope="col" { (t.say("For example")) } } }
        tbody { @for tally in tallies { tr {
            th scope="row" { (because(t, &tally.reason)) }
            td .number { (t.count(tally.count)) }
            td .url { @for example in &tally.examples { div { a href=(t.page_of(&example.url)) { (example.url) } } } }
        } } }
    } } }
}

/// A reason, or the description of the rule with that name.
fn because(t: Speech, reason: &str) -> Markup {
    match Refusal::ALL.into_iter().find(|rule| rule.name() == reason) {
        Some(rule) => html! { (t.say(rule.sentence())) },
        None if reason == NOT_TO_BE_KEPT => html! { (t.say("the page asks not to be kept")) },
        None => html! { span lang="en" { (reason) } },
    }
}

/// A time to the second.
fn second(t: Speech, time: DateTime<Utc>) -> Markup {
    html! { time datetime=(time.to_rfc3339()) { (t.minute(time)) (time.with_timezone(&Local).format(":%S")) } }
}

/// A chart of pages over time.
fn pace(t: Speech, run: &RunReport) -> Markup {
    let points: Vec<(f64, f64)> = run.moments.iter().map(|at| (at.seconds, at.pages as f64)).collect();
    let most = points.last().map_or(0.0, |at| at.1);
    let pages = t.counted(most as u64, "{} page", "{} pages");
    let title = t.fill("{} in {}", &[&pages, &t.span(run.progress.seconds)]);
    let to = run.moments.last().map_or(String::new(), |at| t.span(at.seconds));
    Picture { title: &title, most: pages, from: t.span(0.0), to }.line(&points, most)
}

/// A chart of the share of importance that the pages read so far have.
fn found(t: Speech, run: &RunReport) -> Markup {
    let points: Vec<(f64, f64)> = run.moments.iter().map(|at| (at.seconds, at.gathered)).collect();
    let whole = t.percent(1.0, 0);
    let last = points.last().map_or(0.0, |at| at.1);
    let title = t.fill("{} of the importance in {}", &[&t.percent(last, 1), &t.span(run.progress.seconds)]);
    let to = run.moments.last().map_or(String::new(), |at| t.span(at.seconds));
    Picture { title: &title, most: whole, from: t.span(0.0), to }.line(&points, 1.0)
}

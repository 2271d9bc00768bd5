//! `archive stats`: shows totals of the archive.

use std::process::ExitCode;

use archive_ask::query::{Question, SiteRow};
use archive_base::access::Access;
use archive_books::ledger::{Credits, PutOff};
use archive_books::prepared::Prepared;
use archive_books::search::{self, Reader};
use archive_storage::Store;
use chrono::{DateTime, Utc};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::options::ArchiveArgs;
use super::output;
use super::query::ONLY_LINKED;

/// Number of sites listed.
const TOP_SITES: usize = 10;

/// Show the contents of the archive in numbers, and its most important sites.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Stats {
    urls: u64,
    fetched: u64,
    /// Responses, except to requests for robots.txt.
    captures: u64,
    /// Answers without content, such as 404 and 503.
    errors: u64,
    /// Requests without a response, except for robots.txt.
    failures: u64,
    /// Requests for robots.txt.
    robots: u64,
    /// Pages that the last run left to the next one, because their servers said "later" or did not answer.
    waiting: u64,
    hosts: u64,
    sites: u64,
    links: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    segments: usize,
    segment_bytes: u64,
    first: Option<String>,
    last: Option<String>,
    clock: f64,
    /// Captures that are not in the full-text index yet; `None` without an index.
    index_behind: Option<u64>,
    /// Captures that the index of older versions has not processed yet; `None` without such an index.
    versions_behind: Option<u64>,
    /// Whether queries have prepared columns of this checkpoint and need not read the tables.
    is_prepared: bool,
    moved_seeds: Vec<MovedSeed>,
    top_sites: Vec<TopSite>,
}

/// A seed that has moved: its scope extends to where it leads to.
#[derive(Serialize)]
struct MovedSeed {
    seed: String,
    to: String,
}

#[derive(Serialize)]
struct TopSite {
    site: String,
    importance: f64,
    /// Number of captured pages; 0 for a site that is only linked to.
    pages: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::read_only(&args.archive.path)?;
    let state = store.state();
    let credits = Credits::open(state)?;
    let totals = state.totals();
    let (mut fetches, mut failures, mut captures) = (0_u64, 0_u64, 0_u64);
    for host in state.host_records() {
        let host = host?;
        fetches += u64::from(host.captures);
        failures += u64::from(host.failures);
        captures += u64::from(host.contents);
    }
    let times = || state.segments().map(|(_, segment)| segment);
    let first =
        times().filter_map(|segment| segment.first_time).min().and_then(DateTime::from_timestamp_micros);
    let last =
        times().filter_map(|segment| segment.last_time).max().and_then(DateTime::from_timestamp_micros);
    let stats = Stats {
        urls: totals.urls,
        fetched: totals.fetched,
        captures,
        errors: fetches.saturating_sub(failures + captures),
        failures,
        robots: totals.captures.saturating_sub(fetches),
        waiting: PutOff::of(state)?.pages,
        hosts: totals.hosts,
        sites: totals.sites,
        links: totals.links,
        payload_bytes: totals.payload_bytes,
        stored_bytes: totals.stored_bytes,
        segments: state.segments().count(),
        segment_bytes: times().map(|segment| segment.bytes).sum(),
        first: first.map(output::utc),
        last: last.map(output::utc),
        clock: credits.pages().clock(),
        index_behind: index_behind(&store, search::FOLDER),
        versions_behind: index_behind(&store, search::VERSIONS_FOLDER),
        is_prepared: Prepared::open(&store)?.is_some(),
        moved_seeds: credits
            .scope()
            .moved()
            .map(|(seed, rule)| MovedSeed { seed: seed.to_owned(), to: rule.seed.clone() })
            .collect(),
        top_sites: top_sites(&store)?,
    };
    if args.json {
        output::json_line(&stats)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = output::table(&["", ""], &[1]);
    table.add_row(["captures", &HumanCount(stats.captures).to_string()]);
    table.add_row(["answers without content", &HumanCount(stats.errors).to_string()]);
    table.add_row(["fetches without an answer", &HumanCount(stats.failures).to_string()]);
    table.add_row(["fetches of robots.txt", &HumanCount(stats.robots).to_string()]);
    if stats.waiting > 0 {
        table.add_row(["pages put off by their servers", &HumanCount(stats.waiting).to_string()]);
    }
    table.add_row(["URLs fetched", &HumanCount(stats.fetched).to_string()]);
    table.add_row(["URLs only linked to", &HumanCount(stats.urls.saturating_sub(stats.fetched)).to_string()]);
    table.add_row(["hosts fetched or linked to", &HumanCount(stats.hosts).to_string()]);
    table.add_row(["sites fetched or linked to", &HumanCount(stats.sites).to_string()]);
    table.add_row(["links", &HumanCount(stats.links).to_string()]);
    table.add_row(["payloads received", &HumanBytes(stats.payload_bytes).to_string()]);
    table.add_row(["segments", &HumanCount(stats.segments as u64).to_string()]);
    table.add_row(["bytes in segments", &HumanBytes(stats.segment_bytes).to_string()]);
    table.add_row(["first capture", &output::local_or_none(first)]);
    table.add_row(["last capture", &output::local_or_none(last)]);
    if let Some(behind) = stats.index_behind.filter(|behind| *behind > 0) {
        table.add_row(["captures not in the full-text index yet", &HumanCount(behind).to_string()]);
    }
    if let Some(behind) = stats.versions_behind.filter(|behind| *behind > 0) {
        table.add_row(["captures not in the index of older versions yet", &HumanCount(behind).to_string()]);
    }
    for MovedSeed { seed, to } in &stats.moved_seeds {
        table.add_row([format!("seed {seed} leads to"), to.clone()]);
    }
    output::print(&table)?;
    let mut table = output::table(&["importance", "most important sites", "pages"], &[0, 2]);
    for site in &stats.top_sites {
        let pages = if site.pages == 0 { ONLY_LINKED.to_owned() } else { HumanCount(site.pages).to_string() };
        table.add_row([format!("{:.2}", site.importance), site.site.clone(), pages]);
    }
    output::line("")?;
    output::print(&table)?;
    Ok(ExitCode::SUCCESS)
}

fn index_behind(store: &Store, folder: &str) -> Option<u64> {
    let index = Reader::open(&store.path().join(folder)).ok()?;
    Some(store.state().totals().captures.saturating_sub(index.watermark()))
}

/// The most important sites with captures, then those that are only linked to.
fn top_sites(store: &Store) -> anyhow::Result<Vec<TopSite>> {
    let text = format!("site limit {TOP_SITES}");
    let question = Question::new(store, Access::read(store.path())?, &text, Utc::now())?;
    let (sites, _) = question.plan.select_sites(&question.rows)?;
    let top = |site: SiteRow| TopSite { site: site.name, importance: site.importance, pages: site.pages };
    Ok(sites.into_iter().map(top).collect())
}

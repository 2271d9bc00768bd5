//! `archive stats`: how much there is.

use std::process::ExitCode;

use archive::ledger::Credits;
use archive_storage::Store;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use comfy_table::CellAlignment;
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::options::ArchiveArgs;
use super::output;

/// Sites that are listed.
const TOP_SITES: usize = 10;

/// Show how much the archive holds, and its most important sites.
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
    captures: u64,
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
    top_sites: Vec<TopSite>,
}

#[derive(Serialize)]
struct TopSite {
    site: String,
    importance: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::read_only(&args.archive.path)?;
    let state = store.state();
    let credits = Credits::open(state)?;
    let totals = state.totals();
    let times = || state.segments().map(|(_, segment)| segment);
    let first =
        times().filter_map(|segment| segment.first_time).min().and_then(DateTime::from_timestamp_micros);
    let last =
        times().filter_map(|segment| segment.last_time).max().and_then(DateTime::from_timestamp_micros);
    let stats = Stats {
        urls: totals.urls,
        fetched: totals.fetched,
        captures: totals.captures,
        hosts: totals.hosts,
        sites: totals.sites,
        links: totals.links,
        payload_bytes: totals.payload_bytes,
        stored_bytes: totals.stored_bytes,
        segments: state.segments().count(),
        segment_bytes: times().map(|segment| segment.bytes).sum(),
        first: first.map(data_time),
        last: last.map(data_time),
        clock: credits.pages().clock(),
        top_sites: credits
            .top_sites(state, TOP_SITES)?
            .into_iter()
            .map(|(site, importance)| TopSite { site, importance })
            .collect(),
    };
    if args.json {
        output::json_line(&stats)?;
        return Ok(ExitCode::SUCCESS);
    }
    let span = |time: Option<DateTime<Utc>>| {
        time.map_or("-".to_owned(), |time| time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string())
    };
    let mut table = output::table(&["", ""]);
    output::align(&mut table, &[1], CellAlignment::Right);
    table.add_row(["URLs known", &HumanCount(stats.urls).to_string()]);
    table.add_row(["URLs fetched", &HumanCount(stats.fetched).to_string()]);
    table.add_row(["captures", &HumanCount(stats.captures).to_string()]);
    table.add_row(["hosts", &HumanCount(stats.hosts).to_string()]);
    table.add_row(["sites", &HumanCount(stats.sites).to_string()]);
    table.add_row(["links", &HumanCount(stats.links).to_string()]);
    table.add_row(["payloads received", &HumanBytes(stats.payload_bytes).to_string()]);
    table.add_row(["segments", &HumanCount(stats.segments as u64).to_string()]);
    table.add_row(["bytes in segments", &HumanBytes(stats.segment_bytes).to_string()]);
    table.add_row(["first capture", &span(first)]);
    table.add_row(["last capture", &span(last)]);
    output::print(&table)?;
    let mut table = output::table(&["importance", "most important sites"]);
    output::align(&mut table, &[0], CellAlignment::Right);
    for site in &stats.top_sites {
        table.add_row([format!("{:.2}", site.importance), site.site.clone()]);
    }
    output::line("")?;
    output::print(&table)?;
    Ok(ExitCode::SUCCESS)
}

fn data_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

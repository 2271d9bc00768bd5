//! `archive stats`: shows totals of the archive.

use archive::jobs::{self, MovedSeed, Stats};
use indicatif::{HumanBytes, HumanCount};

use super::options::ArchiveArgs;
use super::query::ONLY_LINKED;
use super::{Result, output};

/// Show the contents of the archive in numbers, and its most important sites.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let stats = jobs::stats(&args.archive.path)?;
    if args.json {
        return output::json_line(&stats);
    }
    print_totals(&stats)?;
    let mut table = output::table(&["importance", "most important sites", "pages"], &[0, 2]);
    for site in &stats.top_sites {
        let pages = if site.pages == 0 { ONLY_LINKED.to_owned() } else { HumanCount(site.pages).to_string() };
        table.add_row([format!("{:.2}", site.importance), site.site.clone(), pages]);
    }
    output::line("")?;
    output::print(&table)
}

fn print_totals(stats: &Stats) -> Result<()> {
    let mut table = output::table(&["", ""], &[1]);
    let mut row = |name: &str, text: String| table.add_row([name.to_owned(), text]);
    let count = |number: u64| HumanCount(number).to_string();
    row("captures", count(stats.captures));
    row("answers without content", count(stats.errors));
    row("fetches without an answer", count(stats.failures));
    row("fetches of robots.txt", count(stats.robots));
    if stats.waiting > 0 {
        row("pages put off by their servers", count(stats.waiting));
    }
    row("URLs fetched", count(stats.fetched));
    row("URLs only linked to", count(stats.urls.saturating_sub(stats.fetched)));
    row("hosts fetched or linked to", count(stats.hosts));
    row("sites fetched or linked to", count(stats.sites));
    row("links", count(stats.links));
    row("payloads received", HumanBytes(stats.payload_bytes).to_string());
    row("importance: damping", stats.damping.to_string());
    row("importance: window", stats.window.clone());
    row("segments", count(stats.segments as u64));
    row("bytes in segments", HumanBytes(stats.segment_bytes).to_string());
    row("first capture", output::local_or_none(stats.first));
    row("last capture", output::local_or_none(stats.last));
    for (behind, what) in [
        (stats.index_behind, "captures not in the full-text index yet"),
        (stats.versions_behind, "captures not in the index of older versions yet"),
    ] {
        if let Some(behind) = behind.filter(|behind| *behind > 0) {
            row(what, count(behind));
        }
    }
    for MovedSeed { seed, to } in &stats.moved_seeds {
        row(&format!("seed {seed} leads to"), to.clone());
    }
    output::print(&table)
}

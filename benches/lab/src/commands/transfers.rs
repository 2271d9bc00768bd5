//! `archive-lab transfers`: the cost of importance for a crawl.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_base::memory::peak_bytes;
use archive_lab::transfers;
use archive_math::graphs;
use serde::Serialize;

use crate::output;

/// Measure the cash transfers per second of the crawler's ledger, on one processor
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Basename of a graph in BV format, a folder with arcs.tsv.gz, or generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH", default_value = "generate:web:1000000:30")]
    graph: PathBuf,
    /// Number of visits [default: each page once]
    #[arg(long, value_name = "N")]
    visits: Option<u64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    pages: usize,
    visits: u64,
    transfers: u64,
    seconds: f64,
    link_seconds: f64,
    /// `None` if the run was too short to measure.
    transfers_per_second: Option<f64>,
    microseconds_per_page: Option<f64>,
    clock: f64,
    peak_bytes: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let web = graphs::open(&args.graph)?;
    let visits = args.visits.unwrap_or(web.pages() as u64);
    let found = transfers::run(web.as_ref(), visits);
    // Reading the links is not the ledger's work.
    let seconds = found.ledger_seconds();
    let line = Line {
        pages: found.pages,
        visits: found.visits,
        transfers: found.transfers,
        seconds: found.seconds,
        link_seconds: found.link_seconds,
        transfers_per_second: seconds.map(|seconds| found.transfers as f64 / seconds),
        microseconds_per_page: seconds.map(|seconds| 1e6 * seconds / found.visits.max(1) as f64),
        clock: found.clock,
        peak_bytes: peak_bytes(),
    };
    if args.json {
        output::json_line(&line)?;
    } else {
        let speed = match (line.transfers_per_second, line.microseconds_per_page) {
            (Some(rate), Some(page)) => format!("{rate:.3e} a second, {page:.3} microseconds a page"),
            _ => "too few to be measured; ask for more --visits".to_owned(),
        };
        output::line(&format!("{} pages, {} transfers: {speed}", line.pages, line.transfers))?;
    }
    Ok(ExitCode::SUCCESS)
}

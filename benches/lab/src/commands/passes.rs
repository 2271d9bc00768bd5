//! `archive-lab passes`: how good a crawl's importance is after each pass.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_lab::passes;
use archive_math::graphs;
use archive_math::graphs::random::Random;
use archive_math::importance::Policy;
use serde::Serialize;

use crate::output;

/// Measure how close a crawl's importance comes to the exact one, pass by pass, on a web that it discovers itself
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Basename of a graph in BV format, a folder with arcs.tsv.gz, or generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH", default_value = "generate:web:20000:10")]
    graph: PathBuf,
    /// Number of passes; the first one discovers the web
    #[arg(long, default_value_t = 6, value_name = "N")]
    passes: usize,
    /// Rounds over the stored links after each pass, without fetching
    #[arg(long, value_delimiter = ',', default_value = "0,4")]
    rounds: Vec<usize>,
    /// Number of random seeds
    #[arg(long, default_value_t = 10, value_name = "N")]
    seed_count: usize,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    rng: u64,
    /// Payment of the virtual page to an unread page, relative to --refresh
    #[arg(long, default_value_t = Policy::default().discovery)]
    discovery: u16,
    /// Payment of the virtual page to a read page, relative to --discovery
    #[arg(long, default_value_t = Policy::default().refresh)]
    refresh: u16,
    /// Length of the window, in turns of G
    #[arg(long, default_value_t = Policy::default().window)]
    window: f64,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    rounds: usize,
    pass: usize,
    clock: f64,
    l1: f64,
    l1_top: f64,
    tau: f64,
    top_100: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let graph = graphs::read(&args.graph)?.graph;
    let seeds = Random::new(args.rng).choose(graph.pages() as u32, args.seed_count);
    let policy =
        Policy { discovery: args.discovery, refresh: args.refresh, window: args.window, ..Policy::default() };
    let mut table = output::table(&["rounds", "pass", "G", "L1", "top tenth: L1", "tau", "of the top 100"]);
    for &rounds in &args.rounds {
        for quality in passes::run(&graph, &seeds, policy, args.passes, rounds)? {
            let line = Line {
                rounds,
                pass: quality.pass,
                clock: quality.clock,
                l1: quality.error.l1,
                l1_top: quality.error.l1_top,
                tau: quality.tau,
                top_100: quality.top,
            };
            if args.json {
                output::json_line(&line)?;
            }
            table.add_row([
                line.rounds.to_string(),
                line.pass.to_string(),
                format!("{:.1}", line.clock),
                format!("{:.3}", line.l1),
                format!("{:.3}", line.l1_top),
                format!("{:.3}", line.tau),
                line.top_100.to_string(),
            ]);
        }
    }
    if !args.json {
        output::print(table, &[0, 1, 2, 3, 4, 5, 6])?;
    }
    Ok(ExitCode::SUCCESS)
}

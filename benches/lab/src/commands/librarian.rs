//! `archive-lab librarian`: importance and the learned librarian, judged by the selections of librarians.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use archive_ask::review::learned::Hosts;
use archive_lab::librarian;
use serde_json::{Map, Value, json};

use crate::output;

/// Evaluate kinds of importance, and what is learned from librarians, by the hosts that librarians selected
///
/// A random share of the selected hosts is known in each run; each order of the other hosts is evaluated by the
/// selected ones among them. auc: probability that a selected host ranks above one that is not. ece: expected
/// calibration error of the probabilities, in 20 groups. first_1000: share of the unknown selected hosts among the
/// first 1,000.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab librarian --graph ukwa-1996-hosts --selected hosts.txt
  archive-lab librarian --graph ukwa-1996-hosts --selected hosts.txt --share 0.5 --repeat 5 --rng 1 --json")]
pub(crate) struct Args {
    /// Host graph: a folder with arcs.tsv.gz and urls.txt.gz
    #[arg(long, value_name = "DIR")]
    graph: PathBuf,
    /// File of selected hosts, one per line, compared without `www.`; may be gzipped
    #[arg(long, value_name = "FILE")]
    selected: PathBuf,
    /// Share of the selected hosts that are known
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    /// Number of runs, each with a new draw
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: u64,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    rng: u64,
    /// JSON lines, one per run
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(args.share > 0.0 && args.share < 1.0, "--share must be between 0 and 1");
    ensure!(args.repeat > 0, "--repeat must be positive");
    let recorded = archive_math::graphs::read(&args.graph)?;
    let names = recorded.urls.with_context(|| format!("{} has no urls.txt.gz", args.graph.display()))?;
    let hosts = Hosts::new(&names, &recorded.graph)?;
    let selected =
        librarian::selected(&args.selected).with_context(|| args.selected.display().to_string())?;
    let kinds = librarian::kinds(&hosts)?;
    let mut runs = Vec::new();
    for number in 0..args.repeat {
        let Some(run) = librarian::run(&hosts, &kinds, &selected, args.share, args.rng.wrapping_add(number))?
        else {
            bail!("all selected hosts of the graph are known: nothing is left to find");
        };
        if args.json {
            output::json_line(&line(number + 1, hosts.names().len(), &run))?;
        }
        runs.push(run);
    }
    if !args.json {
        print(&runs)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(number: u64, hosts: usize, run: &librarian::Run) -> Value {
    let each = |measure: fn(&librarian::Score) -> f64| -> Map<String, Value> {
        run.scores.iter().map(|(name, score)| ((*name).to_owned(), measure(score).into())).collect()
    };
    json!({
        "run": number,
        "hosts": hosts,
        "known": run.known,
        "unknown": run.unknown,
        "auc": each(|score| score.auc),
        "ece": each(|score| score.ece),
        "first_1000": each(|score| score.first_1000),
    })
}

/// Prints the means over the runs.
fn print(runs: &[librarian::Run]) -> anyhow::Result<()> {
    let mut table = output::table(&["order", "auc", "ece", "first 1,000"]);
    for (place, (name, _)) in runs[0].scores.iter().enumerate() {
        let mean = |measure: fn(&librarian::Score) -> f64| {
            runs.iter().map(|run| measure(&run.scores[place].1)).sum::<f64>() / runs.len() as f64
        };
        table.add_row([
            name.replace('_', " "),
            format!("{:.3}", mean(|score| score.auc)),
            format!("{:.4}", mean(|score| score.ece)),
            format!("{:.3}", mean(|score| score.first_1000)),
        ]);
    }
    output::print(table, &[1, 2, 3])
}

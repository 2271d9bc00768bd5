//! `archive-lab answers`: checks known answers.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_lab::answers::{self, Answer, Fading, Recrawl};
use archive_math::graphs;
use serde::Serialize;

use crate::output;

/// Check importance values against known answers
///
/// First come all methods on small graphs that are solved by hand; then the estimates of a crawl that visits an
/// unchanged graph again and again; then the importance that remains, window by window, of pages that lost all their
/// links.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive-lab answers
  archive-lab answers --graph graphs/hollins --crawls 20 --json")]
pub(crate) struct Args {
    /// Graph to crawl: basename of a graph in BV format, a folder with arcs.tsv.gz, or
    /// generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH", default_value = "generate:copy:2000:8")]
    graph: PathBuf,
    /// Number of crawls of the unchanged graph
    #[arg(long, default_value_t = 20, value_name = "N")]
    crawls: usize,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
enum Line<'a> {
    Known(&'a Answer),
    Recrawl(&'a Recrawl),
    Fading(&'a Fading),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let graph = graphs::read(&args.graph)?.graph.unweighted();
    let by_hand = answers::by_hand()?;
    let recrawls = answers::recrawls(&graph, args.crawls)?;
    let fading = answers::fading(&graph)?;
    if args.json {
        let lines = by_hand.iter().map(Line::Known).chain(recrawls.iter().map(Line::Recrawl));
        lines.chain(fading.iter().map(Line::Fading)).try_for_each(|line| output::json_line(&line))?;
        return Ok(ExitCode::SUCCESS);
    }
    for answers in by_hand.chunk_by(|a, b| a.known == b.known) {
        let mut table = output::table(&["method", "L1 error"]);
        for answer in answers {
            table.add_row([answer.method.to_owned(), format!("{:.1e}", answer.l1)]);
        }
        output::line(answers.first().map_or("", |answer| answer.known))?;
        output::print(table, &[1])?;
        output::line("")?;
    }
    let mut table =
        output::table(&["crawls", "L1 to exact", "L1 to before", "tau with before", "of the top 100"]);
    for recrawl in &recrawls {
        table.add_row([
            recrawl.crawls.to_string(),
            format!("{:.4}", recrawl.l1),
            format!("{:.4}", recrawl.moved),
            format!("{:.4}", recrawl.tau),
            recrawl.top_100.to_string(),
        ]);
    }
    output::line("")?;
    output::print(table, &[0, 1, 2, 3, 4])?;
    let mut table = output::table(&["window", "windows since the links went", "importance left"]);
    for step in &fading {
        table.add_row([step.window.to_owned(), step.windows.to_string(), format!("{:.3}", step.left)]);
    }
    output::line("")?;
    output::print(table, &[1, 2])?;
    Ok(ExitCode::SUCCESS)
}

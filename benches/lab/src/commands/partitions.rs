//! `archive-lab partitions`: what nodes send each other, by how sites are divided.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use archive_books::cluster::{Division, PARTITIONS_MAX};
use archive_lab::partitions::divided;
use archive_math::graphs;

use crate::output;

/// Measure the share of links that lead to other partitions, and how even partitions are, by how sites are divided
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with arcs.tsv.gz and urls.txt.gz, or basename of a graph in BV format with NAME.urls.gz
    #[arg(long, value_name = "PATH")]
    graph: PathBuf,
    /// Numbers of partitions
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,16", value_parser = clap::value_parser!(u16).range(1..=i64::from(PARTITIONS_MAX)))]
    partitions: Vec<u16>,
    /// What decides, as for `archive crawl --partition-by`; may be repeated [default: site and country]
    #[arg(long, value_name = "WHAT")]
    by: Vec<Division>,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let recorded = graphs::read(&args.graph)?;
    let by = match &args.by[..] {
        [] => vec![Division::Site, Division::Country(std::collections::BTreeMap::new())],
        by => by.to_vec(),
    };
    let mut table =
        output::table(&["by", "partitions", "links sent %", "of links between sites %", "largest"]);
    for by in &by {
        for &partitions in &args.partitions {
            let found = divided(&recorded, by, partitions);
            let found =
                found.with_context(|| format!("{}: its pages have no names", args.graph.display()))?;
            if args.json {
                output::json_line(&found)?;
            }
            table.add_row([
                found.by.to_string(),
                partitions.to_string(),
                format!("{:.2}", 100.0 * found.sent),
                format!("{:.1}", 100.0 * found.sent_between_sites),
                format!("{:.2}", found.largest),
            ]);
        }
    }
    if !args.json {
        output::print(table, &[1, 2, 3, 4])?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `archive-lab convergence`: how fast OPIC converges to the exact importance.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_base::memory::peak_bytes;
use archive_lab::convergence::{Curve, curves};
use archive_lab::plot::{Axis, Chart, Series};
use archive_lab::report::{Part, Report};
use archive_math::graphs;
use serde::Serialize;

use crate::output;

/// Measure OPIC's error against the exact vector, by visits per page (figures 2 and 3 of the paper)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Basename of a graph in BV format, a folder with arcs.tsv.gz, or generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH", default_value = "generate:copy:100000:10")]
    graph: PathBuf,
    /// Visits per page at which to measure
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    visits: Vec<usize>,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    rng: u64,
    /// Folder for the curves (SVG, CSV, one HTML page)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    graph: String,
    selection: &'a str,
    visits_per_page: usize,
    clock: f64,
    l1: f64,
    relative: f64,
    l1_top: f64,
    relative_top: f64,
    peak_bytes: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let graph = graphs::read(&args.graph)?.graph;
    let mut visits = args.visits.clone();
    visits.sort_unstable();
    visits.dedup();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let curves = curves(&graph, &visits, args.rng, threads)?;
    let name = args.graph.display().to_string();
    let lines: Vec<Line> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| (curve.name, point)))
        .map(|(selection, &(visits_per_page, clock, error))| Line {
            graph: name.clone(),
            selection,
            visits_per_page,
            clock,
            l1: error.l1,
            relative: error.relative,
            l1_top: error.l1_top,
            relative_top: error.relative_top,
            peak_bytes: peak_bytes(),
        })
        .collect();
    if args.json {
        lines.iter().try_for_each(output::json_line)?;
    } else {
        print_lines(&lines)?;
    }
    if let Some(folder) = &args.output {
        report(&name, &curves).write(folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_lines(lines: &[Line]) -> anyhow::Result<()> {
    let mut table = output::table(&[
        "selection",
        "visits/page",
        "G",
        "L1",
        "mean %",
        "top tenth: L1",
        "top tenth: mean %",
    ]);
    for line in lines {
        table.add_row([
            line.selection.to_owned(),
            line.visits_per_page.to_string(),
            format!("{:.1}", line.clock),
            format!("{:.4}", line.l1),
            format!("{:.2}", 100.0 * line.relative),
            format!("{:.4}", line.l1_top),
            format!("{:.2}", 100.0 * line.relative_top),
        ]);
    }
    output::print(table, &[1, 2, 3, 4, 5, 6])
}

/// Selects the error of a point that a curve shows.
type ErrorOf = fn(&archive_lab::convergence::Error) -> f64;

fn report(graph: &str, curves: &[Curve]) -> Report {
    let mut report = Report::new("convergence", "Convergence of OPIC");
    report.parts.push(Part::Text(format!(
        "Graph: {graph}. The error is the mean over pages of the difference to the exact share, in percent of it."
    )));
    let pages: [(&str, &str, ErrorOf); 2] = [
        ("convergence-all", "Convergence of OPIC, all pages", |error| error.relative),
        ("convergence-top", "Convergence of OPIC, the most important tenth", |error| error.relative_top),
    ];
    for (name, title, value) in pages {
        let series = curves
            .iter()
            .map(|curve| Series {
                name: curve.name.to_owned(),
                points: curve
                    .points
                    .iter()
                    .map(|(visits, _, error)| (*visits as f64, 100.0 * value(error)))
                    .collect(),
            })
            .collect();
        report.parts.push(Part::Chart(Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            x: Axis::logarithmic("visits a page"),
            y: Axis::logarithmic("error, %"),
            series,
        }));
    }
    report
}

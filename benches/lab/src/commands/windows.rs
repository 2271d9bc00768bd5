//! `archive-lab windows`: which window of the past estimates importance best while the web changes.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_lab::convergence::Selection;
use archive_lab::plot::{Axis, Chart, Series};
use archive_lab::report::{Part, Report, Table};
use archive_lab::windows::{self, Length, Setting};
use archive_math::graphs;
use serde::Serialize;

use crate::output;

/// Compare sizes and types of windows on changing graphs (figures 4 to 6 of the paper)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Basename of a graph in BV format, a folder with arcs.tsv.gz, or generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH", default_value = "generate:copy:20000:10")]
    graph: PathBuf,
    /// Percentages of the pages that change while the graph is crawled once
    #[arg(long, value_delimiter = ',', default_value = "0,0.1,1,3,10")]
    change: Vec<f64>,
    /// Choice of the page to visit next
    #[arg(long, value_enum, default_value = "greedy")]
    selection: Selection,
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

/// Figure 4: sizes; figure 6: types; and the length of the interpolated window.
const FIGURES: [(&str, &str, &[Length]); 3] = [
    (
        "window-sizes",
        "Influence of window sizes",
        &[Length::Variable(4), Length::Variable(8), Length::Variable(16), Length::Interpolation(4.0)],
    ),
    (
        "window-types",
        "Influence of window types",
        &[Length::Variable(8), Length::Fixed(8.0), Length::ImprovedFixed(4.0), Length::Interpolation(4.0)],
    ),
    (
        "interpolation-lengths",
        "Length of the interpolated window",
        &[
            Length::Interpolation(1.0),
            Length::Interpolation(2.0),
            Length::Interpolation(4.0),
            Length::Interpolation(8.0),
            Length::Interpolation(16.0),
            Length::All,
        ],
    ),
];

#[derive(Serialize)]
struct Line {
    figure: &'static str,
    window: String,
    change_percent: f64,
    relative: f64,
    relative_top: f64,
    l1: f64,
    measures: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let graph = graphs::read(&args.graph)?.graph;
    let setting = Setting { selection: args.selection, seed: args.rng, ..Setting::default() };
    let mut lines = Vec::new();
    let runs = FIGURES.iter().map(|(_, _, lengths)| lengths.len()).sum::<usize>() * args.change.len();
    let bar = output::counting(runs as u64, "simulated crawls");
    for (figure, _, lengths) in FIGURES {
        for &length in lengths {
            for &change_percent in &args.change {
                let outcome = windows::run(&graph, length, change_percent / 100.0, &setting)?;
                let line = Line {
                    figure,
                    window: length.name(),
                    change_percent,
                    relative: outcome.error.relative,
                    relative_top: outcome.error.relative_top,
                    l1: outcome.error.l1,
                    measures: outcome.measures,
                };
                if args.json {
                    output::json_line(&line)?;
                }
                lines.push(line);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    if !args.json {
        print_lines(&lines)?;
    }
    if let Some(folder) = &args.output {
        report(&args.graph.display().to_string(), args.selection, &lines).write(folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_lines(lines: &[Line]) -> anyhow::Result<()> {
    let mut table =
        output::table(&["figure", "window", "change %", "error %", "top tenth %", "L1", "measures"]);
    for line in lines {
        table.add_row([
            line.figure.to_owned(),
            line.window.clone(),
            line.change_percent.to_string(),
            format!("{:.2}", 100.0 * line.relative),
            format!("{:.2}", 100.0 * line.relative_top),
            format!("{:.4}", line.l1),
            format!("{:.1}", line.measures),
        ]);
    }
    output::print(table, &[2, 3, 4, 5, 6])
}

fn report(graph: &str, selection: Selection, lines: &[Line]) -> Report {
    let mut report = Report::new("windows", "Windows under change");
    report.parts.push(Part::Text(format!(
        "Graph: {graph}, pages selected: {}. A round is as many visits as there are pages; a changing page has its links \
         in halved or doubled.",
        selection.name()
    )));
    for (figure, title, lengths) in FIGURES {
        let of = |length: &Length| -> Vec<&Line> {
            let name = length.name();
            lines.iter().filter(|line| line.figure == figure && line.window == name).collect()
        };
        let series = lengths
            .iter()
            .map(|length| Series {
                name: length.name(),
                points: of(length).iter().map(|line| (line.change_percent, 100.0 * line.relative)).collect(),
            })
            .collect();
        report.parts.push(Part::Chart(Chart {
            name: figure.to_owned(),
            title: title.to_owned(),
            x: Axis::linear("pages that change in a round, %"),
            y: Axis::linear("error, %"),
            series,
        }));
        let row = |length: &Length| {
            let line = of(length).first().copied()?;
            Some(vec![line.window.clone(), format!("{:.1}", line.measures)])
        };
        report.parts.push(Part::Table(Table {
            name: format!("{figure}-measures"),
            title: "Measures a page".to_owned(),
            columns: vec!["window".to_owned(), "measures".to_owned()],
            rows: lengths.iter().filter_map(row).collect(),
        }));
    }
    report
}

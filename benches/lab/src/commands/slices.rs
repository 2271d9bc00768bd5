//! `archive-lab slices`: time of an iteration by memory size.

use std::path::PathBuf;
use std::process::ExitCode;

use archive_base::memory::{parse_bytes, peak_bytes};
use archive_lab::plot::{Axis, Chart, Series};
use archive_lab::report::{Part, Report, Table};
use archive_math::graphs::slices::{SliceBuilder, Sliced, SlicedMethod};
use archive_math::graphs::{HostWeb, LinkSource as _};
use serde::Serialize;

use crate::output;

/// Measure the time of an iteration with the graph on disk in slices (table 1 of the Xyleme paper)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Pages of the generated webs (20 and 40 million in the paper)
    #[arg(long, value_delimiter = ',', default_value = "1000000,2000000,4000000")]
    pages: Vec<u32>,
    /// Links per page
    #[arg(long, default_value_t = 10.0)]
    links: f64,
    /// Memory for vectors (80MB and 40MB in the paper)
    #[arg(long, value_delimiter = ',', default_value = "8MB,4MB", value_parser = parse_bytes)]
    memory: Vec<usize>,
    /// Number of iterations to average over
    #[arg(long, default_value_t = 3)]
    iterations: u32,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Folder for the slices [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Folder for the table and curves (SVG, CSV, one HTML page)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    ranking: &'static str,
    pages: usize,
    links: u64,
    memory: usize,
    threads: usize,
    slices: usize,
    slice_bytes: u64,
    seconds_per_iteration: f64,
    bytes_read_per_iteration: u64,
    peak_bytes: Option<u64>,
}

const RANKINGS: [(&str, SlicedMethod); 3] = [
    ("direct", SlicedMethod::Direct),
    ("inverse", SlicedMethod::Inverse),
    ("combined", SlicedMethod::Combined),
];

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    for &pages in &args.pages {
        let web = HostWeb::new(pages, args.links, 1);
        for &memory in &args.memory {
            for (ranking, which) in RANKINGS {
                let line = measure(args, &web, memory, ranking, which)?;
                if args.json {
                    output::json_line(&line)?;
                }
                lines.push(line);
            }
        }
    }
    if !args.json {
        let mut table = output::table(&COLUMNS);
        lines.iter().for_each(|line| {
            table.add_row(row(line));
        });
        output::print(table, &[1, 2, 3, 4, 5, 6])?;
    }
    if let Some(folder) = &args.output {
        report(&lines).write(folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(
    args: &Args,
    web: &HostWeb,
    memory: usize,
    ranking: &'static str,
    which: SlicedMethod,
) -> anyhow::Result<Line> {
    let temporary = tempfile::tempdir()?;
    let folder = args.work.as_deref().unwrap_or(temporary.path());
    let mut builder = SliceBuilder::new(folder, web.pages(), memory, which.vectors(), args.threads)?;
    let mut buffer = Vec::new();
    for page in 0..web.pages() as u32 {
        builder.push(web.links(page, &mut buffer))?;
    }
    let matrix = builder.finish()?;
    let options = Sliced {
        which,
        damping: 0.85,
        tolerance: 0.0,
        iterations_max: args.iterations.max(1),
        threads: args.threads,
        gauss_seidel: true,
    };
    let outcome = options.run(&matrix, folder, None)?;
    Ok(Line {
        ranking,
        pages: matrix.pages(),
        links: matrix.links(),
        memory,
        threads: args.threads,
        slices: matrix.slices(),
        slice_bytes: matrix.bytes(),
        seconds_per_iteration: outcome.seconds / f64::from(outcome.iterations),
        bytes_read_per_iteration: outcome.bytes_read / u64::from(outcome.iterations),
        peak_bytes: peak_bytes(),
    })
}

const COLUMNS: [&str; 7] =
    ["ranking", "pages", "links", "memory MB", "slices", "s/iteration", "MB read/iteration"];

fn row(line: &Line) -> Vec<String> {
    vec![
        line.ranking.to_owned(),
        line.pages.to_string(),
        line.links.to_string(),
        format!("{:.0}", line.memory as f64 / 1e6),
        line.slices.to_string(),
        format!("{:.3}", line.seconds_per_iteration),
        format!("{:.0}", line.bytes_read_per_iteration as f64 / 1e6),
    ]
}

fn report(lines: &[Line]) -> Report {
    let mut report = Report::new("slices", "Ranking time per iteration against memory");
    report.parts.push(Part::Table(Table {
        name: "slices-times".to_owned(),
        title: "Seconds an iteration".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: lines.iter().map(row).collect(),
    }));
    let mut series: Vec<Series> = Vec::new();
    for line in lines {
        let name = format!("{}, {:.0} MB", line.ranking, line.memory as f64 / 1e6);
        let point = (line.pages as f64 / 1e6, line.seconds_per_iteration);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    report.parts.push(Part::Chart(Chart {
        name: "slices".to_owned(),
        title: "Time of an iteration".to_owned(),
        x: Axis::linear("million pages"),
        y: Axis::linear("seconds"),
        series,
    }));
    report
}

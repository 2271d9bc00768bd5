//! `archive-lab orders`: which crawl order downloads important pages early.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use archive_base::memory::peak_bytes;
use archive_lab::agreement::visited_tau;
use archive_lab::hosts::{self, BetweenHosts};
use archive_lab::orders::{self, Gathered, OrderKind, Seeds};
use archive_lab::plot::{Axis, Chart, Series};
use archive_lab::report::{Part, Report, Table};
use archive_math::graphs;
use archive_math::graphs::random::Random;
use serde::Serialize;

use crate::output;

/// Number of points of a curve.
const CURVE_POINTS: usize = 100;

/// Compare crawl orders on a graph
///
/// Orders: random, cycle, breadth, depth, backlinks, pagerank, opic[@M] (or cash), opic-discovery[@M], fpr[@M], endowed[@M],
/// rankmass[@WINDOW_PERCENT], truth, ideal. M is the weight of a link between hosts.
///
/// The output has the share of the whole graph's PageRank on downloaded pages, as a mean over the crawl (auc) and when
/// given shares of all pages are downloaded, and Kendall's tau between the PageRank of the part downloaded by then,
/// computed from its links alone, and that of the same pages in the whole graph.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Basename of a graph in BV format, a folder with arcs.tsv.gz, or generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH")]
    graph: PathBuf,
    /// Hosts of the pages: 32-bit numbers, or one name or URL per line [default: from the URLs, if there are any]
    #[arg(long, value_name = "PATH")]
    hosts: Option<PathBuf>,
    /// Crawl orders
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "breadth,backlinks,opic,fpr,fpr@100,rankmass@5,endowed,truth"
    )]
    order: Vec<OrderKind>,
    /// Number of seeds
    #[arg(long, default_value_t = 100, value_name = "N")]
    seed_count: usize,
    /// Choice of seeds
    #[arg(long, value_enum, default_value = "random")]
    seeds: Seeds,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    rng: u64,
    /// Number of repetitions with rng, rng + 1, …; the mean is printed
    #[arg(long, default_value_t = 1, value_name = "N")]
    repeat: u64,
    /// Number of pages after which each crawl stops
    #[arg(long, value_name = "N")]
    pages: Option<usize>,
    /// Only time the orders, without comparing them with the true PageRank; a generated web need not fit into memory
    #[arg(long, conflicts_with_all = ["hosts", "output"])]
    blind: bool,
    /// Folder for the curves (SVG, CSV, one HTML page)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Default, Serialize)]
struct Line {
    order: String,
    seeds: usize,
    rng: u64,
    repeat: u64,
    downloaded: usize,
    pages: usize,
    seconds: f64,
    operations: u64,
    auc: f64,
    share_1: f64,
    share_2: f64,
    share_5: f64,
    share_10: f64,
    share_25: f64,
    share_50: f64,
    tau_10: f64,
    tau_50: f64,
    hosts: Option<usize>,
    links_between_hosts: Option<f64>,
    covered: Option<f64>,
    peak_bytes: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.blind {
        return blind(args);
    }
    let mut recorded = graphs::read(&args.graph)?;
    if let Some(path) = &args.hosts {
        recorded.hosts = Some(hosts::read(path, recorded.graph.pages())?);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let importance = orders::true_importance(&recorded.graph, threads).context("PageRank")?;
    let between = BetweenHosts::of(&recorded, &importance);
    let mut lines = Vec::new();
    let (mut gathered, mut times) = (Vec::new(), Vec::new());
    for &kind in &args.order {
        let (mut line, curves) = measure(args, kind, &recorded, &importance)?;
        line.hosts = between.map(|between| between.hosts);
        line.links_between_hosts = between.map(|between| between.links);
        gathered.push(Series { name: line.order.clone(), points: curves.gathered });
        times.push(Series { name: line.order.clone(), points: curves.times });
        if args.json {
            output::json_line(&line)?;
        }
        lines.push(line);
    }
    if !args.json {
        print_lines(&lines)?;
        between.map_or(Ok(()), |between| output::line(&about(&between)))?;
    }
    if let Some(folder) = &args.output {
        let mut report = report(args, &lines, gathered, times);
        report.parts.extend(between.map(|between| Part::Text(about(&between))));
        report.write(folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes how much the links between hosts can matter for an order on this graph.
fn about(between: &BetweenHosts) -> String {
    format!(
        "{} hosts. {:.2} % of the links lead to another host, {:.0} % of these to one page. They reach {:.1} % of the pages, which \
         have {:.1} % of the PageRank. {:.1} % of the pages have links of both kinds, where M decides.",
        between.hosts,
        100.0 * between.links,
        100.0 * between.to_one,
        100.0 * between.targets,
        100.0 * between.importance,
        100.0 * between.both,
    )
}

#[derive(Serialize)]
struct Timing {
    order: String,
    seeds: usize,
    pages: usize,
    downloaded: usize,
    seconds: f64,
    operations: u64,
    operations_per_second: f64,
    peak_bytes: Option<u64>,
}

fn blind(args: &Args) -> anyhow::Result<ExitCode> {
    let web = graphs::open(&args.graph)?;
    let pages = web.pages();
    for &kind in &args.order {
        if matches!(kind, OrderKind::Truth | OrderKind::Ideal) || args.seeds == Seeds::Top {
            bail!("blind, nobody knows the true PageRank");
        }
        let seeds = Random::new(args.rng).choose(pages as u32, args.seed_count);
        let pages_max = args.pages.unwrap_or(usize::MAX);
        let crawl = kind.crawl(web.as_ref(), (args.rng, &[]), &seeds, pages_max);
        let timing = Timing {
            order: kind.to_string(),
            seeds: seeds.len(),
            pages,
            downloaded: crawl.downloads.len(),
            seconds: crawl.seconds,
            operations: crawl.operations,
            operations_per_second: crawl.operations as f64 / crawl.seconds,
            peak_bytes: peak_bytes(),
        };
        if args.json {
            output::json_line(&timing)?;
        } else {
            output::line(&format!(
                "{}: {} pages and {} links in {:.1} s",
                timing.order, timing.downloaded, timing.operations, timing.seconds
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Curves over the share of downloaded pages.
#[derive(Default)]
struct Curves {
    gathered: Vec<(f64, f64)>,
    times: Vec<(f64, f64)>,
}

/// Returns the measures and the curves of the last repetition.
fn measure(
    args: &Args,
    kind: OrderKind,
    recorded: &graphs::Recorded,
    importance: &[f64],
) -> anyhow::Result<(Line, Curves)> {
    let repeat = args.repeat.max(1);
    let mean = 1.0 / repeat as f64;
    let mut line = Line {
        order: kind.to_string(),
        seeds: args.seed_count,
        rng: args.rng,
        repeat,
        pages: importance.len(),
        ..Line::default()
    };
    let mut curves = Curves::default();
    for rng in args.rng..args.rng + repeat {
        let seeds = args.seeds.choose(args.seed_count, rng, importance);
        let crawl = kind.crawl(recorded, (rng, importance), &seeds, args.pages.unwrap_or(usize::MAX));
        let Gathered { auc, shares: [one, two, five, ten, quarter, half] } =
            orders::gathered(&crawl.downloads, importance);
        let share = |downloaded: usize| downloaded as f64 / importance.len() as f64;
        curves = Curves {
            gathered: orders::curve(&crawl.downloads, importance, CURVE_POINTS),
            times: crawl.times.iter().map(|&(downloaded, seconds)| (share(downloaded), seconds)).collect(),
        };
        line.downloaded = crawl.downloads.len();
        line.operations = crawl.operations;
        line.covered = crawl.covered;
        line.seconds += mean * crawl.seconds;
        line.auc += mean * auc;
        line.share_1 += mean * one;
        line.share_2 += mean * two;
        line.share_5 += mean * five;
        line.share_10 += mean * ten;
        line.share_25 += mean * quarter;
        line.share_50 += mean * half;
        let tau = |part: f64| {
            let visited = (part * importance.len() as f64).ceil() as usize;
            let visited = &crawl.downloads[..visited.min(crawl.downloads.len())];
            visited_tau(&recorded.graph, visited, importance)
        };
        line.tau_10 += mean * tau(0.1)?;
        line.tau_50 += mean * tau(0.5)?;
    }
    line.peak_bytes = peak_bytes();
    Ok((line, curves))
}

const COLUMNS: [&str; 12] =
    ["order", "auc", "1 %", "2 %", "5 %", "10 %", "25 %", "50 %", "tau 10 %", "tau 50 %", "links", "seconds"];

/// Where the table for people has one more column.
const DOWNLOADED: usize = 10;

fn row(line: &Line) -> Vec<String> {
    let shares =
        [line.auc, line.share_1, line.share_2, line.share_5, line.share_10, line.share_25, line.share_50];
    let mut row = vec![line.order.clone()];
    row.extend(shares.map(|share| format!("{share:.3}")));
    row.extend([format!("{:.3}", line.tau_10), format!("{:.3}", line.tau_50)]);
    row.extend([line.operations.to_string(), format!("{:.3}", line.seconds)]);
    row
}

fn print_lines(lines: &[Line]) -> anyhow::Result<()> {
    let mut headings = COLUMNS.to_vec();
    headings.insert(DOWNLOADED, "downloaded");
    let mut table = output::table(&headings);
    for line in lines {
        let mut row = row(line);
        row.insert(DOWNLOADED, line.downloaded.to_string());
        table.add_row(row);
    }
    output::print(table, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
}

fn report(args: &Args, lines: &[Line], gathered: Vec<Series>, times: Vec<Series>) -> Report {
    let mut report = Report::new("orders", "Crawl orders");
    report.parts.push(Part::Text(format!(
        "Graph: {}, {} seeds. Share of the whole graph's PageRank (damping 0.85) on downloaded pages.",
        args.graph.display(),
        args.seed_count
    )));
    report.parts.push(Part::Chart(Chart {
        name: "orders".to_owned(),
        title: "PageRank gathered".to_owned(),
        x: Axis::linear("share of pages downloaded"),
        y: Axis::linear("share of PageRank gathered"),
        series: gathered,
    }));
    report.parts.push(Part::Chart(Chart {
        name: "orders-time".to_owned(),
        title: "Running time".to_owned(),
        x: Axis::linear("share of pages downloaded"),
        y: Axis::logarithmic("seconds"),
        series: times,
    }));
    report.parts.push(Part::Table(Table {
        name: "orders-shares".to_owned(),
        title: "Share gathered, and what it cost".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: lines.iter().map(row).collect(),
    }));
    report
}

//! `archive rank`: computes importance offline, over a complete link graph.

mod on_disk;
mod source;
mod together;

use std::io::{BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use archive_base::files::{Output, is_standard_output};
use archive_base::memory::{parse_bytes, peak_bytes};
use archive_books::columns;
use archive_math::graphs::ReadError;
use archive_math::importance::order::DAMPING;
use archive_math::importance::ranking::{Column, Method, Request};
use serde::Serialize;

use self::source::RankSource;
use super::options::{Answering, AskArgs};
use super::output::{self, Listing};
use super::{During, Failure, Result, options, usage};

/// Minimum number of pages whose names are looked up together, because some may be hidden.
const NAMES_AT_ONCE: usize = 1000;

/// Rank the pages or sites of one or more archives, or the pages of a graph
///
/// Methods: pagerank (fast, with a proven error bound; by the archive's damping the limit to which importance converges),
/// opic (the same if the jump were one more link of each page), walk (the papers' iteration), interest, interest-of-important, interest-printed and combined (Xyleme, with --chosen), links
/// and symmetric (eigenvectors), hits, harmonic. Several archives can be ranked by pagerank and opic.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// Graph to rank instead of an archive's links: basename of a graph in BV format, a folder with arcs.tsv.gz, or
    /// generate:MODEL:PAGES[:LINKS[:SEED]]
    #[arg(long, value_name = "PATH")]
    graph: Option<PathBuf>,
    /// Rank sites, by the links between them, instead of pages
    #[arg(long, conflicts_with = "graph")]
    sites: bool,
    /// Ranking method
    #[arg(long, default_value = "pagerank")]
    method: Method,
    /// Probability of following a link, for methods with jumps: not for opic, links, symmetric, hits and harmonic
    /// [default: 0.85]
    #[arg(long)]
    damping: Option<f64>,
    /// Error (pagerank) or last change (other methods), in L1, below which to stop
    #[arg(long, default_value_t = 1e-9)]
    tolerance: f64,
    /// Maximum number of iterations
    #[arg(long, default_value_t = 1000, value_name = "N")]
    iterations: u32,
    /// Number of threads [default: all processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// File of the pages to which jumps lead, or which are of interest: one number or URL per line, optionally followed
    /// by TAB and a weight
    #[arg(long, value_name = "FILE")]
    chosen: Option<PathBuf>,
    /// Query that selects these pages instead, for example 'type = xml'
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["graph", "sites", "chosen"])]
    chosen_query: Option<String>,
    /// Restore the rank lost at pages without links by one common factor, as Xyleme does
    #[arg(long)]
    renormalise: bool,
    /// Iterate A + I, for periodic graphs
    #[arg(long)]
    add_identity: bool,
    /// Count all links equally, whatever their weights
    #[arg(long)]
    unweighted: bool,
    /// Number of pages from which to use distances (harmonic only)
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Memory for vectors, with the links kept on disk in slices (80MB, 1GiB); for pagerank, interest and combined of a
    /// --graph. Of several archives, 16 bytes per known URL are not counted, or 45 if one of them is a node
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<usize>,
    /// Folder for the slices [default: a temporary folder]
    #[arg(long, value_name = "DIR", requires = "memory")]
    work: Option<PathBuf>,
    /// With --memory, use only values of the previous scan, as in the papers' plain iteration
    #[arg(long, requires_all = ["memory", "graph"])]
    jacobi: bool,
    /// Number of best pages to print
    #[arg(long, default_value_t = 0, value_name = "N")]
    top: usize,
    /// Name of the column in which to store the values (mean 1) in the archive, for queries; to the name of a second
    /// column, `_` and its own name are appended. Only archives in folders store values, not nodes
    #[arg(long, value_name = "NAME", conflicts_with = "graph")]
    save: Option<String>,
    /// File for all values, tab-separated, one line per page; - is standard output, and then nothing else is printed
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RankRow<'a> {
    method: String,
    column: &'a str,
    pages: usize,
    arcs: usize,
    threads: usize,
    damping: Option<f64>,
    tolerance: f64,
    load_seconds: f64,
    prepare_seconds: f64,
    seconds: f64,
    iterations: u32,
    operations: u64,
    residual: f64,
    peak_bytes: Option<u64>,
}

impl Args {
    fn damping(&self) -> f64 {
        self.damping.unwrap_or(DAMPING)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(name) = &args.save {
        columns::check_name(name).map_err(|error| usage(error.to_string()))?;
    }
    if args.damping.is_some() && !args.method.has_damping() {
        refuse!("--method {} has no damping to choose; leave out --damping", args.method);
    }
    if let (Some(memory), Some(graph)) = (args.memory, &args.graph) {
        return on_disk::run(args, graph, memory);
    }
    let answering: Answering;
    let found = match (args.ask.paths(), &args.graph) {
        (paths, None) if paths.len() > 1 || args.ask.has_nodes() => {
            answering = args.ask.open()?;
            together::rank(args, &answering)?
        }
        _ if args.memory.is_some() => {
            refuse!("--memory needs --graph, or several --archive");
        }
        _ => rank_one(args)?,
    };
    let RankedGraph { source, columns, pages, arcs, threads, load_seconds } = found;
    let lines: Vec<RankRow> = columns
        .iter()
        .map(|column| RankRow {
            method: args.method.to_string(),
            column: column.name,
            pages,
            arcs,
            threads,
            damping: args.method.has_damping().then(|| args.damping()),
            tolerance: args.tolerance,
            load_seconds,
            prepare_seconds: column.prepare_seconds,
            seconds: column.seconds,
            iterations: column.ranking.iterations,
            operations: column.ranking.operations,
            residual: column.ranking.residual,
            peak_bytes: peak_bytes(),
        })
        .collect();
    if !args.output.as_deref().is_some_and(is_standard_output) {
        print_lines(&lines, args.json)?;
        for column in &columns {
            print_best(column, args, &source)?;
        }
    }
    if let Some(name) = &args.save {
        source.save(name, &columns)?;
    }
    if let Some(path) = &args.output {
        let columns: Vec<(&str, Vec<f64>)> =
            columns.into_iter().map(|column| (column.name, column.ranking.values)).collect();
        args.ask.paths().iter().try_for_each(|archive| options::check_output(archive, path))?;
        write_values(path, &columns).within(path.display())?;
    }
    Ok(source.exit_code())
}

/// The ranked graph, its values, and timings.
struct RankedGraph<'a> {
    source: RankSource<'a>,
    columns: Vec<Column>,
    pages: usize,
    arcs: usize,
    threads: usize,
    load_seconds: f64,
}

fn rank_one(args: &Args) -> Result<RankedGraph<'static>> {
    let start = Instant::now();
    let (graph, source) = RankSource::read(args)?;
    let load_seconds = start.elapsed().as_secs_f64();
    let graph = if args.unweighted { graph.unweighted() } else { graph };
    let (pages, arcs) = (graph.pages(), graph.arcs());
    let chosen = source.chosen(args, pages)?;
    let threads = threads(args);
    let request = Request {
        method: args.method,
        damping: args.damping(),
        tolerance: args.tolerance,
        iterations_max: args.iterations,
        threads,
        chosen: chosen.as_deref(),
        renormalise: args.renormalise,
        add_identity: args.add_identity,
        samples: args.samples,
    };
    let columns = request.run(graph).map_err(|error| usage(error.to_string()))?;
    Ok(RankedGraph { source, columns, pages, arcs, threads, load_seconds })
}

fn threads(args: &Args) -> usize {
    args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

fn print_lines(lines: &[RankRow], json: bool) -> Result<()> {
    let headings = ["column", "pages", "arcs", "iterations", "residual", "seconds", "arcs/s"];
    let mut listing = Listing::new(json, &headings, &[1, 2, 3, 4, 5, 6]);
    for line in lines {
        listing.add(line, |line| {
            [
                line.column.to_owned(),
                line.pages.to_string(),
                line.arcs.to_string(),
                line.iterations.to_string(),
                format!("{:.1e}", line.residual),
                format!("{:.3}", line.seconds),
                format!("{:.2e}", line.operations as f64 / line.seconds.max(f64::MIN_POSITIVE)),
            ]
        })?;
    }
    listing.end()
}

fn print_best(column: &Column, args: &Args, source: &RankSource<'_>) -> Result<()> {
    if args.top == 0 {
        return Ok(());
    }
    let values = &column.ranking.values;
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut pages: Vec<usize> = (0..values.len()).collect();
    pages.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let (mut best, at_once) = (Vec::new(), args.top.max(NAMES_AT_ONCE));
    for (group, pages) in pages.chunks(at_once).enumerate() {
        for (place, (&page, name)) in pages.iter().zip(source.names(pages)?).enumerate() {
            // A page's rank counts all pages, including those that access rules hide.
            let rank = group * at_once + place + 1;
            let importance = if mean > 0.0 { values[page] / mean } else { 0.0 };
            let value = values[page];
            best.extend(name.map(|name| {
                object! {
                    column: column.name,
                    rank,
                    page,
                    name: Some(name).filter(|name| !name.is_empty()),
                    value,
                    importance,
                }
            }));
        }
        if best.len() >= args.top {
            break;
        }
    }
    best.truncate(args.top);
    let headings = ["rank", column.name, "importance", "page", "name"];
    let mut listing = Listing::new(args.json, &headings, &[0, 1, 2, 3]);
    for best in best {
        listing.add(best, |best| {
            [
                best.rank.to_string(),
                format!("{:.6e}", best.value),
                format!("{:.2}", best.importance),
                best.page.to_string(),
                best.name.unwrap_or_default(),
            ]
        })?;
    }
    if !args.json {
        output::line("")?;
    }
    listing.end()
}

fn write_values(path: &Path, columns: &[(&str, Vec<f64>)]) -> Result<()> {
    let mut out = BufWriter::new(Output::open(path)?);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join("\t"))?;
    for page in 0..columns.first().map_or(0, |(_, values)| values.len()) {
        let values: Vec<String> = columns.iter().map(|(_, values)| format!("{:e}", values[page])).collect();
        writeln!(out, "{}", values.join("\t"))?;
    }
    out.into_inner().map_err(IntoInnerError::into_error)?.commit()?;
    Ok(())
}

/// A graph that cannot be read; a wrong name of one is a mistake in the command line.
fn unread(error: ReadError) -> Failure {
    match &error {
        ReadError::Name(_) => usage(error.to_string()),
        _ => Failure::failed(error),
    }
}

/// Reads weights: one number or name per line, optionally with a weight.
fn read_chosen(path: &Path, pages: usize, find: impl Fn(&str) -> Option<usize>) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path).within(path.display())?;
    let mut weights = vec![0.0; pages];
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (name, weight) = line.split_once('\t').unwrap_or((line, "1"));
        let page = name.trim().parse().ok().or_else(|| find(name.trim())).filter(|&page| page < pages);
        let wrong = || usage(format!("{}: line {}: no such page or weight", path.display(), number + 1));
        let weight: f64 = weight.trim().parse().ok().filter(|&weight| weight >= 0.0).ok_or_else(wrong)?;
        weights[page.ok_or_else(wrong)?] += weight;
    }
    Ok(weights)
}

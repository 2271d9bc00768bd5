//! `archive export`: writes the archive, or the result of a query, for other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use archive::jobs;
use archive_ask::query::{self, Limits, Question};
use archive_base::files::is_standard_output;
use archive_books::stored_graph::Outline;
use archive_peers::export::{self, ExportPart, Format, Selection, Settings};
use archive_peers::nodes::Root;
use archive_vault::exports;
use chrono::Utc;
use clap::ValueEnum as _;
use indicatif::{HumanBytes, HumanCount};

use super::options::{Answering, AskArgs};
use super::{Result, options, output, progress};

/// Write captures, their index or links to a file for other tools.
#[derive(clap::Args)]
#[command(after_help = "Formats:
  warc     all records as they are stored; compressed as the output's name implies (.warc.gz,
           .warc.zst), or with --gzip
  cdxj     an index of the archive's segments, sorted by SURT, for CDX servers
  wacz     records, index and page list in one file, for ReplayWeb.page and pywb
  parquet  a table of captures with Common Crawl's columns and title, importance and rating, for
           DuckDB and Spark; with --text, also the text of pages
  links    the newest links of every page: source, target and kind, tab-separated
  graph    the links between pages that carry importance, compressed, as NAME.graph, NAME.offsets,
           NAME.properties (WebGraph's BV format) and NAME.urls.gz, for WebGraph and `archive rank`

Several archives, such as the partitions of a cluster, are exported to one file: warc, wacz,
parquet and links one archive after the other, cdxj and the index of a package in one sorted
order. A graph is that of a single archive with all pages: each page once, ordered by URL.

With --where, only the captures of the pages that a query finds are written, or of all pages of the
sites that it finds, together with the originals of revisits among them.

Examples:
  archive export warc --output all.warc.gz
  archive export warc --output small.warc.zst --level 19
  archive export wacz --output site.wacz --where 'host = \"www.example.org\"'
  archive export parquet --output index.parquet
  archive export links --output links.tsv.gz --where 'site importance > 2'
  archive export parquet --output all.parquet --archive A1 --archive A2
  archive export links --output all.tsv.gz --archive http://node1:8070/ --archive http://node2:8070/
  archive export wacz --output all.wacz --archive A1 --archive http://node2:8070/
  archive export graph --output web-2026 && archive rank --graph web-2026 --method harmonic")]
pub(crate) struct Args {
    /// Format of the output
    format: ExportFormat,
    /// File to write (for graph: NAME); an existing file is replaced once the new one is complete. Pipes and devices
    /// are written directly; - is standard output
    #[arg(long, short, value_name = "PATH")]
    output: PathBuf,
    /// Compress with gzip, whatever the file's name
    #[arg(long)]
    gzip: bool,
    /// Compression level of a WARC file: 0 to 9 for gzip, 1 to 19 for zstd [default: 6 for gzip, 9 for zstd]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19))]
    level: Option<i32>,
    /// Include the text of pages in a Parquet file
    #[arg(long)]
    text: bool,
    /// Query that selects the pages or sites, as for `archive query`
    #[arg(long = "where", value_name = "QUERY")]
    query: Option<String>,
    /// Write a file even if it is empty
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    ask: AskArgs,
    /// One JSON object at the end
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    Warc,
    Cdxj,
    Wacz,
    Parquet,
    Links,
    Graph,
}

impl ExportFormat {
    /// The format of a single file; `None` for a graph, which consists of several.
    fn format(self) -> Option<Format> {
        match self {
            Self::Warc => Some(Format::Warc),
            Self::Cdxj => Some(Format::Cdxj),
            Self::Wacz => Some(Format::Wacz),
            Self::Parquet => Some(Format::Parquet),
            Self::Links => Some(Format::Links),
            Self::Graph => None,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let ([only], false) = (args.ask.paths(), args.ask.has_nodes()) {
        jobs::check_exists(only)?;
    }
    if args.json && is_standard_output(&args.output) {
        refuse!("--json and --output - would both write to standard output; give --output a file");
    }
    if args.level.is_some() && args.format != ExportFormat::Warc {
        refuse!("--level is for WARC files alone");
    }
    if args.text && args.format != ExportFormat::Parquet {
        refuse!("--text is for Parquet files alone");
    }
    args.ask.paths().iter().try_for_each(|archive| options::check_output(archive, &args.output))?;
    let answering = args.ask.open()?;
    let mut asked = answering.asked(&args.ask.nodes, Limits::USUAL)?;
    let (parts, outlines) = match &mut asked {
        Some(asked) => parts_of(args, asked)?,
        None => (parts(args, &answering)?, Vec::new()),
    };
    let total = parts.iter().filter_map(ExportPart::count).sum();
    let settings =
        Settings { gzip: args.gzip, level: args.level, text: args.text, allow_empty: args.allow_empty };
    let exported = match args.format.format() {
        Some(format) => {
            let bar = progress::counting(total, "captures");
            let mut progress = |rows| bar.set_position(rows);
            export::run(&parts, format, &args.output, settings, &mut progress)?
        }
        None => export::graph(&parts, &outlines, &args.output, settings)?,
    };
    progress::end();
    let format =
        args.format.to_possible_value().map(|format| format.get_name().to_owned()).unwrap_or_default();
    for part in &parts {
        let ExportPart::Folder(store, _) = part else { continue };
        if let Err(error) = exports::note(store.path(), &format, &args.output, args.query.as_deref()) {
            let path = store.path().display();
            note!("cannot record this export in {path}: {error}");
        }
    }
    let output = args.output.display();
    if args.json {
        let (rows, records, bytes) = (exported.rows, exported.records, exported.bytes);
        output::json_line(&object! { output: output.to_string(), rows, records, bytes })?;
    } else {
        let what = match args.format {
            ExportFormat::Links | ExportFormat::Graph => "links",
            _ => "captures",
        };
        let records = match exported.records {
            0 => String::new(),
            records => format!(" ({} records)", HumanCount(records)),
        };
        note!("{} {what}{records} in {output}, {}", HumanCount(exported.rows), HumanBytes(exported.bytes));
    }
    let unread = parts.iter().find_map(ExportPart::unread);
    drop(parts);
    Ok(match asked {
        Some(asked) => answering.exit_code_of(&asked),
        None => answering.exit_code_without(unread.as_ref()),
    })
}

/// What to export from each archive.
fn parts<'a>(args: &Args, answering: &'a Answering) -> Result<Vec<ExportPart<'a>>> {
    let archives = answering.archives();
    if let [_, _, ..] = archives.as_slice() {
        query::answering(&archives)?;
    }
    let Some(text) = &args.query else {
        let all = archives
            .into_iter()
            .map(|(store, access)| Ok(ExportPart::Folder(store, Selection::all(store, &access)?)));
        return all.collect();
    };
    let found = answering.found(&Question::of(answering.archives(), text, Utc::now())?)?;
    let chosen = archives.into_iter().zip(found).map(|((store, access), pages)| {
        Ok(ExportPart::Folder(store, Selection::of_pages(store, &access, pages, text.clone())?))
    });
    chosen.collect()
}

/// As [`parts`] where some archives are on other machines; for a graph, also their links.
fn parts_of<'a>(args: &Args, asked: &'a mut Root<'_>) -> Result<(Vec<ExportPart<'a>>, Vec<Outline>)> {
    let chosen = asked.choose(args.query.as_deref(), Utc::now())?;
    let is_graph = args.format == ExportFormat::Graph;
    let outlines = if is_graph { asked.outlines(None, None)? } else { Vec::new() };
    Ok((asked.parts(chosen.as_ref())?, outlines))
}

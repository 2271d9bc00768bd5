//! `archive import`: imports captures from WARC files and WACZ packages written by any tool.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use archive_books::recorder::{self, CHECKPOINT_EVERY, Memory};
use archive_vault::import::{self, Listener, Note, Options, Status};
use indicatif::{HumanBytes, HumanCount, ProgressBar};
use serde::Serialize;

use super::open::SegmentArgs;
use super::options::{ArchiveArgs, VersionsArgs, memory};
use super::{EXIT_STOPPED, interrupt, open, output, progress, repack};

/// Maximum number of notes printed as text; JSON contains all of them.
const NOTES_MAX: u64 = 20;

/// Import captures from files of other tools: WARC 1.0 and 1.1 (gzip, zstd or plain) and WACZ.
#[derive(clap::Args)]
#[command(
    after_help = "Records are stored unchanged; links, titles and texts are extracted as from live captures. Broken records are skipped and reported with file and offset; records without a capture (warcinfo, continuation, a request without its answer, a conversion of a captured record) are counted. Nothing is imported twice: after an interruption, the same command continues. ARC files are not supported; convert them with
`warcio recompress OLD.arc.gz NEW.warc.gz`.

The exit code is 1 if a file or record could not be read; everything else is imported.

Examples:
  archive import old/*.warc.gz
  archive import collection.wacz
  archive import crawl-2014.warc.gz crawl-2015.warc.gz --archive data.archive --no-full-text
  archive import --repack histories.warc.gz      # in fewer bytes; takes about twice as long"
)]
pub(crate) struct Args {
    /// WARC files and WACZ packages, in any order
    #[arg(required = true, num_args = 1.., value_name = "FILES")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Number of threads that parse and compress [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory for records, documents, caches and the full-text index (200MB, 4GiB); longer records go through files
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = memory)]
    memory: Memory,
    /// Do not index text for search
    #[arg(long)]
    no_full_text: bool,
    #[command(flatten)]
    versions: VersionsArgs,
    /// Repack the archive at the end, as `archive repack` does at any later time
    #[arg(long, conflicts_with = "no_repack")]
    repack: bool,
    /// Leave segments as the import wrote them (the default)
    #[arg(long)]
    no_repack: bool,
    /// One JSON object per finding, and one at the end
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    status: &'a Status,
    complete: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::install()?;
    let mut store = open::own(&args.archive.path, args.segments, None)?;
    args.versions.apply(&args.archive.path)?;
    let options = Options {
        files: args.files.clone(),
        threads: args.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
        full_text: !args.no_full_text,
        checkpoint_every: CHECKPOINT_EVERY,
        keep_cut: true,
        memory: args.memory,
    };
    let mut display = Display::start(args);
    let outcome = import::run(&mut store, &options, &stop, &mut display);
    progress::end();
    let (complete, status) = outcome?;
    recorder::close(store)?;
    if let Some(error) = display.failure {
        return Err(error);
    }
    report(args, &status, complete, display.notes)?;
    let is_wanted = args.repack && !args.no_repack;
    let complete =
        complete && (!is_wanted || repack::after(&args.archive.path, args.segments, args.memory, &stop)?);
    Ok(if !complete {
        ExitCode::from(EXIT_STOPPED)
    } else if status.broken + status.refused_files > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn report(args: &Args, status: &Status, complete: bool, notes: u64) -> anyhow::Result<()> {
    if args.json {
        return output::json_line(&Summary { status, complete });
    }
    if notes > NOTES_MAX {
        output::note(format_args!("{}; --json lists all", output::count(notes - NOTES_MAX, "more finding")));
    }
    output::line(&sum(status, complete))
}

/// Summarizes what was imported and what was not, omitting zero counts.
fn sum(status: &Status, complete: bool) -> String {
    let mut text = format!(
        "{} imported from {} ({}, {})",
        output::count(status.captures, "capture"),
        output::count(status.files, "file"),
        output::count(status.records, "record"),
        HumanBytes(status.bytes),
    );
    let count = output::count;
    let parts = [
        (status.duplicates, count(status.duplicates, "capture") + " in the archive already"),
        (status.revisits, count(status.revisits, "revisit")),
        (status.open_revisits, count(status.open_revisits, "revisit") + " without an original"),
        (status.broken, count(status.broken, "broken place")),
        (status.erased, count(status.erased, "capture") + " of erased URLs left out"),
    ];
    for (_, part) in parts.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str("; ");
        text.push_str(&part);
    }
    text.push_str(&left_out(status));
    if !complete {
        text.push_str("; stopped before the end, the same command continues");
    }
    text
}

/// Lists skipped records by type.
fn left_out(status: &Status) -> String {
    let types: Vec<String> =
        status.left_out.types().map(|(name, count)| format!("{} {name}", HumanCount(count))).collect();
    if types.is_empty() { String::new() } else { format!("; records left out: {}", types.join(", ")) }
}

/// The display of a running import.
struct Display {
    bar: ProgressBar,
    json: bool,
    notes: u64,
    /// The error that prevented printing.
    failure: Option<anyhow::Error>,
}

impl Display {
    fn start(args: &Args) -> Self {
        let size = |file: &PathBuf| file.metadata().map_or(0, |metadata| metadata.len());
        let total = args.files.iter().map(size).sum();
        let bar = progress::bar(total, "{bar:30} {bytes}/{total_bytes} {eta}  {msg}");
        Self { bar, json: args.json, notes: 0, failure: None }
    }
}

impl Listener for Display {
    fn status(&mut self, status: &Status) {
        self.bar.set_position(status.bytes);
        self.bar.set_message(format!(
            "{} captures, {} known, {} broken",
            HumanCount(status.captures),
            HumanCount(status.duplicates),
            HumanCount(status.broken)
        ));
    }

    fn note(&mut self, note: &Note) {
        self.notes += 1;
        if self.json {
            if let Err(error) = output::json_line(note) {
                self.failure.get_or_insert(error);
            }
        } else if self.notes <= NOTES_MAX {
            let place = note.offset.map_or(String::new(), |offset| format!(", offset {offset}"));
            output::note(format_args!("{}{place}: {}", note.file, note.what));
        }
    }
}

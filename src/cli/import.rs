//! `archive import`: imports captures from WARC files and WACZ packages written by any tool.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use archive::jobs::{self, ImportJob};
use archive_books::recorder::{CHECKPOINT_EVERY, Memory};
use archive_vault::import::{ImportForm, ImportOptions, ImportStatus};
use indicatif::{HumanBytes, HumanCount};

use super::messages::Hearing;
use super::options::{ArchiveArgs, SegmentArgs, VersionsArgs, memory};
use super::{EXIT_STOPPED, Result, interrupt, output, repack};

/// Import captures from files of other tools: WARC 1.0 and 1.1, ARC 1.0 to 2.0 (gzip, zstd or plain) and WACZ; compare lists of
/// captures (CDX, CDXJ) with the archive.
#[derive(clap::Args)]
#[command(
    after_help = "Records are stored unchanged; links, titles and texts are extracted as from live captures. Broken records are skipped and reported with file and offset; records without a capture (warcinfo, continuation, a request without its answer, a conversion of a captured record) are counted. Nothing is imported twice: after an interruption, the same command continues. The content of a file tells its format, its name does not matter.

The exit code is 1 if a file or record could not be read, or a list names captures that the archive does not have; everything else is imported.

Examples:
  archive import old/*.warc.gz
  archive import collection.wacz
  archive import crawl-1998.arc.gz
  archive import old-crawls                      # a folder of files of records and lists
  archive import other-archive.cdx.gz            # says what the archive lacks of a list of captures
  archive import --as httrack websites/example   # the folder that holds hts-cache
  archive import --as mhtml saved/*.mhtml
  archive import --as folder mirror              # the folder that holds folders of hosts
  archive import crawl-2014.warc.gz crawl-2015.warc.gz --archive data.archive --no-full-text
  archive import --repack histories.warc.gz      # in fewer bytes; takes about twice as long"
)]
pub(crate) struct Args {
    /// WARC and ARC files, WACZ packages, folders of these, and lists of captures (CDX, CDXJ), in any order
    #[arg(required = true, num_args = 1.., value_name = "FILES")]
    files: Vec<PathBuf>,
    /// What else the files are: folders mirrored by HTTrack, pages saved in one file (MHTML, SingleFile, a browser's HTML), or
    /// folders whose paths are URLs (wget)
    #[arg(long = "as", value_name = "FORM")]
    form: Option<Form>,
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Also import signed WACZ packages whose signature, or whose content, is not what was signed
    #[arg(long)]
    accept_wrong_signatures: bool,
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

/// What files are that are no files of records.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Form {
    Httrack,
    Mhtml,
    Folder,
}

impl From<Form> for ImportForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Httrack => Self::Httrack,
            Form::Mhtml => Self::Mhtml,
            Form::Folder => Self::Folder,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = interrupt::install()?;
    let job = ImportJob {
        options: ImportOptions {
            files: args.files.clone(),
            form: args.form.map_or(ImportForm::Records, From::from),
            threads: args.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
            full_text: !args.no_full_text,
            checkpoint_every: CHECKPOINT_EVERY,
            keep_cut: true,
            accept_wrong_signatures: args.accept_wrong_signatures,
            memory: args.memory,
        },
        segments: args.segments.options(),
        index_versions: args.versions.index_versions,
    };
    let path = &args.archive.path;
    let size = |file: &PathBuf| file.metadata().map_or(0, |metadata| metadata.len());
    let mut hearing = Hearing::with_bar(args.json, args.files.iter().map(size).sum());
    let (complete, status) = jobs::import(path, &job, &stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    output::summary(args.json, &object! { #[serde(flatten)] status: &status, complete }, || {
        sum(&status, complete)
    })?;
    let is_wanted = complete && args.repack && !args.no_repack;
    let is_complete = complete && (!is_wanted || repack::after(path, &job.segments, args.memory, &stop)?);
    Ok(if !is_complete {
        ExitCode::from(EXIT_STOPPED)
    } else if status.broken + status.refused_files + status.lists.missing_or_other() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Summarizes what was imported and what was not, omitting zero counts.
fn sum(status: &ImportStatus, complete: bool) -> String {
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
        (status.lists.listed, count(status.lists.listed, "capture") + " listed"),
        (
            status.lists.listed_missing,
            count(status.lists.listed_missing, "capture") + " listed and not in the archive",
        ),
        (
            status.lists.listed_otherwise,
            count(status.lists.listed_otherwise, "capture") + " listed with another digest",
        ),
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
fn left_out(status: &ImportStatus) -> String {
    let types: Vec<String> =
        status.left_out.types().map(|(name, count)| format!("{} {name}", HumanCount(count))).collect();
    if types.is_empty() { String::new() } else { format!("; records left out: {}", types.join(", ")) }
}

//! `archive repack`: rewrites closed segments in fewer bytes.

use std::path::Path;
use std::process::ExitCode;

use archive_base::control::Control;
use archive_base::memory::parse_bytes;
use archive_books::recorder::{self, Memory};
use archive_storage::segment::{SegmentError, SegmentInfo};
use archive_storage::{Store, StoreError};
use archive_vault::repack::{self, Batch, Done, Listener, Options};
use indicatif::{HumanBytes, ProgressBar};
use serde::Serialize;

use super::open::SegmentArgs;
use super::options::ArchiveArgs;
use super::{EXIT_STOPPED, UsageError, interrupt, open, output, progress};

/// Minimum memory in bytes.
const MEMORY_MIN: usize = Memory::REPACKING_MIN;

/// Rewrite closed segments in fewer bytes, now that all their captures are known.
#[derive(clap::Args)]
#[command(
    after_help = "Captures are grouped by site and page, with dictionaries of their common content. Records stay the same byte for byte; each is compared before its segment is replaced.
Repacked segments are repacked again only to merge small ones, so cron can run the command as often as you like. Readers are not disturbed. The command may be interrupted at any time: finished segments stay, and the next run continues.

Disk space: the new segments of a batch lie beside the old ones, at most --room.

Examples:
  archive repack --dry-run         # reads the segments and reports what would be saved
  archive repack
  archive repack --level 19 --again --memory 2GiB"
)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    /// Compression level, 1 to 19 (gzip: 0 to 9) [default: 7 or 12, by what that saves; 9 for gzip]
    #[arg(long, value_name = "N")]
    level: Option<i32>,
    /// Memory to use (at least 256MiB); the longest record goes through a file
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = parse_bytes)]
    memory: usize,
    /// Disk space for new segments beside the old ones; larger segments are left as they are
    #[arg(long, default_value = "2GiB", value_name = "SIZE", value_parser = parse_bytes)]
    room: usize,
    /// Number of threads that compress [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Also repack segments that were repacked before
    #[arg(long)]
    again: bool,
    /// Change nothing, only report what would be saved
    #[arg(long)]
    dry_run: bool,
    /// One JSON object per batch, and one at the end
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct BatchRow {
    segments: usize,
    captures: u64,
    bytes_before: u64,
    bytes_after: u64,
    plain_bytes: u64,
}

#[derive(Serialize)]
struct Summary {
    dry_run: bool,
    batches: u64,
    segments_before: u64,
    segments_after: u64,
    left: u64,
    captures: u64,
    bytes_before: u64,
    bytes_after: u64,
    plain_bytes: u64,
    complete: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::check_exists(&args.archive.path)?;
    if args.memory < MEMORY_MIN {
        return Err(UsageError(format!("--memory has to be at least {}MiB", MEMORY_MIN >> 20)).into());
    }
    let stop = interrupt::install()?;
    let store = open::own(&args.archive.path, args.segments, None)?;
    let segments = store.closed_segments();
    let options = Options {
        codec: args.segments.codec(),
        level: args.level,
        threads: args.threads.unwrap_or_else(|| Options::default().threads),
        memory: args.memory,
        room: args.room as u64,
        again: args.again,
        dry_run: args.dry_run,
    };
    let (complete, left, done, batches) = carry_out(store, &segments, &options, &stop, args.json)?;
    if args.json {
        output::json_line(&Summary {
            dry_run: args.dry_run,
            batches,
            segments_before: done.segments.0,
            segments_after: done.segments.1,
            left,
            captures: done.captures,
            bytes_before: done.bytes.0,
            bytes_after: done.bytes.1,
            plain_bytes: done.plain_bytes,
            complete,
        })?;
    } else {
        output::line(&words(&done, left, args.dry_run, complete))?;
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) })
}

/// Repacks an archive after another operation, and reports it on standard error if any segments were worth it; returns
/// whether it was completed.
pub(crate) fn after(path: &Path, asked: SegmentArgs, memory: Memory, stop: &Control) -> anyhow::Result<bool> {
    let store = open::own(path, asked, None)?;
    let segments = store.closed_segments();
    let options = Options { codec: asked.codec(), memory: memory.settling(), ..Options::default() };
    let (complete, left, done, _) = carry_out(store, &segments, &options, stop, false)?;
    if done.segments.0 > 0 {
        output::note(format_args!("{}", words(&done, left, false, complete)));
    }
    Ok(complete)
}

/// Repacks the segments that are worth it. Returns whether it was completed, the number of segments left as they are,
/// the totals, and the number of batches.
fn carry_out(
    mut store: Store,
    segments: &[SegmentInfo],
    options: &Options,
    stop: &Control,
    json: bool,
) -> anyhow::Result<(bool, u64, Done, u64)> {
    let (batches, left) = repack::plan(segments, options);
    let total = batches.iter().map(|batch| batch.plain_bytes).sum();
    let bar = progress::bar(total, "{bar:30} {bytes}/{total_bytes} {eta}");
    let mut display = Display { bar, json, done: Done::default(), batches: 0, failure: None };
    let outcome = repack::run(&mut store, &batches, options, stop, &mut display);
    progress::end();
    let complete = outcome.map_err(advised)?;
    recorder::close(store)?;
    let Display { done, batches, failure, .. } = display;
    failure.map_or(Ok((complete, left, done, batches)), Err)
}

/// Adds advice to the error for a damaged segment.
fn advised(error: StoreError) -> anyhow::Error {
    let is_damage = matches!(error, StoreError::Segment(SegmentError::Corrupted { .. }));
    let error = anyhow::Error::from(error);
    if is_damage { error.context("nothing was changed, run `archive repair` first") } else { error }
}

/// Describes the outcome.
fn words(done: &Done, left: u64, dry_run: bool, complete: bool) -> String {
    let left = match left {
        0 => String::new(),
        left => format!("; {} left as they are", output::count(left, "segment")),
    };
    if done.segments.0 == 0 {
        return format!("nothing to repack{left}");
    }
    let (before, after) = done.bytes;
    let share = after as f64 / before.max(1) as f64;
    let stopped = if complete { "" } else { "; stopped before the end, the same command continues it" };
    let segments = output::count(done.segments.0, "segment");
    let (before, after) = (HumanBytes(before), HumanBytes(after));
    if dry_run {
        return format!("{segments} of {before} would take about {after} ({share:.2} of it){left}{stopped}");
    }
    let captures = output::count(done.captures, "capture");
    let new = done.segments.1;
    format!("{segments} of {before} became {new} of {after} ({share:.2} of it), {captures}{left}{stopped}")
}

/// The display while it runs.
struct Display {
    bar: ProgressBar,
    json: bool,
    done: Done,
    batches: u64,
    /// The error that prevented printing.
    failure: Option<anyhow::Error>,
}

impl Listener for Display {
    fn progress(&mut self, plain_bytes: u64) {
        self.bar.inc(plain_bytes);
    }

    fn batch(&mut self, batch: &Batch, done: &Done) {
        self.batches += 1;
        self.done.add(done);
        if self.json {
            let row = BatchRow {
                segments: batch.segments.len(),
                captures: batch.captures,
                bytes_before: done.bytes.0,
                bytes_after: done.bytes.1,
                plain_bytes: batch.plain_bytes,
            };
            if let Err(error) = output::json_line(&row) {
                self.failure.get_or_insert(error);
            }
        }
    }
}

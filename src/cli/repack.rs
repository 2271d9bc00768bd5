//! `archive repack`: rewrites closed segments in fewer bytes.

use std::path::Path;
use std::process::ExitCode;

use archive::jobs::{self, RepackOutcome};
use archive_base::control::Control;
use archive_base::memory::parse_bytes;
use archive_books::recorder::Memory;
use archive_storage::segment::SegmentOptions;
use archive_vault::repack::RepackOptions;
use indicatif::HumanBytes;

use super::messages::Hearing;
use super::options::{ArchiveArgs, SegmentArgs};
use super::{EXIT_STOPPED, Result, interrupt, output};

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

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    jobs::check_exists(&args.archive.path)?;
    if args.memory < MEMORY_MIN {
        refuse!("--memory has to be at least {}MiB", MEMORY_MIN >> 20);
    }
    let stop = interrupt::install()?;
    let segments = args.segments.options();
    let options = RepackOptions {
        codec: segments.codec,
        level: args.level,
        threads: args.threads.unwrap_or_else(|| RepackOptions::default().threads),
        memory: args.memory,
        room: args.room as u64,
        again: args.again,
        dry_run: args.dry_run,
    };
    let mut hearing = Hearing::new(args.json);
    let path = &args.archive.path;
    let outcome = jobs::repack(path, &segments, &options, &stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    let RepackOutcome { is_complete, left, batches, done } = outcome;
    let summary = object! {
        dry_run: args.dry_run,
        batches,
        segments_before: done.segments.0,
        segments_after: done.segments.1,
        left,
        captures: done.captures,
        bytes_before: done.bytes.0,
        bytes_after: done.bytes.1,
        plain_bytes: done.plain_bytes,
        complete: is_complete,
    };
    output::summary(args.json, &summary, || words(&outcome, args.dry_run))?;
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(EXIT_STOPPED) })
}

/// Repacks an archive after another operation, and reports it on standard error if any segments were worth it; returns
/// whether it was completed.
pub(crate) fn after(path: &Path, segments: &SegmentOptions, memory: Memory, stop: &Control) -> Result<bool> {
    let options =
        RepackOptions { codec: segments.codec, memory: memory.settling(), ..RepackOptions::default() };
    let mut hearing = Hearing::new(false);
    let outcome = jobs::repack(path, segments, &options, stop, &mut |event| hearing.hear(event))?;
    hearing.end()?;
    if outcome.done.segments.0 > 0 {
        note!("{}", words(&outcome, false));
    }
    Ok(outcome.is_complete)
}

/// Describes the outcome.
fn words(outcome: &RepackOutcome, dry_run: bool) -> String {
    let RepackOutcome { is_complete, left, done, .. } = outcome;
    let left = match *left {
        0 => String::new(),
        left => format!("; {} left as they are", output::count(left, "segment")),
    };
    if done.segments.0 == 0 {
        return format!("nothing to repack{left}");
    }
    let (before, after) = done.bytes;
    let share = after as f64 / before.max(1) as f64;
    let stopped = if *is_complete { "" } else { "; stopped before the end, the same command continues it" };
    let segments = output::count(done.segments.0, "segment");
    let (before, after) = (HumanBytes(before), HumanBytes(after));
    if dry_run {
        return format!("{segments} of {before} would take about {after} ({share:.2} of it){left}{stopped}");
    }
    let captures = output::count(done.captures, "capture");
    let new = done.segments.1;
    format!("{segments} of {before} became {new} of {after} ({share:.2} of it), {captures}{left}{stopped}")
}

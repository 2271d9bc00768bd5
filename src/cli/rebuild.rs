//! `archive rebuild`: rebuilds all derived data from the segments.

use std::process::ExitCode;

use archive::jobs;
use archive_storage::Store;
use archive_storage::segment::SegmentOptions;
use archive_vault::rebuild;

use super::messages::Hearing;
use super::options::{ArchiveArgs, VersionsArgs};
use super::{Result, output, progress};

/// Rebuild the catalogue, URL table, histories, links, importance and full-text index from the segments.
#[derive(clap::Args)]
#[command(
    after_help = "Needed after an upgrade that asks for it, or if the folder `state` is damaged. The old state stays in use until the new one is complete. The crawl's scope is kept; columns of `archive rank --save` must be computed again. The exit code is 1 if a segment is partly unreadable, or is missing (then the state is not changed): run `archive repair`.

Examples:
  archive rebuild
  archive rebuild --index-versions     # makes older versions searchable: archive search --as-of
  archive rebuild --archive /srv/web.archive --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    #[command(flatten)]
    versions: VersionsArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let path = &args.archive.path;
    jobs::check_exists(path)?;
    jobs::finish_erase(path, &mut |event| Hearing::default().hear(event))?;
    let known = Store::read_only(path).map_or(0, |store| store.state().totals().captures);
    let bar = progress::counting(known, "captures");
    let options = jobs::segment_options(SegmentOptions::default(), None);
    let outcome = rebuild::run(path, options, args.versions.index_versions, &mut |captures| {
        bar.set_position(captures);
    });
    progress::end();
    let rebuilt = outcome?;
    for (segment, place) in &rebuilt.broken {
        note!("segment {segment}, offset {}: {}", place.offset, place.what);
    }
    output::summary(args.json, &rebuilt, || {
        let columns = match rebuilt.removed_columns {
            0 => String::new(),
            count => format!(
                "; {} removed, compute again with `archive rank --save`",
                output::count(count, "column")
            ),
        };
        format!(
            "{} of {} with {} from {}{columns}",
            output::count(rebuilt.captures, "capture"),
            output::count(rebuilt.urls, "URL"),
            output::count(rebuilt.links, "link"),
            output::count(rebuilt.segments as u64, "segment"),
        )
    })?;
    if rebuilt.damaged_remarks > 0 {
        note!(
            "{} of remarks.jsonl.zst cannot be read: some seeds and reasons why URLs are not fetched may be missing",
            output::count(rebuilt.damaged_remarks, "part")
        );
    }
    Ok(if rebuilt.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `archive repair`: repairs what can be repaired, and moves damaged files aside.

use std::process::ExitCode;

use archive::jobs;
use archive_storage::segment::SegmentOptions;
use archive_vault::repair;

use super::messages::Hearing;
use super::options::ArchiveArgs;
use super::{Result, output, progress};

/// Cut torn tails, quarantine damaged segments, recover their readable captures, and repair the state.
#[derive(clap::Args)]
#[command(
    after_help = "Every segment is read. A segment that has broken records, or has changed since it was closed, is moved to the folder `quarantine` and never deleted; its intact captures are imported again. Each action is printed, then the losses. The next repair continues an interrupted one. The exit code is 0 if everything was repaired, 1 if something could not be recovered.

Examples:
  archive repair
  archive repair --json && archive verify"
)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object per action, and one at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let path = &args.archive.path;
    jobs::check_exists(path)?;
    if let Err(error) = jobs::finish_erase(path, &mut |event| Hearing::default().hear(event)) {
        note!("the erase cannot be finished before the repair: {error}");
    }
    let bar = progress::counting(0, "segments");
    let outcome =
        repair::run(path, &jobs::segment_options(SegmentOptions::default(), None), &|done, total| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        });
    progress::end();
    let repaired = outcome?;
    let actions = repaired.actions.iter().map(|action| (action, false));
    for (action, is_lost) in actions.chain(repaired.lost.iter().map(|action| (action, true))) {
        let (what, done) = (action.what.as_str(), action.done.as_str());
        output::summary(args.json, &object! { what, done, lost: is_lost }, || {
            format!("{}{what}: {done}", if is_lost { "LOST: " } else { "" })
        })?;
    }
    let summary = object! {
        segments: repaired.segments,
        actions: repaired.actions.len(),
        rebuilt: repaired.rebuilt,
        saved: repaired.saved,
        lost: repaired.lost.len(),
    };
    output::summary(args.json, &summary, || {
        let segments = output::count(repaired.segments, "segment");
        if repaired.actions.is_empty() && repaired.lost.is_empty() {
            return format!("{segments}: nothing had to be repaired");
        }
        let state = if repaired.rebuilt { "; the state was rebuilt" } else { "" };
        let saved = match repaired.saved {
            0 => String::new(),
            saved => format!(", {} of damaged segments recovered", output::count(saved, "capture")),
        };
        format!("{segments}, {}{saved}{state}", output::count(repaired.actions.len() as u64, "repair"))
    })?;
    Ok(if repaired.lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

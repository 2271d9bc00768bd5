//! `archive repair`: make good what can be made good, move aside what is damaged.

use std::process::ExitCode;

use archive::exchange::repair;
use indicatif::HumanCount;
use serde::Serialize;

use super::options::{ArchiveArgs, SegmentArgs};
use super::{open, output, progress};

/// Cut torn tails, move damaged segments aside, bring back what can be read of them, and mend the state.
#[derive(clap::Args)]
#[command(
    after_help = "Every segment is read. One with broken records, or that is not the file the manifest knows, moves to
the folder `quarantine` and is never deleted; its whole captures are imported again. What was done
is printed, a line each.

Examples:
  archive repair
  archive repair --json && archive verify"
)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// One JSON object an action, and one at the end
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ActionRow<'a> {
    what: &'a str,
    done: &'a str,
}

#[derive(Serialize)]
struct Summary {
    segments: u64,
    actions: usize,
    rebuilt: bool,
    saved: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = &args.archive.path;
    open::check_exists(path)?;
    let bar = progress::counting(0, "segments");
    let outcome = repair::run(path, &open::options(SegmentArgs::default(), None), &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    progress::end();
    let repaired = outcome?;
    for action in &repaired.actions {
        if args.json {
            output::json_line(&ActionRow { what: &action.what, done: &action.done })?;
        } else {
            output::line(&format!("{}: {}", action.what, action.done))?;
        }
    }
    if args.json {
        output::json_line(&Summary {
            segments: repaired.segments,
            actions: repaired.actions.len(),
            rebuilt: repaired.rebuilt,
            saved: repaired.saved,
        })?;
    } else if repaired.actions.is_empty() {
        output::line(&format!("{} segments: nothing had to be repaired", repaired.segments))?;
    } else {
        let state = if repaired.rebuilt { "; the state was made anew" } else { "" };
        output::line(&format!(
            "{} segments, {} repairs, {} captures of damaged segments brought back{state}",
            repaired.segments,
            repaired.actions.len(),
            HumanCount(repaired.saved)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

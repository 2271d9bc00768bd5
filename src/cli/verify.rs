//! `archive verify`: checks that the archive holds what it claims.

use std::process::ExitCode;

use archive_ask::watch;
use archive_storage::segment::QUARANTINE;
use archive_storage::{Finding, Store};
use archive_vault::verify;
use indicatif::{HumanBytes, HumanCount};

use super::options::ArchiveArgs;
use super::{Result, output, progress};

/// Check records against digests, revisits against originals, and segments against the manifest and catalogue.
#[derive(clap::Args)]
#[command(
    after_help = "All files are checked, and each fault is listed on a line (the first thousand). The exit code is 0 if nothing is wrong, 1 otherwise; `archive repair` repairs what it can.

Examples:
  archive verify
  archive verify --sample 100      # one capture in a hundred, and only the sizes of segments"
)]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Check only one capture in N
    #[arg(long, value_name = "N", default_value_t = 1)]
    sample: u64,
    /// One JSON object per fault, and one at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let path = &args.archive.path;
    // A state that cannot be opened is one of the findings.
    let captures = Store::read_only(path).map_or(0, |store| store.state().totals().captures);
    let bar = progress::counting(captures / args.sample.max(1), "captures");
    let watches: verify::FileCheck = |path| watch::check(path).err().map(|error| error.to_string());
    let verified = verify::run(path, args.sample, &[watches], &mut |captures| bar.set_position(captures))?;
    progress::end();
    let findings = verified.findings.len() as u64 + verified.unlisted;
    for finding in &verified.findings {
        output::summary(args.json, finding, || {
            let Finding { segment, offset, what } = finding;
            let place = offset.map_or(String::new(), |offset| format!(", offset {offset}"));
            let segment = segment.map_or("archive".to_owned(), |segment| format!("segment {segment}"));
            format!("{segment}{place}: {what}")
        })?;
    }
    if !args.json && verified.unlisted > 0 {
        say!("and {} more", HumanCount(verified.unlisted))?;
    }
    if !args.json && verified.lost > 0 {
        say!(
            "earlier repairs could not bring back {} captures: {}/repairs.jsonl lists them",
            HumanCount(verified.lost),
            path.join(QUARANTINE).display()
        )?;
    }
    output::summary(args.json, &object! { #[serde(flatten)] verified: &verified, findings }, || {
        let open = match verified.open_revisits {
            0 => String::new(),
            count => format!(" ({count} have no original here)"),
        };
        format!(
            "{} captures ({}), {} revisits resolved{open}, {} closed segments: {}",
            HumanCount(verified.captures),
            HumanBytes(verified.bytes),
            HumanCount(verified.revisits),
            verified.segments,
            output::wrong(findings, "everything is as it should be"),
        )
    })?;
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

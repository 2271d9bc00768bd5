//! `archive verify`: prove that the archive holds what it says.

use std::process::ExitCode;

use archive_storage::{Store, verify};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::options::ArchiveArgs;
use super::{output, progress};

/// Check records against digests, revisits against originals, segments against manifest and catalogue.
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 when anything is wrong.

Examples:
  archive verify
  archive verify --sample 100      # one capture in a hundred; segments are only measured")]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Look at one capture in N only
    #[arg(long, value_name = "N", default_value_t = 1)]
    sample: u64,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    segment: Option<u32>,
    offset: Option<u64>,
    what: &'a str,
}

#[derive(Serialize)]
struct Summary {
    captures: u64,
    revisits: u64,
    open_revisits: u64,
    segments: u64,
    bytes: u64,
    findings: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::read_only(&args.archive.path)?;
    let total = store.state().totals().captures / args.sample.max(1);
    let bar = progress::counting(total, "captures");
    let verified = verify(&store, args.sample, &mut |captures| bar.set_position(captures))?;
    progress::end();
    for finding in &verified.findings {
        let segment = finding.segment.map(|segment| segment.0);
        let (offset, what) = (finding.offset, finding.what.as_str());
        if args.json {
            output::json_line(&FindingRow { segment, offset, what })?;
        } else {
            let place = offset.map_or(String::new(), |offset| format!(", offset {offset}"));
            let segment = segment.map_or("archive".to_owned(), |segment| format!("segment {segment}"));
            output::line(&format!("{segment}{place}: {what}"))?;
        }
    }
    if args.json {
        output::json_line(&Summary {
            captures: verified.captures,
            revisits: verified.revisits,
            open_revisits: verified.open_revisits,
            segments: verified.segments,
            bytes: verified.bytes,
            findings: verified.findings.len(),
        })?;
    } else {
        let result = match verified.findings.len() {
            0 => "everything is as it should be".to_owned(),
            1 => "1 thing is wrong".to_owned(),
            count => format!("{count} things are wrong"),
        };
        let open = match verified.open_revisits {
            0 => String::new(),
            count => format!(" ({count} imported ones wait for theirs)"),
        };
        output::line(&format!(
            "{} captures ({}), {} revisits resolved{open}, {} closed segments: {result}",
            HumanCount(verified.captures),
            HumanBytes(verified.bytes),
            HumanCount(verified.revisits),
            verified.segments,
        ))?;
    }
    Ok(if verified.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

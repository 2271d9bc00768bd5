//! `archive history`: lists every capture of a URL.

use archive_base::access::Access;
use archive_books::ledger::{CrawlerFacts, capture_flags};
use archive_storage::{Capture, CaptureKind, Store};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Result;
use super::options::ReadArgs;
use super::output::{self, Listing};

/// Show all captures of a URL, newest first.
#[derive(clap::Args)]
#[command(after_help = "Example:
  archive history https://www.example.org/")]
pub(crate) struct Args {
    /// URL of the page
    url: String,
    #[command(flatten)]
    archive: ReadArgs,
    /// One JSON object per capture
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CaptureRow {
    time: String,
    status: u16,
    kind: CaptureKind,
    /// What changed since the previous version: its content, or only bytes.
    changed: Option<&'static str>,
    content_type: String,
    bytes: u32,
    digest: String,
    segment: u32,
    offset: u64,
    /// Why the fetch failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// When and why it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (store, access) = args.archive.open()?;
    print(&store, &access, &args.url, args.json)
}

/// Prints the history of a URL.
pub(crate) fn print(store: &Store, access: &Access, url: &str, json: bool) -> Result<()> {
    let state = store.state();
    let id = super::find_shown(store, access, url)?;
    let headings = ["captured", "status", "what", "changed", "type", "bytes", "digest"];
    let mut listing = Listing::new(json, &headings, &[1, 5]);
    for capture in access.history(state, id)? {
        let (_, capture) = capture?;
        let Some(time) = DateTime::<Utc>::from_timestamp_micros(capture.time) else { continue };
        let (error, erased) = CrawlerFacts::failure(store, &capture)?;
        let row = CaptureRow {
            time: output::utc_micros(time),
            status: capture.status,
            kind: capture.kind,
            changed: changed(&capture),
            content_type: state.mime(capture.mime).to_owned(),
            bytes: capture.length,
            digest: capture.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            segment: capture.location.segment.0,
            offset: capture.location.offset,
            error,
            erased,
        };
        listing.add(row, |row| {
            let status = if row.status == 0 { "-".to_owned() } else { row.status.to_string() };
            let has_bytes = capture.digest.iter().any(|byte| *byte != 0);
            let digest = row.digest.get(..12).filter(|_| has_bytes).unwrap_or("-").to_owned();
            let what = match (row.erased, row.error) {
                (Some(erased), _) => erased,
                (None, Some(error)) => format!("no answer: {error}"),
                (None, None) => kind_name(row.kind).to_owned(),
            };
            let changed = row.changed.unwrap_or("-").to_owned();
            [output::local(time), status, what, changed, row.content_type, row.bytes.to_string(), digest]
        })?;
    }
    listing.end()
}

/// What a capture changed.
const fn changed(capture: &Capture) -> Option<&'static str> {
    if capture_flags::content_changed(capture) {
        Some("content")
    } else if capture_flags::bytes_changed(capture) {
        Some("bytes")
    } else {
        None
    }
}

const fn kind_name(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Response => "response",
        CaptureKind::Identical => "seen before",
        CaptureKind::NotModified => "not modified",
        CaptureKind::Resource => "resource",
        CaptureKind::Failed => "no answer",
    }
}

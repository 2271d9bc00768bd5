//! The list of places with copies of an archive. It shows where erased captures may still be, and keeps copies of
//! different archives apart.
//!
//! `copies.jsonl` in the archive's folder has one line per place, written before the first copy there begins.

use std::io;
use std::path::Path;

use archive_base::files::{self, WholeFile};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::CopyError;

/// Name of the file.
pub const FILE: &str = "copies.jsonl";

/// Largest accepted size of the file in bytes; a longer one was not written by this program.
const BYTES_MAX: u64 = 16 << 20;

/// A place that has copies, or for which a first copy has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPlace {
    /// URL of the place.
    pub url: String,
    /// The series that the copies there share.
    pub series: String,
    /// When the first copy began, RFC 3339.
    pub since: String,
}

/// Returns the known places of an archive's copies.
///
/// # Errors
/// If the file or one of its lines cannot be read.
pub fn places(archive: &Path) -> io::Result<Vec<CopyPlace>> {
    let bytes = files::read_if_there(&archive.join(FILE), BYTES_MAX)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(io::Error::from)).collect()
}

/// Adds a place, replacing an older entry with the same URL.
pub(super) fn note(archive: &Path, url: &str, series: &str) -> Result<(), CopyError> {
    let path = archive.join(FILE);
    let write = || {
        let mut known = places(archive)?;
        if known.iter().any(|place| place.url == url && place.series == series) {
            return Ok(());
        }
        known.retain(|place| place.url != url);
        let since = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        known.push(CopyPlace { url: url.to_owned(), series: series.to_owned(), since });
        WholeFile::begin(&path)?.commit_lines(&known)
    };
    write().map_err(CopyError::io(&path))
}

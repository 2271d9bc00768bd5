//! Where copies of an archive are: when something is erased, people have to know, and copies are not mixed with another archive's.
//!
//! `copies.jsonl` in the archive's folder has a line a place, written before the first copy there begins.

use std::io;
use std::path::Path;

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::CopyError;
use crate::files::{self, WholeFile};

/// The name of the file.
pub const FILE: &str = "copies.jsonl";

/// A longer file is none of ours.
const BYTES_MAX: u64 = 16 << 20;

/// A place that has copies, or has begun to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its URL.
    pub url: String,
    /// What the copies there have in common.
    pub series: String,
    /// When the first was begun, RFC 3339.
    pub since: String,
}

/// The places that an archive knows of.
///
/// # Errors
/// When the file cannot be read, or a line of it.
pub fn places(archive: &Path) -> io::Result<Vec<Place>> {
    let bytes = files::read_if_there(&archive.join(FILE), BYTES_MAX)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(io::Error::from)).collect()
}

/// Notes a place, instead of what was noted of it before.
pub(super) fn note(archive: &Path, url: &str, series: &str) -> Result<(), CopyError> {
    let path = archive.join(FILE);
    let write = || {
        let mut known = places(archive)?;
        if known.iter().any(|place| place.url == url && place.series == series) {
            return Ok(());
        }
        known.retain(|place| place.url != url);
        let since = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        known.push(Place { url: url.to_owned(), series: series.to_owned(), since });
        let mut bytes = Vec::new();
        for place in &known {
            serde_json::to_writer(&mut bytes, place)?;
            bytes.push(b'\n');
        }
        WholeFile::replace(&path, &bytes)
    };
    write().map_err(CopyError::io(&path))
}

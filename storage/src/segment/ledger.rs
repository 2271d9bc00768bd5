//! What is kept beside closed segments: `manifest.sha256`, which `sha256sum -c` checks, and `segments.jsonl`, which saves
//! reading a segment to know what is in it. Both can be made again from the segments.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::{Context, SegmentError};
use super::guard::Guard;
use crate::backend::{Disk, RealDisk, read_file, replace_file};
use crate::digest::Digest;
use crate::ids::SegmentId;

/// Digests of closed segments, in the form of the tool sha256sum.
pub(super) const MANIFEST: &str = "manifest.sha256";
/// One JSON object a closed segment.
pub(super) const SUMMARIES: &str = "segments.jsonl";

/// What is known of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its number.
    pub id: SegmentId,
    /// Its file name, without the suffix it has while it is written to.
    pub name: String,
    /// Whether it is still written to.
    pub is_open: bool,
    /// Compressed bytes.
    pub bytes: u64,
    /// Capture groups in it.
    pub captures: u64,
    /// Captures that had been appended to the archive when it was begun.
    pub captures_before: u64,
    /// Captures that had been appended to the archive after its last one.
    pub captures_until: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of the records before compression.
    pub plain_bytes: u64,
    /// The earliest capture time.
    #[serde(with = "date_text")]
    pub first: Option<DateTime<Utc>>,
    /// The latest capture time.
    #[serde(with = "date_text")]
    pub last: Option<DateTime<Utc>>,
    /// The file's digest, once it is closed.
    pub sha256: Option<Digest>,
    /// The digest of its dictionary, if it has one.
    pub dictionary: Option<Digest>,
    /// How its dictionary is guarded, if it has one and is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
}

/// Dates as RFC 3339 text.
mod date_text {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        date: &Option<DateTime<Utc>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        date.map(|date| date.to_rfc3339_opts(SecondsFormat::Micros, true)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let date = text.map(|text| DateTime::parse_from_rfc3339(&text)).transpose();
        date.map(|date| date.map(|date| date.to_utc())).map_err(serde::de::Error::custom)
    }
}

impl SegmentInfo {
    pub(super) fn new(id: SegmentId, name: &str, captures_before: u64) -> Self {
        Self {
            id,
            name: name.to_owned(),
            is_open: true,
            bytes: 0,
            captures: 0,
            captures_before,
            captures_until: captures_before,
            records: 0,
            plain_bytes: 0,
            first: None,
            last: None,
            sha256: None,
            dictionary: None,
            guard: None,
        }
    }

    /// Counts a capture, of which there are `number` before in the archive.
    pub(super) fn count(&mut self, number: u64, time: DateTime<Utc>, records: u64, plain_bytes: u64) {
        self.captures += 1;
        self.captures_until = self.captures_until.max(number + 1);
        self.records += records;
        self.plain_bytes += plain_bytes;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }
}

/// How dictionaries are guarded from now on: as asked for, or as that of the newest segment that has one.
pub(super) fn guard(asked: Option<Guard>, closed: &BTreeMap<SegmentId, SegmentInfo>) -> Guard {
    asked.or_else(|| closed.values().rev().find_map(|info| info.guard)).unwrap_or_default()
}

/// The summaries that are on disk; lines that can't be read are left out.
pub(super) fn summaries(
    disk: &dyn Disk,
    folder: &Path,
) -> Result<BTreeMap<SegmentId, SegmentInfo>, SegmentError> {
    let path = folder.join(SUMMARIES);
    let text = match read_file(disk, &path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context("read", &path),
    };
    let lines = text.split(|byte| *byte == b'\n');
    let infos = lines.filter_map(|line| serde_json::from_slice::<SegmentInfo>(line).ok());
    Ok(infos.map(|info| (info.id, info)).collect())
}

/// The digests that the manifest of the archive in `archive` states, by file names.
///
/// # Errors
/// When it cannot be read; one that is missing states nothing.
pub fn manifest(archive: &Path) -> Result<BTreeMap<String, Digest>, SegmentError> {
    let path = archive.join(super::FOLDER).join(MANIFEST);
    let text = match read_file(&RealDisk, &path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context("read", &path),
    };
    let text = String::from_utf8_lossy(&text);
    let stated = text.lines().filter_map(|line| {
        let (digest, name) = line.split_once("  ")?;
        Some((name.to_owned(), format!("sha256:{digest}").parse().ok()?))
    });
    Ok(stated.collect())
}

/// Writes both files anew, durably, with what is known of all closed segments.
pub(super) fn save(
    disk: &dyn Disk,
    folder: &Path,
    segments: &BTreeMap<SegmentId, SegmentInfo>,
) -> Result<(), SegmentError> {
    let mut json = Vec::new();
    let mut manifest = String::new();
    for info in segments.values() {
        // A structure of numbers and strings always has a JSON form.
        if serde_json::to_writer(&mut json, info).is_ok() {
            json.push(b'\n');
        }
        if let Some(digest) = info.sha256 {
            digest.as_bytes().iter().for_each(|byte| {
                let _ = write!(manifest, "{byte:02x}"); // a String takes everything
            });
            let _ = writeln!(manifest, "  {}", info.name);
        }
    }
    let path = folder.join(SUMMARIES);
    replace_file(disk, &path, &json).context("write", &path)?;
    let path = folder.join(MANIFEST);
    replace_file(disk, &path, manifest.as_bytes()).context("write", &path)
}

//! Lists kept beside closed segments: `manifest.sha256`, which `sha256sum -c` checks, and `segments.jsonl`, which saves
//! reading a segment to know its contents. Each line of the latter has a checksum of the rest of the line. Both can be
//! rebuilt from the segments, except for what they state about damaged or missing ones.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::error::{IoContext, SegmentError};
use super::guard::Guard;
use crate::backend::{Disk, read_file, replace_file};
use crate::digest::{Digest, hex};
use crate::ids::SegmentId;

/// Digests of closed segments, in the format of sha256sum.
pub(super) const MANIFEST: &str = "manifest.sha256";
/// One JSON object per closed segment.
pub(super) const SUMMARIES: &str = "segments.jsonl";

/// Summary of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Id of the segment.
    pub id: SegmentId,
    /// Its file name, without the suffix of an open segment.
    pub name: String,
    /// Whether it is still being written.
    pub is_open: bool,
    /// Compressed bytes.
    pub bytes: u64,
    /// Number of capture groups in it.
    pub captures: u64,
    /// Captures appended to the archive before the segment was created.
    pub captures_before: u64,
    /// Captures appended to the archive up to and including its last one.
    pub captures_until: u64,
    /// Number of records in it.
    pub records: u64,
    /// Bytes of the records before compression.
    pub plain_bytes: u64,
    /// The earliest capture time.
    #[serde(with = "date_text")]
    pub first: Option<DateTime<Utc>>,
    /// The latest capture time.
    #[serde(with = "date_text")]
    pub last: Option<DateTime<Utc>>,
    /// Digest of the file, once it is closed.
    pub sha256: Option<Digest>,
    /// Digest of its dictionary, if it has one.
    pub dictionary: Option<Digest>,
    /// Guard of its dictionary, if it has one and is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Digest of the index beside it, once it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Digest>,
    /// Whether it was written by a rewrite, with all its captures known beforehand.
    #[serde(default, rename = "rewritten", skip_serializing_if = "std::ops::Not::not")]
    pub is_rewritten: bool,
}

/// Summaries of closed segments.
pub(super) type Closed = BTreeMap<SegmentId, SegmentInfo>;

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
    /// Creates the summary of an empty segment that is created after this many captures of the archive.
    #[must_use]
    pub fn new(id: SegmentId, name: &str, captures_before: u64) -> Self {
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
            index: None,
            is_rewritten: false,
        }
    }

    /// Describes the segment as missing.
    #[must_use]
    pub fn missing(&self) -> String {
        match self.captures {
            0 => format!("{} is missing with an unknown number of captures", self.name),
            1 => format!("{} is missing with its only capture", self.name),
            captures => format!("{} is missing with its {captures} captures", self.name),
        }
    }

    /// Counts a capture; `number` is its number in the archive.
    pub(super) fn count(&mut self, number: u64, time: DateTime<Utc>, records: u64, plain_bytes: u64) {
        self.captures += 1;
        self.captures_until = self.captures_until.max(number + 1);
        self.records += records;
        self.plain_bytes += plain_bytes;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }
}

/// Returns the guard for new dictionaries: the requested one, or that of the newest segment that has one.
pub(super) fn guard(asked: Option<Guard>, closed: &Closed) -> Guard {
    asked.or_else(|| closed.values().rev().find_map(|info| info.guard)).unwrap_or_default()
}

/// A line of the summaries.
#[derive(Serialize, Deserialize)]
struct SummaryLine {
    #[serde(flatten)]
    info: SegmentInfo,
    /// XXH3-64 of the object without this field.
    check: String,
}

/// Reads a line of the summaries; `None` if any byte of it has changed.
pub(super) fn parse_summary(line: &[u8]) -> Option<SegmentInfo> {
    let SummaryLine { info, .. } = serde_json::from_slice(line).ok()?;
    (summary(&info)? == line).then_some(info)
}

/// Returns a segment's line in the summaries.
fn summary(info: &SegmentInfo) -> Option<Vec<u8>> {
    let check = format!("{:016x}", xxh3_64(&serde_json::to_vec(info).ok()?));
    serde_json::to_vec(&SummaryLine { info: info.clone(), check }).ok()
}

/// Reads a file name and its digest from a line of the manifest; `None` if the line has changed.
pub(super) fn parse_manifest(line: &[u8]) -> Option<(String, Digest)> {
    let (digest, name) = std::str::from_utf8(line).ok()?.split_once("  ")?;
    let stated = format!("sha256:{digest}").parse().ok()?;
    (manifest_line(name, stated).as_bytes() == line).then(|| (name.to_owned(), stated))
}

fn manifest_line(name: &str, digest: Digest) -> String {
    format!("{}  {name}", hex(digest.as_bytes()))
}

/// Returns the lines of one of the two files, none if there is no file, and whether the last line lacks its end.
pub(super) fn lines(
    disk: &dyn Disk,
    folder: &Path,
    file: &str,
) -> Result<(Vec<Vec<u8>>, bool), SegmentError> {
    let path = folder.join(file);
    let text = match read_file(disk, &path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        text => text.context("read", &path)?,
    };
    let ended = text.strip_suffix(b"\n");
    let is_cut = ended.is_none() && !text.is_empty();
    let lines = ended.unwrap_or(&text).split(|byte| *byte == b'\n').filter(|_| !text.is_empty());
    Ok((lines.map(<[u8]>::to_vec).collect(), is_cut))
}

/// Writes both files durably, with the summaries of all closed segments; a file that is up to date is left alone.
pub(super) fn save(disk: &dyn Disk, folder: &Path, segments: &Closed) -> Result<(), SegmentError> {
    // A struct of numbers and strings can always be serialized.
    let summaries = segments.values().filter_map(summary).collect::<Vec<_>>();
    let manifest = segments.values().filter_map(|info| Some(manifest_line(&info.name, info.sha256?)));
    let manifest = manifest.map(String::into_bytes).collect();
    for (file, lines) in [(SUMMARIES, summaries), (MANIFEST, manifest)] {
        save_lines(disk, folder, file, &lines)?;
    }
    Ok(())
}

fn save_lines(disk: &dyn Disk, folder: &Path, file: &str, lines: &[Vec<u8>]) -> Result<(), SegmentError> {
    let mut text: Vec<u8> = lines.join(&b'\n');
    if !text.is_empty() {
        text.push(b'\n');
    }
    let path = folder.join(file);
    if read_file(disk, &path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    replace_file(disk, &path, &text).context("write", &path)
}

/// Replaces old segments by new ones in both files, durably; entries of other segments stay unchanged.
pub(super) fn exchange(
    disk: &dyn Disk,
    folder: &Path,
    old: &[String],
    new: &[SegmentInfo],
) -> Result<(), SegmentError> {
    let is_changed = |name: &String| old.contains(name) || new.iter().any(|info| info.name == *name);
    let (mut summaries, _) = lines(disk, folder, SUMMARIES)?;
    summaries.retain(|line| !parse_summary(line).is_some_and(|info| is_changed(&info.name)));
    summaries.extend(new.iter().filter_map(summary));
    let (mut manifest, _) = lines(disk, folder, MANIFEST)?;
    manifest.retain(|line| !parse_manifest(line).is_some_and(|(name, _)| is_changed(&name)));
    manifest.extend(new.iter().filter_map(|info| Some(manifest_line(&info.name, info.sha256?).into_bytes())));
    save_lines(disk, folder, SUMMARIES, &summaries)?;
    save_lines(disk, folder, MANIFEST, &manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_wrong_bit_says_nothing() {
        let mut info = SegmentInfo::new(SegmentId(3), "A-20260101000000000-00003-h.warc.zst", 7);
        info.count(7, DateTime::UNIX_EPOCH, 3, 99);
        info.sha256 = Some(Digest::sha256(b"bytes"));
        let summary = summary(&info).expect("JSON");
        assert_eq!(parse_summary(&summary), Some(info.clone()));
        let manifest = manifest_line(&info.name, Digest::sha256(b"bytes")).into_bytes();
        assert_eq!(parse_manifest(&manifest), Some((info.name.clone(), Digest::sha256(b"bytes"))));
        for bit in 0..summary.len() * 8 {
            let mut damaged = summary.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse_summary(&damaged), None, "bit {bit}");
        }
        for bit in 0..manifest.len() * 8 {
            let mut damaged = manifest.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let said = parse_manifest(&damaged);
            assert!(
                said.is_none_or(|(name, digest)| name != info.name || digest != Digest::sha256(b"bytes"))
            );
        }
    }
}

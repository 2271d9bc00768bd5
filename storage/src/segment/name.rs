//! File names of segments: `PREFIX-YYYYMMDDhhmmssSSS-SERIAL-HOST.warc.zst` (after WARC/1.1 annex C), where SERIAL is
//! the segment's id. An open segment has the suffix `.open`.

use std::fmt;

use chrono::{DateTime, Utc};

use super::codec::Codec;
use crate::ids::SegmentId;

/// Suffix of an open segment.
const OPEN: &str = ".open";
/// Suffix of a segment that is about to replace others.
pub(super) const REWRITTEN: &str = ".rewrite";

/// Name of a segment, parsed or newly made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentName {
    /// Everything but the suffix.
    base: String,
    pub id: SegmentId,
    pub codec: Codec,
    pub is_open: bool,
}

impl SegmentName {
    /// Makes a name for a new segment. Drops characters of prefix and host that do not belong in a file name.
    pub(super) fn new(prefix: &str, host: &str, id: SegmentId, codec: Codec, time: DateTime<Utc>) -> Self {
        let time = time.format("%Y%m%d%H%M%S%3f");
        let (prefix, host) = (clean(prefix, "ARCHIVE"), clean(host, "localhost"));
        let base = format!("{prefix}-{time}-{:05}-{host}{}", id.0, codec.extension());
        Self { base, id, codec, is_open: true }
    }

    /// Parses the name of a file in the folder of segments; `None` for other files.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let (base, is_open) = file.strip_suffix(OPEN).map_or((file, false), |base| (base, true));
        let (stem, codec) = [Codec::Zstd, Codec::Gzip]
            .into_iter()
            .find_map(|codec| Some((base.strip_suffix(codec.extension())?, codec)))?;
        // Prefix and host contain no hyphen, see `clean`.
        let serial = stem.rsplit('-').nth(1)?;
        let is_number = serial.len() >= 5 && serial.bytes().all(|byte| byte.is_ascii_digit());
        let id = is_number.then(|| serial.parse().ok()).flatten().map(SegmentId)?;
        Some(Self { base: base.to_owned(), id, codec, is_open })
    }

    /// Parses the name of a file that is about to replace closed segments.
    pub(super) fn parse_rewritten(file: &str) -> Option<Self> {
        Self::parse(file.strip_suffix(REWRITTEN)?).filter(|name| !name.is_open)
    }

    /// Returns the name once closed.
    pub(super) fn closed(&self) -> &str {
        &self.base
    }

    /// Returns the name of a segment that is about to replace others.
    pub(super) fn rewritten(&self) -> String {
        format!("{}{REWRITTEN}", self.base)
    }

    /// Returns the name while open.
    pub(super) fn open(&self) -> String {
        format!("{}{OPEN}", self.base)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        f.write_str(if self.is_open { OPEN } else { "" })
    }
}

fn clean(part: &str, default: &str) -> String {
    let kept: String =
        part.chars().filter(|symbol| symbol.is_ascii_alphanumeric() || "._~".contains(*symbol)).collect();
    let kept = kept.trim_start_matches('.');
    if kept.is_empty() { default.to_owned() } else { kept.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let time = DateTime::from_timestamp_millis(1_767_225_600_042).expect("a date");
        for (codec, id, expected) in [
            (Codec::Zstd, 7, "EXAMPLE-20260101000000042-00007-crawler1.example.org.warc.zst"),
            (Codec::Gzip, 123_456, "EXAMPLE-20260101000000042-123456-crawler1.example.org.warc.gz"),
        ] {
            let name = SegmentName::new("EXAM-PLE", "crawler-1.example.org", SegmentId(id), codec, time);
            assert_eq!(name.closed(), expected);
            assert_eq!(SegmentName::parse(&name.open()), Some(name.clone()));
            let closed = SegmentName::parse(expected).expect("a name");
            assert!(!closed.is_open && closed.id == SegmentId(id));
        }
        assert_eq!(SegmentName::new("", "../", SegmentId(0), Codec::Zstd, time).id, SegmentId(0));
    }

    #[test]
    fn other_files_are_not_segments() {
        for file in [
            "manifest.sha256",
            "a.warc.gz",
            "x-y-z.warc.zst",
            "A-1-00001-h.warc",
            "A-1-00001-h.warc.zst.cdxj",
            "",
        ] {
            assert_eq!(SegmentName::parse(file), None, "{file}");
        }
    }
}

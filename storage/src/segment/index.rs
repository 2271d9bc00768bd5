//! The index beside a closed segment: CDXJ 0.1.0, one line per capture, in byte order.
//!
//! Any CDX server can use it: `SURT YYYYMMDDhhmmss {"url": …}`, with the fields and the spelling that cdxj-indexer and
//! pywb use. It omits captures without an answer.

use std::borrow::Cow;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use zstd::bulk;

use super::error::{IoContext, SegmentError};
use super::ledger::{Closed, SegmentInfo};
use super::replay::ReplayedCapture;
use super::versions::{PAGES_MAX, PageHash, Versions};
use crate::address::{method_of, surt};
use crate::backend::{Disk, read_file, replace_file};
use crate::capture_kind::CaptureKind;
use crate::digest::Digest;
use crate::ids::{Location, SegmentId};
use crate::warc::{Record, RecordType, page_of_request, parse_fields};

/// Suffix after the segment's name.
pub(super) const SUFFIX: &str = ".cdxj";
/// Media type that indexers give to revisits.
pub(super) const REVISIT_MEDIA_TYPE: &str = "warc/revisit";
/// Media type that indexers give to records without one.
pub(super) const UNKNOWN_MEDIA_TYPE: &str = "unk";

/// Bytes of lines that are compressed together, to a fifth or less, while a segment is open.
const PACKED_AT_BYTES: usize = 128 << 10;
/// zstd level for these lines: it costs a thousandth of a capture.
const PACKING_LEVEL: i32 = 1;

/// Returns the file name of a segment's index.
pub(super) fn file_of(segment: &str) -> String {
    format!("{segment}{SUFFIX}")
}

/// Facts about a capture that the index states besides its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexFacts {
    pub status: Option<u16>,
    pub mime: String,
}

impl IndexFacts {
    /// Returns `None` for a capture without an answer.
    pub(super) fn of(capture: &ReplayedCapture) -> Option<Self> {
        let mime = match capture.kind {
            CaptureKind::Failed => return None,
            CaptureKind::Identical | CaptureKind::NotModified => REVISIT_MEDIA_TYPE,
            CaptureKind::Response | CaptureKind::Resource => {
                capture.mime.as_deref().unwrap_or(UNKNOWN_MEDIA_TYPE)
            }
        };
        Some(Self { status: capture.status, mime: mime.to_owned() })
    }
}

/// CDXJ fields; numbers are strings, as everywhere in CDXJ.
#[derive(Serialize)]
struct CdxjFields<'a> {
    url: &'a str,
    mime: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    length: String,
    offset: String,
    filename: &'a str,
    /// Method of the request, unless it is `GET`.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
}

/// Returns the line of an answer to `page`: a URL, with what was sent if that was no `GET`.
fn line(page: &str, time: DateTime<Utc>, fields: &CdxjFields<'_>) -> Option<String> {
    // A struct of strings can always be serialized.
    let fields = serde_json::to_string(fields).ok()?;
    Some(format!("{} {} {fields}", surt(page), time.format("%Y%m%d%H%M%S")))
}

/// Returns the URL of the page that a capture belongs to.
fn page<'a>(url: &'a str, request: Option<&Bytes>) -> Cow<'a, str> {
    let page = request.and_then(|request| page_of_request(url, request));
    page.map_or(Cow::Borrowed(url), Cow::Owned)
}

/// Returns the index line of a capture in some file, without a line end; `None` if the capture has no answer. `records`
/// starts with the main record and ends with the metadata record.
#[must_use]
pub fn index_line(records: &[Record], offset: u64, length: u64, file: &str) -> Option<String> {
    let main = records.first()?;
    let metadata = records.get(1..)?.last().map(|last| parse_fields(&last.content));
    let capture = ReplayedCapture::of_foreign(main, metadata.unwrap_or_default())?;
    let facts = IndexFacts::of(&capture)?;
    let request = records.iter().find(|record| record.header.record_type() == RecordType::Request);
    let page = page(&capture.url, request.map(|request| &request.content));
    let fields = CdxjFields {
        url: &capture.url,
        mime: &facts.mime,
        status: facts.status.map(|status| status.to_string()),
        digest: capture.payload_digest,
        length: length.to_string(),
        offset: offset.to_string(),
        filename: file,
        method: method_of(&page),
    };
    line(&page, capture.time, &fields)
}

/// Index lines of one segment, in append order. All but the latest are compressed, because many segments are open and
/// each line takes some 370 bytes.
#[derive(Debug)]
pub(super) struct SegmentIndex {
    file: String,
    lines: Vec<u8>,
    packed: Vec<Vec<u8>>,
}

impl SegmentIndex {
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), lines: Vec::new(), packed: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        (url, request): (&str, Option<&Bytes>),
        time: DateTime<Utc>,
        facts: &IndexFacts,
        digest: Option<Digest>,
        place: Location,
    ) {
        let page = page(url, request);
        let fields = CdxjFields {
            url,
            mime: &facts.mime,
            status: facts.status.map(|status| status.to_string()),
            digest,
            length: place.length.to_string(),
            offset: place.offset.to_string(),
            filename: &self.file,
            method: method_of(&page),
        };
        let Some(line) = line(&page, time, &fields) else { return };
        self.lines.extend_from_slice(line.as_bytes());
        self.lines.push(b'\n');
        if self.lines.len() >= PACKED_AT_BYTES
            && let Ok(mut packed) = bulk::compress(&self.lines, PACKING_LEVEL)
        {
            // Its capacity is that of incompressible input.
            packed.shrink_to_fit();
            self.packed.push(packed);
            self.lines.clear();
        }
    }

    /// Writes the index beside its segment durably, and returns its digest.
    pub(super) fn save(&self, disk: &dyn Disk, folder: &Path) -> Result<Digest, SegmentError> {
        let path = folder.join(file_of(&self.file));
        let mut all = Vec::new();
        for packed in &self.packed {
            all.append(&mut zstd::decode_all(packed.as_slice()).context("unpack", &path)?);
        }
        all.extend_from_slice(&self.lines);
        let mut lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        let text = lines.concat();
        replace_file(disk, &path, &text).context("write", &path)?;
        Ok(Digest::sha256(&text))
    }
}

/// Fields needed to recall versions.
#[derive(Deserialize)]
struct RecallFields<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    mime: Cow<'a, str>,
    #[serde(borrow)]
    length: Cow<'a, str>,
    #[serde(borrow)]
    offset: Cow<'a, str>,
}

/// Recalls the versions in the newest closed segments, for the next dictionaries. A missing or damaged index only means
/// that fewer are known.
pub(super) fn recall(disk: &dyn Disk, folder: &Path, closed: &Closed, versions: &mut Versions) {
    let mut captures = 0;
    let mut newest: Vec<&SegmentInfo> = closed.values().collect();
    // A rewritten segment has a higher id than some segments with newer captures.
    newest.sort_by_key(|info| std::cmp::Reverse((info.captures_until, info.id)));
    let newest: Vec<&SegmentInfo> = newest
        .into_iter()
        .take_while(|info| {
            captures += info.captures;
            captures <= PAGES_MAX as u64
        })
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for infos in newest.rchunks(threads) {
        let found: Vec<_> = thread::scope(|scope| {
            let reading: Vec<_> =
                infos.iter().map(|info| scope.spawn(|| versions_in(disk, folder, info))).collect();
            reading
                .into_iter()
                .map(|reading| reading.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        // In append order, so that the newest version of a page wins.
        for found in found.into_iter().rev() {
            versions.expect_more(found.len());
            for (location, page) in found {
                versions.recall(page, location);
            }
        }
    }
}

/// Returns the versions of pages in a segment, in append order.
fn versions_in(disk: &dyn Disk, folder: &Path, info: &SegmentInfo) -> Vec<(Location, PageHash)> {
    let Ok(text) = read_file(disk, &folder.join(file_of(&info.name))) else { return Vec::new() };
    let lines = text.split(|byte| *byte == b'\n');
    let mut found: Vec<_> = lines.filter_map(|line| version_in(line, info.id)).collect();
    found.sort_unstable();
    found
}

fn version_in(line: &[u8], segment: SegmentId) -> Option<(Location, PageHash)> {
    let fields = line.get(memchr::memchr(b'{', line)?..)?;
    let RecallFields { url, mime, length, offset } = serde_json::from_slice(fields).ok()?;
    let location = Location { segment, offset: offset.parse().ok()?, length: length.parse().ok()? };
    (mime != REVISIT_MEDIA_TYPE).then(|| (location, PageHash::of(&url)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SimulatedDisk;

    #[test]
    fn lines_are_sorted_and_spelled_as_other_tools_do() {
        let disk = SimulatedDisk::new(1);
        let mut index = SegmentIndex::new("A.warc.zst");
        let place = Location { segment: SegmentId(0), offset: 12, length: 34 };
        let facts = IndexFacts { status: Some(200), mime: "text/html".into() };
        let odd = "http://www.example.org/b?q=\"1\"";
        index.add((odd, None), DateTime::UNIX_EPOCH, &facts, Some(Digest::sha1(b"")), place);
        let facts = IndexFacts { status: None, mime: UNKNOWN_MEDIA_TYPE.into() };
        let request = Bytes::from("POST /a HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n{\"b\":1}");
        for request in [None, Some(&Bytes::from("GET /a HTTP/1.1\r\n\r\n")), Some(&request)] {
            index.add(("http://example.org/a", request), DateTime::UNIX_EPOCH, &facts, None, place);
        }
        index.save(&disk, Path::new("/")).expect("save");
        let text =
            String::from_utf8(read_file(&disk, Path::new("/A.warc.zst.cdxj")).expect("read")).expect("text");
        assert_eq!(
            text,
            concat!(
                "org,example)/a 19700101000000 {\"url\":\"http://example.org/a\",\"mime\":\"unk\",",
                "\"length\":\"34\",\"offset\":\"12\",\"filename\":\"A.warc.zst\"}\n",
                "org,example)/a 19700101000000 {\"url\":\"http://example.org/a\",\"mime\":\"unk\",",
                "\"length\":\"34\",\"offset\":\"12\",\"filename\":\"A.warc.zst\"}\n",
                "org,example)/a?__wb_method=post&b=1 19700101000000 {\"url\":\"http://example.org/a\",",
                "\"mime\":\"unk\",\"length\":\"34\",\"offset\":\"12\",\"filename\":\"A.warc.zst\",\"method\":\"POST\"}\n",
                "org,example)/b?q=\"1\" 19700101000000 {\"url\":\"http://www.example.org/b?q=\\\"1\\\"\",",
                "\"mime\":\"text/html\",\"status\":\"200\",\"digest\":\"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\",",
                "\"length\":\"34\",\"offset\":\"12\",\"filename\":\"A.warc.zst\"}\n"
            )
        );
    }
}

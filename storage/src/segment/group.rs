//! A capture as the crawler passes it on, and the WARC records that it becomes.
//!
//! The records of one capture form a *group*: the main record (response, revisit or resource), the request, and the
//! metadata record. The metadata record is always present and ends the group: without it a capture is incomplete.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::revisit::{PROFILE_IDENTICAL, PROFILE_NOT_MODIFIED, PROFILE_SAME_CONTENT, refer};
use crate::backend::Spool;
use crate::digest::{Algorithm, Digest};
use crate::warc::{HeadWriter, RecordIds, RecordType, WarcDate, is_http};

/// The metadata field for one line of the head of a response that has no block; repeated for every line.
///
/// The head cannot be the revisit's block: pywb would replay it as an empty page.
pub const FIELD_HTTP_HEAD: &str = "httpHead";
/// The metadata field for the digest of the payload without its transfer coding, if it differs from
/// `WARC-Payload-Digest`. Captures with equal values have the same payload, however they were chunked.
pub const FIELD_ENTITY_DIGEST: &str = "entityDigest";
/// The metadata field for the digest of the payload without its content codings, if it had any that could be removed.
/// Captures with equal values have the same content, however it was compressed.
pub const FIELD_CONTENT_DIGEST: &str = "contentDigest";
/// The metadata field for the name of the file from which a capture was imported.
pub const FIELD_IMPORTED: &str = "importedFrom";
/// The metadata field for the URL that led to this one (a Heritrix name).
pub(crate) const FIELD_VIA: &str = "via";

/// One capture. Cheap to clone: the bodies are shared.
#[derive(Clone, Debug)]
pub struct CaptureGroup {
    /// The requested URL.
    pub url: String,
    /// Capture time; microseconds are kept.
    pub time: DateTime<Utc>,
    /// IP address of the server.
    pub address: Option<IpAddr>,
    /// Bytes of the request as sent.
    pub request: Option<Bytes>,
    /// Its outcome.
    pub body: CaptureBody,
    /// The digest written as `WARC-Payload-Digest`.
    ///
    /// For a response it covers every byte after the head's empty line as received, including chunked coding: that is
    /// what warcio and FastWARC verify. The digest of the payload without chunked coding, if there is one, belongs in
    /// the metadata field [`FIELD_ENTITY_DIGEST`]. For a revisit it is the `WARC-Payload-Digest` of the original's
    /// record, by which pywb finds the original.
    pub payload_digest: Option<Digest>,
    /// Values of `WARC-Protocol`, such as `http/1.1` and `tls/1.3`.
    pub protocols: Vec<String>,
    /// Fields of the metadata record in order; names may repeat: `via`, `hopsFromSeed`, `outlink`, … A value of several
    /// lines becomes one field per line.
    pub metadata: Vec<(String, String)>,
}

/// The outcome of a fetch.
#[derive(Clone, Debug)]
pub enum CaptureBody {
    /// A complete response.
    Response {
        /// Head and body as received.
        http: Bytes,
        /// Why the body is incomplete.
        truncated: Option<Truncated>,
    },
    /// A complete response that is too long for memory.
    Spooled {
        /// The head as received, with its empty line.
        head: Bytes,
        /// The body as received.
        body: Arc<Spool>,
        /// Why the body is incomplete.
        truncated: Option<Truncated>,
    },
    /// A response with the payload of an earlier capture, of this URL or another.
    Identical {
        /// The head of this response with its empty line.
        head: Bytes,
        /// URL of the capture that has the payload.
        original_url: String,
        /// Time of that capture, to the microsecond.
        original_time: DateTime<Utc>,
    },
    /// A response with the content of an earlier capture, of this URL or another, in other content codings or
    /// compressed to other bytes.
    SameContent {
        /// The head of this response with its empty line.
        head: Bytes,
        /// URL of the capture that has the content.
        original_url: String,
        /// Time of that capture, to the microsecond.
        original_time: DateTime<Utc>,
    },
    /// The server answered 304.
    NotModified {
        /// The head of this response.
        head: Bytes,
        /// URL of the capture that is still valid.
        original_url: String,
        /// Time of that capture, to the microsecond.
        original_time: DateTime<Utc>,
    },
    /// Bytes that came without HTTP, such as a DNS answer.
    Resource {
        /// Media type of the bytes.
        content_type: String,
        /// The bytes.
        body: Bytes,
    },
    /// Nothing answered.
    Failed,
    /// A main record that another tool wrote.
    Imported(Box<ImportedRecord>),
}

/// A response, revisit, resource or conversion of a foreign WARC file. Its block, type, identifier and remaining fields are stored
/// unchanged.
#[derive(Clone, Debug)]
pub struct ImportedRecord {
    /// `WARC-Type`: response, revisit, resource or conversion.
    pub record_type: RecordType,
    /// `WARC-Record-ID` without its brackets; a record without one gets a new one.
    pub id: Option<String>,
    /// `WARC-Date` as stated, if the capture's time does not preserve it, such as the partial date `2014-01`.
    pub date: Option<String>,
    /// The digest of the block.
    pub block_digest: Digest,
    /// All remaining fields in order, without those that every capture has (`WARC-Type`, `WARC-Record-ID`, `WARC-Date`,
    /// `WARC-Target-URI`, `WARC-Payload-Digest`, `WARC-Block-Digest`, `Content-Length`).
    pub fields: Vec<(String, String)>,
    /// The block, or its beginning if it is too long for memory.
    pub content: Bytes,
    /// The remainder of such a block.
    pub rest: Option<Arc<Spool>>,
}

impl ImportedRecord {
    /// Whether the block is an HTTP message.
    #[must_use]
    pub fn is_http(&self) -> bool {
        let stated = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
        is_http(stated.map(|(_, value)| value.as_str()), &self.content)
    }

    /// Whether the record holds a payload.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        self.record_type != RecordType::Revisit
    }
}

/// Why a block is incomplete (`WARC-Truncated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncated {
    /// It exceeded a length limit.
    Length,
    /// It exceeded a time limit.
    Time,
    /// The connection was lost.
    Disconnect,
    /// Any other reason.
    Unspecified,
}

impl Truncated {
    /// Returns the value of `WARC-Truncated`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }

    /// Reads a value of `WARC-Truncated`; unknown values become `Unspecified`.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        match value.trim() {
            "length" => Self::Length,
            "time" => Self::Time,
            "disconnect" => Self::Disconnect,
            _ => Self::Unspecified,
        }
    }
}

/// A record that is ready to be compressed.
pub(super) struct RecordBlock<'a> {
    /// The head, including the empty line.
    pub head: String,
    /// The content; in the file, two line ends follow it.
    pub content: RecordContent<'a>,
}

/// The content of a record.
pub(super) enum RecordContent<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Some bytes, followed by a spool.
    Spooled(&'a [u8], &'a Spool),
}

impl RecordContent<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Spooled(head, body) => head.len() as u64 + body.len(),
        }
    }
}

impl<'a, T: Into<Cow<'a, [u8]>>> From<T> for RecordContent<'a> {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// Builds the records of a group in file order. A capture without an answer has no main record.
pub(super) fn blocks<'a>(
    group: &'a CaptureGroup,
    ids: &RecordIds,
    algorithm: Algorithm,
) -> io::Result<Vec<RecordBlock<'a>>> {
    let id = match &group.body {
        CaptureBody::Imported(record) => record.id.clone().unwrap_or_else(|| ids.next()),
        _ => ids.next(),
    };
    let mut blocks = Vec::with_capacity(3);
    blocks.extend(main_block(group, &id, algorithm)?);
    let concurrent_to = (!blocks.is_empty()).then_some(id);
    if let Some(request) = &group.request {
        let mut head = start(group, "request", &ids.next());
        concern(&mut head, concurrent_to.as_deref());
        head.field("Content-Type", "application/http;msgtype=request");
        blocks.push(finish(head, request, algorithm));
    }
    let mut head = start(group, "metadata", &ids.next());
    concern(&mut head, concurrent_to.as_deref());
    head.field("Content-Type", "application/warc-fields");
    let fields = metadata_fields(group);
    head.field("WARC-Block-Digest", Digest::of(algorithm, &fields));
    blocks.push(RecordBlock { head: head.finish(fields.len() as u64), content: fields.into() });
    Ok(blocks)
}

fn start(group: &CaptureGroup, record_type: &str, id: &str) -> HeadWriter {
    let mut head = match &group.body {
        CaptureBody::Imported(record) if let Some(date) = &record.date => {
            HeadWriter::new(record_type, id, date)
        }
        _ => HeadWriter::new(record_type, id, WarcDate(group.time)),
    };
    head.field("WARC-Target-URI", &group.url);
    head
}

fn concern(head: &mut HeadWriter, main: Option<&str>) {
    if let Some(main) = main {
        head.field("WARC-Concurrent-To", format_args!("<{main}>"));
    }
}

fn finish(mut head: HeadWriter, content: &[u8], algorithm: Algorithm) -> RecordBlock<'_> {
    head.field("WARC-Block-Digest", Digest::of(algorithm, content));
    RecordBlock { head: head.finish(content.len() as u64), content: content.into() }
}

fn main_block<'a>(
    group: &'a CaptureGroup,
    id: &str,
    algorithm: Algorithm,
) -> io::Result<Option<RecordBlock<'a>>> {
    let record_type = match &group.body {
        CaptureBody::Response { .. } | CaptureBody::Spooled { .. } => "response",
        CaptureBody::Identical { .. } | CaptureBody::SameContent { .. } | CaptureBody::NotModified { .. } => {
            "revisit"
        }
        CaptureBody::Resource { .. } => "resource",
        CaptureBody::Imported(record) => return Ok(Some(imported_block(group, record, id))),
        CaptureBody::Failed => return Ok(None),
    };
    let mut head = start(group, record_type, id);
    if let Some(address) = group.address {
        head.field("WARC-IP-Address", address);
    }
    for protocol in &group.protocols {
        head.field("WARC-Protocol", protocol);
    }
    if let Some(digest) = group.payload_digest {
        head.field("WARC-Payload-Digest", digest);
    }
    if let CaptureBody::Response { truncated, .. } | CaptureBody::Spooled { truncated, .. } = &group.body {
        if let Some(reason) = truncated {
            head.field("WARC-Truncated", reason.as_str());
        }
        head.field("Content-Type", "application/http;msgtype=response");
    }
    Ok(match &group.body {
        CaptureBody::Response { http, .. } => Some(finish(head, http, algorithm)),
        CaptureBody::Spooled { head: http_head, body, .. } => {
            head.field("WARC-Block-Digest", Digest::of_spooled(algorithm, http_head, body)?);
            let content = RecordContent::Spooled(http_head, body);
            Some(RecordBlock { head: head.finish(content.len()), content })
        }
        CaptureBody::Identical { head: http_head, original_url, original_time } => {
            refer(&mut head, PROFILE_IDENTICAL, original_url, *original_time);
            // The block is the head alone; section 6.7.2 requires that to be stated.
            head.field("WARC-Truncated", Truncated::Length.as_str());
            head.field("Content-Type", "application/http;msgtype=response");
            Some(finish(head, http_head, algorithm))
        }
        CaptureBody::SameContent { original_url, original_time, .. } => {
            refer(&mut head, PROFILE_SAME_CONTENT, original_url, *original_time);
            Some(RecordBlock { head: head.finish(0), content: (&[][..]).into() })
        }
        CaptureBody::NotModified { original_url, original_time, .. } => {
            refer(&mut head, PROFILE_NOT_MODIFIED, original_url, *original_time);
            Some(RecordBlock { head: head.finish(0), content: (&[][..]).into() })
        }
        CaptureBody::Resource { content_type, body } => {
            head.field("Content-Type", content_type);
            Some(finish(head, body, algorithm))
        }
        CaptureBody::Failed | CaptureBody::Imported(_) => None,
    })
}

fn imported_block<'a>(group: &CaptureGroup, record: &'a ImportedRecord, id: &str) -> RecordBlock<'a> {
    let mut head = start(group, record.record_type.as_str(), id);
    if let Some(digest) = group.payload_digest {
        head.field("WARC-Payload-Digest", digest);
    }
    for (name, value) in &record.fields {
        head.field(name, value);
    }
    head.field("WARC-Block-Digest", record.block_digest);
    let content = match &record.rest {
        Some(rest) => RecordContent::Spooled(&record.content, rest),
        None => (&record.content[..]).into(),
    };
    RecordBlock { head: head.finish(content.len()), content }
}

/// Builds the content of the metadata record: `name: value` lines (WARC/1.1 annex A, application/warc-fields).
fn metadata_fields(group: &CaptureGroup) -> Vec<u8> {
    let lengths = group.metadata.iter().map(|(name, value)| {
        let lines = 1 + memchr::memchr_iter(b'\n', value.as_bytes()).count();
        lines * (name.len() + 4) + value.len()
    });
    let length = lengths.sum();
    let mut text = String::with_capacity(length);
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    };
    for (name, value) in &group.metadata {
        let mut start = 0;
        for end in memchr::memchr2_iter(b'\r', b'\n', value.as_bytes()).chain([value.len()]) {
            if end > start || value.is_empty() {
                line(name, &value[start..end]);
            }
            start = end + 1;
        }
    }
    if let CaptureBody::NotModified { head, .. } | CaptureBody::SameContent { head, .. } = &group.body {
        for http_line in crate::warc::text(head).lines().filter(|line| !line.is_empty()) {
            line(FIELD_HTTP_HEAD, &http_line.replace('\r', ""));
        }
    }
    text.into_bytes()
}

/// Returns typical heads of records, as text for the end of a dictionary from which the heads of all records can be
/// copied.
pub(super) fn typical_heads<'a>(urls: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut text = Vec::new();
    for url in urls.filter(|url| url.len() < TYPICAL_URL_BYTES_MAX).take(TYPICAL_URLS_MAX) {
        text.extend_from_slice(format!("WARC-Target-URI: {url}\r\n").as_bytes());
    }
    let time = DateTime::UNIX_EPOCH;
    let digest = Some(Digest::from_sha256([0; 32]));
    let http = Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n");
    let bodies = [
        CaptureBody::Identical {
            head: http.clone(),
            original_url: "https://www.".into(),
            original_time: time,
        },
        CaptureBody::NotModified {
            head: Bytes::from_static(b"HTTP/1.1 304 Not Modified\r\nDate: \r\nETag: \r\n\r\n"),
            original_url: "https://www.".into(),
            original_time: time,
        },
        CaptureBody::Resource { content_type: "text/html".into(), body: Bytes::new() },
        CaptureBody::Response { http, truncated: None },
    ];
    let ids = RecordIds::seeded(0);
    for body in bodies {
        let group = CaptureGroup {
            url: "https://www.".into(),
            time,
            address: None,
            request: Some(Bytes::from_static(
                b"GET / HTTP/1.1\r\nHost: www.\r\nUser-Agent: Accept: */*\r\n\r\n",
            )),
            body,
            payload_digest: digest,
            protocols: vec!["http/1.1".into(), "tls/1.3".into()],
            metadata: vec![
                (FIELD_VIA.into(), "https://www.".into()),
                ("outlink".into(), "https://www.".into()),
            ],
        };
        for block in blocks(&group, &ids, Algorithm::Sha256).into_iter().flatten() {
            text.extend_from_slice(block.head.as_bytes());
            if let RecordContent::Bytes(content) = &block.content {
                text.extend_from_slice(content);
            }
            text.extend_from_slice(b"\r\n\r\n");
        }
    }
    text
}

/// Maximum number of URLs whose text goes into a dictionary.
const TYPICAL_URLS_MAX: usize = 1000;
/// Length limit of such a URL in bytes.
const TYPICAL_URL_BYTES_MAX: usize = 256;

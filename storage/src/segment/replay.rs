//! Assembles the records of a segment into captures, for recovery, replay and rebuilds.

use std::net::IpAddr;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::group::{FIELD_CONTENT_DIGEST, FIELD_ENTITY_DIGEST, FIELD_HTTP_HEAD, FIELD_VIA, Truncated};
use super::revisit::is_not_modified;
use crate::capture_kind::CaptureKind;
use crate::digest::Digest;
use crate::ids::{Location, SegmentId, Watermark};
use crate::warc::{self, HttpHead, MEDIA_TYPE_HTTP, Record, RecordHeader, RecordType};

/// A capture read back from its group.
#[derive(Clone, Debug)]
pub struct ReplayedCapture {
    /// The requested URL.
    pub url: String,
    /// Capture time, to the microsecond.
    pub time: DateTime<Utc>,
    /// Location of the main record, the first of the group; for [`CaptureKind::Failed`], of the metadata record.
    pub main: Location,
    /// Position after the group.
    pub end: Watermark,
    /// Kind of the capture.
    pub kind: CaptureKind,
    /// The main record's `WARC-Payload-Digest`.
    pub payload_digest: Option<Digest>,
    /// Status of the HTTP response; 304 for [`CaptureKind::NotModified`].
    pub status: Option<u16>,
    /// Media type without parameters, in lower case.
    pub mime: Option<String>,
    /// Bytes of payload without transfer coding. For a revisit, the `Content-Length` of its head, if there is one.
    pub payload_length: Option<u64>,
    /// Why the payload is incomplete.
    pub truncated: Option<Truncated>,
    /// For a revisit, URL and time of the capture that it refers to.
    pub original: Option<(String, DateTime<Utc>)>,
    /// IP address of the server.
    pub address: Option<IpAddr>,
    /// Values of `WARC-Protocol`.
    pub protocols: Vec<String>,
    /// Fields of the metadata record in order, as the crawler gave them.
    pub metadata: Vec<(String, String)>,
    /// Head of the HTTP response, including that of a 304.
    pub http: Option<HttpHead>,
    /// Block of the main record: the HTTP message of a response, the bytes of a resource.
    pub content: Bytes,
    /// The request as sent.
    pub request: Option<Bytes>,
}

impl ReplayedCapture {
    /// Builds the capture of a foreign main record that will be stored with these metadata fields; it has no location
    /// yet. Returns `None` for a record without URL or date.
    #[must_use]
    pub fn of_foreign(record: &Record, metadata: Vec<(String, String)>) -> Option<Self> {
        capture_of(&record.header, record.content.clone(), metadata)
    }

    /// Returns the first value of a metadata field.
    #[must_use]
    pub fn metadata_field(&self, name: &str) -> Option<&str> {
        self.metadata.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the URL that led here.
    #[must_use]
    pub fn via(&self) -> Option<&str> {
        self.metadata_field(FIELD_VIA)
    }

    /// Returns the digest by which copies are recognized: that of the payload without its codings, as far as they could
    /// be removed.
    #[must_use]
    pub fn content_digest(&self) -> Option<Digest> {
        let field = |name| self.metadata_field(name).and_then(|digest| digest.parse().ok());
        field(FIELD_CONTENT_DIGEST).or_else(|| field(FIELD_ENTITY_DIGEST)).or(self.payload_digest)
    }

    /// Returns the payload: the content without head and transfer coding. Empty for revisits.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        match self.kind {
            CaptureKind::Response => message_payload(&self.content, self.http.as_ref()),
            CaptureKind::Resource => self.content.clone(),
            CaptureKind::Identical | CaptureKind::NotModified | CaptureKind::Failed => Bytes::new(),
        }
    }
}

fn is_http(header: &RecordHeader, content: &[u8]) -> bool {
    warc::is_http(header.get("Content-Type"), content)
}

fn message_payload(content: &Bytes, head: Option<&HttpHead>) -> Bytes {
    let (_, body) = warc::split(content);
    if head.is_some_and(HttpHead::is_chunked) { warc::dechunk(&body) } else { body }
}

/// Role of a record in its segment.
#[derive(Debug)]
pub(super) enum RecordRole {
    /// It describes the segment.
    Warcinfo,
    /// It belongs to an incomplete group.
    Part,
    /// It ends a group.
    Capture(Box<ReplayedCapture>),
    /// It belongs to no group; another tool may have written it.
    Stray,
}

/// Assembles the records of one segment into captures.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    main: Option<Record>,
    request: Option<Record>,
}

impl Assembler {
    /// Takes the next record of a segment.
    pub(super) fn take(&mut self, segment: SegmentId, record: Record) -> RecordRole {
        match record.header.record_type() {
            RecordType::Warcinfo => RecordRole::Warcinfo,
            RecordType::Response | RecordType::Revisit | RecordType::Resource | RecordType::Conversion => {
                self.request = None;
                self.main = Some(record);
                RecordRole::Part
            }
            RecordType::Request => {
                self.request = Some(record);
                RecordRole::Part
            }
            RecordType::Metadata => {
                let concerned = record.header.get("WARC-Concurrent-To");
                let (main, request) = (self.main.take(), self.request.take());
                let id = main.as_ref().and_then(|main| main.header.get("WARC-Record-ID"));
                let (main, request) = if concerned == id { (main, request) } else { (None, None) };
                if concerned.is_some() && main.is_none() {
                    return RecordRole::Stray;
                }
                capture(segment, main.as_ref(), request, &record)
                    .map_or(RecordRole::Stray, |capture| RecordRole::Capture(Box::new(capture)))
            }
            _ => RecordRole::Stray,
        }
    }

    /// Discards an unfinished group, because an unreadable record interrupts it.
    pub(super) fn interrupt(&mut self) {
        *self = Self::default();
    }
}

fn capture(
    segment: SegmentId,
    main: Option<&Record>,
    request: Option<Record>,
    metadata: &Record,
) -> Option<ReplayedCapture> {
    let first = main.unwrap_or(metadata);
    let content = main.map(|main| main.content.clone()).unwrap_or_default();
    let mut capture = capture_of(&first.header, content, warc::parse_fields(&metadata.content))?;
    capture.main = Location { segment, offset: first.offset, length: u32::try_from(first.length).ok()? };
    capture.end = Watermark { segment, offset: metadata.offset + metadata.length };
    capture.request = request.map(|request| request.content);
    Some(capture)
}

/// Builds a capture from its main record and metadata fields, without locations.
fn capture_of(
    header: &RecordHeader,
    content: Bytes,
    mut fields: Vec<(String, String)>,
) -> Option<ReplayedCapture> {
    let kind = kind_of(header, &content);
    let http = http_head(kind, header, &content, &mut fields);
    let mime = match &http {
        Some(head) => head.media_type(),
        None => header
            .get("Content-Type")
            .and_then(warc::media_type)
            .filter(|essence| kind != CaptureKind::Failed && essence != MEDIA_TYPE_HTTP),
    };
    let payload_length = match kind {
        CaptureKind::Response => Some(message_payload(&content, http.as_ref()).len() as u64),
        CaptureKind::Resource => Some(content.len() as u64),
        CaptureKind::Identical => {
            http.as_ref().and_then(|head| head.get("Content-Length")?.trim().parse().ok())
        }
        CaptureKind::NotModified | CaptureKind::Failed => None,
    };
    let original = header.refers_to().and_then(|(url, time)| Some((url.to_owned(), time?)));
    Some(ReplayedCapture {
        url: header.target_uri()?.to_owned(),
        time: header.date()?,
        main: Location::default(),
        end: Watermark::default(),
        kind,
        payload_digest: header.get("WARC-Payload-Digest").and_then(|digest| digest.parse().ok()),
        status: http.as_ref().and_then(HttpHead::status),
        mime,
        payload_length,
        truncated: match kind {
            CaptureKind::Response => header.get("WARC-Truncated").map(Truncated::parse),
            _ => None,
        },
        original,
        address: header.get("WARC-IP-Address").and_then(|address| address.parse().ok()),
        protocols: header.get_all("WARC-Protocol").map(str::to_owned).collect(),
        metadata: fields,
        http,
        content,
        request: None,
    })
}

fn kind_of(header: &RecordHeader, content: &[u8]) -> CaptureKind {
    match header.record_type() {
        RecordType::Response if is_http(header, content) => CaptureKind::Response,
        // Other crawlers also store results of other protocols (DNS) as responses.
        RecordType::Response | RecordType::Resource | RecordType::Conversion => CaptureKind::Resource,
        RecordType::Revisit if header.get("WARC-Profile").is_some_and(is_not_modified) => {
            CaptureKind::NotModified
        }
        RecordType::Revisit => CaptureKind::Identical,
        _ => CaptureKind::Failed,
    }
}

/// Returns the HTTP head of a capture; that of a record without a block is removed from the metadata fields.
fn http_head(
    kind: CaptureKind,
    header: &RecordHeader,
    content: &Bytes,
    fields: &mut Vec<(String, String)>,
) -> Option<HttpHead> {
    match kind {
        CaptureKind::Response => Some(HttpHead::parse(&warc::split(content).0)),
        CaptureKind::Identical if is_http(header, content) => Some(HttpHead::parse(&warc::split(content).0)),
        CaptureKind::Identical if !content.is_empty() => None,
        CaptureKind::Identical | CaptureKind::NotModified => {
            let lines: Vec<String> =
                fields.extract_if(.., |(name, _)| name == FIELD_HTTP_HEAD).map(|(_, line)| line).collect();
            // Other crawlers keep the head in the block.
            let head = if lines.is_empty() { content.clone() } else { lines.join("\r\n").into() };
            (!head.is_empty()).then(|| HttpHead::parse(&head))
        }
        CaptureKind::Resource | CaptureKind::Failed => None,
    }
}

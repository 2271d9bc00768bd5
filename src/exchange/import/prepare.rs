//! A foreign capture made ready to be stored: digests checked, payload parsed.

use std::collections::HashSet;
use std::sync::Arc;

use archive_storage::Digest;
use archive_storage::NAME_BYTES_MAX;
use archive_storage::address::{HOST_BYTES_MAX, canonical, is_url_in_bounds, url_hash};
use archive_storage::digest::Algorithm;
use archive_storage::segment::{
    CaptureBody, CaptureGroup, Encoded, Encoder, ImportedRecord, ReplayedCapture, SegmentError,
};
use archive_storage::warc::{HttpHead, Record, RecordType, dechunk, parse_fields, split};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use url::Url;

use super::gather::Group;
use crate::crawl::{has_text, http_date, read_page, take_parsed};
use crate::ledger::{Facts, Outcome, canonical_of};
use crate::originals::Reference;
use crate::parse::Limits;

/// Fields of a main record that a stored capture has in a form of its own, or that name records that are not stored.
const OWN_FIELDS: [&str; 9] = [
    "WARC-Type",
    "WARC-Record-ID",
    "WARC-Date",
    "WARC-Target-URI",
    "WARC-Payload-Digest",
    "WARC-Block-Digest",
    "Content-Length",
    "WARC-Concurrent-To",
    "WARC-Warcinfo-ID",
];

/// A capture that is ready but for its place in the archive.
pub(super) struct Prepared {
    pub(super) file: Arc<str>,
    /// Where its main record lies in the file.
    pub(super) offset: u64,
    /// Records it was made of.
    pub(super) records: u64,
    pub(super) outcome: Outcome,
    pub(super) form: Form,
    /// What is needed to find the original of a revisit.
    pub(super) revisit: Option<Box<Revisit>>,
    /// The payload digest that the main record states.
    pub(super) stated: Option<Digest>,
    /// The identifier of the main record.
    pub(super) record_id: Option<String>,
    /// Title and text for the index.
    pub(super) text: Option<(String, String)>,
    /// A digest that was stated and is wrong.
    pub(super) wrong_digest: Option<String>,
}

/// How a capture waits to be stored.
pub(super) enum Form {
    /// As records: a revisit is encoded once its original is known.
    Group(Box<CaptureGroup>),
    /// As bytes of a segment.
    Encoded(Box<Encoded>),
}

/// A revisit whose original is not known yet.
pub(super) struct Revisit {
    /// What the capture is by its records.
    pub(super) told: ReplayedCapture,
    /// What it says of its original.
    pub(super) reference: Reference,
}

/// Why a capture cannot be imported.
pub(super) struct Refused {
    pub(super) offset: u64,
    pub(super) records: u64,
    /// Nothing when it is no capture at all.
    pub(super) why: Option<String>,
}

/// Makes a capture ready.
pub(super) fn prepare(
    file: &Arc<str>,
    group: Group,
    limits: &Limits,
    full_text: bool,
) -> Result<Prepared, Refused> {
    let records = group.count();
    let first = group.main.as_ref().or(group.metadata.first());
    let offset = first.map_or(0, |record| record.offset);
    let refuse = |why: Option<&str>| Refused { offset, records, why: why.map(str::to_owned) };
    let Some(first) = first else { return Err(refuse(None)) };
    let fields = group.metadata.iter().filter_map(warc_fields).flatten();
    // A page is read again: what is said of its links is needed only where there is nothing to read.
    let (links, fields): (Vec<_>, Vec<_>) = fields.partition(|(name, _)| Facts::is_link(name));
    if group.main.is_none() && !fields.iter().any(|(name, _)| name == "error") {
        return Err(refuse(None));
    }
    let Some(uri) = first.header.target_uri() else {
        return Err(refuse(Some("the record has no WARC-Target-URI")));
    };
    let Ok(url) = Url::parse(uri) else {
        return Err(refuse(Some(&format!("'{}' is not a URL", uri.chars().take(200).collect::<String>()))));
    };
    if !is_url_in_bounds(&canonical(&url), NAME_BYTES_MAX) {
        let why =
            format!("its URL has more than {NAME_BYTES_MAX} bytes, or its host more than {HOST_BYTES_MAX}");
        return Err(refuse(Some(&why)));
    }
    let Some(time) = first.header.date() else {
        return Err(refuse(Some("the record has no WARC-Date that can be read")));
    };
    let mut facts = Facts { imported: Some(file.to_string()), ..Facts::from_fields(&fields) };
    facts.robots |= is_robots(&url);
    let kept = fields.into_iter().filter(|(name, _)| !Facts::is_field(name));
    let request = group.request.map(|request| request.content);
    let capture =
        Capture { url: &url, uri, time, facts, links, kept: kept.collect(), request, limits, full_text };
    let prepared = match &group.main {
        Some(main) => capture.of_main(main),
        None => capture.of_failure(first),
    }
    .ok_or_else(|| refuse(Some("the record makes no sense")))?;
    Ok(Prepared { file: file.clone(), offset, records, ..prepared })
}

fn warc_fields(record: &Record) -> Option<Vec<(String, String)>> {
    let is_fields = record.header.get("Content-Type").is_none_or(|kind| kind.contains("warc-fields"));
    is_fields.then(|| parse_fields(&record.content))
}

fn is_robots(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.path() == "/robots.txt" && url.query().is_none()
}

/// What is known of a capture before its main record is read.
struct Capture<'a> {
    url: &'a Url,
    uri: &'a str,
    time: DateTime<Utc>,
    /// Without links.
    facts: Facts,
    /// Metadata fields of the links that the other tool found.
    links: Vec<(String, String)>,
    /// Metadata fields that mean nothing here.
    kept: Vec<(String, String)>,
    request: Option<Bytes>,
    limits: &'a Limits,
    full_text: bool,
}

impl Capture<'_> {
    fn of_main(mut self, main: &Record) -> Option<Prepared> {
        let record_type = main.header.record_type();
        let is_revisit = record_type == RecordType::Revisit;
        let digests = Digests::of(main);
        let mut text = None;
        let payload_digest = if is_revisit {
            self.take_stated_links();
            digests.stated
        } else {
            let (payload, head) = payload(main);
            let entity = digests.entity(main, &head).unwrap_or_else(|| Digest::sha256(&payload));
            self.facts.entity_digest = (digests.stated != Some(entity)).then_some(entity);
            text = self.read(main, &payload, &head);
            // What a payload is outside HTTP is for the tool to say that wrote the record.
            digests.payload.or_else(|| {
                let body = || if head.is_chunked() { Digest::sha256(&main.body()) } else { entity };
                is_http(main).then(body)
            })
        };
        let fields = main.header.fields.iter();
        let fields = fields
            .filter(|(name, _)| !OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)))
            .cloned()
            .collect();
        let record = ImportedRecord {
            record_type,
            id: main.header.record_id().map(str::to_owned),
            block_digest: digests.block,
            fields,
            content: main.content.clone(),
        };
        let (record_id, url, time) = (record.id.clone(), canonical(self.url), self.time.timestamp_micros());
        let reference = is_revisit.then(|| Reference::of(&main.header, url, time));
        let prepared =
            self.finish(main, CaptureBody::Imported(Box::new(record)), payload_digest, reference)?;
        Some(Prepared { record_id, text, wrong_digest: digests.wrong, ..prepared })
    }

    fn of_failure(mut self, metadata: &Record) -> Option<Prepared> {
        self.take_stated_links();
        let empty = Record { content: Bytes::new(), ..metadata.clone() };
        self.finish(&empty, CaptureBody::Failed, None, None)
    }

    fn finish(
        self,
        main: &Record,
        body: CaptureBody,
        payload_digest: Option<Digest>,
        reference: Option<Reference>,
    ) -> Option<Prepared> {
        let mut metadata = self.facts.to_fields();
        let facts = metadata.iter().filter(|(name, _)| !Facts::is_link(name)).cloned().collect();
        let told = ReplayedCapture::of_foreign(main, facts)?;
        // The facts as their record will tell them, which cuts what is long; links stay as they are.
        let facts = Facts { links: self.facts.links, ..Facts::from_fields(&told.metadata) };
        metadata.extend(self.kept);
        let group = CaptureGroup {
            url: self.uri.to_owned(),
            time: self.time,
            address: None,
            request: self.request,
            body,
            payload_digest,
            protocols: Vec::new(),
            metadata,
        };
        Some(Prepared {
            file: Arc::from(""),
            offset: 0,
            records: 0,
            outcome: Outcome::of_told(&told, facts, None),
            form: Form::Group(Box::new(group)),
            stated: told.payload_digest,
            revisit: reference.map(|reference| Box::new(Revisit { told, reference })),
            record_id: None,
            text: None,
            wrong_digest: None,
        })
    }

    /// Takes over the links that the other tool found, in their canonical form.
    fn take_stated_links(&mut self) {
        self.facts.links = Facts::from_fields(&self.links).links;
        for link in &mut self.facts.links {
            link.url = canonical_of(&link.url);
            link.hash = url_hash(&link.url);
        }
        self.facts.links.retain(|link| is_url_in_bounds(&link.url, NAME_BYTES_MAX));
    }

    /// Parses a payload; what is not to be read again for the index is given back.
    fn read(&mut self, main: &Record, payload: &Bytes, head: &HttpHead) -> Option<(String, String)> {
        let status = if is_http(main) { head.status().unwrap_or(0) } else { 200 };
        self.facts.last_modified = head.get("Last-Modified").and_then(http_date).map(|date| date.timestamp());
        if self.facts.robots || !matches!(self.url.scheme(), "http" | "https") {
            self.take_stated_links();
            return None;
        }
        let mut parsed = read_page(self.url, status, head, payload, self.limits);
        let is_searched = self.full_text && status == 200 && has_text(parsed.kind);
        let text = is_searched.then(|| (parsed.title.clone(), std::mem::take(&mut parsed.text)));
        take_parsed(&mut self.facts, parsed);
        // What the other tool found wrong with the document may have been found again.
        let mut seen = HashSet::new();
        self.facts.problems.retain(|problem| seen.insert(problem.clone()));
        text
    }
}

impl Prepared {
    /// Encodes the capture, unless it is a revisit whose original has to be found first.
    pub(super) fn encoded(self, encoder: &Encoder) -> Result<Self, SegmentError> {
        match self.form {
            Form::Group(group) if self.revisit.is_none() => {
                Ok(Self { form: Form::Encoded(Box::new(encoder.encode(*group)?)), ..self })
            }
            form => Ok(Self { form, ..self }),
        }
    }
}

fn is_http(main: &Record) -> bool {
    main.header.record_type() == RecordType::Response
        && main
            .header
            .get("Content-Type")
            .is_some_and(|kind| kind.trim_start().starts_with("application/http"))
}

/// A record's payload without transfer coding, and its head; a record without HTTP has the head that its type would give.
fn payload(main: &Record) -> (Bytes, HttpHead) {
    if is_http(main) {
        let (head, body) = split(&main.content);
        let head = HttpHead::parse(&head);
        let payload = if head.is_chunked() { dechunk(&body) } else { body };
        return (payload, head);
    }
    let kind = main.header.get("Content-Type").map(|kind| ("Content-Type".to_owned(), kind.to_owned()));
    (main.content.clone(), HttpHead { first_line: String::new(), fields: kind.into_iter().collect() })
}

/// What a record states of its content, as far as it is right.
struct Digests {
    block: Option<Digest>,
    /// The payload digest as stated, right or wrong.
    stated: Option<Digest>,
    payload: Option<Digest>,
    /// What is wrong, in words.
    wrong: Option<String>,
}

impl Digests {
    fn of(main: &Record) -> Self {
        let read = |name: &str| main.header.get(name).and_then(|text| text.parse::<Digest>().ok());
        let block = read("WARC-Block-Digest");
        let right_block = block.filter(|digest| digest.matches(&main.content));
        let stated = read("WARC-Payload-Digest");
        // The standard's words mean the payload without transfer coding, most tools write it with it.
        let right_payload =
            stated.filter(|digest| digest.matches(&main.body()) || digest.matches(&main.payload()));
        let is_revisit = main.header.record_type() == RecordType::Revisit;
        let mut wrong = Vec::new();
        if let Some(digest) = block.filter(|_| right_block.is_none()) {
            wrong.push(format!("the block does not have the stated digest {digest}"));
        }
        if let Some(digest) = stated.filter(|_| right_payload.is_none() && !is_revisit) {
            wrong.push(format!("the payload does not have the stated digest {digest}"));
        }
        let wrong = (!wrong.is_empty()).then(|| wrong.join(" and "));
        Self { block: right_block, stated, payload: right_payload, wrong }
    }

    /// The payload's SHA-256, when it has been stated and is right: without transfer coding there is but one payload.
    fn entity(&self, main: &Record, head: &HttpHead) -> Option<Digest> {
        let is_plain = is_http(main) && !head.is_chunked();
        self.payload.filter(|digest| is_plain && digest.algorithm() == Algorithm::Sha256)
    }
}

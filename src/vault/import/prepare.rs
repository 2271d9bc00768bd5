//! Prepares a foreign capture for storage: checks digests and parses the payload.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use archive_books::ledger::{CrawlerFacts, FetchOutcome, canonical_of, is_own_robots_txt};
use archive_books::originals::Reference;
use archive_books::recorder::Text;
use archive_storage::Digest;
use archive_storage::NAME_BYTES_MAX;
use archive_storage::address::{HOST_BYTES_MAX, canonical, is_url_in_bounds, url_hash};
use archive_storage::digest::Algorithm;
use archive_storage::segment::{CaptureBody, CaptureGroup, Encoded, ImportedRecord, ReplayedCapture};
use archive_storage::warc::{Date, Record, RecordHeader, RecordType, fields, page_of_request, split};
use archive_web::parse::{HashedAlready, http_date};
use archive_web::reading::{CallerReader, RawPage};
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use url::Url;

use super::NoteKind;
use super::digests::{Digests, RecordParts, is_http};
use super::gather::{CaptureRecords, bare};
use super::known::{CaptureIdentity, content, unusual_date};

/// Metadata field with the identifier that a record had in its file, if it could not be kept.
pub(super) const IMPORTED_ID: &str = "importedRecordId";

/// Maximum number of fields taken from a capture's foreign metadata.
const METADATA_FIELDS_MAX: usize = 100_000;

/// Bytes of memory that a link or a metadata field takes in addition to its text.
const FIELD_BYTES: u64 = 128;

/// Fields of a main record that a stored capture has in its own form, or that refer to records that are not stored.
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

/// A capture that is ready to be stored.
pub(super) struct PreparedCapture {
    pub(super) file: Arc<str>,
    /// Offset of its main record in the file.
    pub(super) offset: u64,
    /// Number of records that it consists of.
    pub(super) count: u64,
    pub(super) outcome: FetchOutcome,
    /// Its records. Those of a revisit are compressed when its original is known.
    pub(super) records: Encoded,
    /// Facts for finding the original of a revisit.
    pub(super) revisit: Option<Box<Revisit>>,
    /// The payload digest that the main record states.
    pub(super) stated: Option<Digest>,
    /// Distinguishes it from other captures of the same URL and time.
    pub(super) identity: CaptureIdentity,
    /// Text for the full-text index.
    pub(super) text: Option<Text>,
    /// Notes for the user.
    pub(super) notes: Vec<(NoteKind, String)>,
    /// Types of its records that are not kept.
    pub(super) left_out: Vec<RecordType>,
    /// Number of links that the other tool states and that are not kept.
    pub(super) unused_links: u64,
    /// Whether it was made from another record.
    pub(super) is_conversion: bool,
    /// Identifier of that record.
    pub(super) made_from: Option<String>,
}

/// A revisit whose original has not been found yet.
pub(super) struct Revisit {
    /// The capture according to its records.
    pub(super) stated: ReplayedCapture,
    /// What its record states about the original.
    pub(super) reference: Reference,
}

/// How records are read.
#[derive(Clone)]
pub(super) struct RecordReading {
    /// Maximum number of bytes of a body that are parsed.
    pub(super) body_bytes_max: usize,
    /// Whether text is kept for the full-text index.
    pub(super) full_text: bool,
    /// The hash function of computed digests.
    pub(super) algorithm: Algorithm,
}

/// Why a capture cannot be imported.
pub(super) struct ImportRefusal {
    pub(super) offset: u64,
    /// Number of records of the rejected capture.
    pub(super) records: u64,
    pub(super) why: RejectionReason,
}

/// The reason for a rejection.
pub(super) enum RejectionReason {
    /// The capture is broken; a message.
    Broken(String),
    /// The records are no capture; counted as this type.
    NoCapture(RecordType),
}

impl From<&str> for RejectionReason {
    fn from(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

/// Prepares a capture.
pub(super) fn prepare(
    file: &Arc<str>,
    group: &CaptureRecords,
    reading: &RecordReading,
    reader: &CallerReader,
) -> Result<PreparedCapture, ImportRefusal> {
    let records = group.count();
    let mut left_out = Vec::new();
    let (request, long) = match &group.request {
        Some(request) if request.rest.is_some() => (None, Some(request)),
        request => (request.as_ref(), None),
    };
    left_out.extend(long.map(|request| request.header.record_type()));
    let first = group.main.as_ref().or(request).or(group.metadata.first());
    let offset = first.map_or(0, |record| record.offset);
    let refuse = |why: RejectionReason| ImportRefusal { offset, records, why };
    let Some(first) = first else { return Err(refuse(RejectionReason::NoCapture(RecordType::Request))) };
    let (understood, strange): (Vec<_>, Vec<_>) = group.metadata.iter().partition(|record| is_fields(record));
    left_out.extend(strange.iter().map(|record| record.header.record_type()));
    let fields = understood.iter().flat_map(|record| fields(&record.content)).take(METADATA_FIELDS_MAX);
    // Pages are parsed again, so stated links are needed only where that gives none.
    let (links, fields): (Vec<_>, Vec<_>) = fields.partition(|(name, _)| CrawlerFacts::is_link(name));
    if group.main.is_none() && !fields.iter().any(|(name, _)| name == "error") {
        // What became of a request without an answer is unknown: nobody said that it failed.
        return Err(refuse(RejectionReason::NoCapture(first.header.record_type())));
    }
    let Some(uri) = first.header.target_uri() else {
        return Err(refuse("the record has no WARC-Target-URI".into()));
    };
    let Ok(url) = Url::parse(uri) else {
        let what = format!("'{}' is not a URL", uri.chars().take(200).collect::<String>());
        return Err(refuse(RejectionReason::Broken(what)));
    };
    if !is_url_in_bounds(&canonical(&url), NAME_BYTES_MAX) {
        let why =
            format!("its URL has more than {NAME_BYTES_MAX} bytes, or its host more than {HOST_BYTES_MAX}");
        return Err(refuse(RejectionReason::Broken(why)));
    }
    let stated = first.header.get("WARC-Date").unwrap_or_default().trim();
    let Some(date) = Date::parse(stated) else {
        return Err(refuse("the record has no WARC-Date that can be read".into()));
    };
    let mut facts = CrawlerFacts { imported: Some(file.to_string()), ..CrawlerFacts::from_fields(&fields) };
    facts.robots |= is_own_robots_txt(&canonical(&url));
    let kept = fields.into_iter().filter(|(name, _)| !CrawlerFacts::is_field(name));
    let capture = CaptureFacts {
        url: &url,
        uri: without_controls(uri),
        date: (stated, date),
        facts,
        links,
        unused_links: 0,
        kept: kept.collect(),
        // The head of a long one says at least with which method it was sent.
        request: request.map(|it| it.content.clone()).or_else(|| long.map(|it| split(&it.content).0)),
        reading,
        reader,
    };
    let notes = capture.notes(uri);
    let prepared = match &group.main {
        Some(main) => capture.of_main(main),
        None => Ok(capture.of_failure(first)),
    };
    let prepared = prepared
        .map_err(|error| refuse(RejectionReason::Broken(format!("cannot be read again: {error}"))))?;
    let prepared = prepared.ok_or_else(|| refuse("the record is malformed".into()))?;
    let notes = [notes, prepared.notes].concat();
    Ok(PreparedCapture { file: file.clone(), offset, count: records, notes, left_out, ..prepared })
}

fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Whether a metadata record has the known format and fits into memory.
fn is_fields(record: &Record) -> bool {
    let is_stated = record.header.get("Content-Type").is_none_or(|kind| kind.contains("warc-fields"));
    is_stated && record.rest.is_none()
}

/// Returns a URL as a record may state it, without the characters that its parser ignores (WHATWG URL, section 4.4),
/// and with all other control characters escaped.
fn without_controls(uri: &str) -> String {
    if !uri.contains(char::is_control) {
        return uri.to_owned();
    }
    let mut clean = String::with_capacity(uri.len() + 16);
    for character in uri.trim_matches(|c: char| c <= ' ').chars() {
        match character {
            '\t' | '\n' | '\r' => {}
            control if control.is_control() => {
                let mut bytes = [0; 4];
                let bytes = control.encode_utf8(&mut bytes).bytes();
                clean.extend(bytes.map(|byte| format!("%{byte:02X}")));
            }
            other => clean.push(other),
        }
    }
    clean
}

/// Facts about a capture before its main record is read.
struct CaptureFacts<'a> {
    url: &'a Url,
    /// The URL as its stored record will state it.
    uri: String,
    /// The date, as stated and as parsed.
    date: (&'a str, Date),
    /// The facts, without links.
    facts: CrawlerFacts,
    /// Metadata fields of the links that the other tool found.
    links: Vec<(String, String)>,
    /// Number of these that are not kept.
    unused_links: u64,
    /// Other metadata fields, which are kept as they are.
    kept: Vec<(String, String)>,
    request: Option<Bytes>,
    reading: &'a RecordReading,
    reader: &'a CallerReader,
}

impl CaptureFacts<'_> {
    /// Returns the notes about its URL and date.
    fn notes(&self, stated: &str) -> Vec<(NoteKind, String)> {
        let mut notes = Vec::new();
        if self.uri != stated {
            notes.push((
                NoteKind::Url,
                format!("the URL has control characters; it was imported as {}", self.uri),
            ));
        }
        let (date, Date { time, is_partial, .. }) = self.date;
        if is_partial {
            let time = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            notes.push((
                NoteKind::Date,
                format!("the date is {date}; the capture is listed at its beginning, {time}"),
            ));
        }
        notes
    }

    fn of_main(mut self, main: &Record) -> io::Result<Option<PreparedCapture>> {
        let record_type = main.header.record_type();
        let is_revisit = record_type == RecordType::Revisit;
        let digests = Digests::of(main, self.reading.algorithm)?;
        let (mut text, mut length) = (None, None);
        let payload_digest = if is_revisit {
            self.take_stated_links();
            digests.stated
        } else {
            let payload = RecordParts::of(main, &digests, self.reading.body_bytes_max.saturating_add(1))?;
            self.facts.entity_digest = (digests.stated != Some(payload.entity)).then_some(payload.entity);
            length = Some(payload.length);
            text = self.read(main, &payload);
            payload.payload
        };
        self.kept.extend(digests.fields);
        let fields = main.header.fields.iter();
        let fields = fields
            .filter(|(name, _)| !OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)))
            .cloned()
            .collect();
        let (date, Date { is_standard, .. }) = self.date;
        let record = ImportedRecord {
            record_type,
            id: main.header.record_id().map(str::to_owned),
            date: is_standard.then(|| date.to_owned()),
            block_digest: digests.block,
            fields,
            content: main.content.clone(),
            rest: main.rest.clone(),
        };
        // A date in a nonstandard format is stored as its parsed time.
        let date = if is_standard { unusual_date(date) } else { String::new() };
        let id = record.id.clone();
        let reference = is_revisit
            .then(|| Reference::of(&main.header, canonical(self.url), self.time().timestamp_micros()));
        let body = CaptureBody::Imported(Box::new(record));
        let Some(mut prepared) = self.finish(main, body, payload_digest, reference, length) else {
            return Ok(None);
        };
        let block = Some(digests.block).filter(|_| main.content_length() > 0);
        let content = content(block, digests.stated.filter(|_| is_revisit));
        prepared.identity = CaptureIdentity { id, date, content };
        let is_conversion = main.header.record_type() == RecordType::Conversion;
        let made_from = main.header.get("WARC-Refers-To").map(bare);
        Ok(Some(PreparedCapture { text, notes: digests.notes, is_conversion, made_from, ..prepared }))
    }

    /// Makes a capture without a response from the record that reports it.
    fn of_failure(mut self, first: &Record) -> Option<PreparedCapture> {
        self.take_stated_links();
        let id = first.header.record_id().map(str::to_owned);
        self.kept.extend(id.clone().map(|id| (IMPORTED_ID.to_owned(), id)));
        let empty = Record { content: Bytes::new(), header: as_metadata(first), ..first.clone() };
        let mut prepared = self.finish(&empty, CaptureBody::Failed, None, None, None)?;
        let content = prepared.outcome.facts.error.clone().unwrap_or_default();
        prepared.identity = CaptureIdentity { id, date: String::new(), content };
        Some(prepared)
    }

    fn time(&self) -> DateTime<Utc> {
        self.date.1.time
    }

    fn finish(
        self,
        main: &Record,
        body: CaptureBody,
        payload_digest: Option<Digest>,
        reference: Option<Reference>,
        length: Option<u64>,
    ) -> Option<PreparedCapture> {
        let mut metadata = self.facts.to_fields();
        let facts = metadata.iter().filter(|(name, _)| !CrawlerFacts::is_link(name)).cloned().collect();
        let mut capture = ReplayedCapture::of_foreign(main, facts)?;
        capture.request.clone_from(&self.request);
        let stated = std::mem::replace(&mut capture.payload_digest, payload_digest);
        capture.payload_length = length.or(capture.payload_length);
        // Takes the facts as the stored record will state them, that is with long values cut; links are not cut.
        let facts = CrawlerFacts { links: self.facts.links, ..CrawlerFacts::from_fields(&capture.metadata) };
        metadata.extend(self.kept);
        let group = CaptureGroup {
            url: self.uri,
            time: self.date.1.time,
            address: None,
            request: self.request,
            body,
            payload_digest,
            protocols: Vec::new(),
            metadata,
        };
        Some(PreparedCapture {
            file: Arc::from(""),
            offset: 0,
            count: 0,
            outcome: FetchOutcome::with_facts(&capture, facts, None),
            records: Encoded::later(group),
            stated,
            revisit: reference.map(|reference| Box::new(Revisit { stated: capture, reference })),
            identity: CaptureIdentity::default(),
            text: None,
            notes: Vec::new(),
            left_out: Vec::new(),
            unused_links: self.unused_links,
            is_conversion: false,
            made_from: None,
        })
    }

    /// Takes the links that the other tool found, in canonical form, if none were found in the document; counts those
    /// that are not kept.
    fn take_stated_links(&mut self) {
        if self.links.is_empty() {
            return;
        }
        let lines: usize = self.links.iter().map(|(_, value)| value.lines().count()).sum();
        let mut own: HashSet<u64, HashedAlready> = self.facts.links.iter().map(|link| link.hash).collect();
        let has_own = !own.is_empty();
        let mut unused = lines;
        for mut link in CrawlerFacts::from_fields(&self.links).links {
            if !own.contains(&link.hash) {
                link.url = canonical_of(&link.url);
                link.hash = url_hash(&link.url);
            }
            if own.contains(&link.hash) {
                unused -= 1;
            } else if !has_own && is_web(&link.url) && is_url_in_bounds(&link.url, NAME_BYTES_MAX) {
                own.insert(link.hash);
                self.facts.links.push(link);
                unused -= 1;
            }
        }
        self.unused_links = unused as u64;
    }

    /// Parses a payload. Returns its text for the full-text index, if wanted.
    fn read(&mut self, main: &Record, payload: &RecordParts) -> Option<Text> {
        let head = &payload.head;
        let status = if is_http(main) { head.status().unwrap_or(0) } else { 200 };
        self.facts.last_modified = head.get("Last-Modified").and_then(http_date).map(|date| date.timestamp());
        // A part of a document is not read as the whole.
        if self.facts.robots || status == 206 || !is_web(self.url.as_str()) {
            self.take_stated_links();
            return None;
        }
        let mut parsed = self.reader.page(&RawPage {
            url: self.url.clone(),
            status,
            head: Arc::new(head.clone()),
            payload: payload.beginning.clone(),
            is_decoded: false,
            key: payload.entity.prefix(),
        });
        // Only what `GET` gave is the page.
        let is_page =
            self.request.as_ref().is_none_or(|request| page_of_request(&self.uri, request).is_none());
        let is_searched = self.reading.full_text && status == 200 && is_page;
        // The text of each capture of a page replaces that of the previous one.
        let text = is_searched.then(|| Text::take(&mut parsed, None)).flatten();
        self.facts.take_parsed(parsed);
        self.take_stated_links();
        // Parsing may find problems again that the other tool had already reported.
        let mut seen = HashSet::new();
        self.facts.problems.retain(|problem| seen.insert(problem.clone()));
        text
    }
}

/// Returns the header of the metadata record that describes a capture without a response.
fn as_metadata(first: &Record) -> RecordHeader {
    let mut header = first.header.clone();
    for (name, value) in &mut header.fields {
        if name.eq_ignore_ascii_case("WARC-Type") {
            RecordType::Metadata.as_str().clone_into(value);
        }
    }
    header
}

impl PreparedCapture {
    /// Bytes that the capture takes in addition to the records it was made from.
    pub(super) fn grown_bytes(&self) -> u64 {
        let links = &self.outcome.facts.links;
        let links: u64 = links.iter().map(|link| link.url.len() as u64 + FIELD_BYTES).sum();
        let fields = self.records.group().metadata.iter();
        let fields = fields.map(|(name, value)| (name.len() + value.len()) as u64 + FIELD_BYTES);
        let text = self.text.as_ref().map_or(0, Text::bytes);
        links + fields.sum::<u64>() + self.records.packed_in_memory() + text
    }

    /// Returns the identifier that its main record gets if another record has the same one. It is always the same for
    /// the same capture, so that another import recognises it.
    pub(super) fn new_id(&self) -> Option<String> {
        let CaptureIdentity { id, date, content } = &self.identity;
        let (url, time) = (&self.outcome.url, self.outcome.time.timestamp_micros());
        let name = format!("{}\n{url}\n{time}\n{date}\n{content}", id.as_ref()?);
        let mut bytes = Digest::sha256(name.as_bytes()).prefix();
        // RFC 9562 (section 5.8) reserves version 8 for custom formats.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = bytes.map(|byte| format!("{byte:02x}"));
        let parts = [&digits[..4], &digits[4..6], &digits[6..8], &digits[8..10], &digits[10..]];
        Some(format!("urn:uuid:{}", parts.map(<[String]>::concat).join("-")))
    }

    /// Gives its main record the new identifier, and keeps the old one in its metadata.
    pub(super) fn rename(&mut self) {
        let (Some(old), new) = (&self.identity.id, self.new_id()) else { return };
        let group = self.records.change();
        let CaptureBody::Imported(record) = &mut group.body else { return };
        let what = format!("another record has its identifier {old} too; it was given a new one");
        self.notes.push((NoteKind::RecordId, what));
        record.id = new;
        group.metadata.push((IMPORTED_ID.to_owned(), old.clone()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The stored record always states a URL without control characters that has the same canonical form.
        #[test]
        fn stated_urls_stay_the_same_urls(
            uri in "[\\x00-\\x20]{0,2}(http|https|ftp|dns|urn)(\r|\n)?:(//)?[a-z\r\n\t.]{1,9}(:8\r0)?[/?#a-z\\x00-\\x1f\u{7f}-\u{a0}%]{0,20}"
        ) {
            let clean = without_controls(&uri);
            prop_assert!(!clean.contains(char::is_control));
            if let Ok(url) = Url::parse(&uri) {
                prop_assert_eq!(Url::parse(&clean).map(|url| canonical(&url)), Ok(canonical(&url)));
            }
        }
    }
}

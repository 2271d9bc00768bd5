//! Reads a captured page.

use std::borrow::Cow;
use std::sync::Arc;

use archive_storage::warc::HttpHead;
use bytes::Bytes;
use url::Url;

use super::{CallerReader, DocumentKey};
use crate::parse::headers::media_type;
use crate::parse::{
    self, Decoded, DocumentKind, FetchedDocument, ParseLimits, ParseProblem, ParsedDocument, decode_content,
};

/// Maximum decoded bytes of a payload that are parsed; a longer one is a decompression bomb or not a document.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// A page with everything that its parser needs.
#[derive(Clone)]
pub struct RawPage {
    /// Its URL.
    pub url: Url,
    /// Status of the answer.
    pub status: u16,
    /// Head of the answer.
    pub head: Arc<HttpHead>,
    /// The payload, without transfer coding.
    pub payload: Bytes,
    /// Whether its content codings were removed, too ([`CallerReader::decoded`]).
    pub is_decoded: bool,
    /// By which its outcome is recognized.
    pub key: DocumentKey,
}

impl CallerReader {
    /// Removes the content codings of a payload; `None` if it has none, or if they cannot be removed to the last byte.
    pub fn decoded(&self, key: DocumentKey, head: &HttpHead, payload: &Bytes) -> Option<Bytes> {
        let codings = head.list("Content-Encoding");
        if codings.is_empty() || payload.is_empty() {
            return None;
        }
        match self.read(key, || decode_content(payload, &codings, DECODED_BYTES_MAX)) {
            Ok(Decoded { body: Cow::Owned(body), problem: None }) => Some(body.into()),
            _ => None,
        }
    }

    /// Decodes and parses a page. If it cannot be read, its problems say why.
    pub fn page(&self, page: &RawPage) -> ParsedDocument {
        let media_type = media_type(Some(content_type(&page.head)));
        let kind = DocumentKind::of(&media_type, &page.payload);
        let read = || read_page(page, &self.desk.shared.limits);
        let is_parsed = kind.is_parsed() || page.head.get("Content-Encoding").is_some();
        if !is_parsed || (300..400).contains(&page.status) {
            return read();
        }
        self.read(page.key, read).unwrap_or_else(|unread| parse::unread(kind, &page.payload, unread.into()))
    }
}

/// Returns the type that a page is read as: the last one that its header names.
fn content_type(head: &HttpHead) -> &str {
    let named = head.fields.iter().rfind(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    named.map_or("", |(_, value)| value)
}

/// Decodes and parses a page on the calling thread.
fn read_page(page: &RawPage, limits: &ParseLimits) -> ParsedDocument {
    let RawPage { url, status, head, payload, is_decoded, .. } = page;
    let codings = if *is_decoded { String::new() } else { head.list("Content-Encoding") };
    let plain = decode_content(payload, &codings, DECODED_BYTES_MAX);
    let headers: Vec<(&str, &[u8])> =
        head.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let content_type = Some(content_type(head));
    let source = FetchedDocument { url, status: *status, content_type, headers: &headers, body: &plain.body };
    let mut parsed = parse::parse(&source, limits);
    parsed.problems.extend(plain.problem.map(ParseProblem::Coding));
    parsed
}

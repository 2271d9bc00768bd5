//! The outcome of a fetch, in the form in which it changes the archive's state.
//!
//! A live capture and one replayed from its WARC records become the same [`FetchOutcome`], which the same function credits.
//! So the records must hold everything that the state knows about a capture.

use std::borrow::Cow;

use archive_storage::address::{canonical, is_url_in_bounds, method_of};
use archive_storage::segment::ReplayedCapture;
use archive_storage::warc::page_of_request;
use archive_storage::{Capture, CaptureId, CaptureKind, NAME_BYTES_MAX, Validators};
use archive_web::parse::DocumentKind;
use chrono::{DateTime, Utc};
use url::Url;

use super::facts::CrawlerFacts;
use super::robots_txt::name_as_robots_txt;

/// Status of a document that was recorded without HTTP: the archive has it, and replay answers with it.
pub const DOCUMENT_STATUS: u16 = 200;

/// The outcome of one fetch.
#[derive(Debug, Clone)]
pub struct FetchOutcome {
    /// Canonical URL.
    pub url: String,
    /// Time of the request.
    pub time: DateTime<Utc>,
    /// Kind of capture.
    pub kind: CaptureKind,
    /// HTTP status, or that of a document without HTTP; 0 if nothing answered.
    pub status: u16,
    /// Media type without parameters; empty if unknown.
    pub media_type: String,
    /// Bytes of the payload, content coding included.
    pub payload_bytes: u64,
    /// Start of the digest of the payload without its codings, as far as they could be removed; zeros if there is none.
    pub digest: [u8; 16],
    /// For a revisit, the capture with the payload, if the archive has it.
    pub original: Option<(CaptureId, Capture)>,
    /// The server's validators for conditional requests, and the digest in the record.
    pub validators: Option<Validators>,
    /// Facts about the page.
    pub facts: CrawlerFacts,
}

impl FetchOutcome {
    /// Builds the outcome that a capture's records describe; `original` is the capture that a revisit refers to.
    ///
    /// A revisit repeats the payload digest of its original's record, which differs from its own if only the original
    /// was chunked. So what it copies is given by its reference, not by that digest.
    #[must_use]
    pub fn of_replayed(capture: &ReplayedCapture, original: Option<(CaptureId, Capture)>) -> Self {
        Self::with_facts(capture, CrawlerFacts::from_fields(&capture.metadata), original)
    }

    /// Like [`FetchOutcome::of_replayed`], with facts already read from the capture's metadata.
    #[must_use]
    pub fn with_facts(
        capture: &ReplayedCapture,
        facts: CrawlerFacts,
        original: Option<(CaptureId, Capture)>,
    ) -> Self {
        let kind = capture.kind;
        Self {
            url: match &facts.imported {
                Some(_) => page_asked_for(capture),
                None => capture.url.clone(),
            },
            time: capture.time,
            kind,
            status: capture.status.unwrap_or(match kind {
                // Other crawlers store a 304 without its head.
                CaptureKind::NotModified => 304,
                CaptureKind::Resource => DOCUMENT_STATUS,
                _ => 0,
            }),
            media_type: capture.mime.clone().unwrap_or_default(),
            payload_bytes: match (kind, original) {
                (CaptureKind::Identical, Some((_, original))) => u64::from(original.length),
                _ => capture.payload_length.unwrap_or(0),
            },
            digest: match original {
                Some((_, original)) => original.digest,
                None => capture.content_digest().map(|digest| digest.prefix()).unwrap_or_default(),
            },
            original,
            validators: capture.payload_digest.map(|digest| Validators::of(digest, capture.http.as_ref())),
            facts,
        }
    }
}

impl FetchOutcome {
    /// Returns the status of the document: a 304, or a revisit without a status, has that of its original.
    pub(crate) fn document_status(&self) -> u16 {
        match (self.kind, self.original) {
            (CaptureKind::NotModified, Some((_, original))) => original.status,
            (CaptureKind::Identical, Some((_, original))) if self.status == 0 => original.status,
            _ => self.status,
        }
    }

    /// Whether its facts describe the document and its links.
    pub(crate) fn describes_document(&self) -> bool {
        self.kind.has_payload() || self.facts.document.is_some() || !self.facts.links.is_empty()
    }

    /// Whether the server said that the page does not exist.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// Whether a page was found, judging by the status if there is one.
    #[must_use]
    pub fn is_page(&self) -> bool {
        match self.kind {
            CaptureKind::Failed => false,
            CaptureKind::Resource => true,
            CaptureKind::Response | CaptureKind::Identical | CaptureKind::NotModified => {
                self.status > 0 && self.status < 400 || self.status == 0 && !self.kind.has_payload()
            }
        }
    }

    /// Whether it shows what stood at its URL: the content of a page, or where that had moved. An error is an answer, but
    /// no content, and a revisit of what the archive lacks shows nothing.
    #[must_use]
    pub fn is_content(&self) -> bool {
        self.is_page() && (self.kind.has_payload() || self.original.is_some())
    }

    /// Returns the capture's name in the books: its URL, unless it was fetched as another host's robots.txt.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        if self.facts.robots { name_as_robots_txt(&self.url) } else { Cow::Borrowed(&self.url) }
    }

    /// Whether it is a document whose links carry importance. If so, an imported capture gets an account even if no
    /// page of the archive links to it.
    #[must_use]
    pub fn is_document(&self) -> bool {
        let is_web = self.url.starts_with("http://") || self.url.starts_with("https://");
        let kinds = [DocumentKind::Html, DocumentKind::Xml, DocumentKind::Feed, DocumentKind::OaiPmh];
        let is_document = self.facts.document.is_some_and(|kind| kinds.contains(&kind));
        is_web && is_document && !self.facts.robots && self.is_page() && method_of(&self.url).is_none()
    }
}

/// Returns the canonical URL of the page that another tool's request asked for; without a request, it was `GET`.
fn page_asked_for(capture: &ReplayedCapture) -> String {
    let url = canonical_of(&capture.url);
    let page = capture.request.as_ref().and_then(|request| page_of_request(&url, request));
    page.filter(|page| is_url_in_bounds(page, NAME_BYTES_MAX)).unwrap_or(url)
}

/// Returns the canonical form of a URL written by another tool; an invalid URL stays as it is.
#[must_use]
pub fn canonical_of(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| canonical(&url))
}

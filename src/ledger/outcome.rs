//! The outcome of a URL's fetch, in the form in which it changes the archive's state.
//!
//! A live capture and one that is replayed from its WARC records become the same [`Outcome`], and one function credits
//! it. So everything the state knows of a capture must be in its records.

use std::borrow::Cow;

use archive_storage::address::canonical;
use archive_storage::segment::ReplayedCapture;
use archive_storage::{Capture, CaptureId, CaptureKind, Validators};
use chrono::{DateTime, Utc};
use url::Url;

use super::facts::Facts;
use super::robots_txt::name_as_robots_txt;
use crate::parse::DocumentKind;

/// The outcome of one fetch.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Canonical URL.
    pub url: String,
    /// When it was asked for.
    pub time: DateTime<Utc>,
    /// What was stored.
    pub kind: CaptureKind,
    /// HTTP status; 0 when nothing came back.
    pub status: u16,
    /// Media type without parameters; empty when unknown.
    pub media_type: String,
    /// Bytes of the payload, content coding included.
    pub payload_bytes: u64,
    /// Start of the digest of the payload without transfer coding; zeros when there is none.
    pub digest: [u8; 16],
    /// Of a revisit: the capture that has the payload, when the archive has it.
    pub original: Option<(CaptureId, Capture)>,
    /// What the server gave to ask for it again, and the digest that its record states.
    pub validators: Option<Validators>,
    /// What the page is.
    pub facts: Facts,
}

impl Outcome {
    /// The outcome that a capture's records describe; `original` is the capture that a revisit refers to.
    ///
    /// A revisit has the payload digest of its original's record, which is another one where the original was chunked
    /// and the revisit was not. So what it is a copy of is what it refers to, not what has its digest.
    #[must_use]
    pub fn of_replayed(capture: &ReplayedCapture, original: Option<(CaptureId, Capture)>) -> Self {
        Self::with_facts(capture, Facts::from_fields(&capture.metadata), original)
    }

    /// The same with facts that were read of the capture's metadata before.
    #[must_use]
    pub fn with_facts(
        capture: &ReplayedCapture,
        facts: Facts,
        original: Option<(CaptureId, Capture)>,
    ) -> Self {
        let kind = capture.kind;
        Self {
            url: match &facts.imported {
                Some(_) => canonical_of(&capture.url),
                None => capture.url.clone(),
            },
            time: capture.time,
            kind,
            // Other crawlers store a 304 without its head.
            status: capture.status.unwrap_or(if kind == CaptureKind::NotModified { 304 } else { 0 }),
            media_type: capture.mime.clone().unwrap_or_default(),
            payload_bytes: match (kind, original) {
                (CaptureKind::Identical, Some((_, original))) => u64::from(original.length),
                _ => capture.payload_length.unwrap_or(0),
            },
            digest: match original {
                Some((_, original)) => original.digest,
                None => capture.entity_digest().map(|digest| digest.prefix()).unwrap_or_default(),
            },
            original,
            validators: capture.payload_digest.map(|digest| Validators::of(digest, capture.http.as_ref())),
            facts,
        }
    }
}

impl Outcome {
    /// The status of the document: a 304, or a revisit without a status, has that of the capture it stands for.
    #[must_use]
    pub fn document_status(&self) -> u16 {
        match (self.kind, self.original) {
            (CaptureKind::NotModified, Some((_, original))) => original.status,
            (CaptureKind::Identical, Some((_, original))) if self.status == 0 => original.status,
            _ => self.status,
        }
    }

    /// Whether its facts say what the document is and where its links lead.
    #[must_use]
    pub fn describes_document(&self) -> bool {
        self.kind.has_payload() || self.facts.document.is_some() || !self.facts.links.is_empty()
    }

    /// Whether the server said that the page is not there.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// Whether a page was found, by the status where there is one.
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

    /// The name under which the books keep the capture: its URL, unless it was fetched as the robots.txt of another.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        if self.facts.robots { name_as_robots_txt(&self.url) } else { Cow::Borrowed(&self.url) }
    }

    /// Whether it is a document whose links carry importance: what opens an account for an imported capture that no page
    /// of the archive links to.
    #[must_use]
    pub fn is_document(&self) -> bool {
        let is_web = self.url.starts_with("http://") || self.url.starts_with("https://");
        let kinds = [DocumentKind::Html, DocumentKind::Xml, DocumentKind::Feed, DocumentKind::OaiPmh];
        let is_document = self.facts.document.is_some_and(|kind| kinds.contains(&kind));
        is_web && is_document && !self.facts.robots && self.is_page()
    }
}

/// The canonical form of a URL that another tool wrote. What is not a URL stays as it is.
#[must_use]
pub fn canonical_of(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| canonical(&url))
}

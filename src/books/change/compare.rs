//! Versions of a page from the archive, and their comparison.

use std::borrow::Cow;

use archive_base::access::Access;
use archive_storage::address::canonical;
use archive_storage::warc::{HttpHead, media_type};
use archive_storage::{Capture, CaptureId, CaptureKind, StateError, Store, StoreError, UrlId};
use archive_web::parse::{
    self, DocumentFacts, DocumentKind, Fetch, FetchedDocument, NotReadable, ParseLimits, ParsedDocument,
    Readable, Selected, Structure, Validation, XPathError, decode_content, parse, with_elements,
    with_xml_tree,
};
use archive_web::reading;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use super::text::{Passage, passages};
use super::validity::DefinitionPart;
use super::xml::{Delta, Tree};
use crate::ledger::{CrawlerFacts, capture_flags};
use crate::prepared::PreparedError;

/// Maximum size of a decoded payload in bytes.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// Maximum size of an XML document compared as a tree, in bytes; larger ones are compared as text.
const TREE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of nodes of such a tree; each takes some hundred bytes plus its names.
const TREE_NODES_MAX: u32 = 250_000;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// Number of bytes of a document in which its first tag is expected.
const BEGINNING_BYTES: usize = 1 << 20;

/// Why versions cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The prepared data of the archive is damaged.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// The original of a revisit is in another archive.
    #[error("the capture that this one refers to is not in the archive")]
    NoOriginal,
}

/// How two versions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Difference {
    /// No known difference.
    None,
    /// XML documents: the delta between them.
    Xml(Delta),
    /// Texts: the passages that differ.
    Text {
        /// In the order of both versions.
        changes: Vec<Passage>,
    },
    /// Only bytes: documents that are not text, or whose own text is equal.
    Bytes,
}

/// Why a comparison is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutReason {
    /// The versions take too long to read; only the bytes were compared.
    TooLong,
    /// An XML document is too large or too broken to be compared as a tree; the texts were compared.
    NoTree,
    /// The texts take too long to compare; more may be marked than changed.
    Rough,
}

impl CutReason {
    /// Returns the reason as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooLong => "The versions take too long to read, so only their bytes were compared.",
            Self::NoTree => {
                "The documents are too large or too broken to be compared as XML, so their texts were compared."
            }
            Self::Rough => {
                "The texts take too long to compare in full, so unchanged parts may be marked too."
            }
        }
    }
}

/// The comparison of two versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionComparison {
    /// Both titles, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<(String, String)>,
    /// Sizes of both payloads in bytes.
    pub bytes: (usize, usize),
    /// Why the comparison is incomplete, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutReason>,
    /// How they differ.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Whether a capture found its page: failed fetches and errors are not versions.
#[must_use]
pub fn is_version(capture: &Capture) -> bool {
    capture.status > 0 && capture.status < 400
}

/// Returns the newest version of a page not after `until` (microseconds since 1970), and the version before its last
/// change. The second is `None` if the page had not changed yet.
///
/// A change is one of the meaningful content; if only bytes ever changed, it is one of the bytes.
pub(crate) fn latest_versions(
    store: &Store,
    access: &Access,
    id: UrlId,
    until: i64,
) -> Result<Option<(Capture, Option<Capture>)>, VersionError> {
    let mut newest: Option<Capture> = None;
    // For content and for bytes: the flag, whether the last change was passed, and the version before it.
    let mut before: [(u8, bool, Option<Capture>); 2] =
        [capture_flags::CONTENT_CHANGED, capture_flags::BYTES_CHANGED].map(|flag| (flag, false, None));
    for capture in access.history(store.state(), id)? {
        let (_, capture) = capture?;
        if !is_version(&capture) || capture.time > until {
            continue;
        }
        newest.get_or_insert(capture);
        for (flag, passed, found) in &mut before {
            if *passed && found.is_none() {
                *found = Some(capture);
            }
            *passed |= capture.flags & *flag != 0;
        }
        if before[0].2.is_some() {
            break;
        }
    }
    let [(_, _, content), (_, _, bytes)] = before;
    Ok(newest.map(|newest| (newest, content.or(bytes))))
}

/// Returns the version of a page nearest to a time in microseconds since 1970; on a tie the newer one.
///
/// # Errors
/// If the state cannot be read.
pub fn version_near(
    store: &Store,
    access: &Access,
    id: UrlId,
    time: i64,
) -> Result<Option<(CaptureId, Capture)>, VersionError> {
    let mut nearest: Option<(CaptureId, Capture)> = None;
    for capture in access.history(store.state(), id)? {
        let (number, capture) = capture?;
        let is_nearer =
            nearest.is_none_or(|(_, nearest)| capture.time.abs_diff(time) < nearest.time.abs_diff(time));
        if is_version(&capture) {
            if !is_nearer {
                break;
            }
            nearest = Some((number, capture));
        }
    }
    Ok(nearest)
}

/// Returns the old and the new version nearest to the given times, in microseconds since 1970. The default for the new
/// one is the newest; the default for the old one is the version before the last change of the new one. Without earlier
/// changes a version is compared with itself. `None` if there is no version.
///
/// # Errors
/// If the state cannot be read.
pub fn versions_meant(
    store: &Store,
    access: &Access,
    id: UrlId,
    (from, to): (Option<i64>, Option<i64>),
) -> Result<Option<(Capture, Capture)>, VersionError> {
    let near = |time: Option<i64>| -> Result<Option<Capture>, VersionError> {
        let near = time.map(|time| version_near(store, access, id, time)).transpose()?;
        Ok(near.flatten().map(|(_, capture)| capture))
    };
    let until = near(to)?.map_or(i64::MAX, |new| new.time);
    let Some((new, before)) = latest_versions(store, access, id, until)? else { return Ok(None) };
    Ok(Some((near(from)?.or(before).unwrap_or(new), new)))
}

/// Returns the newest version of a page not after `time`, in microseconds since 1970.
///
/// # Errors
/// If the state cannot be read.
pub fn version_until(
    store: &Store,
    access: &Access,
    id: UrlId,
    time: i64,
) -> Result<Option<Capture>, VersionError> {
    for capture in access.history(store.state(), id)? {
        let (_, capture) = capture?;
        if capture.time <= time && is_version(&capture) {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

/// Returns the text of a capture, with its external entities as far as `access` shows them; empty if it has none or
/// takes too long to read. Also returns whether the text has parts from other captures.
///
/// # Errors
/// If its records cannot be read.
pub fn text_of(store: &Store, access: &Access, capture: &Capture) -> Result<(String, bool), VersionError> {
    let stored = StoredVersion::read(store, access, capture)?;
    let has_parts = stored.whole.is_some();
    Ok((stored.text(), has_parts))
}

/// Returns the parsed content of a capture without its external entities, as a crawl sees a document when it comes: its parts
/// are fetched afterwards. Empty if it takes too long to read.
///
/// # Errors
/// If its record cannot be read.
pub fn parsed(store: &Store, capture: &Capture) -> Result<ParsedDocument, VersionError> {
    let stored = StoredVersion::alone(store, capture)?;
    Ok(reading::in_time(move || stored.version().parsed).unwrap_or_default())
}

/// Returns the parsed content of a capture, with its external entities; `None` if it takes too long to read.
///
/// # Errors
/// If its record cannot be read.
pub fn parsed_in_time(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<ParsedDocument>, VersionError> {
    let stored = StoredVersion::read(store, access, capture)?;
    Ok(reading::in_time(move || stored.version().parsed))
}

/// Returns what the document of a capture says of itself, and what its bytes are. `None` if there is no payload, for a
/// revisit whose original is in another archive, and for what takes too long to read.
///
/// # Errors
/// If its record cannot be read.
pub fn facts(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<DocumentFacts>, VersionError> {
    let stored = match StoredVersion::read(store, access, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    Ok(reading::in_time(move || {
        let body = stored.body();
        stored.read_as(&body, parse::facts)
    }))
}

/// Passes the tree of a capture to `read`, if it is an XML document with elements.
///
/// # Errors
/// If its record cannot be read.
pub fn with_tree<T>(
    store: &Store,
    access: &Access,
    capture: &Capture,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Result<Option<T>, VersionError> {
    let stored = StoredVersion::read(store, access, capture)?;
    Ok(with_elements(&stored.body(), stored.head.get("Content-Type"), &ParseLimits::default(), read))
}

/// Returns the structure of the XML document of a capture, from its beginning and from the problems found when it was
/// captured. `None` for other documents, and for a revisit whose original is in another archive.
///
/// # Errors
/// If its records cannot be read.
pub fn structure(store: &Store, capture: &Capture) -> Result<Option<Structure>, VersionError> {
    let Some(original) = store.original(capture)? else { return Ok(None) };
    let stored = StoredVersion::alone(store, &original)?;
    let problems = CrawlerFacts::from_fields(&store.metadata(&original)?).problems;
    let body = stored.body();
    let beginning = body.get(..BEGINNING_BYTES).unwrap_or(&body);
    Ok(parse::structure(beginning, stored.head.get("Content-Type"), &problems, &ParseLimits::default()))
}

/// Validates the XML document of a capture. `None` for other documents, and for a revisit whose original is in another
/// archive. External parts of the definition are taken from the archive, as of the time of the capture.
///
/// # Errors
/// If records cannot be read.
pub fn validate(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<Validation>, VersionError> {
    Ok(validated(store, access, capture)?.map(|(validation, _)| validation))
}

/// The same, with the parts of the definition that were looked up.
pub(super) fn validated(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<(Validation, Vec<DefinitionPart>)>, VersionError> {
    let stored = match StoredVersion::alone(store, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    let content_type = stored.head.get("Content-Type");
    let body = stored.body();
    let (validation, parts) = with_parts((store, access), capture.time, &stored.url, |fetch| {
        parse::validate(&body, content_type, &ParseLimits::default(), fetch)
    })?;
    Ok(validation.map(|validation| (validation, parts)))
}

/// Passes to `read` what reads external parts of a document, such as definitions and entities, from the captures
/// nearest to its own; also returns the parts that were looked up.
fn with_parts<T>(
    (store, access): (&Store, &Access),
    time: i64,
    url: &str,
    read: impl FnOnce(&mut Fetch<'_>) -> T,
) -> Result<(T, Vec<DefinitionPart>), VersionError> {
    let (mut parts, mut failed) = (Vec::new(), None);
    let mut fetch = |base: Option<&str>, system: &str| match part(
        (store, access),
        time,
        (base.unwrap_or(url), system),
        &mut parts,
    ) {
        Ok(part) => part,
        Err(error) => {
            failed = Some(error);
            None
        }
    };
    let read = read(&mut fetch);
    failed.map_or(Ok((read, parts)), Err)
}

/// Evaluates an XPath expression on the XML document of a capture. `None` for other documents, and for a revisit whose
/// original is in another archive.
///
/// # Errors
/// If records cannot be read.
pub fn xpath(
    store: &Store,
    access: &Access,
    capture: &Capture,
    expression: &str,
) -> Result<Option<Result<Selected, XPathError>>, VersionError> {
    let stored = match StoredVersion::read(store, access, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    let expression = expression.to_owned();
    let selected = reading::in_time(move || {
        let content_type = stored.head.get("Content-Type");
        parse::xpath(&unpacked(stored.body()), content_type, &expression, &ParseLimits::default())
    });
    Ok(selected.unwrap_or(Some(Err(XPathError::TooMuch("long")))))
}

/// Returns the error in an XPath expression, if it can be found without a document.
#[must_use]
pub fn xpath_mistake(expression: &str) -> Option<String> {
    let expression = expression.to_owned();
    let tried = move || parse::xpath(b"<a/>", Some("text/xml"), &expression, &ParseLimits::default());
    match reading::in_time(tried).flatten() {
        Some(Err(XPathError::Mistake(what))) => Some(what),
        _ => None,
    }
}

/// Returns the URL and the text of the entity with this system identifier.
fn part(
    (store, access): (&Store, &Access),
    time: i64,
    (base, system): (&str, &str),
    parts: &mut Vec<DefinitionPart>,
) -> Result<Option<(String, String)>, VersionError> {
    let Some(url) = Url::parse(base).and_then(|base| base.join(system)).ok() else { return Ok(None) };
    let url = canonical(&url);
    let near = match store.state().find(&url)? {
        Some(id) => version_near(store, access, id, time)?.filter(|(_, capture)| definition_part(capture)),
        None => None,
    };
    let read = near.map(|(id, capture)| (id, StoredVersion::alone(store, &capture)));
    let mut note = |part| {
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    let (id, stored) = match read {
        None | Some((_, Err(VersionError::NoOriginal))) => {
            note(DefinitionPart::Missing(url));
            return Ok(None);
        }
        Some((id, stored)) => (id, stored?),
    };
    note(DefinitionPart::Captured(id));
    let text = parse::external_text(&stored.body(), stored.head.get("Content-Type"));
    Ok(Some((url, text)))
}

/// Whether a capture can be a part of a definition.
pub(super) fn definition_part(capture: &Capture) -> bool {
    capture.status == 200 || capture.kind == CaptureKind::NotModified
}

/// Compares two captures of a page. If they take too long to compare, the result only says that their bytes differ.
///
/// # Errors
/// If their records cannot be read.
pub fn compare(
    store: &Store,
    access: &Access,
    old: &Capture,
    new: &Capture,
) -> Result<VersionComparison, VersionError> {
    let (old, new) = (StoredVersion::read(store, access, old)?, StoredVersion::read(store, access, new)?);
    let bytes = (old.payload.len(), new.payload.len());
    let compared = reading::in_time(move || {
        let (old, new) = (old.version(), new.version());
        let title = (old.parsed.title != new.parsed.title)
            .then(|| (old.parsed.title.clone(), new.parsed.title.clone()));
        let (difference, cut) = difference(&old, &new);
        VersionComparison { title, bytes: (old.body.len(), new.body.len()), cut, difference }
    });
    let unread = VersionComparison {
        title: None,
        bytes,
        cut: Some(CutReason::TooLong),
        difference: Difference::Bytes,
    };
    Ok(compared.unwrap_or(unread))
}

/// Returns the tree of an XML document; `None` if it has none, or too large a one.
pub(super) fn tree_of(body: &[u8], content_type: Option<&str>) -> Option<Tree> {
    let limits = ParseLimits { xml_nodes_max: TREE_NODES_MAX, ..ParseLimits::default() };
    (body.len() <= TREE_BYTES_MAX).then(|| with_xml_tree(body, content_type, &limits, Tree::of)).flatten()
}

fn difference(old: &ParsedVersion, new: &ParsedVersion) -> (Difference, Option<CutReason>) {
    if old.body == new.body {
        return (Difference::None, None);
    }
    if let (Some(old), Some(new)) = (old.tree(), new.tree()) {
        let delta = Delta::between(&old, &new);
        return (if delta.is_empty() { Difference::Bytes } else { Difference::Xml(delta) }, None);
    }
    let (passages, is_rough) = passages(&old.parsed.own_lines(), &new.parsed.own_lines());
    let is_xml = old.parsed.kind.is_xml() && new.parsed.kind.is_xml();
    let cut = if is_rough { Some(CutReason::Rough) } else { is_xml.then_some(CutReason::NoTree) };
    (if passages.is_empty() { Difference::Bytes } else { Difference::Text { changes: passages } }, cut)
}

/// Returns the content of a feed, a sitemap or another XML document for people, or why it cannot be shown.
///
/// # Errors
/// If its record cannot be read.
pub fn readable(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Result<Readable, NotReadable>, VersionError> {
    let stored = StoredVersion::read(store, access, capture)?;
    let read =
        reading::in_time(move || parse::readable(&unpacked(stored.body()), stored.head.get("Content-Type")));
    Ok(read.unwrap_or(Err(NotReadable::TooLong)))
}

/// Decompresses a gzip file, such as a sitemap; returns anything else unchanged.
pub(super) fn unpacked(body: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if !body.starts_with(&GZIP) {
        return body;
    }
    decode_content(&body, "gzip", DECODED_BYTES_MAX).body.into_owned().into()
}

/// An XML document with its external entities, and the system identifiers of those that the archive does not have.
type WithEntities = (Vec<u8>, Vec<String>);

/// Returns an XML document with its external entities; `None` for a document that refers to none.
pub fn whole(
    store: &Store,
    access: &Access,
    capture: &Capture,
    (url, head, payload): (&str, &HttpHead, &[u8]),
) -> Result<Option<WithEntities>, VersionError> {
    let content_type = head.get("Content-Type");
    let media_type = content_type.and_then(media_type).unwrap_or_default();
    let can_be_coded = head.get("Content-Encoding").is_some();
    if DocumentKind::of(&media_type, payload) != DocumentKind::Xml && !can_be_coded {
        return Ok(None);
    }
    let body = plain(head, payload);
    let (whole, _) = with_parts((store, access), capture.time, url, |fetch| {
        parse::with_entities(&body, content_type, &ParseLimits::default(), fetch)
    })?;
    Ok(whole)
}

/// Returns the system identifiers of external entities, and of parts that declare entities, that an XML document refers
/// to and the archive does not have; `None` for a document that refers to none.
///
/// # Errors
/// If records cannot be read.
pub fn missing_entities(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<Vec<String>>, VersionError> {
    let stored = match StoredVersion::alone(store, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    Ok(whole(store, access, capture, (&stored.url, &stored.head, &stored.payload))?.map(|it| it.1))
}

fn plain<'a>(head: &HttpHead, payload: &'a [u8]) -> Cow<'a, [u8]> {
    decode_content(payload, &head.list("Content-Encoding"), DECODED_BYTES_MAX).body
}

/// A stored version, not yet parsed.
struct StoredVersion {
    url: String,
    head: HttpHead,
    payload: Bytes,
    /// An XML document without content codings that has its external entities, if it refers to any.
    whole: Option<Vec<u8>>,
}

/// A version, decoded and parsed.
struct ParsedVersion {
    body: Vec<u8>,
    content_type: Option<String>,
    parsed: ParsedDocument,
}

impl StoredVersion {
    /// Reads a version. An XML document gets its external entities from the captures nearest to it that `access` shows.
    fn read(store: &Store, access: &Access, capture: &Capture) -> Result<Self, VersionError> {
        let mut stored = Self::alone(store, capture)?;
        stored.whole =
            whole(store, access, capture, (&stored.url, &stored.head, &stored.payload))?.map(|it| it.0);
        Ok(stored)
    }

    /// Reads a version as it was captured.
    fn alone(store: &Store, capture: &Capture) -> Result<Self, VersionError> {
        let original = store.original(capture)?.ok_or(VersionError::NoOriginal)?;
        let record = store.beginning(original.location, DECODED_BYTES_MAX)?;
        let (head, payload) = (record.http_head(), record.payload());
        Ok(Self { url: store.state().url(capture.url)?, head, payload, whole: None })
    }

    fn body(&self) -> Cow<'_, [u8]> {
        match &self.whole {
            Some(whole) => Cow::Borrowed(whole),
            None => plain(&self.head, &self.payload),
        }
    }

    fn text(self) -> String {
        let body = self.body();
        // Most texts are read in one pass, without a thread that can time out: starting one would take longer.
        if let Some(text) = self.read_as(&body, parse::text_in_one_pass) {
            return text;
        }
        let body = body.into_owned();
        reading::in_time(move || self.read_as(&body, parse::text)).unwrap_or_default()
    }

    /// Applies `read` to its body; returns the default if the URL is invalid.
    fn read_as<T: Default>(
        &self,
        body: &[u8],
        read: impl FnOnce(&FetchedDocument<'_>, &ParseLimits) -> T,
    ) -> T {
        let Ok(url) = Url::parse(&self.url) else { return T::default() };
        let headers: Vec<(&str, &[u8])> =
            self.head.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let source = FetchedDocument { url: &url, status: 200, content_type: None, headers: &headers, body };
        read(&source, &ParseLimits::default())
    }

    fn version(self) -> ParsedVersion {
        let mut body = self.body().into_owned();
        let parsed: ParsedDocument = self.read_as(&body, parse);
        if parsed.kind.is_xml() {
            body = unpacked(body.into()).into_owned();
        }
        let content_type = self.head.get("Content-Type").map(str::to_owned);
        ParsedVersion { body, content_type, parsed }
    }
}

impl ParsedVersion {
    fn tree(&self) -> Option<Tree> {
        if !self.parsed.kind.is_xml() {
            return None;
        }
        tree_of(&self.body, self.content_type.as_deref())
    }
}

//! Versions of a page, from the archive, side by side.

use std::borrow::Cow;

use archive_storage::address::canonical;
use archive_storage::warc::HttpHead;
use archive_storage::{Capture, CaptureId, CaptureKind, StateError, Store, StoreError, UrlId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use super::checked::Part;
use super::text::{Passage, passages};
use super::xml::{Delta, Tree};
use crate::access::Access;
use crate::ledger::{Facts, capture_flags};
use crate::parse::{
    self, Limits, Parsed, Readable, Selected, Source, Structure, Unreadable, Validation, XPathError,
    decode_content, parse, with_elements, with_xml_tree,
};
use crate::prepared::PreparedError;
use crate::reading;

/// Bytes that a payload may decode to.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// Bytes of an XML document that is compared as a tree; larger ones are compared as texts.
const TREE_BYTES_MAX: usize = 4 << 20;

/// What a compressed file begins with.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// Bytes of a document in which its first tag is looked for.
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
    /// What was prepared of the archive is damaged.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// A revisit whose original is in another archive.
    #[error("the capture that this one refers to is not in the archive")]
    NoOriginal,
}

/// How two versions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "changes", rename_all = "lowercase")]
pub enum Difference {
    /// Not at all, as far as is known.
    None,
    /// XML documents: what leads from one to the other.
    Xml(Delta),
    /// Texts: the passages that differ.
    Text(Vec<Passage>),
    /// Only bytes: what is not text, or a text whose own part is the same.
    Bytes,
}

/// Why a comparison says less than it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The versions take too long to read: only that their bytes differ is known.
    TooLong,
    /// One of the XML documents is too large, or too broken, to be compared as a tree: the texts were.
    NoTree,
    /// The texts take too long to compare: more may be marked as changed than what did.
    Rough,
}

impl Cut {
    /// The reason as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooLong => "The versions take too long to read, so only their bytes were compared.",
            Self::NoTree => {
                "The documents are too large or too broken to be compared by their elements, so their texts were."
            }
            Self::Rough => {
                "The texts take too long to compare in full, so more may be marked than what changed."
            }
        }
    }
}

/// Two versions, and how they differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The titles, when they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<(String, String)>,
    /// Bytes of both payloads.
    pub bytes: (usize, usize),
    /// The limit that was reached, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// How they differ.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Whether a capture found its page: failed fetches and errors are not versions of it.
#[must_use]
pub fn is_version(capture: &Capture) -> bool {
    capture.status > 0 && capture.status < 400
}

/// A page's newest version of a time (microseconds since 1970) or before, and the one before the last change that it had;
/// the second is none when it had not changed yet.
///
/// What counts is the meaningful content; where only bytes ever changed, these.
///
/// # Errors
/// When the state cannot be read.
pub fn latest_versions(
    store: &Store,
    access: &Access,
    id: UrlId,
    until: i64,
) -> Result<Option<(Capture, Option<Capture>)>, VersionError> {
    let mut newest: Option<Capture> = None;
    // For content and for bytes: whether the last change was passed, and what came before it.
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

/// A page's version nearest to a time in microseconds since 1970; of two equally near ones the newer.
///
/// # Errors
/// When the state cannot be read.
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

/// The old and the new version that are meant by the times to which they are nearest, in microseconds since 1970: without the
/// second the newest, without the first the one before the last change that the second had. Where nothing changed before, a
/// version is compared with itself. None if there is no version.
///
/// # Errors
/// When the state cannot be read.
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

/// A page's newest version of a time or before, in microseconds since 1970.
///
/// # Errors
/// When the state cannot be read.
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

/// The text of a capture; empty for what has none or takes too long to read.
///
/// # Errors
/// When its records cannot be read.
pub fn text_of(store: &Store, capture: &Capture) -> Result<String, VersionError> {
    let stored = Stored::read(store, capture)?;
    let body = stored.body();
    // Most of them need no thread that can be given up, whose beginning and end would take longer than they do.
    if let Some(text) = stored.read_as(&body, parse::text_in_one_pass) {
        return Ok(text);
    }
    let body = body.into_owned();
    Ok(reading::in_time(move || stored.read_as(&body, parse::text)).unwrap_or_default())
}

/// What a capture says, as it was parsed; nothing of what takes too long to read.
///
/// # Errors
/// When its record cannot be read.
pub fn parsed(store: &Store, capture: &Capture) -> Result<Parsed, VersionError> {
    Ok(parsed_in_time(store, capture)?.unwrap_or_default())
}

/// The same; none of what takes too long to read.
///
/// # Errors
/// When its record cannot be read.
pub fn parsed_in_time(store: &Store, capture: &Capture) -> Result<Option<Parsed>, VersionError> {
    let stored = Stored::read(store, capture)?;
    Ok(reading::in_time(move || stored.version().parsed))
}

/// Hands the tree of a capture to `read`, if it is an XML document with elements to ask for.
///
/// # Errors
/// When its record cannot be read.
pub fn with_tree<T>(
    store: &Store,
    capture: &Capture,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Result<Option<T>, VersionError> {
    let stored = Stored::read(store, capture)?;
    Ok(with_elements(&stored.body(), stored.head.get("Content-Type"), &Limits::default(), read))
}

/// What the XML document of a capture is as a whole, by its beginning and by what was wrong with it when it was captured; none of
/// other documents, and of a revisit whose original is in another archive.
///
/// # Errors
/// When its records cannot be read.
pub fn structure(store: &Store, capture: &Capture) -> Result<Option<Structure>, VersionError> {
    let Some(original) = store.original(capture)? else { return Ok(None) };
    let stored = Stored::read(store, &original)?;
    let problems = Facts::from_fields(&store.metadata(&original)?).problems;
    let body = stored.body();
    let beginning = body.get(..BEGINNING_BYTES).unwrap_or(&body);
    Ok(parse::structure(beginning, stored.head.get("Content-Type"), &problems, &Limits::default()))
}

/// What is wrong with the XML document of a capture; none of other documents, and of a revisit whose original is in another
/// archive. External parts of its definition are taken from
/// the archive, as they were when the document was captured.
///
/// # Errors
/// When records cannot be read.
pub fn validate(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<Validation>, VersionError> {
    Ok(validated(store, access, capture)?.map(|(validation, _)| validation))
}

/// The same, and the parts of the definition that were looked for.
pub(super) fn validated(
    store: &Store,
    access: &Access,
    capture: &Capture,
) -> Result<Option<(Validation, Vec<Part>)>, VersionError> {
    let stored = match Stored::read(store, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    let (mut parts, mut failed) = (Vec::new(), None);
    let mut fetch = |base: Option<&str>, system: &str| {
        let base = base.unwrap_or(&stored.url);
        match part((store, access), capture.time, (base, system), &mut parts) {
            Ok(part) => part,
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    };
    let content_type = stored.head.get("Content-Type");
    let validation = parse::validate(&stored.body(), content_type, &Limits::default(), &mut fetch);
    failed.map_or(Ok(validation.map(|validation| (validation, parts))), Err)
}

/// What an XPath expression gives of the XML document of a capture; none of other documents, and of a revisit whose original is
/// in another archive.
///
/// # Errors
/// When records cannot be read.
pub fn xpath(
    store: &Store,
    capture: &Capture,
    expression: &str,
) -> Result<Option<Result<Selected, XPathError>>, VersionError> {
    let stored = match Stored::read(store, capture) {
        Err(VersionError::NoOriginal) => return Ok(None),
        stored => stored?,
    };
    let expression = expression.to_owned();
    let selected = reading::in_time(move || {
        let content_type = stored.head.get("Content-Type");
        parse::xpath(&unpacked(stored.body()), content_type, &expression, &Limits::default())
    });
    Ok(selected.unwrap_or(Some(Err(XPathError::TooMuch("long")))))
}

/// What is wrong with an XPath expression, if no document is needed to see it.
#[must_use]
pub fn xpath_mistake(expression: &str) -> Option<String> {
    let expression = expression.to_owned();
    let tried = move || parse::xpath(b"<a/>", Some("text/xml"), &expression, &Limits::default());
    match reading::in_time(tried).flatten() {
        Some(Err(XPathError::Mistake(what))) => Some(what),
        _ => None,
    }
}

/// The URL and the text of what a system identifier names.
fn part(
    (store, access): (&Store, &Access),
    time: i64,
    (base, system): (&str, &str),
    parts: &mut Vec<Part>,
) -> Result<Option<(String, String)>, VersionError> {
    let Some(url) = Url::parse(base).and_then(|base| base.join(system)).ok() else { return Ok(None) };
    let url = canonical(&url);
    let near = match store.state().find(&url)? {
        Some(id) => version_near(store, access, id, time)?.filter(|(_, capture)| definition_part(capture)),
        None => None,
    };
    let read = near.map(|(id, capture)| (id, Stored::read(store, &capture)));
    let (id, stored) = match read {
        None | Some((_, Err(VersionError::NoOriginal))) => {
            parts.push(Part::Missing(url));
            return Ok(None);
        }
        Some((id, stored)) => (id, stored?),
    };
    parts.push(Part::Captured(id));
    let text = parse::external_text(&stored.body(), stored.head.get("Content-Type"));
    Ok(Some((url, text)))
}

/// Whether a capture may be a part of a definition.
pub(super) fn definition_part(capture: &Capture) -> bool {
    capture.status == 200 || capture.kind == CaptureKind::NotModified
}

/// How two captures of a page differ. Of versions that take too long to compare, only that they do is known.
///
/// # Errors
/// When their records cannot be read.
pub fn compare(store: &Store, old: &Capture, new: &Capture) -> Result<Comparison, VersionError> {
    let (old, new) = (Stored::read(store, old)?, Stored::read(store, new)?);
    let bytes = (old.payload.len(), new.payload.len());
    let compared = reading::in_time(move || {
        let (old, new) = (old.version(), new.version());
        let title = (old.parsed.title != new.parsed.title)
            .then(|| (old.parsed.title.clone(), new.parsed.title.clone()));
        let (difference, cut) = difference(&old, &new);
        Comparison { title, bytes: (old.body.len(), new.body.len()), cut, difference }
    });
    let unread = Comparison { title: None, bytes, cut: Some(Cut::TooLong), difference: Difference::Bytes };
    Ok(compared.unwrap_or(unread))
}

fn difference(old: &Version, new: &Version) -> (Difference, Option<Cut>) {
    if old.body == new.body {
        return (Difference::None, None);
    }
    if let (Some(old), Some(new)) = (old.tree(), new.tree()) {
        let delta = Delta::between(&old, &new);
        return (if delta.is_empty() { Difference::Bytes } else { Difference::Xml(delta) }, None);
    }
    let (passages, is_rough) = passages(&old.parsed.own_lines(), &new.parsed.own_lines());
    let is_xml = old.parsed.kind.is_xml() && new.parsed.kind.is_xml();
    let cut = if is_rough { Some(Cut::Rough) } else { is_xml.then_some(Cut::NoTree) };
    (if passages.is_empty() { Difference::Bytes } else { Difference::Text(passages) }, cut)
}

/// What a capture of a feed, a sitemap or another XML document holds, for people; or why it cannot be shown.
///
/// # Errors
/// When its record cannot be read.
pub fn readable(store: &Store, capture: &Capture) -> Result<Result<Readable, Unreadable>, VersionError> {
    let stored = Stored::read(store, capture)?;
    let read =
        reading::in_time(move || parse::readable(&unpacked(stored.body()), stored.head.get("Content-Type")));
    Ok(read.unwrap_or(Err(Unreadable::TooLong)))
}

/// The content of a compressed file, as sitemaps come in; anything else as it is.
fn unpacked(body: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if !body.starts_with(&GZIP) {
        return body;
    }
    decode_content(&body, "gzip", DECODED_BYTES_MAX).body.into_owned().into()
}

/// A version as it is stored.
struct Stored {
    url: String,
    head: HttpHead,
    payload: Bytes,
}

/// A version, decoded and parsed.
struct Version {
    body: Vec<u8>,
    content_type: Option<String>,
    parsed: Parsed,
}

impl Stored {
    fn read(store: &Store, capture: &Capture) -> Result<Self, VersionError> {
        let original = store.original(capture)?.ok_or(VersionError::NoOriginal)?;
        let record = store.record(original.location)?;
        let head = record.http_head();
        Ok(Self { url: store.state().url(capture.url)?, head, payload: record.payload() })
    }

    fn body(&self) -> Cow<'_, [u8]> {
        let coding = self.head.get("Content-Encoding").unwrap_or_default();
        decode_content(&self.payload, coding, DECODED_BYTES_MAX).body
    }

    /// What a function finds in its body; nothing in what has no URL.
    fn read_as<T: Default>(&self, body: &[u8], read: impl FnOnce(&Source<'_>, &Limits) -> T) -> T {
        let Ok(url) = Url::parse(&self.url) else { return T::default() };
        let headers: Vec<(&str, &[u8])> =
            self.head.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let source = Source { url: &url, status: 200, content_type: None, headers: &headers, body };
        read(&source, &Limits::default())
    }

    fn version(self) -> Version {
        let mut body = self.body().into_owned();
        let parsed: Parsed = self.read_as(&body, parse);
        if parsed.kind.is_xml() {
            body = unpacked(body.into()).into_owned();
        }
        let content_type = self.head.get("Content-Type").map(str::to_owned);
        Version { body, content_type, parsed }
    }
}

impl Version {
    fn tree(&self) -> Option<Tree> {
        /// Nodes of a tree that is compared with another: each takes some hundred bytes, and its names.
        const NODES_MAX: u32 = 250_000;
        if !self.parsed.kind.is_xml() || self.body.len() > TREE_BYTES_MAX {
            return None;
        }
        let limits = Limits { xml_nodes_max: NODES_MAX, ..Limits::default() };
        with_xml_tree(&self.body, self.content_type.as_deref(), &limits, Tree::of)
    }
}

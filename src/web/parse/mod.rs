//! Parses HTML, XML, feeds, sitemaps and style sheets into links, text and metadata.
//!
//! [`parse`] takes a body without chunks and content codings ([`decode_content`]) and returns everything that the
//! crawler needs to know about it. Invariants: any bytes are valid input; time is linear in their number, memory is
//! bounded by [`ParseLimits`]; [`ParsedDocument::problems`] lists what was cut or repaired; links are canonical and unique.
//!
//! | module | what it reads |
//! |---|---|
//! | `kind` | what a body is |
//! | `coding`, `charset` | bytes to text |
//! | `headers`, `directives`, `refresh` | the HTTP head |
//! | `html`, `css`, `json`, `xml` | documents |
//! | `office` | PDF, office files and e-mail, in another process |
//! | `link`, `outlinks`, `resolve` | references to canonical links |
//! | `signature`, `language` | what a text is like |
//! | `said`, `facts`, `pronom` | what a document says of itself, and what its bytes are |
//! | `sent` | requests with other methods than `GET` |

pub mod charset;
mod coding;
pub mod css;
mod dates;
mod directives;
mod document;
mod facts;
pub mod headers;
pub mod html;
mod json;
mod kind;
pub mod language;
mod link;
mod office;
mod outlinks;
pub mod playlist;
mod pronom;
pub mod refresh;
pub mod resolve;
mod said;
mod signature;
mod xml;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::UTF_8;
use url::Url;

pub use self::charset::charset_parameter;
pub use self::coding::{CODINGS_MAX, CodingProblem, Decoded, decode_content};
pub use self::dates::{http_date, parse_date};
pub use self::directives::RobotsDirectives;
use self::document::Document;
pub use self::facts::{DocumentFacts, FACT_BYTES_MAX, facts};
pub use self::kind::{DocumentKind, PAGE_TYPES, is_definition};
pub use self::link::{Link, LinkKind};
pub use self::office::{
    OFFICE_TEXT_BYTES_MAX, OfficeDocument, OfficeProblem, read_office, serve_documents, start_readers_with,
};
pub use self::outlinks::HashedAlready;
use self::outlinks::Outlinks;
pub use self::said::SaidTexts;
pub use self::signature::{is_alike, is_near};
pub use self::xml::readable::{FeedItem, NotReadable, Readable, ReadableElement, SitemapUrl, readable};
pub use self::xml::{
    ELEMENT_NAMES_MAX, Elements, Fetch, NAMESPACES, Selected, Structure, Validation, Validity,
    WHOLE_BYTES_MAX, XPATH_BYTES_MAX, XPATH_STACK_BYTES, XPathError, XPathResult, XmlMistake,
};

/// A fetched document.
#[derive(Clone, Copy, Debug)]
pub struct FetchedDocument<'a> {
    /// URL that the document was fetched from.
    pub url: &'a Url,
    /// HTTP status.
    pub status: u16,
    /// Value of `Content-Type`; if there is none, that among the headers counts.
    pub content_type: Option<&'a str>,
    /// Names and values of the header fields.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, without content and transfer codings.
    pub body: &'a [u8],
}

/// Limits of parsing, and the robot whose directives count.
#[derive(Clone, Debug)]
pub struct ParseLimits {
    /// Maximum bytes of a body that are parsed; the rest is ignored.
    pub body_bytes_max: usize,
    /// Maximum bytes of [`ParsedDocument::text`].
    pub text_bytes_max: usize,
    /// Maximum number of links of a page.
    pub links_max: usize,
    /// Maximum number of links of a sitemap. The protocol allows 50 000.
    pub sitemap_links_max: usize,
    /// Maximum bytes of a URL.
    pub url_bytes_max: usize,
    /// Maximum number of nodes of an XML tree.
    pub xml_nodes_max: u32,
    /// Maximum depth of an XML tree. (libxml2's own limit is 256.)
    pub xml_depth_max: usize,
    /// Maximum bytes of an XML document's expanded entities.
    pub xml_entity_bytes_max: usize,
    /// Name of the robot in `meta` elements and `X-Robots-Tag`, in lower case.
    pub robot: String,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 * 1024 * 1024,
            text_bytes_max: 512 * 1024,
            links_max: 10_000,
            sitemap_links_max: 50_000,
            url_bytes_max: 2048,
            xml_nodes_max: 2_000_000,
            xml_depth_max: 256,
            xml_entity_bytes_max: 8 * 1024 * 1024,
            robot: "archive".to_owned(),
        }
    }
}

/// Result of parsing a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedDocument {
    /// Kind of the document.
    pub kind: DocumentKind,
    /// Name of the encoding; none for documents that are not text.
    pub encoding: Option<&'static str>,
    /// Title, on one line; empty if there is none.
    pub title: String,
    /// Visible text, with one line per block.
    pub text: String,
    /// Parts of the text that are not the page's own (menus, footers, advertisements), in the order of their ends.
    pub surroundings: Vec<Range<usize>>,
    /// Names of the page's parts: headings, captions and terms of lists, in order; each is at most one line of the
    /// text.
    pub headings: Vec<Range<usize>>,
    /// Links, each URL once, in document order.
    pub links: Vec<Link>,
    /// Texts of links, in order; each is a part of the text.
    pub link_texts: Vec<LinkText>,
    /// What an HTML page or an office document says of itself beside its text.
    pub said: SaidTexts,
    /// Directives to robots.
    pub robots: RobotsDirectives,
    /// URL that the document prefers for itself.
    pub canonical: Option<String>,
    /// Language, as a lower-case tag (`de-at`): declared, or else guessed.
    pub language: Option<String>,
    /// Hash that stays equal unless something changes beyond what varies with every fetch.
    pub signature: u64,
    /// Similarity hash of text, numbers and pictures; see [`is_near`] and [`is_alike`]. 0 without text.
    pub similarity: u64,
    /// Dated items of a feed, sitemap or list.
    pub entries: Vec<DatedItem>,
    /// Whether the text has all words of an XML document's elements, in order.
    pub text_has_all: bool,
    /// Elements of an XML document by name; none for other documents, and for XML documents with too many.
    pub elements: Option<Vec<Elements>>,
    /// Document-level properties of an XML document, including XHTML.
    pub structure: Option<Structure>,
    /// What was cut, repaired or not understood.
    pub problems: Vec<ParseProblem>,
}

impl ParsedDocument {
    /// Returns the lines of the page's own text, from which the signature is computed: without menus, footers and
    /// advertisements, unless there is hardly any other text.
    #[must_use]
    pub fn own_lines(&self) -> Vec<&str> {
        signature::own_parts(&self.text, &self.surroundings)
            .into_iter()
            .flat_map(|part| self.text.get(part).unwrap_or_default().lines())
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect()
    }
}

/// The text of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkText {
    /// Index of its URL in [`ParsedDocument::links`].
    pub link: u32,
    /// Range of its text in [`ParsedDocument::text`].
    pub range: Range<usize>,
}

/// A dated item of a feed, sitemap or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatedItem {
    /// Index of its URL in [`ParsedDocument::links`].
    pub link: u32,
    /// Time of the last change, in seconds since 1970.
    pub modified: i64,
}

/// Why a parse is incomplete. The reason is stored with the capture; parsing continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseProblem {
    /// There are more links than the limit.
    #[error("{dropped} links beyond the limit")]
    TooManyLinks {
        /// Number of links dropped.
        dropped: usize,
    },
    /// Some URLs are too long.
    #[error("{dropped} URLs too long")]
    LongUrls {
        /// Number of URLs dropped.
        dropped: usize,
    },
    /// The body is longer than the part parsed.
    #[error("body cut at {at} bytes")]
    BodyCut {
        /// Bytes parsed.
        at: usize,
    },
    /// The text is longer than the part kept.
    #[error("text cut at {at} bytes")]
    TextCut {
        /// Bytes kept.
        at: usize,
    },
    /// Some bytes are invalid in the encoding.
    #[error("not all bytes are {encoding}")]
    Encoding {
        /// Name of the encoding.
        encoding: &'static str,
    },
    /// The document is not well-formed XML; what could be read was read.
    #[error("XML: {0}")]
    Xml(String),
    /// The document exceeds a limit on XML and was not read as XML.
    #[error("XML: too {0}")]
    XmlLimit(&'static str),
    /// The body could not be completely decoded.
    #[error(transparent)]
    Coding(#[from] CodingProblem),
    /// Nothing was read.
    #[error("not read: {0}")]
    NotRead(Cow<'static, str>),
    /// A part of an office document was not read.
    #[error(transparent)]
    Office(#[from] OfficeProblem),
}

/// Parses a document. Never fails: see [`ParsedDocument::problems`].
///
/// Links are read from documents with a success status; from redirects only the target; from errors none, as the links
/// of an error page are the site's, not the page's.
#[must_use]
pub fn parse(source: &FetchedDocument<'_>, limits: &ParseLimits) -> ParsedDocument {
    parse_for(source, limits, false)
}

/// Returns the text of a document as [`parse`] does, without links and data derived from the text.
#[must_use]
pub fn text(source: &FetchedDocument<'_>, limits: &ParseLimits) -> String {
    parse_for(source, limits, true).text
}

/// The same, but only for documents read in one pass, as most are; returns none for XML, compressed files and those that another process
/// reads.
#[must_use]
pub fn text_in_one_pass(source: &FetchedDocument<'_>, limits: &ParseLimits) -> Option<String> {
    let (fields, mut links) = (source.headers, Outlinks::without_links());
    let head = headers::read(fields, source.content_type, source.status, &limits.robot, &mut links);
    let kind = DocumentKind::of(&head.media_type, source.body);
    let is_simple = !kind.is_xml() && !kind.is_office() && kind != DocumentKind::Archive;
    is_simple.then(|| text(source, limits))
}

fn parse_for(source: &FetchedDocument<'_>, limits: &ParseLimits, is_text_alone: bool) -> ParsedDocument {
    let mut parsed = ParsedDocument::default();
    let mut outlinks = Outlinks::new(source.url, UTF_8, limits);
    let head =
        headers::read(source.headers, source.content_type, source.status, &limits.robot, &mut outlinks);
    let mut body = source.body;
    if body.len() > limits.body_bytes_max {
        body = &body[..limits.body_bytes_max];
        parsed.problems.push(ParseProblem::BodyCut { at: limits.body_bytes_max });
    }
    parsed.kind = DocumentKind::of(&head.media_type, body);
    parsed.robots = head.robots;
    parsed.language.clone_from(&head.language);
    let mut document = Document {
        source,
        limits,
        is_text_alone,
        media_type: &head.media_type,
        charset_label: head.charset.as_deref(),
        parsed,
        outlinks,
    };
    if (300..400).contains(&source.status) {
        document.parsed.signature = signature::of_bytes(body);
    } else {
        document.read(body);
    }
    let Document { mut parsed, outlinks, .. } = document;
    parsed.canonical = head.canonical.or(parsed.canonical);
    if source.status < 400 {
        parsed.links = outlinks.finish(&mut parsed.problems);
    } else {
        parsed.entries.clear();
    }
    parsed.language = parsed.language.map(|tag| tag.to_ascii_lowercase());
    parsed
}

/// Returns the result for a document that cannot be read.
pub(crate) fn unread(kind: DocumentKind, body: &[u8], problem: ParseProblem) -> ParsedDocument {
    ParsedDocument {
        kind,
        signature: signature::of_bytes(body),
        problems: vec![problem],
        ..ParsedDocument::default()
    }
}

/// Passes the tree of an XML document to `read`; returns none if there is no tree, even after repair.
pub fn with_xml_tree<T>(
    body: &[u8],
    content_type: Option<&str>,
    limits: &ParseLimits,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Option<T> {
    let (text, _) = decoded(body, content_type);
    xml::with_tree(text.trim_start(), limits, |tree, _, _| read(tree)).ok()
}

/// Passes the tree of an XML document to `read` if its elements can be queried ([`DocumentKind::has_elements`]).
pub fn with_elements<T>(
    body: &[u8],
    content_type: Option<&str>,
    limits: &ParseLimits,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Option<T> {
    let (text, _) = xml_text(body, content_type)?;
    let read = |tree: &roxmltree::Document<'_>, text: &str, _| {
        xml::kind_of(tree, text).has_elements().then(|| read(tree))
    };
    xml::with_tree(text.trim_start(), limits, read).ok().flatten()
}

/// Returns the document-level properties of an XML document, from its text and the `problems` stored with it; none for
/// other documents.
pub fn structure(
    body: &[u8],
    content_type: Option<&str>,
    problems: &[String],
    limits: &ParseLimits,
) -> Option<Structure> {
    xml_text(body, content_type).and_then(|(text, _)| xml::structure(&text, problems, limits))
}

/// Validates an XML document; returns none for other documents. `fetch` reads the external parts of its definition.
pub fn validate(
    body: &[u8],
    content_type: Option<&str>,
    limits: &ParseLimits,
    fetch: &mut Fetch<'_>,
) -> Option<Validation> {
    let (text, had_errors) = xml_text(body, content_type)?;
    Some(xml::validate(&text, had_errors, limits, fetch))
}

/// Returns an XML document in UTF-8 that has the texts of its external entities, and the system identifiers of those
/// that are missing; none for other documents, and for those that refer to no external entity. `fetch` reads external
/// parts.
pub fn with_entities(
    body: &[u8],
    content_type: Option<&str>,
    limits: &ParseLimits,
    fetch: &mut Fetch<'_>,
) -> Option<(Vec<u8>, Vec<String>)> {
    let begins = &body[..body.len().min(DOCTYPE_WITHIN)];
    let may_have = |word: &[u8]| memchr::memmem::find(begins, word).is_some();
    if !may_have(b"<!DOCTYPE") && !may_have(b"<\0!\0D") && !may_have(b"\0<\0!\0D") {
        return None;
    }
    let (text, _) = xml_text(body, content_type)?;
    let (text, missing) = xml::with_entities(text.trim_start(), limits, fetch)?;
    // A byte order mark counts more than any other statement of the encoding.
    Some(([BOM, text.as_bytes()].concat(), missing))
}

/// Bytes of a document in which its document type is looked for.
const DOCTYPE_WITHIN: usize = 64 << 10;

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Evaluates an XPath expression on a well-formed XML document; returns none for other documents.
///
/// It needs a stack of [`XPATH_STACK_BYTES`]. Its time is not bounded by the document's length: the caller must limit
/// it.
///
/// # Errors
/// When the expression is invalid, the document is not well-formed, or either exceeds the limits.
pub fn xpath(
    body: &[u8],
    content_type: Option<&str>,
    expression: &str,
    limits: &ParseLimits,
) -> Option<Result<Selected, XPathError>> {
    if body.len() > limits.body_bytes_max {
        return Some(Err(XPathError::Document(ParseProblem::BodyCut { at: limits.body_bytes_max })));
    }
    let (text, _) = xml_text(body, content_type)?;
    Some(xml::xpath(text.trim_start(), expression, limits))
}

/// Returns the text of an external part of a definition.
#[must_use]
pub fn external_text(body: &[u8], content_type: Option<&str>) -> String {
    decoded(body, content_type).0.into_owned()
}

/// Returns the text of a body in its encoding, which is looked for as in XML, and whether some bytes were invalid.
fn decoded<'b>(body: &'b [u8], content_type: Option<&str>) -> (Cow<'b, str>, bool) {
    let charset = charset::detect(body, content_type.and_then(charset_parameter), true);
    charset::decode(body, &charset)
}

/// Returns the text of an XML document, and whether some bytes were invalid; none for other documents.
fn xml_text<'b>(body: &'b [u8], content_type: Option<&str>) -> Option<(Cow<'b, str>, bool)> {
    let media_type = headers::media_type(content_type);
    let is_xml = !is_definition(&media_type) && DocumentKind::of(&media_type, body) == DocumentKind::Xml;
    is_xml.then(|| decoded(body, content_type))
}

#[cfg(test)]
mod tests;

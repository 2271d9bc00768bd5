//! HTML, XML, feeds, sitemaps and style sheets to links, text and metadata.
//!
//! [`parse`] takes a body with its codings taken off ([`decode_content`], [`dechunk`]) and gives everything the crawler
//! wants to know of it. Invariants: any bytes give an answer, in time linear in their number and in memory bounded by
//! [`Limits`]; [`Parsed::problems`] lists what had to be cut or repaired; links are canonical and unique.
//!
//! | module | what it reads |
//! |---|---|
//! | `kind` | what a body is |
//! | `coding`, `charset` | bytes to text |
//! | `headers`, `directives`, `refresh` | the HTTP head |
//! | `html`, `css`, `json`, `xml` | documents |
//! | `link`, `outlinks`, `resolve` | references to canonical links |
//! | `signature`, `language` | what a text is like |

pub(crate) mod charset;
mod coding;
pub(crate) mod css;
mod dates;
mod directives;
mod document;
pub(crate) mod headers;
pub(crate) mod html;
mod json;
mod kind;
mod language;
mod link;
mod outlinks;
pub(crate) mod refresh;
pub(crate) mod resolve;
mod signature;
mod xml;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::UTF_8;
use url::Url;

pub(crate) use self::charset::charset_parameter;
pub use self::coding::{CODINGS_MAX, CodingProblem, Decoded, dechunk, decode_content};
pub use self::dates::{http_date, parse_date};
pub use self::directives::RobotsDirectives;
use self::document::Document;
pub use self::kind::DocumentKind;
pub(crate) use self::kind::is_definition;
pub use self::link::{Link, LinkKind};
pub(crate) use self::outlinks::HashedAlready;
use self::outlinks::Outlinks;
pub use self::signature::{NEAR_BITS_MAX, is_near};
pub use self::xml::readable::{Element, Item, Place, Readable, Unreadable, readable};
pub use self::xml::{
    ELEMENT_NAMES_MAX, Elements, Fetch, Found, Mistake, NAMESPACES, Selected, Structure, Validation,
    Validity, WHOLE_BYTES_MAX, XPATH_BYTES_MAX, XPATH_STACK_BYTES, XPathError,
};

/// A fetched document.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The URL it was fetched from.
    pub url: &'a Url,
    /// The HTTP status.
    pub status: u16,
    /// The value of `Content-Type`; when none is given, the one among the headers counts.
    pub content_type: Option<&'a str>,
    /// Names and values of the HTTP head.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body with content and transfer codings taken off.
    pub body: &'a [u8],
}

/// What parsing may cost, and for whom directives are read.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body that are parsed; the rest is ignored.
    pub body_bytes_max: usize,
    /// Bytes of [`Parsed::text`].
    pub text_bytes_max: usize,
    /// Links of a page.
    pub links_max: usize,
    /// Links of a sitemap. The protocol allows 50 000.
    pub sitemap_links_max: usize,
    /// Bytes of a URL.
    pub url_bytes_max: usize,
    /// Nodes of an XML tree.
    pub xml_nodes_max: u32,
    /// Elements inside one another in an XML tree. (libxml2's own limit is 256.)
    pub xml_depth_max: usize,
    /// Bytes that the entities of an XML document may expand to.
    pub xml_entity_bytes_max: usize,
    /// The name that `meta` elements and `X-Robots-Tag` may single out, in lower case.
    pub robot: String,
}

impl Default for Limits {
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

/// What a document says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// What it is.
    pub kind: DocumentKind,
    /// The name of its encoding; none for what isn't text.
    pub encoding: Option<&'static str>,
    /// Its title, in one line; empty when it has none.
    pub title: String,
    /// Its visible text: a line for each block.
    pub text: String,
    /// The parts of the text that are not its own (menus, footers, advertisements), in the order of their ends.
    pub surroundings: Vec<Range<usize>>,
    /// What names its parts: headings, captions, terms of lists, in their order; each at most a line of the text.
    pub headings: Vec<Range<usize>>,
    /// Where it links, each URL once, in the order of the document.
    pub links: Vec<Link>,
    /// What its links say, in their order; each a part of the text.
    pub link_texts: Vec<LinkText>,
    /// What it asks of robots.
    pub robots: RobotsDirectives,
    /// The URL it prefers for itself.
    pub canonical: Option<String>,
    /// Its language, as a tag in lower case (`de-at`): declared, or else guessed.
    pub language: Option<String>,
    /// Equal when nothing has changed but what changes at every fetch.
    pub signature: u64,
    /// Differs in few bits when the text is nearly the same; see [`is_near`]. 0 for what has no text.
    pub similarity: u64,
    /// The dated items of a feed, sitemap or list.
    pub entries: Vec<DatedItem>,
    /// Whether the text has all words of the elements of an XML document, in their order.
    pub text_has_all: bool,
    /// The elements of an XML document by name; none of other documents, and of those with too many.
    pub elements: Option<Vec<Elements>>,
    /// What an XML document, XHTML too, is as a whole.
    pub structure: Option<Structure>,
    /// What was cut, repaired or not understood.
    pub problems: Vec<Problem>,
}

impl Parsed {
    /// The lines of its own text, which its signature is made of: without menus, footers and advertisements, unless there
    /// is next to nothing else.
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

/// What a link says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkText {
    /// The place of its URL in [`Parsed::links`].
    pub link: u32,
    /// The place of its text in [`Parsed::text`].
    pub range: Range<usize>,
}

/// A dated item of a feed, sitemap or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatedItem {
    /// The place of its URL in [`Parsed::links`].
    pub link: u32,
    /// When it was last changed, in seconds since 1970.
    pub modified: i64,
}

/// Why a parse isn't the whole story. The capture keeps the reason; parsing continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Links beyond the limit.
    #[error("{dropped} links beyond the limit")]
    TooManyLinks {
        /// How many were dropped.
        dropped: usize,
    },
    /// URLs that are too long.
    #[error("{dropped} URLs too long")]
    LongUrls {
        /// How many were dropped.
        dropped: usize,
    },
    /// The body is longer than the part that was parsed.
    #[error("body cut at {at} bytes")]
    BodyCut {
        /// Where.
        at: usize,
    },
    /// The text is longer than what is kept.
    #[error("text cut at {at} bytes")]
    TextCut {
        /// Where.
        at: usize,
    },
    /// Bytes that its encoding doesn't have.
    #[error("not all bytes are {encoding}")]
    Encoding {
        /// The encoding's name.
        encoding: &'static str,
    },
    /// The document is not well-formed XML; what could be read was.
    #[error("XML: {0}")]
    Xml(String),
    /// The document goes beyond a limit on XML and was not read as such.
    #[error("XML: too {0}")]
    XmlLimit(&'static str),
    /// A sitemap in a compressed file that can't be read.
    #[error(transparent)]
    Coding(#[from] CodingProblem),
    /// Nothing was read at all.
    #[error("not read: {0}")]
    NotRead(&'static str),
}

/// What a problem says of an XML document as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It is not well-formed.
    Broken,
    /// It was not read as a whole.
    Unread,
}

impl Fault {
    /// By the sentence that stands for a problem in a capture's records.
    fn of(problem: &str) -> Option<Self> {
        let begins = |with: &[&str]| with.iter().any(|with| problem.starts_with(with));
        match () {
            () if begins(&["XML: too ", "body cut", "not read"]) => Some(Self::Unread),
            () if begins(&["XML: ", "not all bytes"]) => Some(Self::Broken),
            () => None,
        }
    }
}

/// Reads a document. Never fails: see [`Parsed::problems`].
///
/// Links are read from documents with a status of success; from redirects only where they lead to; from errors none, for
/// an error page's links are the site's, not the page's.
#[must_use]
pub fn parse(source: &Source<'_>, limits: &Limits) -> Parsed {
    parse_for(source, limits, false)
}

/// The text of a document as [`parse`] finds it, without links and what is worked out from a text.
#[must_use]
pub fn text(source: &Source<'_>, limits: &Limits) -> String {
    parse_for(source, limits, true).text
}

/// The same of what is read in one pass, as most documents are; none of XML and of what is packed.
#[must_use]
pub fn text_in_one_pass(source: &Source<'_>, limits: &Limits) -> Option<String> {
    let (fields, mut links) = (source.headers, Outlinks::without_links());
    let head = headers::read(fields, source.content_type, source.status, &limits.robot, &mut links);
    let kind = DocumentKind::of(&head.media_type, source.body);
    (!kind.is_xml() && kind != DocumentKind::Archive).then(|| text(source, limits))
}

fn parse_for(source: &Source<'_>, limits: &Limits, is_text_alone: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut outlinks = Outlinks::new(source.url, UTF_8, limits);
    let head =
        headers::read(source.headers, source.content_type, source.status, &limits.robot, &mut outlinks);
    let mut body = source.body;
    if body.len() > limits.body_bytes_max {
        body = &body[..limits.body_bytes_max];
        parsed.problems.push(Problem::BodyCut { at: limits.body_bytes_max });
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

/// What is known of a document that cannot be read.
pub(crate) fn unread(kind: DocumentKind, body: &[u8], problem: Problem) -> Parsed {
    Parsed { kind, signature: signature::of_bytes(body), problems: vec![problem], ..Parsed::default() }
}

/// Hands the tree of an XML document to `read`; gives nothing when there is none, not even of a repaired document.
pub fn with_xml_tree<T>(
    body: &[u8],
    content_type: Option<&str>,
    limits: &Limits,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Option<T> {
    let charset = charset::detect(body, content_type.and_then(charset::charset_parameter), true);
    let (text, _) = charset::decode(body, &charset);
    xml::with_tree(text.trim_start(), limits, |tree, _, _| read(tree)).ok()
}

/// Hands the tree of an XML document to `read`, if it can be asked for by its elements ([`DocumentKind::has_elements`]).
pub fn with_elements<T>(
    body: &[u8],
    content_type: Option<&str>,
    limits: &Limits,
    read: impl FnOnce(&roxmltree::Document<'_>) -> T,
) -> Option<T> {
    let (text, _) = xml_text(body, content_type)?;
    let read =
        |tree: &roxmltree::Document<'_>, text: &str, _| xml::has_elements(tree, text).then(|| read(tree));
    xml::with_tree(text.trim_start(), limits, read).ok().flatten()
}

/// What an XML document is as a whole, by its text and the `problems` that are stored with it; none of anything else.
pub fn structure(
    body: &[u8],
    content_type: Option<&str>,
    problems: &[String],
    limits: &Limits,
) -> Option<Structure> {
    xml_text(body, content_type).and_then(|(text, _)| xml::structure(&text, problems, limits))
}

/// What is wrong with an XML document; none of anything else. `fetch` gives the external parts of its definition.
pub fn validate(
    body: &[u8],
    content_type: Option<&str>,
    limits: &Limits,
    fetch: &mut Fetch<'_>,
) -> Option<Validation> {
    let (text, had_errors) = xml_text(body, content_type)?;
    Some(xml::validate(&text, had_errors, limits, fetch))
}

/// What an XPath expression gives of an XML document that is well-formed; none of anything else.
///
/// It takes a stack of [`XPATH_STACK_BYTES`], and its time is not bounded by the document's length: the caller has to limit it.
///
/// # Errors
/// When the expression is wrong, when there is no such document, and when one of both goes beyond the limits.
pub fn xpath(
    body: &[u8],
    content_type: Option<&str>,
    expression: &str,
    limits: &Limits,
) -> Option<Result<Selected, XPathError>> {
    if body.len() > limits.body_bytes_max {
        return Some(Err(XPathError::Document(Problem::BodyCut { at: limits.body_bytes_max })));
    }
    let (text, _) = xml_text(body, content_type)?;
    Some(xml::xpath(text.trim_start(), expression, limits))
}

/// The text of an external part of a definition.
#[must_use]
pub fn external_text(body: &[u8], content_type: Option<&str>) -> String {
    let charset = charset::detect(body, content_type.and_then(charset::charset_parameter), true);
    charset::decode(body, &charset).0.into_owned()
}

/// The text of an XML document, and whether not all bytes were text; none of anything else.
fn xml_text<'b>(body: &'b [u8], content_type: Option<&str>) -> Option<(Cow<'b, str>, bool)> {
    let media_type = content_type.and_then(|value| value.split([';', ',']).next()).unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    if is_definition(&media_type) || DocumentKind::of(&media_type, body) != DocumentKind::Xml {
        return None;
    }
    let charset = charset::detect(body, content_type.and_then(charset::charset_parameter), true);
    Some(charset::decode(body, &charset))
}

#[cfg(test)]
mod tests;

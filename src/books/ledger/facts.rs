//! What only the crawler knows about a capture, and its form as fields of the `metadata` record.

use std::collections::HashMap;

use archive_storage::address::is_url_in_bounds;
use archive_storage::segment::{FIELD_CONTENT_DIGEST, FIELD_ENTITY_DIGEST, FIELD_IMPORTED};
use archive_storage::{Capture, CaptureKind, Digest, NAME_BYTES_MAX, Store, StoreError};
use archive_web::parse::{DocumentKind, Link, LinkKind};

/// Maximum number of links kept of one page; further ones are neither followed nor credited.
pub(super) const LINKS_PER_PAGE_MAX: usize = 50_000;

/// Metadata field of a link, as in Heritrix; repeated.
const OUTLINK: &str = "outlink";

/// Word after an outlink whose author asks not to follow it.
const NOFOLLOW: &str = "nofollow";

/// Word after an outlink in the page's template.
const TEMPLATE: &str = "template";

/// Prefix of the time at which a link's target last changed, in seconds since 1970.
const MODIFIED: &str = "modified=";

/// Metadata field that marks what was fetched as a robots.txt.
const ROBOTS: &str = "robots";

/// Metadata field of by whose decision a URL was fetched that its robots.txt forbade.
const ROBOTS_IGNORED: &str = "robotsIgnored";

/// Metadata field of what a server knew of its visitor, if anything.
const SESSION: &str = "session";

/// Metadata field of the cipher suite of a TLS connection.
const CIPHER_SUITE: &str = "cipherSuite";

/// Metadata field of the digest of the certificates that a server sent, end to end.
const CERTIFICATE_CHAIN: &str = "certificateChain";

/// Metadata field of the proxy through which a capture came, as a URL without a name or password.
const PROXY: &str = "proxy";

/// Metadata field of a problem; repeated.
const PROBLEM: &str = "problem";

/// Metadata field of a tombstone: when the capture was erased, `page` or `copy`, and why.
pub(crate) const FIELD_ERASED: &str = "erased";

/// Metadata field of a tombstone: the person who erased the capture.
const ERASED_BY: &str = "erasedBy";

/// Metadata field of the kinds of links that led to a page from its seed, a letter each.
pub(crate) const FIELD_HOPS: &str = "hopsFromSeed";
/// Metadata field of the milliseconds from request to last byte.
pub const FIELD_FETCH_MS: &str = "fetchTimeMs";
/// Metadata field of why nothing answered.
pub(crate) const FIELD_ERROR: &str = "error";

/// The metadata fields of [`CrawlerFacts`].
const FIELDS: [&str; 26] = [
    "via",
    FIELD_HOPS,
    FIELD_FETCH_MS,
    "importance",
    "document",
    ROBOTS,
    ROBOTS_IGNORED,
    SESSION,
    CIPHER_SUITE,
    CERTIFICATE_CHAIN,
    PROXY,
    "title",
    "language",
    "signature",
    "similarity",
    "sameContent",
    "robotsDirectives",
    "lastModified",
    FIELD_ENTITY_DIGEST,
    FIELD_CONTENT_DIGEST,
    FIELD_IMPORTED,
    FIELD_ERROR,
    FIELD_ERASED,
    ERASED_BY,
    PROBLEM,
    OUTLINK,
];

/// Maximum number of problems kept of one document.
const PROBLEMS_MAX: usize = 32;

/// Maximum number of characters kept of a title.
const TITLE_CHARACTERS_MAX: usize = 300;

/// Maximum number of characters kept of a language tag; registered ones are shorter (RFC 5646, section 4.4.1).
const LANGUAGE_CHARACTERS_MAX: usize = 35;

/// What only the crawler knows about a capture: the contents of its `metadata` record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrawlerFacts {
    /// The page that led here; `None` for a seed.
    pub via: Option<String>,
    /// Kinds of the links from a seed to here, a letter each, as in Heritrix.
    pub hops: String,
    /// Milliseconds from the request to the last byte.
    pub fetch_ms: u64,
    /// Importance at the time of the fetch.
    pub importance: Option<f64>,
    /// Kind of document.
    pub document: Option<DocumentKind>,
    /// Title.
    pub title: Option<String>,
    /// Language as a BCP 47 tag, declared or guessed.
    pub language: Option<String>,
    /// Signature of the main content.
    pub signature: Option<u64>,
    /// Similarity hash: those of pages with nearly the same text differ in few bits.
    pub similarity: Option<u64>,
    /// Number of earlier pages of the host with the same content, if too many for its links to be followed.
    pub copies: Option<u32>,
    /// The page's directives to robots: `nofollow, noarchive`.
    pub directives: Option<String>,
    /// `Last-Modified` in seconds since 1970, if the server sent one.
    pub last_modified: Option<i64>,
    /// Digest of the payload without transfer coding, if it differs from the record's payload digest.
    pub entity_digest: Option<Digest>,
    /// Digest of the payload without its content codings, if it had any that could be removed.
    pub content_digest: Option<Digest>,
    /// Whether it was fetched as a robots.txt, which is no page.
    pub robots: bool,
    /// By whose decision it was fetched although its robots.txt forbids it.
    pub robots_ignored: Option<String>,
    /// Cipher suite of the TLS connection, and digest of the certificates that the server sent, end to end.
    pub tls: Option<(String, Digest)>,
    /// The proxy that it came through, as a URL without a name or password.
    pub proxy: Option<String>,
    /// What the server knew of its visitor, if anything.
    pub session: Option<Session>,
    /// Why nothing answered.
    pub error: Option<String>,
    /// Remains of a capture that was erased.
    pub erased: Option<ErasureRecord>,
    /// WARC file of another archive that the capture was imported from.
    pub imported: Option<String>,
    /// What was truncated, repaired or not understood in the document, a sentence each.
    pub problems: Vec<String>,
    /// Links, each URL once.
    pub links: Vec<Link>,
    /// Bonus of links whose texts people favour, by place in `links`; in no record.
    pub favoured: HashMap<usize, f64>,
}

impl CrawlerFacts {
    /// Problem of a body that is incomplete, because the connection was lost.
    pub const CUT_OFF: &str = "the body is cut (disconnect)";

    /// Returns why a fetch failed, and when and why a capture was erased, in the words stored with the capture; nothing
    /// for a capture that has content.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn failure(store: &Store, capture: &Capture) -> Result<(Option<String>, Option<String>), StoreError> {
        if capture.kind != CaptureKind::Failed {
            return Ok((None, None));
        }
        let facts = Self::from_fields(&store.record(capture.location)?.fields());
        Ok((facts.error, facts.erased.map(|erased| erased.sentence())))
    }

    /// Whether the connection was lost before the end of the body.
    pub(super) fn is_cut_off(&self) -> bool {
        self.problems.iter().any(|problem| problem == Self::CUT_OFF)
    }

    /// Returns the fields of the `metadata` record; all links are lines of one field. Names known from Heritrix have
    /// the same meaning.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        let mut fields: Vec<(String, String)> = Vec::with_capacity(FIELDS.len());
        let mut put =
            |name: &str, value: Option<String>| fields.extend(value.map(|value| (name.to_owned(), value)));
        let line = |text: &Option<String>, most: usize| text.as_ref().map(|text| one_line(text, most));
        put("via", self.via.clone());
        put(FIELD_HOPS, Some(self.hops.clone()));
        put(FIELD_FETCH_MS, Some(self.fetch_ms.to_string()));
        put("importance", self.importance.map(|importance| format!("{importance:.4}")));
        put("document", self.document.map(|document| document.name().to_owned()));
        put(ROBOTS, self.robots.then(|| "yes".to_owned()));
        put(ROBOTS_IGNORED, line(&self.robots_ignored, TITLE_CHARACTERS_MAX));
        put(CIPHER_SUITE, self.tls.as_ref().map(|(suite, _)| suite.clone()));
        put(CERTIFICATE_CHAIN, self.tls.as_ref().map(|(_, chain)| chain.to_string()));
        put(PROXY, line(&self.proxy, TITLE_CHARACTERS_MAX));
        put(SESSION, self.session.map(|session| session.name().to_owned()));
        put("title", line(&self.title, TITLE_CHARACTERS_MAX));
        put("language", line(&self.language, LANGUAGE_CHARACTERS_MAX));
        put("signature", self.signature.map(|signature| format!("{signature:016x}")));
        put("similarity", self.similarity.map(|similarity| format!("{similarity:016x}")));
        put("sameContent", self.copies.map(|copies| copies.to_string()));
        put("robotsDirectives", self.directives.clone());
        put("lastModified", self.last_modified.map(|seconds| seconds.to_string()));
        put(FIELD_ENTITY_DIGEST, self.entity_digest.as_ref().map(ToString::to_string));
        put(FIELD_CONTENT_DIGEST, self.content_digest.as_ref().map(ToString::to_string));
        put(FIELD_IMPORTED, line(&self.imported, TITLE_CHARACTERS_MAX));
        put(FIELD_ERROR, line(&self.error, TITLE_CHARACTERS_MAX));
        put(FIELD_ERASED, self.erased.as_ref().map(ErasureRecord::to_field));
        let by = self.erased.as_ref().map(|erased| erased.by.as_str()).filter(|by| !by.is_empty());
        put(ERASED_BY, by.map(|by| one_line(by, TITLE_CHARACTERS_MAX)));
        for problem in self.problems.iter().take(PROBLEMS_MAX) {
            put(PROBLEM, Some(one_line(problem, TITLE_CHARACTERS_MAX)));
        }
        put(OUTLINK, (!self.links.is_empty()).then(|| link_lines(&self.links)));
        fields
    }

    /// Whether a field of a `metadata` record is a link.
    #[must_use]
    pub fn is_link(name: &str) -> bool {
        name == OUTLINK
    }

    /// Whether a field of a `metadata` record belongs to [`CrawlerFacts`].
    #[must_use]
    pub fn is_field(name: &str) -> bool {
        FIELDS.contains(&name)
    }

    /// Reads the fields of a `metadata` record; missing or invalid ones are left out.
    #[must_use]
    pub fn from_fields(fields: &[(String, String)]) -> Self {
        let (mut facts, mut suite) = (Self::default(), None);
        for (name, value) in fields {
            match name.as_str() {
                "via" => facts.via = Some(value.clone()),
                FIELD_HOPS => facts.hops.clone_from(value),
                FIELD_FETCH_MS => facts.fetch_ms = value.parse().unwrap_or(0),
                "importance" => facts.importance = value.parse().ok(),
                "document" => facts.document = DocumentKind::named(value),
                ROBOTS => facts.robots = true,
                ROBOTS_IGNORED => facts.robots_ignored = Some(value.clone()),
                CIPHER_SUITE => suite = Some(value.clone()),
                CERTIFICATE_CHAIN => {
                    facts.tls = suite.take().and_then(|suite| Some((suite, value.parse().ok()?)));
                }
                PROXY => facts.proxy = Some(value.clone()),
                SESSION => facts.session = Session::EACH.into_iter().find(|known| known.name() == value),
                "title" => facts.title = Some(value.clone()),
                "language" => facts.language = Some(value.clone()),
                "signature" => facts.signature = u64::from_str_radix(value, 16).ok(),
                "similarity" => facts.similarity = u64::from_str_radix(value, 16).ok(),
                "sameContent" => facts.copies = value.parse().ok(),
                "robotsDirectives" => facts.directives = Some(value.clone()),
                "lastModified" => facts.last_modified = value.parse().ok(),
                FIELD_ENTITY_DIGEST => facts.entity_digest = value.parse().ok(),
                FIELD_CONTENT_DIGEST => facts.content_digest = value.parse().ok(),
                FIELD_ERROR => facts.error = Some(value.clone()),
                FIELD_IMPORTED => facts.imported = Some(value.clone()),
                FIELD_ERASED => facts.erased = ErasureRecord::from_field(value),
                ERASED_BY => {
                    facts.erased = facts.erased.map(|erased| ErasureRecord { by: value.clone(), ..erased });
                }
                PROBLEM => facts.problems.push(value.clone()),
                OUTLINK => facts.links.extend(value.lines().filter_map(read_link)),
                _ => {}
            }
        }
        facts
    }
}

/// What a server knew of its visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    /// The request had cookies that earlier answers had set.
    Cookies,
    /// The same, and without them the server had led to where it sets them, and back.
    Wall,
    /// The request showed a log-in.
    Login,
}

archive_base::names! { Session: Cookies "cookies", Wall "wall", Login "login" }

/// The record of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRecord {
    /// Time of the erasure, RFC 3339.
    pub time: String,
    /// Whether the page itself was not erased, but the capture depended on the payload of an erased page.
    pub is_copy: bool,
    /// Reason.
    pub reason: String,
    /// Name of the person who erased; empty if it is not known.
    pub by: String,
}

impl ErasureRecord {
    fn to_field(&self) -> String {
        let what = if self.is_copy { "copy" } else { "page" };
        format!("{} {what} {}", self.time, one_line(&self.reason, TITLE_CHARACTERS_MAX))
    }

    fn from_field(value: &str) -> Option<Self> {
        let mut words = value.splitn(3, ' ');
        let (time, what, reason) = (words.next()?, words.next()?, words.next().unwrap_or_default());
        let (time, reason) = (time.to_owned(), reason.to_owned());
        Some(Self { time, is_copy: what == "copy", reason, by: String::new() })
    }

    /// Returns it as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let copy = if self.is_copy { "it had the content of an erased page: " } else { "" };
        let by = if self.by.is_empty() { String::new() } else { format!(" by {}", self.by) };
        format!("erased on {}{by}: {copy}{}", self.time, self.reason)
    }
}

/// Formats links as lines. A page has a hundred of them, so this avoids the formatting machinery.
fn link_lines(links: &[Link]) -> String {
    /// Usual number of bytes after a URL.
    const BESIDE_BYTES: usize = 24;
    let mut lines = String::with_capacity(links.iter().map(|link| link.url.len() + BESIDE_BYTES).sum());
    for link in links {
        lines.push_str(&link.url);
        lines.push(' ');
        lines.push(link.kind.hop());
        lines.push(' ');
        lines.push_str(link.kind.context());
        for (is_said, word) in [(link.nofollow, NOFOLLOW), (link.template, TEMPLATE)] {
            if is_said {
                lines.push(' ');
                lines.push_str(word);
            }
        }
        if let Some(seconds) = link.modified {
            lines.push_str(&format!(" {MODIFIED}{seconds}"));
        }
        lines.push('\n');
    }
    lines
}

fn read_link(value: &str) -> Option<Link> {
    let mut words = value.split(' ');
    let url = words.next().filter(|url| is_url_in_bounds(url, NAME_BYTES_MAX))?.to_owned();
    let hop = words.next().unwrap_or_default();
    let mut words = words.peekable();
    let kind = words.next_if(|word| link_kind(word).is_some()).and_then(link_kind);
    let kind = kind.unwrap_or_else(|| kind_of_hop(hop));
    let (mut nofollow, mut template, mut modified) = (false, false, None);
    for word in words {
        nofollow |= word == NOFOLLOW;
        template |= word == TEMPLATE;
        modified = modified.or_else(|| word.strip_prefix(MODIFIED)?.parse().ok());
    }
    Some(Link { nofollow, template, modified, ..Link::new(url, kind) })
}

fn link_kind(context: &str) -> Option<LinkKind> {
    LinkKind::all().find(|kind| kind.context() == context)
}

/// The kind of a link whose context only another crawler knows, by its letter in Heritrix's hop paths.
fn kind_of_hop(hop: &str) -> LinkKind {
    match hop {
        "E" => LinkKind::Embed,
        "R" => LinkKind::Redirect,
        "P" => LinkKind::Prerequisite,
        "M" => LinkKind::SitemapEntry,
        "B" => LinkKind::Form,
        // Guesses, inferences such as `/favicon.ico`, and URLs that the crawler made up.
        "X" | "I" | "S" => LinkKind::Speculative,
        _ => LinkKind::Reference,
    }
}

fn one_line(text: &str, characters_max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(characters_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_problems_are_cut() {
        let facts = CrawlerFacts {
            title: Some("t".repeat(TITLE_CHARACTERS_MAX + 1)),
            problems: (0..=PROBLEMS_MAX).map(|number| number.to_string()).collect(),
            ..CrawlerFacts::default()
        };
        let stored = CrawlerFacts::from_fields(&facts.to_fields());
        assert_eq!(stored.title.map(|title| title.len()), Some(300));
        assert_eq!((stored.problems.len(), &stored.problems[31]), (32, &"31".to_owned()));
    }

    #[test]
    fn links_of_other_crawlers_are_read() {
        for (line, kind) in [
            ("http://a.test/ L a/@href", LinkKind::Anchor),
            ("http://a.test/ E =EMBED_MISC", LinkKind::Embed),
            ("http://a.test/ I =INFERRED_MISC", LinkKind::Speculative),
            ("http://a.test/ L href", LinkKind::Reference),
            ("http://a.test/ R location:", LinkKind::Redirect),
            ("http://a.test/ P", LinkKind::Prerequisite),
            ("http://a.test/", LinkKind::Reference),
        ] {
            let fields = [(OUTLINK.to_owned(), line.to_owned())];
            let links = CrawlerFacts::from_fields(&fields).links;
            assert_eq!(links, [Link::new("http://a.test/".to_owned(), kind)], "{line}");
        }
    }

    #[test]
    fn facts_are_read_back_as_they_were_written() {
        let link = Link {
            nofollow: true,
            template: true,
            modified: Some(1_700_000_000),
            ..Link::new("http://a.test/b".to_owned(), LinkKind::all().next().unwrap())
        };
        let facts = CrawlerFacts {
            via: Some("http://a.test/".to_owned()),
            hops: "LLE".to_owned(),
            fetch_ms: 12,
            importance: Some(1.25),
            document: Some(DocumentKind::Html),
            title: Some("A title".to_owned()),
            language: Some("en-GB".to_owned()),
            signature: Some(0xabcd),
            similarity: Some(7),
            copies: Some(3),
            directives: Some("nofollow, noarchive".to_owned()),
            last_modified: Some(-5),
            entity_digest: Some(Digest::sha256(b"x")),
            content_digest: Some(Digest::sha256(b"z")),
            robots: true,
            robots_ignored: Some("decision of anna on 2026-01-01: deposit".to_owned()),
            tls: Some(("TLS_AES_128_GCM_SHA256".to_owned(), Digest::sha256(b"y"))),
            proxy: Some("socks5h://p.test:1080".to_owned()),
            session: Some(Session::Wall),
            error: Some("no route".to_owned()),
            erased: Some(ErasureRecord {
                time: "2026-01-01T00:00:00Z".to_owned(),
                is_copy: true,
                reason: "a b".to_owned(),
                by: "anna b".to_owned(),
            }),
            imported: Some("old.warc.gz".to_owned()),
            problems: vec!["cut".to_owned(), "odd".to_owned()],
            links: vec![link.clone(), Link { nofollow: false, modified: None, ..link }],
            favoured: HashMap::new(),
        };
        let fields = facts.to_fields();
        assert_eq!(CrawlerFacts::from_fields(&fields), facts);
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        names.sort_unstable();
        let mut expected = FIELDS;
        expected.sort_unstable();
        assert_eq!(names, expected, "an import must not keep what is rewritten");
    }
}

//! Determines what a body is: from the media type, and from its first bytes if the type is of no use.

use super::playlist;

/// Kind of a document.
///
/// Codes are stored in page states and never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum DocumentKind {
    /// Anything else.
    #[default]
    Other = 0,
    /// HTML and XHTML.
    Html = 1,
    /// XML of none of the kinds below.
    Xml = 2,
    /// RSS and Atom.
    Feed = 3,
    /// A sitemap or a sitemap index, in XML or as a list of URLs.
    Sitemap = 4,
    /// A response of an OAI-PMH repository.
    OaiPmh = 5,
    /// A style sheet.
    Css = 6,
    /// Plain text.
    Text = 7,
    /// PDF.
    Pdf = 8,
    /// An image; SVG is XML.
    Image = 9,
    /// Audio.
    Audio = 10,
    /// A video.
    Video = 11,
    /// A script.
    Script = 12,
    /// JSON.
    Json = 13,
    /// A font.
    Font = 14,
    /// A compressed file or archive.
    Archive = 15,
    /// An office document.
    Office = 16,
    /// The list of the pieces of a film (HLS).
    Playlist = 17,
    /// An e-mail.
    Mail = 18,
}

/// Every kind with its name.
const KINDS: [(DocumentKind, &str); 19] = {
    use DocumentKind::*;
    [
        (Other, "other"),
        (Html, "html"),
        (Xml, "xml"),
        (Feed, "feed"),
        (Sitemap, "sitemap"),
        (OaiPmh, "oai-pmh"),
        (Css, "css"),
        (Text, "text"),
        (Pdf, "pdf"),
        (Image, "image"),
        (Audio, "audio"),
        (Video, "video"),
        (Script, "script"),
        (Json, "json"),
        (Font, "font"),
        (Archive, "archive"),
        (Office, "office"),
        (Playlist, "playlist"),
        (Mail, "mail"),
    ]
};

/// Types of pages in queries and answers, fewer than kinds of documents: [`DocumentKind::page_type`].
pub const PAGE_TYPES: [&str; 10] =
    ["html", "xml", "feed", "sitemap", "style", "script", "image", "text", "pdf", "other"];

/// Bytes of a body that are sniffed.
const SNIFFED_BYTES: usize = 1024;

impl DocumentKind {
    /// Returns every kind, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|&(kind, _)| kind)
    }

    /// Returns the stable number for use in files.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind with this code; [`Self::Other`] if a newer version wrote it.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        Self::all().find(|kind| kind.code() == code).unwrap_or_default()
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }

    /// Name of the kind in queries and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS[usize::from(self.code())].1
    }

    /// The type in queries and answers of a page whose newest capture is of this kind: one of [`PAGE_TYPES`].
    #[must_use]
    pub fn page_type(self) -> &'static str {
        match self {
            Self::OaiPmh => Self::Xml.name(),
            Self::Css => "style",
            Self::Json => Self::Text.name(),
            Self::Audio
            | Self::Video
            | Self::Font
            | Self::Archive
            | Self::Office
            | Self::Playlist
            | Self::Mail => Self::Other.name(),
            kind => kind.name(),
        }
    }

    /// Whether the document is XML in the sense of this project: XHTML is not.
    #[must_use]
    pub fn is_xml(self) -> bool {
        matches!(self, Self::Xml | Self::Feed | Self::Sitemap | Self::OaiPmh)
    }

    /// Whether such documents have text to search.
    #[must_use]
    pub fn has_text(self) -> bool {
        matches!(self, Self::Html | Self::Xml | Self::Feed | Self::OaiPmh | Self::Text) || self.is_office()
    }

    /// Whether such documents are read in a process of their own.
    #[must_use]
    pub fn is_office(self) -> bool {
        matches!(self, Self::Pdf | Self::Office | Self::Mail)
    }

    /// Whether elements of such documents can be queried: XML except sitemaps, which only list URLs.
    #[must_use]
    pub fn has_elements(self) -> bool {
        matches!(self, Self::Xml | Self::Feed | Self::OaiPmh)
    }

    /// Whether more than the first bytes of such a document are read.
    #[must_use]
    pub(crate) fn is_parsed(self) -> bool {
        self.is_xml()
            || self.is_office()
            || matches!(
                self,
                Self::Html | Self::Css | Self::Text | Self::Json | Self::Archive | Self::Playlist
            )
    }

    /// Returns the kind of a body with this media type (without parameters, in lower case; empty if unknown).
    ///
    /// XML is not subdivided here; its root element decides that later.
    #[must_use]
    pub fn of(media_type: &str, body: &[u8]) -> Self {
        // Playlists come under many labels, plain text among them.
        if playlist::begins(body) {
            return Self::Playlist;
        }
        let said = Self::said(media_type, body);
        // Sitemaps come under any label.
        if matches!(said, Self::Html) { said } else { sitemap_or_its_file(body).unwrap_or(said) }
    }

    fn said(media_type: &str, body: &[u8]) -> Self {
        match media_type {
            "text/html" | "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => html_or_xml(body),
            "text/css" => Self::Css,
            "application/pdf" | "application/x-pdf" => Self::Pdf,
            "application/json" | "text/json" => Self::Json,
            "message/rfc822" => Self::Mail,
            // Servers that do not know office files send them as what they are made of.
            "application/zip" | "application/x-zip-compressed" if is_office_package(body) => Self::Office,
            // Servers use these for anything that they do not know.
            ""
            | "text/plain"
            | "application/octet-stream"
            | "application/x-unknown"
            | "unknown/unknown"
            | "*/*" => sniff(body, media_type == "text/plain"),
            _ if !media_type.contains('/') => sniff(body, false),
            _ => Self::of_family(media_type),
        }
    }

    fn of_family(media_type: &str) -> Self {
        let (family, name) = media_type.split_once('/').unwrap_or((media_type, ""));
        match family {
            _ if name == "xml" || name.ends_with("+xml") || name == "xml-dtd" => Self::Xml,
            _ if name.ends_with("+json") => Self::Json,
            "image" => Self::Image,
            "audio" => Self::Audio,
            "video" => Self::Video,
            "font" => Self::Font,
            _ if name.contains("javascript") || name.contains("ecmascript") => Self::Script,
            "text" => Self::Text,
            _ if name.contains("font") => Self::Font,
            _ if is_archive_name(name) => Self::Archive,
            _ if is_office_name(name) => Self::Office,
            _ => Self::Other,
        }
    }
}

fn is_archive_name(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "zip",
        "x-zip-compressed",
        "gzip",
        "x-gzip",
        "x-tar",
        "x-7z-compressed",
        "x-rar-compressed",
        "vnd.rar",
        "x-bzip2",
        "zstd",
        "x-xz",
        "java-archive",
    ];
    NAMES.contains(&name)
}

/// Whether a ZIP file begins with a part with which office files and e-books begin.
fn is_office_package(body: &[u8]) -> bool {
    /// Bytes of a part before its name (APPNOTE, section 4.3.7).
    const NAME_AT: usize = 30;
    const FIRST: [&[u8]; 5] = [
        b"mimetypeapplication/epub+zip",
        b"mimetypeapplication/vnd.oasis.opendocument",
        b"[Content_Types].xml",
        b"_rels/.rels",
        b"docProps/",
    ];
    let name = body.get(NAME_AT..).filter(|_| body.starts_with(b"PK\x03\x04")).unwrap_or_default();
    FIRST.iter().any(|first| name.starts_with(first))
}

fn is_office_name(name: &str) -> bool {
    const BEGINNINGS: [&str; 6] =
        ["msword", "rtf", "vnd.ms-", "vnd.openxmlformats-officedocument", "vnd.oasis.opendocument", "epub"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a media type is that of document type definitions, which are read like XML but are not documents.
pub fn is_definition(media_type: &str) -> bool {
    media_type == "application/xml-dtd"
}

/// Feeds and sitemaps are often served as HTML; any other body with an XML declaration remains HTML.
fn html_or_xml(body: &[u8]) -> DocumentKind {
    let head = beginning(body);
    if !head.starts_with(b"<?xml") && !head.starts_with(b"<rss") && !head.starts_with(b"<feed") {
        return DocumentKind::Html;
    }
    const ROOTS: [&[u8]; 6] = [b"<rss", b"<feed", b"<rdf:RDF", b"<urlset", b"<sitemapindex", b"<OAI-PMH"];
    let is_xml = ROOTS.iter().any(|root| memchr::memmem::find(head, root).is_some())
        && memchr::memmem::find(head, b"<html").is_none();
    if is_xml { DocumentKind::Xml } else { DocumentKind::Html }
}

/// Returns how to read a body that looks like a sitemap, or like a compressed file, which may be one.
fn sitemap_or_its_file(body: &[u8]) -> Option<DocumentKind> {
    if body.starts_with(b"\x1F\x8B") {
        return Some(DocumentKind::Archive);
    }
    if names_a_sitemap(body) {
        return Some(DocumentKind::Xml);
    }
    let head = beginning(body);
    let is_list = head.starts_with(b"http") && super::xml::sitemap::begins_a_list(head);
    is_list.then_some(DocumentKind::Text)
}

/// Whether XML begins with the root of a sitemap or a sitemap index, with or without a prefix, in any encoding.
pub(super) fn names_a_sitemap(body: &[u8]) -> bool {
    const ROOTS: [&[u8]; 2] = [b"urlset", b"sitemapindex"];
    let is_wide = body.starts_with(b"\xFF\xFE") || body.starts_with(b"\xFE\xFF");
    // Of UTF-16, the bytes that are not zero are ASCII.
    let narrow =
        is_wide.then(|| body.iter().skip(2).take(SNIFFED_BYTES).copied().filter(|byte| *byte != 0).collect());
    let narrow: Option<Vec<u8>> = narrow;
    let head = beginning(narrow.as_deref().unwrap_or(body));
    let begins = |root: &[u8]| {
        memchr::memmem::find_iter(head, root).any(|at| at > 0 && matches!(head[at - 1], b'<' | b':'))
    };
    head.starts_with(b"<") && ROOTS.into_iter().any(begins) && memchr::memmem::find(head, b"<html").is_none()
}

fn beginning(body: &[u8]) -> &[u8] {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    body[..body.len().min(SNIFFED_BYTES)].trim_ascii_start()
}

/// Determines the kind from the first bytes (WHATWG MIME Sniffing, sections 6 and 7, as far as they matter here).
fn sniff(body: &[u8], said_to_be_text: bool) -> DocumentKind {
    let head = beginning(body);
    if is_office_package(head) {
        return DocumentKind::Office;
    }
    for (signature, kind) in SIGNATURES {
        if head.starts_with(signature) {
            return *kind;
        }
    }
    if let Some(kind) = sniff_container(head) {
        return kind;
    }
    if head.starts_with(b"<?xml") {
        return html_or_xml_declared(head);
    }
    if looks_like_html(head) {
        return DocumentKind::Html;
    }
    if html_or_xml(body) == DocumentKind::Xml {
        return DocumentKind::Xml;
    }
    let is_binary = head.iter().any(|&byte| byte < 0x20 && !byte.is_ascii_whitespace() && byte != 0x1B);
    let is_wide = body.starts_with(b"\xFF\xFE") || body.starts_with(b"\xFE\xFF");
    if (said_to_be_text || !head.is_empty()) && (!is_binary || is_wide) {
        DocumentKind::Text
    } else {
        DocumentKind::Other
    }
}

fn html_or_xml_declared(head: &[u8]) -> DocumentKind {
    if memchr::memmem::find(head, b"<html").is_some() { DocumentKind::Html } else { DocumentKind::Xml }
}

/// First bytes of files, by kind.
const SIGNATURES: &[(&[u8], DocumentKind)] = &[
    (b"%PDF-", DocumentKind::Pdf),
    (b"\x89PNG\r\n\x1A\n", DocumentKind::Image),
    (b"GIF8", DocumentKind::Image),
    (b"\xFF\xD8\xFF", DocumentKind::Image),
    (b"\x00\x00\x01\x00", DocumentKind::Image),
    (b"BM", DocumentKind::Image),
    (b"OggS", DocumentKind::Audio),
    (b"ID3", DocumentKind::Audio),
    (b"fLaC", DocumentKind::Audio),
    (b"\x1A\x45\xDF\xA3", DocumentKind::Video),
    (b"wOFF", DocumentKind::Font),
    (b"wOF2", DocumentKind::Font),
    (b"\x1F\x8B", DocumentKind::Archive),
    (b"PK\x03\x04", DocumentKind::Archive),
    (b"Rar!", DocumentKind::Archive),
    (b"7z\xBC\xAF\x27\x1C", DocumentKind::Archive),
    (b"BZh", DocumentKind::Archive),
    (b"\x28\xB5\x2F\xFD", DocumentKind::Archive),
    (b"\xD0\xCF\x11\xE0", DocumentKind::Office),
    (b"{\\rtf", DocumentKind::Office),
];

fn sniff_container(head: &[u8]) -> Option<DocumentKind> {
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(DocumentKind::Image),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(DocumentKind::Audio),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(DocumentKind::Video),
        _ => None,
    }
}

fn looks_like_html(head: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 18] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<body",
        b"<title",
        b"<script",
        b"<style",
        b"<table",
        b"<div",
        b"<h1",
        b"<p",
        b"<a",
        b"<br",
        b"<b",
        b"<font",
        b"<iframe",
        b"<meta",
        b"<!--",
    ];
    BEGINNINGS.iter().any(|beginning| {
        head.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
            && (beginning == b"<!--"
                || head.get(beginning.len()).is_none_or(|&next| !next.is_ascii_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_and_names_are_stable() {
        for (index, kind) in DocumentKind::all().enumerate() {
            assert_eq!(usize::from(kind.code()), index);
            assert_eq!(DocumentKind::from_code(kind.code()), kind);
        }
        assert_eq!(DocumentKind::from_code(255), DocumentKind::Other);
        assert_eq!(DocumentKind::OaiPmh.name(), "oai-pmh");
        let types: HashSet<_> = DocumentKind::all().map(DocumentKind::page_type).collect();
        assert_eq!(types, PAGE_TYPES.into());
    }

    #[test]
    fn what_the_server_says() {
        for (media_type, body, expected) in [
            ("text/html", "<p>", DocumentKind::Html),
            ("text/html", "<?xml version='1.0'?><rss>", DocumentKind::Xml),
            ("text/html", "<?xml version='1.0'?><!DOCTYPE html><html>", DocumentKind::Html),
            ("application/xhtml+xml", "<?xml version='1.0'?><html>", DocumentKind::Html),
            ("application/rss+xml", "", DocumentKind::Xml),
            ("image/svg+xml", "", DocumentKind::Xml),
            ("image/webp", "", DocumentKind::Image),
            ("application/javascript", "", DocumentKind::Script),
            ("application/ld+json", "", DocumentKind::Json),
            ("application/vnd.oasis.opendocument.text", "", DocumentKind::Office),
            ("message/rfc822", "Subject: x", DocumentKind::Mail),
            ("application/x-font-ttf", "", DocumentKind::Font),
            ("application/x-other", "<html>", DocumentKind::Other),
            ("gzip", "words", DocumentKind::Text),
        ] {
            assert_eq!(DocumentKind::of(media_type, body.as_bytes()), expected, "{media_type} {body}");
        }
    }

    #[test]
    fn sitemaps_are_known_by_their_content() {
        let wide: Vec<u8> =
            "\u{feff}<?xml version='1.0'?><urlset>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for label in [
            "text/plain",
            "application/x-gzip",
            "binary/octet-stream",
            "image/png",
            "application/json",
            "gzip",
        ] {
            for (body, expected) in [
                (&b"<urlset><url>"[..], DocumentKind::Xml),
                (b"\xEF\xBB\xBF\n<?xml version='1.0'?><s:sitemapindex xmlns:s='x'>", DocumentKind::Xml),
                (&wide, DocumentKind::Xml),
                (b"http://a.test/1\nhttp://a.test/2\nhttp://a.", DocumentKind::Text),
                (b"\x1F\x8B\x08", DocumentKind::Archive),
            ] {
                assert_eq!(DocumentKind::of(label, body), expected, "{label} {body:?}");
            }
        }
        for body in ["<p>urlset", "<html><urlset>", "a <urlset>"] {
            assert_ne!(DocumentKind::of("", body.as_bytes()), DocumentKind::Xml, "{body}");
        }
        assert_eq!(DocumentKind::of("application/json", b"http://a.test/1 b"), DocumentKind::Json);
    }

    #[test]
    fn what_the_bytes_say() {
        for (body, expected) in [
            (&b"\xEF\xBB\xBF <!DOCTYPE HTML>"[..], DocumentKind::Html),
            (b"<html lang=en>", DocumentKind::Html),
            (b"<article xmlns='x'/>", DocumentKind::Text),
            (b"<?xml version='1.0'?><book/>", DocumentKind::Xml),
            (b"<rss version='2.0'>", DocumentKind::Xml),
            (b"%PDF-1.7", DocumentKind::Pdf),
            (b"\x89PNG\r\n\x1A\n", DocumentKind::Image),
            (b"RIFF\0\0\0\0WEBP", DocumentKind::Image),
            (b"PK\x03\x04", DocumentKind::Archive),
            (b"PK\x03\x04..........................mimetypeapplication/epub+zip", DocumentKind::Office),
            (b"PK\x03\x04..........................[Content_Types].xml", DocumentKind::Office),
            (b"words", DocumentKind::Text),
            (b"\xFF\xFEw\0", DocumentKind::Text),
            (b"\x01\x02", DocumentKind::Other),
            (b"", DocumentKind::Other),
        ] {
            assert_eq!(DocumentKind::of("", body), expected, "{body:?}");
        }
    }
}

//! What a document says of itself, and what its bytes are: read when somebody asks for it, not while crawling.

use std::borrow::Cow;

use encoding_rs::Encoding;
use roxmltree::Node;

use super::dates::parse_date;
use super::html::{Attribute, HtmlElement, Markup, decode_entities, one_line, value};
use super::office::{self, OfficeDocument};
use super::outlinks::Outlinks;
use super::said::{CREATIVE_COMMONS, JSON_LD, LANGUAGES, LICENCES, Said};
use super::{DocumentKind, FetchedDocument, ParseLimits, charset, headers, language, parse, pronom, xml};

/// Maximum bytes of a text that a document says of itself, such as its description; longer ones are cut.
pub const FACT_BYTES_MAX: usize = 2048;

/// Bytes of an XML document in which the first tag of a picture is looked for.
const SVG_WITHIN: usize = 1024;

/// Facts of a document. Texts are on one line; what is not said is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentFacts {
    /// Title.
    pub title: String,
    /// Visible text, with one line per block.
    pub text: String,
    /// Language that the document or its server declares, as a lower-case tag.
    pub declared_language: String,
    /// Language that the text is in, as far as it can be guessed.
    pub detected_language: String,
    /// Encoding that the server or the document declares, by its name in the Encoding Standard in lower case.
    pub declared_charset: String,
    /// Encoding that the bytes are in: by their mark, by being valid, or by a guess. Bytes that are all ASCII are in whatever
    /// is declared.
    pub detected_charset: String,
    /// Description.
    pub description: String,
    /// Keywords.
    pub keywords: String,
    /// Authors.
    pub author: String,
    /// URL or text of a licence.
    pub licence: String,
    /// Headline, as it is shown where the document is shared or listed.
    pub headline: String,
    /// When it was published, and last changed, in seconds since 1970.
    pub published: Option<i64>,
    /// See `published`.
    pub revised: Option<i64>,
    /// Alternative texts of pictures, ` | ` between them.
    pub alt: String,
    /// Number of pictures.
    pub pictures: u32,
    /// Number of pictures without an `alt` attribute; an empty one says that a picture is decoration.
    pub pictures_without_alt: u32,
    /// Width and height of a picture file in pixels.
    pub size: Option<(usize, usize)>,
    /// What the bytes are, as `pdf 1.4`; empty if that is not known.
    pub format: String,
    /// Identifier of the format in PRONOM, as `fmt/18`; empty if that is not known.
    pub pronom: &'static str,
}

/// Reads the facts of a document. Never fails: what cannot be read is not known.
#[must_use]
pub fn facts(source: &FetchedDocument<'_>, limits: &ParseLimits) -> DocumentFacts {
    let body = source.body.get(..limits.body_bytes_max).unwrap_or(source.body);
    let mut links = Outlinks::without_links();
    let head = headers::read(source.headers, source.content_type, source.status, &limits.robot, &mut links);
    let kind = DocumentKind::of(&head.media_type, body);
    let mut facts = DocumentFacts {
        format: format_of(body),
        size: imagesize::blob_size(body).ok().map(|size| (size.width, size.height)),
        ..DocumentFacts::default()
    };
    facts.pronom = pronom::identifier(&facts.format, body);
    if kind.is_office() {
        facts.take_office(office::ask(kind, body), limits);
        return facts;
    }
    let parsed = parse(source, limits);
    let is_html = parsed.kind == DocumentKind::Html;
    if !is_html && !parsed.kind.is_xml() && parsed.kind != DocumentKind::Text {
        return facts;
    }
    let label = head.charset.as_deref();
    let declared = charset::declared(body, label, parsed.kind.is_xml());
    let name = |encoding: &'static Encoding| encoding.name().to_ascii_lowercase();
    facts.declared_charset = declared.map(name).unwrap_or_default();
    facts.detected_charset =
        if body.is_empty() { String::new() } else { name(charset::of_bytes(body, declared)) };
    let text = charset::decode(body, &charset::detect(body, label, parsed.kind.is_xml())).0;
    let mut said = Said::default();
    if is_html {
        facts.read_html(&text, &mut said);
    } else if parsed.kind.is_xml() {
        let read =
            xml::with_tree(text.trim_start(), limits, |tree, _, _| read_xml(tree.root_element(), &mut said));
        // What is no tree, even after repair, says nothing of itself.
        read.unwrap_or_default();
    }
    said.language.take(&LANGUAGES, "content-language", head.language.as_deref().unwrap_or_default());
    facts.declared_language = said.language.text().to_ascii_lowercase();
    facts.detected_language = language::guess(&parsed.text).unwrap_or_default();
    (facts.title, facts.text) = (parsed.title, parsed.text);
    (facts.description, facts.keywords) = (said.description.text(), said.keywords.text());
    (facts.author, facts.licence) = (said.author.text(), said.licence.text());
    facts.headline = said.headline.text();
    facts.published = parse_date(&said.published.text());
    facts.revised = parse_date(&said.revised.text());
    facts
}

impl DocumentFacts {
    fn take_office(&mut self, read: OfficeDocument, limits: &ParseLimits) {
        let line = |text: &str| one_line(text, FACT_BYTES_MAX);
        (self.title, self.author) = (line(&read.title), line(&read.author));
        (self.description, self.keywords) = (line(&read.description), line(&read.keywords));
        (self.published, self.revised) = (read.published, read.revised);
        self.declared_language = line(&read.language).to_ascii_lowercase();
        self.detected_language = language::guess(&read.text).unwrap_or_default();
        self.text = read.text;
        self.text.truncate(self.text.floor_char_boundary(limits.text_bytes_max));
    }

    fn read_html(&mut self, html: &str, said: &mut Said) {
        let mut markup = Markup::of(html);
        while let Some(tag) = markup.next_tag() {
            if tag.is_end {
                continue;
            }
            let element = HtmlElement::of(tag.name);
            self.read_tag(element, tag.attributes, said);
            let is_json = element == HtmlElement::Script
                && value(tag.attributes, "type")
                    .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON_LD));
            if let Some(raw) = markup.raw_text_of(element).filter(|_| is_json) {
                said.take_script(raw);
            }
        }
    }

    fn read_tag(&mut self, element: HtmlElement, attributes: &[Attribute<'_>], said: &mut Said) {
        let text = |name: &str| value(attributes, name).map(decode_entities);
        match element {
            HtmlElement::Html => {
                for name in ["lang", "xml:lang"] {
                    said.language.take(&LANGUAGES, name, &text(name).unwrap_or_default());
                }
            }
            HtmlElement::Meta => {
                let Some(content) = text("content") else { return };
                ["name", "property", "itemprop"]
                    .iter()
                    .filter_map(|name| text(name))
                    .for_each(|name| said.take(&name, &content));
                if text("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("content-language")) {
                    said.language.take(&LANGUAGES, "content-language", &content);
                }
            }
            HtmlElement::Image => {
                self.pictures += 1;
                match text("alt") {
                    None => self.pictures_without_alt += 1,
                    Some(alt) => self.add_alt(&alt),
                }
            }
            HtmlElement::Link | HtmlElement::Anchor | HtmlElement::Area => {
                let Some(href) = text("href") else { return };
                let rel = text("rel").unwrap_or_default();
                if rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("license")) {
                    said.licence.take(&LICENCES, "rel", &href);
                } else if CREATIVE_COMMONS.iter().any(|place| href.contains(place)) {
                    said.licence.take(&LICENCES, "creativecommons", &href);
                }
            }
            _ => {}
        }
    }

    fn add_alt(&mut self, alt: &str) {
        let alt = one_line(alt, FACT_BYTES_MAX);
        if alt.is_empty() || self.alt.len() + alt.len() > FACT_BYTES_MAX {
            return;
        }
        if !self.alt.is_empty() {
            self.alt.push_str(" | ");
        }
        self.alt.push_str(&alt);
    }
}

/// Reads what an XML document or feed says of itself: in children of its root, and of the `channel` of a feed.
fn read_xml(root: Node<'_, '_>, said: &mut Said) {
    let xml_lang = (roxmltree::NS_XML_URI, "lang");
    said.language.take(&LANGUAGES, "xml:lang", root.attribute(xml_lang).unwrap_or_default());
    let heads = [Some(root), root.children().find(|child| child.tag_name().name() == "channel")];
    for child in heads.into_iter().flatten().flat_map(|head| head.children().filter(Node::is_element)) {
        let name = child.tag_name().name();
        let text: String =
            child.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect();
        // The category of an Atom feed stands in an attribute.
        let text = child.attribute("term").map_or(Cow::Owned(text), Cow::Borrowed);
        said.take(name, &text);
        if name.eq_ignore_ascii_case("language") {
            said.language.take(&LANGUAGES, "language", &text);
        }
    }
}

/// What the bytes of a file are, by their first ones: the usual ending of such files, with a version for PDF; `html`,
/// `xml`, `svg` or `text` for texts; empty if that is not known.
fn format_of(body: &[u8]) -> String {
    if let Some(found) = infer::get(body).filter(|found| found.matcher_type() != infer::MatcherType::Text) {
        let version = body.strip_prefix(b"%PDF-").and_then(|rest| rest.get(..3));
        let version =
            version.filter(|version| version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'));
        return match version.and_then(|version| std::str::from_utf8(version).ok()) {
            Some(version) => format!("pdf {version}"),
            None => found.extension().to_owned(),
        };
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return String::new();
    }
    let name = match DocumentKind::of("", body) {
        DocumentKind::Html => "html",
        kind if kind.is_xml() => {
            let begins = body.get(..SVG_WITHIN).unwrap_or(body);
            if memchr::memmem::find(begins, b"<svg").is_some() { "svg" } else { "xml" }
        }
        _ if is_text(body) => "text",
        _ => "",
    };
    name.to_owned()
}

/// Whether bytes are a text: UTF-8 or a single-byte encoding, without control characters.
fn is_text(body: &[u8]) -> bool {
    /// Bytes that are looked at.
    const BYTES: usize = 4096;
    let is_control = |byte: &u8| *byte < b' ' && !byte.is_ascii_whitespace() && *byte != 0x1B;
    !body.get(..BYTES).unwrap_or(body).iter().any(is_control)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::said::{JSON_BYTES_MAX, JSON_DEPTH_MAX};
    use super::*;

    fn of(content_type: &str, body: &[u8]) -> DocumentFacts {
        let url = Url::parse("http://a.test/").unwrap();
        let headers: [(&str, &[u8]); 1] = [("Content-Type", content_type.as_bytes())];
        let source = FetchedDocument { url: &url, status: 200, content_type: None, headers: &headers, body };
        facts(&source, &ParseLimits::default())
    }

    #[test]
    fn pages_say_what_they_are_of_themselves() {
        let page = of(
            "text/html; charset=iso-8859-1",
            "<html lang=fr-CA><meta charset=utf-8><meta name=Description content='Les &eacute;t&eacute;s'>\
             <meta name=DC.description content=no><meta name=keywords content='a, b'><meta name=DC.Subject content=c>\
             <meta name=author content=Ada><meta name=author content=Bob>\
             <a href=https://creativecommons.org/licenses/by/4.0/>x</a><a rel='nofollow license' href=/mine>y</a>\
             <img src=a><img alt=''><img alt='A  house'><img alt=Tree><script>'<img>'</script><p>Été chaud"
                .as_bytes(),
        );
        let said = (&*page.description, &*page.keywords, &*page.author, &*page.licence);
        assert_eq!(said, ("Les étés", "a, b", "Ada, Bob", "/mine"));
        assert_eq!((page.pictures, page.pictures_without_alt, &*page.alt), (4, 1, "A house | Tree"));
        assert_eq!((&*page.declared_language, &*page.declared_charset), ("fr-ca", "windows-1252"));
        assert_eq!((&*page.detected_charset, &*page.format), ("utf-8", "html"));
        let plain = of("text/html; charset=iso-8859-1", b"<p>The summer is hot");
        assert_eq!((&*plain.declared_charset, &*plain.detected_charset), ("windows-1252", "windows-1252"));
        assert_eq!((&*plain.declared_language, &*plain.licence), ("", ""));
        let by_link = of("text/html", b"<a href=https://creativecommons.org/licenses/by/4.0/>x</a>");
        assert_eq!(by_link.licence, "https://creativecommons.org/licenses/by/4.0/");
    }

    #[test]
    fn pages_say_when_they_were_published() {
        let page = of(
            "text/html",
            r#"<meta property=og:title content="Shared"><meta property="article:published_time" content="2024-01-02T03:04:05Z">
             <meta name=date content="2020-01-01"><meta name=author content=Ada><meta itemprop=dateModified content="no date">
             <meta property="og:updated_time" content="2024-02-01">
             <script type="application/ld+json">{"@graph": [{"@type": "Organization", "description": "no", "name": "no"},
             {"@type": "NewsArticle", "headline": "Head &amp; line", "description": "What it says", "author": [{"name": "Bob"}, "Eve"],
             "keywords": ["a", "b"], "license": {"@id": "https://l.test/"}, "dateModified": "2024-03-01T00:00:00+01:00"}]}</script>
             <script type="application/ld+json">{"broken": </script>"#
                .as_bytes(),
        );
        let said = [&*page.headline, &*page.description, &*page.author, &*page.keywords, &*page.licence];
        assert_eq!(said, ["Head & line", "What it says", "Ada", "a, b", "https://l.test/"]);
        assert_eq!((page.published, page.revised), (Some(1_704_164_645), Some(1_709_247_600)));
        let shared = of("text/html", b"<meta property=og:title content=Shared><meta name=date content=soon>");
        assert_eq!((&*shared.headline, shared.published), ("Shared", None));
    }

    #[test]
    fn descriptions_in_json_are_read_up_to_their_limits() {
        let nested = |depth: usize| {
            let list = format!("{}{{\"headline\": \"x\"}}{}", "[".repeat(depth), "]".repeat(depth));
            of("text/html", format!("<script type=application/ld+json>{list}</script>").as_bytes()).headline
        };
        assert_eq!((nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX + 1)), ("x".to_owned(), String::new()));
        let long = |bytes: usize| {
            let json = r#"{"headline": "x"}"#;
            let json = json.to_owned() + &" ".repeat(bytes - json.len());
            of("text/html", format!("<script type=application/ld+json>{json}</script>").as_bytes()).headline
        };
        assert_eq!((long(JSON_BYTES_MAX), long(JSON_BYTES_MAX + 1)), ("x".to_owned(), String::new()));
    }

    #[test]
    fn a_text_of_a_document_is_cut_at_its_limit() {
        let long = "x".repeat(FACT_BYTES_MAX);
        let page = |text: &str| of("text/html", format!("<meta name=author content='{text}'>").as_bytes());
        assert_eq!(page(&long).author, long);
        assert_eq!(page(&format!("{long}y")).author, long);
    }

    #[test]
    fn feeds_say_what_they_are_of_themselves() {
        let rss = of(
            "application/rss+xml",
            b"<rss><channel><title>T</title><description>News</description><language>en-GB</language>\
              <managingEditor>Ada</managingEditor><category>x</category><category>y</category>\
              <copyright>CC BY</copyright><item><description>no</description></item></channel></rss>",
        );
        let said = (&*rss.description, &*rss.keywords, &*rss.author, &*rss.licence, &*rss.declared_language);
        assert_eq!(said, ("News", "x, y", "Ada", "CC BY", "en-gb"));
        let atom = of(
            "application/atom+xml",
            b"<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='de'><subtitle>Neues</subtitle><category term='z'/>\
              <author><name>Bob</name></author><rights>mine</rights></feed>",
        );
        let said =
            (&*atom.description, &*atom.keywords, &*atom.author, &*atom.licence, &*atom.declared_language);
        assert_eq!(said, ("Neues", "z", "Bob", "mine", "de"));
        assert_eq!(atom.format, "xml");
    }

    #[test]
    fn files_are_what_their_bytes_are() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\0\x80\x08\x02\0\0\0";
        let gif = b"GIF89a\x0A\0\x05\0\x80\0\0";
        for (body, format, pronom, size) in [
            (&png[..], "png", "fmt/11", Some((256, 128))),
            (&gif[..], "gif", "fmt/4", Some((10, 5))),
            (b"%PDF-1.4\n%", "pdf 1.4", "fmt/18", None),
            (b"\xFF\xD8\xFF\xE0\0\x10JFIF\0\x01\x01\0", "jpg", "fmt/43", None),
            (b"\xFF\xD8\xFF\xE1\0\x10Exif", "jpg", "", None),
            (b"PK\x03\x04\x14\0\0\0\0\0 and more that is no office document", "zip", "x-fmt/263", None),
            (b"<!doctype html><p>x", "html", "fmt/471", None),
            (b"<html><p>x", "html", "fmt/96", None),
            (b"<?xml version='1.0'?><a/>", "xml", "fmt/101", None),
            (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "svg", "fmt/91", None),
            (b"only words", "text", "x-fmt/111", None),
            (b"\x01\x02\x03", "", "", None),
            (b"", "", "", None),
        ] {
            let facts = of("image/jpeg", body);
            let found = (&*facts.format, facts.pronom, facts.size);
            assert_eq!(found, (format, pronom, size), "{body:?}");
        }
    }
}

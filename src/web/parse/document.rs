//! Reads a document according to its kind, and derives further data from its text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use super::charset::{self, Charset};
use super::html::{self, MarkupSyntax, TextMarks};
use super::outlinks::Outlinks;
use super::{
    DocumentKind, FACT_BYTES_MAX, FetchedDocument, LinkKind, OfficeProblem, ParseLimits, ParseProblem,
    ParsedDocument, SaidTexts, css, decode_content, json, language, office, playlist, signature, xml,
};

/// A document being read.
pub(super) struct Document<'s> {
    pub(super) source: &'s FetchedDocument<'s>,
    pub(super) limits: &'s ParseLimits,
    /// Whether only the text is wanted.
    pub(super) is_text_alone: bool,
    pub(super) media_type: &'s str,
    pub(super) charset_label: Option<&'s str>,
    pub(super) parsed: ParsedDocument,
    pub(super) outlinks: Outlinks,
}

impl Document<'_> {
    pub(super) fn read(&mut self, body: &[u8]) {
        match self.parsed.kind {
            DocumentKind::Html => self.read_html(body),
            DocumentKind::Xml => self.read_xml(body),
            DocumentKind::Text => self.read_text(body),
            DocumentKind::Archive => self.read_compressed_sitemap(body),
            kind if kind.is_office() => self.read_office(kind, body),
            _ if self.is_text_alone => {}
            DocumentKind::Css => self.read_css(body),
            DocumentKind::Json => self.read_json(body),
            DocumentKind::Playlist => self.read_playlist(body),
            _ => self.parsed.signature = signature::of_bytes(body),
        }
    }

    fn charset<'b>(&mut self, body: &'b [u8]) -> Charset<'b> {
        let charset = charset::detect(body, self.charset_label, self.parsed.kind.is_xml());
        self.parsed.encoding = Some(charset.encoding.name());
        charset
    }

    /// Returns the text of a body; reports bytes that are invalid in the encoding.
    fn decode<'b>(&mut self, body: &'b [u8]) -> (Cow<'b, str>, &'static Encoding) {
        let charset = self.charset(body);
        let (text, had_errors) = charset::decode(body, &charset);
        if had_errors {
            self.parsed.problems.push(ParseProblem::Encoding { encoding: charset.encoding.name() });
        }
        (text, charset.encoding)
    }

    fn read_html(&mut self, body: &[u8]) {
        let (html, encoding) = self.decode(body);
        let syntax = if self.media_type.ends_with("+xml") { MarkupSyntax::Xml } else { MarkupSyntax::Html };
        self.read_html_text(&html, encoding, syntax);
    }

    pub(super) fn read_html_text(&mut self, html: &str, encoding: &'static Encoding, syntax: MarkupSyntax) {
        if self.is_text_alone {
            return self.set_text(html::text(html, syntax), TextMarks::default());
        }
        if encoding != UTF_8 {
            self.outlinks.set_base(self.source.url.clone(), encoding);
        }
        if syntax == MarkupSyntax::Xml {
            xml::read_prolog(html, &mut self.outlinks);
        }
        let facts = html::read(html, encoding, syntax, &self.limits.robot, &mut self.outlinks);
        self.parsed.title = facts.title;
        self.parsed.robots = self.parsed.robots | facts.robots;
        self.parsed.canonical = facts.canonical;
        self.parsed.language = facts.language.or(self.parsed.language.take());
        self.parsed.said = facts.said;
        self.set_text(facts.text, facts.marks);
    }

    fn read_css(&mut self, body: &[u8]) {
        let (css, _) = self.decode(body);
        css::urls(&css, |url, kind| {
            self.outlinks.add(url, kind, false);
        });
        self.parsed.signature = signature::of_bytes(body);
    }

    fn read_playlist(&mut self, body: &[u8]) {
        let (text, _) = self.decode(body);
        playlist::urls(&text, |url, kind| {
            self.outlinks.add(url, kind, false);
        });
        self.parsed.signature = signature::of_bytes(body);
    }

    fn read_json(&mut self, body: &[u8]) {
        let (text, _) = self.decode(body);
        if json::is_made_of_links(self.media_type, &text) {
            json::urls(&text, |url, kind| {
                self.outlinks.add(url, kind, false);
            });
        }
        self.parsed.signature = signature::of_bytes(body);
    }

    fn read_text(&mut self, body: &[u8]) {
        let (text, _) = self.decode(body);
        if xml::sitemap::is_list(&text) {
            self.parsed.kind = DocumentKind::Sitemap;
            self.outlinks.allow(self.limits.sitemap_links_max);
            xml::sitemap::read_list(&text, &mut self.outlinks);
            self.parsed.signature = signature::of_bytes(body);
        } else {
            self.set_text(text.into_owned(), TextMarks::default());
        }
    }

    fn read_office(&mut self, kind: DocumentKind, body: &[u8]) {
        let read = office::ask(kind, body);
        let line = |text: &str| html::one_line(text, FACT_BYTES_MAX);
        self.parsed.title = line(&read.title);
        let [description, keywords, author] =
            [&read.description, &read.keywords, &read.author].map(|text| line(text));
        self.parsed.said = SaidTexts { description, keywords, author, headline: String::new() };
        for target in &read.links {
            self.outlinks.add(target, LinkKind::Anchor, false);
        }
        let language = Some(read.language).filter(|tag| !tag.is_empty());
        self.parsed.language = language.or(self.parsed.language.take());
        let has_text = !read.text.trim().is_empty();
        self.parsed.problems.extend(read.problem.map(|problem| match problem {
            _ if has_text || problem == OfficeProblem::NoText => ParseProblem::Office(problem),
            _ => ParseProblem::NotRead(problem.to_string().into()),
        }));
        self.set_text(read.text, TextMarks::default());
        if !has_text {
            self.parsed.signature = signature::of_bytes(body);
        }
    }

    /// A sitemap may be a `.gz` file, which is not a content coding.
    fn read_compressed_sitemap(&mut self, body: &[u8]) {
        self.parsed.signature = signature::of_bytes(body);
        if !body.starts_with(&[0x1F, 0x8B]) {
            return;
        }
        // Most such files are archives; their beginning is enough to see that they are not a sitemap.
        let beginning = decode_content(body, "gzip", xml::sitemap::SEEN_BYTES).body;
        let kind = DocumentKind::of("", &beginning);
        if !xml::sitemap::may_be_one(kind, &beginning) {
            return;
        }
        let decoded = decode_content(body, "gzip", self.limits.body_bytes_max);
        self.parsed.kind = kind;
        self.parsed.problems.extend(decoded.problem.map(ParseProblem::Coding));
        self.read(&decoded.body);
    }

    fn read_xml(&mut self, body: &[u8]) {
        let (text, encoding) = self.decode(body);
        xml::read(&text, encoding, self);
    }

    /// Sets the text, and the data derived from it.
    pub(super) fn set_text(&mut self, mut text: String, mut marks: TextMarks) {
        if !self.is_text_alone {
            let signatures = {
                let pictures = self.outlinks.pictures();
                signature::of_text(&self.parsed.title, &text, &marks.surroundings, pictures)
            };
            self.parsed.signature = signatures.exact.unwrap_or_else(|| self.outlinks.signature());
            self.parsed.similarity = signatures.near;
            self.parsed.language = self.parsed.language.take().or_else(|| language::guess(&text));
        }
        if text.len() > self.limits.text_bytes_max {
            let at = text.floor_char_boundary(self.limits.text_bytes_max);
            text.truncate(at);
            marks.cut(at);
            self.parsed.problems.push(ParseProblem::TextCut { at });
        }
        text.shrink_to_fit();
        self.parsed.text = text;
        let TextMarks { surroundings, headings, link_texts } = marks;
        self.parsed.surroundings = surroundings;
        self.parsed.headings = headings;
        self.parsed.link_texts = link_texts;
    }
}

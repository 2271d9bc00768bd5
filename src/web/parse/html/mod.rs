//! Parses HTML into links, text and metadata.
//!
//! Makes one pass over the tokens of [`Markup`]. No tree is built, so deep nesting costs nothing; everything is
//! borrowed from the document in memory. Scripts, style sheets and titles are separated from the rest as in a browser;
//! a test compares the texts with those of `lol_html`.

mod attributes;
mod element;
mod form;
mod markup;
mod namespace;
mod scripts;
mod srcset;
mod table;
mod text;

use std::borrow::Cow;

use encoding_rs::Encoding;

pub use self::attributes::{looks_like_reference, value};
pub use self::element::HtmlElement;
pub use self::form::{FormFieldKind, PasswordForm, password_forms};
pub use self::markup::{Attribute, HtmlTag, HtmlToken, Markup};
pub use self::namespace::Namespaces;
pub use self::srcset::candidates;
pub use self::table::{ReferenceForm, kind_of_relation, role, role_of_property};
use self::text::TextRole;
pub(crate) use self::text::{TextBuilder, TextMarks};
use super::outlinks::Outlinks;
use super::said::{Said, SaidTexts};
use super::{LinkKind, RobotsDirectives, css, json};

/// Maximum bytes of a title; longer ones are cut.
pub(crate) const TITLE_BYTES_MAX: usize = 1024;

/// Facts from an HTML document.
pub(crate) struct HtmlFacts {
    pub(crate) title: String,
    pub(crate) text: String,
    /// Marked parts of the text.
    pub(crate) marks: TextMarks,
    pub(crate) robots: RobotsDirectives,
    pub(crate) canonical: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) said: SaidTexts,
}

/// Syntax rules of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupSyntax {
    /// HTML, whatever it looks like.
    Html,
    /// XHTML served as XML: any element may be self-closing.
    Xml,
}

/// Reads an HTML document. Adds links to `outlinks`, whose base is the document's URL.
pub(crate) fn read(
    html: &str,
    encoding: &'static Encoding,
    syntax: MarkupSyntax,
    robot: &str,
    outlinks: &mut Outlinks,
) -> HtmlFacts {
    let mut reader = HtmlReader::new(html, encoding, robot, outlinks);
    reader.syntax = syntax;
    reader.document(html);
    reader.finish()
}

/// Returns the text of an HTML document, as [`read`] finds it.
pub(crate) fn text(html: &str, syntax: MarkupSyntax) -> String {
    let mut outlinks = Outlinks::without_links();
    let mut reader = HtmlReader::new(html, encoding_rs::UTF_8, "", &mut outlinks);
    (reader.syntax, reader.is_text_alone) = (syntax, true);
    reader.document(html);
    reader.text.finish().0
}

/// Reads the links of one XHTML or SVG element, given attributes with entities resolved.
pub(crate) fn read_element(name: &str, attributes: &[Attribute<'_>], outlinks: &mut Outlinks) {
    let mut reader = HtmlReader::new("", encoding_rs::UTF_8, "", outlinks);
    reader.base_may_come = false;
    reader.is_decoded = true;
    reader.attributes(HtmlElement::of(name), attributes);
}

/// Reads a document from start to end.
struct HtmlReader<'a, 'o> {
    encoding: &'static Encoding,
    robot: &'a str,
    outlinks: &'o mut Outlinks,
    text: TextBuilder,
    namespaces: Namespaces,
    /// Number of open elements for the page's own content, whose headers are its own too.
    articles_open: u32,
    title: Option<String>,
    title_of_card: Option<String>,
    robots: RobotsDirectives,
    canonical: Option<String>,
    language: Option<String>,
    said: Said,
    /// References before the body, as long as a `base` element may still follow.
    early: Vec<(Cow<'a, str>, LinkKind, bool)>,
    base_may_come: bool,
    /// Number of links in the HTTP head, which no base changes.
    links_of_head: usize,
    syntax: MarkupSyntax,
    /// Whether only the text is wanted.
    is_text_alone: bool,
    /// Whether entities in attributes are resolved already.
    is_decoded: bool,
    /// Whether the script that begins here is data.
    script_is_data: bool,
    /// Nesting depth of documents in attributes.
    depth: usize,
}

impl<'a, 'o> HtmlReader<'a, 'o> {
    fn new(html: &'a str, encoding: &'static Encoding, robot: &'a str, outlinks: &'o mut Outlinks) -> Self {
        /// Text is usually one part in this many of a page.
        const TEXT_SHARE: usize = 4;
        Self {
            encoding,
            robot,
            links_of_head: outlinks.len(),
            outlinks,
            text: TextBuilder::with_capacity(html.len() / TEXT_SHARE),
            namespaces: Namespaces::default(),
            articles_open: 0,
            title: None,
            title_of_card: None,
            robots: RobotsDirectives::default(),
            canonical: None,
            language: None,
            said: Said::default(),
            early: Vec::new(),
            base_may_come: true,
            syntax: MarkupSyntax::Html,
            is_text_alone: false,
            is_decoded: false,
            script_is_data: false,
            depth: 0,
        }
    }

    fn document(&mut self, html: &'a str) {
        let mut markup = Markup::of(html);
        while let Some(token) = markup.next_token() {
            match token {
                HtmlToken::Text(text) => self.text.push(&decode_entities(text)),
                HtmlToken::PlainText(text) => self.text.push(text),
                HtmlToken::Conditional(markup) if !self.is_text_alone => self.fallback(markup),
                HtmlToken::Conditional(_) => {}
                HtmlToken::Tag(tag) => {
                    let element = HtmlElement::of(tag.name);
                    let is_over = tag.is_end || tag.is_self_closing && self.syntax == MarkupSyntax::Xml;
                    let may_be_raw = !is_over && !self.namespaces.is_foreign();
                    self.tag(element, &tag);
                    markup.allow_cdata(self.namespaces.is_foreign() || self.syntax == MarkupSyntax::Xml);
                    if may_be_raw {
                        self.raw_text(element, &mut markup);
                    }
                }
            }
        }
    }

    fn tag(&mut self, element: HtmlElement, tag: &HtmlTag<'a, '_>) {
        if !self.is_text_alone && self.namespaces.is_math() && !tag.is_end && element != HtmlElement::Anchor {
            self.anchor(tag.attributes);
        }
        self.namespaces.meet(element, tag);
        if element.breaks_line() {
            self.text.end_line();
        } else if element.parts_words() {
            self.text.end_word();
        }
        if !tag.is_end {
            self.start_tag(element, tag);
            return;
        }
        match element {
            HtmlElement::Article => self.articles_open = self.articles_open.saturating_sub(1),
            HtmlElement::Anchor => self.text.end_link(),
            HtmlElement::Heading => self.text.end_heading(),
            _ => {}
        }
        if self.text.has_open_regions() {
            self.text.leave(element);
        }
    }

    fn start_tag(&mut self, element: HtmlElement, tag: &HtmlTag<'a, '_>) {
        if self.text.has_open_regions() {
            self.text.enter(element);
        }
        let is_own_header = element == HtmlElement::Header && self.articles_open > 0;
        if let Some(role) = region_of(element, tag).filter(|_| !is_own_header) {
            self.text.open(element, role);
        }
        match element {
            HtmlElement::Article => self.articles_open += 1,
            HtmlElement::Heading => self.text.begin_heading(),
            _ => {}
        }
        if !tag.attributes.is_empty() && !self.is_text_alone {
            self.outlinks.set_template(self.text.has_open_regions());
            self.attributes(element, tag.attributes);
        }
    }

    /// Reads the raw text of an element that holds it.
    fn raw_text(&mut self, element: HtmlElement, markup: &mut Markup<'a>) {
        let Some(text) = markup.raw_text_of(element) else { return };
        match element {
            HtmlElement::Preformatted | HtmlElement::PlainText => self.text.push(text),
            _ if self.is_text_alone => {}
            HtmlElement::Script => self.script(text),
            HtmlElement::Style => self.style(text),
            HtmlElement::Title => self.take_title(text),
            HtmlElement::NoScript | HtmlElement::NoFrames => self.fallback(text),
            _ => {}
        }
    }

    /// Takes the first title that is not empty.
    fn take_title(&mut self, text: &str) {
        if self.title.is_none() && !text.is_empty() {
            // Entities and spaces may shrink, but not that much.
            let text = &text[..text.floor_char_boundary(8 * TITLE_BYTES_MAX)];
            self.title = Some(decode_entities(text).into_owned());
        }
    }

    /// Reads what a script reveals without being run.
    fn script(&mut self, text: &str) {
        if std::mem::take(&mut self.script_is_data) {
            self.said.take_script(text);
            json::urls(text, |url, kind| {
                self.link(Cow::Owned(url.to_owned()), kind, false);
            });
        } else {
            scripts::targets(text, |url| {
                self.link(Cow::Owned(url.to_owned()), LinkKind::ScriptTarget, false);
            });
        }
    }

    /// Reads a document in an attribute of this one: its links count, its text does not.
    fn inside(&mut self, html: &str) {
        /// Maximum nesting of documents; deeper ones are ignored.
        const DEPTH_MAX: usize = 4;
        if self.depth < DEPTH_MAX {
            let mut reader = HtmlReader::new(html, self.encoding, self.robot, self.outlinks);
            reader.base_may_come = false;
            reader.depth = self.depth + 1;
            reader.document(html);
        }
    }

    fn style(&mut self, css: &str) {
        let mut found = Vec::new();
        css::urls(css, |url, kind| found.push((url.to_owned(), kind)));
        for (url, kind) in found {
            self.link(Cow::Owned(url), kind, false);
        }
    }

    /// Reads markup for other browsers, such as those without scripts or frames: its links count, its text does not.
    fn fallback(&mut self, piece: &'a str) {
        let mut markup = Markup::of(piece);
        while let Some(tag) = markup.next_tag() {
            if !tag.is_end {
                self.attributes(HtmlElement::of(tag.name), tag.attributes);
            }
        }
    }

    /// Adds a link; also keeps it until the base is known.
    fn link(&mut self, reference: Cow<'a, str>, kind: LinkKind, nofollow: bool) -> Option<u32> {
        /// With this many links before the body, the document has no proper head.
        const EARLY_MAX: usize = 256;
        let place = self.outlinks.add(&reference, kind, nofollow);
        if self.base_may_come {
            self.early.push((reference, kind, nofollow));
            if self.early.len() >= EARLY_MAX {
                self.base_is_settled();
            }
        }
        place
    }

    fn base_is_settled(&mut self) {
        self.base_may_come = false;
        self.early = Vec::new();
    }

    /// Applies a `base` element, which counts for the whole document; only the first one counts.
    fn rebase(&mut self, reference: &str) {
        if !self.base_may_come {
            return;
        }
        self.outlinks.rebase_all(reference, self.encoding, self.links_of_head, &self.early);
        self.text.forget_links();
        self.base_is_settled();
    }

    /// Decodes the value of an attribute, in which `&copy=` is not an entity. Borrowed if it has no entity.
    fn decode<'v>(&self, value: &'v str) -> Cow<'v, str> {
        if self.is_decoded || memchr::memchr(b'&', value.as_bytes()).is_none() {
            Cow::Borrowed(value)
        } else {
            htmlize::unescape_attribute(value)
        }
    }

    fn finish(self) -> HtmlFacts {
        let (text, marks) = self.text.finish();
        let title = self.title.or(self.title_of_card).unwrap_or_default();
        HtmlFacts {
            title: one_line(&title, TITLE_BYTES_MAX),
            text,
            marks,
            robots: self.robots,
            canonical: self.canonical,
            language: self.language,
            said: self.said.texts(),
        }
    }
}

/// Decodes the text of a text node. Borrowed if it has no entity.
pub(crate) fn decode_entities(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', text.as_bytes()).is_none() {
        Cow::Borrowed(text)
    } else {
        htmlize::unescape(text)
    }
}

/// Returns the text of a piece of HTML, without its links.
pub(crate) fn fragment_text(html: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'<', b'&', html.as_bytes()).is_none() {
        return Cow::Borrowed(html);
    }
    Cow::Owned(text(html, MarkupSyntax::Html))
}

/// Reads the links of a piece of HTML inside another document.
pub(crate) fn links_inside(html: &str, outlinks: &mut Outlinks) {
    if memchr::memchr(b'<', html.as_bytes()).is_some() {
        let mut reader = HtmlReader::new("", encoding_rs::UTF_8, "", outlinks);
        reader.base_may_come = false;
        reader.document(html);
    }
}

/// Joins words by single spaces, cut to a number of bytes.
pub(crate) fn one_line(text: &str, bytes_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes_max));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > bytes_max {
            line.truncate(line.floor_char_boundary(bytes_max));
            break;
        }
    }
    line
}

/// Returns the region that a start tag opens, if any.
fn region_of(element: HtmlElement, tag: &HtmlTag<'_, '_>) -> Option<TextRole> {
    match element {
        HtmlElement::Template => Some(TextRole::Hidden),
        HtmlElement::Svg if !tag.is_self_closing => Some(TextRole::Hidden),
        HtmlElement::Navigation
        | HtmlElement::Header
        | HtmlElement::Footer
        | HtmlElement::Aside
        | HtmlElement::Button
        | HtmlElement::NoFrames => Some(TextRole::Surrounding),
        HtmlElement::Inserted | HtmlElement::Division | HtmlElement::Section => {
            let is_foreign = tag
                .attributes
                .iter()
                .filter(|found| found.is("class") || found.is("id"))
                .any(|found| names_an_advertisement(found.value));
            is_foreign.then_some(TextRole::Surrounding)
        }
        _ => None,
    }
}

/// Whether a class or id is that of an advertisement or a cookie notice.
fn names_an_advertisement(names: &str) -> bool {
    const WORDS: [&str; 14] = [
        "ad",
        "ads",
        "advert",
        "adverts",
        "advertisement",
        "advertising",
        "adsbygoogle",
        "adsense",
        "sponsor",
        "sponsored",
        "cookie",
        "cookies",
        "consent",
        "gdpr",
    ];
    names
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            matches!(word.as_bytes().first(), Some(b'a' | b's' | b'c' | b'g' | b'A' | b'S' | b'C' | b'G'))
        })
        .any(|word| WORDS.iter().any(|listed| word.eq_ignore_ascii_case(listed)))
}

#[cfg(test)]
mod tests;

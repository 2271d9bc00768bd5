//! HTML to links, text and metadata.
//!
//! The tokenizer of `lol_html` finds the texts, and so tells scripts, style sheets and titles from the rest as a browser
//! does; what lies between two texts is nothing but tags and comments, which [`Markup`] reads. No tree is built, so deep
//! nesting costs nothing, and with the whole document in memory everything is borrowed from it.

mod attributes;
mod element;
mod markup;
mod srcset;
mod text;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::Encoding;
use lol_html::html_content::TextType;
use lol_html::{HtmlRewriter, MemorySettings, Settings, doc_text};

pub(crate) use self::attributes::kind_of_relation;
use self::element::Element;
use self::markup::Tag;
pub(crate) use self::markup::{Attribute, Markup};
use self::text::Role;
pub(crate) use self::text::TextBuilder;
use super::outlinks::Outlinks;
use super::{LinkKind, Problem, RobotsDirectives, css};

/// Memory the tokenizer may take for itself, in bytes: a document that ends inside a tag or comment is kept to its end.
const TOKENIZER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A title's length, in bytes; what is longer is cut.
pub(crate) const TITLE_BYTES_MAX: usize = 1024;

/// What an HTML document says.
pub(crate) struct HtmlFacts {
    pub(crate) title: String,
    pub(crate) text: String,
    /// Ranges of the text that are not the page's own, in the order of their ends.
    pub(crate) surroundings: Vec<Range<usize>>,
    pub(crate) robots: RobotsDirectives,
    pub(crate) canonical: Option<String>,
    pub(crate) language: Option<String>,
}

/// Reads an HTML document. Links go to `outlinks`, whose base is the document's URL.
pub(crate) fn read(
    html: &str,
    encoding: &'static Encoding,
    robot: &str,
    outlinks: &mut Outlinks,
    problems: &mut Vec<Problem>,
) -> HtmlFacts {
    let mut reader = Reader::new(html, encoding, robot, outlinks);
    let mut markup = Markup::new();
    let mut end_of_text = 0;
    let outcome = {
        let settings = Settings::new()
            .with_strict(false)
            .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(TOKENIZER_BYTES_MAX))
            .append_document_content_handler(doc_text!(|chunk| {
                let range = chunk.source_location().bytes();
                reader.markup(html.get(end_of_text..range.start).unwrap_or_default(), &mut markup);
                end_of_text = range.end;
                reader.text(range, chunk.text_type());
                Ok(())
            }));
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        rewriter.write(html.as_bytes()).and_then(|()| rewriter.end())
    };
    if let Err(error) = outcome {
        problems.push(Problem::Html(error.to_string()));
    }
    reader.markup(html.get(end_of_text..).unwrap_or_default(), &mut markup);
    reader.end_raw_text();
    reader.finish()
}

/// Reads the document from its first to its last byte.
struct Reader<'a, 'o> {
    html: &'a str,
    encoding: &'static Encoding,
    robot: &'a str,
    outlinks: &'o mut Outlinks,
    text: TextBuilder,
    /// The element whose start tag came last: it says what a raw text is.
    last_start: Element,
    /// Elements open that hold the page's own content, whose headers are its own too.
    articles_open: u32,
    /// A raw text that may still go on: the tokenizer gives it in pieces.
    raw_text: Range<usize>,
    title: Option<String>,
    title_of_card: Option<String>,
    robots: RobotsDirectives,
    canonical: Option<String>,
    language: Option<String>,
    /// References before the body, for which a base may still come.
    early: Vec<(Cow<'a, str>, LinkKind, bool)>,
    base_may_come: bool,
    /// Links of the HTTP head, which no base changes.
    links_of_head: usize,
}

impl<'a, 'o> Reader<'a, 'o> {
    fn new(html: &'a str, encoding: &'static Encoding, robot: &'a str, outlinks: &'o mut Outlinks) -> Self {
        /// What share of a usual page is text.
        const TEXT_SHARE: usize = 4;
        Self {
            html,
            encoding,
            robot,
            links_of_head: outlinks.len(),
            outlinks,
            text: TextBuilder::with_capacity(html.len() / TEXT_SHARE),
            last_start: Element::Inline,
            articles_open: 0,
            raw_text: 0..0,
            title: None,
            title_of_card: None,
            robots: RobotsDirectives::default(),
            canonical: None,
            language: None,
            early: Vec::new(),
            base_may_come: true,
        }
    }

    /// Reads what lies between two texts.
    fn markup(&mut self, piece: &'a str, markup: &mut Markup<'a>) {
        if piece.is_empty() {
            return;
        }
        self.end_raw_text();
        markup.start(piece);
        while let Some(tag) = markup.next_tag() {
            let element = Element::of(tag.name);
            if element.breaks_line() {
                self.text.end_line();
            } else if element.parts_words() {
                self.text.end_word();
            }
            if tag.is_end {
                if element == Element::Article {
                    self.articles_open = self.articles_open.saturating_sub(1);
                }
                if self.text.has_open_regions() {
                    self.text.leave(element);
                }
            } else {
                self.start_tag(element, &tag);
            }
        }
    }

    fn start_tag(&mut self, element: Element, tag: &Tag<'a, '_>) {
        let is_second_title = element == Element::Title && self.title.is_some();
        self.last_start = if is_second_title { Element::Inline } else { element };
        if self.text.has_open_regions() {
            self.text.enter(element);
        }
        let is_own_header = element == Element::Header && self.articles_open > 0;
        if let Some(role) = region_of(element, tag).filter(|_| !is_own_header) {
            self.text.open(element, role);
        }
        self.articles_open += u32::from(element == Element::Article);
        if !tag.attributes.is_empty() {
            self.outlinks.set_template(self.text.has_open_regions());
            self.attributes(element, tag.attributes);
        }
    }

    /// Reads a text, or a part of one.
    fn text(&mut self, range: Range<usize>, text_type: TextType) {
        let text = self.html.get(range.clone()).unwrap_or_default();
        match text_type {
            TextType::Data => self.text.push(&decode_entities(text)),
            TextType::CDataSection | TextType::PlainText => self.text.push(text),
            TextType::RCData if self.last_start == Element::Title => self.take_title(text),
            TextType::RCData | TextType::ScriptData => {}
            TextType::RawText if self.raw_text.end == range.start => self.raw_text.end = range.end,
            TextType::RawText => self.raw_text = range,
        }
    }

    /// Reads the raw text that has come to its end.
    fn end_raw_text(&mut self) {
        let range = std::mem::take(&mut self.raw_text);
        if range.is_empty() {
            return;
        }
        let text = self.html.get(range).unwrap_or_default();
        match self.last_start {
            Element::Style => self.style(text),
            Element::NoScript | Element::NoFrames => self.fallback(text),
            Element::Block => self.text.push(text),
            _ => {}
        }
    }

    fn take_title(&mut self, text: &str) {
        let title = self.title.get_or_insert_default();
        if title.len() < TITLE_BYTES_MAX {
            title.push_str(&decode_entities(text));
        }
    }

    fn style(&mut self, css: &str) {
        let mut found = Vec::new();
        css::urls(css, |url, kind| found.push((url.to_owned(), kind)));
        for (url, kind) in found {
            self.link(Cow::Owned(url), kind, false);
        }
    }

    /// Markup for browsers without scripts or frames: its links count, its text doesn't.
    fn fallback(&mut self, piece: &'a str) {
        let mut markup = Markup::new();
        markup.start(piece);
        while let Some(tag) = markup.next_tag() {
            if !tag.is_end {
                self.attributes(Element::of(tag.name), tag.attributes);
            }
        }
    }

    /// Adds a link, or keeps it until the base is known.
    fn link(&mut self, reference: Cow<'a, str>, kind: LinkKind, nofollow: bool) {
        /// More links than this before the body begins, and there is no proper head.
        const EARLY_MAX: usize = 256;
        self.outlinks.add(&reference, kind, nofollow);
        if self.base_may_come {
            self.early.push((reference, kind, nofollow));
            if self.early.len() >= EARLY_MAX {
                self.base_is_settled();
            }
        }
    }

    fn base_is_settled(&mut self) {
        self.base_may_come = false;
        self.early = Vec::new();
    }

    /// A `base` element counts for the whole document; those after the first don't count at all.
    fn rebase(&mut self, reference: &str) {
        if !self.base_may_come {
            return;
        }
        self.outlinks.rebase_all(reference, self.encoding, self.links_of_head, &self.early);
        self.base_is_settled();
    }

    fn finish(self) -> HtmlFacts {
        let (text, surroundings) = self.text.finish();
        let title = self.title.or(self.title_of_card).unwrap_or_default();
        HtmlFacts {
            title: one_line(&title, TITLE_BYTES_MAX),
            text,
            surroundings,
            robots: self.robots,
            canonical: self.canonical,
            language: self.language,
        }
    }
}

/// The text of a text node. Borrowed when there is no entity in it.
pub(crate) fn decode_entities(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', text.as_bytes()).is_none() {
        Cow::Borrowed(text)
    } else {
        htmlize::unescape(text)
    }
}

/// The value of an attribute, in which `&copy=` is no entity. Borrowed when there is none in it.
fn decode_attribute(value: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', value.as_bytes()).is_none() {
        Cow::Borrowed(value)
    } else {
        htmlize::unescape_attribute(value)
    }
}

/// The text of a piece of HTML, without its links.
pub(crate) fn fragment_text(html: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'<', b'&', html.as_bytes()).is_none() {
        return Cow::Borrowed(html);
    }
    let mut outlinks = Outlinks::without_links();
    let facts = read(html, encoding_rs::UTF_8, "", &mut outlinks, &mut Vec::new());
    Cow::Owned(facts.text)
}

/// Calls `found` with the target of every link that a person sees in a piece of HTML.
pub(crate) fn anchors_of(html: &str, mut found: impl FnMut(&str)) {
    let mut markup = Markup::new();
    markup.start(html);
    while let Some(tag) = markup.next_tag() {
        if !tag.is_end
            && tag.name.eq_ignore_ascii_case("a")
            && let Some(href) = tag.attributes.iter().find(|attribute| attribute.is("href"))
        {
            found(&decode_attribute(href.value));
        }
    }
}

/// Words parted by single spaces, cut at a number of bytes.
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

/// The region that a start tag opens, when it opens one.
fn region_of(element: Element, tag: &Tag<'_, '_>) -> Option<Role> {
    match element {
        Element::Template => Some(Role::Hidden),
        Element::Svg if !tag.is_self_closing => Some(Role::Hidden),
        Element::Navigation
        | Element::Header
        | Element::Footer
        | Element::Aside
        | Element::Button
        | Element::NoFrames => Some(Role::Surrounding),
        Element::Inserted | Element::Division | Element::Section => {
            let is_foreign = tag
                .attributes
                .iter()
                .filter(|found| found.is("class") || found.is("id"))
                .any(|found| names_an_advertisement(found.value));
            is_foreign.then_some(Role::Surrounding)
        }
        _ => None,
    }
}

/// Whether a class or id is one of an advertisement or of a question about cookies.
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

//! HTML and XHTML: every attribute that loads or leads somewhere, style sheets inside the document, and what would work against
//! its being replayed. Everything else stays byte for byte.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8};
use lol_html::html_content::{ContentType, Element as Tag, TextChunk};
use lol_html::{AsciiCompatibleEncoding, HtmlRewriter, Settings, element, end, text};

use super::{Links, Splice, css};
use crate::parse::html::{
    Element, Form, candidates, kind_of_relation, looks_like_reference, role, role_of_property,
};
use crate::parse::{LinkKind, refresh};

/// Documents inside one another (`srcdoc`) that are rewritten.
const DEPTH_MAX: usize = 4;

/// Memory of one rewriting beyond input and output.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Elements whose content is text to a browser that runs scripts, or shows frames, and a document to others.
const UNREAD: [&str; 3] = ["noscript", "noframes", "noembed"];

/// What is added to a document.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Additions<'a> {
    /// Before everything that runs.
    pub head: &'a str,
    /// After everything.
    pub end: &'a str,
}

/// A document with other addresses. `encoding` must be one in which ASCII is itself; of another encoding, and of what cannot be
/// rewritten, there is none.
pub(in super::super) fn rewrite(
    html: &[u8],
    encoding: &'static Encoding,
    links: Links,
    additions: Additions<'_>,
) -> Option<Vec<u8>> {
    rewrite_at(html, encoding, links, additions, 0)
}

fn rewrite_at(
    html: &[u8],
    encoding: &'static Encoding,
    links: Links,
    additions: Additions<'_>,
    depth: usize,
) -> Option<Vec<u8>> {
    let page = Rc::new(RefCell::new(Page { links: links.in_encoding(encoding), based: false, depth }));
    let mut head_is_due = !additions.head.is_empty();
    let of_elements = Rc::clone(&page);
    let of_styles = Rc::clone(&page);
    let mut style = String::new();
    let mut settings = Settings::new()
        .with_strict(false)
        .with_encoding(AsciiCompatibleEncoding::new(encoding)?)
        .with_memory_settings(lol_html::MemorySettings::new().with_max_allowed_memory_usage(MEMORY_BYTES_MAX))
        .append_element_content_handler(element!("*", |tag| {
            if head_is_due && tag.tag_name() != "html" {
                head_is_due = false;
                if tag.tag_name() == "head" {
                    tag.prepend(additions.head, ContentType::Html);
                } else {
                    tag.before(additions.head, ContentType::Html);
                }
            }
            of_elements.borrow_mut().tag(tag);
            Ok(())
        }))
        .append_element_content_handler(text!("style", |chunk| {
            of_styles.borrow().style_text(&mut style, chunk);
            Ok(())
        }))
        .append_document_content_handler(end!(|document| {
            document.append(additions.end, ContentType::Html);
            Ok(())
        }));
    for name in UNREAD {
        let (page, mut inside) = (Rc::clone(&page), String::new());
        settings = settings.append_element_content_handler(text!(name, move |chunk| {
            page.borrow().unread_text(&mut inside, chunk);
            Ok(())
        }));
    }
    let mut written = Vec::with_capacity(html.len() + html.len() / 4);
    let mut rewriter = HtmlRewriter::new(settings, |piece: &[u8]| written.extend_from_slice(piece));
    rewriter.write(html).ok()?;
    rewriter.end().ok()?;
    Some(written)
}

struct Page {
    links: Links,
    /// Whether a base was stated; only the first counts.
    based: bool,
    depth: usize,
}

/// A new value of an attribute; none to take it away.
type Change = (String, Option<String>);

impl Page {
    fn tag(&mut self, tag: &mut Tag<'_, '_>) {
        let name = tag.tag_name();
        let element = Element::of(&name);
        if element == Element::Meta && is_against_replay(tag) {
            tag.remove();
            return;
        }
        // Of several with one name the first counts.
        let (mut changes, mut seen) = (Vec::new(), HashSet::new());
        for attribute in tag.attributes() {
            let (name, raw) = (attribute.name(), attribute.value());
            if !seen.insert(name.clone()) {
                continue;
            }
            let value = decode(&raw);
            let change = match name.as_str() {
                // What they stand for holds for the original's bytes and origin.
                "integrity" | "ping" | "referrerpolicy" => Some(None),
                // A document of no origin is under no worker, and it has the policy of its page.
                "sandbox" if element == Element::InlineFrame && tag.has_attribute("srcdoc") => {
                    Some(Some(format!("{value} allow-same-origin")))
                }
                "srcdoc" if element == Element::InlineFrame => self.inside(&value).map(Some),
                _ => self.value(tag, element, &name, &value).map(Some),
            };
            changes.extend(change.map(|change| (name, change)));
        }
        if element == Element::Link && is_connection_only(tag) {
            changes.push(("href".to_owned(), None));
        }
        if element == Element::Base
            && !self.based
            && let Some(href) = tag.get_attribute("href")
        {
            self.based = true;
            self.links.rebase(&decode(&href));
        }
        apply(tag, changes);
    }

    /// The new value of an attribute, if it holds references.
    fn value(&self, tag: &Tag<'_, '_>, element: Element, name: &str, value: &str) -> Option<String> {
        if let Some((form, kind)) = role(element, name) {
            return self.references(value, form, kind);
        }
        let one = |kind| self.links.of_kind(value, kind);
        match (element, name) {
            (Element::Anchor, "href" | "xlink:href")
            | (Element::Base, "href")
            | (Element::Form, "action") => self.links.address(value, self.links.page()),
            // Forms of buttons and whatever else has one.
            (_, "action") => self.links.address(value, self.links.page()),
            (Element::Link, "href") => {
                let rel = tag.get_attribute("rel").unwrap_or_default();
                let media_type = tag.get_attribute("type");
                let is_style = rel.to_ascii_lowercase().contains("preload")
                    && tag.get_attribute("as").is_some_and(|kind| kind.eq_ignore_ascii_case("style"));
                let kind = kind_of_relation(&rel, media_type.as_deref()).unwrap_or(LinkKind::Related);
                one(if is_style { LinkKind::Stylesheet } else { kind })
            }
            (Element::Object, "data" | "classid" | "code" | "codebase") => self.object(tag, name, value),
            (Element::Input, "src") => one(LinkKind::Image),
            (Element::Parameter, "value") if looks_like_reference(value) && is_absolute(value) => {
                one(LinkKind::Embed)
            }
            (Element::Meta, "content") => self.meta(tag, value),
            _ => None,
        }
    }

    fn references(&self, value: &str, form: Form, kind: LinkKind) -> Option<String> {
        match form {
            // A script may put something before a relative one; if it does not, that works as it is.
            Form::Url if kind == LinkKind::LazyImage && !is_absolute(value) => None,
            Form::Guess if !looks_like_reference(value) || !is_absolute(value) => None,
            Form::Url | Form::Guess => self.links.of_kind(value, kind),
            Form::Style => css::rewrite(value, &self.links),
            Form::Words => {
                let words = value.split_ascii_whitespace();
                let of = |word| self.links.of_kind(word, kind).unwrap_or_else(|| String::from(word));
                Some(words.map(of).collect::<Vec<_>>().join(" "))
            }
            Form::Candidates => {
                let mut splice = Splice::new(value);
                candidates(value, |url| {
                    if let Some(address) = self.links.of_kind(url, kind) {
                        splice.replace(url, &escape_commas(&address));
                    }
                });
                splice.finish()
            }
        }
    }

    /// The parts of an `object` are named against its `codebase`.
    fn object(&self, tag: &Tag<'_, '_>, name: &str, value: &str) -> Option<String> {
        let mut links = self.links.clone();
        if let Some(codebase) = tag.get_attribute("codebase").filter(|_| name != "codebase") {
            links.rebase(&decode(&codebase));
        }
        links.of_kind(value, LinkKind::Embed)
    }

    fn meta(&self, tag: &Tag<'_, '_>, content: &str) -> Option<String> {
        let is_refresh =
            tag.get_attribute("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("refresh"));
        if is_refresh {
            return self::refreshed(content, &self.links);
        }
        let names = ["property", "name", "itemprop"].iter().filter_map(|name| tag.get_attribute(name));
        let kind = names.filter_map(|name| role_of_property(&name)).next()?;
        self.links.of_kind(content, kind).filter(|_| looks_like_reference(content))
    }

    fn inside(&self, html: &str) -> Option<String> {
        if self.depth + 1 >= DEPTH_MAX {
            return Some(String::new());
        }
        let written =
            rewrite_at(html.as_bytes(), UTF_8, self.links.clone(), Additions::default(), self.depth + 1)?;
        String::from_utf8(written).ok().filter(|written| written != html)
    }

    fn style_text(&self, style: &mut String, chunk: &mut TextChunk<'_>) {
        gather(style, chunk, |style| css::rewrite(style, &self.links));
    }

    fn unread_text(&self, inside: &mut String, chunk: &mut TextChunk<'_>) {
        gather(inside, chunk, |inside| self.inside(inside));
    }
}

/// Takes the pieces of a text, and puts what `rewrite` makes of the whole in their place.
fn gather(whole: &mut String, chunk: &mut TextChunk<'_>, rewrite: impl FnOnce(&str) -> Option<String>) {
    whole.push_str(chunk.as_str());
    if !chunk.last_in_text_node() {
        chunk.remove();
        return;
    }
    let whole = std::mem::take(whole);
    let written = rewrite(&whole).unwrap_or(whole);
    chunk.replace(&written, ContentType::Html);
}

/// The content of a refresh with another address.
pub(in super::super) fn refreshed(content: &str, links: &Links) -> Option<String> {
    let target = refresh::target(content)?;
    let address = links.address(target, links.page())?;
    let mut splice = Splice::new(content);
    splice.replace(target, &address);
    splice.finish()
}

fn apply(tag: &mut Tag<'_, '_>, changes: Vec<Change>) {
    for (name, value) in changes {
        match value {
            // A name that stood in the document is one, and quotes are escaped by who writes it.
            Some(value) => drop(tag.set_attribute(&name, &value.replace('&', "&amp;").replace('<', "&lt;"))),
            None => tag.remove_attribute(&name),
        }
    }
}

fn decode(value: &str) -> Cow<'_, str> {
    if value.contains('&') { htmlize::unescape_attribute(value) } else { Cow::Borrowed(value) }
}

/// Whether a reference stays the same wherever it stands on its host.
fn is_absolute(reference: &str) -> bool {
    let reference = reference.trim_start();
    let starts =
        |scheme: &str| reference.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    reference.starts_with(['/', '\\']) || starts("http:") || starts("https:")
}

/// A comma at the end of a candidate's URL would end the candidate.
fn escape_commas(address: &str) -> String {
    let bare = address.trim_end_matches(',');
    format!("{bare}{}", "%2C".repeat(address.len() - bare.len()))
}

/// Whether a `meta` element forbids what the replay needs, or sets what must not be set.
fn is_against_replay(tag: &Tag<'_, '_>) -> bool {
    const POLICIES: [&str; 4] =
        ["content-security-policy", "content-security-policy-report-only", "set-cookie", "x-frame-options"];
    let is = |name: &str, values: &[&str]| {
        tag.get_attribute(name)
            .is_some_and(|found| values.iter().any(|value| found.trim().eq_ignore_ascii_case(value)))
    };
    is("http-equiv", &POLICIES) || is("name", &["referrer"])
}

/// Whether a `link` only opens a connection: to a server that the replay never asks.
fn is_connection_only(tag: &Tag<'_, '_>) -> bool {
    let rel = tag.get_attribute("rel").unwrap_or_default().to_ascii_lowercase();
    let mut words = rel.split_ascii_whitespace().peekable();
    words.peek().is_some() && words.all(|word| matches!(word, "preconnect" | "dns-prefetch"))
}

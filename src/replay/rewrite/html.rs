//! Rewriting of HTML and XHTML: attributes that load or link, embedded style sheets, and anything that would prevent
//! replay. Everything else is preserved byte for byte.
//!
//! The tokenizer that extracts links locates the values to replace. In encodings other than UTF-8, and in invalid
//! UTF-8, each byte is temporarily treated as a character, so that everything else is preserved.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use archive_web::parse::html::{
    Attribute, HtmlElement, HtmlTag, HtmlToken, Markup, MarkupSyntax, Namespaces, ReferenceForm, candidates,
    kind_of_relation, looks_like_reference, role, role_of_property, value,
};
use archive_web::parse::{LinkKind, refresh};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::{LinkRewriter, Splice, css, import_map, script, xml};

/// Maximum depth of nested documents (`srcdoc`) that are rewritten.
const DEPTH_MAX: usize = 4;

/// Inserted at the beginning of every document for readers, and of those in XML, which have no namespace by default.
pub(in super::super) const HEAD: &str = "<script src=\"/static/replay.js\"></script>";
pub(in super::super) const XML_HEAD: &str =
    "<script xmlns=\"http://www.w3.org/1999/xhtml\" src=\"/static/replay.js\"></script>";

/// The beginning of such a script where the document has an import map, which is rewritten instead of a new one.
const HAS_MAP: &str = "<script data-maps=\"\"";

/// Insertions into a document.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Additions<'a> {
    /// Before anything that runs.
    pub head: &'a str,
    /// Set if `head` was inserted there.
    pub is_led: Option<&'a Cell<bool>>,
    /// At the end; before an element, comment or tag that does not end there.
    pub end: &'a str,
}

/// Rewrites the addresses in a document; `None` if nothing changes, or if the encoding is not ASCII-compatible.
pub(in super::super) fn rewrite(
    html: &[u8],
    encoding: &'static Encoding,
    syntax: MarkupSyntax,
    links: LinkRewriter,
    additions: Additions<'_>,
) -> Option<Vec<u8>> {
    let links = links.in_encoding(encoding);
    match std::str::from_utf8(html) {
        _ if !encoding.is_ascii_compatible() => None,
        Ok(text) if encoding == UTF_8 => {
            Some(RewrittenDocument::new(text, None, syntax, links, 0).written(text, additions)?.into_bytes())
        }
        _ => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(html);
            let new =
                RewrittenDocument::new(&text, Some(encoding), syntax, links, 0).written(&text, additions)?;
            Some(WINDOWS_1252.encode(&new).0.into_owned())
        }
    }
}

struct RewrittenDocument<'a> {
    splice: Splice<'a>,
    links: LinkRewriter,
    /// The encoding of the bytes that the characters represent; `None` if the text is decoded.
    bytes: Option<&'static Encoding>,
    syntax: MarkupSyntax,
    /// Whether its scripts can use the names that `static/replay.js` defines.
    has_names: bool,
    /// Whether a base was declared; only the first counts.
    based: bool,
    depth: usize,
}

/// How the replay treats an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttributeTreatment {
    /// Removed: it refers to the original's bytes or origin.
    Away,
    /// Needs `allow-same-origin`: the worker does not control documents with an opaque origin, but they inherit their
    /// page's policy.
    Sandbox,
    Inside,
    Handler,
    References(ReferenceForm, LinkKind),
    /// An address that a reader may navigate to.
    Page,
    /// Like `Page`, but for links, which are left unchanged where possible.
    Followed,
    Link,
    ObjectPart,
    ObjectBase,
    Parameter,
    Meta,
}

/// Maximum length of the names in [`wanted`], in bytes.
const NAME_BYTES_MAX: usize = 14;

fn wanted(element: HtmlElement, name: &str) -> Option<AttributeTreatment> {
    use HtmlElement as E;
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len()).unwrap_or_default();
    lower.copy_from_slice(name.as_bytes().get(..lower.len()).unwrap_or_default());
    lower.make_ascii_lowercase();
    Some(match (element, &*lower) {
        (_, b"integrity" | b"ping" | b"referrerpolicy") => AttributeTreatment::Away,
        _ if name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("on")) => {
            AttributeTreatment::Handler
        }
        (E::InlineFrame, b"sandbox") => AttributeTreatment::Sandbox,
        (E::InlineFrame, b"srcdoc") => AttributeTreatment::Inside,
        (E::Anchor, b"href" | b"xlink:href") | (E::Area, b"href") => AttributeTreatment::Followed,
        (E::Base, b"href") | (_, b"action") => AttributeTreatment::Page,
        (E::Link, b"href") => AttributeTreatment::Link,
        (E::Object, b"data" | b"classid" | b"code") => AttributeTreatment::ObjectPart,
        (E::Object, b"codebase") => AttributeTreatment::ObjectBase,
        (E::Input, b"src") => AttributeTreatment::References(ReferenceForm::Url, LinkKind::Image),
        (E::Parameter, b"value") => AttributeTreatment::Parameter,
        (E::Meta, b"content") => AttributeTreatment::Meta,
        _ => {
            let (form, kind) = role(element, name)?;
            AttributeTreatment::References(form, kind)
        }
    })
}

impl<'a> RewrittenDocument<'a> {
    fn new(
        text: &'a str,
        bytes: Option<&'static Encoding>,
        syntax: MarkupSyntax,
        links: LinkRewriter,
        depth: usize,
    ) -> Self {
        let has_names = syntax == MarkupSyntax::Html;
        Self { splice: Splice::new(text), links, bytes, syntax, has_names, based: false, depth }
    }

    fn written(mut self, text: &'a str, additions: Additions<'_>) -> Option<String> {
        let mut markup = Markup::of(text);
        let marked = import_map::is_in(text).then(|| additions.head.replacen("<script", HAS_MAP, 1));
        let mut head = marked.as_deref().unwrap_or(additions.head);
        let (mut namespaces, mut in_style) = (Namespaces::default(), false);
        let (mut start, mut unfinished, mut is_begun) = (0, None, false);
        self.has_names |= !head.is_empty();
        while let Some(token) = markup.next_token() {
            let tag = match token {
                HtmlToken::Tag(tag) => tag,
                HtmlToken::Text(css) | HtmlToken::PlainText(css) if in_style => {
                    self.style(css);
                    continue;
                }
                _ => continue,
            };
            let element = HtmlElement::of(tag.name);
            let is_over = tag.is_end || tag.is_self_closing && self.syntax == MarkupSyntax::Xml;
            let may_be_raw = !is_over && !namespaces.is_foreign();
            if !tag.is_end {
                if !is_begun && self.syntax == MarkupSyntax::Xml && !may_lead(text, &tag) {
                    head = "";
                }
                is_begun = true;
                let added = if element == HtmlElement::Html { "" } else { std::mem::take(&mut head) };
                if let Some(is_led) = additions.is_led.filter(|_| !added.is_empty()) {
                    is_led.set(true);
                }
                let (before, after) =
                    if tag.name.eq_ignore_ascii_case("head") { ("", added) } else { (added, "") };
                self.splice.replace(&tag.whole[..0], before);
                if !additions.end.is_empty() {
                    start = self.splice.write_before(tag.whole);
                }
                self.start_tag(element, &tag);
                self.splice.replace(&tag.whole[tag.whole.len()..], after);
            }
            namespaces.meet(element, &tag);
            in_style = element == HtmlElement::Style && !tag.is_end && !tag.is_self_closing;
            let is_script = element == HtmlElement::Script && is_javascript(&tag);
            let is_map = element == HtmlElement::Script && is_of_type(&tag, "importmap");
            markup.allow_cdata(namespaces.is_foreign() || self.syntax == MarkupSyntax::Xml);
            if may_be_raw && let Some(text) = markup.raw_text_of(element) {
                if markup.unread().is_empty() {
                    unfinished = Some(start);
                }
                match element {
                    HtmlElement::Script if is_script => self.script(text),
                    HtmlElement::Script if is_map => {
                        if let Some(new) = import_map::rewrite(&self.read(text), &self.links) {
                            self.splice.replace(text, &self.spelled(&new));
                        }
                    }
                    _ => self.raw_text(element, text),
                }
            }
        }
        match unfinished {
            Some(position) => self.splice.insert(position, additions.end),
            None => self.splice.replace(&markup.unread()[..0], additions.end),
        }
        self.splice.finish()
    }

    fn start_tag(&mut self, element: HtmlElement, tag: &HtmlTag<'a, '_>) {
        if element == HtmlElement::Meta && is_against_replay(tag) {
            self.splice.replace(tag.whole, "");
            return;
        }
        // Browsers would load the pages that it names before somebody goes there.
        if element == HtmlElement::Script && is_of_type(tag, "speculationrules") {
            // What is left of it is data.
            let end = if tag.is_self_closing { "/>" } else { ">" };
            self.splice.replace(tag.whole, &format!("<script type=\"archived/speculationrules\"{end}"));
            return;
        }
        // The first of several attributes with the same name counts.
        let mut seen: Vec<&str> = Vec::new();
        let leads_nowhere = element == HtmlElement::Link && is_connection_only(tag);
        for attribute in tag.attributes {
            let Some(wanted) = wanted(element, attribute.name) else { continue };
            if wanted == AttributeTreatment::Away || wanted == AttributeTreatment::Link && leads_nowhere {
                self.take_away(attribute);
            } else if !seen.iter().any(|name| name.eq_ignore_ascii_case(attribute.name)) {
                seen.push(attribute.name);
                if let Some(value) = self.value(wanted, tag, attribute.value) {
                    self.put(attribute, &value);
                }
            }
        }
        if element == HtmlElement::Base
            && !self.based
            && let Some(href) = value(tag.attributes, "href")
        {
            self.based = true;
            let href = self.decoded(href);
            self.links.rebase(&href);
        }
    }

    /// The new value of an attribute, if it changes.
    fn value(&self, wanted: AttributeTreatment, tag: &HtmlTag<'_, '_>, written: &str) -> Option<String> {
        let of = |name| value(tag.attributes, name);
        let value = self.decoded(written);
        match wanted {
            AttributeTreatment::Away => None,
            AttributeTreatment::Sandbox => of("srcdoc").map(|_| format!("{value} allow-same-origin")),
            AttributeTreatment::Inside => self.inside(&value, true),
            AttributeTreatment::Handler if self.has_names => script::rewrite_text(&value),
            AttributeTreatment::Handler => None,
            AttributeTreatment::References(form, kind) => self.references(&value, form, kind),
            AttributeTreatment::Page => self.links.address(&value, self.links.page()),
            AttributeTreatment::Followed => {
                let script = || script::rewrite_url(&value).filter(|_| self.has_names);
                self.links.followed(&value).or_else(script)
            }
            AttributeTreatment::Link => {
                let rel = of("rel").unwrap_or_default();
                let is_style = rel.to_ascii_lowercase().contains("preload")
                    && of("as").is_some_and(|kind| kind.eq_ignore_ascii_case("style"));
                let kind = kind_of_relation(rel, of("type")).unwrap_or(LinkKind::Related);
                self.links.of_kind(&value, if is_style { LinkKind::Stylesheet } else { kind })
            }
            AttributeTreatment::ObjectBase => self.links.of_kind(&value, LinkKind::Embed),
            // It is resolved against the base of its object.
            AttributeTreatment::ObjectPart => match of("codebase") {
                Some(codebase) => {
                    let mut links = self.links.clone();
                    links.rebase(&self.decoded(codebase));
                    links.of_kind(&value, LinkKind::Embed)
                }
                None => self.links.of_kind(&value, LinkKind::Embed),
            },
            AttributeTreatment::Parameter if looks_like_reference(&value) && is_absolute(&value) => {
                self.links.of_kind(&value, LinkKind::Embed)
            }
            AttributeTreatment::Parameter => None,
            AttributeTreatment::Meta
                if of("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("refresh")) =>
            {
                refreshed(&value, &self.links)
            }
            AttributeTreatment::Meta => {
                let names = ["property", "name", "itemprop"].into_iter().filter_map(of);
                let kind = names.filter_map(role_of_property).next()?;
                self.links.of_kind(&value, kind).filter(|_| looks_like_reference(&value))
            }
        }
    }

    fn references(&self, value: &str, form: ReferenceForm, kind: LinkKind) -> Option<String> {
        match form {
            // A script may prepend something to a relative URL; otherwise a relative URL works unchanged.
            ReferenceForm::Url if kind == LinkKind::LazyImage && !is_absolute(value) => None,
            ReferenceForm::Guess if !looks_like_reference(value) || !is_absolute(value) => None,
            ReferenceForm::Url | ReferenceForm::Guess => self.links.of_kind(value, kind),
            ReferenceForm::Style => css::rewrite(value, &self.links),
            ReferenceForm::Words => {
                let words = value.split_ascii_whitespace();
                let of = |word| self.links.of_kind(word, kind).unwrap_or_else(|| String::from(word));
                Some(words.map(of).collect::<Vec<_>>().join(" "))
            }
            ReferenceForm::Candidates => {
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

    /// Rewrites a document within an attribute, or one for browsers of another kind; `None` if it does not change.
    fn inside(&self, html: &str, is_frame: bool) -> Option<String> {
        if self.depth + 1 >= DEPTH_MAX {
            return Some(String::new());
        }
        let (mut links, mut additions) = (self.links.clone(), Additions::default());
        if is_frame {
            // The worker does not treat it as a page of the archive.
            links = links.with_plain_scripts();
            additions.head = if may_run(html) { HEAD } else { "" };
        }
        let document = RewrittenDocument::new(html, None, MarkupSyntax::Html, links, self.depth + 1);
        RewrittenDocument { has_names: !is_frame && self.has_names, ..document }.written(html, additions)
    }

    fn raw_text(&mut self, element: HtmlElement, text: &'a str) {
        match element {
            HtmlElement::Style => self.style(text),
            // Plain text for browsers that run scripts or show frames, but a document for others.
            HtmlElement::NoScript | HtmlElement::NoFrames | HtmlElement::NoEmbed => {
                if let Some(new) = self.inside(&self.read(text), false) {
                    self.splice.replace(text, &self.spelled(&new));
                }
            }
            _ => {}
        }
    }

    fn script(&mut self, text: &'a str) {
        // In XML, entities may stand for anything, except within CDATA sections.
        let is_read = self.syntax == MarkupSyntax::Html || !text.contains('&') || text.contains("<![CDATA[");
        if self.has_names && is_read {
            for (place, with) in script::edits(text.as_bytes()) {
                self.splice.replace(&text[place], with);
            }
        }
    }

    fn style(&mut self, text: &'a str) {
        if let Some(new) = css::rewrite(&self.read(text), &self.links) {
            self.splice.replace(text, &self.spelled(&new));
        }
    }

    /// Replaces the value of an attribute.
    fn put(&mut self, attribute: &Attribute<'a>, value: &str) {
        let Some((name, value_place)) = self.places(attribute) else { return };
        let equals = if value_place.start == name.end { "=" } else { "" };
        let (text, new) = (self.splice.text, format!("{equals}{}", self.spelled(&quoted(value))));
        self.splice.replace(&text[value_place], &new);
    }

    /// Removes an attribute with the white space before it.
    fn take_away(&mut self, attribute: &Attribute<'a>) {
        let Some((name, value)) = self.places(attribute) else { return };
        let text = self.splice.text;
        let start = text[..name.start].trim_ascii_end().len();
        let is_apart =
            text[value.end..].starts_with(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/');
        self.splice.replace(&text[start..value.end], if is_apart { "" } else { " " });
    }

    /// Positions of an attribute's name, and of its value including quotes.
    fn places(&self, attribute: &Attribute<'a>) -> Option<(Range<usize>, Range<usize>)> {
        let (name, value) = (self.splice.place(attribute.name)?, self.splice.place(attribute.value)?);
        let before = self.splice.text.as_bytes().get(value.start.checked_sub(1)?)?;
        let quote = usize::from(value.start > name.end && matches!(before, b'"' | b'\''));
        Some((name, value.start - quote..value.end + quote))
    }

    /// Decodes the entities of an attribute's value.
    fn decoded<'v>(&self, written: &'v str) -> Cow<'v, str> {
        match self.read(written) {
            Cow::Borrowed(text) => decode(text),
            Cow::Owned(text) => Cow::Owned(decode(&text).into_owned()),
        }
    }

    /// Decodes a part of the document to text.
    fn read<'v>(&self, written: &'v str) -> Cow<'v, str> {
        match self.bytes {
            Some(encoding) if !written.is_ascii() => {
                let (bytes, ..) = WINDOWS_1252.encode(written);
                Cow::Owned(encoding.decode_without_bom_handling(&bytes).0.into_owned())
            }
            _ => Cow::Borrowed(written),
        }
    }

    /// Encodes text in the representation of the document.
    fn spelled<'v>(&self, text: &'v str) -> Cow<'v, str> {
        match self.bytes {
            Some(encoding) if !text.is_ascii() => {
                let (bytes, ..) = encoding.encode(text);
                Cow::Owned(WINDOWS_1252.decode_without_bom_handling(&bytes).0.into_owned())
            }
            _ => Cow::Borrowed(text),
        }
    }
}

/// Rewrites the address in the content of a refresh.
pub(in super::super) fn refreshed(content: &str, links: &LinkRewriter) -> Option<String> {
    let target = refresh::target(content)?;
    let address = links.address(target, links.page())?;
    let mut splice = Splice::new(content);
    splice.replace(target, &address);
    splice.finish()
}

fn decode(value: &str) -> Cow<'_, str> {
    if value.contains('&') { htmlize::unescape_attribute(value) } else { Cow::Borrowed(value) }
}

/// Whether a reference means the same wherever it occurs on its host.
fn is_absolute(reference: &str) -> bool {
    let reference = reference.trim_start();
    let starts =
        |scheme: &str| reference.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    reference.starts_with(['/', '\\']) || starts("http:") || starts("https:")
}

/// Whether a document may have scripts, handlers of events, or addresses that are scripts.
fn may_run(html: &str) -> bool {
    html.contains(" on") || ["script", "SCRIPT", "Script"].iter().any(|word| html.contains(word))
}

/// Quotes a value.
fn quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 16);
    quoted.push('"');
    let mut rest = value;
    while let Some(at) = memchr::memchr3(b'&', b'<', b'"', rest.as_bytes()) {
        quoted.push_str(&rest[..at]);
        quoted.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            _ => "&quot;",
        });
        rest = &rest[at + 1..];
    }
    quoted.push_str(rest);
    quoted.push('"');
    quoted
}

/// Escapes trailing commas of a candidate's URL, which would end the candidate.
fn escape_commas(address: &str) -> String {
    let bare = address.trim_end_matches(',');
    format!("{bare}{}", "%2C".repeat(address.len() - bare.len()))
}

/// Whether a `script` element contains JavaScript; others contain data, or source that a script compiles.
fn is_javascript(tag: &HtmlTag<'_, '_>) -> bool {
    let kind = value(tag.attributes, "type").or_else(|| value(tag.attributes, "language"));
    let kind = kind.unwrap_or_default().trim().to_ascii_lowercase();
    kind.is_empty()
        || kind == "module"
        || ["javascript", "ecmascript", "jscript"].iter().any(|name| kind.contains(name))
}

/// Whether a script put into the root of an XML document runs before anything else does. What stands before the root
/// must not declare entities, hide a part of itself in quotes, or name a style sheet that puts scripts of its own into
/// the document.
fn may_lead(text: &str, root: &HtmlTag<'_, '_>) -> bool {
    let start = root.whole.as_ptr() as usize - text.as_ptr() as usize;
    let before = text.get(..start).unwrap_or(text);
    root.name == "html"
        && !root.is_self_closing
        && !before.contains('[')
        && before.split(xml::INSTRUCTION).skip(1).all(xml::is_css)
        && ['"', '\''].iter().all(|quote| before.matches(*quote).count().is_multiple_of(2))
}

/// Whether a `script` element has data of this type.
fn is_of_type(tag: &HtmlTag<'_, '_>, kind: &str) -> bool {
    value(tag.attributes, "type").is_some_and(|found| found.trim().eq_ignore_ascii_case(kind))
}

/// Whether a `meta` element forbids what the replay needs, or sets what must not be set.
fn is_against_replay(tag: &HtmlTag<'_, '_>) -> bool {
    const POLICIES: [&str; 4] =
        ["content-security-policy", "content-security-policy-report-only", "set-cookie", "x-frame-options"];
    let is = |name: &str, values: &[&str]| {
        value(tag.attributes, name)
            .is_some_and(|found| values.iter().any(|value| found.trim().eq_ignore_ascii_case(value)))
    };
    is("http-equiv", &POLICIES) || is("name", &["referrer"])
}

/// Whether a `link` only opens a connection, to a server that the replay never contacts.
fn is_connection_only(tag: &HtmlTag<'_, '_>) -> bool {
    let rel = value(tag.attributes, "rel").unwrap_or_default().to_ascii_lowercase();
    let mut words = rel.split_ascii_whitespace().peekable();
    words.peek().is_some() && words.all(|word| matches!(word, "preconnect" | "dns-prefetch"))
}

//! Reads the attributes of a start tag: above all, links.

use std::borrow::Cow;

use super::super::said::JSON_LD;
use super::super::{LinkKind, RobotsDirectives, refresh};
use super::element::HtmlElement;
use super::table::{ReferenceForm, kind_of_relation, role, role_of_property};
use super::{Attribute, HtmlReader, srcset};

/// Returns the value of an attribute, as written.
pub fn value<'a>(attributes: &[Attribute<'a>], name: &str) -> Option<&'a str> {
    attributes.iter().find(|found| found.is(name)).map(|found| found.value)
}

impl<'a> HtmlReader<'a, '_> {
    pub(super) fn attributes(&mut self, element: HtmlElement, attributes: &[Attribute<'a>]) {
        if element == HtmlElement::Body {
            self.base_is_settled();
        }
        for attribute in attributes {
            if let Some((form, kind)) = role(element, attribute.name) {
                self.references(attribute.value, form, kind);
            }
        }
        match element {
            HtmlElement::Anchor => self.anchor(attributes),
            HtmlElement::Link => self.link_element(attributes),
            HtmlElement::Meta => self.meta(attributes),
            HtmlElement::InlineFrame => self.inline_frame(attributes),
            HtmlElement::Object => self.object(attributes),
            HtmlElement::Parameter => self.parameter(attributes),
            HtmlElement::Form => self.form(attributes),
            HtmlElement::Input if has_value(attributes, "type", "image") => {
                self.one(attributes, "src", LinkKind::Image);
            }
            HtmlElement::Script => self.script_is_data = has_value(attributes, "type", JSON_LD),
            HtmlElement::Base => {
                if let Some(href) = value(attributes, "href") {
                    self.rebase(&self.decode(href));
                }
            }
            HtmlElement::Html => self.html_element(attributes),
            _ => {}
        }
    }

    /// Adds the links of an attribute's value.
    fn references(&mut self, value: &'a str, form: ReferenceForm, kind: LinkKind) {
        match form {
            ReferenceForm::Url => {
                self.link(self.decode(value), kind, false);
            }
            ReferenceForm::Guess => {
                if looks_like_reference(value) {
                    self.link(self.decode(value), kind, false);
                }
            }
            ReferenceForm::Words => {
                for word in value.split_ascii_whitespace() {
                    self.link(self.decode(word), kind, false);
                }
            }
            ReferenceForm::Candidates => self.srcset(value, kind),
            ReferenceForm::Style => {
                if memchr::memchr(b'(', value.as_bytes()).is_some() {
                    let css = self.decode(value).into_owned();
                    self.style(&css);
                }
            }
        }
    }

    /// Adds the link of one attribute.
    fn one(&mut self, attributes: &[Attribute<'a>], name: &str, kind: LinkKind) {
        if let Some(reference) = value(attributes, name) {
            self.link(self.decode(reference), kind, false);
        }
    }

    /// Reads an `a` of HTML or SVG, or an element of MathML that links.
    pub(super) fn anchor(&mut self, attributes: &[Attribute<'a>]) {
        let href = value(attributes, "href").or_else(|| value(attributes, "xlink:href"));
        let Some(href) = href else { return };
        let nofollow = value(attributes, "rel").is_some_and(|rel| has_word(rel, "nofollow"));
        if let Some(place) = self.link(self.decode(href), LinkKind::Anchor, nofollow) {
            self.text.begin_link(place);
        }
    }

    /// Reads an `object` or `applet`, whose parts are resolved against its `codebase`.
    fn object(&mut self, attributes: &[Attribute<'a>]) {
        /// The codebase is parsed again for every part.
        const CODEBASE_BYTES_MAX: usize = 2048;
        let codebase = value(attributes, "codebase").map(|codebase| self.decode(codebase));
        let codebase = codebase.and_then(|codebase| self.outlinks.base().join(codebase.trim()).ok());
        let codebase = codebase.filter(|base| base.as_str().len() <= CODEBASE_BYTES_MAX);
        for found in attributes {
            let separator = match found.name.to_ascii_lowercase().as_str() {
                "data" | "classid" | "code" => '\0',
                // Applets separate archives by commas, objects by spaces.
                "archive" if found.value.contains(',') => ',',
                "archive" => ' ',
                _ => continue,
            };
            for part in found.value.split(separator).map(str::trim).filter(|part| !part.is_empty()) {
                let part = self.decode(part);
                let reference = match &codebase {
                    Some(base) => base.join(&part).map_or(part, |url| Cow::Owned(url.into())),
                    None => part,
                };
                self.link(reference, LinkKind::Embed, false);
            }
        }
    }

    /// Reads a `param` of an object that is a reference, according to its type or to a name that players use for one.
    fn parameter(&mut self, attributes: &[Attribute<'a>]) {
        const NAMES: [&str; 8] = ["movie", "src", "url", "filename", "file", "data", "image", "href"];
        let named =
            value(attributes, "name").filter(|name| NAMES.iter().any(|one| name.eq_ignore_ascii_case(one)));
        let reference = value(attributes, "value").filter(|reference| {
            has_value(attributes, "valuetype", "ref") || named.is_some() && looks_like_reference(reference)
        });
        if let Some(reference) = reference {
            self.link(self.decode(reference), LinkKind::Embed, false);
        }
    }

    /// Reads the target of a form that only queries.
    fn form(&mut self, attributes: &[Attribute<'a>]) {
        let asks = value(attributes, "method").is_none_or(|method| method.trim().eq_ignore_ascii_case("get"));
        if asks {
            self.one(attributes, "action", LinkKind::Form);
        }
    }

    fn srcset(&mut self, list: &'a str, kind: LinkKind) {
        match self.decode(list) {
            Cow::Borrowed(list) => {
                srcset::candidates(list, |reference| {
                    self.link(Cow::Borrowed(reference), kind, false);
                });
            }
            Cow::Owned(list) => {
                srcset::candidates(&list, |reference| {
                    self.link(Cow::Owned(reference.to_owned()), kind, false);
                });
            }
        }
    }

    /// Reads the document in a frame's attribute.
    fn inline_frame(&mut self, attributes: &[Attribute<'a>]) {
        if let Some(html) = value(attributes, "srcdoc") {
            let html = self.decode(html);
            self.inside(&html);
        }
    }

    fn html_element(&mut self, attributes: &[Attribute<'a>]) {
        if self.language.is_none() {
            let language = value(attributes, "lang").or_else(|| value(attributes, "xml:lang"));
            self.language = language.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty());
        }
    }

    fn link_element(&mut self, attributes: &[Attribute<'a>]) {
        let rel = value(attributes, "rel").unwrap_or_default();
        let kind = kind_of_relation(rel, value(attributes, "type"))
            .or_else(|| Some(role_of_property(value(attributes, "itemprop")?).unwrap_or(LinkKind::Related)));
        let Some(kind) = kind else { return };
        if let Some(href) = value(attributes, "href") {
            let reference = self.decode(href);
            if kind == LinkKind::Canonical && self.canonical.is_none() {
                self.canonical = self.outlinks.resolve(&reference);
            }
            self.link(reference, kind, has_word(rel, "nofollow"));
        }
    }

    fn meta(&mut self, attributes: &[Attribute<'a>]) {
        let Some(content) = value(attributes, "content") else { return };
        if let Some(name) = value(attributes, "name")
            && (name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(self.robot))
        {
            self.robots = self.robots | RobotsDirectives::parse(content);
        }
        for name in ["property", "name", "itemprop"].iter().filter_map(|name| value(attributes, name)) {
            self.said.take(name, &self.decode(content));
            if name.eq_ignore_ascii_case("og:title") && self.title_of_card.is_none() {
                self.title_of_card = Some(self.decode(content).into_owned());
            } else if let Some(kind) = role_of_property(name).filter(|_| looks_like_reference(content)) {
                self.link(self.decode(content), kind, false);
            }
        }
        let Some(name) = value(attributes, "http-equiv") else { return };
        if name.eq_ignore_ascii_case("refresh") {
            let content = self.decode(content);
            if let Some(target) = refresh::target(&content) {
                self.link(Cow::Owned(target.to_owned()), LinkKind::Refresh, false);
            }
        } else if name.eq_ignore_ascii_case("content-language") && self.language.is_none() {
            self.language = content.split(',').next().map(|tag| tag.trim().to_owned());
        }
    }
}

/// Whether a list of words contains this one.
fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|found| found.eq_ignore_ascii_case(word))
}

/// Whether an attribute has this value, ignoring case.
fn has_value(attributes: &[Attribute<'_>], name: &str, wanted: &str) -> bool {
    value(attributes, name).is_some_and(|found| found.trim().eq_ignore_ascii_case(wanted))
}

/// Whether an arbitrary value looks like a reference: it has a dot or slash, and no characters that URLs do not have.
pub fn looks_like_reference(value: &str) -> bool {
    let value = value.trim();
    value.contains(['/', '.'])
        && (!value.starts_with(['#', '.', '[']) || value.starts_with("./") || value.starts_with("../"))
        && !value
            .contains(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | '<' | '>' | '"' | '|' | '\\'))
        && !value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

//! What the attributes of a start tag say: links first of all.

use std::borrow::Cow;

use super::super::{LinkKind, RobotsDirectives, refresh};
use super::element::Element;
use super::{Attribute, Reader, decode_attribute, srcset};

/// The value of an attribute, as written.
fn value<'a>(attributes: &[Attribute<'a>], name: &str) -> Option<&'a str> {
    attributes.iter().find(|found| found.is(name)).map(|found| found.value)
}

impl<'a> Reader<'a, '_> {
    pub(super) fn attributes(&mut self, element: Element, attributes: &[Attribute<'a>]) {
        match element {
            Element::Anchor => self.anchor(attributes),
            Element::Image => self.image(attributes),
            Element::Link => self.link_element(attributes),
            Element::Meta => self.meta(attributes),
            Element::Script => self.one(attributes, "src", LinkKind::Script),
            Element::Area => self.one(attributes, "href", LinkKind::Area),
            Element::Frame => self.one(attributes, "src", LinkKind::Frame),
            Element::InlineFrame => self.inline_frame(attributes),
            Element::Source => self.source(attributes),
            Element::Track | Element::Audio => self.one(attributes, "src", LinkKind::Media),
            Element::Video => {
                self.one(attributes, "src", LinkKind::Media);
                self.one(attributes, "poster", LinkKind::Media);
            }
            Element::Embed => self.one(attributes, "src", LinkKind::Embed),
            Element::Object => self.one(attributes, "data", LinkKind::Embed),
            Element::Input
                if value(attributes, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) =>
            {
                self.one(attributes, "src", LinkKind::Image);
            }
            Element::SvgImage => {
                self.one(attributes, "href", LinkKind::Image);
                self.one(attributes, "xlink:href", LinkKind::Image);
            }
            Element::Base => {
                if let Some(href) = value(attributes, "href") {
                    self.rebase(&decode_attribute(href));
                }
            }
            Element::Html => self.html_element(attributes),
            Element::Body => {
                self.base_is_settled();
                self.one(attributes, "background", LinkKind::Image);
            }
            Element::TableCell => self.one(attributes, "background", LinkKind::Image),
            _ => {}
        }
        for attribute in attributes.iter().filter(|found| found.name.len() == 5 && found.is("style")) {
            if memchr::memchr(b'(', attribute.value.as_bytes()).is_some() {
                let css = decode_attribute(attribute.value).into_owned();
                self.style(&css);
            }
        }
    }

    /// Adds the link that one attribute holds.
    fn one(&mut self, attributes: &[Attribute<'a>], name: &str, kind: LinkKind) {
        if let Some(reference) = value(attributes, name) {
            self.link(decode_attribute(reference), kind, false);
        }
    }

    fn anchor(&mut self, attributes: &[Attribute<'a>]) {
        let href = value(attributes, "href").or_else(|| value(attributes, "xlink:href"));
        let Some(href) = href else { return };
        let nofollow = value(attributes, "rel").is_some_and(|rel| has_word(rel, "nofollow"));
        self.link(decode_attribute(href), LinkKind::Anchor, nofollow);
    }

    fn image(&mut self, attributes: &[Attribute<'a>]) {
        self.one(attributes, "src", LinkKind::Image);
        for found in attributes {
            match found.name.len() {
                6 if found.is("srcset") => self.srcset(found.value, LinkKind::ImageSource),
                8 if found.is("longdesc") => {
                    self.link(decode_attribute(found.value), LinkKind::Related, false);
                }
                8 if found.is("data-src") => {
                    self.link(decode_attribute(found.value), LinkKind::LazyImage, false);
                }
                11 if found.is("data-srcset") => self.srcset(found.value, LinkKind::LazyImage),
                13 if found.is("data-original") || found.is("data-lazy-src") => {
                    self.link(decode_attribute(found.value), LinkKind::LazyImage, false);
                }
                _ => {}
            }
        }
    }

    fn source(&mut self, attributes: &[Attribute<'a>]) {
        self.one(attributes, "src", LinkKind::Media);
        if let Some(list) = value(attributes, "srcset") {
            self.srcset(list, LinkKind::ImageSource);
        }
        if let Some(list) = value(attributes, "data-srcset") {
            self.srcset(list, LinkKind::LazyImage);
        }
    }

    fn srcset(&mut self, list: &'a str, kind: LinkKind) {
        match decode_attribute(list) {
            Cow::Borrowed(list) => {
                srcset::candidates(list, |reference| self.link(Cow::Borrowed(reference), kind, false));
            }
            Cow::Owned(list) => {
                srcset::candidates(&list, |reference| {
                    self.link(Cow::Owned(reference.to_owned()), kind, false);
                });
            }
        }
    }

    /// The address of the frame, or the document that stands in its attribute.
    fn inline_frame(&mut self, attributes: &[Attribute<'a>]) {
        self.one(attributes, "src", LinkKind::InlineFrame);
        self.one(attributes, "data-src", LinkKind::InlineFrame);
    }

    fn html_element(&mut self, attributes: &[Attribute<'a>]) {
        if self.language.is_none() {
            let language = value(attributes, "lang").or_else(|| value(attributes, "xml:lang"));
            self.language = language.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty());
        }
    }

    fn link_element(&mut self, attributes: &[Attribute<'a>]) {
        let Some(rel) = value(attributes, "rel") else { return };
        let kind = value(attributes, "type");
        let Some(kind) = kind_of_relation(rel, kind) else { return };
        if let Some(href) = value(attributes, "href") {
            let reference = decode_attribute(href);
            if kind == LinkKind::Canonical && self.canonical.is_none() {
                self.canonical = self.outlinks.resolve(&reference);
            }
            self.link(reference, kind, has_word(rel, "nofollow"));
        }
        if let Some(list) = value(attributes, "imagesrcset") {
            self.srcset(list, LinkKind::ImageSource);
        }
    }

    fn meta(&mut self, attributes: &[Attribute<'a>]) {
        let Some(content) = value(attributes, "content") else { return };
        if let Some(name) = value(attributes, "name")
            && (name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(self.robot))
        {
            self.robots = self.robots | RobotsDirectives::parse(content);
        }
        if let Some(name) = value(attributes, "property")
            && name.eq_ignore_ascii_case("og:title")
            && self.title_of_card.is_none()
        {
            self.title_of_card = Some(decode_attribute(content).into_owned());
        }
        let Some(name) = value(attributes, "http-equiv") else { return };
        if name.eq_ignore_ascii_case("refresh") {
            let content = decode_attribute(content);
            if let Some(target) = refresh::target(&content) {
                self.link(Cow::Owned(target.to_owned()), LinkKind::Refresh, false);
            }
        } else if name.eq_ignore_ascii_case("content-language") && self.language.is_none() {
            self.language = content.split(',').next().map(|tag| tag.trim().to_owned());
        }
    }
}

/// Whether a list of words holds this one.
fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|found| found.eq_ignore_ascii_case(word))
}

/// The kind of link that a `rel` makes, for `link` elements and `Link` header fields; none when it points to nothing that
/// can be captured.
pub(crate) fn kind_of_relation(rel: &str, media_type: Option<&str>) -> Option<LinkKind> {
    let mut best = None;
    for word in rel.split_ascii_whitespace() {
        let kind = match word.to_ascii_lowercase().as_str() {
            "stylesheet" => return Some(LinkKind::Stylesheet),
            "icon"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "mask-icon"
            | "fluid-icon"
            | "apple-touch-startup-image"
            | "image_src" => LinkKind::Icon,
            "canonical" => LinkKind::Canonical,
            "alternate" if media_type.is_some_and(|media_type| media_type.contains("oembed")) => {
                LinkKind::Speculative
            }
            "alternate" => LinkKind::Alternate,
            "preload" | "modulepreload" => LinkKind::Preload,
            "manifest" => LinkKind::WebManifest,
            "dns-prefetch" | "preconnect" | "shortcut" | "nofollow" | "noopener" | "noreferrer"
            | "external" => continue,
            "next"
            | "prev"
            | "previous"
            | "first"
            | "last"
            | "up"
            | "home"
            | "index"
            | "contents"
            | "toc"
            | "start"
            | "chapter"
            | "section"
            | "subsection"
            | "appendix"
            | "glossary"
            | "copyright"
            | "help"
            | "author"
            | "license"
            | "bookmark"
            | "search"
            | "archives"
            | "amphtml"
            | "shortlink"
            | "privacy-policy"
            | "terms-of-service"
            | "tag"
            | "latest-version"
            | "predecessor-version"
            | "successor-version"
            | "describedby"
            | "item"
            | "collection"
            | "cite-as" => LinkKind::Related,
            _ => LinkKind::Speculative,
        };
        // A word that says more wins over `alternate` or an unknown one beside it.
        best = match best {
            None | Some(LinkKind::Speculative | LinkKind::Alternate) => Some(kind),
            kept => kept,
        };
    }
    best
}

//! Links of any XML document: XLink, XInclude, style sheets, schemas, and the attributes of well-known vocabularies.

use encoding_rs::Encoding;
use roxmltree::{Attribute, Document, Node};
use url::Url;

use super::super::LinkKind;
use super::super::html::kind_of_relation;
use super::super::outlinks::Outlinks;
use super::walk::{RDF, SVG, Step, XHTML, XINCLUDE, XLINK, XML, XSD, XSI, XSL, pseudo_attribute, walk};

/// Reads the links of a tree, with `xml:base` applied.
pub(super) fn read(document: &Document<'_>, encoding: &'static Encoding, outlinks: &mut Outlinks) {
    let mut reader = Reader { outlinks, encoding, bases: Vec::new() };
    walk(document, |step| {
        match step {
            Step::Enter(node) if node.is_element() => reader.element(node),
            Step::Enter(node) => reader.instruction(node),
            Step::Leave(node) => reader.leave(node),
        }
        true
    });
}

struct Reader<'o, 'a, 'i> {
    outlinks: &'o mut Outlinks,
    encoding: &'static Encoding,
    /// Elements with an `xml:base`, and the base that counts outside of each.
    bases: Vec<(Node<'a, 'i>, Url)>,
}

impl<'a, 'i> Reader<'_, 'a, 'i> {
    fn element(&mut self, node: Node<'a, 'i>) {
        if let Some(base) = node.attribute((XML, "base")) {
            self.enter_base(node, base);
        }
        for attribute in node.attributes() {
            match attribute.namespace() {
                Some(XLINK) if attribute.name() == "href" => self.xlink(node, attribute.value()),
                Some(XSI) => self.schema_location(attribute),
                Some(RDF) if matches!(attribute.name(), "about" | "resource") => {
                    self.add(attribute.value(), LinkKind::Speculative);
                }
                None => {
                    if let Some(kind) = kind_of_attribute(node, attribute.name()) {
                        self.add(attribute.value(), kind);
                    }
                }
                _ => {}
            }
        }
        if let Some(url) = url_as_content(node) {
            self.add(url, LinkKind::Reference);
        }
    }

    fn enter_base(&mut self, node: Node<'a, 'i>, base: &str) {
        /// A chain of bases may grow to this many bytes and no further.
        const BASE_BYTES_MAX: usize = 8192;
        let outside = self.outlinks.base().clone();
        if let Ok(inside) = outside.join(base)
            && inside.as_str().len() <= BASE_BYTES_MAX
            && matches!(inside.scheme(), "http" | "https")
        {
            self.outlinks.set_base(inside, self.encoding);
            self.bases.push((node, outside));
        }
    }

    fn leave(&mut self, node: Node<'a, 'i>) {
        if let Some((_, outside)) = self.bases.pop_if(|(entered, _)| *entered == node) {
            self.outlinks.set_base(outside, self.encoding);
        }
    }

    fn add(&mut self, reference: &str, kind: LinkKind) {
        self.outlinks.add(reference, kind, false);
    }

    /// XLink 1.1: simple links and the locators of extended ones.
    fn xlink(&mut self, node: Node<'_, '_>, href: &str) {
        let is_image = node.tag_name().namespace() == Some(SVG) && node.tag_name().name() != "a";
        let kind = match (node.attribute((XLINK, "type")), node.attribute((XLINK, "show"))) {
            (Some("none" | "title" | "resource" | "arc"), _) => return,
            _ if is_image => LinkKind::Image,
            (_, Some("embed")) => LinkKind::XLinkEmbed,
            _ => LinkKind::XLink,
        };
        self.add(href, kind);
    }

    /// XML Schema, part 1, section 2.6.3: pairs of a namespace and the place of its schema.
    fn schema_location(&mut self, attribute: Attribute<'_, '_>) {
        match attribute.name() {
            "schemaLocation" => {
                for place in attribute.value().split_whitespace().skip(1).step_by(2) {
                    self.add(place, LinkKind::Schema);
                }
            }
            "noNamespaceSchemaLocation" => self.add(attribute.value(), LinkKind::Schema),
            _ => {}
        }
    }

    fn instruction(&mut self, node: Node<'_, '_>) {
        let Some(instruction) = node.pi() else { return };
        let kind = match instruction.target {
            "xml-stylesheet" => LinkKind::XmlStylesheet,
            "xml-model" => LinkKind::Schema,
            _ => return,
        };
        if let Some(href) = instruction.value.and_then(|value| pseudo_attribute(value, "href")) {
            self.add(&super::super::html::decode_entities(href), kind);
        }
    }
}

/// The kind of link that an attribute without a namespace holds, if it holds one.
fn kind_of_attribute(node: Node<'_, '_>, attribute: &str) -> Option<LinkKind> {
    let name = node.tag_name().name();
    match (node.tag_name().namespace(), name, attribute) {
        (Some(XINCLUDE), "include", "href") => Some(LinkKind::XInclude),
        (Some(XINCLUDE), ..) => None,
        (Some(XSL), "import" | "include", "href") => Some(LinkKind::XmlStylesheet),
        (Some(XSD), "import" | "include" | "redefine" | "override", "schemaLocation") => {
            Some(LinkKind::Schema)
        }
        (Some(XSL | XSD), ..) => None,
        (Some(XHTML), ..) => kind_in_xhtml(node, name, attribute),
        (Some(SVG), "a", "href") => Some(LinkKind::Anchor),
        (Some(SVG), "image" | "use" | "feImage", "href") => Some(LinkKind::Image),
        (Some(SVG), "script", "href") => Some(LinkKind::Script),
        (Some(SVG), ..) => None,
        // DocBook 4, TEI, OPML, DocBook's and TEI's images.
        (_, "ulink" | "link", "url") => Some(LinkKind::Anchor),
        (_, "ref" | "ptr", "target") => Some(LinkKind::Anchor),
        (_, "outline", "xmlUrl" | "htmlUrl" | "url") => Some(LinkKind::Anchor),
        (_, "imagedata" | "graphic" | "inlinegraphic", "fileref" | "url") => Some(LinkKind::Image),
        (_, "image" | "img", "href" | "src") => Some(LinkKind::Image),
        // DITA, OPF, NCX and whatever else calls a reference by its name.
        (_, _, "href") => Some(LinkKind::Reference),
        (_, _, "src") => Some(LinkKind::Speculative),
        _ => None,
    }
}

fn kind_in_xhtml(node: Node<'_, '_>, name: &str, attribute: &str) -> Option<LinkKind> {
    match (name, attribute) {
        ("a", "href") => Some(LinkKind::Anchor),
        ("area", "href") => Some(LinkKind::Area),
        ("link", "href") => kind_of_relation(node.attribute("rel")?, node.attribute("type")),
        ("img", "src") => Some(LinkKind::Image),
        ("script", "src") => Some(LinkKind::Script),
        ("iframe", "src") => Some(LinkKind::InlineFrame),
        ("frame", "src") => Some(LinkKind::Frame),
        ("object", "data") | ("embed", "src") => Some(LinkKind::Embed),
        ("video" | "audio" | "source" | "track", "src") => Some(LinkKind::Media),
        _ => None,
    }
}

/// The URL that is all an element holds, where its name says that it is one: Dublin Core, MODS, KML.
fn url_as_content<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    const NAMES: [&str; 8] = ["identifier", "relation", "source", "url", "href", "link", "guid", "loc"];
    if !NAMES.contains(&node.tag_name().name()) {
        return None;
    }
    let only = node.first_child().filter(|child| child.is_text() && child.next_sibling().is_none())?;
    let text = only.text()?.trim();
    let is_url =
        (text.starts_with("http://") || text.starts_with("https://")) && !text.contains(char::is_whitespace);
    is_url.then_some(text)
}

//! Links of any XML document: XLink, XInclude, style sheets, schemas, and attributes of well-known vocabularies.

use encoding_rs::Encoding;
use roxmltree::{Attribute, Document, Node};

use super::super::html::{self, decode_entities};
use super::super::outlinks::Outlinks;
use super::super::{LinkKind, css};
use super::bases::Bases;
use super::pieces::Attributes;
use super::walk::{RDF, SVG, XHTML, XINCLUDE, XLINK, XSD, XSI, XSL, is_code, url_in};

/// Reads the links of a tree, applying `xml:base`.
pub(super) fn read(document: &Document<'_>, encoding: &'static Encoding, outlinks: &mut Outlinks) {
    let mut bases = Bases::of(document, encoding, outlinks);
    for node in document.descendants() {
        if node.is_element() {
            element(node, bases.at(node));
        } else if let Some(found) = node.pi() {
            instruction(found.target, found.value.unwrap_or_default(), bases.at(node));
        }
    }
}

/// Reads the links of an element, but not of its descendants.
pub(super) fn element(node: Node<'_, '_>, outlinks: &mut Outlinks) {
    let namespace = node.tag_name().namespace();
    if matches!(namespace, Some(XHTML | SVG)) {
        return element_of_html(node, outlinks);
    }
    for attribute in node.attributes() {
        match attribute.namespace() {
            Some(XLINK) if attribute.name() == "href" => xlink(node, attribute.value(), outlinks),
            Some(XSI) => schema_location(attribute, outlinks),
            Some(RDF) if matches!(attribute.name(), "about" | "resource") => {
                outlinks.add(attribute.value(), LinkKind::Speculative, false);
            }
            None => {
                let kind = kind_of_attribute(namespace, node.tag_name().name(), attribute.name());
                if let Some(kind) = kind {
                    outlinks.add(attribute.value(), kind, false);
                }
            }
            _ => {}
        }
    }
    if names_a_url(node.tag_name().name())
        && let Some(url) = url_in(node)
    {
        outlinks.add(url, LinkKind::Reference, false);
    }
}

/// Reads the links of an XHTML or SVG element as in an HTML document.
fn element_of_html(node: Node<'_, '_>, outlinks: &mut Outlinks) {
    let attributes: Vec<html::Attribute<'_>> = node
        .attributes()
        .filter_map(|found| {
            let name = match found.namespace() {
                None => found.name(),
                Some(XLINK) if found.name() == "href" => "xlink:href",
                Some(_) => return None,
            };
            Some(html::Attribute { name, value: found.value() })
        })
        .collect();
    html::read_element(node.tag_name().name(), &attributes, outlinks);
    if is_code(node) && node.tag_name().name() == "style" {
        for text in node.children().filter_map(|child| child.text()) {
            css::urls(text, |url, kind| {
                outlinks.add(url, kind, false);
            });
        }
    }
}

/// Reads XLink 1.1: simple links and the locators of extended ones.
fn xlink(node: Node<'_, '_>, href: &str, outlinks: &mut Outlinks) {
    let kind = match (node.attribute((XLINK, "type")), node.attribute((XLINK, "show"))) {
        (Some("none" | "title" | "resource" | "arc"), _) => return,
        (_, Some("embed")) => LinkKind::XLinkEmbed,
        _ => LinkKind::XLink,
    };
    outlinks.add(href, kind, false);
}

/// Reads schema locations, which are pairs of a namespace and a URL (XML Schema, part 1, section 2.6.3).
fn schema_location(attribute: Attribute<'_, '_>, outlinks: &mut Outlinks) {
    let skipped = match attribute.name() {
        "schemaLocation" => 1,
        "noNamespaceSchemaLocation" => 0,
        _ => return,
    };
    for place in attribute.value().split_whitespace().skip(skipped).step_by(2) {
        outlinks.add(place, LinkKind::Schema, false);
    }
}

/// Reads the link of a processing instruction from its pseudo-attributes (W3C, Associating Style Sheets with XML).
pub(super) fn instruction(target: &str, value: &str, outlinks: &mut Outlinks) {
    let kind = match target {
        "xml-stylesheet" => LinkKind::XmlStylesheet,
        "xml-model" => LinkKind::Schema,
        _ => return,
    };
    if let Some((_, href)) = Attributes::of(value).find(|(name, _)| *name == "href") {
        outlinks.add(&decode_entities(href), kind, false);
    }
}

/// Returns the kind of link in an attribute without a namespace; none if it holds no link. XHTML and SVG are read like
/// HTML.
pub(super) fn kind_of_attribute(namespace: Option<&str>, name: &str, attribute: &str) -> Option<LinkKind> {
    match (namespace, name, attribute) {
        (Some(XINCLUDE), "include", "href") => Some(LinkKind::XInclude),
        (Some(XINCLUDE), ..) => None,
        (Some(XSL), "import" | "include", "href") => Some(LinkKind::XmlStylesheet),
        (Some(XSD), "import" | "include" | "redefine" | "override", "schemaLocation") => {
            Some(LinkKind::Schema)
        }
        (Some(XSL | XSD), ..) => None,
        // DocBook 4, TEI, OPML, and images of DocBook and TEI.
        (_, "ulink" | "link", "url") => Some(LinkKind::Anchor),
        (_, "ref" | "ptr", "target") => Some(LinkKind::Anchor),
        (_, "outline", "xmlUrl" | "htmlUrl" | "url") => Some(LinkKind::Anchor),
        (_, "imagedata" | "graphic" | "inlinegraphic", "fileref" | "url") => Some(LinkKind::Image),
        (_, "image" | "img", "href" | "src") => Some(LinkKind::Image),
        // DITA, OPF, NCX and any other vocabulary with `href` attributes.
        (_, _, "href") => Some(LinkKind::Reference),
        // NCX, SMIL, browserconfig.xml.
        (_, _, "src") => Some(LinkKind::Embed),
        _ => None,
    }
}

/// Whether elements with this name hold a URL if it is their only content: Dublin Core, MODS, KML, XSPF, OpenSearch.
pub(super) fn names_a_url(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "identifier",
        "relation",
        "source",
        "url",
        "href",
        "link",
        "guid",
        "loc",
        "location",
        "image",
        "Image",
        "icon",
        "logo",
        "uri",
        "SearchForm",
        "license",
    ];
    NAMES.contains(&name)
}

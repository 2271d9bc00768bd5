//! What an office file says of itself: title, authors, dates, language (Dublin Core and its relatives).

use super::document::OfficeDocument;
use super::markup::{Piece, attribute, walk};
use crate::parse::dates::parse_date;

/// Properties that a mere date may stand for.
pub(super) const CREATED: &str = "created";
pub(super) const MODIFIED: &str = "modified";

/// Takes what an XML part with properties says: `docProps/core.xml` of Office Open XML, `meta.xml` of OpenDocument, or the package
/// document of an EPUB. `date` is the property that a mere date stands for.
pub(super) fn read(xml: &str, date: &str, document: &mut OfficeDocument) {
    let (mut name, mut text) = (String::new(), String::new());
    let mut maker = String::new();
    walk(xml, |piece| {
        match piece {
            Piece::Start("manifest" | "spine" | "document-statistic", _) => return false,
            Piece::Start(element, attributes) => {
                // An EPUB names some of its properties in an attribute.
                name = match attribute(attributes, "property") {
                    Some(property) => property.into_owned(),
                    None => element.to_owned(),
                };
                text.clear();
            }
            Piece::Text(piece) => text.push_str(&piece),
            Piece::End(_) => {
                let said = if name == "date" { date } else { &name };
                take(said, text.trim(), document, &mut maker);
                name.clear();
                text.clear();
            }
        }
        true
    });
    if document.author.is_empty() {
        document.author = maker;
    }
}

fn take(name: &str, text: &str, document: &mut OfficeDocument, maker: &mut String) {
    if text.is_empty() {
        return;
    }
    let first = |known: &mut String| {
        if known.is_empty() {
            text.clone_into(known);
        }
    };
    match name {
        "title" => first(&mut document.title),
        "initial-creator" => first(maker),
        "creator" => OfficeDocument::add_to(&mut document.author, text),
        "language" => first(&mut document.language),
        "description" => first(&mut document.description),
        "subject" | "keywords" | "keyword" => OfficeDocument::add_to(&mut document.keywords, text),
        CREATED | "creation-date" => document.published = document.published.or_else(|| parse_date(text)),
        MODIFIED | "dcterms:modified" => document.revised = document.revised.or_else(|| parse_date(text)),
        _ => {}
    }
}

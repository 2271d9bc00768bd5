//! Document-level properties of an XML document: its root and document type.

use super::super::ParseLimits;
use super::super::html::decode_entities;
use super::doctype::Doctype;
use super::entities::Plain;
use super::pieces::{XmlPiece, XmlPieces};

/// Maximum bytes kept of a name, namespace or identifier.
const BYTES_MAX: usize = 512;

/// Document-level properties of an XML document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Name of the root element, without prefix.
    pub root: String,
    /// Namespace of the root element; empty if it has none.
    pub namespace: String,
    /// Name of the document type and, after a space, its public identifier; empty without a document type.
    pub doctype: String,
    /// Whether the document was well-formed when it was read; none if it was not completely read.
    pub is_well_formed: Option<bool>,
}

/// Returns the structure of a document, from its text up to the first tag; none if it has no tag.
pub(super) fn structure(text: &str, doctype: &Doctype<'_>, limits: &ParseLimits) -> Option<Structure> {
    let body = &text[doctype.range.end..];
    let mut before = 0;
    let tag = XmlPieces::of(body).find_map(|piece| match piece {
        XmlPiece::Start(tag) => Some(tag),
        XmlPiece::Text(other) | XmlPiece::Cdata(other) | XmlPiece::Opaque(other) | XmlPiece::End(other) => {
            before += other.len();
            None
        }
    })?;
    // The namespace may be written as an entity.
    let head = &text[..doctype.range.end + before + tag.written.len()];
    let plain = Plain::of(head, doctype, limits).ok()?;
    let tag = XmlPieces::of(&plain.text).find_map(|piece| match piece {
        XmlPiece::Start(tag) => Some(tag),
        _ => None,
    })?;
    let (declaration, root) = match tag.name().split_once(':') {
        Some((prefix, root)) => (format!("xmlns:{prefix}"), root),
        None => ("xmlns".to_owned(), tag.name()),
    };
    let namespace = tag.attributes().find(|(name, _)| *name == declaration);
    let namespace = namespace.map(|(_, value)| decode_entities(value).into_owned()).unwrap_or_default();
    let doctype = match doctype.public {
        Some(public) => {
            format!("{} {}", doctype.name, public.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        None => doctype.name.to_owned(),
    };
    Some(Structure {
        root: cut(root),
        namespace: cut(&namespace),
        doctype: cut(&doctype),
        is_well_formed: None,
    })
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(BYTES_MAX)].chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<[String; 3]> {
        let structure = structure(text, &Doctype::of(text), &ParseLimits::default())?;
        Some([structure.root, structure.namespace, structure.doctype])
    }

    #[test]
    fn root_and_document_type() {
        for (text, expected) in [
            ("<?xml version='1.0'?><!-- <b> --><a/>", ["a", "", ""]),
            ("<p:a xmlns='m' xmlns:p='n&amp;o'><b/>", ["a", "n&o", ""]),
            ("<!DOCTYPE a SYSTEM 'a.dtd'><a xmlns='n'>", ["a", "n", "a"]),
            (
                "<!DOCTYPE b PUBLIC '-//X//DTD\n B//EN' 'b.dtd' [<!ENTITY n 'u'>]><b xmlns='&n;'/>",
                ["b", "u", "b -//X//DTD B//EN"],
            ),
            ("<p:a>", ["a", "", ""]),
        ] {
            assert_eq!(of(text), Some(expected.map(str::to_owned)), "{text}");
        }
        assert_eq!(of("<!-- nothing -->"), None);
        let long = "n".repeat(BYTES_MAX);
        assert_eq!(of(&format!("<{long}/>")).map(|[root, ..]| root), Some(long.clone()));
        assert_eq!(of(&format!("<{long}x/>")).map(|[root, ..]| root), Some(long));
    }
}

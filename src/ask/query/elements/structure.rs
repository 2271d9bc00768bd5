//! Fields of whole XML documents.

use archive_web::parse::{DocumentKind, Structure, Validity, is_definition};

use crate::query::language::{Column, Value, yes_no};

/// A field of an XML document's structure.
pub(crate) fn value(structure: &Structure, column: Column) -> Value {
    let text = |text: &str| Some(text).filter(|text| !text.is_empty()).into();
    match column {
        Column::Root => text(&structure.root),
        Column::Namespace => text(&structure.namespace),
        Column::Doctype => text(&structure.doctype),
        Column::WellFormed => structure.is_well_formed.map(yes_no).into(),
        _ => Value::Empty,
    }
}

/// Like `value`, and also the validity; `None` if the document has to be read for that.
pub(crate) fn known_value(structure: &Structure, column: Column) -> Option<Value> {
    if column != Column::Valid {
        return Some(value(structure, column));
    }
    // Without a document type there is nothing to validate against.
    let is_unknown = structure.doctype.is_empty() && structure.is_well_formed == Some(true);
    is_unknown.then(|| Validity::Unknown.name().into())
}

/// Whether a document can be XML, going by its content type or its kind.
pub(crate) fn can_be_xml(content_type: &str, kind: Option<DocumentKind>) -> bool {
    let is_xml = content_type.ends_with("xml") || kind.is_some_and(DocumentKind::is_xml);
    is_xml && !is_definition(content_type)
}

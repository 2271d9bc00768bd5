//! Elements and attributes of XML documents: paths to them, and conditions on their content.
//!
//! The text of an element consists of all text nodes in it, with white space collapsed to single spaces; so its words
//! are those that the index knows (`search/elements`).

use std::borrow::Cow;
use std::cell::Cell;

use archive_web::parse::{NAMESPACES, parse_date};
use roxmltree::{Attribute, Document, Node};

use crate::query::language::{
    Content, ElementPath, ElementStep, Filter, Found, Instant, RowsError, Subject, Value,
};

/// Maximum number of nodes that paths may visit in one document.
pub const NODES_LOOKED_AT_MAX: u64 = 50_000_000;

/// The separator between the texts of several elements.
const BETWEEN: &str = " | ";

/// Maximum number of bytes of the texts that a path selects in one document; further texts are left out.
const TEXTS_BYTES_MAX: usize = 1 << 20;

/// Whether a node with this name may be what a step selects.
fn fits(step: &ElementStep, name: &str, namespace: Option<&str>, node: Node<'_, '_>) -> bool {
    step.name.as_deref().is_none_or(|wanted| wanted == name)
        && step.prefix.as_deref().is_none_or(|prefix| {
            let known = NAMESPACES.iter().find(|(known, _)| *known == prefix).map(|(_, uri)| *uri);
            namespace.is_some()
                && (namespace == known || namespace == node.lookup_namespace_uri(Some(prefix)))
        })
}

/// A node that a path selects.
#[derive(Clone, Copy)]
enum XmlPlace<'a, 'i> {
    Element(Node<'a, 'i>),
    Attribute(Attribute<'a, 'i>),
    /// Just a text of an element or attribute.
    Text(&'a str),
}

impl<'a> XmlPlace<'a, '_> {
    fn text(&self) -> Cow<'a, str> {
        match self {
            Self::Attribute(attribute) => Cow::Borrowed(attribute.value()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Element(node) => {
                let texts = node.descendants().filter(Node::is_text).filter_map(|text| text.text());
                Cow::Owned(texts.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// An element or attribute that a condition is evaluated on.
pub(crate) struct PlaceSubject<'a, 'i> {
    place: XmlPlace<'a, 'i>,
    looked_at: &'a Cell<u64>,
}

impl<'a, 'i> PlaceSubject<'a, 'i> {
    /// Passes each node that `path` selects from here to `visit`, until that returns true. Returns whether it did.
    fn each(&self, path: &ElementPath, visit: &mut dyn FnMut(&Self) -> Found<bool>) -> Found<bool> {
        let mut places = vec![self.place];
        for (index, step) in path.steps.iter().enumerate() {
            let is_last = index + 1 == path.steps.len();
            let mut found = Vec::new();
            let mut covered = 0;
            for place in &places {
                let XmlPlace::Element(node) = *place else { continue };
                // Descendants of a nested element were already found from the enclosing one.
                if step.is_deep && node.range().end <= covered {
                    continue;
                }
                covered = node.range().end;
                for place in self.below(node, step)? {
                    let subject = PlaceSubject { place, looked_at: self.looked_at };
                    if !all_hold(&step.filters, &subject)? {
                        continue;
                    }
                    if is_last {
                        if visit(&subject)? {
                            return Ok(true);
                        }
                    } else {
                        found.push(place);
                    }
                }
            }
            if !is_last {
                // Children of nested elements are not in document order.
                found.sort_by_key(|place| match place {
                    XmlPlace::Element(node) => node.id().get(),
                    XmlPlace::Attribute(_) | XmlPlace::Text(_) => 0,
                });
            }
            places = found;
        }
        if path.steps.is_empty() { visit(self) } else { Ok(false) }
    }

    /// The nodes that a step selects from an element, regardless of its conditions.
    fn below(&self, node: Node<'a, 'i>, step: &ElementStep) -> Found<Vec<XmlPlace<'a, 'i>>> {
        let mut found = Vec::new();
        let look = |node: Node<'a, 'i>, found: &mut Vec<_>| {
            self.looked_at.set(self.looked_at.get() + 1);
            if self.looked_at.get() > NODES_LOOKED_AT_MAX {
                let message = format!(
                    "the paths of the query look at more than {NODES_LOOKED_AT_MAX} nodes of one document"
                );
                return Err(RowsError::from(message));
            }
            if step.is_attribute {
                let attributes = node.attributes();
                let fits = attributes.filter(|it| fits(step, it.name(), it.namespace(), node));
                found.extend(fits.map(XmlPlace::Attribute));
            } else if node.is_element() {
                let name = node.tag_name();
                if fits(step, name.name(), name.namespace(), node) {
                    found.push(XmlPlace::Element(node));
                }
            }
            Ok(())
        };
        match (step.is_deep, step.is_attribute) {
            (false, true) => look(node, &mut found)?,
            (false, false) => node.children().try_for_each(|child| look(child, &mut found))?,
            (true, is_attribute) => {
                node.descendants()
                    .skip(usize::from(!is_attribute))
                    .try_for_each(|it| look(it, &mut found))?;
            }
        }
        Ok(found)
    }
}

fn all_hold(filters: &[Filter], subject: &dyn Subject) -> Found<bool> {
    for filter in filters {
        if !filter.holds(subject)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a path selects a node in a document that passes `filter`.
pub(crate) fn has(tree: &Document<'_>, path: &ElementPath, filter: Option<&Filter>) -> Found<bool> {
    let looked_at = Cell::new(0);
    let root = PlaceSubject { place: XmlPlace::Element(tree.root()), looked_at: &looked_at };
    root.some(path, filter)
}

/// Whether a filter on the content of a node holds for this text.
pub(crate) fn holds_of_text(filter: &Filter, text: &str) -> Found<bool> {
    filter.holds(&PlaceSubject { place: XmlPlace::Text(text), looked_at: &Cell::new(0) })
}

/// The joined texts of all nodes that a path selects in a document.
pub(crate) fn texts(tree: &Document<'_>, path: &ElementPath) -> Found<Value> {
    let looked_at = Cell::new(0);
    let root = PlaceSubject { place: XmlPlace::Element(tree.root()), looked_at: &looked_at };
    let mut texts: Option<String> = None;
    root.each(path, &mut |subject| {
        let text = subject.place.text();
        match &mut texts {
            None => texts = Some(text.into_owned()),
            Some(texts) => texts.extend([BETWEEN, &text]),
        }
        Ok(texts.as_ref().is_some_and(|texts| texts.len() > TEXTS_BYTES_MAX))
    })?;
    Ok(texts.map_or(Value::Empty, Value::Text))
}

impl Subject for PlaceSubject<'_, '_> {
    fn some(&self, path: &ElementPath, filter: Option<&Filter>) -> Found<bool> {
        self.each(path, &mut |subject| filter.map_or(Ok(true), |filter| filter.holds(subject)))
    }

    fn content(&self, sort: Content) -> Value {
        let text = self.place.text();
        match sort {
            Content::Text => Value::Text(text.into_owned()),
            Content::Number => text.trim().parse().map_or(Value::Empty, Value::Number),
            Content::Time => parse_date(text.trim())
                .and_then(|seconds| Instant::from_timestamp(seconds, 0))
                .map_or(Value::Empty, Value::Time),
        }
    }
}

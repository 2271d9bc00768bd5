//! Traverses a tree without recursion; helpers for elements.

use std::borrow::Cow;

use roxmltree::Node;

use super::super::html::TextBuilder;

pub(super) const XLINK: &str = "http://www.w3.org/1999/xlink";
pub(super) const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";
pub(super) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(super) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
pub(super) const XSL: &str = "http://www.w3.org/1999/XSL/Transform";
pub(super) const XSD: &str = "http://www.w3.org/2001/XMLSchema";
pub(super) const XHTML: &str = "http://www.w3.org/1999/xhtml";
pub(super) const SVG: &str = "http://www.w3.org/2000/svg";
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// A node on the way down or up.
#[derive(Clone, Copy, Debug)]
pub(super) enum WalkStep<'a, 'i> {
    Enter(Node<'a, 'i>),
    Leave(Node<'a, 'i>),
}

/// Visits every node of a tree twice, before and after its children. On `Enter`, `visit` may return false to skip the
/// children.
pub(super) fn walk<'a, 'i>(root: Node<'a, 'i>, mut visit: impl FnMut(WalkStep<'a, 'i>) -> bool) {
    let mut node = root;
    loop {
        let goes_in = visit(WalkStep::Enter(node));
        if goes_in && let Some(child) = node.first_child() {
            node = child;
            continue;
        }
        loop {
            visit(WalkStep::Leave(node));
            if node == root {
                return;
            }
            if let Some(sibling) = node.next_sibling() {
                node = sibling;
                break;
            }
            let Some(parent) = node.parent() else { return };
            node = parent;
        }
    }
}

/// Returns all text inside an element, on one line. Borrowed if the element holds only a single plain text.
pub(super) fn text_of<'a>(node: Node<'a, '_>) -> Cow<'a, str> {
    let only = node.first_child().filter(|child| child.next_sibling().is_none() && child.is_text());
    if let Some(text) = only.and_then(|child| child.text()) {
        let trimmed = text.trim();
        let is_in_one_line = trimmed
            .bytes()
            .zip(trimmed.bytes().skip(1))
            .all(|pair| !matches!(pair, (b' ', b' ') | (b'\n' | b'\t' | b'\r', _)));
        if is_in_one_line {
            return Cow::Borrowed(trimmed);
        }
    }
    let mut builder = TextBuilder::with_capacity(0);
    walk(node, |step| {
        if let WalkStep::Enter(inner) = step
            && inner.is_text()
        {
            builder.push(inner.text().unwrap_or_default());
        }
        !matches!(step, WalkStep::Enter(inner) if is_code(inner))
    });
    Cow::Owned(builder.finish().0)
}

/// Whether an element holds a script or style sheet, which is not text for readers.
pub(super) fn is_code(node: Node<'_, '_>) -> bool {
    let name = node.tag_name();
    matches!(name.name(), "script" | "style") && matches!(name.namespace(), Some(XHTML | SVG))
}

/// Returns the text of an element that holds nothing else, if it is a URL.
pub(super) fn url_in<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    let only = node.first_child().filter(|child| child.is_text() && child.next_sibling().is_none())?;
    let text = only.text()?.trim();
    is_url(text).then_some(text)
}

/// Whether a text is an absolute URL and nothing else.
pub(super) fn is_url(text: &str) -> bool {
    let after = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    after.is_some_and(|after| !after.is_empty()) && !text.contains(char::is_whitespace)
}

/// Returns the children with this name, in any namespace.
pub(super) fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// Returns the first child with this name, in any namespace.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;

    #[test]
    fn every_node_is_entered_and_left() {
        let document = Document::parse("<a>x<b><c/></b><!-- y --></a>").unwrap();
        let mut depth = 0_i32;
        let mut deepest = 0;
        let mut nodes = 0;
        walk(document.root(), |step| {
            match step {
                WalkStep::Enter(_) => {
                    depth += 1;
                    nodes += 1;
                }
                WalkStep::Leave(_) => depth -= 1,
            }
            deepest = deepest.max(depth);
            true
        });
        assert_eq!((depth, deepest, nodes), (0, 4, document.descendants().count()));
    }
}

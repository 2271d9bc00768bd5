//! Estimates the cost of parsing a document, to decide whether it is too high.
//!
//! Three of the parser's operations grow faster than the document: it compares every attribute of an element with those
//! before it, copies the namespaces in scope for every element that declares one, and searches them linearly for
//! prefixes. The limits keep the total linear. Costs are counted on the pieces of the document, which no longer has a
//! document type declaration; without one, the pieces are what the parser sees.

use super::super::ParseLimits;
use super::pieces::{XmlPiece, XmlPieces};

/// Maximum number of attributes of an element.
const ATTRIBUTES_MAX: usize = 256;

/// Maximum bytes of a namespace name, which is compared with others and signed for every element and attribute in it.
const NAMESPACE_BYTES_MAX: usize = 512;

/// Maximum number of namespace declarations in scope.
const NAMESPACES_MAX: usize = 256;

/// Maximum number of copies of namespaces in scope; each takes two bytes.
const COPIES_MAX: usize = 8_000_000;

/// Maximum number of comparisons with namespaces in scope; these take some tenths of a second.
const LOOKUPS_MAX: usize = 200_000_000;

/// Maximum number of `=` in a document: before parsing, the parser reserves 72 bytes for each, as for an attribute.
const EQUALS_SIGNS_MAX: usize = 2_000_000;

/// Whether a document without a document type is within the limits; if not, what was exceeded, to be read after "too".
pub(super) fn check(text: &str, limits: &ParseLimits) -> Result<(), &'static str> {
    // The parser also reserves memory for nodes in advance; an element has two tags.
    if count(b'<', text) / 2 > limits.xml_nodes_max as usize {
        return Err(MANY_NODES);
    }
    if count(b'=', text) > EQUALS_SIGNS_MAX {
        return Err("many attributes");
    }
    let mut scope = NamespaceScope::default();
    for piece in XmlPieces::of(text) {
        match piece {
            XmlPiece::Start(tag) => {
                let (attributes, namespaces) = count_attributes(tag.attributes())?;
                scope.enter(attributes, namespaces)?;
                if !tag.is_empty() && scope.open.len() > limits.xml_depth_max {
                    return Err("deep");
                }
                if tag.is_empty() {
                    scope.leave();
                }
            }
            XmlPiece::End(_) => scope.leave(),
            XmlPiece::Text(_) | XmlPiece::Cdata(_) | XmlPiece::Opaque(_) => {}
        }
    }
    Ok(())
}

/// There are too many nodes.
pub(super) const MANY_NODES: &str = "many nodes";

fn count(byte: u8, text: &str) -> usize {
    memchr::memchr_iter(byte, text.as_bytes()).count()
}

/// Returns the number of attributes of an element, and how many of them declare a namespace.
fn count_attributes<'a>(
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(usize, usize), &'static str> {
    let (mut count, mut namespaces) = (0, 0);
    for (name, value) in attributes {
        count += 1;
        if name == "xmlns" || name.starts_with("xmlns:") {
            namespaces += 1;
            if value.len() > NAMESPACE_BYTES_MAX {
                return Err("long namespaces");
            }
        }
        if count > ATTRIBUTES_MAX {
            return Err("many attributes");
        }
    }
    Ok((count, namespaces))
}

/// Namespaces in scope, and the cost so far.
#[derive(Default)]
struct NamespaceScope {
    /// Number of declarations of each open element.
    open: Vec<usize>,
    count: usize,
    copies: usize,
    lookups: usize,
}

impl NamespaceScope {
    fn enter(&mut self, attributes: usize, namespaces: usize) -> Result<(), &'static str> {
        self.open.push(namespaces);
        self.count += namespaces;
        self.copies += if namespaces > 0 { self.count } else { 0 };
        self.lookups += (1 + attributes) * self.count;
        let is_within =
            self.count <= NAMESPACES_MAX && self.copies <= COPIES_MAX && self.lookups <= LOOKUPS_MAX;
        is_within.then_some(()).ok_or("many namespaces")
    }

    fn leave(&mut self) {
        self.count -= self.open.pop().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<(), &'static str> {
        check(text, &ParseLimits::default())
    }

    fn attributes(count: usize, name: &str) -> String {
        (0..count).map(|n| format!(" {name}{n}='x'")).collect()
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_above() {
        let depth = ParseLimits::default().xml_depth_max;
        assert_eq!(check_text(&"<a>".repeat(depth)), Ok(()));
        assert_eq!(check_text(&"<a>".repeat(depth + 1)), Err("deep"));
        assert_eq!(check_text(&"<a></a>".repeat(depth + 1)), Ok(()));

        let element = |count| format!("<a{}/>", attributes(count, "b"));
        assert_eq!(check_text(&element(ATTRIBUTES_MAX)), Ok(()));
        assert_eq!(check_text(&element(ATTRIBUTES_MAX + 1)), Err("many attributes"));
        assert_eq!(check_text(&"=".repeat(EQUALS_SIGNS_MAX)), Ok(()));
        assert_eq!(check_text(&"=".repeat(EQUALS_SIGNS_MAX + 1)), Err("many attributes"));

        let nest = |count| format!("<a{}><b xmlns=''>", attributes(count, "xmlns:n"));
        assert_eq!(check_text(&nest(NAMESPACES_MAX - 1)), Ok(()));
        assert_eq!(check_text(&nest(NAMESPACES_MAX)), Err("many namespaces"));
        let long = |bytes| format!("<a xmlns='{}'/>", "n".repeat(bytes));
        assert_eq!(check_text(&long(NAMESPACE_BYTES_MAX)), Ok(()));
        assert_eq!(check_text(&long(NAMESPACE_BYTES_MAX + 1)), Err("long namespaces"));

        let few = ParseLimits { xml_nodes_max: 10, ..ParseLimits::default() };
        assert_eq!(check(&"<a></a>".repeat(10), &few), Ok(()));
        assert_eq!(check(&"<a></a>".repeat(11), &few), Err(MANY_NODES));
    }

    #[test]
    fn what_many_elements_cost_together_is_limited() {
        let scope = attributes(NAMESPACES_MAX - 1, "xmlns:n");
        let copies = |count| format!("<a{scope}>{}</a>", "<b xmlns='c'/>".repeat(count));
        let most = (COPIES_MAX - (NAMESPACES_MAX - 1)) / NAMESPACES_MAX;
        assert_eq!(check_text(&copies(most)), Ok(()));
        assert_eq!(check_text(&copies(most + 1)), Err("many namespaces"));
        let lookups = |count| format!("<a{scope}>{}</a>", "<b/>".repeat(count));
        let most = (LOOKUPS_MAX - NAMESPACES_MAX * (NAMESPACES_MAX - 1)) / (NAMESPACES_MAX - 1);
        assert_eq!(check_text(&lookups(most)), Ok(()));
        assert_eq!(check_text(&lookups(most + 1)), Err("many namespaces"));
    }
}

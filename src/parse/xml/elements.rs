//! Which elements and attributes an XML tree has, and what stands in those of each name.

use std::collections::HashMap;

use roxmltree::{Document, Node};

/// Names of one document that are told apart.
pub const ELEMENT_NAMES_MAX: usize = 4096;

/// The elements of one name, or the attributes of one name, of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// The name without prefix; that of an attribute begins with `@`.
    pub name: String,
    /// What stands in them themselves, a line each.
    pub text: String,
    /// Whether elements stand inside of one.
    pub nest: bool,
}

/// The elements of a document by name, while they are gathered.
#[derive(Default)]
struct Gathered<'a> {
    all: Vec<Elements>,
    /// Places of names: whether it is that of an attribute, and the name.
    places: HashMap<(bool, &'a str), usize>,
    text_bytes: usize,
}

impl<'a> Gathered<'a> {
    fn of(&mut self, is_attribute: bool, name: &'a str) -> &mut Elements {
        let place = *self.places.entry((is_attribute, name)).or_insert_with(|| {
            let name = if is_attribute { format!("@{name}") } else { name.to_owned() };
            self.all.push(Elements { name, ..Elements::default() });
            self.all.len() - 1
        });
        &mut self.all[place]
    }

    fn add(&mut self, node: Node<'a, '_>) {
        let elements = self.of(false, node.tag_name().name());
        let before = elements.text.len();
        for child in node.children() {
            elements.nest |= child.is_element();
            if let Some(text) = child.text().filter(|_| child.is_text()) {
                elements.text.push_str(text.trim());
                elements.text.push('\n');
            }
        }
        self.text_bytes += elements.text.len() - before;
        for attribute in node.attributes() {
            let elements = self.of(true, attribute.name());
            elements.text.push_str(attribute.value());
            elements.text.push('\n');
            self.text_bytes += attribute.value().len();
        }
    }
}

/// The elements of a tree by name; none when they have more text than `text_bytes_max`, or more names than
/// [`ELEMENT_NAMES_MAX`].
pub(super) fn elements(tree: &Document<'_>, text_bytes_max: usize) -> Option<Vec<Elements>> {
    let mut gathered = Gathered::default();
    for node in tree.descendants().filter(Node::is_element) {
        gathered.add(node);
        if gathered.text_bytes > text_bytes_max || gathered.all.len() > ELEMENT_NAMES_MAX {
            return None;
        }
    }
    Some(gathered.all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(xml: &str) -> Option<Vec<(String, String, bool)>> {
        let tree = Document::parse(xml).unwrap();
        let all = elements(&tree, 20)?;
        Some(all.into_iter().map(|one| (one.name, one.text.replace('\n', "|"), one.nest)).collect())
    }

    #[test]
    fn elements_are_put_together_by_name() {
        let all = of("<a id='1'>x<b> y <c/></b><d:b xmlns:d='n' d:id='2'>z</d:b></a>").unwrap();
        let expected = [("a", "x|", true), ("@id", "1|2|", false), ("b", "y|z|", true), ("c", "", false)];
        let expected = expected.map(|(name, text, nest)| (name.to_owned(), text.to_owned(), nest));
        assert_eq!(all, expected);
    }

    #[test]
    fn a_document_with_too_much_is_not_told_apart() {
        assert!(of(&format!("<a>{}</a>", "x".repeat(19))).is_some());
        assert!(of(&format!("<a>{}</a>", "x".repeat(20))).is_none());
        let names = |count: usize| (1..count).map(|name| format!("<n{name}/>")).collect::<String>();
        assert!(of(&format!("<a>{}</a>", names(ELEMENT_NAMES_MAX))).is_some());
        assert!(of(&format!("<a>{}</a>", names(ELEMENT_NAMES_MAX + 1))).is_none());
    }
}

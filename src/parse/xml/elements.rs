//! Which elements and attributes an XML tree has, and their texts by name.

use std::borrow::Cow;
use std::collections::HashMap;

use roxmltree::{Document, Node};

/// Different names in one document.
pub const ELEMENT_NAMES_MAX: usize = 4096;

/// Bytes of a text that is kept as a whole.
pub const WHOLE_BYTES_MAX: usize = 64;

/// The elements of one name, or the attributes of one name, of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// The name without prefix; that of an attribute begins with `@`, and that of the attributes of elements of one name with the
    /// name of these: `book@year`.
    pub name: String,
    /// Their own texts, a line each; nothing of the attributes of elements of one name.
    pub text: String,
    /// Whether elements stand inside of one.
    pub nest: bool,
    /// Their texts as conditions compare them, in small letters, but for those in which elements stand and those of more than
    /// [`WHOLE_BYTES_MAX`].
    pub wholes: Vec<String>,
}

impl Elements {
    /// Many texts repeat that of the element before.
    fn add_whole(&mut self, whole: &str) {
        if self.wholes.last().is_none_or(|last| last != whole) {
            self.wholes.push(whole.to_owned());
        }
    }
}

/// A text with one space between its words; none of one that is long.
fn joined(text: &str) -> Option<String> {
    let mut joined = String::new();
    for word in text.split_whitespace() {
        joined.push_str(if joined.is_empty() { "" } else { " " });
        joined.push_str(word);
        if joined.len() > SHRINKS * WHOLE_BYTES_MAX {
            return None;
        }
    }
    Some(joined)
}

/// A text in small letters; none of one that is long then.
fn short(text: &str) -> Option<Cow<'_, str>> {
    if text.len() > SHRINKS * WHOLE_BYTES_MAX {
        return None;
    }
    let is_small = text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let small = if is_small { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) };
    (small.len() <= WHOLE_BYTES_MAX).then_some(small)
}

/// How many times shorter a text may be in small letters: the sign of kelvin becomes a `k`.
const SHRINKS: usize = 3;

/// The elements of a document by name, while they are gathered.
#[derive(Default)]
struct Gathered<'a> {
    all: Vec<Elements>,
    /// Places of names: of elements, of attributes, of attributes of elements.
    places: HashMap<(Option<&'a str>, Option<&'a str>), usize>,
    text_bytes: usize,
}

impl<'a> Gathered<'a> {
    fn of(&mut self, element: Option<&'a str>, attribute: Option<&'a str>) -> &mut Elements {
        let place = *self.places.entry((element, attribute)).or_insert_with(|| {
            let mut name = element.unwrap_or_default().to_owned();
            if let Some(attribute) = attribute {
                name.extend(["@", attribute]);
            }
            self.all.push(Elements { name, ..Elements::default() });
            self.all.len() - 1
        });
        &mut self.all[place]
    }

    fn add(&mut self, node: Node<'a, '_>) {
        let name = node.tag_name().name();
        let elements = self.of(Some(name), None);
        let before = elements.text.len();
        let mut has_elements = false;
        for child in node.children() {
            has_elements |= child.is_element();
            if let Some(text) = child.text().filter(|_| child.is_text()) {
                elements.text.push_str(text.trim());
                elements.text.push('\n');
            }
        }
        elements.nest |= has_elements;
        let bytes = elements.text.len() - before;
        if !has_elements && let Some(whole) = joined(&elements.text[before..]).as_deref().and_then(short) {
            elements.add_whole(&whole);
        }
        self.text_bytes += bytes;
        for attribute in node.attributes() {
            let value = attribute.value();
            let all = self.of(None, Some(attribute.name()));
            all.text.push_str(value);
            all.text.push('\n');
            let whole = short(value);
            whole.iter().for_each(|whole| all.add_whole(whole));
            let own = self.of(Some(name), Some(attribute.name()));
            whole.iter().for_each(|whole| own.add_whole(whole));
            self.text_bytes += value.len();
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

    fn of(xml: &str) -> Option<Vec<(String, String, bool, String)>> {
        let tree = Document::parse(xml).unwrap();
        let all = elements(&tree, 20)?;
        let each = |one: Elements| (one.name, one.text.replace('\n', "|"), one.nest, one.wholes.join("|"));
        Some(all.into_iter().map(each).collect())
    }

    #[test]
    fn elements_are_put_together_by_name() {
        let all = of("<a id='1'>x<b> y <c/></b><d:b xmlns:d='n' d:id='2'>z</d:b></a>").unwrap();
        let expected = [
            ("a", "x|", true, ""),
            ("@id", "1|2|", false, "1|2"),
            ("a@id", "", false, "1"),
            ("b", "y|z|", true, "z"),
            ("c", "", false, ""),
            ("b@id", "", false, "2"),
        ];
        let expected = expected
            .map(|(name, text, nest, wholes)| (name.to_owned(), text.to_owned(), nest, wholes.to_owned()));
        assert_eq!(all, expected);
    }

    #[test]
    fn short_texts_are_kept_as_a_whole() {
        let wholes = |bytes: usize| {
            let text = "X\u{212A}".repeat(bytes / 2) + &"x".repeat(bytes % 2);
            let xml = format!("<a b='{text}'><c> {text}\n</c></a>");
            let all = elements(&Document::parse(&xml).unwrap(), 1000).unwrap();
            all.into_iter().map(|one| one.wholes.len()).collect::<Vec<_>>()
        };
        assert_eq!(wholes(WHOLE_BYTES_MAX), [0, 1, 1, 1]);
        assert_eq!(wholes(WHOLE_BYTES_MAX + 1), [0, 0, 0, 0]);
    }

    #[test]
    fn a_document_with_too_much_has_no_elements() {
        assert!(of(&format!("<a>{}</a>", "x".repeat(19))).is_some());
        assert!(of(&format!("<a>{}</a>", "x".repeat(20))).is_none());
        let names = |count: usize| (1..count).map(|name| format!("<n{name}/>")).collect::<String>();
        assert!(of(&format!("<a>{}</a>", names(ELEMENT_NAMES_MAX))).is_some());
        assert!(of(&format!("<a>{}</a>", names(ELEMENT_NAMES_MAX + 1))).is_none());
    }
}

//! Collects the elements and attributes of an XML tree, with their texts, by name.

use std::borrow::Cow;
use std::collections::HashMap;

use roxmltree::{Document, Node};

use super::walk::{WalkStep, walk};

/// Maximum number of distinct names in a document: see [`Elements::name`].
pub const ELEMENT_NAMES_MAX: usize = 8192;

/// Maximum bytes of a text that is kept whole.
pub const WHOLE_BYTES_MAX: usize = 64;

/// Maximum bytes of an element's text for which the words of marked-up parts count as the element's own.
const MARKED_BYTES_MAX: usize = 256;

/// The elements, or the attributes, of one name in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// The name without prefix; an attribute's begins with `@`. Attributes of elements of one name are listed again as
    /// `book@year`, and children of elements of one name as `book>title`.
    pub name: String,
    /// The elements' own texts, one per line, including those of marked-up parts; empty for names that are listed
    /// again. An element such as a title has marked-up parts if it has children, but no grandchildren.
    pub text: String,
    /// Whether some elements have children whose texts are not in `text`.
    pub nest: bool,
    /// Texts in the form that conditions compare, in lower case. Left out are texts longer than [`WHOLE_BYTES_MAX`],
    /// those of elements whose children's texts are not in `text`, and those of `book>title` if the parent also has
    /// text of its own. Each has the number of its element among all elements, or of the parent for `book>title`.
    pub wholes: Vec<(u32, String)>,
    /// Whether some text is missing from `wholes`.
    pub is_partial: bool,
}

impl Elements {
    fn add_whole(&mut self, number: u32, whole: Option<&str>) {
        match whole {
            Some(whole) => self.wholes.push((number, whole.to_owned())),
            None => self.is_partial = true,
        }
    }
}

/// Joins the words of a text by single spaces; returns none for a long text.
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

/// Returns a text in lower case; none if it is too long in lower case.
fn short(text: &str) -> Option<Cow<'_, str>> {
    if text.len() > SHRINKS * WHOLE_BYTES_MAX {
        return None;
    }
    let is_small = text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let small = if is_small { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) };
    (small.len() <= WHOLE_BYTES_MAX).then_some(small)
}

/// How many times shorter a text may become in lower case: the kelvin sign becomes a `k`.
const SHRINKS: usize = 3;

/// Name of an element, of an attribute, or of an attribute or child in an element of some name.
type IndexName<'a> = (Option<&'a str>, Option<(char, &'a str)>);

/// The elements of a document by name, while they are being collected.
#[derive(Default)]
struct ElementLists<'a> {
    all: Vec<Elements>,
    places: HashMap<IndexName<'a>, usize>,
    /// Enclosing elements: name, number, and whether there is text between their children.
    around: Vec<(&'a str, u32, bool)>,
    count: u32,
    text_bytes: usize,
}

impl<'a> ElementLists<'a> {
    fn of(&mut self, place: IndexName<'a>) -> &mut Elements {
        let index = *self.places.entry(place).or_insert_with(|| {
            let mut name = place.0.unwrap_or_default().to_owned();
            if let Some((sign, inner)) = place.1 {
                name.push(sign);
                name.push_str(inner);
            }
            self.all.push(Elements { name, ..Elements::default() });
            self.all.len() - 1
        });
        &mut self.all[index]
    }

    fn enter(&mut self, node: Node<'a, '_>) {
        let (name, number) = (node.tag_name().name(), self.count);
        self.count += 1;
        let elements = self.of((Some(name), None));
        let before = elements.text.len();
        let has_elements = node.children().any(|child| child.is_element());
        let is_marked = has_elements && add_marked(node, &mut elements.text);
        if !is_marked {
            node.children().for_each(|child| add_text(child, &mut elements.text));
            elements.nest |= has_elements;
        }
        let is_whole = is_marked || !has_elements;
        let whole = joined(&elements.text[before..]).filter(|_| is_whole);
        let whole = whole.as_deref().and_then(short);
        elements.add_whole(number, whole.as_deref());
        let bytes = elements.text.len() - before;
        self.text_bytes += bytes;
        if let Some((parent, around, is_text)) = self.around.last().copied() {
            let whole = whole.as_deref().filter(|_| !is_text);
            self.of((Some(parent), Some(('>', name)))).add_whole(around, whole);
        }
        for attribute in node.attributes() {
            let (value, inner) = (attribute.value(), Some(('@', attribute.name())));
            let whole = short(value);
            let all = self.of((None, inner));
            all.text.push_str(value);
            all.text.push('\n');
            all.add_whole(number, whole.as_deref());
            self.of((Some(name), inner)).add_whole(number, whole.as_deref());
            self.text_bytes += value.len();
        }
        let has_text =
            |child: Node<'_, '_>| child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty());
        self.around.push((name, number, node.children().any(has_text)));
    }
}

fn add_text(node: Node<'_, '_>, to: &mut String) {
    if let Some(text) = node.text().filter(|_| node.is_text()) {
        to.push_str(text.trim());
        to.push('\n');
    }
}

/// Adds the whole text of an element with marked-up parts if it is short; returns whether it did.
fn add_marked(node: Node<'_, '_>, to: &mut String) -> bool {
    let before = to.len();
    for child in node.children() {
        add_text(child, to);
        for inner in child.children() {
            add_text(inner, to);
            if inner.is_element() || to.len() - before > MARKED_BYTES_MAX {
                to.truncate(before);
                return false;
            }
        }
        if to.len() - before > MARKED_BYTES_MAX {
            to.truncate(before);
            return false;
        }
    }
    true
}

/// Returns the elements of a tree by name; none if they have more than `text_bytes_max` bytes of text, or more than
/// [`ELEMENT_NAMES_MAX`] names.
pub(super) fn elements(tree: &Document<'_>, text_bytes_max: usize) -> Option<Vec<Elements>> {
    let mut gathered = ElementLists::default();
    let mut is_within = true;
    walk(tree.root(), |step| {
        match step {
            WalkStep::Enter(node) if node.is_element() && is_within => {
                gathered.enter(node);
                is_within = gathered.text_bytes <= text_bytes_max && gathered.all.len() <= ELEMENT_NAMES_MAX;
            }
            WalkStep::Leave(node) if node.is_element() && is_within => {
                gathered.around.pop();
            }
            _ => {}
        }
        is_within
    });
    is_within.then_some(gathered.all)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Listed = (String, String, bool, bool, String);

    fn of(xml: &str) -> Option<Vec<Listed>> {
        let tree = Document::parse(xml).unwrap();
        let all = elements(&tree, 20)?;
        let each = |one: Elements| {
            let wholes: Vec<_> =
                one.wholes.iter().map(|(number, whole)| format!("{number} {whole}")).collect();
            (one.name, one.text.replace('\n', "|"), one.nest, one.is_partial, wholes.join("|"))
        };
        Some(all.into_iter().map(each).collect())
    }

    #[test]
    fn elements_are_put_together_by_name() {
        let all = of("<a id='1'>x<b> y <c/></b><d:b xmlns:d='n' d:id='2'>z</d:b></a>").unwrap();
        let expected = [
            ("a", "x|", true, true, ""),
            ("@id", "1|2|", false, false, "0 1|3 2"),
            ("a@id", "", false, false, "0 1"),
            ("b", "y|z|", false, false, "1 y|3 z"),
            ("a>b", "", false, true, ""),
            ("c", "", false, false, "2 "),
            ("b>c", "", false, true, ""),
            ("b@id", "", false, false, "3 2"),
        ];
        let expected = expected.map(|(name, text, nest, is_partial, wholes)| {
            (name.to_owned(), text.to_owned(), nest, is_partial, wholes.to_owned())
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn texts_of_marked_parts_are_those_of_what_is_around_them() {
        let title = |bytes: usize| format!("<r><t>x<b>{}</b></t></r>", "y".repeat(bytes));
        for (bytes, is_marked) in [(MARKED_BYTES_MAX - 3, true), (MARKED_BYTES_MAX - 2, false)] {
            let all = elements(&Document::parse(&title(bytes)).unwrap(), 1000).unwrap();
            let title = all.iter().find(|one| one.name == "t").unwrap();
            assert_eq!((title.nest, title.text.contains('y')), (!is_marked, is_marked), "{bytes}");
        }
        let all = of("<r> <t>A</t>\n<t>b</t></r>").unwrap();
        assert_eq!(all[2], ("r>t".to_owned(), String::new(), false, false, "0 a|0 b".to_owned()));
        let all = of("<t>A<b>c</b> b<i/></t>").unwrap();
        assert_eq!(all[0], ("t".to_owned(), "A|c|b|".to_owned(), false, false, "0 a c b".to_owned()));
    }

    #[test]
    fn short_texts_are_kept_as_a_whole() {
        let wholes = |bytes: usize| {
            let text = "X\u{212A}".repeat(bytes / 2) + &"x".repeat(bytes % 2);
            let xml = format!("<a b='{text}'><c> {text}\n</c></a>");
            let all = elements(&Document::parse(&xml).unwrap(), 1000).unwrap();
            all.into_iter().map(|one| one.wholes.len()).collect::<Vec<_>>()
        };
        assert_eq!(wholes(WHOLE_BYTES_MAX), [1, 1, 1, 1, 1]);
        assert_eq!(wholes(WHOLE_BYTES_MAX + 1), [0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_document_with_too_much_has_no_elements() {
        assert!(of(&format!("<a>{}</a>", "x".repeat(19))).is_some());
        assert!(of(&format!("<a>{}</a>", "x".repeat(20))).is_none());
        let names = |count: usize| (1..count).map(|name| format!("<n x{name}=''/>")).collect::<String>();
        // An attribute has two names: its own, and one with the name of its element.
        let names_max = ELEMENT_NAMES_MAX / 2;
        assert!(of(&format!("<n>{}</n>", names(names_max))).is_some());
        assert!(of(&format!("<n>{}</n>", names(names_max + 1))).is_none());
    }
}

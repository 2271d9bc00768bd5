//! Text and signature of an XML tree.
//!
//! The signature covers the infoset except parts without meaning: white space around text, comments, processing
//! instructions, the order of attributes, and prefixes. It also leaves out elements that record when the document was
//! generated (`lastBuildDate`, `responseDate`).

use roxmltree::{Document, Node};
use xxhash_rust::xxh3::Xxh3Default;

use super::super::html::TextBuilder;
use super::walk::{WalkStep, is_code, walk};

/// Elements that change at every fetch, each after its parent.
const VOLATILE: [(&str, &str); 7] = [
    ("channel", "lastBuildDate"),
    ("channel", "pubDate"),
    ("channel", "ttl"),
    ("feed", "updated"),
    ("OAI-PMH", "responseDate"),
    ("OAI-PMH", "request"),
    ("RDF", "date"),
];

/// Attributes that change at every fetch, each after its element.
const VOLATILE_ATTRIBUTES: [(&str, &str); 1] = [("resumptionToken", "expirationDate")];

/// Returns the signature of a tree.
pub(super) fn signature(document: &Document<'_>) -> u64 {
    let mut signer = TreeSigner { hash: Xxh3Default::new(), buffer: String::with_capacity(2 * FLUSH_BYTES) };
    walk(document.root(), |step| match step {
        WalkStep::Enter(node) if node.is_element() => {
            let counts = !is_volatile(node);
            if counts {
                signer.start(node);
            }
            counts
        }
        WalkStep::Enter(node) => {
            if node.is_text() {
                signer.text(node.text().unwrap_or_default());
            }
            true
        }
        WalkStep::Leave(node) => {
            if node.is_element() && !is_volatile(node) {
                signer.buffer.push('\u{3}');
            }
            signer.flush_if_full();
            true
        }
    });
    signer.hash.update(signer.buffer.as_bytes());
    signer.hash.digest()
}

fn is_volatile(node: Node<'_, '_>) -> bool {
    let name = node.tag_name().name();
    VOLATILE.iter().any(|(parent, child)| {
        *child == name && node.parent_element().is_some_and(|found| found.tag_name().name() == *parent)
    })
}

/// Bytes collected before they are hashed.
const FLUSH_BYTES: usize = 8192;

struct TreeSigner {
    hash: Xxh3Default,
    buffer: String,
}

impl TreeSigner {
    fn start(&mut self, node: Node<'_, '_>) {
        let name = node.tag_name();
        for part in ["\u{1}", name.namespace().unwrap_or_default(), "\u{2}", name.name()] {
            self.buffer.push_str(part);
        }
        if node.attributes().len() == 0 {
            return;
        }
        let mut attributes: Vec<_> = node
            .attributes()
            .filter(|found| !VOLATILE_ATTRIBUTES.contains(&(name.name(), found.name())))
            .map(|found| (found.namespace().unwrap_or_default(), found.name(), found.value()))
            .collect();
        attributes.sort_unstable();
        for (namespace, name, value) in attributes {
            for part in ["\u{4}", namespace, "\u{2}", name, "=", value] {
                self.buffer.push_str(part);
            }
        }
    }

    fn text(&mut self, text: &str) {
        for word in text.split_ascii_whitespace() {
            self.buffer.push(' ');
            self.buffer.push_str(word);
        }
    }

    fn flush_if_full(&mut self) {
        if self.buffer.len() >= FLUSH_BYTES {
            self.hash.update(self.buffer.as_bytes());
            self.buffer.clear();
        }
    }
}

/// Returns the text of a tree, with one line per element, except elements within text; and whether the text has all
/// words of all elements, in order: words end where elements do, and no text is code.
pub(super) fn text(document: &Document<'_>) -> (String, bool) {
    let mut builder = TextBuilder::with_capacity(document.input_text().len() / 2);
    // Whether a word may continue in the next text.
    let (mut is_inside, mut has_all) = (false, true);
    let is_between = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c.is_ascii_punctuation());
    walk(document.root(), |step| {
        let (WalkStep::Enter(node) | WalkStep::Leave(node)) = step;
        if node.is_element() {
            has_all &= !is_code(node);
            if !is_within_text(node) {
                builder.end_line();
                is_inside = false;
            }
        } else if let (WalkStep::Enter(_), true, Some(text)) = (step, node.is_text(), node.text()) {
            builder.push(text);
            has_all &= !is_inside || is_between(text.chars().next());
            is_inside = !is_between(text.chars().next_back());
        }
        !matches!(step, WalkStep::Enter(node) if is_code(node))
    });
    (builder.finish().0, has_all)
}

/// Whether there is text directly before or after an element.
fn is_within_text(node: Node<'_, '_>) -> bool {
    let has_words = |sibling: Option<Node<'_, '_>>| {
        sibling
            .filter(Node::is_text)
            .and_then(|found| found.text())
            .is_some_and(|text| !text.trim().is_empty())
    };
    has_words(node.prev_sibling()) || has_words(node.next_sibling())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(text: &str) -> u64 {
        signature(&Document::parse(text).unwrap())
    }

    #[test]
    fn form_does_not_count() {
        for (one, other) in [
            ("<a b='1' c='2'/>", "<a  c=\"2\" b='1'></a>"),
            ("<a><b/></a>", "<a>\n  <b/>\n</a>"),
            ("<a>x</a>", "<?pi?><a> x <!-- y --></a>"),
            ("<p:a xmlns:p='n'/>", "<a xmlns='n'/>"),
            ("<a>&#65;</a>", "<a><![CDATA[A]]></a>"),
            ("<feed><updated>1</updated></feed>", "<feed><updated>2</updated></feed>"),
            (
                "<resumptionToken expirationDate='1'>x</resumptionToken>",
                "<resumptionToken>x</resumptionToken>",
            ),
        ] {
            assert_eq!(sign(one), sign(other), "{one} {other}");
        }
    }

    #[test]
    fn meaning_counts() {
        for (one, other) in [
            ("<a b='1'/>", "<a b='2'/>"),
            ("<a><b/>x</a>", "<a>x<b/></a>"),
            ("<a><b/><c/></a>", "<a><b><c/></b></a>"),
            ("<a xmlns='n'/>", "<a/>"),
            ("<entry><updated>1</updated></entry>", "<entry><updated>2</updated></entry>"),
        ] {
            assert_ne!(sign(one), sign(other), "{one} {other}");
        }
    }

    #[test]
    fn text_has_a_line_for_each_element() {
        let document = Document::parse("<a> <b>one</b><c>two <i>three</i>\nfour</c>\n<d/></a>").unwrap();
        assert_eq!(text(&document), ("one\ntwo three four".to_owned(), true));
        let has_all = |xml| text(&Document::parse(xml).unwrap()).1;
        assert!(has_all("<a>one<b>, two</b> <b>three</b>-four</a>"));
        assert!(!has_all("<a>on<b>e</b> two</a>") && !has_all("<a>on<!-- -->e</a>"));
    }
}

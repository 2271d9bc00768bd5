//! XPath 1.0 over the tree of an XML document, with the crate `xpath-eval`.
//!
//! The engine has no limits of its own, but it accesses a document only through [`XPathNode`], which counts the accesses.
//! An evaluation that exceeds a limit is unwound and ends in an error. Work of the engine without such accesses, such
//! as comparing two sets of strings, is not counted: the caller needs a time limit, and a stack of
//! [`XPATH_STACK_BYTES`].

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::panic::resume_unwind;

use archive_storage::quietly;
use roxmltree::{Attribute, Document as Tree, Node as TreeNode, NodeId, NodeType};
use xpath_eval::{EvaluationContext, ExpandedName, Expr, Node, NodeKind, Value, evaluate, parse};

use super::super::{ParseLimits, ParseProblem};
use super::doctype::Doctype;
use super::dtd::Dtd;
use super::walk::XML;
use super::{NAMESPACES, with_tree};

/// Maximum bytes of an expression. Parsing and evaluation recurse as deep as it is long.
pub const XPATH_BYTES_MAX: usize = 4096;

/// Bytes of stack that suffice for the deepest expression, even in a debug build.
pub const XPATH_STACK_BYTES: usize = 64 << 20;

/// Maximum number of nodes that an expression may visit; 16 bytes of memory each, should the engine keep them all.
const NODES_LOOKED_AT_MAX: u64 = 20_000_000;

/// Maximum bytes of strings that the evaluation may build.
const TEXTS_BYTES_MAX: usize = 512 << 20;

/// Maximum number of nodes listed.
const FOUND_MAX: usize = 10_000;

/// Bytes of listed texts and fragments after which no further node is listed.
const FOUND_BYTES_MAX: usize = 64 << 20;

/// Why an expression has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XPathError {
    /// The expression is invalid, whatever the document.
    #[error("{0}")]
    Mistake(String),
    /// The document declares no such prefix.
    #[error("the prefix {0} is neither declared in the document nor well known")]
    Prefix(String),
    /// The document is not well-formed.
    #[error("the document cannot be queried: {0}")]
    Document(ParseProblem),
    /// A limit was exceeded.
    #[error("the expression takes too {0}")]
    TooMuch(&'static str),
}

/// Result of an expression on a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// The nodes in document order, or a single value.
    pub found: Vec<XPathResult>,
    /// Number of nodes found but not listed, because there are too many.
    pub left: usize,
}

/// A selected node or a computed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XPathResult {
    /// Kind of node: `element`, `attribute`, `text`, `comment`, `instruction`, `namespace`, `document`; or type of
    /// value: `string`, `number`, `boolean`.
    pub kind: &'static str,
    /// Name with prefix.
    pub name: String,
    /// Line from 1, after entities are expanded; 0 for a value.
    pub line: usize,
    /// Text of the node, or the value.
    pub text: String,
    /// Source text of an element.
    pub xml: Option<String>,
}

/// Evaluates `expression` on a document.
pub(crate) fn xpath(text: &str, expression: &str, limits: &ParseLimits) -> Result<Selected, XPathError> {
    let mistake = |what: String| XPathError::Mistake(what);
    if expression.len() > XPATH_BYTES_MAX {
        return Err(mistake(format!("it is longer than {XPATH_BYTES_MAX} bytes")));
    }
    let expression = parse(expression).map_err(|error| {
        let before = expression.get(..error.position).unwrap_or(expression);
        mistake(format!("{} at character {}", error.message, before.chars().count() + 1))
    })?;
    let doctype = Doctype::of(text);
    let dtd = Dtd::of(&doctype, &mut |_, _| None);
    with_tree(text, limits, |tree, _, problem| match problem {
        Some(problem) => Err(XPathError::Document(problem)),
        None => XPathTree::of(tree, dtd.ids()).select(&expression),
    })
    .map_err(XPathError::Document)?
}

/// A tree, and the cost of the evaluation so far.
struct XPathTree<'a> {
    tree: &'a Tree<'a>,
    /// Attributes that are declared as IDs, each after its element.
    ids: HashSet<(&'a str, &'a str)>,
    looked_at: Cell<u64>,
    text_bytes: Cell<usize>,
    unknown_prefix: RefCell<Option<String>>,
}

impl<'a> XPathTree<'a> {
    fn of(tree: &'a Tree<'a>, ids: HashSet<(&'a str, &'a str)>) -> Self {
        let unknown_prefix = RefCell::default();
        Self { tree, ids, looked_at: Cell::new(0), text_bytes: Cell::new(0), unknown_prefix }
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get() + 1);
        self.check();
    }

    fn copy(&self, bytes: usize) {
        self.text_bytes.set(self.text_bytes.get() + bytes);
        self.check();
    }

    /// Aborts the evaluation if it costs too much.
    fn check(&self) {
        if self.too_much().is_some() {
            resume_unwind(Box::new(()));
        }
    }

    fn too_much(&self) -> Option<&'static str> {
        if self.looked_at.get() > NODES_LOOKED_AT_MAX {
            return Some("many steps");
        }
        (self.text_bytes.get() > TEXTS_BYTES_MAX).then_some("much text")
    }

    fn place(&'a self, node: TreeNode<'a, 'a>) -> XPathNode<'a> {
        self.look();
        XPathNode { view: self, id: node.id(), part: 0 }
    }

    fn select(&'a self, expression: &Expr) -> Result<Selected, XPathError> {
        let namespaces = |prefix: &str| self.namespace(prefix);
        let selected = quietly(|| {
            let mut context = EvaluationContext::new(self.place(self.tree.root()));
            context.namespaces = Some(&namespaces);
            evaluate(expression, &context).map(|value| self.selected(value))
        });
        if let Some(prefix) = self.unknown_prefix.take() {
            return Err(XPathError::Prefix(prefix));
        }
        let failed = || XPathError::TooMuch(self.too_much().unwrap_or("much of the library that follows it"));
        selected.ok_or_else(failed)?.map_err(|error| XPathError::Mistake(error.to_string()))
    }

    /// Returns the namespace of a prefix: that of the first element that declares it, or else the well-known one.
    fn namespace(&self, prefix: &str) -> Option<String> {
        let declared = self.tree.descendants().find_map(|node| {
            let known = node.namespaces().find(|namespace| namespace.name() == Some(prefix));
            known.map(|namespace| namespace.uri().to_owned())
        });
        let known =
            || NAMESPACES.iter().find(|(known, _)| *known == prefix).map(|(_, uri)| (*uri).to_owned());
        let found = declared.or_else(known);
        if found.is_none() {
            self.unknown_prefix.replace(Some(prefix.to_owned()));
        }
        found
    }

    fn selected(&self, value: Value<XPathNode<'a>>) -> Selected {
        let one = |kind, text| {
            let found = XPathResult { kind, name: String::new(), line: 0, text, xml: None };
            Selected { found: vec![found], left: 0 }
        };
        let mut places = match value {
            Value::NodeSet(places) => places,
            Value::Boolean(_) => return one("boolean", value.to_xpath_string()),
            Value::Number(_) => return one("number", value.to_xpath_string()),
            Value::String(text) => return one("string", text),
        };
        places.sort_by(|one, other| one.document_order(*other));
        let (mut selected, mut bytes) = (Selected::default(), 0);
        let (mut line, mut counted) = (1, 0);
        for place in &places {
            if selected.found.len() == FOUND_MAX || bytes > FOUND_BYTES_MAX {
                break;
            }
            let range = place.range();
            let written = self.tree.input_text().as_bytes();
            let between = written.get(counted..range.start).unwrap_or_default();
            line += memchr::memchr_iter(b'\n', between).count();
            counted = counted.max(range.start);
            let is_element = place.kind() == NodeKind::Element;
            let xml = is_element.then(|| self.tree.input_text().get(range).unwrap_or_default().to_owned());
            let found =
                XPathResult { kind: place.sort(), name: place.name(), line, text: place.string_value(), xml };
            bytes += found.text.len() + found.xml.as_ref().map_or(0, String::len);
            selected.found.push(found);
        }
        selected.left = places.len() - selected.found.len();
        selected
    }
}

/// A node in the XPath data model.
#[derive(Clone, Copy)]
struct XPathNode<'a> {
    view: &'a XPathTree<'a>,
    id: NodeId,
    /// 0 is the node itself; then its namespaces follow, the first of which is always that of `xml`, and from
    /// [`ATTRIBUTES`] on its attributes.
    part: u32,
}

/// First number of an attribute.
const ATTRIBUTES: u32 = 1 << 31;

impl PartialEq for XPathNode<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.id, self.part) == (other.id, other.part)
    }
}

impl Eq for XPathNode<'_> {}

impl<'a> XPathNode<'a> {
    fn node(self) -> TreeNode<'a, 'a> {
        // Every id is in the tree.
        self.view.tree.get_node(self.id).unwrap_or(self.view.tree.root())
    }

    fn with_part(self, part: u32) -> Self {
        self.view.look();
        Self { part, ..self }
    }

    fn attribute(self) -> Option<Attribute<'a, 'a>> {
        self.node().attributes().nth(self.part.checked_sub(ATTRIBUTES)? as usize)
    }

    /// Returns the prefix and the URI of a namespace.
    fn declaration(self) -> (&'a str, &'a str) {
        let number = self.part.checked_sub(2).map(|number| number as usize);
        let found = number.and_then(|number| self.node().namespaces().nth(number));
        found.map_or(("xml", XML), |found| (found.name().unwrap_or_default(), found.uri()))
    }

    /// Returns the text of the node if it can be borrowed from the tree in one piece.
    fn lent(self) -> Option<&'a str> {
        let node = self.node();
        match self.kind() {
            NodeKind::Attribute => self.attribute().map(|attribute| attribute.value()),
            NodeKind::Namespace => Some(self.declaration().1),
            NodeKind::Text | NodeKind::Comment => node.text(),
            NodeKind::ProcessingInstruction => Some(node.pi().and_then(|pi| pi.value).unwrap_or_default()),
            NodeKind::Element | NodeKind::Root => {
                let Some(child) = node.first_child() else { return Some("") };
                (child.is_text() && child.next_sibling().is_none()).then(|| child.text().unwrap_or_default())
            }
        }
    }

    fn expanded(self) -> Option<(Option<&'a str>, &'a str)> {
        let node = self.node();
        match self.kind() {
            NodeKind::Element => {
                // `xmlns=''` undeclares a namespace.
                let namespace = node.tag_name().namespace().filter(|uri| !uri.is_empty());
                Some((namespace, node.tag_name().name()))
            }
            NodeKind::Attribute => {
                self.attribute().map(|attribute| (attribute.namespace(), attribute.name()))
            }
            NodeKind::Namespace => Some((None, self.declaration().0)),
            NodeKind::ProcessingInstruction => node.pi().map(|pi| (None, pi.target)),
            NodeKind::Root | NodeKind::Comment | NodeKind::Text => None,
        }
    }

    /// Range of the node in the source; a namespace has that of its element.
    fn range(self) -> std::ops::Range<usize> {
        self.attribute().map_or_else(|| self.node().range(), |attribute| attribute.range())
    }

    /// Name of the node as written.
    fn name(self) -> String {
        let Some((namespace, name)) = self.expanded() else { return String::new() };
        let written = match self.attribute() {
            Some(attribute) => self.view.tree.input_text().get(attribute.range_qname()),
            None if namespace.is_some() => {
                let tag = self.view.tree.input_text().get(self.node().range().start + 1..);
                tag.and_then(|tag| tag.split(|c: char| c.is_whitespace() || matches!(c, '/' | '>')).next())
            }
            None => None,
        };
        written.unwrap_or(name).to_owned()
    }

    fn sort(self) -> &'static str {
        match self.kind() {
            NodeKind::Root => "document",
            NodeKind::Element => "element",
            NodeKind::Attribute => "attribute",
            NodeKind::Namespace => "namespace",
            NodeKind::ProcessingInstruction => "instruction",
            NodeKind::Comment => "comment",
            NodeKind::Text => "text",
        }
    }
}

impl<'a> Node<'a> for XPathNode<'a> {
    fn kind(self) -> NodeKind {
        match (self.part, self.node().node_type()) {
            (ATTRIBUTES.., _) => NodeKind::Attribute,
            (1.., _) => NodeKind::Namespace,
            (0, NodeType::Root) => NodeKind::Root,
            (0, NodeType::Element) => NodeKind::Element,
            (0, NodeType::PI) => NodeKind::ProcessingInstruction,
            (0, NodeType::Comment) => NodeKind::Comment,
            (0, NodeType::Text) => NodeKind::Text,
        }
    }

    fn parent(self) -> Option<Self> {
        if self.part > 0 {
            return Some(self.with_part(0));
        }
        self.node().parent().map(|parent| self.view.place(parent))
    }

    fn children(self) -> impl Iterator<Item = Self> + 'a {
        let node = (self.part == 0).then(|| self.node());
        node.into_iter().flat_map(|node| node.children()).map(move |child| self.view.place(child))
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 'a {
        let count = if self.part == 0 { self.node().attributes().len() as u32 } else { 0 };
        (0..count).map(move |number| self.with_part(ATTRIBUTES + number))
    }

    fn namespaces(self) -> impl Iterator<Item = Self> + 'a {
        let is_element = self.kind() == NodeKind::Element;
        let count = if is_element { 1 + self.node().namespaces().len() as u32 } else { 0 };
        let all = (1..=count).map(move |part| self.with_part(part));
        // An undeclared default namespace is not a namespace node.
        all.filter(|place| !place.declaration().1.is_empty())
    }

    fn expanded_name(self) -> Option<ExpandedName> {
        let (namespace, name) = self.expanded()?;
        Some(ExpandedName { namespace_uri: namespace.map(str::to_owned), local_name: name.to_owned() })
    }

    fn has_expanded_name(self, namespace_uri: Option<&str>, local_name: &str) -> bool {
        self.expanded() == Some((namespace_uri, local_name))
    }

    fn string_value(self) -> String {
        if let Some(text) = self.lent() {
            self.view.copy(text.len());
            return text.to_owned();
        }
        let mut texts = String::new();
        for node in self.node().descendants() {
            self.view.look();
            if let Some(text) = node.text().filter(|_| node.is_text()) {
                self.view.copy(text.len());
                texts.push_str(text);
            }
        }
        texts
    }

    fn with_string_value<R>(self, f: impl FnOnce(&str) -> R) -> R {
        match self.lent() {
            Some(text) => f(text),
            None => f(&self.string_value()),
        }
    }

    fn document_order(self, other: Self) -> Ordering {
        (self.id.get(), self.part).cmp(&(other.id.get(), other.part))
    }

    fn is_id_attribute(self) -> bool {
        let Some((namespace, name)) = self.expanded() else { return false };
        let is_declared = || self.view.ids.contains(&(self.node().tag_name().name(), name));
        (namespace, name) == (Some(XML), "id") || namespace.is_none() && is_declared()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn ask(text: &str, expression: &str) -> Result<Selected, XPathError> {
        xpath(text, expression, &ParseLimits::default())
    }

    /// The deepest expressions are evaluated on the promised amount of stack.
    #[test]
    fn the_longest_expressions_are_followed() {
        let nested = |open: &str, inner: &str, close: &str| {
            let count = (XPATH_BYTES_MAX - inner.len()) / (open.len() + close.len());
            format!("{}{inner}{}", open.repeat(count), close.repeat(count))
        };
        let expressions = [
            nested("-", "1", ""),
            nested("(", "1", ")"),
            nested("1+", "1", ""),
            nested("a[", "a", "]"),
            nested("not(", "1", ")"),
            nested("a/", "a", ""),
            nested("a|", "a", ""),
        ];
        let thread = thread::Builder::new().stack_size(XPATH_STACK_BYTES);
        let read = move || {
            for expression in expressions {
                let is_close = expression.len() > XPATH_BYTES_MAX - 6;
                assert!(is_close && ask("<a><a/></a>", &expression).is_ok(), "{expression}");
                let longer = format!("{expression:XPATH_BYTES_MAX$} ");
                assert!(matches!(ask("<a/>", &longer), Err(XPathError::Mistake(_))));
            }
        };
        thread.spawn(read).unwrap().join().unwrap();
    }

    #[test]
    fn what_an_expression_costs_is_limited() {
        let tree = Tree::parse("<a><b>one<i/></b><b>two<i/></b></a>").unwrap();
        let expression = parse("//b[preceding::b = 'one']").unwrap();
        let ask = |looked_at: u64, text_bytes: usize| {
            let view = XPathTree::of(&tree, HashSet::new());
            view.looked_at.set(looked_at);
            view.text_bytes.set(text_bytes);
            let selected = view.select(&expression);
            (selected, view.looked_at.get() - looked_at, view.text_bytes.get() - text_bytes)
        };
        let (selected, steps, bytes) = ask(0, 0);
        assert!(selected.as_ref().is_ok_and(|selected| selected.found.len() == 1) && steps > 8 && bytes >= 6);
        let (most_steps, most_bytes) = (NODES_LOOKED_AT_MAX - steps, TEXTS_BYTES_MAX - bytes);
        assert_eq!(ask(most_steps, most_bytes).0, selected);
        assert_eq!(ask(most_steps + 1, 0).0, Err(XPathError::TooMuch("many steps")));
        assert_eq!(ask(0, most_bytes + 1).0, Err(XPathError::TooMuch("much text")));
    }

    #[test]
    fn documents_are_as_long_as_others_that_are_read() {
        let limits = ParseLimits { body_bytes_max: 4, ..ParseLimits::default() };
        let ask = |body: &[u8]| crate::parse::xpath(body, Some("text/xml"), "/*", &limits).unwrap();
        assert!(ask(b"<a/>").is_ok());
        assert_eq!(ask(b"<a />"), Err(XPathError::Document(ParseProblem::BodyCut { at: 4 })));
    }

    #[test]
    fn nodes_are_listed_up_to_the_limit() {
        let document = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        let listed =
            |count| ask(&document(count), "//b").map(|selected| (selected.found.len(), selected.left));
        assert_eq!(listed(FOUND_MAX), Ok((FOUND_MAX, 0)));
        assert_eq!(listed(FOUND_MAX + 1), Ok((FOUND_MAX, 1)));
        // Each fragment contains all that follow it: together they exceed what can be listed.
        let deep =
            format!("{}{}{}", "<a>".repeat(200), "x".repeat(FOUND_BYTES_MAX / 100), "</a>".repeat(200));
        let selected = ask(&deep, "//a").unwrap();
        assert!(selected.left > 0 && selected.found.len() < 60, "{}", selected.found.len());
    }

    #[test]
    fn nodes_have_names_and_places() {
        let text = "<!DOCTYPE p:a [<!ATTLIST b k ID #IMPLIED>]>\n<?go on?>\n<p:a xmlns:p='u' xmlns='v'>\n<!--c-->\
            <b xmlns='' k='1'\n p:l='2'>x</b></p:a>";
        let ask = |expression| {
            let each = |it: &XPathResult| format!("{} {} {} {}", it.line, it.kind, it.name, it.text);
            ask(text, expression).map(|selected| selected.found.iter().map(each).collect::<Vec<_>>())
        };
        let all = ask("/descendant-or-self::node()[not(self::text()[. = '\n'])]").unwrap();
        let expected =
            ["1 document  \nx", "2 instruction go on", "3 element p:a \nx", "4 comment  c", "4 element b x"];
        assert_eq!((&all[..5], &*all[5]), (&expected.map(str::to_owned)[..], "5 text  x"));
        assert_eq!(ask("//@*").unwrap(), ["4 attribute k 1", "5 attribute p:l 2"]);
        assert_eq!(ask("id('1')/@p:l/..").unwrap(), ["4 element b x"]);
        assert_eq!(ask("name(/*)").unwrap(), ["0 string  p:a"]);
        let namespaces = ask("//b/namespace::*").unwrap();
        assert_eq!(namespaces.len(), 2, "{namespaces:?}");
        assert_eq!(ask("//none:b"), Err(XPathError::Prefix("none".to_owned())));
        assert_eq!(ask("count(//dc:b)").unwrap(), ["0 number  0"]);
    }
}

//! An XML document as a tree that can be compared and changed.
//!
//! White space between elements is omitted because it carries no meaning; so are prefixes and the order of attributes.
//! Invariant: nodes are in document order (parents before children), so two trees with the same content are equal.

use std::collections::HashMap;

use roxmltree::{Document, NodeType};
use serde::{Deserialize, Serialize};

/// Index of a node in a [`Tree`]; the document itself has 0.
pub(super) type NodeIndex = usize;

/// A name with its namespace, if any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QualifiedName {
    /// URI of the namespace; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name without prefix.
    pub local: String,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeAttribute {
    /// Name of the attribute.
    pub name: QualifiedName,
    /// Value with references resolved.
    pub value: String,
}

/// Content of a node, without its children.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeContent {
    /// The document.
    Document,
    /// An element with its attributes, sorted by name.
    Element(QualifiedName, Vec<NodeAttribute>),
    /// Text.
    Text(String),
    /// A comment.
    Comment(String),
    /// A processing instruction.
    Instruction(String, String),
}

impl NodeContent {
    /// Returns the properties that versions of a node share.
    pub(super) fn likeness(&self) -> Likeness<'_> {
        match self {
            Self::Document => Likeness::Document,
            Self::Element(name, _) => Likeness::Element(name),
            Self::Text(_) => Likeness::Text,
            Self::Comment(_) => Likeness::Comment,
            Self::Instruction(target, _) => Likeness::Instruction(target),
        }
    }

    /// Returns the value of a text, comment or instruction.
    pub(super) fn value(&self) -> Option<&str> {
        match self {
            Self::Text(value) | Self::Comment(value) | Self::Instruction(_, value) => Some(value),
            Self::Document | Self::Element(..) => None,
        }
    }
}

/// Properties that versions of a node share: the name of an element, the target of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Likeness<'a> {
    Document,
    Element(&'a QualifiedName),
    Text,
    Comment,
    Instruction(&'a str),
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeNode {
    pub(super) parent: NodeIndex,
    pub(super) children: Vec<NodeIndex>,
    pub(super) content: NodeContent,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub(super) nodes: Vec<TreeNode>,
}

impl Tree {
    /// Builds the tree of a parsed document.
    #[must_use]
    pub fn of(document: &Document<'_>) -> Self {
        let mut tree = Self::empty();
        // Index of each node; those of omitted nodes are never read.
        let mut places = vec![0; document.descendants().count()];
        for node in document.descendants().skip(1) {
            let Some(parent) = node.parent() else { continue };
            let Some(content) = content_of(node) else { continue };
            if matches!(content, NodeContent::Text(_)) && is_spacing(node) {
                continue;
            }
            let parent = places.get(parent.id().get_usize()).copied().unwrap_or(0);
            let place = tree.push(parent, content);
            if let Some(slot) = places.get_mut(node.id().get_usize()) {
                *slot = place;
            }
        }
        tree
    }

    /// Creates an empty document.
    pub(super) fn empty() -> Self {
        Self { nodes: vec![TreeNode { parent: 0, children: Vec::new(), content: NodeContent::Document }] }
    }

    /// Appends a node as the last child of its parent. Nodes must be appended in document order.
    pub(super) fn push(&mut self, parent: NodeIndex, content: NodeContent) -> NodeIndex {
        let place = self.nodes.len();
        self.nodes.push(TreeNode { parent, children: Vec::new(), content });
        self.nodes[parent].children.push(place);
        place
    }

    /// Returns the numbers of all nodes: their postorder from 1, as XyDiff's identifiers.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut numbers = vec![0; self.nodes.len()];
        let mut next = 1;
        // The current path from the root, with the number of children already visited.
        let mut way: Vec<(NodeIndex, usize)> = vec![(0, 0)];
        while let Some((place, done)) = way.last_mut() {
            if let Some(&child) = self.nodes[*place].children.get(*done) {
                *done += 1;
                way.push((child, 0));
            } else {
                numbers[*place] = next;
                next += 1;
                way.pop();
            }
        }
        numbers
    }

    /// Returns the position of a node among the children of its parent.
    pub(super) fn position(&self, place: NodeIndex) -> usize {
        let siblings = &self.nodes[self.nodes[place].parent].children;
        // Siblings are sorted by index.
        siblings.binary_search(&place).unwrap_or(0)
    }
}

/// Readable paths to nodes in the style of XPath: `/rss/channel/item[3]/title`.
#[derive(Debug)]
pub(super) struct Paths<'a> {
    tree: &'a Tree,
    /// Ordinal of each node among its siblings of the same likeness, from 1; 0 if it is the only one.
    ordinals: Vec<usize>,
}

impl<'a> Paths<'a> {
    pub(super) fn of(tree: &'a Tree) -> Self {
        let mut ordinals = vec![0; tree.nodes.len()];
        for node in &tree.nodes {
            let mut alike: HashMap<Likeness<'_>, (NodeIndex, usize)> = HashMap::new();
            for &child in &node.children {
                let (first, count) = alike.entry(tree.nodes[child].content.likeness()).or_insert((child, 0));
                *count += 1;
                if *count == 2 {
                    ordinals[*first] = 1;
                }
                ordinals[child] = if *count == 1 { 0 } else { *count };
            }
        }
        Self { tree, ordinals }
    }

    pub(super) fn to(&self, place: NodeIndex) -> String {
        let mut steps = Vec::new();
        let mut at = place;
        while at != 0 {
            let node = &self.tree.nodes[at];
            let step = match &node.content {
                NodeContent::Document => String::new(),
                NodeContent::Element(name, _) => name.local.clone(),
                NodeContent::Text(_) => "text()".to_owned(),
                NodeContent::Comment(_) => "comment()".to_owned(),
                NodeContent::Instruction(target, _) => format!("processing-instruction({target})"),
            };
            steps.push(match self.ordinals[at] {
                0 => format!("/{step}"),
                ordinal => format!("/{step}[{ordinal}]"),
            });
            at = node.parent;
        }
        if steps.is_empty() { "/".to_owned() } else { steps.into_iter().rev().collect() }
    }
}

fn content_of(node: roxmltree::Node<'_, '_>) -> Option<NodeContent> {
    Some(match node.node_type() {
        NodeType::Root => return None,
        NodeType::Element => {
            let name = node.tag_name();
            let mut attributes: Vec<NodeAttribute> = node
                .attributes()
                .map(|found| NodeAttribute {
                    name: name_of(found.namespace(), found.name()),
                    value: found.value().to_owned(),
                })
                .collect();
            attributes.sort_unstable();
            NodeContent::Element(name_of(name.namespace(), name.name()), attributes)
        }
        NodeType::Text => NodeContent::Text(node.text()?.to_owned()),
        NodeType::Comment => NodeContent::Comment(node.text()?.to_owned()),
        NodeType::PI => {
            let instruction = node.pi()?;
            NodeContent::Instruction(
                instruction.target.to_owned(),
                instruction.value.unwrap_or_default().to_owned(),
            )
        }
    })
}

fn name_of(namespace: Option<&str>, local: &str) -> QualifiedName {
    QualifiedName { namespace: namespace.unwrap_or_default().to_owned(), local: local.to_owned() }
}

/// Whether a text is only white space next to other nodes, or has no characters, as after a repair.
fn is_spacing(node: roxmltree::Node<'_, '_>) -> bool {
    let text = node.text().unwrap_or_default();
    text.is_empty()
        || text.trim().is_empty() && (node.next_sibling().is_some() || node.prev_sibling().is_some())
}

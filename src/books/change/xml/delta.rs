//! The delta from one version of a document to the next: deletions, insertions, moves, updates.
//!
//! Nodes are identified by numbers as in XyDiff (Marian, Abiteboul, Cobéna, Mignet, "Change-Centric Management of
//! Versions in an XML Warehouse", VLDB 2001). Nodes of the old version are numbered in postorder from 1; new nodes get
//! the numbers after these. Positions count from 0, in the version to which they refer.
//!
//! To apply a delta, remove the deleted and moved subtrees, then insert moved and new subtrees, for each parent in
//! ascending order of position, then update values and attributes. [`super::apply`] does this.
//!
//! A delta also leads back ([`super::invert`]): it says everything that it removes, and [`Delta::numbers`] says which
//! number each node of the new version has, as XyDiff's XID-maps do.

use serde::{Deserialize, Serialize};

use super::matching::{Matching, matching};
use super::order;
use super::tree::{NodeAttribute, NodeContent, NodeIndex, Paths, QualifiedName, Tree};

/// A node of an inserted or deleted subtree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtreeNode {
    /// Number of the node.
    pub id: u32,
    /// Number of its parent.
    pub parent: u32,
    /// Content of the node.
    pub content: NodeContent,
}

/// A position among the children of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChildSlot {
    /// Number of the parent.
    pub parent: u32,
    /// Position, from 0.
    pub position: usize,
    /// Path for people: `/rss/channel/item[3]`.
    pub path: String,
}

/// One step of a delta.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum DeltaStep {
    /// A subtree is deleted, except for parts that are moved out of it.
    Delete {
        /// Its place in the old version.
        from: ChildSlot,
        /// Its nodes in document order.
        nodes: Vec<SubtreeNode>,
    },
    /// A subtree is inserted, except for parts that are moved into it.
    Insert {
        /// Its place in the new version.
        to: ChildSlot,
        /// Its nodes in document order.
        nodes: Vec<SubtreeNode>,
    },
    /// A subtree is moved.
    Move {
        /// Number of its root.
        id: u32,
        /// Its place in the old version.
        from: ChildSlot,
        /// Its place in the new version.
        to: ChildSlot,
    },
    /// The value of a text, comment or processing instruction changes.
    Update {
        /// Number of the node.
        id: u32,
        /// Its path in the new version.
        path: String,
        /// Its old value.
        old: String,
        /// Its new value.
        new: String,
    },
    /// An attribute is added, removed or changed.
    Attribute {
        /// Number of its element.
        id: u32,
        /// Path of the element in the new version.
        path: String,
        /// Name of the attribute.
        name: QualifiedName,
        /// Old value; `None` if the attribute is new.
        old: Option<String>,
        /// New value; `None` if the attribute is removed.
        new: Option<String>,
    },
}

/// The delta from one version to the next; empty for equal versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The operations in order: deletions, moves, insertions, then updates and attributes.
    #[serde(rename = "changes")]
    pub operations: Vec<DeltaStep>,
    /// Numbers of the nodes of the new version in postorder, as runs from a first to a last number. Empty in deltas of
    /// earlier programs, which do not lead back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<(u32, u32)>,
}

impl Delta {
    /// Computes the delta from `old` to `new`.
    #[must_use]
    pub fn between(old: &Tree, new: &Tree) -> Self {
        let found = matching(old, new);
        let mut differ = Differ::new(old, new, &found);
        differ.leave();
        differ.arrive();
        differ.change();
        let numbers = if differ.operations.is_empty() { Vec::new() } else { differ.runs() };
        Self { operations: differ.operations, numbers }
    }

    /// Whether the versions are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

struct Differ<'a> {
    old: &'a Tree,
    new: &'a Tree,
    found: &'a Matching,
    old_paths: Paths<'a>,
    new_paths: Paths<'a>,
    old_numbers: Vec<u32>,
    new_numbers: Vec<u32>,
    /// Whether each node of the new version keeps its place among its siblings.
    stays: Vec<bool>,
    operations: Vec<DeltaStep>,
}

impl<'a> Differ<'a> {
    fn new(old: &'a Tree, new: &'a Tree, found: &'a Matching) -> Self {
        let old_numbers = old.numbers();
        let mut fresh = old.nodes.len() as u32;
        let new_numbers = found.old_of.iter().map(|partner| match partner {
            Some(partner) => old_numbers[*partner],
            None => {
                fresh += 1;
                fresh
            }
        });
        let new_numbers = new_numbers.collect();
        let mut stays = vec![false; new.nodes.len()];
        for (parent, partner) in found.old_of.iter().enumerate() {
            let Some(partner) = partner else { continue };
            for (_, position) in order::kept(old, new, found, *partner, parent) {
                stays[new.nodes[parent].children[position]] = true;
            }
        }
        let (old_paths, new_paths) = (Paths::of(old), Paths::of(new));
        let operations = Vec::new();
        Self { old, new, found, old_paths, new_paths, old_numbers, new_numbers, stays, operations }
    }

    /// Adds deletions.
    fn leave(&mut self) {
        for place in 1..self.old.nodes.len() {
            let is_gone = |place: NodeIndex| self.found.new_of[place].is_none();
            if is_gone(place) && !is_gone(self.old.nodes[place].parent) {
                let nodes = pieces(self.old, place, &self.old_numbers, &is_gone);
                self.operations.push(DeltaStep::Delete { from: self.old_slot(place), nodes });
            }
        }
    }

    /// Adds moves and insertions.
    fn arrive(&mut self) {
        let mut insertions = Vec::new();
        for place in 1..self.new.nodes.len() {
            let is_fresh = |place: NodeIndex| self.found.old_of[place].is_none();
            match self.found.old_of[place] {
                Some(partner) if !self.stays[place] => self.operations.push(DeltaStep::Move {
                    id: self.old_numbers[partner],
                    from: self.old_slot(partner),
                    to: self.new_slot(place),
                }),
                None if !is_fresh(self.new.nodes[place].parent) => {
                    let nodes = pieces(self.new, place, &self.new_numbers, &is_fresh);
                    insertions.push(DeltaStep::Insert { to: self.new_slot(place), nodes });
                }
                _ => {}
            }
        }
        self.operations.append(&mut insertions);
    }

    /// Adds updates of values and attributes.
    fn change(&mut self) {
        for place in 1..self.new.nodes.len() {
            let Some(partner) = self.found.old_of[place] else { continue };
            let (before, after) = (&self.old.nodes[partner].content, &self.new.nodes[place].content);
            if before == after {
                continue;
            }
            let id = self.old_numbers[partner];
            if let (NodeContent::Element(_, before), NodeContent::Element(_, after)) = (before, after) {
                let path = self.new_paths.to(place);
                self.operations.extend(attributes(id, &path, before, after));
            } else if let (Some(before), Some(after)) = (before.value(), after.value()) {
                let path = self.new_paths.to(place);
                let (old, new) = (before.to_owned(), after.to_owned());
                self.operations.push(DeltaStep::Update { id, path, old, new });
            }
        }
    }

    /// The numbers of the new version's nodes in postorder, as runs.
    fn runs(&self) -> Vec<(u32, u32)> {
        let mut ordered: Vec<_> =
            self.new.numbers().into_iter().zip(self.new_numbers.iter().copied()).collect();
        ordered.sort_unstable();
        runs(ordered.into_iter().map(|(_, number)| number))
    }

    fn old_slot(&self, place: NodeIndex) -> ChildSlot {
        let parent = self.old_numbers[self.old.nodes[place].parent];
        ChildSlot { parent, position: self.old.position(place), path: self.old_paths.to(place) }
    }

    fn new_slot(&self, place: NodeIndex) -> ChildSlot {
        let parent = self.new_numbers[self.new.nodes[place].parent];
        ChildSlot { parent, position: self.new.position(place), path: self.new_paths.to(place) }
    }
}

/// Joins numbers that follow each other, as runs from a first to a last number.
pub(super) fn runs(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

/// Returns the nodes of a subtree for which `belongs` holds; other nodes are skipped with their subtrees.
fn pieces(
    tree: &Tree,
    root: NodeIndex,
    numbers: &[u32],
    belongs: &dyn Fn(NodeIndex) -> bool,
) -> Vec<SubtreeNode> {
    let mut pieces = Vec::new();
    let mut waiting = vec![root];
    while let Some(place) = waiting.pop() {
        let node = &tree.nodes[place];
        pieces.push(SubtreeNode {
            id: numbers[place],
            parent: numbers[node.parent],
            content: node.content.clone(),
        });
        waiting.extend(node.children.iter().rev().filter(|child| belongs(**child)));
    }
    pieces
}

/// Returns the operations for attributes that differ.
fn attributes<'a>(
    id: u32,
    path: &'a str,
    old: &'a [NodeAttribute],
    new: &'a [NodeAttribute],
) -> impl Iterator<Item = DeltaStep> + 'a {
    let value = |list: &[NodeAttribute], name: &QualifiedName| {
        list.iter().find(|attribute| attribute.name == *name).map(|attribute| attribute.value.clone())
    };
    let gone = old.iter().filter(|before| new.iter().all(|after| after.name != before.name));
    gone.chain(new).filter_map(move |attribute| {
        let (before, after) = (value(old, &attribute.name), value(new, &attribute.name));
        (before != after).then(|| DeltaStep::Attribute {
            id,
            path: path.to_owned(),
            name: attribute.name.clone(),
            old: before,
            new: after,
        })
    })
}

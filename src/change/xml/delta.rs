//! What leads from one version of a document to the next: deletions, insertions, moves, updates.
//!
//! Nodes are distinguished by numbers, as XyDiff does it (Marian, Abiteboul, Cobéna, Mignet, "Change-Centric Management of
//! Versions in an XML Warehouse", VLDB 2001): those of the old version are numbered children first, from 1 on; nodes that
//! are new get the numbers after. Positions are those in the version in which they are named, from 0 on.
//!
//! To apply a delta, take out what is deleted or moved; then put in what is moved or inserted, for each parent by rising
//! position; then update values and attributes. [`super::apply`] does it.

use serde::{Deserialize, Serialize};

use super::matching::{Matching, matching};
use super::order;
use super::tree::{Attribute, Content, Name, Paths, Place, Tree};

/// One node of what is inserted or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its number.
    pub id: u32,
    /// The number of its parent.
    pub parent: u32,
    /// What it is.
    pub content: Content,
}

/// A place among a node's children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// The number of the parent.
    pub parent: u32,
    /// From 0 on.
    pub position: usize,
    /// The same for people: `/rss/channel/item[3]`.
    pub path: String,
}

/// One step of a delta.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// A subtree goes, except for what is moved out of it.
    Delete {
        /// Where it was.
        from: Slot,
        /// Its nodes in the order of the document.
        nodes: Vec<Piece>,
    },
    /// A subtree comes, except for what is moved into it.
    Insert {
        /// Where to.
        to: Slot,
        /// Its nodes in the order of the document.
        nodes: Vec<Piece>,
    },
    /// A subtree goes elsewhere.
    Move {
        /// Its number.
        id: u32,
        /// Where it was.
        from: Slot,
        /// Where to.
        to: Slot,
    },
    /// A text, comment or instruction has another value.
    Update {
        /// Its number.
        id: u32,
        /// Where it is in the new version.
        path: String,
        /// Its old value.
        old: String,
        /// Its new value.
        new: String,
    },
    /// An attribute comes, goes, or has another value.
    Attribute {
        /// The number of its element.
        id: u32,
        /// Where the element is in the new version.
        path: String,
        /// Its name.
        name: Name,
        /// Its old value; none when it is new.
        old: Option<String>,
        /// Its new value; none when it is gone.
        new: Option<String>,
    },
}

/// What leads from one version to the next; nothing for equal ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delta {
    /// The steps: deletions, moves, insertions, updates, attributes.
    pub operations: Vec<Operation>,
}

impl Delta {
    /// What leads from `old` to `new`.
    #[must_use]
    pub fn between(old: &Tree, new: &Tree) -> Self {
        let found = matching(old, new);
        let mut differ = Differ::new(old, new, &found);
        differ.leave();
        differ.arrive();
        differ.change();
        Self { operations: differ.operations }
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
    /// For each node of the new version whether it stays among its siblings.
    stays: Vec<bool>,
    operations: Vec<Operation>,
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

    /// Deletions.
    fn leave(&mut self) {
        for place in 1..self.old.nodes.len() {
            let is_gone = |place: Place| self.found.new_of[place].is_none();
            if is_gone(place) && !is_gone(self.old.nodes[place].parent) {
                let nodes = pieces(self.old, place, &self.old_numbers, &is_gone);
                self.operations.push(Operation::Delete { from: self.old_slot(place), nodes });
            }
        }
    }

    /// Moves and insertions.
    fn arrive(&mut self) {
        let mut insertions = Vec::new();
        for place in 1..self.new.nodes.len() {
            let is_fresh = |place: Place| self.found.old_of[place].is_none();
            match self.found.old_of[place] {
                Some(partner) if !self.stays[place] => self.operations.push(Operation::Move {
                    id: self.old_numbers[partner],
                    from: self.old_slot(partner),
                    to: self.new_slot(place),
                }),
                None if !is_fresh(self.new.nodes[place].parent) => {
                    let nodes = pieces(self.new, place, &self.new_numbers, &is_fresh);
                    insertions.push(Operation::Insert { to: self.new_slot(place), nodes });
                }
                _ => {}
            }
        }
        self.operations.append(&mut insertions);
    }

    /// Updates and attributes.
    fn change(&mut self) {
        for place in 1..self.new.nodes.len() {
            let Some(partner) = self.found.old_of[place] else { continue };
            let (before, after) = (&self.old.nodes[partner].content, &self.new.nodes[place].content);
            if before == after {
                continue;
            }
            let id = self.old_numbers[partner];
            if let (Content::Element(_, before), Content::Element(_, after)) = (before, after) {
                let path = self.new_paths.to(place);
                self.operations.extend(attributes(id, &path, before, after));
            } else if let (Some(before), Some(after)) = (before.value(), after.value()) {
                let path = self.new_paths.to(place);
                let (old, new) = (before.to_owned(), after.to_owned());
                self.operations.push(Operation::Update { id, path, old, new });
            }
        }
    }

    fn old_slot(&self, place: Place) -> Slot {
        let parent = self.old_numbers[self.old.nodes[place].parent];
        Slot { parent, position: self.old.position(place), path: self.old_paths.to(place) }
    }

    fn new_slot(&self, place: Place) -> Slot {
        let parent = self.new_numbers[self.new.nodes[place].parent];
        Slot { parent, position: self.new.position(place), path: self.new_paths.to(place) }
    }
}

/// The nodes of a subtree that belong to it, without the subtrees of those that do not.
fn pieces(tree: &Tree, root: Place, numbers: &[u32], belongs: &dyn Fn(Place) -> bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut waiting = vec![root];
    while let Some(place) = waiting.pop() {
        let node = &tree.nodes[place];
        pieces.push(Piece {
            id: numbers[place],
            parent: numbers[node.parent],
            content: node.content.clone(),
        });
        waiting.extend(node.children.iter().rev().filter(|child| belongs(**child)));
    }
    pieces
}

/// The attributes that differ; both lists are sorted by name.
fn attributes<'a>(
    id: u32,
    path: &'a str,
    old: &'a [Attribute],
    new: &'a [Attribute],
) -> impl Iterator<Item = Operation> + 'a {
    let value = |list: &[Attribute], name: &Name| {
        list.iter().find(|attribute| attribute.name == *name).map(|attribute| attribute.value.clone())
    };
    let gone = old.iter().filter(|before| new.iter().all(|after| after.name != before.name));
    gone.chain(new).filter_map(move |attribute| {
        let (before, after) = (value(old, &attribute.name), value(new, &attribute.name));
        (before != after).then(|| Operation::Attribute {
            id,
            path: path.to_owned(),
            name: attribute.name.clone(),
            old: before,
            new: after,
        })
    })
}

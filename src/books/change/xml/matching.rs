//! Matching of the nodes of a new document with those of the old one.
//!
//! Follows Cobéna, Abiteboul and Marian, "Detecting Changes in XML Documents" (ICDE 2002), section 5. Subtrees with
//! equal hashes are matched, the heaviest first. A match propagates to ancestors of the same name, the further the
//! heavier the subtree is. Finally, unmatched nodes between matched siblings are matched by name. Identifiers
//! (`xml:id`, `id`) match first. The time is O(n log n) in the number of nodes, except for candidates among equal
//! subtrees, of which [`CANDIDATES_MAX`] are tried.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::Xxh3Default;

use super::order;
use super::tree::{Likeness, NodeContent, NodeIndex, Tree};

/// Maximum number of equal subtrees of the old document tried for one of the new.
const CANDIDATES_MAX: usize = 50;

/// The namespace of `xml:id`.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The matched nodes, in both directions.
#[derive(Debug)]
pub(super) struct Matching {
    /// For each node of the old document, its match in the new one.
    pub(super) new_of: Vec<Option<NodeIndex>>,
    /// For each node of the new document, its match in the old one.
    pub(super) old_of: Vec<Option<NodeIndex>>,
    /// Weight of each subtree of the new document.
    pub(super) weights: Vec<f64>,
}

impl Matching {
    fn join(&mut self, old: NodeIndex, new: NodeIndex) {
        self.new_of[old] = Some(new);
        self.old_of[new] = Some(old);
    }

    fn are_free(&self, old: NodeIndex, new: NodeIndex) -> bool {
        self.new_of[old].is_none() && self.old_of[new].is_none()
    }
}

/// Properties of a subtree.
#[derive(Clone, Copy, Debug, Default)]
struct Subtree {
    hash: u64,
    weight: f64,
    /// Number of its nodes.
    size: usize,
}

/// Matches two documents.
pub(super) fn matching(old: &Tree, new: &Tree) -> Matching {
    let new_subtrees = subtrees(new);
    let found = Matching {
        new_of: vec![None; old.nodes.len()],
        old_of: vec![None; new.nodes.len()],
        weights: new_subtrees.iter().map(|subtree| subtree.weight).collect(),
    };
    let mut matcher = Matcher { old, new, old_subtrees: subtrees(old), new_subtrees, found };
    matcher.found.join(0, 0);
    matcher.match_identifiers();
    matcher.match_subtrees();
    matcher.match_between();
    matcher.found
}

/// Computes hash, weight and size of every subtree, children before parents.
fn subtrees(tree: &Tree) -> Vec<Subtree> {
    let mut subtrees = vec![Subtree::default(); tree.nodes.len()];
    for (place, node) in tree.nodes.iter().enumerate().rev() {
        let mut hash = Xxh3Default::new();
        node.content.hash(&mut hash);
        // The weight of an element is one more than the sum of its children, that of a text depends on the logarithm of
        // its length (section 5.2).
        let mut weight = 1.0 + node.content.value().map_or(0.0, |text| (text.len() as f64 + 1.0).ln());
        let mut size = 1;
        for &child in &node.children {
            let child: &Subtree = &subtrees[child];
            hash.write_u64(child.hash);
            weight += child.weight;
            size += child.size;
        }
        subtrees[place] = Subtree { hash: hash.finish(), weight, size };
    }
    subtrees
}

struct Matcher<'a> {
    old: &'a Tree,
    new: &'a Tree,
    old_subtrees: Vec<Subtree>,
    new_subtrees: Vec<Subtree>,
    found: Matching,
}

impl Matcher<'_> {
    /// Matches elements of the same name and identifier, if the identifier is unique in each document.
    fn match_identifiers(&mut self) {
        let (old, new) = (identifiers(self.old), identifiers(self.new));
        for (key, place) in new {
            if let (Some(new), Some(Some(old))) = (place, old.get(&key))
                && self.found.are_free(*old, new)
            {
                self.found.join(*old, new);
            }
        }
    }

    fn match_subtrees(&mut self) {
        let mut by_hash: HashMap<u64, VecDeque<NodeIndex>> = HashMap::new();
        for (place, subtree) in self.old_subtrees.iter().enumerate().skip(1) {
            by_hash.entry(subtree.hash).or_default().push_back(place);
        }
        // The heaviest first, then in document order. Weights are above 0, so their bits are in the same order.
        let mut waiting = BinaryHeap::new();
        let waits =
            |place: NodeIndex, subtrees: &[Subtree]| (subtrees[place].weight.to_bits(), Reverse(place));
        waiting.push(waits(0, &self.new_subtrees));
        while let Some((_, Reverse(place))) = waiting.pop() {
            if self.found.old_of[place].is_none()
                && let Some(candidates) = by_hash.get_mut(&self.new_subtrees[place].hash)
                && let Some(old) = self.best(place, candidates)
            {
                self.join_subtrees(old, place);
                self.join_ancestors(old, place);
                continue;
            }
            for &child in &self.new.nodes[place].children {
                waiting.push(waits(child, &self.new_subtrees));
            }
        }
    }

    /// Returns, of equal subtrees, one whose ancestor is matched with that of the node, as near as possible; otherwise
    /// the first that is free.
    fn best(&self, new: NodeIndex, candidates: &mut VecDeque<NodeIndex>) -> Option<NodeIndex> {
        // Each candidate is removed only once, so many equal subtrees cost no more than others.
        while candidates.front().is_some_and(|old| self.found.new_of[*old].is_some()) {
            candidates.pop_front();
        }
        let is_free = |old: &NodeIndex| self.found.new_of[*old].is_none() && self.can_join(*old, new);
        let free = || candidates.iter().take(CANDIDATES_MAX).copied().filter(is_free);
        let first = free().next()?;
        let mut ancestor = new;
        for step in 1..=self.reach(new) {
            ancestor = self.new.nodes[ancestor].parent;
            if let Some(matched) = self.found.old_of[ancestor] {
                return free().find(|old| self.ancestor(*old, step) == matched).or(Some(first));
            }
        }
        // A small subtree without matched ancestors is weak evidence: `true` and empty elements occur everywhere.
        (self.new_subtrees[new].size > 1 || candidates.len() == 1).then_some(first)
    }

    /// Whether no node inside two equal subtrees is matched elsewhere, for example by an identifier.
    fn can_join(&self, old: NodeIndex, new: NodeIndex) -> bool {
        (0..self.new_subtrees[new].size).all(|step| {
            let (old, new) = (old + step, new + step);
            self.found.new_of[old].is_none_or(|matched| matched == new)
                && self.found.old_of[new].is_none_or(|matched| matched == old)
        })
    }

    fn ancestor(&self, old: NodeIndex, steps: usize) -> NodeIndex {
        (0..steps).fold(old, |place, _| self.old.nodes[place].parent)
    }

    /// Number of ancestors to which a match of this subtree propagates: 1 + log n · weight / total weight (section
    /// 5.2).
    fn reach(&self, new: NodeIndex) -> usize {
        let whole = self.new_subtrees[0].weight;
        let share = self.new_subtrees[new].weight / whole;
        1 + ((self.new.nodes.len() as f64).log2() * share) as usize
    }

    /// Joins two equal subtrees; their nodes are in the same order.
    fn join_subtrees(&mut self, old: NodeIndex, new: NodeIndex) {
        for step in 0..self.new_subtrees[new].size {
            if self.found.are_free(old + step, new + step) {
                self.found.join(old + step, new + step);
            }
        }
    }

    fn join_ancestors(&mut self, old: NodeIndex, new: NodeIndex) {
        let (mut old, mut new) = (old, new);
        for _ in 0..self.reach(new) {
            (old, new) = (self.old.nodes[old].parent, self.new.nodes[new].parent);
            let alike = self.old.nodes[old].content.likeness() == self.new.nodes[new].content.likeness();
            if !alike || !self.found.are_free(old, new) {
                return;
            }
            self.found.join(old, new);
        }
    }

    /// Under matched parents, nodes between the same matched siblings with the same name are versions of the same node.
    fn match_between(&mut self) {
        for new_parent in 0..self.new.nodes.len() {
            let Some(old_parent) = self.found.old_of[new_parent] else { continue };
            let (old, new) = (self.old, self.new);
            let old_children = &old.nodes[old_parent].children;
            let new_children = &new.nodes[new_parent].children;
            let mut anchors = order::kept(old, new, &self.found, old_parent, new_parent);
            anchors.push((old_children.len(), new_children.len()));
            let (mut old_at, mut new_at) = (0, 0);
            for (old_end, new_end) in anchors {
                self.match_run(&old_children[old_at..old_end], &new_children[new_at..new_end]);
                (old_at, new_at) = (old_end + 1, new_end + 1);
            }
        }
    }

    fn match_run(&mut self, old: &[NodeIndex], new: &[NodeIndex]) {
        let mut waiting: HashMap<Likeness<'_>, VecDeque<NodeIndex>> = HashMap::new();
        for &old in old.iter().filter(|old| self.found.new_of[**old].is_none()) {
            waiting.entry(self.old.nodes[old].content.likeness()).or_default().push_back(old);
        }
        // Both lists are in document order, so nodes already passed are not used again.
        let mut passed = 0;
        for &new in new.iter().filter(|new| self.found.old_of[**new].is_none()).collect::<Vec<_>>() {
            let Some(alike) = waiting.get_mut(&self.new.nodes[new].content.likeness()) else { continue };
            while let Some(old) = alike.pop_front() {
                if old >= passed {
                    self.found.join(old, new);
                    passed = old;
                    break;
                }
            }
        }
    }
}

/// Returns elements by name and identifier; `None` for a pair that occurs twice.
fn identifiers(tree: &Tree) -> HashMap<(&str, &str), Option<NodeIndex>> {
    let mut found: HashMap<(&str, &str), Option<NodeIndex>> = HashMap::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let NodeContent::Element(name, attributes) = &node.content else { continue };
        let is_id = |namespace: &str| namespace.is_empty() || namespace == XML;
        let id = attributes.iter().find(|attribute| {
            attribute.name.local == "id" && is_id(&attribute.name.namespace) && !attribute.value.is_empty()
        });
        if let Some(id) = id {
            found
                .entry((name.local.as_str(), id.value.as_str()))
                .and_modify(|place| *place = None)
                .or_insert(Some(place));
        }
    }
    found
}

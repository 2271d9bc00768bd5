//! Applies deltas: from the old version and a delta to the new version.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::delta::{Delta, DeltaStep, SubtreeNode};
use super::tree::{NodeAttribute, NodeContent, Tree};

/// Why a delta cannot be applied: it does not belong to this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta does not fit this version: {0}")]
pub struct Misfit(pub(super) String);

impl Delta {
    /// Applies the delta to `old` and returns the new version.
    ///
    /// # Errors
    /// If it is not a delta of `old`.
    pub fn apply(&self, old: &Tree) -> Result<Tree, Misfit> {
        let mut draft = Draft::of(old);
        draft.take_out(&self.operations)?;
        draft.put_in(&self.operations)?;
        for operation in &self.operations {
            draft.change(operation)?;
        }
        draft.finish()
    }
}

/// A node of a document that is being changed.
struct DraftNode {
    children: Vec<u32>,
    content: NodeContent,
}

/// A document that is being changed; nodes are keyed by number.
struct Draft {
    nodes: HashMap<u32, DraftNode>,
    root: u32,
}

impl Draft {
    fn of(tree: &Tree) -> Self {
        let numbers = tree.numbers();
        let node = |(place, node): (usize, &super::tree::TreeNode)| {
            let children = node.children.iter().map(|child| numbers[*child]).collect();
            (numbers[place], DraftNode { children, content: node.content.clone() })
        };
        Self { nodes: tree.nodes.iter().enumerate().map(node).collect(), root: numbers[0] }
    }

    fn node(&mut self, id: u32) -> Result<&mut DraftNode, Misfit> {
        self.nodes.get_mut(&id).ok_or_else(|| Misfit(format!("there is no node {id}")))
    }

    fn take_out(&mut self, operations: &[DeltaStep]) -> Result<(), Misfit> {
        let mut leaving: HashMap<u32, HashSet<u32>> = HashMap::new();
        for operation in operations {
            let (slot, id) = match operation {
                DeltaStep::Move { id, from, .. } => (from, *id),
                DeltaStep::Delete { from, nodes } => {
                    let Some(root) = nodes.first() else {
                        return Err(Misfit("a deletion of nothing".to_owned()));
                    };
                    (from, root.id)
                }
                _ => continue,
            };
            leaving.entry(slot.parent).or_default().insert(id);
        }
        for (parent, leaving) in leaving {
            let node = self.node(parent)?;
            let before = node.children.len();
            node.children.retain(|child| !leaving.contains(child));
            if before - node.children.len() != leaving.len() {
                return Err(Misfit(format!("node {parent} lacks some of the children to be removed")));
            }
        }
        for operation in operations {
            if let DeltaStep::Delete { nodes, .. } = operation {
                for piece in nodes {
                    if self.nodes.remove(&piece.id).is_none_or(|node| node.content != piece.content) {
                        return Err(Misfit(format!("node {} differs from the deleted node", piece.id)));
                    }
                }
            }
        }
        Ok(())
    }

    fn put_in(&mut self, operations: &[DeltaStep]) -> Result<(), Misfit> {
        let mut arriving: BTreeMap<(u32, usize), u32> = BTreeMap::new();
        for operation in operations {
            let (slot, id) = match operation {
                DeltaStep::Move { id, to, .. } => (to, *id),
                DeltaStep::Insert { to, nodes } => (to, self.make(nodes)?),
                _ => continue,
            };
            if arriving.insert((slot.parent, slot.position), id).is_some() {
                return Err(Misfit(format!("two nodes get the same place under node {}", slot.parent)));
            }
        }
        let mut arriving = arriving.into_iter().peekable();
        while let Some(((parent, _), _)) = arriving.peek().copied() {
            let mut stay = std::mem::take(&mut self.node(parent)?.children).into_iter();
            let mut children = Vec::new();
            while let Some(((_, position), id)) = arriving.next_if(|((other, _), _)| *other == parent) {
                children.extend(stay.by_ref().take(position - children.len()));
                if children.len() < position {
                    return Err(Misfit(format!("node {parent} has no place {position}")));
                }
                children.push(id);
            }
            children.extend(stay);
            self.node(parent)?.children = children;
        }
        Ok(())
    }

    /// Creates the nodes of an insertion and returns the number of its root.
    fn make(&mut self, nodes: &[SubtreeNode]) -> Result<u32, Misfit> {
        for (place, piece) in nodes.iter().enumerate() {
            let node = DraftNode { children: Vec::new(), content: piece.content.clone() };
            if self.nodes.insert(piece.id, node).is_some() {
                return Err(Misfit(format!("node {} is there already", piece.id)));
            }
            if place > 0 {
                self.node(piece.parent)?.children.push(piece.id);
            }
        }
        nodes.first().map(|root| root.id).ok_or_else(|| Misfit("an insertion of nothing".to_owned()))
    }

    fn change(&mut self, operation: &DeltaStep) -> Result<(), Misfit> {
        match operation {
            DeltaStep::Update { id, old, new, .. } => {
                let content = &mut self.node(*id)?.content;
                match content {
                    NodeContent::Text(value)
                    | NodeContent::Comment(value)
                    | NodeContent::Instruction(_, value)
                        if value == old =>
                    {
                        value.clone_from(new);
                        Ok(())
                    }
                    _ => Err(Misfit(format!("node {id} does not have the old value"))),
                }
            }
            DeltaStep::Attribute { id, name, old, new, .. } => {
                let NodeContent::Element(_, attributes) = &mut self.node(*id)?.content else {
                    return Err(Misfit(format!("node {id} is not an element")));
                };
                let found = attributes.iter().position(|attribute| attribute.name == *name);
                if found.and_then(|place| attributes.get(place)).map(|found| &found.value) != old.as_ref() {
                    return Err(Misfit(format!("node {id} does not have the old attribute value")));
                }
                attributes.retain(|attribute| attribute.name != *name);
                attributes.extend(new.clone().map(|value| NodeAttribute { name: name.clone(), value }));
                attributes.sort_unstable();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Tree, Misfit> {
        let mut tree = Tree::empty();
        let Some(root) = self.nodes.remove(&self.root) else {
            return Err(Misfit("the document itself is gone".to_owned()));
        };
        let mut waiting: Vec<(usize, u32)> = root.children.iter().rev().map(|child| (0, *child)).collect();
        while let Some((parent, id)) = waiting.pop() {
            let Some(node) = self.nodes.remove(&id) else {
                return Err(Misfit(format!("node {id} is missing or occurs twice")));
            };
            let place = tree.push(parent, node.content);
            waiting.extend(node.children.iter().rev().map(|child| (place, *child)));
        }
        if self.nodes.is_empty() { Ok(tree) } else { Err(Misfit("nodes are left over".to_owned())) }
    }
}

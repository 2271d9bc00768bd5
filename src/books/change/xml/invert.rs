//! The delta that leads back, made from a delta alone.

use std::collections::HashMap;

use super::apply::Misfit;
use super::delta::{ChildSlot, Delta, DeltaStep, SubtreeNode};

/// Maximum number of nodes of a version whose delta is inverted; more than any [`super::Tree`] is given.
const NODES_MAX: usize = 1 << 20;

impl Delta {
    /// Returns the delta from the new version to the old one. Its paths for people stay those of this delta.
    ///
    /// # Errors
    /// If the delta does not say which number each node has, or says it wrongly.
    pub fn inverted(&self) -> Result<Self, Misfit> {
        if self.operations.is_empty() {
            return Ok(Self::default());
        }
        let names = Renumbering::of(self)?;
        let mut operations =
            self.operations.iter().map(|step| names.back(step)).collect::<Result<Vec<_>, _>>()?;
        operations.sort_by_key(|step| match step {
            DeltaStep::Delete { .. } => 0,
            DeltaStep::Move { .. } => 1,
            DeltaStep::Insert { .. } => 2,
            DeltaStep::Update { .. } | DeltaStep::Attribute { .. } => 3,
        });
        Ok(Self { operations, numbers: names.runs()? })
    }
}

/// The numbers of nodes in the delta that leads back, by those in this one.
struct Renumbering {
    back: HashMap<u32, u32>,
    /// Number of nodes of the old version.
    old_nodes: usize,
}

impl Renumbering {
    /// Nodes of the new version are numbered in postorder, nodes that come back after these.
    fn of(delta: &Delta) -> Result<Self, Misfit> {
        if delta.numbers.is_empty() {
            return Err(Misfit(
                "it has no numbers of nodes, so it does not lead back; make it again".to_owned(),
            ));
        }
        let mut back = HashMap::new();
        let mut give = |id: u32| {
            let next = back.len() as u32 + 1;
            if back.len() == NODES_MAX || back.insert(id, next).is_some() {
                return Err(Misfit(format!(
                    "node {id} occurs twice, or there are more than {NODES_MAX} nodes"
                )));
            }
            Ok(())
        };
        for &(first, last) in &delta.numbers {
            (first..=last).try_for_each(&mut give)?;
        }
        let mut inserted = 0;
        for step in &delta.operations {
            match step {
                DeltaStep::Delete { nodes, .. } => nodes.iter().try_for_each(|node| give(node.id))?,
                DeltaStep::Insert { nodes, .. } => inserted += nodes.len(),
                _ => {}
            }
        }
        let old_nodes = back.len().saturating_sub(inserted);
        Ok(Self { back, old_nodes })
    }

    fn id(&self, id: u32) -> Result<u32, Misfit> {
        self.back.get(&id).copied().ok_or_else(|| Misfit(format!("there is no node {id}")))
    }

    fn slot(&self, slot: &ChildSlot) -> Result<ChildSlot, Misfit> {
        Ok(ChildSlot { parent: self.id(slot.parent)?, ..slot.clone() })
    }

    fn nodes(&self, nodes: &[SubtreeNode]) -> Result<Vec<SubtreeNode>, Misfit> {
        let node = |node: &SubtreeNode| {
            let (id, parent) = (self.id(node.id)?, self.id(node.parent)?);
            Ok(SubtreeNode { id, parent, content: node.content.clone() })
        };
        nodes.iter().map(node).collect()
    }

    fn back(&self, step: &DeltaStep) -> Result<DeltaStep, Misfit> {
        Ok(match step.clone() {
            DeltaStep::Delete { from, nodes } => {
                DeltaStep::Insert { to: self.slot(&from)?, nodes: self.nodes(&nodes)? }
            }
            DeltaStep::Insert { to, nodes } => {
                DeltaStep::Delete { from: self.slot(&to)?, nodes: self.nodes(&nodes)? }
            }
            DeltaStep::Move { id, from, to } => {
                DeltaStep::Move { id: self.id(id)?, from: self.slot(&to)?, to: self.slot(&from)? }
            }
            DeltaStep::Update { id, path, old, new } => {
                DeltaStep::Update { id: self.id(id)?, path, old: new, new: old }
            }
            DeltaStep::Attribute { id, path, name, old, new } => {
                DeltaStep::Attribute { id: self.id(id)?, path, name, old: new, new: old }
            }
        })
    }

    /// The new numbers of the old version's nodes, whose old numbers are 1, 2, ….
    fn runs(&self) -> Result<Vec<(u32, u32)>, Misfit> {
        let numbers = (1..=self.old_nodes as u32).map(|id| self.id(id)).collect::<Result<Vec<_>, _>>()?;
        Ok(super::delta::runs(numbers))
    }
}

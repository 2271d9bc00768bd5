//! The difference of two versions of an XML document, as a delta that transforms one into the other.
//!
//! Invariant: a delta applied to the old version gives exactly the new version, except for what [`Tree`] leaves out.

mod apply;
mod delta;
mod invert;
mod matching;
mod order;
mod render;
#[cfg(test)]
mod tests;
mod tree;

pub use apply::Misfit;
pub use delta::{ChildSlot, Delta, DeltaStep, SubtreeNode};
pub use tree::{NodeAttribute, NodeContent, QualifiedName, Tree};

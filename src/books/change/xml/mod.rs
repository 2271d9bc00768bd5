//! The difference of two versions of an XML document, as a delta that transforms one into the other.
//!
//! Invariant: a delta applied to the old version gives exactly the new version, except for what [`Tree`] leaves out.

mod apply;
mod delta;
mod matching;
mod order;
mod render;
#[cfg(test)]
mod tests;
mod tree;

pub use apply::Misfit;
pub use delta::{Delta, Operation, Piece, Slot};
pub use tree::{Attribute, Content, Name, Tree};

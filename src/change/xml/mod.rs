//! The difference of two versions of an XML document, as a delta that leads from one to the other.
//!
//! Invariant: applied to the old version, a delta gives the new version exactly, but for what [`Tree`] leaves out.

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

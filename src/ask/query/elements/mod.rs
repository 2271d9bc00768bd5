//! XML documents: what paths select on a tree, what the index knows of it, and the fields of whole documents.

pub(crate) mod index;
pub(crate) mod structure;
pub(crate) mod tree;

pub(crate) use index::{Bounds, bounds};
pub(crate) use structure::{can_be_xml, known_value};

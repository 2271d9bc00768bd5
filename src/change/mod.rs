//! What differs between two versions of a page.
//!
//! XML documents differ by a delta that leads from one tree to the other ([`xml`]); whatever else has text, by the
//! sentences of its own text ([`text`]), the same that its signature is made of; the rest only by its bytes.
//! [`compare`] takes versions out of the archive.

mod checked;
mod compare;
mod lines;
pub mod text;
pub mod xml;

pub(crate) use checked::{Checked, Checks};
pub use compare::{
    Comparison, Cut, Difference, VersionError, compare, is_version, latest_versions, parsed, parsed_in_time,
    readable, structure, text_of, validate, version_near, version_until, versions_meant, with_tree, xpath,
    xpath_mistake,
};
pub use lines::{Line, Mark, lines};

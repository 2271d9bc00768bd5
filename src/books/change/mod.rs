//! Differences between two versions of a page.
//!
//! XML documents are compared as trees; the result is a delta that transforms one into the other ([`xml`]). Other
//! documents with text are compared by the sentences of their own text ([`text`]), from which the signature is computed
//! too. Everything else is compared by bytes only. [`compare`] reads versions from the archive.

mod compare;
mod lines;
mod patch;
mod said;
mod statistics;
pub mod text;
mod validity;
pub mod xml;

pub use compare::{
    CutReason, Difference, VersionComparison, VersionError, compare, facts, is_version, parsed,
    parsed_in_time, readable, structure, text_of, validate, version_near, version_until, versions_meant,
    with_tree, xpath, xpath_mistake,
};
pub use compare::{missing_entities, whole};
pub use lines::{LineMark, MarkedLine, lines};
pub use patch::{DELTA_BYTES_MAX, PatchError, patch, read_delta};
pub use said::{PagePeriods, SaidPeriod, SaidPeriods, said, said_by_page};
pub use statistics::{ChangeStatistics, ChangeTally, ChangedName};
pub use validity::{CheckedDocument, Checks};

//! The books of an archive: what a capture changes in pages, sites, cash and links, live or replayed after a crash.

mod credit;
mod outcome;
pub mod page_flags;
mod scope;

pub use credit::{Candidate, CreditError, Credits, LEVEL_REQUISITE, authority};
pub use outcome::{Facts, Kind, LINKS_PER_PAGE_MAX, OutLink, Outcome};
pub use scope::{Scope, ScopeKind, ScopeRule};

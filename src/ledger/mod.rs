//! The books of an archive: what a capture changes in pages, sites, cash and links, live or replayed after a crash.

mod authority;
mod credit;
mod languages;
mod late;
mod level;
mod outcome;
pub mod page_flags;
mod pay;
mod record;
mod scope;
mod settings;
mod settle;

pub use authority::authority;
pub use credit::{Candidate, CreditError, Credits};
pub use languages::language;
pub use level::LEVEL_REQUISITE;
pub use outcome::{Facts, Kind, LINKS_PER_PAGE_MAX, OutLink, Outcome, canonical_of};
pub use scope::{Scope, ScopeKind, ScopeRule};
pub use settings::SCOPE as SCOPE_SETTING;

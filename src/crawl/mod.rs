//! The pipeline and the frontier: what to fetch next, and what becomes of it.

mod frontier;
mod scope;
mod seeds;

pub use frontier::{Frontier, LEVEL_REQUISITE, Pick, Politeness};
pub use scope::{Scope, ScopeKind, ScopeRule};
pub use seeds::{Seed, SeedError, read_duration, read_seeds};

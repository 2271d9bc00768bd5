//! Policies by name: those that learn on line, and those with knowledge of the future.

mod hindsight;
mod name;

pub use name::ReplayPolicy;

pub use archive_math::refresh::policies::{RefreshPolicy, UnknownPolicy};

//! Policies by name: those that learn on line, and those that know what none can.

mod hindsight;
mod name;

pub use name::PolicyName;

pub use archive::refresh::policies::{Policy, UnknownPolicy};

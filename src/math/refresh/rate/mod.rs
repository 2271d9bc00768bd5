//! How often a page changes: the observations of its visits, and an estimate of its rate.
//!
//! Changes are modelled as a Poisson process of rate λ (changes per day). A visit shows whether the page changed since
//! the previous visit, and sometimes when it last changed. [`ChangeObservations`] keeps what the likelihood of all
//! visits requires in [`OBSERVATION_BYTES`]. [`RatePrior`] is the prior for a page, learned from the visits of many
//! pages.

mod learned;
mod observations;
mod prior;
#[cfg(test)]
mod tests;
mod within;

pub use observations::{ChangeObservations, OBSERVATION_BYTES, Observation, Rate};
pub use prior::RatePrior;
pub use within::days_before_change;

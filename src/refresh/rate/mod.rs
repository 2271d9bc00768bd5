//! How often a page changes: what its visits have shown, and the rate these observations make likely.
//!
//! Changes are taken as a Poisson process of rate λ (changes a day). A visit says whether the page changed since the
//! visit before, and sometimes when it last changed. [`ChangeObservations`] keeps what the likelihood needs of all
//! visits in [`OBSERVATION_BYTES`]; [`RatePrior`] is what is known of a page before its own visits speak, learned
//! from the visits of many pages.

mod learned;
mod observations;
mod posterior;
mod prior;
#[cfg(test)]
mod tests;
mod within;

pub use observations::{ChangeObservations, OBSERVATION_BYTES, Observation, Rate, RateInterval};
pub use prior::RatePrior;
pub use within::days_before_change;

//! Change rates and refresh rules: pure computation without I/O.
//!
//! Times are in days, rates in changes per day, and importance has mean 1 over the known pages. The crawler, the lab
//! and the benches run the same code; they obtain and store the numbers.

pub mod budget;
pub mod change_model;
mod gamma;
pub mod policies;
pub mod rate;
pub mod retry;

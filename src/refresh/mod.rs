//! Change rates and refresh rules: numbers in, numbers out, no I/O.
//!
//! Times are days, rates are changes a day, importance has mean 1 over the known pages. The crawler, the lab and the
//! benches run this very code; where the numbers come from and where they are kept is their business.

pub mod budget;
pub mod change_model;
mod gamma;
pub mod policies;
pub mod rate;

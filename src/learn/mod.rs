//! Learning from examples: pure computation without I/O. Every fit is deterministic.
//!
//! [`Words`] and [`TfIdf`] turn texts into sparse vectors. [`Multinomial`], [`NaiveBayes`] and [`Ridge`] classify them,
//! [`Binary`] classifies by a few numbers, and [`Platt`] and [`Isotonic`] turn scores into probabilities. [`measures`]
//! has measures of quality, [`agreement`] measures of agreement among people.

pub mod agreement;
mod bayes;
mod calibration;
mod logistic;
pub mod measures;
mod minimise;
mod ridge;
mod text;

pub use bayes::NaiveBayes;
pub use calibration::{Isotonic, Platt};
pub use logistic::{Binary, Multinomial, log_odds, sigmoid};
pub use ridge::Ridge;
pub use text::{Sparse, TfIdf, Words};

//! Learning from examples, whatever they are: pure computation without I/O. Every fit is deterministic. What it learns
//! for focused crawls is in [`crate::focus`].
//!
//! [`HashedWords`] and [`TfIdf`] turn texts into sparse vectors. [`Multinomial`] and [`NaiveBayes`] classify them,
//! [`Binary`] classifies by a few numbers, and [`Platt`] turns scores into probabilities. [`measures`] has measures of
//! quality, [`agreement`] measures of agreement among people.

pub mod agreement;
mod bayes;
mod calibration;
mod logistic;
pub mod measures;
mod minimise;
mod text;

pub use bayes::NaiveBayes;
pub use calibration::Platt;
pub(crate) use logistic::fit_weights;
pub use logistic::{Binary, Multinomial, log_odds, sigmoid};
pub use text::{HashedWords, Sparse, TfIdf};

//! Learning from examples: numbers in, numbers out, no I/O. Whatever is fitted is the same from the same examples.
//!
//! [`Words`] and [`TfIdf`] turn texts into sparse vectors. [`Multinomial`], [`NaiveBayes`] and [`Ridge`] classify
//! them, [`Binary`] judges by a few numbers, [`Platt`] and [`Isotonic`] make probabilities of scores. [`measures`] says how good they
//! are, [`agreement`] how far people agree.

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

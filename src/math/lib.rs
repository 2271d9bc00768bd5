//! The mathematics of the papers: importance of pages ([`importance`]), graphs to rank ([`graphs`]), rates of change and what
//! to fetch next ([`refresh`]), focused crawls ([`focus`]), and what is learned from examples ([`learn`]). It needs neither an
//! archive nor a network.
//!
//! # Invariants
//! * Cash is neither made nor lost: what pages hold, and what is in reserve, adds up to the total at any time.
//! * The same input gives the same result, on any number of threads.
//! * Each formula names its paper, section and equation; where print is wrong, what is right and why.
//!
//! ```
//! use archive_math::refresh::budget::BudgetRule;
//!
//! // Importance and changes a day of three pages; six fetches a day.
//! let pages = [(1.0, 0.1), (4.0, 0.1), (1.0, 30.0)];
//! let daily = BudgetRule::Harmonic.frequencies(&pages, 6.0, &mut 1.0);
//! assert!((daily.iter().sum::<f64>() - 6.0).abs() < 1e-6);
//! assert!(daily[1] > daily[0]);
//! ```

pub mod focus;
pub mod graphs;
pub mod importance;
pub mod learn;
pub mod refresh;

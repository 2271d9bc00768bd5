//! Refresh policies on real histories of change: for what share of the time would the copies have been fresh?
//!
//! [`history`] reads recorded changes, [`world`] selects a window of them, and [`replay`](replay::replay) lets a policy
//! of [`policies`] spend a budget of fetches on it and measures the quality of the copies. An on-line policy sees a
//! [`RefreshProblem`](archive_math::refresh::policies::RefreshProblem), not the world: it cannot see a change that it
//! did not fetch.

pub mod draws;
pub mod history;
pub mod policies;
pub mod replay;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod words;
pub mod world;

//! Refresh policies on real histories of change: what share of the time would the copies have been right?
//!
//! [`history`] reads recorded changes, [`world`] cuts a window out of them, [`replay`](replay::replay) lets a policy of
//! [`policies`] spend a budget of fetches on it and measures what the copies were worth. An on-line policy sees a
//! [`Known`](archive::refresh::policies::Known), not the world: it cannot look at a change that it did not fetch.

pub mod draws;
pub mod history;
pub mod policies;
pub mod replay;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod world;

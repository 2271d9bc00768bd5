//! Replays of focused crawls: how early each order finds the pages of a topic.

mod archived;
mod orders;
mod replay;
mod web;

pub use archived::{FocusError, read};
pub use replay::{FocusOrder, Measures, Replay, UnknownKind};
pub use web::{Link, Page, Web};

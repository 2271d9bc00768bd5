//! Focused crawls, replayed: how early each order finds the pages of a topic.

mod replay;
mod web;
#[cfg(not(tune))]
mod archived;

#[cfg(not(tune))]
pub use archived::{FocusError, read};
pub use replay::{Kind, Measures, Replay};
pub use web::{Link, Page, Web};

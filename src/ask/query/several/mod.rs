//! Several archives as one: on this machine by renumbering their rows, on others by merging their portions of an answer.

pub(crate) mod indexes;
pub(crate) mod merge;
pub(crate) mod part;
pub(crate) mod portions;
pub(crate) mod question;
pub(crate) mod remote;
pub(crate) mod wire;

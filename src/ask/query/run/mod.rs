//! Runs plans over rows of any kind.

pub(crate) mod execute;
pub(crate) mod explain;
pub(crate) mod group_runs;
pub(crate) mod groups;
pub(crate) mod order;
pub(crate) mod read_ahead;
pub(crate) mod searches;
pub(crate) mod spill;

pub(crate) use execute::Answer;
pub(crate) use groups::{Gathered, Groups};
pub(crate) use order::Candidate;
pub(crate) use searches::related;

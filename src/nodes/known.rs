//! What archives that are asked as one said of themselves.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::wire::Head;
use crate::cluster::Partition;
use crate::find::Times;
use crate::ledger::Answering;

/// An archive that was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// As it was named.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What archives said of themselves: while it is new, it is used for further questions.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub(super) since: Option<Instant>,
    pub(super) answering: Arc<Answering>,
    /// Of those that answered, by their places among all.
    pub(super) heads: Vec<(usize, Head)>,
    pub(super) times: Option<Arc<[Times]>>,
    pub(super) missing: Vec<Missing>,
}

impl Known {
    /// Since when; none if no archive has said anything.
    #[must_use]
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The place among all of the archive that answers for a site; none if a missing archive may have captured pages of it.
    #[must_use]
    pub fn answering(&self, site: &str) -> Option<usize> {
        let other = || self.answering.of(site).filter(|_| self.missing.is_empty());
        self.heads.get(self.answering.captured(site).or_else(other)?).map(|(place, _)| *place)
    }

    /// Where browsers find the application and the replay of the archive at a place, if it is a node that says so.
    #[must_use]
    pub fn origins(&self, place: usize) -> Option<&[String; 2]> {
        self.heads.iter().find(|(known, _)| *known == place)?.1.origins.as_ref()
    }

    /// The parts of clusters' webs that the archives have.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.heads.iter().filter_map(|(_, head)| head.partition.as_ref())
    }

    /// Times of captures of each archive, if all can be searched as of a time.
    #[must_use]
    pub fn times(&self) -> Option<&[Times]> {
        self.times.as_deref()
    }

    /// Archives that were left out.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}

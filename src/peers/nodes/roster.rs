//! What archives that are queried as one have reported about themselves.

use std::sync::Arc;
use std::time::Instant;

use archive_ask::find::CaptureTimes;
use archive_ask::query::UnreadRows;
use archive_books::cluster::Partition;
use archive_books::ledger::ResponsibleArchives;
use serde::Serialize;

use super::ask::AnswerHead;

/// An archive that was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// Name of the archive, as given by the user.
    pub name: String,
    /// Why it was left out.
    pub why: String,
}

impl Missing {
    /// Rows that could not be read, as a part that is missing from an answer.
    #[must_use]
    pub fn rows(unread: Option<UnreadRows>) -> Vec<Self> {
        let missing = |UnreadRows { rows, first }| Self {
            name: if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") },
            why: first,
        };
        unread.map(missing).into_iter().collect()
    }
}

/// What archives have reported about themselves. While it is recent, it is reused for further requests.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    pub(super) since: Option<Instant>,
    pub(super) answering: Arc<ResponsibleArchives>,
    /// Heads of the archives that answered, each with its index in the list that the user gave.
    pub(super) heads: Vec<(usize, AnswerHead)>,
    pub(super) times: Option<Arc<[CaptureTimes]>>,
    pub(super) missing: Vec<Missing>,
}

impl Roster {
    /// When it was collected; `None` if no archive has reported anything.
    #[must_use]
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Index, in the list that the user gave, of the archive that answers for a site; `None` if a missing archive may
    /// have captured pages of it.
    #[must_use]
    pub fn answering(&self, site: &str) -> Option<usize> {
        let other = || self.answering.of(site).filter(|_| self.missing.is_empty());
        self.heads.get(self.answering.captured(site).or_else(other)?).map(|(place, _)| *place)
    }

    /// Origins of the application and of the replay for browsers, if the archive at this index is a node that reports
    /// them.
    #[must_use]
    pub fn origins(&self, place: usize) -> Option<&[String; 2]> {
        self.heads.iter().find(|(known, _)| *known == place)?.1.origins.as_ref()
    }

    /// The cluster partitions that the archives hold.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.heads.iter().filter_map(|(_, head)| head.partition.as_ref())
    }

    /// Capture times of each archive, if all archives can be searched as of a time in the past.
    #[must_use]
    pub fn times(&self) -> Option<&[CaptureTimes]> {
        self.times.as_deref()
    }

    /// Archives that were left out.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}

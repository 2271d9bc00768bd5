//! Why nothing is due.

use archive_storage::State;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Choice, Survey, archive_prior};
use crate::ledger::{CreditError, Credits};

/// What keeps a refresh from fetching anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Pages that can be fetched again at some time.
    pub pages: u64,
    /// When the first of them may be; nothing if there is one that may be now.
    pub next: Option<DateTime<Utc>>,
}

impl Idle {
    /// Looks at all pages.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of(
        state: &State,
        credits: &Credits,
        choice: &Choice,
        now: DateTime<Utc>,
    ) -> Result<Self, CreditError> {
        let survey = Survey::new(state, credits, choice, archive_prior(state)?, now);
        let (mut pages, mut earliest) = (0, u32::MAX);
        survey.all(|_, visit| {
            pages += 1;
            earliest = earliest.min(visit.last_seen);
        })?;
        let shortest = (choice.rules.shortest_days() * super::SECONDS_PER_DAY) as i64;
        let next = DateTime::from_timestamp(i64::from(earliest), 0)
            .and_then(|time| time.checked_add_signed(TimeDelta::seconds(shortest)));
        Ok(Self { pages, next: next.filter(|next| *next > now) })
    }
}

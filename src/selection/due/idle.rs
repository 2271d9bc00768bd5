//! Why nothing is due.

use archive_storage::State;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Choice, SECONDS_PER_DAY, Survey};
use crate::ledger::{CreditError, Credits};
use crate::refresh::rate::RatePrior;

/// What keeps a refresh from fetching anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// There is no page that can be fetched again.
    NoPages,
    /// No page may be fetched again before.
    Until(DateTime<Utc>),
    /// Of so many pages that can be fetched again none is worth it.
    NoneWorth(u64),
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
        // Rates do not matter here.
        let survey = Survey::new(state, credits, choice, RatePrior::learned(&[]), now);
        let mut earliest: Option<u32> = None;
        for visit in state.visits() {
            let (page, visit) = visit?;
            // Most pages were fetched later than one that was found before them.
            if visit.captures > 0
                && earliest.is_none_or(|earliest| visit.last_seen < earliest)
                && survey.candidate(page, &state.page(page)?, &visit)?.is_some()
            {
                earliest = Some(visit.last_seen);
            }
        }
        let Some(earliest) = earliest else { return Ok(Self::NoPages) };
        let shortest = (choice.rules.shortest_days() * SECONDS_PER_DAY) as i64;
        let next = DateTime::from_timestamp(i64::from(earliest), 0)
            .and_then(|time| time.checked_add_signed(TimeDelta::seconds(shortest)));
        if let Some(next) = next.filter(|next| *next > now) {
            return Ok(Self::Until(next));
        }
        let mut pages = 0;
        survey.all(|_, _| pages += 1)?;
        Ok(Self::NoneWorth(pages))
    }
}

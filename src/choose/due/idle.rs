//! Why nothing is due.

use archive_books::ledger::CreditError;
use archive_math::refresh::rate::RatePrior;
use chrono::{DateTime, Utc};

use super::{DueArchive, DueSurvey, SECONDS_PER_DAY};

/// Why a refresh fetches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NothingDue {
    /// No page can be fetched again.
    NoPages,
    /// No page may be fetched again before this time.
    Until(DateTime<Utc>),
    /// None of this many pages that can be fetched again is worth a fetch.
    NoneWorth(u64),
}

impl NothingDue {
    /// Finds the reason by a pass over all pages of all archives.
    ///
    /// # Errors
    /// If the store fails.
    pub fn of(sources: &[DueArchive<'_>], now: DateTime<Utc>) -> Result<Self, CreditError> {
        // The result does not depend on rates.
        let surveys: Vec<DueSurvey<'_>> =
            sources.iter().map(|source| source.survey(RatePrior::learned(&[]), now)).collect();
        let shortest = sources.first().map_or(0.0, |source| source.choice.rules.shortest_days());
        let shortest = (shortest * SECONDS_PER_DAY) as i64;
        let mut earliest: Option<i64> = None;
        for survey in &surveys {
            for visit in survey.state.visits(0) {
                let (page, visit) = visit?;
                // Compare times first: it is cheap, and most pages were fetched later than an earlier page.
                let last = i64::from(visit.last_attempt);
                if visit.captures > 0
                    && survey.choice.asks(page)
                    && earliest.is_none_or(|earliest| last + shortest < earliest)
                    && let Some(candidate) = survey.candidate(page, &survey.state.page(page)?, &visit)?
                {
                    let next = last + shortest.max((candidate.retry * SECONDS_PER_DAY) as i64);
                    earliest = Some(earliest.map_or(next, |earliest| earliest.min(next)));
                }
            }
        }
        let Some(earliest) = earliest else { return Ok(Self::NoPages) };
        if let Some(next) = DateTime::from_timestamp(earliest, 0).filter(|next| *next > now) {
            return Ok(Self::Until(next));
        }
        let mut pages = 0;
        surveys.iter().try_for_each(|survey| {
            survey.all(|candidate, _| survey.choice.asks(candidate.page).then_some(()), |()| pages += 1)
        })?;
        Ok(Self::NoneWorth(pages))
    }
}

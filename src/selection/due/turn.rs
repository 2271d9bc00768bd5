//! When the turn of one page comes: what the refresh's policy says of it now, and how long it lets it wait in the long run.

use archive_storage::{State, UrlId};
use chrono::{DateTime, Utc};

use super::{Candidate, Choice, SECONDS_PER_DAY, Survey, archive_prior};
use crate::ledger::{CreditError, Credits};
use crate::refresh::rule::Rule;

/// Pages that share the budget in the computation; of more, every n-th, with its part of the budget.
const SHARING_MAX: usize = 1 << 12;

/// A policy that learns from all pages together is asked for their order in archives of at most so many fetched pages.
/// In larger ones pages are compared by their own rates.
const ORDERED_MAX: u64 = 1 << 15;

/// What is known of a page's next fetch.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::selection) struct Turn {
    /// The refresh's policy.
    pub(in crate::selection) policy: String,
    /// Changes a day by the page's own visits.
    pub(in crate::selection) changes_per_day: f64,
    /// The budget that this is worked out for, fetches a day.
    pub(in crate::selection) fetches_per_day: f64,
    /// Days from one fetch to the next under this budget; infinite for a page that is given up.
    pub(in crate::selection) interval: f64,
    /// Pages whose fetch is worth more now.
    pub(in crate::selection) before: u64,
    /// Pages that can be fetched again.
    pub(in crate::selection) of: u64,
}

/// The turn of `page` when refreshes fetch `fetches_per_day`, or else what the archive had a day so far; nothing for what cannot
/// be refreshed.
///
/// # Errors
/// When the store fails.
pub(in crate::selection) fn turn(
    state: &State,
    credits: &Credits,
    choice: &Choice,
    page: UrlId,
    fetches_per_day: Option<f64>,
    now: DateTime<Utc>,
) -> Result<Option<Turn>, CreditError> {
    let survey = Survey { state, credits, choice, prior: archive_prior(state)?, now };
    let Some(visit) = state.visit(page)? else { return Ok(None) };
    let Some(own) = survey.candidate(page, &visit)? else { return Ok(None) };
    let rules = &choice.rules;
    // Policies that go by due dates of their own have no rule; the oldest refresh there is stands for them.
    let by = rules.policy.rule().unwrap_or(Rule::Xyleme);
    let (mut pages, mut oldest) = (Vec::new(), now.timestamp());
    survey.all(|candidate, visit| {
        pages.push((candidate.weight, candidate.rate));
        oldest = oldest.min(i64::from(visit.first_seen));
    })?;
    let of = pages.len();
    let days = ((now.timestamp() - oldest) as f64 / SECONDS_PER_DAY).max(1.0);
    let per_day = fetches_per_day.unwrap_or(state.totals().captures as f64 / days);
    let step = of.div_ceil(SHARING_MAX).max(1);
    let sharing: Vec<(f64, f64)> = pages.into_iter().step_by(step).collect();
    let budget = per_day * sharing.len() as f64 / of.max(1) as f64;
    let shortest = rules.shortest_days();
    let price = by.price(&sharing, budget.max(f64::MIN_POSITIVE), shortest, 1.0);
    let before = match rules.policy.simple() {
        None if state.totals().fetched <= ORDERED_MAX => {
            let order = survey.learned(of)?;
            order.iter().position(|other| *other == page).unwrap_or(order.len())
        }
        _ => survey.ahead_of(&own, by)?,
    };
    Ok(Some(Turn {
        policy: rules.policy.to_string(),
        changes_per_day: own.rate,
        fetches_per_day: per_day,
        interval: own.rule(by).interval(own.weight, own.rate, price).max(shortest),
        before: before as u64,
        of: of as u64,
    }))
}

impl Survey<'_> {
    /// How many pages are worth more now than `own`, by their own rates.
    fn ahead_of(&self, own: &Candidate, by: Rule) -> Result<usize, CreditError> {
        let (own, mut before) = (own.value(by), 0);
        self.all(|candidate, _| before += usize::from(candidate.value(by) > own))?;
        Ok(before)
    }
}

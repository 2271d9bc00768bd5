//! When the turn of one page comes: what the refresh's policy says of it now, and how long it lets it wait in the long run.

use archive_storage::{Page, Store, UrlId, Visit};
use chrono::{DateTime, Utc};

use super::{Best, Choice, SECONDS_PER_DAY, Source, learned};
use crate::ledger::{AliasImportance, Credits};
use crate::prepared::{self, rates_of_others};
use crate::recorder::RecorderError;
use crate::refresh::budget::Rule;
use crate::refresh::rate::RatePrior;

/// Pages among whom the budget is shared.
const SHARING: usize = 1 << 10;

/// In archives of at most this many fetched pages all are compared, and a policy that learns from all together is asked for their
/// order. In larger ones a sample stands for all ([`prepared::sample`]): pages are compared by their own rates, and what is said of all
/// is an estimate.
const WHOLE_MAX: u32 = 1 << 12;

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
    /// Whether both numbers are estimated from a sample.
    pub(in crate::selection) is_estimate: bool,
}

/// The turn of `page` when refreshes fetch `fetches_per_day`, or else what the archive had a day so far; nothing for what cannot
/// be refreshed.
///
/// # Errors
/// When the store fails.
pub(in crate::selection) fn turn(
    store: &Store,
    credits: &Credits,
    choice: &Choice,
    page: UrlId,
    fetches_per_day: Option<f64>,
    now: DateTime<Utc>,
) -> Result<Option<Turn>, RecorderError> {
    let state = store.state();
    let Some(visit) = state.visit(page)? else { return Ok(None) };
    let (step, visits, aliases) = compared(store)?;
    let observed: Vec<_> =
        visits.iter().filter_map(|(_, page, visit)| rates_of_others(page, visit)).collect();
    let prior = RatePrior::learned(&observed);
    let mut survey = Source::alone(state, credits, choice, &[]).survey(prior, now);
    let Some(own) = survey.candidate(page, &state.page(page)?, &visit)? else { return Ok(None) };
    survey.aliases = aliases;
    let rules = &choice.rules;
    // Policies that go by due dates of their own have no rule; the oldest refresh there is stands for them.
    let by = rules.policy.rule().unwrap_or(Rule::Xyleme);
    let own_value = own.value(by);
    let (mut pages, mut oldest, mut ahead) = (Vec::new(), now.timestamp(), 0);
    for (page, record, visit) in &visits {
        let Some(candidate) = survey.candidate(*page, record, visit)? else { continue };
        pages.push((candidate.weight, candidate.rate));
        ahead += usize::from(candidate.value(by) > own_value);
        oldest = oldest.min(i64::from(visit.first_seen));
    }
    let of = pages.len();
    let days = ((now.timestamp() - oldest) as f64 / SECONDS_PER_DAY).max(1.0);
    let per_day = fetches_per_day.unwrap_or(state.totals().captures as f64 / days);
    let sharing: Vec<(f64, f64)> = pages.into_iter().step_by(of.div_ceil(SHARING).max(1)).collect();
    let budget = per_day * sharing.len() as f64 / (of * step).max(1) as f64;
    let shortest = rules.shortest_days();
    let price = by.price(&sharing, budget.max(f64::MIN_POSITIVE), shortest, 1.0);
    let before = match rules.policy.simple() {
        None if step == 1 => {
            let order = Best::of_all(learned::best(&[survey], of)?, of);
            order.iter().position(|(_, other)| *other == page).unwrap_or(order.len())
        }
        _ => ahead * step,
    };
    Ok(Some(Turn {
        policy: rules.policy.to_string(),
        changes_per_day: own.rate,
        fetches_per_day: per_day,
        interval: own.rule(by).interval(own.weight, own.rate, price).max(shortest),
        before: before as u64,
        of: (of * step) as u64,
        is_estimate: step > 1,
    }))
}

/// The visits that a page's own is compared with, of how many each stands, and what is known of their aliases: of an archive that
/// was closed, a sample is ready.
fn compared(store: &Store) -> Result<Compared, RecorderError> {
    let state = store.state();
    let is_large = state.visit_count() > WHOLE_MAX;
    let step = if is_large { prepared::sample_step(state) as usize } else { 1 };
    if is_large && let Some(sample) = prepared::sample(store)? {
        let aliases = sample.iter().filter_map(|row| row.alias.map(|importance| (row.url, importance)));
        let aliases = AliasImportance::known(aliases.collect());
        return Ok((step, sample.into_iter().map(|row| (row.url, row.page, row.visit)).collect(), aliases));
    }
    let visits = state.visits_with_pages((0..).step_by(step)).collect::<Result<_, _>>()?;
    Ok((step, visits, AliasImportance::default()))
}

type Compared = (usize, Vec<(UrlId, Page, Visit)>, AliasImportance);

//! When the turn of a page comes: what the refresh's policy says of it now, and how long it lets it wait in the long run.

use std::sync::Arc;

use archive_storage::{Page, State, StateError, Store, UrlId, Visit};
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Best, Candidate, Choice, Lookup, RefreshRules, SECONDS_PER_DAY, Source, Survey, WeightError, Weights,
    learned,
};
use crate::decisions::Decisions;
use crate::ledger::{AliasImportance, CreditError, Credits};
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
    let compared = compared(store)?;
    let mut survey = Source::alone(state, credits, choice, &[]).survey(compared.prior(), now);
    let Some(own) = survey.candidate(page, &state.page(page)?, &visit)? else { return Ok(None) };
    let (market, others) = Market::of(&mut survey, &compared, fetches_per_day)?;
    let (rules, step, of) = (&choice.rules, compared.step, others.len());
    let before = match rules.policy.simple() {
        None if step == 1 => {
            let order = Best::of_all(learned::best(&[survey], of)?, of);
            order.iter().position(|(_, other)| *other == page).unwrap_or(order.len())
        }
        _ => {
            let own_value = own.value(market.rule);
            others.iter().filter(|other| other.value(market.rule) > own_value).count() * step
        }
    };
    Ok(Some(Turn {
        policy: rules.policy.to_string(),
        changes_per_day: own.rate,
        fetches_per_day: market.fetches_per_day,
        interval: market.interval(&own),
        before: before as u64,
        of: (of * step) as u64,
        is_estimate: step > 1,
    }))
}

/// What a fetch costs where all pages share a budget.
#[derive(Clone, Copy, Debug)]
struct Market {
    rule: Rule,
    fetches_per_day: f64,
    price: f64,
    /// Days that pass before any page is fetched again.
    shortest: f64,
}

impl Market {
    /// That of the pages that are compared, and these pages.
    fn of(
        survey: &mut Survey<'_>,
        compared: &Compared,
        fetches_per_day: Option<f64>,
    ) -> Result<(Self, Vec<Candidate>), CreditError> {
        survey.lookup = Arc::clone(&compared.lookup);
        let (now, rules) = (survey.now.timestamp(), &survey.choice.rules);
        let (mut others, mut oldest) = (Vec::new(), now);
        for (page, record, visit) in &compared.visits {
            let Some(candidate) = survey.candidate(*page, record, visit)? else { continue };
            others.push(candidate);
            oldest = oldest.min(i64::from(visit.first_seen));
        }
        let of = others.len();
        let days = ((now - oldest) as f64 / SECONDS_PER_DAY).max(1.0);
        let fetches_per_day = fetches_per_day.unwrap_or(survey.state.totals().captures as f64 / days);
        let sharing: Vec<(f64, f64)> = others
            .iter()
            .step_by(of.div_ceil(SHARING).max(1))
            .map(|candidate| (candidate.weight, candidate.rate))
            .collect();
        let budget = fetches_per_day * sharing.len() as f64 / (of * compared.step).max(1) as f64;
        // Policies that go by due dates of their own have no rule; the oldest refresh there is stands for them.
        let rule = rules.policy.rule().unwrap_or(Rule::Xyleme);
        let shortest = rules.shortest_days();
        let price = rule.price(&sharing, budget.max(f64::MIN_POSITIVE), shortest, 1.0);
        Ok((Self { rule, fetches_per_day, price, shortest }, others))
    }

    /// Days from one fetch of a page to the next; infinite for one that is given up.
    fn interval(&self, page: &Candidate) -> f64 {
        let interval = page.rule(self.rule).interval(page.weight, page.rate, self.price);
        interval.max(self.shortest)
    }
}

/// Why it is not known when pages are due.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimetableError {
    /// The archive cannot be read.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The books cannot be read.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// What pages weigh cannot be read.
    #[error(transparent)]
    Weight(#[from] WeightError),
}

impl Weights {
    /// As an archive's last refresh weighed pages, and by what people decided until now.
    ///
    /// # Errors
    /// When any of it cannot be read.
    pub fn kept(store: &Store) -> Result<Self, TimetableError> {
        let weights = Self::read(store.path(), &RefreshRules::kept(store.state())?.weight)?;
        let decisions = Decisions::read(store.path()).map_err(RecorderError::from)?;
        Ok(weights.with_decisions(store.state(), decisions)?)
    }
}

/// When each page is due, if refreshes go on as the archive has been fetched so far.
#[derive(Debug)]
pub struct Timetable {
    credits: Credits,
    choice: Choice,
    lookup: Arc<Lookup>,
    prior: RatePrior,
    market: Market,
    now: DateTime<Utc>,
}

impl Timetable {
    /// That of an archive, by its own rules and by what people decided.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn of(store: &Store, now: DateTime<Utc>) -> Result<Self, TimetableError> {
        let state = store.state();
        let choice = Choice::new(RefreshRules::kept(state)?, Weights::kept(store)?).in_archive(store.path());
        let credits = Credits::open(state)?;
        let compared = compared(store)?;
        let prior = compared.prior();
        let mut survey = Source::alone(state, &credits, &choice, &[]).survey(prior, now);
        let (market, _) = Market::of(&mut survey, &compared, None)?;
        Ok(Self { lookup: Arc::default(), prior, market, now, credits, choice })
    }

    /// Looks up the pages of its archive.
    #[must_use]
    pub fn turns<'a>(&'a self, state: &'a State) -> Turns<'a> {
        let Self { credits, choice, prior, now, .. } = self;
        let lookup = Arc::clone(&self.lookup);
        Turns {
            survey: Survey { state, credits, lookup, choice, prior: *prior, now: *now },
            market: self.market,
        }
    }
}

/// When the pages of an archive are due.
pub struct Turns<'a> {
    survey: Survey<'a>,
    market: Market,
}

impl Turns<'_> {
    /// When a page is due; nothing for what cannot be refreshed, and for a page that is given up.
    ///
    /// # Errors
    /// When the store fails.
    pub fn due(
        &self,
        (page, record): (UrlId, &Page),
        visit: &Visit,
    ) -> Result<Option<DateTime<Utc>>, CreditError> {
        let candidate = self.survey.candidate(page, record, visit)?;
        Ok(candidate.and_then(|candidate| due(visit, self.market.interval(&candidate))))
    }

    /// Prepares for reading all visits.
    ///
    /// # Errors
    /// When the store fails.
    pub fn expect_all(&self) -> Result<(), StateError> {
        self.survey.expect_all()
    }

    /// The visits of a part of all ([`State::visit_parts`]), of whose pages what [`Turns::due`] takes is known.
    pub fn visits(&self, first: u32) -> impl Iterator<Item = Result<(UrlId, Page, Visit), StateError>> + '_ {
        self.survey.visits(first)
    }
}

/// When a page is due whose turn comes every so many days; nothing for one that is given up.
pub(in crate::selection) fn due(visit: &Visit, interval: f64) -> Option<DateTime<Utc>> {
    let last = DateTime::from_timestamp(i64::from(visit.last_seen), 0)?;
    let wait = TimeDelta::try_milliseconds((interval * SECONDS_PER_DAY * 1000.0).min(1e17) as i64)?;
    interval.is_finite().then(|| last.checked_add_signed(wait))?
}

/// The visits that a page's own is compared with.
struct Compared {
    /// Of how many each stands.
    step: usize,
    visits: Vec<(UrlId, Page, Visit)>,
    /// What is known of their aliases.
    lookup: Arc<Lookup>,
}

impl Compared {
    fn prior(&self) -> RatePrior {
        let observed = self.visits.iter().filter_map(|(_, page, visit)| rates_of_others(page, visit));
        RatePrior::learned(&observed.collect::<Vec<_>>())
    }
}

/// What pages of an archive are compared with: all of its visits, or of a large archive a sample, which is ready if the archive was
/// closed.
fn compared(store: &Store) -> Result<Compared, RecorderError> {
    let state = store.state();
    let is_large = state.visit_count() > WHOLE_MAX;
    let step = if is_large { prepared::sample_step(state) as usize } else { 1 };
    if is_large && let Some(sample) = prepared::sample(store)? {
        let aliases = sample.iter().filter_map(|row| row.alias.map(|importance| (row.url, importance)));
        let lookup = Arc::new(Lookup::of_aliases(AliasImportance::known(aliases.collect())));
        let visits = sample.into_iter().map(|row| (row.url, row.page, row.visit)).collect();
        return Ok(Compared { step, visits, lookup });
    }
    let visits = state.visits_with_pages((0..).step_by(step)).collect::<Result<_, _>>()?;
    Ok(Compared { step, visits, lookup: Arc::default() })
}

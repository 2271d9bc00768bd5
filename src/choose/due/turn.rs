//! When a page is due: its rank in a refresh now, and its interval in the long run.

use std::sync::Arc;

use archive_base::decisions::Decisions;
use archive_base::error::Failure;
use archive_books::ledger::{AliasImportance, CreditError, Credits, REQUISITE_DEPTH_MAX};
use archive_books::prepared::{self, rates_of_others};
use archive_math::refresh::budget::BudgetRule;
use archive_math::refresh::rate::RatePrior;
use archive_storage::{Page, State, StateError, Store, UrlId, Visit};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{
    DueArchive, DueCandidate, DueSurvey, Lookup, Picks, RefreshChoice, RefreshRules, SECONDS_PER_DAY,
    Weights, failing, learned,
};
use crate::requisites::{PartTurn, is_part};
use crate::utc;

/// Maximum number of pages in the computation of the price.
const SHARING: usize = 1 << 10;

/// Up to this many fetched pages, all are compared, and policies that learn from all pages are asked for their order.
/// In larger archives a sample stands for all pages ([`prepared::sample`]): pages are compared by their own rates, and
/// the numbers are estimates.
const WHOLE_MAX: u32 = 1 << 12;

/// When to fetch a page again, by the policy of the refreshes of the archive.
#[derive(Debug, Clone, Serialize)]
pub struct NextVisit {
    /// The policy.
    pub policy: String,
    /// Changes per day, estimated from the visits of the page.
    pub changes_per_day: f64,
    /// The budget that this assumes, in fetches per day.
    pub fetches_per_day: f64,
    /// Days between fetches in the long run: the age at which the policy's rule values the copy as high as the last
    /// page that the budget covers. `None` for a page that is given up.
    pub interval_days: Option<f64>,
    /// Since when its attempts have brought nothing, if so. Then the interval is the pause until the next attempt, which
    /// grows with every one.
    #[serde(serialize_with = "utc")]
    pub failing_since: Option<DateTime<Utc>>,
    /// Whether the page is given up because its weight is below the floor of the rules.
    pub below_floor: bool,
    /// When it is due: `interval_days` after its last attempt. `None` for a page that is given up.
    #[serde(serialize_with = "utc")]
    pub due: Option<DateTime<Utc>>,
    /// Number of pages whose fetch has a higher value now.
    pub before: u64,
    /// Number of pages that can be fetched again.
    pub of: u64,
    /// Whether `before` and `of` are estimated from a sample, as in archives of more than 4096 fetched pages.
    pub estimated: bool,
    /// For a part of pages, why it is asked when it is; the numbers above are then those of the page.
    pub part: Option<PartVisit>,
}

/// Why a part of pages is asked again when it is.
#[derive(Debug, Clone, Serialize)]
pub struct PartVisit {
    /// The page that led to it, with which it is asked; other pages that have it may be fetched earlier.
    pub page: String,
    /// Number of days after its last fetch before which it is not asked: it is probably unchanged, or still missing.
    pub shortest_days: f64,
    /// Whether it was not found at its last fetch, so that this number grows with each request.
    pub missing: bool,
}

/// What decides when pages are due.
#[derive(Clone, Copy)]
pub(crate) struct Outlook<'a> {
    pub store: &'a Store,
    pub credits: &'a Credits,
    pub choice: &'a RefreshChoice,
    /// The budget of refreshes; by default the past daily rate of the archive.
    pub fetches_per_day: Option<f64>,
    pub now: DateTime<Utc>,
}

impl Outlook<'_> {
    /// Works out when `page` is due; `None` if it cannot be refreshed. A part of pages is due with the page that led to
    /// it.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) fn of(&self, page: UrlId) -> Result<Option<NextVisit>, Failure> {
        let state = self.store.state();
        let own = self.of_page(page)?;
        if own.is_some() || !is_part(&state.page(page)?) {
            return Ok(own);
        }
        let Some(visit) = state.visit(page)? else { return Ok(None) };
        let Some(with) = page_of_part(state, page)? else { return Ok(None) };
        let Some(mut next) = self.of_page(with)? else { return Ok(None) };
        let PartTurn { days, missing } = PartTurn::of(&visit);
        let shortest_days = days.max(self.choice.rules.shortest_days());
        next.due =
            next.due.and_then(|with| with_page(with, next.interval_days?, due(&visit, shortest_days)?));
        next.interval_days = next.interval_days.map(|days| days.max(shortest_days));
        next.part = Some(PartVisit { page: state.url(with)?, shortest_days, missing });
        Ok(Some(next))
    }

    fn of_page(&self, page: UrlId) -> Result<Option<NextVisit>, Failure> {
        let Self { store, credits, choice, fetches_per_day, now } = *self;
        let state = store.state();
        let Some(visit) = state.visit(page)? else { return Ok(None) };
        let compared = compared(store)?;
        let mut survey = DueArchive::alone(state, credits, choice, &[]).survey(compared.prior(), now);
        let Some(own) = survey.weighed(page, &state.page(page)?, &visit)? else { return Ok(None) };
        let (market, others) = Market::of(&mut survey, &compared, fetches_per_day)?;
        let (rules, step, of) = (&choice.rules, compared.step, others.len());
        let before = match rules.policy.simple() {
            None if step == 1 => {
                let order = Picks::of_all(learned::best(&[survey], of)?, of, 1.0);
                order.iter().position(|(_, other)| *other == page).unwrap_or(order.len())
            }
            _ => {
                let own_value = own.value(market.rule);
                others.iter().filter(|other| other.value(market.rule) > own_value).count() * step
            }
        };
        let below_floor = own.is_below(rules.floor);
        let interval = if below_floor { f64::INFINITY } else { market.interval(&own) };
        Ok(Some(NextVisit {
            policy: rules.policy.to_string(),
            changes_per_day: own.rate,
            fetches_per_day: market.fetches_per_day,
            interval_days: Some(interval).filter(|days| days.is_finite()),
            failing_since: Some(visit.failing_since)
                .filter(|since| *since > 0)
                .and_then(|since| DateTime::from_timestamp(i64::from(since), 0)),
            below_floor,
            due: due(&visit, interval),
            before: before as u64,
            of: (of * step) as u64,
            estimated: step > 1,
            part: None,
        }))
    }
}

/// Returns the page that led to a part, which may have led to others between them.
fn page_of_part(state: &State, part: UrlId) -> Result<Option<UrlId>, StateError> {
    let mut step = part;
    for _ in 0..=REQUISITE_DEPTH_MAX {
        let page = state.page(step)?;
        if step != part && !is_part(&page) {
            return Ok(Some(step));
        }
        let Some(before) = page.via else { return Ok(None) };
        step = before;
    }
    Ok(None)
}

/// Returns the first fetch of a page, at `due` and then every `interval` days, that is not before `earliest`.
fn with_page(due: DateTime<Utc>, interval: f64, earliest: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let early = (earliest - due).as_seconds_f64() / SECONDS_PER_DAY;
    let days = (early / interval.max(f64::MIN_POSITIVE)).ceil().max(0.0) * interval;
    later(due, days)
}

/// The price of a fetch when all pages share a budget.
#[derive(Clone, Copy, Debug)]
struct Market {
    rule: BudgetRule,
    fetches_per_day: f64,
    price: f64,
    /// Minimum number of days between two fetches of a page.
    shortest: f64,
}

impl Market {
    /// Computes the price for the compared pages, and returns them as candidates.
    fn of(
        survey: &mut DueSurvey<'_>,
        compared: &ComparedVisits,
        fetches_per_day: Option<f64>,
    ) -> Result<(Self, Vec<DueCandidate>), CreditError> {
        survey.lookup = Arc::clone(&compared.lookup);
        let (now, rules) = (survey.now.timestamp(), &survey.choice.rules);
        let (mut others, mut oldest, mut captures) = (Vec::new(), now, 0.0);
        for (page, record, visit) in &compared.visits {
            let Some(candidate) = survey.candidate(*page, record, visit)? else { continue };
            others.push(candidate);
            oldest = oldest.min(i64::from(visit.first_seen));
            captures += f64::from(visit.captures) * compared.step as f64;
        }
        let of = others.len();
        let days = ((now - oldest) as f64 / SECONDS_PER_DAY).max(1.0);
        // What brought nothing gets a share of its own.
        let fetches_per_day = fetches_per_day.unwrap_or(captures / days);
        let sharing: Vec<(f64, f64)> = others
            .iter()
            .filter(|candidate| candidate.retry == 0.0)
            .step_by(of.div_ceil(SHARING).max(1))
            .map(|candidate| (candidate.weight, candidate.rate))
            .collect();
        let budget = fetches_per_day * sharing.len() as f64 / (of * compared.step).max(1) as f64;
        // Policies with due dates of their own have no rule; Xyleme's, the oldest of the refresh rules, stands in for
        // it.
        let rule = rules.policy.rule().unwrap_or(BudgetRule::Xyleme);
        let shortest = rules.shortest_days();
        let price = rule.price(&sharing, budget.max(f64::MIN_POSITIVE), shortest, 1.0);
        Ok((Self { rule, fetches_per_day, price, shortest }, others))
    }

    /// Returns the days between fetches of a page; infinite for one that is given up.
    fn interval(&self, page: &DueCandidate) -> f64 {
        if page.retry > 0.0 {
            return page.retry.max(self.shortest);
        }
        page.interval(self.rule, self.price).max(self.shortest)
    }
}

impl Weights {
    /// Returns the weights of the last refresh of the archive, with people's current decisions.
    ///
    /// # Errors
    /// If any part cannot be read.
    pub fn kept(store: &Store) -> Result<Self, Failure> {
        let weights = Self::read(store.path(), &RefreshRules::kept(store.state())?.weight)?;
        let decisions = Decisions::read(store.path())?;
        Ok(weights.with_decisions(store.state(), decisions)?)
    }
}

/// Computes when each page is due if refreshes continue at the past rate of the archive.
#[derive(Debug)]
pub struct Timetable {
    credits: Credits,
    choice: RefreshChoice,
    lookup: Arc<Lookup>,
    prior: RatePrior,
    market: Market,
    now: DateTime<Utc>,
}

impl Timetable {
    /// Prepares a timetable by the rules of the archive and people's decisions.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn of(store: &Store, now: DateTime<Utc>) -> Result<Self, Failure> {
        let state = store.state();
        let choice =
            RefreshChoice::new(RefreshRules::kept(state)?, Weights::kept(store)?).in_archive(store.path());
        let credits = Credits::open(state)?;
        let compared = compared(store)?;
        let prior = compared.prior();
        let mut survey = DueArchive::alone(state, &credits, &choice, &[]).survey(prior, now);
        let (market, _) = Market::of(&mut survey, &compared, None)?;
        Ok(Self { lookup: Arc::default(), prior, market, now, credits, choice })
    }

    /// Returns how many pages bring nothing now, and how many attempts refreshes of the next `days` make for them.
    ///
    /// # Errors
    /// If the store fails.
    pub fn retries(&self, state: &State, days: f64) -> Result<(u64, u64), CreditError> {
        let turns = self.turns(state);
        let (mut pages, mut attempts) = (0, 0);
        for known in state.visits_with_pages(0..) {
            let (id, page, visit) = known?;
            if visit.failing_since > 0
                && let Some(candidate) = turns.survey.candidate(id, &page, &visit)?
            {
                pages += 1;
                let ended = failing(&page, &visit, candidate.weight);
                attempts += ended.map_or(0, |ended| ended.attempts(candidate.age, days));
            }
        }
        Ok((pages, attempts))
    }

    /// Returns the due times of the pages of the archive.
    #[must_use]
    pub fn turns<'a>(&'a self, state: &'a State) -> DueTimes<'a> {
        let Self { credits, choice, prior, now, .. } = self;
        let lookup = Arc::clone(&self.lookup);
        DueTimes {
            survey: DueSurvey { state, credits, lookup, choice, prior: *prior, now: *now },
            market: self.market,
        }
    }
}

/// The due times of the pages of an archive.
pub struct DueTimes<'a> {
    survey: DueSurvey<'a>,
    market: Market,
}

impl DueTimes<'_> {
    /// Returns when a page is due; `None` if it cannot be refreshed or is given up.
    ///
    /// # Errors
    /// If the store fails.
    pub fn due(
        &self,
        (page, record): (UrlId, &Page),
        visit: &Visit,
    ) -> Result<Option<DateTime<Utc>>, CreditError> {
        if let Some(candidate) = self.survey.candidate(page, record, visit)? {
            return Ok(due(visit, self.market.interval(&candidate)));
        }
        let state = self.survey.state;
        if !is_part(record) {
            return Ok(None);
        }
        let Some(with) = page_of_part(state, page)? else { return Ok(None) };
        let Some(of_page) = state.visit(with)? else { return Ok(None) };
        let candidate = self.survey.candidate(with, &state.page(with)?, &of_page)?;
        let Some(interval) = candidate.map(|candidate| self.market.interval(&candidate)) else {
            return Ok(None);
        };
        let own = PartTurn::of(visit).days.max(self.market.shortest);
        Ok(due(&of_page, interval).and_then(|with| with_page(with, interval, due(visit, own)?)))
    }

    /// Prepares for reading all visits.
    ///
    /// # Errors
    /// If the store fails.
    pub fn expect_all(&self) -> Result<(), StateError> {
        self.survey.expect_all()
    }

    /// Returns the visits of one part ([`State::visit_parts`]), with pages that have the fields that [`DueTimes::due`]
    /// needs.
    pub fn visits(&self, first: u32) -> impl Iterator<Item = Result<(UrlId, Page, Visit), StateError>> + '_ {
        self.survey.visits(first)
    }
}

/// Returns when a page with this interval in days is due; `None` for one that is given up.
fn due(visit: &Visit, interval: f64) -> Option<DateTime<Utc>> {
    later(DateTime::from_timestamp(i64::from(visit.last_attempt), 0)?, interval)
}

/// Returns the time a number of days after `time`; `None` if there is none.
fn later(time: DateTime<Utc>, days: f64) -> Option<DateTime<Utc>> {
    let wait = TimeDelta::try_milliseconds((days * SECONDS_PER_DAY * 1000.0).min(1e17) as i64)?;
    days.is_finite().then(|| time.checked_add_signed(wait))?
}

/// The visits that a page is compared with.
struct ComparedVisits {
    /// Number of visits that each stands for.
    step: usize,
    visits: Vec<(UrlId, Page, Visit)>,
    /// The importance of the aliases among them.
    lookup: Arc<Lookup>,
}

impl ComparedVisits {
    fn prior(&self) -> RatePrior {
        let observed = self.visits.iter().filter_map(|(_, page, visit)| rates_of_others(page, visit));
        RatePrior::learned(&observed.collect::<Vec<_>>())
    }
}

/// Returns all visits of an archive, or a sample of a large one. The sample is ready if the archive was closed
/// properly.
fn compared(store: &Store) -> Result<ComparedVisits, Failure> {
    let state = store.state();
    let is_large = state.visit_count() > WHOLE_MAX;
    let step = if is_large { prepared::sample_step(state) as usize } else { 1 };
    if is_large && let Some(sample) = prepared::sample(store)? {
        let aliases = sample.iter().filter_map(|row| row.alias.map(|importance| (row.url, importance)));
        let lookup = Arc::new(Lookup::of_aliases(AliasImportance::known(aliases.collect())));
        let visits = sample.into_iter().map(|row| (row.url, row.page, row.visit)).collect();
        return Ok(ComparedVisits { step, visits, lookup });
    }
    let visits = state.visits_with_pages((0..).step_by(step)).collect::<Result<_, _>>()?;
    Ok(ComparedVisits { step, visits, lookup: Arc::default() })
}

#[cfg(test)]
mod tests {
    use archive_storage::UrlId;

    use super::{DueCandidate, Market};
    use archive_math::refresh::budget::BudgetRule;

    #[test]
    fn nothing_is_fetched_before_the_shortest_interval() {
        let page = DueCandidate {
            page: UrlId(0),
            weight: 1.0,
            rate: 1.0,
            age: 0.0,
            announced: 0.0,
            signals: false,
            retry: 0.0,
        };
        for rule in BudgetRule::ALL {
            for price in [0.0, 1e-6] {
                let market = Market { rule, fetches_per_day: 1e6, price, shortest: 0.5 };
                assert_eq!(market.interval(&page), 0.5, "{rule:?} at {price}");
            }
        }
    }
}

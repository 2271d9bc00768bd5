//! Which pages a refresh fetches: those with the highest values by the [`RefreshRules`] of the archive.
//!
//! Rules for single pages (`uniform`, `xyleme`, `chogm`, …) rank by weight, change rate and age alone; one pass over
//! the visits keeps the best. Policies that learn from all pages together use the captures (`learned`). Either way the
//! choice is a function of the state and the time: no data is kept between runs that a crash could lose. In a large
//! archive only pages in due folders are considered (`folders`). Announcements by a sitemap, feed or site master count
//! as expected changes. Several archives ([`DueArchive`]) are treated as one.

mod decisions;
mod folders;
mod idle;
mod learned;
mod lookup;
mod rules;
mod turn;
mod unread;

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_books::ledger::{
    CreditError, Credits, Vanished, announcement_trust, page_flags as flags, part_of,
};
use archive_books::prepared::{archive_prior, is_signal};
use archive_math::refresh::budget::BudgetRule;
use archive_math::refresh::rate::{ChangeObservations, RatePrior};
use archive_math::refresh::retry::{self, Failing};
use archive_storage::{Page, ROWS_TOGETHER, State, StateError, UrlId, Visit};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

pub use idle::NothingDue;
use lookup::Lookup;
pub use rules::{RefreshRules, Weighing, WeightError, Weights};
pub(super) use turn::Outlook;
pub use turn::{DueTimes, NextVisit, PartVisit, Timetable};
pub use unread::Discovery;
pub(super) use unread::undiscovered;

/// Number of pages per parallel task, of those that are read together.
const PAGES_OF_PART: usize = 1 << 12;

/// Parts of the visits processed per processor at a time; their results wait in memory.
const PARTS_PER_PROCESSOR: usize = 2;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Value of fetching a redirect or a duplicate again, as a share of the value of the page that it stands for: the fetch
/// shows whether it still does, and nothing of that page's content.
const ALIAS_SHARE: f64 = 0.1;

/// The rule for sitemaps and feeds. They are fetched for what they say about other pages, which is worth more the
/// longer ago the last fetch was. A rule that gives up pages that change too often does not fit them.
const SIGNAL_RULE: BudgetRule = BudgetRule::Harmonic;

/// From this many fetched pages on, pages that will be due are kept in folders, so that a run need not read all pages.
pub const FOLDERS_FROM: u64 = 1 << 18;

/// Maximum number of pages kept in memory, at 40 bytes each, between choosing and filling folders; beyond that all are
/// read again.
const KEPT_MAX: usize = 1 << 21;

/// Approximate number of visits in a sample that tells pages from their parts.
const SHARE_SAMPLE: usize = 1 << 12;

/// The file of due folders, next to the state from which they are derived.
const FOLDERS_FILE: &str = "state/due";

/// How a refresh chooses: its rules and its page weights.
#[derive(Debug, Default)]
pub struct RefreshChoice {
    /// The refresh rules.
    pub rules: RefreshRules,
    /// The page weights.
    pub weights: Weights,
    /// The folder of the archive, if prepared data may be read from it.
    archive: Option<PathBuf>,
    /// Number of fetched pages from which on due folders are kept; without it each choice reads all pages.
    folders_from: Option<u64>,
    /// The only pages that are chosen; `None` for all.
    only: Option<HashSet<UrlId>>,
}

impl RefreshChoice {
    /// Uses these rules and weights, with a pass over all pages.
    #[must_use]
    pub fn new(rules: RefreshRules, weights: Weights) -> Self {
        Self { rules, weights, archive: None, folders_from: None, only: None }
    }

    /// Uses the prepared data of the archive in this folder.
    #[must_use]
    pub fn in_archive(self, archive: &Path) -> Self {
        Self { archive: Some(archive.to_owned()), ..self }
    }

    /// Also keeps due folders in the archive from this many fetched pages on, usually [`FOLDERS_FROM`].
    #[must_use]
    pub fn with_folders(self, archive: &Path, from: u64) -> Self {
        Self { folders_from: Some(from), ..self.in_archive(archive) }
    }

    /// Chooses among these pages only. Due folders, which are of all pages, are then neither read nor filled.
    #[must_use]
    pub fn among(self, only: HashSet<UrlId>) -> Self {
        Self { only: Some(only), folders_from: None, ..self }
    }

    /// Whether a page may be chosen.
    pub(super) fn asks(&self, page: UrlId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&page))
    }
}

/// One of several archives that are treated as one.
#[derive(Debug, Clone, Copy)]
pub struct DueArchive<'a> {
    /// Its state.
    pub state: &'a State,
    /// Its ledger.
    pub credits: &'a Credits,
    /// How to choose; the rules are the same for all sources.
    pub choice: &'a RefreshChoice,
    /// Its pages that somebody waits for.
    pub awaited: &'a [UrlId],
    /// For each of its sites, the index of the archive that answers for it ([`archive_books::ledger::answering`]); empty for a
    /// single archive.
    pub answering: &'a [usize],
}

impl<'a> DueArchive<'a> {
    /// A single archive.
    #[must_use]
    pub fn alone(
        state: &'a State,
        credits: &'a Credits,
        choice: &'a RefreshChoice,
        awaited: &'a [UrlId],
    ) -> Self {
        Self { state, credits, choice, awaited, answering: &[] }
    }

    fn survey(self, prior: RatePrior, now: DateTime<Utc>) -> DueSurvey<'a> {
        let Self { state, credits, choice, .. } = self;
        DueSurvey { state, credits, lookup: Arc::default(), choice, prior, now }
    }

    /// Whether the archive at index `place` answers for the site of a page.
    fn answers(&self, place: usize, page: &Page) -> Result<bool, CreditError> {
        if self.answering.is_empty() {
            return Ok(true);
        }
        let site = self.state.host(page.host)?.site;
        Ok(self.answering.get(site.index()).is_none_or(|answering| *answering == place))
    }
}

/// Index of the source, and a page of it.
pub(super) type SourcePage = (usize, UrlId);

/// A page that could be refreshed, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScoredPage {
    score: f64,
    page: UrlId,
}

impl Eq for ScoredPage {}

impl PartialOrd for ScoredPage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoredPage {
    fn cmp(&self, other: &Self) -> Ordering {
        // On a tie the page that was found first is better.
        self.score.total_cmp(&other.score).then_with(|| other.page.cmp(&self.page))
    }
}

/// Collects the pages with the highest scores, at most `room`.
struct TopScores {
    room: usize,
    /// The best so far, and others, fewer than twice `room` in total.
    scored: Vec<ScoredPage>,
    /// The worst of the best at the last cut.
    last: Option<ScoredPage>,
}

impl TopScores {
    fn new(room: usize) -> Self {
        Self { room, scored: Vec::new(), last: None }
    }

    fn offer(&mut self, score: f64, page: UrlId) {
        let scored = ScoredPage { score, page };
        if self.room == 0 || self.last.is_some_and(|last| scored < last) {
            return;
        }
        self.scored.push(scored);
        if self.scored.len() >= self.room.saturating_mul(2) {
            self.cut();
        }
    }

    /// Drops all but the best.
    fn cut(&mut self) {
        if self.scored.len() > self.room && self.room > 0 {
            let (_, last, _) = self.scored.select_nth_unstable_by(self.room - 1, |a, b| b.cmp(a));
            self.last = Some(*last);
            self.scored.truncate(self.room);
        }
    }

    /// Returns the lowest score among the best; `None` while there is room.
    fn lowest(&mut self) -> Option<f64> {
        self.cut();
        let last = self.scored.iter().min().filter(|_| self.scored.len() == self.room);
        last.map(|last| last.score)
    }

    /// Returns the best pages, unordered.
    fn into_pages(mut self) -> impl Iterator<Item = UrlId> {
        self.cut();
        self.scored.into_iter().map(|scored| scored.page)
    }

    /// Merges the best of all sources, the highest score first.
    fn of_all(sources: Vec<Self>, room: usize) -> Vec<SourcePage> {
        let scored = |(place, mut best): (usize, Self)| {
            best.cut();
            best.scored.into_iter().map(move |scored| (scored, Reverse(place)))
        };
        let mut pages: Vec<_> = sources.into_iter().enumerate().flat_map(scored).collect();
        pages.sort_by(|a, b| b.cmp(a));
        pages.truncate(room);
        pages.into_iter().map(|(scored, Reverse(place))| (place, scored.page)).collect()
    }
}

/// The best pages to fetch: of those whose content is there, and of those that brought nothing.
struct Picks {
    there: TopScores,
    ended: TopScores,
}

impl Picks {
    fn new(room: usize) -> Self {
        Self { there: TopScores::new(room), ended: TopScores::new(room) }
    }

    /// Offers a page with its value by the policy.
    fn offer(&mut self, value: f64, candidate: &DueCandidate) {
        match candidate.retry > 0.0 {
            true => self.ended.offer(candidate.value(SIGNAL_RULE), candidate.page),
            false => self.there.offer(value, candidate.page),
        }
    }

    /// Returns the best pages of all sources, at most `budget`. Pages that brought nothing get what others leave, and a
    /// small share in any case; `chance`, from 0 to 1, rounds it.
    fn of_all(sources: Vec<Self>, budget: usize, chance: f64) -> Vec<SourcePage> {
        let (there, ended): (Vec<_>, Vec<_>) =
            sources.into_iter().map(|Self { there, ended }| (there, ended)).unzip();
        let mut pages = TopScores::of_all(there, budget);
        let share = budget as f64 * retry::SHARE;
        let reserved = share as usize + usize::from(chance < share.fract());
        let ended = TopScores::of_all(ended, reserved.max(budget - pages.len()));
        pages.truncate(budget - ended.len());
        pages.extend(ended);
        pages
    }
}

/// What is known about a page that could be fetched again.
#[derive(Clone, Copy)]
struct DueCandidate {
    page: UrlId,
    weight: f64,
    /// Changes per day.
    rate: f64,
    /// Days since its last fetch.
    age: f64,
    /// Number of expected changes that an announcement adds.
    announced: f64,
    /// Whether it is a sitemap or feed, which announces other pages.
    signals: bool,
    /// Days to wait after the last attempt if that brought nothing, otherwise 0; see [`Failing`].
    retry: f64,
}

impl DueCandidate {
    /// The rule that applies to this page when `rule` is in force.
    fn rule(&self, rule: BudgetRule) -> BudgetRule {
        if (self.signals || self.retry > 0.0) && rule == BudgetRule::Freshness { SIGNAL_RULE } else { rule }
    }

    /// Value of fetching the page by a rule; an announcement counts as additional days of age.
    fn value(&self, rule: BudgetRule) -> f64 {
        self.rule(rule).value(self.weight, self.news(), self.age + self.announced / self.rate)
    }

    /// Days after which that value reaches `price`; infinite if it never does.
    fn interval(&self, rule: BudgetRule, price: f64) -> f64 {
        self.rule(rule).interval(self.weight, self.news(), price)
    }

    /// Whether the page is too unimportant for a refresh with this floor.
    fn is_below(&self, floor: f64) -> bool {
        self.weight < floor && !self.signals
    }

    /// Expected news per day: changes, or while the page brings nothing, its return.
    fn news(&self) -> f64 {
        if self.retry > 0.0 { retry::RETURNS / self.retry } else { self.rate }
    }
}

/// A pass over the pages that can be fetched again.
struct DueSurvey<'a> {
    state: &'a State,
    credits: &'a Credits,
    lookup: Arc<Lookup>,
    choice: &'a RefreshChoice,
    prior: RatePrior,
    now: DateTime<Utc>,
}

impl DueSurvey<'_> {
    /// Returns a page as a candidate; `None` if it cannot be refreshed.
    fn candidate(
        &self,
        page: UrlId,
        record: &Page,
        visit: &Visit,
    ) -> Result<Option<DueCandidate>, CreditError> {
        let candidate = self.weighed(page, record, visit)?;
        Ok(candidate.filter(|candidate| !candidate.is_below(self.choice.rules.floor)))
    }

    /// The same whatever its weight is.
    fn weighed(
        &self,
        page: UrlId,
        record: &Page,
        visit: &Visit,
    ) -> Result<Option<DueCandidate>, CreditError> {
        if visit.captures == 0 {
            return Ok(None);
        }
        let importance = self.lookup.importance(self.state, self.credits, (page, record), visit)?;
        let Some(weight) = self.choice.weights.of(self.state, (page, record), importance, visit)? else {
            return Ok(None);
        };
        Ok(Some(DueCandidate {
            page,
            weight,
            rate: ChangeObservations::from_bytes(&visit.extension).rate(&self.prior).per_day,
            retry: failing(record, visit, weight).map_or(0.0, |failing| failing.pause()),
            age: self.seconds(visit) as f64 / SECONDS_PER_DAY,
            announced: if visit.announced == 0 { 0.0 } else { -(1.0 - announcement_trust(visit)).ln() },
            signals: is_signal(visit),
        }))
    }

    /// Returns the number of seconds since the last attempt.
    fn seconds(&self, visit: &Visit) -> i64 {
        (self.now.timestamp() - i64::from(visit.last_attempt)).max(0)
    }

    /// Prepares for weighing all pages.
    fn expect_all(&self) -> Result<(), StateError> {
        self.lookup.expect_all(self.state, self.credits, self.choice.archive.as_deref())
    }

    /// Returns the visits of one part ([`State::visit_parts`]), with pages that have the fields needed for weighing.
    fn visits(&self, first: u32) -> Box<dyn Iterator<Item = Result<(UrlId, Page, Visit), StateError>> + '_> {
        let Some(known) = self.lookup.known() else {
            return Box::new(self.state.visits_with_pages(first..).take(ROWS_TOGETHER));
        };
        let with_page =
            |(page, visit)| Ok((page, known.page(page).map_or_else(|| self.state.page(page), Ok)?, visit));
        Box::new(self.state.visits(first).take(ROWS_TOGETHER).map(move |visit| visit.and_then(with_page)))
    }

    /// Calls `each` with the results of `make` for all candidates, ripe or not, in the order of their first fetch.
    fn all<T: Send>(
        &self,
        make: impl Fn(DueCandidate, &Visit) -> Option<T> + Sync,
        mut each: impl FnMut(T),
    ) -> Result<(), CreditError> {
        self.expect_all()?;
        let of_part = |first: &u32| -> Result<Vec<T>, CreditError> {
            let mut made = Vec::new();
            for visit in self.visits(*first) {
                let (page, record, visit) = visit?;
                let candidate = self.candidate(page, &record, &visit)?;
                made.extend(candidate.and_then(|candidate| make(candidate, &visit)));
            }
            Ok(made)
        };
        for parts in self.state.visit_parts().chunks(PARTS_PER_PROCESSOR * rayon::current_num_threads()) {
            let made: Vec<_> = parts.par_iter().map(of_part).collect::<Result<_, _>>()?;
            made.into_iter().flatten().for_each(&mut each);
        }
        Ok(())
    }

    /// Returns the results of `make` for those of `pages` that were fetched, in order. `pages` must be sorted by
    /// number.
    fn each_of<T: Send>(
        &self,
        pages: &[UrlId],
        make: impl Fn(UrlId, &Page, &Visit) -> Result<Option<T>, CreditError> + Sync,
    ) -> Result<Vec<T>, CreditError> {
        self.expect_all()?;
        let of_part = |known: &[(UrlId, Page, Option<Visit>)]| -> Result<Vec<T>, CreditError> {
            let visits =
                known.iter().filter_map(|(page, record, visit)| Some((page, record, visit.as_ref()?)));
            visits.filter_map(|(page, record, visit)| make(*page, record, visit).transpose()).collect()
        };
        let of_pages = |pages: &[UrlId]| -> Result<Vec<Vec<T>>, CreditError> {
            self.state.known_of(pages)?.par_chunks(PAGES_OF_PART).map(of_part).collect()
        };
        let made: Vec<_> = pages.par_chunks(part_of(pages.len())).map(of_pages).collect::<Result<_, _>>()?;
        Ok(made.into_iter().flatten().flatten().collect())
    }

    /// Returns the share of repeated captures that are of pages, not of their parts or of robots.txt files, by a sample.
    fn share_of_pages(&self) -> Result<f64, StateError> {
        let step = self.state.visit_count() as usize / SHARE_SAMPLE + 1;
        let (mut of_pages, mut all) = (0, 0);
        for visit in self.state.visits_with_pages((0..).step_by(step)) {
            let (_, page, visit) = visit?;
            let again = u64::from(visit.captures.saturating_sub(1));
            all += again;
            of_pages += if flags::is_page(page.flags) { again } else { 0 };
        }
        Ok(if all == 0 { 1.0 } else { of_pages as f64 / all as f64 })
    }

    /// Whether a page may be chosen, and the shortest interval has passed.
    fn is_ripe(&self, page: UrlId, visit: &Visit) -> bool {
        self.choice.rules.is_ripe(self.seconds(visit)) && self.choice.asks(page)
    }

    /// Whether a page that brought nothing has waited long enough as well.
    fn may_be_fetched(&self, candidate: &DueCandidate, visit: &Visit) -> bool {
        let retry = candidate.retry * SECONDS_PER_DAY;
        self.is_ripe(candidate.page, visit) && self.choice.rules.has_passed(self.seconds(visit), retry)
    }

    /// Whether the shortest interval has passed for any page that can be fetched again.
    fn any_ripe(&self) -> Result<bool, CreditError> {
        for visit in self.state.visits(0) {
            let (page, visit) = visit?;
            // Pages that were never captured and files that come only with their page may stay ripe forever.
            if visit.captures > 0
                && self.is_ripe(page, &visit)
                && let Some(candidate) = self.candidate(page, &self.state.page(page)?, &visit)?
                && self.may_be_fetched(&candidate, &visit)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the best by a rule for single pages, and whether others were left out. Uses due folders where they are
    /// kept.
    fn best(&self, rule: BudgetRule, room: usize) -> Result<(Picks, bool), CreditError> {
        let keeps_folders = self.choice.folders_from.is_some_and(|from| self.state.totals().fetched >= from);
        let archive = self.choice.archive.as_ref().filter(|_| keeps_folders);
        let folders = archive.map(|archive| archive.join(FOLDERS_FILE));
        if let Some(path) = &folders
            && let Some(best) = self.best_of_folders(path, rule, room)?
        {
            return Ok((best, true));
        }
        let (mut best, mut count, mut kept) = (Picks::new(room), 0, Vec::new());
        let valued = |candidate: DueCandidate, visit: &Visit| {
            Some((candidate, self.may_be_fetched(&candidate, visit).then(|| candidate.value(rule))))
        };
        self.all(valued, |(candidate, value)| {
            value.into_iter().for_each(|value| best.offer(value, &candidate));
            if folders.is_some() && count < KEPT_MAX {
                kept.push(candidate);
            }
            count += 1;
        })?;
        if let Some(path) = &folders {
            self.fill_folders(path, rule, &mut best.there, (count <= KEPT_MAX).then_some(kept))?;
        }
        let is_part = count > room;
        Ok((best, is_part))
    }
}

/// Returns at most `budget` pages whose fetch has the highest value, the best first.
///
/// # Errors
/// If the store fails.
pub fn most_obsolete(
    state: &State,
    credits: &Credits,
    choice: &RefreshChoice,
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<UrlId>, CreditError> {
    let pages = most_obsolete_of(&[DueArchive::alone(state, credits, choice, &[])], budget, now)?;
    Ok(pages.into_iter().map(|(_, page)| page).collect())
}

/// The same for several archives, treated as one.
pub(super) fn most_obsolete_of(
    sources: &[DueArchive<'_>],
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<SourcePage>, CreditError> {
    if budget == 0 {
        return Ok(Vec::new());
    }
    // After a crawl no page is ripe for a long time. Reading only the visits is cheap, and ripeness does not depend on
    // rates.
    let mut surveys: Vec<DueSurvey<'_>> =
        sources.iter().map(|source| source.survey(RatePrior::learned(&[]), now)).collect();
    let mut any_ripe = false;
    for survey in &surveys {
        any_ripe = any_ripe || survey.any_ripe()?;
    }
    let Some(rules) = sources.first().filter(|_| any_ripe).map(|source| &source.choice.rules) else {
        return Ok(Vec::new());
    };
    let prior = archive_prior(&sources.iter().map(|source| source.state).collect::<Vec<_>>())?;
    surveys.iter_mut().for_each(|survey| survey.prior = prior);
    let best = match rules.policy.simple() {
        Some(rule) => {
            let best = surveys.iter().map(|survey| Ok(survey.best(rule, budget)?.0));
            best.collect::<Result<_, CreditError>>()?
        }
        None => learned::best(&surveys, budget)?,
    };
    // A function of the time, as everything here.
    let chance = fastrand::Rng::with_seed(now.timestamp().cast_unsigned()).f64();
    Ok(Picks::of_all(best, budget, chance))
}

/// Returns the state of a page whose newest attempts brought nothing; `None` while its content is there.
fn failing(page: &Page, visit: &Visit, weight: f64) -> Option<Failing> {
    let days = |from: u32, to: u32| f64::from(to.saturating_sub(from)) / SECONDS_PER_DAY;
    let usual = if visit.contents > 0 { days(visit.last_seen, visit.failing_since) } else { f64::INFINITY };
    let is_linked = Vanished::of(page, visit).is_none_or(|vanished| vanished.linked >= visit.failing_since);
    let failing = days(visit.failing_since, visit.last_attempt);
    (visit.failing_since > 0).then_some(Failing { usual, failing, is_linked, weight })
}

/// Returns the weight of a page, given its importance or that of the page that it stands for; `None` for robots.txt and
/// for files that come only with their page.
///
/// Sitemaps and feeds are polled for what they say about other pages: they count at least as much as an average page.
fn refreshable(page: &Page, importance: Option<f64>, visit: &Visit) -> Option<f64> {
    let share = if page.flags.has_any(flags::ALIAS) { ALIAS_SHARE } else { 1.0 };
    // A missing page is asked again: as important as it was, or as an average page if it is a seed.
    let missed = Vanished::of(page, visit).map(|vanished| {
        if page.flags.has_any(flags::SEED) { vanished.importance.max(1.0) } else { vanished.importance }
    });
    let own = missed.or(importance.map(|importance| importance * share));
    if !is_signal(visit) || page.flags.has_any(flags::ROBOTS) {
        return own;
    }
    Some(own.unwrap_or(0.0).max(1.0))
}

//! Which pages a refresh fetches: those whose fetch is worth most by the archive's [`RefreshRules`].
//!
//! Rules of single pages (`uniform`, `xyleme`, `chogm`, …) rank by weight, change rate and age alone; a pass over the visits
//! keeps the best. Policies that learn from all pages together see what the captures have shown (`learned`).
//! Either way the choice is a function of the state and the time: nothing is kept between runs that a crash could
//! lose. In a large archive only the pages in due folders are considered (`folders`). What a sitemap, feed or site master
//! announces of a page counts as expected changes. Several archives ([`Source`]) are chosen from as one.

mod decided;
mod folders;
mod idle;
mod learned;
mod lookup;
mod rules;
mod turn;
mod unread;

use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_storage::{Page, PageFlags, ROWS_TOGETHER, State, StateError, UrlId, Visit};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use crate::ledger::{CreditError, Credits, announcement_trust, page_flags as flags, part_of};
use crate::prepared::{archive_prior, is_signal};
use crate::refresh::budget::Rule;
use crate::refresh::rate::{ChangeObservations, RatePrior};

pub use idle::Idle;
use lookup::Lookup;
pub use rules::{RefreshRules, Weighing, WeightError, Weights};
pub use turn::{Timetable, TimetableError, Turns};
pub(super) use turn::{due, turn};
pub use unread::Discovery;
pub(super) use unread::undiscovered;

/// Of pages that are read together, those that one processor looks at.
const PAGES_OF_PART: usize = 1 << 12;

/// Parts of all visits that are looked at side by side; what is found in them waits in memory.
const PARTS_PER_PROCESSOR: usize = 2;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// What fetching a redirect or a duplicate again is worth, as a share of the page that it stands for: it shows whether it still
/// does, and nothing of that page's content.
const ALIAS_SHARE: f64 = 0.1;

/// Sitemaps and feeds are fetched for what they say of others, and this is worth the more the longer they were not: a rule
/// that gives up what changes too often does not fit them.
const SIGNAL_RULE: Rule = Rule::Harmonic;

/// From so many fetched pages on, those that will be due are kept in folders instead of looking at all in each run.
pub const FOLDERS_FROM: u64 = 1 << 18;

/// Pages that are kept in memory between choosing and filling folders, in 40 bytes each; if there are more, all are read again.
const KEPT_MAX: usize = 1 << 21;

/// The file of due folders, in the folder of the state from which they are derived.
const FOLDERS_FILE: &str = "state/due";

/// How a refresh chooses: the rules, and what pages weigh by them.
#[derive(Debug, Default)]
pub struct Choice {
    /// The rules.
    pub rules: RefreshRules,
    /// What pages weigh.
    pub weights: Weights,
    /// The folder of the archive, if what was prepared there may be read.
    archive: Option<PathBuf>,
    /// From how many fetched pages on due folders are kept there; without, each choice looks at all pages.
    folders_from: Option<u64>,
}

impl Choice {
    /// By these rules and weights, with a pass over all pages.
    #[must_use]
    pub fn new(rules: RefreshRules, weights: Weights) -> Self {
        Self { rules, weights, archive: None, folders_from: None }
    }

    /// For the archive in this folder, by what was prepared there.
    #[must_use]
    pub fn in_archive(self, archive: &Path) -> Self {
        Self { archive: Some(archive.to_owned()), ..self }
    }

    /// The same of an archive that keeps due folders from so many fetched pages on, usually [`FOLDERS_FROM`].
    #[must_use]
    pub fn with_folders(self, archive: &Path, from: u64) -> Self {
        Self { folders_from: Some(from), ..self.in_archive(archive) }
    }
}

/// One of the archives that are chosen from as if they were one.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its state.
    pub state: &'a State,
    /// Its books.
    pub credits: &'a Credits,
    /// How it is chosen from: by the same rules as the others.
    pub choice: &'a Choice,
    /// Its pages that somebody waits for.
    pub awaited: &'a [UrlId],
    /// For each of its sites, the place of the archive that answers for it ([`crate::ledger::answering`]); empty for an
    /// archive alone.
    pub answering: &'a [usize],
}

impl<'a> Source<'a> {
    /// An archive alone.
    #[must_use]
    pub fn alone(state: &'a State, credits: &'a Credits, choice: &'a Choice, awaited: &'a [UrlId]) -> Self {
        Self { state, credits, choice, awaited, answering: &[] }
    }

    fn survey(self, prior: RatePrior, now: DateTime<Utc>) -> Survey<'a> {
        let Self { state, credits, choice, .. } = self;
        Survey { state, credits, lookup: Arc::default(), choice, prior, now }
    }

    /// Whether the archive at this place answers for a page's site.
    fn answers(&self, place: usize, page: &Page) -> Result<bool, CreditError> {
        if self.answering.is_empty() {
            return Ok(true);
        }
        let site = self.state.host(page.host)?.site;
        Ok(self.answering.get(site.index()).is_none_or(|answering| *answering == place))
    }
}

/// A page, after the place of its archive among the sources.
pub(super) type SourcePage = (usize, UrlId);

/// A page that could be refreshed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scored {
    score: f64,
    page: UrlId,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of equals the page that was found first is the better one.
        self.score.total_cmp(&other.score).then_with(|| other.page.cmp(&self.page))
    }
}

/// The pages of the highest scores, at most so many.
struct Best {
    room: usize,
    /// These, and others until there are twice as many.
    scored: Vec<Scored>,
    /// The last of them when others were thrown away.
    last: Option<Scored>,
}

impl Best {
    fn new(room: usize) -> Self {
        Self { room, scored: Vec::new(), last: None }
    }

    fn offer(&mut self, score: f64, page: UrlId) {
        let scored = Scored { score, page };
        if self.room == 0 || self.last.is_some_and(|last| scored < last) {
            return;
        }
        self.scored.push(scored);
        if self.scored.len() >= self.room.saturating_mul(2) {
            self.cut();
        }
    }

    /// Throws others away.
    fn cut(&mut self) {
        if self.scored.len() > self.room && self.room > 0 {
            let (_, last, _) = self.scored.select_nth_unstable_by(self.room - 1, |a, b| b.cmp(a));
            self.last = Some(*last);
            self.scored.truncate(self.room);
        }
    }

    /// The lowest score that is among the best; nothing while there is room for any.
    fn lowest(&mut self) -> Option<f64> {
        self.cut();
        let last = self.scored.iter().min().filter(|_| self.scored.len() == self.room);
        last.map(|last| last.score)
    }

    /// In no order.
    fn into_pages(mut self) -> impl Iterator<Item = UrlId> {
        self.cut();
        self.scored.into_iter().map(|scored| scored.page)
    }

    /// The best of what is best in each source, the highest score first.
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

/// What is known of a page that could be fetched again.
#[derive(Clone, Copy)]
struct Candidate {
    page: UrlId,
    weight: f64,
    /// Changes a day.
    rate: f64,
    /// Days since its last fetch.
    age: f64,
    /// What an announcement adds to the expected number of changes.
    announced: f64,
    /// Whether it is a sitemap or feed, which announces other pages.
    signals: bool,
}

impl Candidate {
    /// The rule that is meant for it.
    fn rule(&self, rule: Rule) -> Rule {
        if self.signals && rule == Rule::Freshness { SIGNAL_RULE } else { rule }
    }

    /// The value of fetching it by a rule; an announcement counts as days without a fetch.
    fn value(&self, rule: Rule) -> f64 {
        self.rule(rule).value(self.weight, self.rate, self.age + self.announced / self.rate)
    }
}

/// One pass over what can be fetched again.
struct Survey<'a> {
    state: &'a State,
    credits: &'a Credits,
    lookup: Arc<Lookup>,
    choice: &'a Choice,
    prior: RatePrior,
    now: DateTime<Utc>,
}

impl Survey<'_> {
    /// A page as a candidate; nothing for what cannot be refreshed.
    fn candidate(&self, page: UrlId, record: &Page, visit: &Visit) -> Result<Option<Candidate>, CreditError> {
        if visit.captures == 0 {
            return Ok(None);
        }
        let importance = self.lookup.importance(self.state, self.credits, (page, record), visit)?;
        let Some(weight) = self.choice.weights.of(self.state, (page, record), importance, visit)? else {
            return Ok(None);
        };
        Ok(Some(Candidate {
            page,
            weight,
            rate: ChangeObservations::from_bytes(&visit.extension).rate(&self.prior).per_day,
            age: self.seconds(visit) as f64 / SECONDS_PER_DAY,
            announced: if visit.announced == 0 { 0.0 } else { -(1.0 - announcement_trust(visit)).ln() },
            signals: is_signal(visit),
        }))
    }

    /// Seconds since the last fetch.
    fn seconds(&self, visit: &Visit) -> i64 {
        (self.now.timestamp() - i64::from(visit.last_seen)).max(0)
    }

    /// Prepares for weighing all pages.
    fn expect_all(&self) -> Result<(), StateError> {
        self.lookup.expect_all(self.state, self.credits, self.choice.archive.as_deref())
    }

    /// The visits of a part of all ([`State::visit_parts`]), with what weighing takes of their pages.
    fn visits(&self, first: u32) -> Box<dyn Iterator<Item = Result<(UrlId, Page, Visit), StateError>> + '_> {
        let Some(known) = self.lookup.known() else {
            return Box::new(self.state.visits_with_pages(first..).take(ROWS_TOGETHER));
        };
        let with_page =
            |(page, visit)| Ok((page, known.page(page).map_or_else(|| self.state.page(page), Ok)?, visit));
        Box::new(self.state.visits(first).take(ROWS_TOGETHER).map(move |visit| visit.and_then(with_page)))
    }

    /// Calls `each` for what is made of all candidates, ripe or not, in the order of their first fetches.
    fn all<T: Send>(
        &self,
        make: impl Fn(Candidate, &Visit) -> Option<T> + Sync,
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

    /// What is made of some pages, given by rising number, that were fetched, in their order.
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

    /// Whether the shortest interval is over.
    fn is_ripe(&self, visit: &Visit) -> bool {
        self.choice.rules.is_ripe(self.seconds(visit))
    }

    /// Whether the shortest interval is over for a page that can be fetched again.
    fn any_ripe(&self) -> Result<bool, CreditError> {
        for visit in self.state.visits(0) {
            let (page, visit) = visit?;
            // What was never captured, and files that only come with their page, may be ripe forever.
            if visit.captures > 0
                && self.is_ripe(&visit)
                && self.candidate(page, &self.state.page(page)?, &visit)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The best by a rule of single pages, and whether others were left out: from due folders where they are kept.
    fn best(&self, rule: Rule, room: usize) -> Result<(Best, bool), CreditError> {
        let keeps_folders = self.choice.folders_from.is_some_and(|from| self.state.totals().fetched >= from);
        let archive = self.choice.archive.as_ref().filter(|_| keeps_folders);
        let folders = archive.map(|archive| archive.join(FOLDERS_FILE));
        if let Some(path) = &folders
            && let Some(best) = self.best_of_folders(path, rule, room)?
        {
            return Ok((best, true));
        }
        let (mut best, mut count, mut kept) = (Best::new(room), 0, Vec::new());
        let valued = |candidate: Candidate, visit: &Visit| {
            Some((candidate, self.is_ripe(visit).then(|| candidate.value(rule))))
        };
        self.all(valued, |(candidate, value)| {
            value.into_iter().for_each(|value| best.offer(value, candidate.page));
            if folders.is_some() && count < KEPT_MAX {
                kept.push(candidate);
            }
            count += 1;
        })?;
        if let Some(path) = &folders {
            self.fill_folders(path, rule, &mut best, (count <= KEPT_MAX).then_some(kept))?;
        }
        let is_part = count > room;
        Ok((best, is_part))
    }
}

/// At most `budget` pages whose fetch is worth most, the best first.
///
/// # Errors
/// When the store fails.
pub fn most_obsolete(
    state: &State,
    credits: &Credits,
    choice: &Choice,
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<UrlId>, CreditError> {
    let pages = most_obsolete_of(&[Source::alone(state, credits, choice, &[])], budget, now)?;
    Ok(pages.into_iter().map(|(_, page)| page).collect())
}

/// The same of several archives as if they were one.
pub(super) fn most_obsolete_of(
    sources: &[Source<'_>],
    budget: usize,
    now: DateTime<Utc>,
) -> Result<Vec<SourcePage>, CreditError> {
    if budget == 0 {
        return Ok(Vec::new());
    }
    // After a crawl it is long until any page may be fetched again, and visits alone are soon read. Rates do not matter for that.
    let mut surveys: Vec<Survey<'_>> =
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
    Ok(Best::of_all(best, budget))
}

/// What a page counts in a refresh whose importance, or that of the page that it stands for, is known; nothing for what comes with
/// its page, and for robots.txt.
///
/// Sitemaps and feeds are polled for what they say of other pages: they count as much as a mean page at least.
fn refreshable(page: PageFlags, importance: Option<f64>, visit: &Visit) -> Option<f64> {
    let share = if page.has_any(flags::ALIAS) { ALIAS_SHARE } else { 1.0 };
    // A seed that is not there is worth a look now and then, like an average page: somebody asked for it.
    let missed = page.has_any(flags::VANISHED) && page.has_any(flags::SEED);
    let own = importance.map(|importance| importance * share).or(missed.then_some(1.0));
    if !is_signal(visit) || page.has_any(flags::ROBOTS) {
        return own;
    }
    Some(own.unwrap_or(0.0).max(1.0))
}

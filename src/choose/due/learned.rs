//! Policies that learn from all pages, trained on the captures in order of time.
//!
//! Each run rebuilds the policy from the histories of the considered pages: all pages, or in a very large archive those
//! with the highest values by their own rates and those fetched last, which say most about related pages. So memory is
//! bounded, and a run after a crash or a rebuild makes the same decisions. Several archives train one policy, which
//! knows their pages by consecutive numbers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use archive_books::change::is_version;
use archive_books::ledger::{CreditError, capture_flags, page_flags};
use archive_math::refresh::budget::BudgetRule;
use archive_math::refresh::change_model::{DIRECTORY, Relations, relations};
use archive_math::refresh::policies::{RefreshPolicy, RefreshProblem, Sighting};
use archive_math::refresh::rate::{ChangeObservations, days_before_change};
use archive_storage::{Capture, CaptureId, HostId, Page, ROWS_TOGETHER, StateError, UrlId, Visit};
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use super::folders::numbers;
use super::{DueCandidate, DueSurvey, Picks, SECONDS_PER_DAY, SIGNAL_RULE};

/// Number of pages considered, over all archives, per daily fetch; it is clamped to the bounds below unless the budget
/// is larger. A page takes some 700 bytes.
const CONSIDERED_DAYS: f64 = 16.0;
const CONSIDERED_MIN: usize = 1 << 17;
const CONSIDERED_MAX: usize = 3 << 17;

/// Maximum number of recently captured pages considered in addition.
const RECENT_MAX: usize = 1 << 16;

/// Least share of pages among recent captures for which all that many are found.
const PAGES_SHARE_MIN: f64 = 0.1;

/// Maximum number of visits per page that a policy learns from, the newest ones.
const VISITS_MAX: usize = 64;

/// Visits within this many days are shown to the policy together.
const MOMENT_DAYS: f64 = 1.0 / 24.0;

const MICROSECONDS_PER_DAY: f64 = SECONDS_PER_DAY * 1e6;

/// A page that the policy takes into account.
struct Considered {
    candidate: DueCandidate,
    ripe: bool,
    /// Whether its server reports it gone.
    vanished: bool,
    host: HostId,
    first_seen: u32,
    captures: u32,
    newest: Option<CaptureId>,
    observations: ChangeObservations,
}

/// A visit of a page after its first.
struct PastVisit {
    /// Time in days.
    at: f64,
    page: usize,
    /// Time of the last change, in days, if the page changed since the previous visit.
    changed: Option<f64>,
    /// Whether the page was gone.
    gone: bool,
    /// Whether it says nothing of changes, because the page had been gone for long: a new beginning.
    anew: bool,
}

/// The history that a policy learns from.
struct LearnedHistory {
    visits: Vec<PastVisit>,
    /// Day of the first capture that counts, for each page.
    found: Vec<f64>,
}

/// Returns the best pages of each archive, by the policy of the rules, after training it on the visits of all archives.
pub(super) fn best(surveys: &[DueSurvey<'_>], budget: usize) -> Result<Vec<Picks>, CreditError> {
    let mut best: Vec<Picks> = surveys.iter().map(|_| Picks::new(budget)).collect();
    let Some(DueSurvey { now, choice, .. }) = surveys.first() else { return Ok(best) };
    let per_day = fetches_per_day(surveys, budget, *now)?;
    // Conversion saturates.
    let room = ((per_day * CONSIDERED_DAYS) as usize).clamp(CONSIDERED_MIN, CONSIDERED_MAX);
    let considered = surveys
        .iter()
        .map(|survey| survey.considered((room / surveys.len()).max(budget), RECENT_MAX / surveys.len()));
    let considered = considered.collect::<Result<Vec<_>, _>>()?;
    // While no page may be fetched there is nothing to rank.
    if !considered.iter().flatten().any(|page| page.ripe) {
        return Ok(best);
    }
    let origin = origin(considered.iter().flatten(), *now);
    let now = now.timestamp_micros() as f64 / MICROSECONDS_PER_DAY - origin;
    let past = past(surveys, &considered, origin)?;
    let mut known = known(surveys, &considered)?;
    (known.found, known.days) = (past.found, now);
    (known.budget, known.tick) = (per_day, budget as f64 / per_day);
    let mut chance = fastrand::Rng::with_seed(1);
    let mut policy = choice.rules.policy.build(&known, &mut || chance.f64());
    let mut last = std::mem::take(&mut known.found);
    replay(policy.as_mut(), &past.visits, &mut last);

    let (mut ripe, mut pages, mut ages) = (Vec::new(), Vec::new(), Vec::new());
    let of_archive = considered.iter().enumerate();
    let numbered =
        of_archive.flat_map(|(place, pages)| pages.iter().map(move |page| (place, page))).enumerate();
    for (number, (place, page)) in numbered.filter(|(_, (_, page))| page.ripe) {
        if page.candidate.retry > 0.0 {
            // What the policy knows is how pages change, not whether they come back.
            best[place].offer(0.0, &page.candidate);
            continue;
        }
        if page.candidate.announced > 0.0 {
            policy.announced(number, page.candidate.announced);
        }
        ripe.push((place, &page.candidate));
        pages.push(number);
        // A fetch without an answer shows no change, but restarts the age.
        ages.push((now - last[number]).min(page.candidate.age).max(0.0));
    }
    let mut values = vec![0.0; pages.len()];
    policy.values(now, &pages, &ages, &mut values);
    for ((place, candidate), value) in ripe.into_iter().zip(values) {
        let value = if candidate.signals { candidate.value(SIGNAL_RULE) } else { value };
        if value >= 0.0 {
            best[place].offer(value, candidate);
        }
    }
    Ok(best)
}

/// Returns the daily number of repeated fetches of all archives so far; `budget` if there were none.
fn fetches_per_day(surveys: &[DueSurvey<'_>], budget: usize, now: DateTime<Utc>) -> Result<f64, CreditError> {
    let (mut again, mut first) = (0.0, None);
    for survey @ DueSurvey { state, .. } in surveys {
        let totals = state.totals();
        again += totals.captures.saturating_sub(totals.fetched) as f64 * survey.share_of_pages()?;
        let seen = state.visits(0).next().transpose()?.map(|(_, visit)| visit.first_seen);
        first = first.into_iter().chain(seen).min();
    }
    let Some(first) = first.filter(|_| again > 0.0) else { return Ok(budget.max(1) as f64) };
    let days = (now.timestamp() - i64::from(first)) as f64 / SECONDS_PER_DAY;
    Ok(again / days.max(1.0))
}

/// Returns the day that counts as 0; it precedes every visit.
fn origin<'a>(considered: impl Iterator<Item = &'a Considered>, now: DateTime<Utc>) -> f64 {
    let first = considered.map(|page| i64::from(page.first_seen)).min();
    (first.map_or(now.timestamp(), |first| first.min(now.timestamp())) as f64 / SECONDS_PER_DAY).floor()
}

/// Returns the visits derived from the captures of the considered pages, in order of time.
fn past(
    surveys: &[DueSurvey<'_>],
    considered: &[Vec<Considered>],
    origin: f64,
) -> Result<LearnedHistory, CreditError> {
    let mut past = LearnedHistory { visits: Vec::new(), found: Vec::new() };
    for (survey, considered) in surveys.iter().zip(considered) {
        survey.add_past(considered, origin, &mut past)?;
    }
    past.visits.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.page.cmp(&b.page)));
    Ok(past)
}

/// Returns what the policy may know about the pages before any visit.
fn known(surveys: &[DueSurvey<'_>], considered: &[Vec<Considered>]) -> Result<RefreshProblem, CreditError> {
    let mean_rate = surveys.first().map(|survey| survey.prior.mean());
    let mut known = RefreshProblem { found_at_birth: false, mean_rate, ..RefreshProblem::default() };
    let mut sites: HashMap<u64, usize> = HashMap::new();
    let mut directories: HashMap<u64, usize> = HashMap::new();
    let mut first_site = 0;
    for (survey, considered) in surveys.iter().zip(considered) {
        for (page, (site, relations)) in considered.iter().zip(survey.related(considered, first_site)?) {
            let number = sites.len();
            let number = *sites.entry(site).or_insert(number);
            let directory = directories.len();
            let directory = *directories.entry(relations[DIRECTORY]).or_insert(directory);
            known.importance.push(if page.vanished { 0.0 } else { page.candidate.weight });
            known.site.push(number);
            known.directory.push(directory);
            known.relations.push(relations);
        }
        first_site += u64::from(survey.state.site_count());
    }
    (known.sites, known.directories) = (sites.len(), directories.len());
    Ok(known)
}

impl DueSurvey<'_> {
    /// Returns the pages to consider: all of them or, if there are too many, the `room` best by their own rates and
    /// those of the `recent` newest captures.
    fn considered(&self, room: usize, recent: usize) -> Result<Vec<Considered>, CreditError> {
        let (best, is_part) = self.best(BudgetRule::Freshness, room)?;
        let mut pages: HashSet<UrlId> = HashSet::new();
        if is_part {
            pages.extend(best.there.into_pages().chain(best.ended.into_pages()));
            pages.extend(self.recent(recent)?);
        } else {
            // Include pages that are not ripe or gone: the policy judges other pages by them.
            for visit in self.state.visits(0) {
                pages.insert(visit?.0);
            }
        }
        let mut pages: Vec<UrlId> = pages.into_iter().collect();
        pages.sort_unstable();
        self.each_of(&pages, |page, record, visit| self.consider(page, record, visit))
    }

    fn consider(&self, page: UrlId, record: &Page, visit: &Visit) -> Result<Option<Considered>, CreditError> {
        let vanished = record.flags.has_any(page_flags::VANISHED);
        let Some(candidate) = self.candidate(page, record, visit)? else { return Ok(None) };
        Ok(Some(Considered {
            candidate,
            ripe: candidate.weight > 0.0 && self.may_be_fetched(&candidate, visit),
            vanished,
            host: record.host,
            first_seen: visit.first_seen,
            captures: visit.captures,
            newest: visit.last_capture,
            observations: ChangeObservations::from_bytes(&visit.extension),
        }))
    }

    /// Returns the pages of the newest `count` captures of pages, and the parts between them.
    fn recent(&self, count: usize) -> Result<HashSet<UrlId>, CreditError> {
        let captures = self.state.totals().captures;
        let count = (count as f64 / self.share_of_pages()?.max(PAGES_SHARE_MIN)) as usize;
        let newest = numbers(captures.saturating_sub(count as u64)..captures).unwrap_or_default();
        Ok(self.state.captures_of(&newest)?.iter().map(|capture| capture.url).collect())
    }

    /// Adds the visits derived from the captures of these pages. Page numbers continue those already in `past`.
    fn add_past(
        &self,
        considered: &[Considered],
        origin: f64,
        past: &mut LearnedHistory,
    ) -> Result<(), CreditError> {
        let first = past.found.len();
        let of_part = |(part, pages): (usize, &[Considered])| -> Result<LearnedHistory, CreditError> {
            let mut past = LearnedHistory { visits: Vec::new(), found: Vec::with_capacity(pages.len()) };
            let ids: Vec<CaptureId> = pages.iter().filter_map(|page| page.newest).collect();
            let mut newest = ids.iter().zip(self.state.captures_of(&ids)?);
            for (number, page) in (first + part * ROWS_TOGETHER..).zip(pages) {
                // Most pages have a single capture; the newest captures are read in one batch.
                let newest = page.newest.and_then(|_| newest.next()).map(|(id, capture)| (*id, capture));
                let older = page.newest.filter(|_| page.captures > 1).map(|id| self.state.history_from(id));
                let history = newest.map(Ok).into_iter().chain(older.into_iter().flatten().skip(1));
                // Sitemaps and feeds change whenever one of their pages does, which says nothing about other pages.
                let found = match page.candidate.signals {
                    true => None,
                    false => page_past(number, page, history, origin, &mut past.visits)?,
                };
                past.found.push(found.unwrap_or(0.0));
            }
            Ok(past)
        };
        let parts = considered.par_chunks(ROWS_TOGETHER).enumerate().map(of_part);
        for LearnedHistory { visits, found } in parts.collect::<Result<Vec<_>, _>>()? {
            past.visits.extend(visits);
            past.found.extend(found);
        }
        Ok(())
    }

    /// Returns the site of each page, counted from `first_site`, and its relations.
    fn related(
        &self,
        considered: &[Considered],
        first_site: u64,
    ) -> Result<Vec<(u64, Relations)>, CreditError> {
        let hosts = self.state.sites_of_hosts()?;
        let of_part = |pages: &[Considered]| -> Result<Vec<_>, StateError> {
            let mut urls = self.state.url_cursor();
            let related = pages.iter().map(|page| {
                let site = match hosts.get(page.host.index()) {
                    Some(site) => *site,
                    // An unknown host is reported as an error.
                    None => self.state.host(page.host)?.site,
                };
                let site = first_site + u64::from(site.0);
                Ok((site, relations(site, &path(urls.get(page.candidate.page)?))))
            });
            related.collect()
        };
        let related = considered.par_chunks(ROWS_TOGETHER).map(of_part);
        Ok(related.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Adds the visits derived from the history of a page, which comes newest first. Returns the day of the first capture
/// that counts.
fn page_past(
    number: usize,
    page: &Considered,
    history: impl Iterator<Item = Result<(CaptureId, Capture), StateError>>,
    origin: f64,
    past: &mut Vec<PastVisit>,
) -> Result<Option<f64>, CreditError> {
    let day = |microseconds: i64| microseconds as f64 / MICROSECONDS_PER_DAY - origin;
    // Time of the visit processed last, which is the next later one, and whether it found a change.
    let mut later: Option<(f64, bool)> = None;
    // The oldest attempt between that visit and the one before it, which brought nothing.
    let mut failing = None;
    let mut is_newest_change = true;
    let (mut visits, mut gone) = (0, None);
    for capture in history {
        let (_, capture) = capture?;
        let at = day(capture.time);
        if page.vanished && later.is_none() && matches!(capture.status, 404 | 410) {
            gone = Some(at);
        }
        if !is_version(&capture) {
            failing = Some(at);
            continue;
        }
        if let Some((later_at, changed)) = later {
            let anew = failing.is_some_and(|failing| later_at - failing > failing - at);
            let changed = changed.then(|| page.changed_at(at, later_at, origin, is_newest_change));
            is_newest_change &= changed.is_none();
            past.push(PastVisit { at: later_at, page: number, changed, gone: false, anew });
            visits += 1;
        }
        failing = None;
        later = Some((at, capture_flags::content_changed(&capture)));
        if visits == VISITS_MAX || page.captures == 1 {
            break;
        }
    }
    // A page that was never there cannot be gone.
    if let Some(at) = gone.filter(|_| later.is_some()) {
        past.push(PastVisit { at, page: number, changed: None, gone: true, anew: false });
    }
    Ok(later.map(|(at, _)| at))
}

impl Considered {
    /// Returns the day of a change between two visits: the server's date if that is reliable, otherwise the expected
    /// time of the last change in between.
    fn changed_at(&self, before: f64, at: f64, origin: f64, is_newest: bool) -> f64 {
        let dated =
            self.observations.last_change().filter(|_| is_newest && self.observations.dates_reliable());
        let dated = dated.map(|seconds| f64::from(seconds) / SECONDS_PER_DAY - origin);
        // By symmetry, the last change is as far from the end on average as the first change is from the beginning.
        dated
            .filter(|date| (before..=at).contains(date))
            .unwrap_or_else(|| at - days_before_change(self.candidate.rate, at - before))
    }
}

/// Returns host and path of a URL; a query becomes part of the file name.
fn path(url: &str) -> Cow<'_, str> {
    let path = url.split_once("://").map_or(url, |(_, path)| path);
    match path.split_once('?') {
        Some((path, query)) if query.contains('/') => format!("{path}?{}", query.replace('/', "|")).into(),
        _ => path.into(),
    }
}

/// Feeds visits to a policy, grouped by [`MOMENT_DAYS`]. `last` has the time of the last visit of each page.
fn replay(policy: &mut dyn RefreshPolicy, visits: &[PastVisit], last: &mut [f64]) {
    let mut rest = visits;
    let mut moment: HashSet<usize> = HashSet::new();
    while let Some(first) = rest.first() {
        moment.clear();
        let belongs = |visit: &&PastVisit| visit.at <= first.at + MOMENT_DAYS && moment.insert(visit.page);
        let count = rest.iter().take_while(belongs).count().max(1);
        let (these, later) = rest.split_at(count);
        let now = these.last().map_or(first.at, |visit| visit.at);
        let (mut showed, mut gone) = (Vec::with_capacity(count), Vec::new());
        for visit in these {
            if visit.gone {
                gone.push(visit.page);
                continue;
            }
            if visit.anew {
                last[visit.page] = now;
                continue;
            }
            let before = last[visit.page];
            let changed = visit.changed.map(|at| at.clamp(before, now));
            showed.push(Sighting { page: visit.page, age: (now - before).max(0.0), changed });
            last[visit.page] = now;
        }
        if !gone.is_empty() {
            policy.gone(now, &gone);
        }
        if !showed.is_empty() {
            policy.seen(now, &showed);
        }
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the sightings.
    #[derive(Default)]
    struct NotedSightings(Vec<(f64, Vec<Sighting>)>);

    impl RefreshPolicy for NotedSightings {
        fn values(&mut self, _now: f64, _pages: &[usize], _ages: &[f64], _values: &mut [f64]) {}
        fn seen(&mut self, now: f64, visits: &[Sighting]) {
            self.0.push((now, visits.to_vec()));
        }
    }

    #[test]
    fn visits_are_shown_moment_by_moment() {
        let visit = |at: f64, page: usize, changed: Option<f64>| PastVisit {
            at,
            page,
            changed,
            gone: false,
            anew: false,
        };
        let past = [
            visit(1.0, 0, None),
            visit(1.02, 1, Some(0.5)),
            visit(1.03, 0, Some(1.025)),
            visit(3.0, 1, None),
        ];
        let (mut policy, mut last) = (NotedSightings::default(), [0.0, 0.25]);
        replay(&mut policy, &past, &mut last);
        let showed = |page: usize, age: f64, changed: Option<f64>| Sighting { page, age, changed };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        // The second visit of a page within an hour is shown separately.
        let moments: Vec<f64> = policy.0.iter().map(|(now, _)| *now).collect();
        assert_eq!(moments, [1.02, 1.03, 3.0]);
        assert_eq!(policy.0[0].1, [showed(0, 1.02, None), showed(1, 0.77, Some(0.5))]);
        assert!(near(policy.0[1].1[0].age, 0.01) && policy.0[1].1[0].changed == Some(1.025));
        assert!(near(policy.0[2].1[0].age, 1.98));
        assert_eq!(last, [1.03, 3.0]);
    }

    #[test]
    fn queries_make_no_folders() {
        assert_eq!(path("https://a.test/b/c?d=/e/f"), "a.test/b/c?d=|e|f");
        assert_eq!(path("http://a.test/b/"), "a.test/b/");
    }
}

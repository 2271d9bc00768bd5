//! What to review next: ranks sites so that a reviewer's time has the most effect.
//!
//! The gain of reviewing a site is the importance of its pages times the degree to which they are uncertain or broken.
//! Each reason to look ([`Reason`]) has the share of the site's importance that it concerns, and the probability that a
//! look changes the assessment of these pages; reasons are treated as independent: `gain = importance · (1 - Π (1 -
//! chance · share))`.
//!
//! A site that somebody decided on drops out until something goes wrong after the decision. Everything is computed by
//! passes over the tables of captures, pages and visits; URLs and titles are looked up only for the pages that are
//! shown, and for the most important page of each site.

mod gather;
mod past;
mod reasons;
mod words;

use std::collections::HashSet;

use archive_base::access::Access;
use archive_base::decisions::{CurrentDecisions, Decisions, Subject};
use archive_base::error::Failure;
use archive_base::texts::Language;
use archive_books::columns::{self, LIKELY, RowKind, SavedColumn};
use archive_storage::{SiteId, State, StateError, Store, TitleCursor, UrlId};
use serde::{Deserialize, Serialize};

use gather::{Happened, SiteTotals, gather};
pub use reasons::Reason;
use reasons::{SiteFacts, WeighedReason, reasons};

pub use super::sheet::SamplePage;

/// A site with a lower worth is not listed.
const WORTH_MIN: f64 = 1e-3;

/// Share of a site's importance above which an event of its pages is attributed to the site.
const MOST: f64 = 0.5;

/// Probability from which on the automatic librarian would take a site, and below which it would reject it.
const LIKELY_YES: f64 = 0.5;
const LIKELY_NO: f64 = 0.02;

/// What the reviewer would probably do, in the terms of the Web Curator Tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    /// Keep it, or start to archive it.
    Archive,
    /// Find out more.
    Investigate,
    /// It does not belong here.
    Reject,
    /// Remove it from the list: there is nothing left to fetch.
    Delist,
}

archive_base::names! {
    Advice: Archive "archive", Investigate "investigate", Reject "reject", Delist "delist"
}

/// A site to review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteToReview {
    /// Name of the site.
    pub site: String,
    /// Total importance of its known pages (like `importance_sum` in queries, except that pages that are gone count as
    /// the mean of the others).
    pub importance: f64,
    /// Expected gain of a review, in the same unit.
    pub gain: f64,
    /// The probable outcome.
    pub advice: Advice,
    /// Reasons to review it, strongest first.
    pub reasons: Vec<ReviewReason>,
    /// Number of captured pages.
    pub pages: u32,
    /// Pages to look at: first those to which something happened, then the site's most important page.
    pub samples: Vec<SamplePage>,
}

/// A reason to review a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewReason {
    /// The reason.
    pub reason: Reason,
    /// Share of the site's importance that it concerns, above 0, at most 1.
    pub share: f64,
    /// Description of the reason.
    pub words: String,
}

/// A site's score in the ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingScore {
    /// Name of the site.
    pub site: String,
    /// As in [`SiteToReview`].
    pub importance: f64,
    /// As in [`SiteToReview`].
    pub gain: f64,
}

/// The first sites to review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextSites {
    /// The sites, in order.
    pub rows: Vec<SiteToReview>,
    /// Number of sites that wait for review, shown or not.
    pub waiting: usize,
    /// Total importance of all sites that wait for review.
    pub importance: f64,
}

impl NextSites {
    /// The first `limit` rows of several archives, given each archive's rows for its own sites.
    #[must_use]
    pub fn together(each: Vec<Self>, limit: usize) -> Self {
        let mut all = Self::default();
        for mut one in each {
            all.rows.append(&mut one.rows);
            all.waiting += one.waiting;
            all.importance += one.importance;
        }
        all.rows.sort_by(|a, b| b.gain.total_cmp(&a.gain).then_with(|| a.site.cmp(&b.site)));
        all.rows.truncate(limit);
        all
    }

    /// Share of the waiting importance that is in the rows, 0 to 1.
    fn covered(&self) -> f64 {
        let shown: f64 = self.rows.iter().map(|row| row.importance).sum();
        if self.importance > 0.0 { shown / self.importance } else { 1.0 }
    }

    /// Summarises the rows in one sentence.
    #[must_use]
    pub fn sentence(&self, t: Language) -> String {
        match (self.rows.len(), self.waiting) {
            (_, 0) => t.say("No site waits for a review.").to_owned(),
            (1, 1) => t.say("This is the only site that waits for a review.").to_owned(),
            (shown, waiting) if shown == waiting => {
                t.fill("These {} sites are all that wait for a review.", &[&shown])
            }
            (shown, waiting) => {
                let what = "These {} of {} sites hold {} of the importance that waits for a review.";
                t.fill(what, &[&shown, &waiting, &t.percent(self.covered(), 0)])
            }
        }
    }
}

/// The sites of an archive with the highest gain, all or those in `among`, at most `limit`; ties are ordered by name.
/// Reasons are in language `t`.
///
/// # Errors
/// When the archive cannot be read.
pub fn next(
    store: &Store,
    access: &Access,
    decisions: &Decisions,
    among: Option<&HashSet<SiteId>>,
    limit: usize,
    t: Language,
) -> Result<NextSites, Failure> {
    let mut queue = Queue::of(store, access, decisions, among, t)?;
    let importance = queue.waiting.iter().map(|row| row.importance).sum();
    let waiting = queue.waiting.len();
    queue.waiting.truncate(limit);
    let (state, mut titles) = (store.state(), store.state().title_cursor());
    let rows = queue.waiting.into_iter().map(|row| {
        let (name, pages) = (&queue.names[row.site.index()], &queue.gathered[row.site.index()]);
        row.finish(state, name.clone(), pages, &mut titles)
    });
    Ok(NextSites { rows: rows.collect::<Result<_, _>>()?, waiting, importance })
}

/// The scores of all sites that wait for review, in order.
///
/// # Errors
/// When the archive cannot be read.
pub fn places(
    store: &Store,
    access: &Access,
    decisions: &Decisions,
    among: Option<&HashSet<SiteId>>,
) -> Result<Vec<RankingScore>, Failure> {
    let Queue { mut names, waiting, .. } = Queue::of(store, access, decisions, among, Language::English)?;
    let place = |WaitingSite { site, importance, gain, .. }| RankingScore {
        site: std::mem::take(&mut names[site.index()]),
        importance,
        gain,
    };
    Ok(waiting.into_iter().map(place).collect())
}

/// All sites that wait for review, in order, with the data that describes them.
struct Queue {
    names: Vec<String>,
    gathered: Vec<SiteTotals>,
    waiting: Vec<WaitingSite>,
}

impl Queue {
    fn of(
        store: &Store,
        access: &Access,
        decisions: &Decisions,
        among: Option<&HashSet<SiteId>>,
        t: Language,
    ) -> Result<Self, Failure> {
        let state = store.state();
        let names = state.sites().map(|site| site.map(|(_, name, _)| name)).collect::<Result<Vec<_>, _>>()?;
        let subject = |name: &String| Subject::Site(name.clone());
        let since: Vec<u32> = names.iter().map(|name| decided_at(decisions, &subject(name))).collect();
        let gathered = gather(state, access, &since)?;
        let likely =
            columns::read_all(store.path(), RowKind::Site)?.into_iter().find(|column| column.name == LIKELY);
        let mut titles = state.title_cursor();
        let mut waiting = Vec::new();
        for (number, (name, pages)) in names.iter().zip(&gathered).enumerate() {
            let site = SiteId(number as u32);
            if among.is_some_and(|among| !among.contains(&site)) {
                continue;
            }
            let title = title_of(state, &mut titles, pages.best.map(|(page, _)| page))?.unwrap_or_default();
            let likely = likely.as_ref().and_then(|column: &SavedColumn| column.get(number));
            let known = SiteFacts { pages, standing: decisions.on(&subject(name)), likely, title: &title, t };
            waiting.extend(WaitingSite::of(site, &known));
        }
        waiting.sort_by(|a, b| {
            b.gain.total_cmp(&a.gain).then_with(|| names[a.site.index()].cmp(&names[b.site.index()]))
        });
        Ok(Self { names, gathered, waiting })
    }
}

/// Time of the last decision on a site, seconds since 1970; 0 for never.
fn decided_at(decisions: &Decisions, subject: &Subject) -> u32 {
    decisions
        .at(decisions.newest(subject))
        .map_or(0, |decision| u32::try_from(decision.time.timestamp()).unwrap_or(0))
}

/// A site that is worth a review.
struct WaitingSite {
    site: SiteId,
    importance: f64,
    gain: f64,
    advice: Advice,
    found: Vec<WeighedReason>,
}

impl WaitingSite {
    fn of(site: SiteId, known: &SiteFacts<'_>) -> Option<Self> {
        if known.standing.is_some_and(is_closed) {
            return None;
        }
        let found = reasons(known);
        if is_decided(known.standing) && !found.iter().any(|found| found.reason.is_trouble()) {
            return None;
        }
        let worth = 1.0 - found.iter().map(|found| 1.0 - found.worth()).product::<f64>();
        let importance = known.pages.all.importance;
        let advice = advice(known, &found);
        (worth >= WORTH_MIN).then_some(Self { site, importance, gain: importance * worth, advice, found })
    }

    fn finish(
        self,
        state: &State,
        site: String,
        pages: &SiteTotals,
        titles: &mut TitleCursor<'_>,
    ) -> Result<SiteToReview, Failure> {
        let mut shown: Vec<UrlId> = pages.suspects.iter().chain(&pages.best).map(|(page, _)| *page).collect();
        let mut seen = HashSet::new();
        shown.retain(|page| seen.insert(*page));
        let samples = shown.into_iter().map(|page| {
            Ok(SamplePage { url: state.url(page)?, title: title_of(state, titles, Some(page))? })
        });
        let samples = samples.collect::<Result<_, Failure>>()?;
        let why = |found: WeighedReason| ReviewReason {
            reason: found.reason,
            share: found.share,
            words: found.words,
        };
        Ok(SiteToReview {
            site,
            importance: self.importance,
            gain: self.gain,
            advice: self.advice,
            reasons: self.found.into_iter().map(why).collect(),
            pages: pages.captured.pages,
            samples,
        })
    }
}

/// Whether a verdict ended it, so that nothing can go wrong any more.
fn is_closed(standing: &CurrentDecisions) -> bool {
    matches!(standing.verdict, Some((verdict, ..)) if verdict.ends_fetching())
}

fn is_decided(standing: Option<&CurrentDecisions>) -> bool {
    standing.is_some_and(|standing| standing.verdict.is_some() || standing.rating().is_some())
}

/// What the reviewer would probably do.
fn advice(known: &SiteFacts<'_>, found: &[WeighedReason]) -> Advice {
    let is_most = |reason: Reason| found.iter().any(|found| found.reason == reason && found.share > MOST);
    if is_most(Reason::Parked) {
        return Advice::Reject;
    }
    let away = [Happened::Gone, Happened::Moved, Happened::Failing].map(|what| known.pages.of(what).pages);
    let captured = known.pages.captured.pages;
    if captured > 0 && away.iter().sum::<u32>() >= captured {
        return Advice::Delist;
    }
    if found.iter().any(|found| found.reason.is_trouble() || found.reason == Reason::Unsure) {
        return Advice::Investigate;
    }
    match known.likely {
        Some(likely) if likely < LIKELY_NO => Advice::Reject,
        Some(likely) if likely >= LIKELY_YES => Advice::Archive,
        _ if captured > 0 => Advice::Archive,
        _ => Advice::Investigate,
    }
}

/// The title of a page's newest version, in one line.
fn title_of(
    state: &State,
    titles: &mut TitleCursor<'_>,
    page: Option<UrlId>,
) -> Result<Option<String>, StateError> {
    let Some(page) = page else { return Ok(None) };
    let Some(position) = state.visit(page)?.and_then(|visit| visit.title) else { return Ok(None) };
    let title = super::sheet::one_line(titles.get(position)?);
    Ok(Some(title).filter(|title| !title.is_empty()))
}

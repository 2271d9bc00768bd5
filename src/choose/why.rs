//! Why a URL is in the archive or not: how it was found, the rules of its host, its budget and its next fetch.
//!
//! Everything is read from the store as of its last checkpoint; there are no network requests.

use archive_base::access::Access;
use archive_base::error::Failure;
use archive_base::texts::{Language, put};
use archive_books::change::{missing_entities, version_until};
use archive_books::ledger::{
    CrawlerFacts, Credits, Refusal, ScopeVerdict, Tested, authority, host_name, page_flags as flags,
};
use archive_books::topics::{self, TopicError};
use archive_math::focus::FocusMode;
use archive_storage::address::site_of;
use archive_storage::{Page, State, Store, UrlId};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::due::{NextVisit, Outlook, RefreshChoice, RefreshRules, Weights};
use super::focus::Focused;
use super::order::CrawlOrder;
use super::policy::CrawlPolicy;
use super::visits::{self, RobotsAnswer, StoredVisit, utc};

/// Maximum number of captures of the linking page that are read to find the one with the link.
const VIA_CAPTURES_MAX: usize = 64;

/// Maximum number of pages listed on the way from a seed.
const WAY_MAX: usize = 32;

/// Parts that change the log-odds of a page by less are not listed.
const PART_MIN: f64 = 0.05;

/// What is known about a URL; times are UTC.
#[derive(Debug, Clone, Serialize)]
pub struct UrlStory {
    /// The URL in canonical form.
    pub url: String,
    /// What has become of it so far, in a sentence.
    pub verdict: String,
    /// Why it is not fetched, if so.
    pub refusal: Option<Refusal>,
    /// How it was found.
    pub found: FirstSighting,
    /// Whether it is in scope, in a sentence.
    pub scope: String,
    /// What the robots.txt of its host says, if it was ever requested.
    pub robots: Option<RobotsAnswer>,
    /// Fetched pages and limits of its host and site.
    pub spent: Spent,
    /// What people decided about it, in a sentence; `None` without a decision.
    pub decided: Option<String>,
    /// What its site or a notice announced about it, in a sentence; `None` without an announcement.
    pub announced: Option<String>,
    /// External entities of its newest version that the archive does not have, by their system identifiers.
    pub missing_entities: Vec<String>,
    /// The order in which the last crawl fetched pages.
    #[serde(serialize_with = "archive_base::as_text::serialize")]
    pub order: CrawlOrder,
    /// The view of the last crawl, if that was focused.
    pub topic: Option<FocusReport>,
    /// Its last fetch.
    pub last_fetch: Option<LastFetch>,
    /// Importance, with mean 1 over all pages; `None` if it is not a page.
    pub importance: Option<f64>,
    /// The URL that is fetched instead, as it differs in parameters that make no difference.
    pub stand_in: Option<String>,
    /// Parameters that were tested on its host.
    pub parameters: Vec<Tested>,
    /// When to fetch it again, if it was fetched.
    pub next_visit: Option<NextVisit>,
}

/// How a URL was found.
#[derive(Debug, Clone, Serialize)]
pub struct FirstSighting {
    /// Whether it is a seed.
    pub seed: bool,
    /// The linking pages, nearest first: the page with the link, the page that linked to that page, and so on.
    pub via: Vec<String>,
    /// Kinds of the links from a seed to here, one letter each, as in Heritrix.
    pub hops: String,
    /// When the link was first seen.
    #[serde(serialize_with = "utc")]
    pub time: Option<DateTime<Utc>>,
    /// Number of links from the nearest seed.
    pub depth: u8,
}

/// How much of their budgets the host and the site of a URL have used.
#[derive(Debug, Clone, Serialize)]
pub struct Spent {
    /// The host with its port.
    pub host: String,
    /// Fetched pages of the host.
    pub host_pages: u32,
    /// The site.
    pub site: String,
    /// Page limit of the host, if any.
    pub host_budget: Option<u32>,
    /// Fetched pages of the site.
    pub site_pages: u32,
    /// Page limit of the site, if any.
    pub site_budget: Option<u32>,
    /// Importance of the site by links from other sites; the mean is 1.
    pub site_importance: f64,
}

/// The newest capture of a URL.
#[derive(Debug, Clone, Serialize)]
pub struct LastFetch {
    /// Its outcome.
    #[serde(flatten)]
    pub visit: StoredVisit,
    /// Captures so far.
    pub captures: u32,
}

/// How a focused crawl rates a URL.
#[derive(Debug, Clone, Serialize)]
pub struct FocusReport {
    /// The topic.
    pub name: String,
    /// The mode of the crawl.
    #[serde(serialize_with = "archive_base::as_text::serialize")]
    pub mode: FocusMode,
    /// Weight of the topic relative to importance.
    pub weight: f64,
    /// Probability of the topic, once the page was fetched and has text.
    pub probability: Option<f64>,
    /// Expected relevance while it waits, from 0 to 1; `None` if no page that counts links to it.
    pub promise: Option<f64>,
    /// Contributions to the expected relevance in log-odds, in mode `learned`; the largest first.
    pub parts: Vec<(&'static str, f64)>,
}

/// Reports what is known about the URL `id`. The next visit assumes `fetches_per_day`, or else the past rate of the
/// archive, and page weights by `weights`. Sentences are in language `t`.
///
/// # Errors
/// If the store cannot be read.
pub fn why(
    store: &Store,
    access: &Access,
    id: UrlId,
    weights: Weights,
    fetches_per_day: Option<f64>,
    now: DateTime<Utc>,
    t: Language,
) -> Result<UrlStory, Failure> {
    let state = store.state();
    let credits = Credits::open(state)?;
    let policy = CrawlPolicy::of_last_crawl(state)?;
    let url = state.url(id)?;
    let page = state.page(id)?;
    let host = authority(&url);
    let found = found(store, id, &page)?;
    let is_foreign = credits.foreign_owner(page.host).is_some();
    let refusal = Refusal::from_code(flags::refusal_code(page.flags));
    let refusal = refusal.or_else(|| is_foreign.then_some(Refusal::OtherPartition));
    let last_fetch = last_fetch(store, access, id, &policy)?;
    let stand_in = credits.stand_in(state, id)?.map(|id| state.url(id)).transpose()?;
    let verdict = match &stand_in {
        Some(stand_in) => t.fill("is fetched as {}, which is the same page", &[stand_in]),
        None => verdict(&page, refusal, last_fetch.as_ref(), t),
    };
    let choice = &RefreshChoice::new(RefreshRules::kept(state)?, weights);
    let outlook = Outlook { store, credits: &credits, choice, fetches_per_day, now };
    Ok(UrlStory {
        verdict,
        refusal,
        found,
        scope: scope(&credits, &url, &page, t),
        robots: visits::robots(store, &url, host, &policy.robots_name, i64::MAX)?,
        spent: spent(state, &credits, &page, host, &policy)?,
        decided: choice.weights.standing(state, id)?.sentence(t),
        announced: announced(state, id, &page, t)?,
        missing_entities: missing(store, access, id)?,
        order: policy.order,
        topic: standing(store, id, &policy, last_fetch.is_some())?,
        last_fetch,
        importance: credits.importance_of(state, id)?,
        stand_in,
        parameters: credits.tested(page.host),
        next_visit: outlook.of(id)?.filter(|_| refusal != Some(Refusal::Erased)),
        url,
    })
}

fn missing(store: &Store, access: &Access, id: UrlId) -> Result<Vec<String>, Failure> {
    let newest = version_until(store, access, id, i64::MAX)?;
    let missing = newest.map(|newest| missing_entities(store, access, &newest)).transpose()?;
    Ok(missing.flatten().unwrap_or_default())
}

fn announced(state: &State, id: UrlId, page: &Page, t: Language) -> Result<Option<String>, Failure> {
    if page.flags.has_any(flags::PUBLISHED) {
        let said = t.say("a change was announced: the next refresh or crawl fetches it first");
        return Ok(Some(said.to_owned()));
    }
    let visit = state.visit(id)?.filter(|visit| visit.announcements > 0);
    Ok(visit.map(|visit| {
        let (one, many) = (
            "{} change was announced, {} of these was found",
            "{} changes were announced, {} of these were found",
        );
        put(
            t.plural(visit.announcements.into(), one, many),
            &[&visit.announcements, &visit.announcements_confirmed],
        )
    }))
}

fn standing(
    store: &Store,
    id: UrlId,
    policy: &CrawlPolicy,
    is_fetched: bool,
) -> Result<Option<FocusReport>, Failure> {
    let Some(policy) = &policy.focus else { return Ok(None) };
    let standing = |probability, promise, parts| FocusReport {
        name: policy.topic.clone(),
        mode: policy.mode,
        weight: policy.weight,
        probability,
        promise,
        parts,
    };
    if is_fetched {
        // The topic may have been removed since.
        let topic = topics::get(store.path(), &policy.topic).ok();
        let document = topics::read_documents(store, &[id])?;
        let probability = topic.and_then(|topic| topics::judge(&topic, &document, &[]).1.pop());
        return Ok(Some(standing(probability, None, Vec::new())));
    }
    let focused = match Focused::begin(store, policy, &[]) {
        Err(TopicError::Missing(_)) => return Ok(None),
        begun => begun?,
    };
    let mut parts = focused.parts(id);
    parts.retain(|part| part.1.abs() >= PART_MIN);
    parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    Ok(Some(standing(None, focused.share(id), parts)))
}

fn verdict(page: &Page, refusal: Option<Refusal>, last: Option<&LastFetch>, t: Language) -> String {
    let flags = page.flags;
    let wanted = flags.has_any(flags::IN_SCOPE | flags::REQUISITE);
    let waits = match (last, refusal) {
        (Some(LastFetch { visit: StoredVisit { erased: Some(erased), .. }, .. }), Some(Refusal::Erased)) => {
            return t.fill("was {}", &[erased]);
        }
        (Some(LastFetch { visit: StoredVisit { error: Some(error), .. }, .. }), _) => {
            return t.fill("was requested, but the request failed: {}", &[error]);
        }
        (Some(last), _) => {
            let (one, many) =
                ("was fetched once, with status {}", "was fetched {} times, with status {} last");
            let status = &last.visit.status;
            return match last.captures {
                1 => t.fill(one, &[status]),
                captures => t.fill(many, &[&captures, status]),
            };
        }
        (None, Some(Refusal::OtherPartition)) if !wanted => "is not fetched: it is out of scope",
        (None, Some(why)) => return t.fill("is not fetched: {}", &[&t.say(why.sentence())]),
        (None, None) if flags.has_any(flags::ROBOTS) => "is fetched before the pages of its host",
        (None, None) if wanted => "waits to be fetched",
        (None, None) => "is not fetched: it is out of scope",
    };
    t.say(waits).to_owned()
}

fn scope(credits: &Credits, url: &str, page: &Page, t: Language) -> String {
    let host = authority(url);
    let site = site_of(host_name(host));
    let flags = page.flags;
    if let Some(to) = credits.scope().moved_to(url).filter(|_| flags.has_any(flags::SEED)) {
        return t.fill("a seed belongs to the crawl; it has moved to {}", &[&to]);
    }
    let said = match credits.scope().verdict(url, host, site, page.depth) {
        _ if flags.has_any(flags::SEED) => "a seed belongs to the crawl",
        ScopeVerdict::Inside if flags.has_any(flags::IN_SCOPE) => "inside",
        ScopeVerdict::Outside if flags.has_any(flags::IN_SCOPE) => "a seed leads to it",
        ScopeVerdict::Inside if flags.has_any(flags::ACCOUNT) => "inside, but after too many redirects",
        ScopeVerdict::TooDeep { max } => {
            let (one, many) = (
                "too deep: {} link from a seed; its seeds allow {}",
                "too deep: {} links from a seed; its seeds allow {}",
            );
            return put(t.plural(page.depth.into(), one, many), &[&page.depth, &max]);
        }
        _ if flags.has_any(flags::REQUISITE) => "a part of a page that belongs to the crawl",
        ScopeVerdict::Inside => "inside, but no page links to it as a page",
        ScopeVerdict::Outside => "outside: not covered by the host, site or pattern of any seed",
    };
    t.say(said).to_owned()
}

fn found(store: &Store, id: UrlId, page: &Page) -> Result<FirstSighting, Failure> {
    let state = store.state();
    let mut via = Vec::new();
    let mut hops = Vec::new();
    let mut step = *page;
    while let Some(before) = step.via.filter(|_| via.len() < WAY_MAX) {
        hops.push(char::from(step.hop));
        via.push(state.url(before)?);
        step = state.page(before)?;
    }
    hops.reverse();
    let time = match page.via {
        Some(via) => link_seen(store, via, &state.url(id)?)?,
        None => None,
    };
    let seed = page.flags.has_any(flags::SEED);
    Ok(FirstSighting { seed, via, hops: hops.into_iter().collect(), time, depth: page.depth })
}

/// Returns the time of the first capture of a page that has the link, or of its first capture if no record shows the
/// link.
fn link_seen(store: &Store, page: UrlId, url: &str) -> Result<Option<DateTime<Utc>>, Failure> {
    let mut captures = Vec::new();
    for capture in store.state().history(page)? {
        captures.push(capture?.1);
    }
    let time = |micros| DateTime::<Utc>::from_timestamp_micros(micros);
    for capture in captures.iter().rev().take(VIA_CAPTURES_MAX) {
        // Records may be newer than the checkpoint, never older; damaged ones are skipped.
        let Ok(fields) = store.metadata(capture) else { continue };
        if CrawlerFacts::from_fields(&fields).links.iter().any(|link| link.url == url) {
            return Ok(time(capture.time));
        }
    }
    Ok(captures.last().and_then(|capture| time(capture.time)))
}

fn spent(
    state: &State,
    credits: &Credits,
    page: &Page,
    host: &str,
    policy: &CrawlPolicy,
) -> Result<Spent, Failure> {
    let record = state.host(page.host)?;
    let site = state.site(record.site)?;
    let importance = credits.site_importance(&site);
    Ok(Spent {
        host_budget: policy.budgets.of_host(importance),
        site_budget: policy.budgets.of_site(importance),
        host: host.to_owned(),
        host_pages: record.fetched,
        site: state.site_name(record.site)?,
        site_pages: site.fetched,
        site_importance: importance,
    })
}

fn last_fetch(
    store: &Store,
    access: &Access,
    id: UrlId,
    policy: &CrawlPolicy,
) -> Result<Option<LastFetch>, Failure> {
    let Some(visit) = visits::visits(store, access, id, &policy.robots_name, 1)?.pop() else {
        return Ok(None);
    };
    Ok(Some(LastFetch { visit, captures: store.state().visit(id)?.map_or(0, |visit| visit.captures) }))
}

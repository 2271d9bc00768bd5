//! Why a URL is in the archive or is not: what is known of its way, its host's rules, its budget and its next fetch.
//!
//! Everything is read from the store as of its last checkpoint; nothing is asked of the network.

use archive_storage::address::site_of;
use archive_storage::{Page, State, Store, UrlId};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::due::{self, Choice, RefreshRules, Weights};
use super::focus::{FocusMode, Focused};
use super::order::CrawlOrder;
use super::policy::CrawlPolicy;
use super::visits::{self, RobotsAnswer, StoredVisit, utc};
use crate::access::Access;
use crate::ledger::{Credits, Facts, Refusal, ScopeVerdict, authority, host_name, page_flags as flags};
use crate::recorder::RecorderError;
use crate::texts::{Language, put};
use crate::topics::{self, TopicError};

/// Captures of the page that led here that are read to find the one with the link.
const VIA_CAPTURES_MAX: usize = 64;

/// Pages of the way from a seed that are listed.
const WAY_MAX: usize = 32;

/// Parts that add less to the log-odds of a page are not listed.
const PART_MIN: f64 = 0.05;

/// What is known of a URL; times are UTC.
#[derive(Debug, Clone, Serialize)]
pub struct Why {
    /// The URL in canonical form.
    pub url: String,
    /// What became of it so far, in a sentence.
    pub verdict: String,
    /// Why it is not fetched, if it is not.
    pub refusal: Option<Refusal>,
    /// How it was found.
    pub found: Found,
    /// Whether it belongs to the crawl's scope, in a sentence.
    pub scope: String,
    /// Its host's robots.txt, if it was ever asked for.
    pub robots: Option<RobotsAnswer>,
    /// What its host and its site have had.
    pub spent: Spent,
    /// What people decided on it, in a sentence; none without a decision.
    pub decided: Option<String>,
    /// What was announced of it by its site or by a notice, in a sentence; nothing if nothing was.
    pub announced: Option<String>,
    /// The order in which the last crawl fetched pages.
    pub order: CrawlOrder,
    /// What the last crawl, if it was focused, thinks of it.
    pub topic: Option<FocusReport>,
    /// Its last fetch.
    pub last_fetch: Option<LastFetch>,
    /// Importance, mean 1 over all pages; nothing for what is not a page.
    pub importance: Option<f64>,
    /// When it is worth fetching again, if it was fetched.
    pub next_visit: Option<NextVisit>,
}

/// How a URL was found.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Whether it is a seed.
    pub seed: bool,
    /// The page with the link, nearest first, then the page that led there, and so on.
    pub via: Vec<String>,
    /// The kinds of links from a seed to here, a letter each, as Heritrix has them.
    pub hops: String,
    /// When the link was first seen.
    #[serde(serialize_with = "utc")]
    pub time: Option<DateTime<Utc>>,
    /// Links from the nearest seed.
    pub depth: u8,
}

/// What a URL's host and site have had of the crawl.
#[derive(Debug, Clone, Serialize)]
pub struct Spent {
    /// The host with its port.
    pub host: String,
    /// Pages of the host that were fetched.
    pub host_pages: u32,
    /// The site.
    pub site: String,
    /// Pages that the host may have, if anything limits them.
    pub host_budget: Option<u32>,
    /// Pages of the site that were fetched.
    pub site_pages: u32,
    /// Pages that the site may have, if anything limits them.
    pub site_budget: Option<u32>,
    /// Importance of the site by links from other sites, mean 1.
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

/// When a page is worth fetching again, by the policy of the archive's refreshes.
#[derive(Debug, Clone, Serialize)]
pub struct NextVisit {
    /// The policy.
    pub policy: String,
    /// Changes a day, estimated from the page's own visits.
    pub changes_per_day: f64,
    /// The budget that the time is worked out for, fetches a day.
    pub fetches_per_day: f64,
    /// Days from one fetch to the next in the long run: the age at which the policy's rule values a page's copy as high as
    /// the last one that the budget suffices for. Nothing for a page that is given up.
    pub interval_days: Option<f64>,
    /// When it is due: so many days after its last fetch. Nothing for a page that is given up.
    #[serde(serialize_with = "utc")]
    pub due: Option<DateTime<Utc>>,
    /// Pages whose fetch is worth more now.
    pub before: u64,
    /// Pages that can be fetched again.
    pub of: u64,
    /// Whether both numbers are estimated from a sample, as in archives of more than 32 768 fetched pages.
    pub estimated: bool,
}

/// What a focused crawl thinks of a URL.
#[derive(Debug, Clone, Serialize)]
pub struct FocusReport {
    /// The topic.
    pub name: String,
    /// The mode of the crawl.
    pub mode: FocusMode,
    /// How much the topic counts beside importance.
    pub weight: f64,
    /// How probably it is of the topic, once it was fetched and has text.
    pub probability: Option<f64>,
    /// While it waits: how promising it is, from 0 to 1; nothing if no page that counts leads to it.
    pub promise: Option<f64>,
    /// What that consists of, in log-odds, by the mode `learned`: the largest part first.
    pub parts: Vec<(&'static str, f64)>,
}

/// Reports what is known of the URL `id`; a refresh is taken to have `fetches_per_day`, or else what the archive had so far, and
/// pages to weigh what `weights` say. Sentences are in a language.
///
/// # Errors
/// When the store cannot be read.
pub fn why(
    store: &Store,
    access: &Access,
    id: UrlId,
    weights: Weights,
    fetches_per_day: Option<f64>,
    now: DateTime<Utc>,
    t: Language,
) -> Result<Why, RecorderError> {
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
    let verdict = verdict(&page, refusal, last_fetch.as_ref(), t);
    Ok(Why {
        verdict,
        refusal,
        found,
        scope: scope(&credits, &url, &page, t),
        robots: visits::robots(store, &url, host, &policy.robots_name, i64::MAX)?,
        spent: spent(state, &credits, &page, host, &policy)?,
        decided: weights.standing(state, id)?.sentence(t),
        announced: announced(state, id, &page, t)?,
        order: policy.order,
        topic: standing(store, id, &policy, last_fetch.is_some())?,
        last_fetch,
        importance: credits.importance_of(state, id)?,
        next_visit: next_visit(store, &credits, weights, id, fetches_per_day, now)?,
        url,
    })
}

fn announced(state: &State, id: UrlId, page: &Page, t: Language) -> Result<Option<String>, RecorderError> {
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
) -> Result<Option<FocusReport>, RecorderError> {
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
        // The topic may be gone since.
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
            return t.fill("was asked for without an answer: {}", &[error]);
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
        (None, None) if flags.has_any(flags::ROBOTS) => "is fetched before pages of its host are",
        (None, None) if wanted => "waits to be fetched",
        (None, None) => "is not fetched: it is out of scope",
    };
    t.say(waits).to_owned()
}

fn scope(credits: &Credits, url: &str, page: &Page, t: Language) -> String {
    let host = authority(url);
    let site = site_of(host_name(host));
    let flags = page.flags;
    let said = match credits.scope().verdict(url, host, site, page.depth) {
        _ if flags.has_any(flags::SEED) => "a seed belongs to the crawl",
        ScopeVerdict::Inside if flags.has_any(flags::IN_SCOPE) => "inside",
        ScopeVerdict::Inside if flags.has_any(flags::ACCOUNT) => "inside, but after too many redirects",
        ScopeVerdict::TooDeep { max } => {
            let (one, many) = (
                "too deep: {} link from a seed, where its seeds allow {}",
                "too deep: {} links from a seed, where its seeds allow {}",
            );
            return put(t.plural(page.depth.into(), one, many), &[&page.depth, &max]);
        }
        _ if flags.has_any(flags::REQUISITE) => "a part of a page that belongs to the crawl",
        ScopeVerdict::Inside => "inside, but no page links to it as a page",
        ScopeVerdict::Outside => "outside: no seed's host, site or pattern holds it",
    };
    t.say(said).to_owned()
}

fn found(store: &Store, id: UrlId, page: &Page) -> Result<Found, RecorderError> {
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
    Ok(Found { seed, via, hops: hops.into_iter().collect(), time, depth: page.depth })
}

/// The time of the first capture of a page that has the link; of its first capture if no record shows the link.
fn link_seen(store: &Store, page: UrlId, url: &str) -> Result<Option<DateTime<Utc>>, RecorderError> {
    let mut captures = Vec::new();
    for capture in store.state().history(page)? {
        captures.push(capture?.1);
    }
    let time = |micros| DateTime::<Utc>::from_timestamp_micros(micros);
    for capture in captures.iter().rev().take(VIA_CAPTURES_MAX) {
        // A checkpoint is older than the newest records, never the other way round; a damaged one is skipped.
        let Ok(fields) = store.metadata(capture) else { continue };
        if Facts::from_fields(&fields).links.iter().any(|link| link.url == url) {
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
) -> Result<Spent, RecorderError> {
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
) -> Result<Option<LastFetch>, RecorderError> {
    let Some(visit) = visits::visits(store, access, id, &policy.robots_name, 1)?.pop() else {
        return Ok(None);
    };
    Ok(Some(LastFetch { visit, captures: store.state().visit(id)?.map_or(0, |visit| visit.captures) }))
}

/// When the page is due, beside everything that was fetched.
fn next_visit(
    store: &Store,
    credits: &Credits,
    weights: Weights,
    id: UrlId,
    fetches_per_day: Option<f64>,
    now: DateTime<Utc>,
) -> Result<Option<NextVisit>, RecorderError> {
    let state = store.state();
    let choice = Choice::new(RefreshRules::kept(state)?, weights);
    let Some(turn) = due::turn(store, credits, &choice, id, fetches_per_day, now)? else { return Ok(None) };
    let due = state.visit(id)?.and_then(|visit| due::due(&visit, turn.interval));
    Ok(Some(NextVisit {
        policy: turn.policy,
        changes_per_day: turn.changes_per_day,
        fetches_per_day: turn.fetches_per_day,
        interval_days: Some(turn.interval).filter(|days| days.is_finite()),
        due,
        before: turn.before,
        of: turn.of,
        estimated: turn.is_estimate,
    }))
}

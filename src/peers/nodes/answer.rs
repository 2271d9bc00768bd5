//! Answers of one archive to a request from a program that queries several archives.

use archive_ask::find::{Kept, Times};
use archive_ask::query::{self, Limits, Plan, Question, Rows as _, Running, Together};
use archive_base::access::Access;
use archive_books::ledger::{Credits, captured_sites, known_sites};
use archive_storage::Store;
use chrono::{DateTime, Utc};

use super::wire::{Ask, Head, Line, Request, URLS_MAX, VERSION, Versioned};
use super::{AskError, exported, planned, ranked, reviewed};

/// Receives lines as they arrive.
pub(super) type Take<'a> = dyn FnMut(Line) -> Result<(), AskError> + 'a;

impl Ask {
    /// Parses a request.
    ///
    /// # Errors
    /// When it is not a request, or has another protocol version.
    pub fn read(bytes: &[u8]) -> Result<Self, AskError> {
        let wrong = |error: serde_json::Error| AskError::Wrong(format!("this is not a request: {error}"));
        let Versioned { version } = serde_json::from_slice(bytes).map_err(wrong)?;
        if version != VERSION {
            return Err(AskError::Wrong(format!(
                "this is version {version} of the protocol between archives, and this program speaks version {VERSION}"
            )));
        }
        Ok(serde_json::from_slice::<Request<Self>>(bytes).map_err(wrong)?.ask)
    }
}

impl Head {
    /// The first line of an archive's answer.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn of(store: &Store) -> Result<Self, AskError> {
        Ok(Self {
            version: VERSION,
            partition: Credits::partition_of(store.state())?,
            origins: None,
            state: Some(store.state().identity()),
        })
    }
}

pub(super) fn instant(micros: i64) -> Result<DateTime<Utc>, AskError> {
    let wrong = || AskError::Wrong("`now` is not a valid time".to_owned());
    DateTime::from_timestamp_micros(micros).ok_or_else(wrong)
}

/// The plan of a query, or of one of its inner queries.
fn plan(query: &str, now: i64, inner: &[usize]) -> Result<Plan, AskError> {
    let plan = Plan::of_several(query, instant(now)?)?;
    plan.inner(inner).ok_or_else(|| AskError::Wrong("the query has no such inner query".to_owned()))
}

/// Answers a request to an archive, within `limits` and as far as `access` permits: all lines except the head. The
/// cache in `kept` makes searches cheaper.
///
/// # Errors
/// When the request is wrong or the archive cannot be read, and the errors of `take`.
pub fn answer(
    store: &Store,
    access: &Access,
    ask: &Ask,
    limits: Limits,
    kept: Option<&Kept>,
    take: &mut Take<'_>,
) -> Result<(), AskError> {
    let mut matched = None;
    match ask {
        Ask::Sites {} => {
            for (site, is_captured) in known_sites(store.state())? {
                take(Line::Site(site, is_captured))?;
            }
            take(Line::Times(Times::searched(store, access.clone())?))?;
        }
        Ask::Words { query, now, inner } => {
            let question = Question::part(store, access.clone(), plan(query, *now, inner)?, 0)?;
            take(Line::Words(question.statistics()?))?;
        }
        Ask::Portions { query, now, limit, words, inner, related, place } => {
            let plan = plan(query, *now, inner)?.with_related(related.clone());
            let plan = plan.ok_or_else(|| {
                AskError::Wrong("the pages of the query's relations are not those that it has".to_owned())
            })?;
            let question = Question::part(store, access.clone(), plan, *place)?;
            let question = question.within(Running::new(limits, false));
            let mut question = question.with_statistics(words.clone());
            limit.map(|limit| question.plan.limit_if_unlimited(limit));
            let is_captured = captured_sites(store.state())?;
            let mut failed = None;
            let found = question.portions(&is_captured, &mut |portion| {
                take(Line::Portion(portion)).map_err(|error| {
                    failed = Some(error);
                    query::Error::Rows("a line was refused".into())
                })
            });
            failed.map_or(Ok(()), Err)?;
            matched = found?;
        }
        Ask::FindWords { wanted } => take(Line::Found(wanted.within(limits).words(store, access, kept)?))?,
        Ask::FindLinked { wanted, words } => {
            let captured = captured_sites(store.state())?;
            let linked = wanted.within(limits).linked(store, access, words, &captured, kept)?;
            linked.into_iter().try_for_each(|linked| take(Line::Linked(linked)))?;
        }
        Ask::FindBest { wanted, words, linked } => {
            take(Line::Best(wanted.within(limits).best(store, access, words, linked, kept)?))?;
        }
        Ask::FindShown { wanted, words, pages } => {
            let shown = wanted.within(limits).shown(store, access, words, pages, kept)?;
            shown.into_iter().try_for_each(|shown| take(Line::Shown(shown)))?;
        }
        Ask::Captures { query } => {
            let sent = archive_replay::sent(store, access, query, |values| take(Line::Capture(values)));
            sent?.map_err(AskError::Wrong)?;
        }
        Ask::Outline { rows, from, room } => {
            ranked::outline(store, (*rows, *from), *room, limits.until(), take)?;
        }
        Ask::Urls { pages } if pages.len() > URLS_MAX => {
            return Err(AskError::Wrong(format!("more than {URLS_MAX} pages cannot be looked up at once")));
        }
        Ask::Urls { pages } => ranked::urls(store, access, pages, take)?,
        Ask::Copies(wanted) => take(planned::copies(store, access, wanted, limits)?)?,
        Ask::Export(wanted) => exported::answer(store, access, wanted, limits, take)?,
        Ask::Waiting { query, now } => {
            reviewed::places(store, access, (query.as_deref(), *now), limits, take)?;
        }
        Ask::Reviewed { sites } | Ask::Samples { sites } if sites.len() > URLS_MAX => {
            return Err(AskError::Wrong(format!("more than {URLS_MAX} sites cannot be described at once")));
        }
        Ask::Reviewed { sites } => reviewed::rows(store, access, sites, take)?,
        Ask::Samples { sites } => reviewed::samples(store, access, sites, limits, take)?,
        Ask::Targets { urls } | Ask::Known { urls } if urls.len() > URLS_MAX => {
            return Err(AskError::Wrong(format!("more than {URLS_MAX} URLs cannot be looked up at once")));
        }
        Ask::Targets { urls } => {
            let mut rows = Together::part(store, access.clone(), 0)?;
            rows.run_within(Running::new(limits, false));
            let targets = rows.targets(urls).map_err(query::Error::from)?;
            targets.into_iter().try_for_each(|url| take(Line::Target(url)))?;
        }
        Ask::Known { urls } => {
            let rows = Together::part(store, access.clone(), 0)?;
            for (place, url) in (0..).zip(urls) {
                let found = rows.find(url).map_err(query::Error::from)?;
                let row = found.map(|id| rows.page(id)).transpose().map_err(query::Error::from)?;
                if row.flatten().is_some() {
                    take(Line::Known(place))?;
                }
            }
        }
    }
    take(Line::End { matched })
}

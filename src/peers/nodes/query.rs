//! Queries of several archives: the words and pages that a query needs of all of them, their portions of the answer, and
//! the rows that several have.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use archive_ask::query::{self, Doubt, Plan, Question, Rows as _, Running, Taken, Together, Value};
use archive_books::ledger::captured_sites;
use archive_books::search::Statistics;
use archive_grammar::Relation;
use archive_replay::Values;
use archive_storage::UrlId;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ask::{
    AskedFolder, CaptureRows, EndOf, LeafAnswer, LinkTargets, QueryPortions, QueryWords, ShownUrls, Take,
    URLS_MAX, expect_few, instant,
};
use super::root::{Root, RoundFailure};
use super::{AskError, NodeError};

/// Maximum size of the URLs of pages that a relation names, in bytes.
const RELATED_BYTES_MAX: usize = 2 << 20;

/// Maximum size of the URLs in one request, in bytes.
const URLS_BYTES_MAX: usize = 4 << 20;

/// A query, or one of its inner queries. Days and hours without a time zone are in UTC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueryText {
    query: String,
    /// Reference time for expressions such as `30 days ago`, microseconds since 1970.
    now: i64,
    /// Path to the inner query that is asked: its index among the searches at each level.
    #[serde(default)]
    inner: Vec<usize>,
}

impl QueryText {
    pub(super) fn new(query: &str, now: DateTime<Utc>) -> Self {
        Self { query: query.to_owned(), now: now.timestamp_micros(), inner: Vec::new() }
    }

    fn plan(&self) -> Result<Plan, AskError> {
        let plan = Plan::of_several(&self.query, instant(self.now)?)?;
        plan.inner(&self.inner).ok_or_else(|| AskError::Wrong("the query has no such inner query".to_owned()))
    }
}

/// A query with what it needs of all archives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueryInput {
    of: QueryText,
    /// Term statistics of its searches, summed over all archives.
    words: Option<Statistics>,
    /// For each of its relations, the URLs of the pages found by all archives ([`Plan::with_related`]).
    #[serde(default)]
    related: Vec<Vec<String>>,
}

impl QueryInput {
    /// The query, as typed.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.of.query
    }

    /// The question to the archive at `place` among all.
    fn question<'a>(self, folder: &AskedFolder<'a>, place: usize) -> Result<Question<'a>, AskError> {
        let plan = self.of.plan()?.with_related(self.related).ok_or_else(|| {
            AskError::Wrong("the pages of the query's relations are not those that it has".to_owned())
        })?;
        let question = Question::part(folder.store, folder.access.clone(), plan, place)?;
        Ok(question.within(Running::new(folder.limits, false)).with_statistics(self.words))
    }

    /// The pages of one archive, all that match.
    pub(super) fn pages(self, folder: &AskedFolder<'_>) -> Result<HashSet<UrlId>, AskError> {
        let question = self.question(folder, 0)?;
        question.plan.expect_whole()?;
        Ok(question.pages()?.into_iter().map(|page| question.rows.origin(page).2).collect())
    }
}

impl LeafAnswer for QueryWords {
    fn answer(self, folder: &AskedFolder<'_>, _: Take<'_, Self>) -> EndOf<Self> {
        Ok(Question::part(folder.store, folder.access.clone(), self.of.plan()?, 0)?.statistics()?)
    }
}

impl LeafAnswer for QueryPortions {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let mut question = self.input.question(folder, self.place)?;
        self.limit.map(|limit| question.plan.limit_if_unlimited(limit));
        let is_captured = captured_sites(folder.store.state())?;
        let mut failed = None;
        let found = question.portions(&is_captured, &mut |portion| {
            take(portion).map_err(|error| {
                failed = Some(error);
                query::Error::Rows("a row was refused".into())
            })
        });
        failed.map_or(Ok(()), Err)?;
        Ok(found?)
    }
}

impl LeafAnswer for LinkTargets {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        expect_few(&self.urls, "URLs cannot be looked up")?;
        let mut rows = Together::part(folder.store, folder.access.clone(), 0)?;
        rows.run_within(Running::new(folder.limits, false));
        rows.targets(&self.urls).map_err(query::Error::from)?.into_iter().try_for_each(take)
    }
}

impl LeafAnswer for ShownUrls {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        expect_few(&self.urls, "URLs cannot be looked up")?;
        let rows = Together::part(folder.store, folder.access.clone(), 0)?;
        for (index, url) in self.urls.iter().enumerate() {
            let found = rows.find(url).map_err(query::Error::from)?;
            let row = found.map(|id| rows.page(id)).transpose().map_err(query::Error::from)?;
            if row.flatten().is_some() {
                take(index)?;
            }
        }
        Ok(())
    }
}

impl LeafAnswer for CaptureRows {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        archive_replay::sent(folder.store, folder.access, &self.query, take)?.map_err(AskError::Wrong)
    }
}

/// An archive's answer to a query.
struct QueryShare {
    portions: Vec<Taken>,
    matched: Option<u64>,
}

impl Root<'_> {
    /// Answers a query, with at most `limit` rows if it has no limit of its own, and returns whether that limit was
    /// applied. Days and hours without a time zone are in UTC.
    ///
    /// # Errors
    /// When the query is wrong or cannot be distributed over several machines, no archive answers, or a folder cannot
    /// be read.
    pub fn query(
        &mut self,
        text: &str,
        now: DateTime<Utc>,
        limit: Option<usize>,
    ) -> Result<(query::Answer, bool), AskError> {
        let mut plan = Plan::of_several(text, now)?;
        let is_cut = limit.is_some_and(|limit| plan.limit_if_unlimited(limit));
        let of = QueryText::new(text, now);
        Ok((self.retry(|root| root.query_once(&plan, &of, limit))?, is_cut))
    }

    /// Answers a capture query (`/cdx`).
    ///
    /// # Errors
    /// When the query is wrong, no archive answers, or a folder cannot be read.
    pub fn captures(&mut self, query: &str) -> Result<archive_replay::Response, AskError> {
        self.retry(|root| {
            let count = AtomicUsize::new(0);
            let shares = root.each(|_, archive| {
                let mut rows: Vec<Values> = Vec::new();
                archive.ask(CaptureRows { query: query.to_owned() }, &mut |values| {
                    // One row beyond the limit is kept, so that the answer reports that there are too many.
                    rows.extend((count.fetch_add(1, Relaxed) <= archive_replay::ROWS_MAX).then_some(values));
                    Ok(())
                })?;
                Ok(rows)
            })?;
            Ok(archive_replay::merged(query, shares.into_iter().flatten().collect())?)
        })
    }

    /// Collects what a query needs of all archives: the words of its searches, and the pages of its relations.
    pub(super) fn input(&self, plan: &Plan, of: &QueryText) -> Result<QueryInput, RoundFailure> {
        let mut words = None;
        if plan.reads_texts() {
            let shares = self.each(|_, archive| archive.end(QueryWords { of: of.clone() }))?;
            words = Some(shares.into_iter().fold(Statistics::default(), |mut all, own| {
                all.add(own);
                all
            }));
        }
        Ok(QueryInput { of: of.clone(), words, related: self.related(plan, of)? })
    }

    fn related(&self, plan: &Plan, of: &QueryText) -> Result<Vec<Vec<String>>, RoundFailure> {
        let mut related = Vec::new();
        for (place, relation, url) in plan.relations() {
            let mut urls: Vec<String> = match (url, plan.inner(&[place])) {
                (None, Some(plan)) => {
                    let inner = [&of.inner[..], &[place]].concat();
                    let found = self.query_once(&plan, &QueryText { inner, ..of.clone() }, None)?;
                    let text = |value| if let Value::Text(url) = value { Some(url) } else { None };
                    found.rows.into_iter().flatten().filter_map(text).collect()
                }
                (url, _) => url.map(str::to_owned).into_iter().collect(),
            };
            expect_related(&urls)?;
            if relation == Relation::LinkedFrom {
                let shares = self.each(|_, archive| archive.rows(LinkTargets { urls: urls.clone() }))?;
                let all: HashSet<String> = shares.into_iter().flatten().collect();
                urls = all.into_iter().collect();
                expect_related(&urls)?;
            }
            related.push(urls);
        }
        Ok(related)
    }

    pub(super) fn query_once(
        &self,
        plan: &Plan,
        of: &QueryText,
        limit: Option<usize>,
    ) -> Result<query::Answer, RoundFailure> {
        let input = self.input(plan, of)?;
        let mut shares = self.each(|place, archive| {
            let mut portions = Vec::new();
            let kind = QueryPortions { input: input.clone(), limit, place };
            let (_, matched) = archive.ask(kind, &mut |portion| {
                portions.push(plan.take(portion).map_err(NodeError::senseless)?);
                Ok(())
            })?;
            Ok(QueryShare { portions, matched })
        })?;
        let matched = shares.iter().try_fold(0_u64, |sum, share| Some(sum.saturating_add(share.matched?)));
        self.settle(&mut shares)?;
        let portions = shares.into_iter().enumerate();
        let portions =
            portions.flat_map(|(place, share)| share.portions.into_iter().map(move |one| (place, one)));
        Ok(plan.whole(portions, matched, self.limits)?)
    }

    /// Removes rows that another archive has as well.
    fn settle(&self, shares: &mut [QueryShare]) -> Result<(), RoundFailure> {
        let mut wanted: Vec<HashSet<String>> = vec![HashSet::new(); shares.len()];
        for (place, share) in shares.iter().enumerate() {
            for doubt in share.portions.iter().filter_map(|portion| portion.doubt.as_ref()) {
                self.others(place, doubt).for_each(|other| wanted[other].extend(doubt.url.clone()));
            }
        }
        let shown = self.shown(&wanted)?;
        for (place, share) in shares.iter_mut().enumerate() {
            share.portions.retain(|portion| {
                let Some(doubt) = &portion.doubt else { return true };
                let has = |other: usize| doubt.url.as_ref().is_none_or(|url| shown[other].contains(url));
                !self.others(place, doubt).any(has)
            });
        }
        Ok(())
    }

    /// The archives whose row takes precedence over this one's if they know the page: the one that answers for the
    /// site, and those before this one.
    fn others(&self, place: usize, doubt: &Doubt) -> impl Iterator<Item = usize> + use<> {
        // A site that has only just become known belongs to this archive.
        let owner = self.answering(&doubt.site).filter(|owner| *owner != place);
        owner.into_iter().chain(0..if owner.is_some() { place } else { 0 })
    }

    /// For each archive, the URLs of its set whose pages it shows.
    fn shown(&self, wanted: &[HashSet<String>]) -> Result<Vec<HashSet<String>>, RoundFailure> {
        self.each(|place, archive| {
            let mut shown = HashSet::new();
            let mut rest = wanted[place].iter().peekable();
            while rest.peek().is_some() {
                let (mut urls, mut bytes) = (Vec::new(), 0);
                while bytes < URLS_BYTES_MAX
                    && urls.len() < URLS_MAX
                    && let Some(url) = rest.next()
                {
                    bytes += url.len();
                    urls.push(url.clone());
                }
                let indexes = archive.rows(ShownUrls { urls: urls.clone() })?;
                shown.extend(indexes.into_iter().filter_map(|index| urls.get(index).cloned()));
            }
            Ok(shown)
        })
    }
}

/// Rejects relations with more pages than can be sent to archives.
fn expect_related(urls: &[String]) -> Result<(), AskError> {
    if urls.len() <= URLS_MAX && urls.iter().map(String::len).sum::<usize>() <= RELATED_BYTES_MAX {
        return Ok(());
    }
    Err(AskError::Wrong(format!(
        "a relation names more than {URLS_MAX} pages, or {} MiB of URLs: narrow it down, or query local folders",
        RELATED_BYTES_MAX >> 20
    )))
}

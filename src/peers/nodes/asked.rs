//! Several archives, possibly on other machines, and their combined answers.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use archive_ask::find::{Kept, Times};
use archive_ask::query::{self, Answer, Doubt, Limits, Plan, Taken, Value};
use archive_base::access::Access;
use archive_books::ledger::{Answering, AnsweringError};
use archive_books::search::Statistics;
use archive_grammar::Relation;
use archive_replay::Values;
use archive_storage::Store;
use chrono::{DateTime, Utc};

use super::answer::answer;
use super::known::{Known, Missing};
use super::node::{Http, Node};
use super::wire::{Ask, Head, Line, URLS_MAX};
use super::{ARCHIVES_MAX, AskError, NodeError};

/// Maximum size of the URLs of pages that a relation names, in bytes.
const RELATED_BYTES_MAX: usize = 2 << 20;

/// Maximum size of the URLs in one request, in bytes.
const URLS_BYTES_MAX: usize = 4 << 20;

/// An archive to query.
#[derive(Debug)]
pub enum Source<'a> {
    /// A local folder, restricted by access rules.
    Folder(&'a Store, Access),
    /// An archive served by another machine.
    Node(Node),
}

/// Archives queried as one.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The available archives, each with its index in the list that the user gave.
    pub(super) sources: Vec<(usize, Source<'a>)>,
    pub(super) http: Arc<Http>,
    until: Option<Instant>,
    limits: Limits,
    kept: Option<&'a Kept>,
    known: Known,
    /// Whether it is known which archive answers for which sites.
    is_looked: bool,
}

/// Why a round failed.
pub(super) enum Failure {
    /// Because of the request as such.
    Whole(AskError),
    /// Because of nodes, given by their places in `sources`: without them the round may succeed.
    Nodes(Vec<(usize, NodeError)>),
}

impl<E: Into<AskError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Whole(error.into())
    }
}

/// A query, the reference time for expressions such as `30 days ago`, and the number of rows if the query has no limit.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) query: &'a str,
    pub(super) now: i64,
    pub(super) limit: Option<usize>,
}

/// An archive's answer to a query.
struct Share {
    portions: Vec<Taken>,
    matched: Option<u64>,
}

impl<'a> Asked<'a> {
    /// Combines archives in this order, with entries for those that are missing, and a client for those on other
    /// machines.
    ///
    /// # Errors
    /// When there are too many archives.
    pub fn new(sources: Vec<Result<Source<'a>, Missing>>, http: Arc<Http>) -> Result<Self, AskError> {
        if sources.len() > ARCHIVES_MAX {
            return Err(AskError::TooMany);
        }
        let mut asked = Self {
            sources: Vec::new(),
            http,
            until: None,
            limits: Limits::USUAL,
            kept: None,
            known: Known::default(),
            is_looked: false,
        };
        for (place, source) in sources.into_iter().enumerate() {
            match source {
                Ok(source) => asked.sources.push((place, source)),
                Err(missing) => asked.known.missing.push(missing),
            }
        }
        Ok(asked)
    }

    /// Reuses what the same archives reported a moment ago; archives that did not answer then are left out.
    #[must_use]
    pub fn knowing(mut self, known: Known) -> Self {
        let is_known = |place: &usize| known.heads.iter().any(|(known, _)| known == place);
        let still = self.sources.iter().filter(|(place, _)| is_known(place)).count();
        if still == known.heads.len() {
            self.sources.retain(|(place, _)| is_known(place));
            (self.known, self.is_looked) = (known, true);
        }
        self
    }

    /// Sets a deadline for answers from nodes.
    #[must_use]
    pub fn until(self, instant: Instant) -> Self {
        Self { until: Some(instant), ..self }
    }

    /// Sets limits for answers from local folders; their time limit applies to nodes, too.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, until: limits.until(), ..self }
    }

    /// Uses a cache that is kept between searches.
    #[must_use]
    pub fn keeping(self, kept: &'a Kept) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// What the archives have reported about themselves so far.
    #[must_use]
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Asks which archives answer, and for which sites, unless that is known.
    ///
    /// # Errors
    /// When two archives have captured pages of one site, no archive answers, or a folder cannot be read.
    pub fn look(&mut self) -> Result<&Known, AskError> {
        self.insist(|_| Ok(()))?;
        Ok(&self.known)
    }

    /// The archive that answers for a site, as its place in `sources`.
    pub(super) fn answering(&self, site: &str) -> Option<usize> {
        self.known.answering.of(site)
    }

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
    ) -> Result<(Answer, bool), AskError> {
        let mut plan = Plan::of_several(text, now)?;
        let is_cut = limit.is_some_and(|limit| plan.limit_if_unlimited(limit));
        let query = Asking { query: text, now: now.timestamp_micros(), limit };
        Ok((self.insist(|asked| asked.answer(&plan, query, &[]))?, is_cut))
    }

    /// Answers a capture query (`/cdx`).
    ///
    /// # Errors
    /// When the query is wrong, no archive answers, or a folder cannot be read.
    pub fn captures(&mut self, query: &str) -> Result<archive_replay::Response, AskError> {
        let ask = Ask::Captures { query: query.to_owned() };
        self.insist(|asked| {
            let count = AtomicUsize::new(0);
            let shares = asked.gather(&ask, |_, rows: &mut Vec<Values>, line| {
                let Line::Capture(values) = line else { return false };
                // One row beyond the limit is kept, so that the answer reports that there are too many.
                rows.extend((count.fetch_add(1, Relaxed) <= archive_replay::ROWS_MAX).then_some(values));
                true
            })?;
            Ok(archive_replay::merged(query, shares.into_iter().flatten().collect())?)
        })
    }

    /// Runs `attempt`, and repeats it without the nodes that fail.
    pub(super) fn insist<T>(&mut self, attempt: impl Fn(&Self) -> Result<T, Failure>) -> Result<T, AskError> {
        loop {
            if self.sources.is_empty() {
                let reasons = self.known.missing.iter().map(|one| format!("{}: {}", one.name, one.why));
                return Err(AskError::Nobody(reasons.collect::<Vec<_>>().join("; ")));
            }
            let looked = if self.is_looked { Ok(()) } else { self.look_once() };
            let mut failed = match looked.and_then(|()| attempt(self)) {
                Ok(found) => return Ok(found),
                Err(Failure::Whole(error)) => return Err(error),
                Err(Failure::Nodes(failed)) => failed,
            };
            self.limits.check().map_err(query::Error::from)?;
            // Other archives may now answer for the sites of the failed nodes.
            self.is_looked = false;
            while let Some((place, error)) = failed.pop() {
                let missing = Missing { name: self.name(place), why: error.to_string() };
                self.known.missing.push(missing);
                self.sources.remove(place);
            }
        }
    }

    /// Runs `ask` for all archives in parallel.
    pub(super) fn each<T: Send>(
        &self,
        ask: impl Fn(usize, &dyn Fn(&Ask, &mut Take<'_>) -> Result<Ends, AskError>) -> Result<T, AskError> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let left = AtomicU64::new(self.http.bytes_max);
        let answers: Vec<Result<T, AskError>> = thread::scope(|scope| {
            let (ask, left) = (&ask, &left);
            let running = self.sources.iter().enumerate().map(|(place, (_, source))| {
                scope.spawn(move || ask(place, &|what, take| self.of(source, what, left, take)))
            });
            let running: Vec<_> = running.collect();
            running.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for ((place, (_, source)), answer) in self.sources.iter().enumerate().zip(answers) {
            match answer {
                Ok(answer) => found.push(answer),
                Err(AskError::Node(error)) if matches!(source, Source::Node(_)) => {
                    failed.push((place, error));
                }
                Err(error) => return Err(Failure::Whole(error)),
            }
        }
        if failed.is_empty() { Ok(found) } else { Err(Failure::Nodes(failed)) }
    }

    /// Sends the same request to all archives in parallel and collects the lines of each in a separate value. `add`
    /// returns whether the line belongs to the answer.
    pub(super) fn gather<T: Default + Send>(
        &self,
        ask: &Ask,
        add: impl Fn(usize, &mut T, Line) -> bool + Sync,
    ) -> Result<Vec<T>, Failure> {
        self.each(|place, of| {
            let mut own = T::default();
            of(ask, &mut |line| Ok(add(place, &mut own, line)))?;
            Ok(own)
        })
    }

    fn of(
        &self,
        source: &Source<'_>,
        ask: &Ask,
        left: &AtomicU64,
        take: &mut Take<'_>,
    ) -> Result<Ends, AskError> {
        let mut count = None;
        let mut pass = |line: Line| match line {
            Line::End { matched } => {
                count = matched;
                Ok(())
            }
            line => take(line)?.then_some(()).ok_or_else(unasked),
        };
        let head = match source {
            Source::Folder(store, access) => {
                answer(store, access, ask, self.limits, self.kept, &mut |line| Ok(pass(line)?))?;
                Head::of(store)?
            }
            Source::Node(node) => node.ask(&self.http, ask, (left, self.until), &mut pass)?,
        };
        Ok((head, count))
    }

    /// Asks the archives which sites they know.
    fn look_once(&mut self) -> Result<(), Failure> {
        let since = Some(Instant::now());
        let shares = self.each(|_, ask| {
            let (mut sites, mut times) = (Vec::new(), None);
            let (head, _) = ask(&Ask::Sites {}, &mut |line| {
                match line {
                    Line::Site(site, is_captured) => sites.push((site, is_captured)),
                    Line::Times(found) => {
                        times = found.map(Times::checked).transpose().map_err(NodeError::senseless)?;
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            Ok((head, sites, times))
        })?;
        let mut answering = Answering::default();
        let (mut heads, mut all_times) = (Vec::new(), Vec::new());
        for ((place, (head, sites, times)), (number, _)) in shares.into_iter().enumerate().zip(&self.sources)
        {
            heads.push((*number, head));
            all_times.push(times);
            for (site, is_captured) in sites {
                answering.add(place, &site, is_captured).map_err(|error| match error {
                    AnsweringError::Overlap { site, archives } => {
                        AskError::Overlap { site, names: archives.map(|place| self.name(place)) }
                    }
                    AnsweringError::State(error) => error.into(),
                })?;
            }
        }
        let missing = std::mem::take(&mut self.known.missing);
        let times = all_times.into_iter().collect();
        self.known = Known { since, answering: Arc::new(answering), heads, times, missing };
        self.is_looked = true;
        Ok(())
    }

    pub(super) fn name(&self, place: usize) -> String {
        match self.sources.get(place) {
            Some((_, Source::Folder(store, _))) => store.path().display().to_string(),
            Some((_, Source::Node(node))) => node.name().to_owned(),
            None => String::new(),
        }
    }

    /// Term statistics of a query, summed over all archives.
    pub(super) fn words(&self, of: Asking<'_>, inner: &[usize]) -> Result<Statistics, Failure> {
        let ask = Ask::Words { query: of.query.to_owned(), now: of.now, inner: inner.to_vec() };
        let shares = self.gather(&ask, |_, own: &mut Statistics, line| {
            let Line::Words(words) = line else { return false };
            own.add(words);
            true
        })?;
        Ok(shares.into_iter().fold(Statistics::default(), |mut all, own| {
            all.add(own);
            all
        }))
    }

    /// For each relation of a query or of one of its inner queries, the pages found by all archives.
    pub(super) fn related(
        &self,
        plan: &Plan,
        of: Asking<'_>,
        inner: &[usize],
    ) -> Result<Vec<Vec<String>>, Failure> {
        let mut related = Vec::new();
        for (place, relation, url) in plan.relations() {
            let mut urls: Vec<String> = match (url, plan.inner(&[place])) {
                (None, Some(plan)) => {
                    let found =
                        self.answer(&plan, Asking { limit: None, ..of }, &[inner, &[place]].concat())?;
                    let text = |value| if let Value::Text(url) = value { Some(url) } else { None };
                    found.rows.into_iter().flatten().filter_map(text).collect()
                }
                (url, _) => url.map(str::to_owned).into_iter().collect(),
            };
            expect_few(&urls)?;
            if relation == Relation::LinkedFrom {
                urls = self.targets(urls)?;
                expect_few(&urls)?;
            }
            related.push(urls);
        }
        Ok(related)
    }

    /// The pages that some pages link to.
    fn targets(&self, urls: Vec<String>) -> Result<Vec<String>, Failure> {
        let ask = Ask::Targets { urls };
        let shares = self.gather(&ask, |_, targets: &mut Vec<String>, line| {
            let Line::Target(url) = line else { return false };
            targets.push(url);
            true
        })?;
        let all: HashSet<String> = shares.into_iter().flatten().collect();
        Ok(all.into_iter().collect())
    }

    pub(super) fn answer(&self, plan: &Plan, of: Asking<'_>, inner: &[usize]) -> Result<Answer, Failure> {
        let words = plan.reads_texts().then(|| self.words(of, inner)).transpose()?;
        let related = self.related(plan, of, inner)?;
        let Asking { query, now, limit } = of;
        let mut shares = self.each(|place, of| {
            let (query, words, inner, related) =
                (query.to_owned(), words.clone(), inner.to_vec(), related.clone());
            let ask = Ask::Portions { query, now, limit, words, inner, related, place };
            let mut portions = Vec::new();
            let (_, matched) = of(&ask, &mut |line| {
                let Line::Portion(portion) = line else { return Ok(false) };
                portions.push(plan.take(portion).map_err(NodeError::senseless)?);
                Ok(true)
            })?;
            Ok(Share { portions, matched })
        })?;
        let matched = shares.iter().try_fold(0_u64, |sum, share| Some(sum.saturating_add(share.matched?)));
        self.settle(&mut shares)?;
        let portions = shares.into_iter().enumerate();
        let portions =
            portions.flat_map(|(place, share)| share.portions.into_iter().map(move |one| (place, one)));
        Ok(plan.whole(portions, matched, self.limits)?)
    }

    /// Removes rows that another archive has as well.
    fn settle(&self, shares: &mut [Share]) -> Result<(), Failure> {
        let mut wanted: Vec<HashSet<String>> = vec![HashSet::new(); shares.len()];
        for (place, share) in shares.iter().enumerate() {
            for doubt in share.portions.iter().filter_map(|portion| portion.doubt.as_ref()) {
                self.others(place, doubt).for_each(|other| wanted[other].extend(doubt.url.clone()));
            }
        }
        let known = self.shown(&wanted)?;
        for (place, share) in shares.iter_mut().enumerate() {
            share.portions.retain(|portion| {
                let Some(doubt) = &portion.doubt else { return true };
                let has = |other: usize| doubt.url.as_ref().is_none_or(|url| known[other].contains(url));
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

    /// For each archive, the URLs of its set that it knows.
    fn shown(&self, wanted: &[HashSet<String>]) -> Result<Vec<HashSet<String>>, Failure> {
        self.each(|place, ask| {
            let mut known = HashSet::new();
            let (mut urls, mut bytes) = (Vec::new(), 0);
            let mut rest = wanted[place].iter().peekable();
            while let Some(url) = rest.next() {
                bytes += url.len();
                urls.push(url.clone());
                if rest.peek().is_some() && bytes < URLS_BYTES_MAX && urls.len() < URLS_MAX {
                    continue;
                }
                let asked = Ask::Known { urls: std::mem::take(&mut urls) };
                bytes = 0;
                let Ask::Known { urls } = &asked else { continue };
                ask(&asked, &mut |line| {
                    let Line::Known(number) = line else { return Ok(false) };
                    known.extend(urls.get(number as usize).cloned());
                    Ok(true)
                })?;
            }
            Ok(known)
        })
    }
}

/// Rejects relations with more pages than can be sent to archives.
fn expect_few(urls: &[String]) -> Result<(), AskError> {
    if urls.len() <= URLS_MAX && urls.iter().map(String::len).sum::<usize>() <= RELATED_BYTES_MAX {
        return Ok(());
    }
    Err(AskError::Wrong(format!(
        "a relation names more than {URLS_MAX} pages, or {} MiB of URLs: narrow it down, or query local folders",
        RELATED_BYTES_MAX >> 20
    )))
}

/// Receives the lines between the head and the end as they arrive; returns whether a line belongs to the answer.
pub(super) type Take<'a> = dyn FnMut(Line) -> Result<bool, NodeError> + 'a;

/// The head of an answer and, from its end, the number of matching rows.
pub(super) type Ends = (Head, Option<u64>);

pub(super) fn unasked() -> NodeError {
    NodeError::senseless("it answers something that it was not asked")
}

//! Several archives, some of them on other machines, and what they answer together.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use archive_storage::Store;
use chrono::{DateTime, Utc};

use super::answer::answer;
use super::node::{Http, Node};
use super::wire::{Ask, Head, Line, URLS_MAX};
use super::{ANSWERS_BYTES_MAX, ARCHIVES_MAX, AskError, NodeError};
use crate::access::Access;
use crate::cluster::Partition;
use crate::ledger::{Answering, AnsweringError};
use crate::query::{Answer, Doubt, Plan, Taken};
use crate::search::Statistics;

/// Bytes of URLs in one request.
const URLS_BYTES_MAX: usize = 4 << 20;

/// An archive that is asked.
#[derive(Debug)]
pub enum Source<'a> {
    /// A folder of this machine, without what the rules hide.
    Folder(&'a Store, Access),
    /// An archive that another machine serves.
    Node(Node),
}

/// A node that was left out.
#[derive(Debug)]
pub struct Missing {
    /// As it was named.
    pub name: String,
    /// Why.
    pub error: NodeError,
}

/// Archives that are asked as one.
#[derive(Debug)]
pub struct Asked<'a> {
    sources: Vec<Source<'a>>,
    http: Http,
    answering: Answering,
    partitions: Vec<Partition>,
    missing: Vec<Missing>,
    /// Whether it is known which archive answers for which sites.
    is_looked: bool,
}

/// Why a round failed.
pub(super) enum Failure {
    /// Of the answer.
    Whole(AskError),
    /// Of nodes, by their places: without them it may do.
    Nodes(Vec<(usize, NodeError)>),
}

impl<E: Into<AskError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Whole(error.into())
    }
}

/// What an archive told of a query.
struct Told {
    portions: Vec<Taken>,
    matched: Option<u64>,
}

impl<'a> Asked<'a> {
    /// Looks which archives answer, and for which sites. A node may take so long for an answer.
    ///
    /// # Errors
    /// When two have captured pages of one site, no archive answers, or a folder cannot be read.
    pub fn new(sources: Vec<Source<'a>>, wait: Duration) -> Result<Self, AskError> {
        if sources.len() > ARCHIVES_MAX {
            return Err(AskError::TooMany);
        }
        let mut asked = Self {
            sources,
            http: Http::new(wait)?,
            answering: Answering::default(),
            partitions: Vec::new(),
            missing: Vec::new(),
            is_looked: false,
        };
        asked.insist(|_| Ok(()))?;
        Ok(asked)
    }

    /// Nodes that were left out so far.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The archive that answers for a site.
    pub(super) fn answering(&self, site: &str) -> Option<usize> {
        self.answering.of(site)
    }

    /// The parts of clusters' webs that the archives have.
    #[must_use]
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The answer to a query, with so many rows where it has no limit; whether it had none. Days and hours without a zone are UTC's.
    ///
    /// # Errors
    /// When the query is wrong or cannot be asked of several machines, no archive answers, or a folder cannot be read.
    pub fn query(
        &mut self,
        text: &str,
        now: DateTime<Utc>,
        limit: Option<usize>,
    ) -> Result<(Answer, bool), AskError> {
        let mut plan = Plan::of_several(text, now)?;
        let is_cut = limit.is_some_and(|limit| plan.limit_if_unlimited(limit));
        let (query, now) = (text.to_owned(), now.timestamp_micros());
        let answer = self.insist(|asked| {
            let words = plan.reads_texts().then(|| asked.words(&query, now)).transpose()?;
            asked.answer(&plan, &Ask::Portions { query: query.clone(), now, limit, words })
        })?;
        Ok((answer, is_cut))
    }

    /// Tries something, and again without the nodes that fail it.
    pub(super) fn insist<T>(&mut self, attempt: impl Fn(&Self) -> Result<T, Failure>) -> Result<T, AskError> {
        loop {
            let looked = if self.is_looked { Ok(()) } else { self.look() };
            let mut failed = match looked.and_then(|()| attempt(self)) {
                Ok(found) => return Ok(found),
                Err(Failure::Whole(error)) => return Err(error),
                Err(Failure::Nodes(failed)) => failed,
            };
            // Others may answer for its sites now.
            self.is_looked = false;
            while let Some((place, error)) = failed.pop() {
                if let Source::Node(node) = self.sources.remove(place) {
                    self.missing.push(Missing { name: node.name().to_owned(), error });
                }
            }
            if self.sources.is_empty() {
                let reasons = self.missing.iter().map(|one| format!("{}: {}", one.name, one.error));
                return Err(AskError::Nobody(reasons.collect::<Vec<_>>().join("; ")));
            }
        }
    }

    /// Asks all archives at once.
    pub(super) fn each<T: Send>(
        &self,
        ask: impl Fn(usize, &dyn Fn(&Ask, &mut Take<'_>) -> Result<Head, AskError>) -> Result<T, AskError> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let left = AtomicU64::new(ANSWERS_BYTES_MAX);
        let told: Vec<Result<T, AskError>> = thread::scope(|scope| {
            let (ask, left) = (&ask, &left);
            let running = self.sources.iter().enumerate().map(|(place, source)| {
                scope.spawn(move || ask(place, &|what, take| self.of(source, what, left, take)))
            });
            let running: Vec<_> = running.collect();
            running.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for ((place, source), told) in self.sources.iter().enumerate().zip(told) {
            match told {
                Ok(told) => found.push(told),
                Err(AskError::Node(error)) if matches!(source, Source::Node(_)) => {
                    failed.push((place, error));
                }
                Err(error) => return Err(Failure::Whole(error)),
            }
        }
        if failed.is_empty() { Ok(found) } else { Err(Failure::Nodes(failed)) }
    }

    fn of(
        &self,
        source: &Source<'_>,
        ask: &Ask,
        left: &AtomicU64,
        take: &mut Take<'_>,
    ) -> Result<Head, AskError> {
        match source {
            Source::Folder(store, access) => {
                answer(store, access, ask, &mut |line| Ok(take(line)?))?;
                Head::of(store)
            }
            Source::Node(node) => Ok(node.ask(&self.http, ask, left, take)?),
        }
    }

    /// Learns which sites the archives know.
    fn look(&mut self) -> Result<(), Failure> {
        let told = self.each(|_, ask| {
            let mut sites = Vec::new();
            let head = ask(&Ask::Sites {}, &mut |line| {
                match line {
                    Line::Site(site, is_captured) => sites.push((site, is_captured)),
                    Line::End { .. } => {}
                    _ => return Err(unasked()),
                }
                Ok(())
            })?;
            Ok((head, sites))
        })?;
        let mut answering = Answering::default();
        let mut partitions = Vec::new();
        for (place, (head, sites)) in told.into_iter().enumerate() {
            partitions.extend(head.partition);
            for (site, is_captured) in sites {
                answering.add(place, &site, is_captured).map_err(|error| match error {
                    AnsweringError::Overlap { site, archives } => {
                        AskError::Overlap { site, names: archives.map(|place| self.name(place)) }
                    }
                    AnsweringError::State(error) => error.into(),
                })?;
            }
        }
        (self.answering, self.partitions, self.is_looked) = (answering, partitions, true);
        Ok(())
    }

    fn name(&self, place: usize) -> String {
        match self.sources.get(place) {
            Some(Source::Folder(store, _)) => store.path().display().to_string(),
            Some(Source::Node(node)) => node.name().to_owned(),
            None => String::new(),
        }
    }

    /// How often the words of a query are in all archives.
    fn words(&self, query: &str, now: i64) -> Result<Statistics, Failure> {
        let ask = Ask::Words { query: query.to_owned(), now };
        let told = self.each(|_, of| {
            let mut own = Statistics::default();
            of(&ask, &mut |line| {
                match line {
                    Line::Words(words) => own.add(words),
                    Line::End { .. } => {}
                    _ => return Err(unasked()),
                }
                Ok(())
            })?;
            Ok(own)
        })?;
        Ok(told.into_iter().fold(Statistics::default(), |mut all, own| {
            all.add(own);
            all
        }))
    }

    fn answer(&self, plan: &Plan, ask: &Ask) -> Result<Answer, Failure> {
        let mut told = self.each(|_, of| {
            let mut told = Told { portions: Vec::new(), matched: None };
            of(ask, &mut |line| {
                match line {
                    Line::Portion(portion) => {
                        let taken = plan.take(portion);
                        told.portions.push(taken.map_err(|what| NodeError::Senseless(what.to_owned()))?);
                    }
                    Line::End { matched } => told.matched = matched,
                    _ => return Err(unasked()),
                }
                Ok(())
            })?;
            Ok(told)
        })?;
        let matched = told.iter().try_fold(0_u64, |sum, told| Some(sum.saturating_add(told.matched?)));
        self.settle(&mut told)?;
        let portions = told.into_iter().enumerate();
        let portions =
            portions.flat_map(|(place, told)| told.portions.into_iter().map(move |one| (place, one)));
        Ok(plan.whole(portions, matched)?)
    }

    /// Takes out rows that another archive has.
    fn settle(&self, told: &mut [Told]) -> Result<(), Failure> {
        let mut wanted: Vec<HashSet<String>> = vec![HashSet::new(); told.len()];
        for (place, told) in told.iter().enumerate() {
            for doubt in told.portions.iter().filter_map(|portion| portion.doubt.as_ref()) {
                self.others(place, doubt).for_each(|other| wanted[other].extend(doubt.url.clone()));
            }
        }
        let known = self.known(&wanted)?;
        for (place, told) in told.iter_mut().enumerate() {
            told.portions.retain(|portion| {
                let Some(doubt) = &portion.doubt else { return true };
                let has = |other: usize| doubt.url.as_ref().is_none_or(|url| known[other].contains(url));
                !self.others(place, doubt).any(has)
            });
        }
        Ok(())
    }

    /// The archives that have a row of this one if they know it: that which answers for the site, and those before.
    fn others(&self, place: usize, doubt: &Doubt) -> impl Iterator<Item = usize> + use<> {
        // A site that became known a moment ago is the archive's own.
        let owner = self.answering.of(&doubt.site).filter(|owner| *owner != place);
        owner.into_iter().chain(0..if owner.is_some() { place } else { 0 })
    }

    /// Of each archive, which URLs of a set it knows.
    fn known(&self, wanted: &[HashSet<String>]) -> Result<Vec<HashSet<String>>, Failure> {
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
                    match line {
                        Line::Known(number) => known.extend(urls.get(number as usize).cloned()),
                        Line::End { .. } => {}
                        _ => return Err(unasked()),
                    }
                    Ok(())
                })?;
            }
            Ok(known)
        })
    }
}

/// Takes lines as they come.
pub(super) type Take<'a> = dyn FnMut(Line) -> Result<(), NodeError> + 'a;

pub(super) fn unasked() -> NodeError {
    NodeError::Senseless("it tells what it was not asked".to_owned())
}

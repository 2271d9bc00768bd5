//! Several archives that are asked as one: each is a leaf, and their answers are merged at this root.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Instant;

use archive_ask::find::{CaptureTimes, PageTextCache};
use archive_ask::query::{self, Limits};
use archive_base::access::Access;
use archive_books::ledger::{AnsweringError, ResponsibleArchives, known_sites};
use archive_storage::Store;

use super::ask::{AnswerHead, AskedFolder, EndOf, KnownSites, LeafAnswer, NoRow, Take};
use super::node::{Http, Node};
use super::roster::{Missing, Roster};
use super::{ARCHIVES_MAX, AskError, NodeError};

/// An archive that is asked together with others.
#[derive(Debug)]
pub enum LeafArchive<'a> {
    /// A local folder, restricted by access rules.
    Folder(&'a Store, Access),
    /// An archive served by another machine.
    Node(Node),
}

/// Archives that are asked as one.
#[derive(Debug)]
pub struct Root<'a> {
    /// The available archives, each with its index in the list that the user gave.
    pub(super) leaves: Vec<(usize, LeafArchive<'a>)>,
    pub(super) http: Arc<Http>,
    until: Option<Instant>,
    pub(super) limits: Limits,
    kept: Option<&'a PageTextCache>,
    roster: Roster,
    /// Whether it is known which archive answers for which sites.
    is_looked: bool,
}

/// Why a round failed.
pub(super) enum RoundFailure {
    /// Because of the request as such.
    Whole(AskError),
    /// Because of nodes, given by their places in `leaves`: without them the round may succeed.
    Nodes(Vec<(usize, NodeError)>),
}

impl<E: Into<AskError>> From<E> for RoundFailure {
    fn from(error: E) -> Self {
        Self::Whole(error.into())
    }
}

/// One archive during a round.
pub(super) struct LeafOfRound<'r> {
    root: &'r Root<'r>,
    leaf: &'r LeafArchive<'r>,
    /// Bytes that the answers of the round may still have.
    left: &'r AtomicU64,
}

impl LeafOfRound<'_> {
    /// Asks the archive; passes rows on as they come, and returns the head and the end.
    pub(super) fn ask<K: LeafAnswer>(
        &self,
        kind: K,
        take: &mut dyn FnMut(K::Row) -> Result<(), NodeError>,
    ) -> Result<(AnswerHead, K::End), AskError> {
        let Root { http, until, limits, kept, .. } = self.root;
        match self.leaf {
            LeafArchive::Folder(store, access) => {
                let folder = AskedFolder { store, access, limits: *limits, kept: *kept };
                let end = kind.answer(&folder, &mut |row| Ok(take(row)?))?;
                Ok((AnswerHead::of(store)?, end))
            }
            LeafArchive::Node(node) => Ok(node.ask(http, kind, (self.left, *until), take)?),
        }
    }

    /// Asks for rows.
    pub(super) fn rows<K: LeafAnswer<End = ()>>(&self, kind: K) -> Result<Vec<K::Row>, AskError> {
        let mut rows = Vec::new();
        self.ask(kind, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Asks for what has only an end.
    pub(super) fn end<K: LeafAnswer<Row = NoRow>>(&self, kind: K) -> Result<K::End, AskError> {
        Ok(self.ask(kind, &mut |row| match row {})?.1)
    }
}

impl LeafAnswer for KnownSites {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        known_sites(folder.store.state())?.into_iter().try_for_each(take)?;
        Ok(CaptureTimes::searched(folder.store, folder.access.clone())?)
    }
}

impl<'a> Root<'a> {
    /// Combines archives in this order, with entries for those that are missing, and a client for those on other
    /// machines.
    ///
    /// # Errors
    /// When there are too many archives.
    pub fn new(archives: Vec<Result<LeafArchive<'a>, Missing>>, http: Arc<Http>) -> Result<Self, AskError> {
        if archives.len() > ARCHIVES_MAX {
            return Err(AskError::TooMany);
        }
        let (mut leaves, mut roster) = (Vec::new(), Roster::default());
        for (place, archive) in archives.into_iter().enumerate() {
            match archive {
                Ok(leaf) => leaves.push((place, leaf)),
                Err(missing) => roster.missing.push(missing),
            }
        }
        Ok(Self { leaves, http, until: None, limits: Limits::USUAL, kept: None, roster, is_looked: false })
    }

    /// Reuses what the same archives reported a moment ago; archives that did not answer then are left out.
    #[must_use]
    pub fn with_roster(mut self, roster: Roster) -> Self {
        let is_there = |place: &usize| roster.heads.iter().any(|(known, _)| known == place);
        let still = self.leaves.iter().filter(|(place, _)| is_there(place)).count();
        if still == roster.heads.len() {
            self.leaves.retain(|(place, _)| is_there(place));
            (self.roster, self.is_looked) = (roster, true);
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
    pub fn keeping(self, kept: &'a PageTextCache) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// What the archives have reported about themselves so far.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Asks which archives answer, and for which sites, unless that is known.
    ///
    /// # Errors
    /// When two archives have captured pages of one site, no archive answers, or a folder cannot be read.
    pub fn look(&mut self) -> Result<&Roster, AskError> {
        self.retry(|_| Ok(()))?;
        Ok(&self.roster)
    }

    /// The archive that answers for a site, as its place in `leaves`.
    pub(super) fn answering(&self, site: &str) -> Option<usize> {
        self.roster.answering.of(site)
    }

    /// Runs `attempt`, and repeats it without the nodes that fail.
    pub(super) fn retry<T>(
        &mut self,
        attempt: impl Fn(&Self) -> Result<T, RoundFailure>,
    ) -> Result<T, AskError> {
        loop {
            if self.leaves.is_empty() {
                let reasons = self.roster.missing.iter().map(|one| format!("{}: {}", one.name, one.why));
                return Err(AskError::Nobody(reasons.collect::<Vec<_>>().join("; ")));
            }
            let looked = if self.is_looked { Ok(()) } else { self.look_once() };
            let mut failed = match looked.and_then(|()| attempt(self)) {
                Ok(found) => return Ok(found),
                Err(RoundFailure::Whole(error)) => return Err(error),
                Err(RoundFailure::Nodes(failed)) => failed,
            };
            self.limits.check().map_err(query::Error::from)?;
            // Other archives may now answer for the sites of the failed nodes.
            self.is_looked = false;
            while let Some((place, error)) = failed.pop() {
                let missing = Missing { name: self.name(place), why: error.to_string() };
                self.roster.missing.push(missing);
                self.leaves.remove(place);
            }
        }
    }

    /// A round: asks all archives at once.
    pub(super) fn each<T: Send>(
        &self,
        ask: impl Fn(usize, LeafOfRound<'_>) -> Result<T, AskError> + Sync,
    ) -> Result<Vec<T>, RoundFailure> {
        let left = AtomicU64::new(self.http.bytes_max);
        let answers: Vec<Result<T, AskError>> = thread::scope(|scope| {
            let (ask, left) = (&ask, &left);
            let running = self.leaves.iter().enumerate().map(|(place, (_, leaf))| {
                scope.spawn(move || ask(place, LeafOfRound { root: self, leaf, left }))
            });
            let running: Vec<_> = running.collect();
            running.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for ((place, (_, leaf)), answer) in self.leaves.iter().enumerate().zip(answers) {
            match answer {
                Ok(answer) => found.push(answer),
                Err(AskError::Node(error)) if matches!(leaf, LeafArchive::Node(_)) => {
                    failed.push((place, error));
                }
                Err(error) => return Err(RoundFailure::Whole(error)),
            }
        }
        if failed.is_empty() { Ok(found) } else { Err(RoundFailure::Nodes(failed)) }
    }

    /// Asks the archives which sites they know.
    fn look_once(&mut self) -> Result<(), RoundFailure> {
        let since = Some(Instant::now());
        let shares = self.each(|_, archive| {
            let mut sites = Vec::new();
            let (head, times) = archive.ask(KnownSites {}, &mut |site| {
                sites.push(site);
                Ok(())
            })?;
            let times = times.map(CaptureTimes::checked).transpose().map_err(NodeError::senseless)?;
            Ok((head, sites, times))
        })?;
        let mut answering = ResponsibleArchives::default();
        let (mut heads, mut all_times) = (Vec::new(), Vec::new());
        for ((place, (head, sites, times)), (number, _)) in shares.into_iter().enumerate().zip(&self.leaves) {
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
        let missing = std::mem::take(&mut self.roster.missing);
        let times = all_times.into_iter().collect();
        self.roster = Roster { since, answering: Arc::new(answering), heads, times, missing };
        self.is_looked = true;
        Ok(())
    }

    pub(super) fn name(&self, place: usize) -> String {
        match self.leaves.get(place) {
            Some((_, LeafArchive::Folder(store, _))) => store.path().display().to_string(),
            Some((_, LeafArchive::Node(node))) => node.name().to_owned(),
            None => String::new(),
        }
    }
}

//! Several archives, folders of this server and nodes, queried as one ([`archive_peers::nodes`]). Only archives named at
//! startup are queried. A request for a page is redirected to the archive that has it; responses are not proxied.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive_ask::find::PageTextCache;
use archive_ask::query::Limits;
use archive_base::access::Role;
use archive_books::cluster::Partition;
use archive_peers::nodes::{AskError, Http, LeafArchive, Missing, Node, Root, Roster};

use super::ServerState;
use super::opener::ArchiveOpener;

/// How long to remember which archives answer, and for which sites. A node that failed is left alone for this time.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// Time limit for an answer; archives that have not answered by then are missing from it.
const TIME_MAX: Duration = Duration::from_secs(50);

/// Maximum size of all answers from nodes in one round, in bytes.
pub(super) const ANSWERS_BYTES_MAX: u64 = 64 << 20;

/// One of several archives that are queried as one.
#[derive(Debug)]
pub(super) enum FrontArchive {
    /// A folder of this server.
    Folder(Arc<ServerState>),
    /// An archive on another machine.
    Node(Node),
}

/// Archives that are queried as one.
#[derive(Debug)]
pub(super) struct Front {
    parts: Vec<FrontArchive>,
    http: Arc<Http>,
    kept: Arc<PageTextCache>,
    /// By role: rules may hide sites from some.
    known: Mutex<BTreeMap<Option<Role>, Roster>>,
}

impl Front {
    pub(super) fn new(parts: Vec<FrontArchive>, http: Http, kept: Arc<PageTextCache>) -> Self {
        Self { parts, http: Arc::new(http), kept, known: Mutex::default() }
    }

    /// Names of the archives, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| match part {
            FrontArchive::Folder(shared) => shared.place.name.as_str(),
            FrontArchive::Node(node) => node.name(),
        })
    }

    /// Sends a question to all archives on behalf of a role; also returns what is missing from the answer.
    pub(super) fn ask<T>(
        &self,
        role: Option<Role>,
        question: impl FnOnce(&mut Root<'_>) -> Result<T, AskError>,
    ) -> Result<(T, Vec<Missing>), AskError> {
        let open = |part: &FrontArchive| match part {
            FrontArchive::Folder(shared) => shared.archive().map(ArchiveOpener::alone),
            FrontArchive::Node(_) => None,
        };
        let opened: Vec<_> = self.parts.iter().map(open).collect();
        let missing = |name: &str, why: String| Missing { name: name.to_owned(), why };
        let sources = self.parts.iter().zip(self.names()).zip(&opened).map(|((part, name), opened)| {
            match (part, opened) {
                (FrontArchive::Node(node), _) => Ok(LeafArchive::Node(node.clone())),
                (FrontArchive::Folder(shared), Some(Ok(opened))) => {
                    match shared.archive().map(|it| it.seen(opened, role)) {
                        Some(Ok(seen)) => Ok(LeafArchive::Folder(seen.store, seen.access)),
                        Some(Err(error)) => Err(missing(name, error.to_string())),
                        None => Err(missing(name, String::new())),
                    }
                }
                (_, Some(Err(error))) => Err(missing(name, error.to_string())),
                (_, None) => Err(missing(name, String::new())),
            }
        });
        let until = Instant::now() + TIME_MAX;
        let asked = Root::new(sources.collect(), Arc::clone(&self.http))?;
        let asked = asked.within(Limits::SERVED).until(until).keeping(&self.kept);
        let mut asked = match self.kept(role) {
            Some(known) => asked.with_roster(known),
            None => asked,
        };
        let answer = question(&mut asked);
        let known = asked.roster();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(role, known.clone());
        Ok((answer?, self.missing(known)))
    }

    fn kept(&self, role: Option<Role>) -> Option<Roster> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&role).cloned();
        known.filter(|known| known.since().is_some_and(|since| since.elapsed() < KNOWN_FOR))
    }

    /// What the archives have reported about themselves recently.
    pub(super) fn known(&self, role: Option<Role>) -> Result<Roster, AskError> {
        match self.kept(role) {
            Some(known) => Ok(known),
            None => Ok(self.ask(role, |asked| asked.look().cloned())?.0),
        }
    }

    /// Archives missing from an answer, and partitions that no archive here holds.
    pub(super) fn missing(&self, known: &Roster) -> Vec<Missing> {
        let others = Partition::others(known.partitions()).into_iter();
        let others = others.map(|(count, others)| Missing {
            name: format!("partition {others} of {count}"),
            why: "no archive here has it".to_owned(),
        });
        known.missing().iter().cloned().chain(others).collect()
    }

    /// Origins of an archive's application and replay, for browsers that reach this server as `host`.
    pub(super) fn origins(&self, known: &Roster, place: usize, host: &str) -> Option<[String; 2]> {
        match self.parts.get(place)? {
            FrontArchive::Folder(shared) => Some(shared.place.origins(host)),
            FrontArchive::Node(_) => known.origins(place).cloned(),
        }
    }
}

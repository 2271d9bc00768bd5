//! Several archives, folders of this server and nodes, asked as one ([`crate::nodes`]). Only those are asked that were named when the
//! server began; a request for a page is redirected to the archive that has it, and nothing is passed through.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Shared;
use super::opened::Archive;
use crate::access::Role;
use crate::cluster::Partition;
use crate::find::Kept;
use crate::nodes::{AskError, Asked, Http, Known, Missing, Node, Source};
use crate::query::Limits;

/// How long it is remembered which archives answer, and for which sites: a node that does not answer is left alone for that time.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// How long an answer may take; then archives that have not answered are missing.
const TIME_MAX: Duration = Duration::from_secs(50);

/// Bytes of all answers of nodes in one round.
pub(super) const ANSWERS_BYTES_MAX: u64 = 64 << 20;

/// An archive of several that are asked as one.
#[derive(Debug)]
pub(super) enum Part {
    /// One of this server's own.
    Folder(Arc<Shared>),
    /// One of another machine.
    Node(Node),
}

/// Archives that are asked as one.
#[derive(Debug)]
pub(super) struct Front {
    parts: Vec<Part>,
    http: Arc<Http>,
    kept: Arc<Kept>,
    known: Mutex<Known>,
}

impl Front {
    pub(super) fn new(parts: Vec<Part>, http: Http, kept: Arc<Kept>) -> Self {
        Self { parts, http: Arc::new(http), kept, known: Mutex::default() }
    }

    /// The archives' names, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| match part {
            Part::Folder(shared) => shared.place.name.as_str(),
            Part::Node(node) => node.name(),
        })
    }

    /// Asks all archives something, for people of a role; what is missing from the answer.
    pub(super) fn ask<T>(
        &self,
        role: Option<Role>,
        question: impl FnOnce(&mut Asked<'_>) -> Result<T, AskError>,
    ) -> Result<(T, Vec<Missing>), AskError> {
        let open = |part: &Part| match part {
            Part::Folder(shared) => shared.archive().map(Archive::alone),
            Part::Node(_) => None,
        };
        let opened: Vec<_> = self.parts.iter().map(open).collect();
        let missing = |name: &str, why: String| Missing { name: name.to_owned(), why };
        let sources = self.parts.iter().zip(self.names()).zip(&opened).map(|((part, name), opened)| {
            match (part, opened) {
                (Part::Node(node), _) => Ok(Source::Node(node.clone())),
                (_, Some(Ok(opened))) => Ok(Source::Folder(&opened.store, opened.access.to(role))),
                (_, Some(Err(error))) => Err(missing(name, error.to_string())),
                (_, None) => Err(missing(name, String::new())),
            }
        });
        let until = Instant::now() + TIME_MAX;
        let asked = Asked::new(sources.collect(), Arc::clone(&self.http))?;
        let asked = asked.within(Limits::SERVED).until(until).keeping(&self.kept);
        let mut asked = match self.kept() {
            Some(known) => asked.knowing(known),
            None => asked,
        };
        let answer = question(&mut asked);
        let known = asked.known();
        known.clone_into(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((answer?, self.missing(known)))
    }

    fn kept(&self) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.since().is_some_and(|since| since.elapsed() < KNOWN_FOR).then_some(known)
    }

    /// What archives reported about themselves a moment ago.
    pub(super) fn known(&self, role: Option<Role>) -> Result<Known, AskError> {
        match self.kept() {
            Some(known) => Ok(known),
            None => Ok(self.ask(role, |asked| asked.look().cloned())?.0),
        }
    }

    /// Archives that are missing from an answer, and partitions that no archive here has.
    pub(super) fn missing(&self, known: &Known) -> Vec<Missing> {
        let others = Partition::others(known.partitions()).into_iter();
        let others = others.map(|(count, others)| Missing {
            name: format!("partition {others} of {count}"),
            why: "no archive here has it".to_owned(),
        });
        known.missing().iter().cloned().chain(others).collect()
    }

    /// Where browsers that know this server by `host` find application and replay of an archive.
    pub(super) fn origins(&self, known: &Known, place: usize, host: &str) -> Option<[String; 2]> {
        match self.parts.get(place)? {
            Part::Folder(shared) => Some(shared.place.origins(host)),
            Part::Node(_) => known.origins(place).cloned(),
        }
    }
}

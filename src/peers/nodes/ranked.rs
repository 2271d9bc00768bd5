//! Input for a ranking of several archives, possibly on other machines; `graphs/outline` defines what is sent.
//!
//! It is fetched once and ranked here. If each node swept its own pages instead, it would have to keep its values
//! between rounds, and the nodes would exchange the flows between them dozens of times.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive_base::access::Access;
use archive_books::stored_graph::{JoinError, Outline, OutlineError, OutlineRows, send_outline};
use archive_storage::{Store, UrlId};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::answer::Take;
use super::asked::{Asked, Failure, Source};
use super::wire::{Ask, Line, URLS_MAX};
use super::{AskError, NodeError};

/// Maximum size of the rows in one answer, in bytes.
const ROOM_MAX: u64 = 64 << 20;

/// The answers of a round may be this many times as long as the rows asked for: Base64 takes more space than bytes, and
/// the last row may be long.
const ROOM_SHARE: u64 = 2;

/// Time limit of an answer; the next answer continues from there. It bounds how long a concurrent crawl has to wait.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Answers with rows of an archive's outline.
pub(super) fn outline(
    store: &Store,
    from: (OutlineRows, u32),
    room: u64,
    until: Option<Instant>,
    take: &mut Take<'_>,
) -> Result<(), AskError> {
    let own = Instant::now() + TIME_MAX;
    let until = until.map_or(own, |until| until.min(own));
    let next = send_outline(store, from, (room.min(ROOM_MAX), Some(until)), |piece| {
        take(Line::Outline(BASE64_STANDARD.encode(piece)))
    })?;
    next.map_or(Ok(()), |next| take(Line::Next(next)))
}

/// Answers with the URLs of those pages that may be shown.
pub(super) fn urls(
    store: &Store,
    access: &Access,
    pages: &[u32],
    take: &mut Take<'_>,
) -> Result<(), AskError> {
    let state = store.state();
    for &page in pages.iter().filter(|page| **page < state.url_count()) {
        let id = UrlId(page);
        if !state.knows(id) {
            continue;
        }
        if access.is_unlimited() || access.shows_page(state, state.visit(id)?.as_ref())? {
            take(Line::Url(page, state.url(id)?))?;
        }
    }
    Ok(())
}

impl From<OutlineError> for NodeError {
    fn from(error: OutlineError) -> Self {
        match error {
            OutlineError::Senseless(what) => Self::senseless(what),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<OutlineError> for AskError {
    fn from(error: OutlineError) -> Self {
        JoinError::from(error).into()
    }
}

impl Asked<'_> {
    /// Fetches the outline of each archive that answers, in their order; links are stored in files in `folder`.
    ///
    /// # Errors
    /// When two archives have captured pages of one site, no archive answers, a folder cannot be read, or `memory` is
    /// too small for the outlines.
    pub fn outlines(
        &mut self,
        folder: Option<&Path>,
        memory: Option<usize>,
    ) -> Result<Vec<Outline>, AskError> {
        let begun = Mutex::new(BTreeMap::new());
        self.insist(|asked| asked.outline_all(&begun, folder, memory))?;
        // In the order of the archives, without those that failed at any request on the way.
        let mut begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|place, _| self.sources.iter().any(|(still, _)| still == place));
        Ok(begun.into_values().collect())
    }

    /// Resumes outlines that were begun, so that a failing node costs the others only one round.
    fn outline_all(
        &self,
        begun: &Mutex<BTreeMap<usize, Outline>>,
        folder: Option<&Path>,
        memory: Option<usize>,
    ) -> Result<(), Failure> {
        let lock = || begun.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (self.http.bytes_max / ROOM_SHARE / self.sources.len().max(1) as u64).min(ROOM_MAX);
        loop {
            let are_whole = self.each(|place, of| {
                let known = lock().remove(&self.sources[place].0);
                let mut outline = known.map_or_else(|| Outline::new(&self.name(place), folder), Ok)?;
                let wanted = outline.wanted();
                if let Some((rows, from)) = wanted {
                    let mut next = None;
                    let (head, _) = of(&Ask::Outline { rows, from, room }, &mut |line| {
                        match line {
                            Line::Outline(piece) => {
                                let bytes = BASE64_STANDARD.decode(piece);
                                let bytes = bytes.map_err(|error| NodeError::Senseless(error.to_string()))?;
                                outline.take(&bytes)?;
                            }
                            Line::Next(number) => next = Some(number),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                    outline.end(head.state, next).map_err(NodeError::from)?;
                }
                lock().insert(self.sources[place].0, outline);
                Ok(wanted.is_none())
            })?;
            if are_whole.into_iter().all(|is_whole| is_whole) {
                break;
            }
            let least = lock().values().map(Outline::least_bytes).sum();
            if let Some(given) = memory.filter(|given| *given < least) {
                return Err(Failure::Whole(JoinError::Memory { given, least }.into()));
            }
        }
        self.each(|place, of| {
            let mut sites = Vec::new();
            let (head, _) = of(&Ask::Sites {}, &mut |line| {
                match line {
                    Line::Site(site, is_captured) => sites.push((site, is_captured)),
                    Line::Times(_) => {}
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            if let Some(outline) = lock().get_mut(&self.sources[place].0) {
                outline.complete(head.state, sites).map_err(NodeError::from)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The URLs of pages of each archive, by their numbers in its outline, if they may be shown.
    ///
    /// # Errors
    /// When an archive does not answer any more, or was rebuilt.
    pub fn urls(
        &self,
        outlines: &[Outline],
        pages: &[Vec<u32>],
    ) -> Result<Vec<HashMap<u32, String>>, AskError> {
        let found = self.each(|place, of| {
            let mut urls = HashMap::new();
            let pages = pages.get(place).map(Vec::as_slice).unwrap_or_default();
            for pages in pages.chunks(URLS_MAX) {
                let (head, _) = of(&Ask::Urls { pages: pages.to_vec() }, &mut |line| {
                    let Line::Url(page, url) = line else { return Ok(false) };
                    urls.insert(page, url);
                    Ok(true)
                })?;
                if let Some(outline) = outlines.get(place) {
                    outline.check(head.state).map_err(NodeError::from)?;
                }
            }
            Ok(urls)
        });
        found.map_err(|failure| match failure {
            Failure::Whole(error) => error,
            Failure::Nodes(mut failed) => match failed.pop() {
                Some((place, error)) => AskError::Lost { name: self.name(place), error },
                None => AskError::Nobody(String::new()),
            },
        })
    }

    /// The local folder of each available archive; `None` for a node.
    pub fn folders(&self) -> impl Iterator<Item = Option<&Store>> {
        self.sources.iter().map(|(_, source)| match source {
            Source::Folder(store, _) => Some(*store),
            Source::Node(_) => None,
        })
    }
}

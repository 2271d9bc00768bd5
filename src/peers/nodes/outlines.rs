//! Input for a ranking of several archives, possibly on other machines; `stored_graph/outline` defines what is sent.
//!
//! It is fetched once and ranked here. If each node swept its own pages instead, it would have to keep its values
//! between rounds, and the nodes would exchange the flows between them dozens of times.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive_books::stored_graph::{JoinError, Outline, OutlineError, send_outline};
use archive_storage::{Store, UrlId};

use super::ask::{
    AskedFolder, EndOf, KnownSites, LeafAnswer, OutlinePieces, PageUrls, RowBytes, Take, URLS_MAX, expect_few,
};
use super::root::{LeafArchive, Root, RoundFailure};
use super::{AskError, NodeError};

/// Maximum size of the rows in one answer, in bytes.
const ROOM_MAX: u64 = 64 << 20;

/// The answers of a round may be this many times as long as the rows asked for: Base64 takes more space than bytes, and
/// the last row may be long.
const ROOM_SHARE: u64 = 2;

/// Time limit of an answer; the next answer continues from there. It bounds how long a concurrent crawl has to wait.
const TIME_MAX: Duration = Duration::from_secs(15);

impl LeafAnswer for OutlinePieces {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        let own = Instant::now() + TIME_MAX;
        let until = folder.limits.until().map_or(own, |until| until.min(own));
        let room = (self.room.min(ROOM_MAX), Some(until));
        send_outline(folder.store, (self.rows, self.from), room, |piece| take(RowBytes(piece.to_vec())))
    }
}

impl LeafAnswer for PageUrls {
    fn answer(self, folder: &AskedFolder<'_>, take: Take<'_, Self>) -> EndOf<Self> {
        expect_few(&self.pages, "pages cannot be looked up")?;
        let (state, access) = (folder.store.state(), folder.access);
        for page in self.pages.into_iter().filter(|page| *page < state.url_count()) {
            let id = UrlId(page);
            if state.knows(id)
                && (access.is_unlimited() || access.shows_page(state, state.visit(id)?.as_ref())?)
            {
                take((page, state.url(id)?))?;
            }
        }
        Ok(())
    }
}

impl From<OutlineError> for NodeError {
    fn from(error: OutlineError) -> Self {
        match error {
            OutlineError::Senseless(what) => Self::senseless(what),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Root<'_> {
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
        self.retry(|root| root.outline_all(&begun, folder, memory))?;
        // In the order of the archives, without those that failed at any request on the way.
        let mut begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|place, _| self.leaves.iter().any(|(still, _)| still == place));
        Ok(begun.into_values().collect())
    }

    /// Resumes outlines that were begun, so that a failing node costs the others only one round.
    fn outline_all(
        &self,
        begun: &Mutex<BTreeMap<usize, Outline>>,
        folder: Option<&Path>,
        memory: Option<usize>,
    ) -> Result<(), RoundFailure> {
        let lock = || begun.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (self.http.bytes_max / ROOM_SHARE / self.leaves.len().max(1) as u64).min(ROOM_MAX);
        loop {
            let are_whole = self.each(|place, archive| {
                let known = lock().remove(&self.leaves[place].0);
                let mut outline = known.map_or_else(|| Outline::new(&self.name(place), folder), Ok)?;
                let wanted = outline.wanted();
                if let Some((rows, from)) = wanted {
                    let (head, next) = archive
                        .ask(OutlinePieces { rows, from, room }, &mut |RowBytes(piece)| {
                            Ok(outline.take(&piece)?)
                        })?;
                    outline.end(head.state, next).map_err(NodeError::from)?;
                }
                lock().insert(self.leaves[place].0, outline);
                Ok(wanted.is_none())
            })?;
            if are_whole.into_iter().all(|is_whole| is_whole) {
                break;
            }
            let least = lock().values().map(Outline::least_bytes).sum();
            if let Some(given) = memory.filter(|given| *given < least) {
                return Err(RoundFailure::Whole(JoinError::Memory { given, least }.into()));
            }
        }
        self.each(|place, archive| {
            let mut sites = Vec::new();
            let (head, _) = archive.ask(KnownSites {}, &mut |site| {
                sites.push(site);
                Ok(())
            })?;
            if let Some(outline) = lock().get_mut(&self.leaves[place].0) {
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
        let found = self.each(|place, archive| {
            let mut urls = HashMap::new();
            let pages = pages.get(place).map(Vec::as_slice).unwrap_or_default();
            for pages in pages.chunks(URLS_MAX) {
                let (head, _) = archive.ask(PageUrls { pages: pages.to_vec() }, &mut |(page, url)| {
                    urls.insert(page, url);
                    Ok(())
                })?;
                if let Some(outline) = outlines.get(place) {
                    outline.check(head.state).map_err(NodeError::from)?;
                }
            }
            Ok(urls)
        });
        found.map_err(|failure| match failure {
            RoundFailure::Whole(error) => error,
            RoundFailure::Nodes(mut failed) => match failed.pop() {
                Some((place, error)) => AskError::Lost { name: self.name(place), error },
                None => AskError::Nobody(String::new()),
            },
        })
    }

    /// The local folder of each available archive; `None` for a node.
    pub fn folders(&self) -> impl Iterator<Item = Option<&Store>> {
        self.leaves.iter().map(|(_, source)| match source {
            LeafArchive::Folder(store, _) => Some(*store),
            LeafArchive::Node(_) => None,
        })
    }
}

//! Copies a state without what was erased.
//!
//! Deleted bytes stay in files for a long time: in freed pages of the catalogue, in append-only logs, in blocks that no
//! checkpoint refers to any longer. Therefore erased data is left out of a copy, and the copy replaces the state. All
//! ids stay.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use super::open::{FOLDER, mime_ids};
use super::small::{LINKS, PAYLOAD_BYTES};
use super::{State, StateMode};
use crate::address::{name_hash, url_hash};
use crate::backend::OpenMode;
use crate::capture_kind::CaptureKind;
use crate::catalogue::{Catalogue, CatalogueContents, GENERATION, NUMBER};
use crate::checkpoint::{Result, StateError, lock};
use crate::history::MimeId;
use crate::ids::{CaptureId, UrlId, Watermarks};
use crate::links::LinkList;
use crate::pages::{Page, Visit};

/// Number of records copied between two checkpoints of the copy; uncommitted ones are held in memory.
const RECORDS_PER_CHECKPOINT: u32 = 1 << 20;

/// What a copy of a state leaves out or replaces. The segments and the captures must already reflect it.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    /// Pages whose titles and links are dropped; their visits keep only the credit, the times, the captures and the
    /// version.
    pub pages: HashSet<UrlId>,
    /// New names of URLs.
    pub names: HashMap<UrlId, String>,
}

impl State {
    /// Records that a tombstone has replaced a capture: only its time remains.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn erase_capture(&mut self, id: CaptureId) -> Result<()> {
        self.writable()?;
        let before = self.capture(id)?;
        let outcome = self.captures.update(id.0, |record| {
            let capture = &mut record.capture;
            (capture.kind, capture.original) = (CaptureKind::Failed, None);
            (capture.digest, capture.length) = ([0; 16], 0);
            (capture.status, capture.mime, capture.flags) = (0, MimeId::default(), 0);
        });
        self.finish(outcome)?;
        let bytes = if before.kind == CaptureKind::Failed { 0 } else { u64::from(before.length) };
        self.take_away(PAYLOAD_BYTES, bytes);
        let host = self.page(before.url)?.host;
        if bytes == 0 || host == Page::HOST_UNKNOWN {
            return Ok(());
        }
        let site = self.update_host(host, |host| {
            host.bytes = host.bytes.saturating_sub(bytes);
            host.robots = host.robots.filter(|robots| *robots != id);
            host.site
        })?;
        self.update_site(site, |site| site.bytes = site.bytes.saturating_sub(bytes))
    }

    /// Sets another original for a revisit whose original is gone; `None` means that the revisit now holds the payload
    /// itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn keep_copy(&mut self, revisit: CaptureId, original: Option<CaptureId>) -> Result<()> {
        self.writable()?;
        let outcome = self.captures.update(revisit.0, |record| {
            record.capture.original = original;
            if original.is_none() {
                record.capture.kind = CaptureKind::Response;
            }
        });
        self.finish(outcome).map(|_| ())
    }

    /// Returns a checkpointed copy in `folder`, which must not contain a state. This state must be open for changing
    /// and have no changes since its last checkpoint.
    pub(crate) fn scrubbed(&self, folder: &Path, scrub: &Scrub) -> Result<Self> {
        self.writable()?;
        let mut copy = self.begin_copy(folder)?;
        let known = &self.contents.mimes;
        let mut mimes = vec![String::new(); known.len()];
        for found in self.captures.scan(0) {
            let (number, record) = found?;
            let mime = usize::from(record.capture.mime.0);
            // A type that only erased captures had is forgotten; its number is not given again.
            if let (Some(kept), Some(name)) = (mimes.get_mut(mime), known.get(mime))
                && kept.is_empty()
            {
                kept.clone_from(name);
            }
            copy.captures.push(&record)?;
            copy.copied(number)?;
        }
        (copy.mime_ids, copy.contents.mimes) = (mime_ids(&mimes), mimes);
        self.copy_names(&mut copy, scrub)?;
        self.copy_visits(&mut copy, scrub)?;
        self.copy_links(&mut copy, scrub)?;
        for found in self.hosts.scan(0) {
            copy.hosts.push(&found?.1)?;
        }
        for found in self.sites.scan(0) {
            copy.sites.push(&found?.1)?;
        }
        copy.checkpoint(self.watermarks())?;
        Ok(copy)
    }

    /// Creates a state without records that has the small data of this one.
    fn begin_copy(&self, folder: &Path) -> Result<Self> {
        let state_folder = folder.join(FOLDER);
        self.disk.create_dir_all(&state_folder).map_err(|error| StateError::io(&state_folder, error))?;
        let lock_path = state_folder.join(lock::CHECKPOINT_LOCK);
        let lock = self.disk.open(&lock_path, OpenMode::Create);
        let lock = lock.map_err(|error| StateError::io(&lock_path, error))?;
        let mut contents =
            CatalogueContents { blocks: BTreeMap::new(), mimes: Vec::new(), ..self.contents.clone() };
        let is_of_files = |name: &str| {
            ["count.", "blocks.", "sum."].iter().any(|start| name.starts_with(start)) || name == LINKS
        };
        contents.numbers.retain(|name, _| !is_of_files(name));
        // Names and lists have moved, so data that readers derived from their positions is invalid.
        contents.numbers.insert(GENERATION.to_owned(), self.contents.number(GENERATION) + 1);
        let catalogue = Catalogue::new(self.disk.clone(), &state_folder);
        let (disk, owner) = (self.disk.clone(), self.owner.clone());
        let mut copy =
            Self::assemble(disk, folder, StateMode::Own, self.options, owner, lock, catalogue, contents)?;
        // A deferred checkpoint may have left a journal with the next number.
        let number = self.checkpoint_number() + 2;
        copy.committed = CatalogueContents {
            numbers: [(NUMBER.to_owned(), number)].into(),
            ..CatalogueContents::default()
        };
        Ok(copy)
    }

    /// Makes the records copied so far durable once in a while. The copy is not used before it is complete.
    fn copied(&mut self, records: u32) -> Result<()> {
        if records % RECORDS_PER_CHECKPOINT == RECORDS_PER_CHECKPOINT - 1 {
            self.checkpoint(Watermarks::default())?;
        }
        Ok(())
    }

    fn copy_names(&self, copy: &mut Self, scrub: &Scrub) -> Result<()> {
        self.urls.scan(0..self.urls.len(), |id, url| {
            let url = scrub.names.get(&UrlId(id)).map_or(url, String::as_str);
            copy.urls.push(url, url_hash(url)).map(drop)
        })?;
        for (names, copies) in
            [(&self.host_names, &mut copy.host_names), (&self.site_names, &mut copy.site_names)]
        {
            names.scan(0..names.len(), |_, name| copies.push(name, name_hash(name.as_bytes())).map(drop))?;
        }
        for found in self.pages.scan(0) {
            let (number, page) = found?;
            copy.pages.push(&page)?;
            copy.copied(number)?;
        }
        Ok(())
    }

    /// The visits of pages from which something was erased keep only their credit, times, captures and version.
    fn copy_visits(&self, copy: &mut Self, scrub: &Scrub) -> Result<()> {
        let mut titles = self.title_cursor();
        for found in self.visits.scan(0) {
            let (number, mut record) = found?;
            let visit = record.visit;
            if scrub.pages.contains(&record.url) {
                let version = self.newest_left(record.url)?;
                record.visit = Visit {
                    first_seen: visit.first_seen,
                    last_seen: visit.last_seen,
                    last_answer: visit.last_answer,
                    last_attempt: visit.last_attempt,
                    captures: visit.captures,
                    contents: visit.contents,
                    last_capture: visit.last_capture,
                    credit: visit.credit,
                    version,
                    ..Visit::default()
                };
            } else {
                if let Some(title) = visit.title {
                    record.visit.title = Some(copy.append_title(titles.get(title)?)?);
                }
                let validators = self.validators_at(&visit)?;
                record.visit.validators = copy.push_validators(&Visit::default(), validators.as_ref())?;
            }
            copy.visits.push(&record)?;
            copy.copied(number)?;
        }
        Ok(())
    }

    /// The newest version of a page among the captures that are not tombstones.
    fn newest_left(&self, url: UrlId) -> Result<Option<CaptureId>> {
        for found in self.history(url)? {
            let (id, capture) = found?;
            if capture.is_confirmable() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn copy_links(&self, copy: &mut Self, scrub: &Scrub) -> Result<()> {
        let (mut scan, mut list, mut copied) = (self.all_links(), LinkList::default(), 0);
        while scan.read_next(&mut list)? {
            let Some(source) = list.source.filter(|source| !scrub.pages.contains(source)) else {
                continue;
            };
            let position = copy.links.push(source, &list.links)?;
            copy.add(LINKS, list.links.len() as u64);
            let page = self.page(source)?;
            if let Some(visit) = page.visit
                && self.visits.get(visit.0)?.is_some_and(|record| record.visit.links == list.position)
            {
                copy.visits.update(visit.0, |record| record.visit.links = Some(position))?;
            }
            copied += 1;
            copy.copied(copied)?;
        }
        Ok(())
    }
}

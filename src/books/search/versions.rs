//! Which versions of pages are searched, and which of them were current at a given time.
//!
//! The index of newest versions has one document per page. An archive may also keep an index of older versions, with
//! one document for each distinct content that a page had before, however often it recurred. Documents do not record
//! when they were current: a search as of a time reads that from the histories, so that late captures and access rules
//! count.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use archive_base::access::Access;
use archive_storage::{Capture, CaptureId, CaptureKind, State, StateError, UrlId};
use chrono::{DateTime, Utc};
use xxhash_rust::xxh3::xxh3_64;

use super::error::SearchError;
use super::writer::{IndexOptions, IndexWriterOwner};

/// Folder of the index of older versions in an archive's folder. An archive that has it keeps it up to date.
pub const VERSIONS_FOLDER: &str = "state/versions";

/// Name of that folder in the state's folder.
pub const VERSIONS_NAME: &str = "versions";

/// Turns the index of older versions on or off, as of the archive's next run. The caller must own the archive.
///
/// # Errors
/// When the disk fails.
pub fn keep_versions(archive: &Path, keep: bool) -> Result<(), SearchError> {
    let folder = archive.join(VERSIONS_FOLDER);
    match folder.is_dir() {
        is_kept if is_kept == keep => Ok(()),
        true => fs::remove_dir_all(&folder).map_err(|source| SearchError::of(&folder, source.into())),
        false => {
            IndexWriterOwner::open(&folder, IndexOptions { of_versions: true, ..IndexOptions::default() })?
                .close()
        }
    }
}

/// Whether a capture has a document in the index. A page that is a copy of another one is found by its own text.
#[must_use]
pub fn is_searched(capture: &Capture) -> bool {
    let is_version = matches!(capture.kind, CaptureKind::Response | CaptureKind::Identical);
    capture.kind == CaptureKind::Resource || is_version && capture.status == 200
}

/// Returns the newest searched capture of a page, among the first `captures` of the archive.
pub(crate) fn newest_searched(
    state: &State,
    page: UrlId,
    captures: u64,
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    let is_meant = |(id, capture): &(CaptureId, Capture)| u64::from(id.0) < captures && is_searched(capture);
    state.history(page)?.find(|found| found.as_ref().map_or(true, is_meant)).transpose()
}

/// Returns a hash of a capture's content and type: equal content that is read in the same way has the same number.
fn version_of(state: &State, capture: &Capture) -> u64 {
    xxh3_64(&[&capture.digest[..], state.mime(capture.mime).as_bytes()].concat())
}

/// Returns the older versions of a page that are missing from an index of the archive's first `captures`, each with one
/// of its captures.
pub(crate) fn older_versions(
    state: &State,
    page: UrlId,
    captures: u64,
) -> Result<Vec<(u64, Capture)>, StateError> {
    let mut versions = Vec::new();
    let mut before = HashSet::new();
    let mut newest_before = None;
    for found in state.history(page)? {
        let (id, capture) = found?;
        if is_searched(&capture) {
            let version = version_of(state, &capture);
            versions.push((version, capture));
            if u64::from(id.0) < captures {
                newest_before.get_or_insert(version);
                before.insert(version);
            }
        }
    }
    before.retain(|version| newest_before != Some(*version));
    before.extend(versions.first().map(|(version, _)| *version));
    versions.retain(|(version, _)| before.insert(*version));
    Ok(versions)
}

/// Pages as they were at a given time.
#[derive(Debug)]
pub struct PagesAsOf<'a> {
    state: &'a State,
    access: Access,
    /// First instant that does not count, in microseconds since 1970.
    before: i64,
    /// Number of captures that the index of newest versions reflects.
    captures: u64,
    /// Cache of the version current then, and whether it is the newest.
    known: RefCell<HashMap<UrlId, Option<(u64, bool)>>>,
}

impl<'a> PagesAsOf<'a> {
    pub(super) fn new(state: &'a State, access: Access, before: DateTime<Utc>, captures: u64) -> Self {
        let before = before.timestamp_micros();
        Self { state, access, before, captures, known: RefCell::default() }
    }

    /// Returns the capture that was current then: the last earlier one that is searched and may be shown.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn capture(&self, page: UrlId) -> Result<Option<Capture>, StateError> {
        // An index may be ahead of the saved store.
        if page.0 >= self.state.url_count() {
            return Ok(None);
        }
        let is_meant =
            |(_, capture): &(CaptureId, Capture)| capture.time < self.before && is_searched(capture);
        let mut history = self.access.history(self.state, page)?;
        let found = history.find(|found| found.as_ref().map_or(true, is_meant)).transpose()?;
        Ok(found.map(|(_, capture)| capture))
    }

    /// Returns when a capture after that time first shows other content than `standing`, or that the page is gone; none
    /// if no capture does.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn until(&self, standing: &Capture) -> Result<Option<DateTime<Utc>>, StateError> {
        let version = version_of(self.state, standing);
        let mut until = None;
        for found in self.access.history(self.state, standing.url)? {
            let (_, capture) = found?;
            if capture.time < self.before {
                break;
            }
            let is_other = is_searched(&capture) && version_of(self.state, &capture) != version;
            if is_other || matches!(capture.status, 404 | 410) {
                until = DateTime::from_timestamp_micros(capture.time);
            }
        }
        Ok(until)
    }

    /// Whether a document counts: that of the page's newest version, or of an older one by its number.
    pub(super) fn has(&self, page: UrlId, version: Option<u64>) -> Result<bool, StateError> {
        let known = self.known.borrow().get(&page).copied();
        let standing = match known {
            Some(standing) => standing,
            None => {
                let standing = self.look(page)?;
                self.known.borrow_mut().insert(page, standing);
                standing
            }
        };
        Ok(standing.is_some_and(|(standing, is_newest)| match version {
            None => is_newest,
            // A version that recurred has a document in each index.
            Some(version) => version == standing && !is_newest,
        }))
    }

    fn look(&self, page: UrlId) -> Result<Option<(u64, bool)>, StateError> {
        let Some(capture) = self.capture(page)? else { return Ok(None) };
        let version = version_of(self.state, &capture);
        let newest = newest_searched(self.state, page, self.captures)?;
        let is_newest = newest.is_some_and(|(_, newest)| version_of(self.state, &newest) == version);
        // The index has the text of the newest version, hidden or not.
        let is_read = self.state.veil().is_none_or(|veil| !veil.unread.contains(&page));
        Ok(Some((version, is_newest && is_read)))
    }
}

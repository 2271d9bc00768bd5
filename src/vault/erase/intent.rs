//! The list of an erase, written before its first step and removed after its last.

use std::fs::{self, File};
use std::path::Path;

use archive_base::files::{self, FileError, WholeFile};
use archive_storage::{CaptureId, SegmentId, UrlId};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::{EraseError, ErasePlan};

/// Name of the file in the archive's folder.
pub const FILE: &str = "erase.json";

/// Largest accepted size of the file in bytes, about 20 000 000 captures; a longer one was not written by this program.
const BYTES_MAX: u64 = 256 << 20;

/// An erase that was begun. Its numbers are those of the state, which only an erase changes while the file exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseIntent {
    /// When it began, RFC 3339.
    pub(super) time: String,
    /// Identity of the state that the numbers refer to.
    pub(super) identity: u64,
    /// Reason for the erase.
    pub(super) reason: String,
    /// Whether only digests of the URLs are kept.
    pub(super) forget_url: bool,
    /// Who erases.
    #[serde(default)]
    pub(super) by: String,
    /// The pages.
    pub(super) pages: Vec<UrlId>,
    /// The captures of the pages.
    pub(super) captures: Vec<CaptureId>,
    /// Captures of other pages that depend on these and are erased with them.
    pub(super) copies: Vec<CaptureId>,
    /// Captures of other pages that depend on these and stay, each with the one that gets the payload.
    pub(super) kept: Vec<(CaptureId, CaptureId)>,
    /// Segments whose dictionaries contain bytes of the captures; `None` before they were searched.
    pub(super) dictionaries: Option<Vec<SegmentId>>,
}

impl EraseIntent {
    pub(super) fn of(plan: &ErasePlan) -> Self {
        Self {
            time: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
            identity: plan.identity,
            reason: plan.order.reason.clone(),
            by: plan.order.by.clone(),
            forget_url: plan.order.forget_url,
            pages: plan.pages.iter().copied().collect(),
            captures: plan.captures.iter().copied().collect(),
            copies: plan.copies.iter().copied().collect(),
            kept: plan.kept.iter().map(|(copy, holder)| (*copy, *holder)).collect(),
            dictionaries: None,
        }
    }

    pub(super) fn time(&self) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(&self.time).map_or_else(|_| Utc::now(), |time| time.to_utc())
    }

    /// Returns all captures to erase.
    pub(super) fn all(&self) -> impl Iterator<Item = CaptureId> + '_ {
        self.captures.iter().chain(&self.copies).copied()
    }

    /// Number of captures to erase.
    #[must_use]
    pub fn count(&self) -> usize {
        self.captures.len() + self.copies.len()
    }

    pub(super) fn save(&self, archive: &Path) -> Result<(), EraseError> {
        let path = archive.join(FILE);
        let write = || WholeFile::replace(&path, &serde_json::to_vec(self)?);
        Ok(write().map_err(FileError::at(&path))?)
    }
}

/// Returns the erase of the archive in this folder that was begun and is not finished.
///
/// # Errors
/// If the file cannot be read.
pub fn interrupted(archive: &Path) -> Result<Option<EraseIntent>, EraseError> {
    let path = archive.join(FILE);
    let bytes = files::read_if_there(&path, BYTES_MAX).map_err(FileError::at(&path))?;
    let Some(bytes) = bytes else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| EraseError::Intent { path, problem: error.to_string() })
}

/// Removes the file durably: the erase is finished.
pub(super) fn forget(archive: &Path) -> Result<(), EraseError> {
    let path = archive.join(FILE);
    let remove = || {
        fs::remove_file(&path)?;
        File::open(archive)?.sync_all()
    };
    Ok(remove().map_err(FileError::at(&path))?)
}

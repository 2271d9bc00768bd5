//! Rebuilds all derived data from the segments: URL table, pages, histories, links, books, full text.

use std::fs;
use std::path::Path;
use std::time::Duration;

use archive_base::beside;
use archive_base::files::{FileError, if_there};
use archive_base::remarks;
use archive_books::columns;
use archive_books::ledger;
use archive_books::prepared;
use archive_books::recorder::{self, Recorder, RecorderError, RecorderSettings};
use archive_books::search;
use archive_storage::segment::{self, SegmentInfo, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{Rebuild, SegmentId, Watermarks};
use serde::{Serialize, Serializer};

/// Bytes of changes that are held in memory before they are written.
const DIRTY_BYTES_MAX: usize = 512 << 20;

/// Why a rebuild failed. The old state is still in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The segments, the state or the full-text index failed, or an interrupted repair must be finished first.
    #[error(transparent)]
    Recorder(RecorderError),
    /// Segments are missing; without them the archive would lose captures.
    #[error(
        "{}; put back what is missing, or give it up with `archive repair`",
        .0.iter().map(SegmentInfo::missing).collect::<Vec<_>>().join(", ")
    )]
    Missing(Vec<SegmentInfo>),
}

impl<E: Into<RecorderError>> From<E> for RebuildError {
    fn from(error: E) -> Self {
        Self::Recorder(error.into())
    }
}

/// The result of a rebuild.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Rebuilt {
    /// Number of captures.
    pub captures: u64,
    /// Number of URLs.
    pub urls: u64,
    /// Number of links.
    pub links: u64,
    /// Number of segments.
    pub segments: usize,
    /// Bytes after the last complete capture of a segment, left by a crash, that were cut off.
    pub cut_bytes: u64,
    /// Positions in segments that cannot be read; programs get their number.
    #[serde(serialize_with = "count")]
    pub broken: Vec<(SegmentId, Broken)>,
    /// Columns of `archive rank --save` that were removed because they refer to pages by their old numbers.
    pub removed_columns: u64,
    /// Frames of remarks on URLs (seeds, and why some are not fetched) that cannot be read.
    pub damaged_remarks: u64,
    /// Whether the old state could not be read, so that settings made by people are lost with it.
    #[serde(skip)]
    pub has_lost_settings: bool,
}

fn count<S: Serializer>(broken: &[(SegmentId, Broken)], serializer: S) -> Result<S::Ok, S::Error> {
    broken.len().serialize(serializer)
}

/// Rebuilds the archive in `path`. `progress` gets the number of captures credited so far. `versions` says whether
/// older versions are searchable afterwards; by default they are if they were before.
///
/// # Errors
/// If another process owns the archive, if segments are missing or in the quarantine, or if the disk fails. The old
/// state is then still in place.
pub fn run(
    path: &Path,
    options: SegmentOptions,
    versions: Option<bool>,
    progress: &mut dyn FnMut(u64),
) -> Result<Rebuilt, RebuildError> {
    segment::check_repaired(path)?;
    remake(path, options, versions, progress)
}

/// Like [`run`], for a repair that has yet to restore the captures in the quarantine.
pub(super) fn remake(
    path: &Path,
    options: SegmentOptions,
    versions: Option<bool>,
    progress: &mut dyn FnMut(u64),
) -> Result<Rebuilt, RebuildError> {
    let mut rebuild = Rebuild::begin(path, options)?;
    let missing = rebuild.store().missing();
    if !missing.is_empty() {
        rebuild.abandon()?;
        return Err(RebuildError::Missing(missing));
    }
    let has_lost_settings = rebuild.settings().is_none();
    for (name, value) in rebuild.settings().unwrap_or_default().to_vec() {
        if ledger::DECISIONS.contains(&name.as_str())
            || name.starts_with(ledger::CLUSTER_SETTINGS)
            || name == beside::SETTING
        {
            rebuild.store().state_mut().set_setting(&name, Some(&value))?;
        }
    }
    ledger::Credits::note_rebuild(rebuild.store().state_mut())?;
    if let Some(mark) = remarks::mark(path)? {
        mark.keep(rebuild.store().state_mut())?;
    }
    let mut recorder = Recorder::open(rebuild.store(), RecorderSettings::default())?;
    let mut seeds = Vec::new();
    let damaged_remarks = remarks::each(path, |remark| {
        if remark.what == remarks::SEED {
            seeds.push(remark.url);
        }
    })?;
    let (credits, state) = recorder.books();
    credits.add_seeds(state, &seeds)?;
    credits.forget_remarks();
    let replayed = recorder.replay(true, &mut |captures, state| {
        progress(captures);
        if state.dirty_bytes() > DIRTY_BYTES_MAX {
            // No reader uses this state before it is complete, so its watermarks are still zero.
            state.checkpoint(Watermarks::default())?;
        }
        Ok(())
    })?;
    let (credits, state) = recorder.books();
    let (mut recalled, mut announced) = (Ok(()), Vec::new());
    remarks::each(path, |remark| {
        if remark.what == remarks::ANNOUNCED {
            announced.push(remark);
        } else if recalled.is_ok() {
            recalled = credits.recall(state, &remark);
        }
    })?;
    recalled?;
    credits.recall_announced(state, &announced)?;
    recorder.conclude()?;
    if recorder.settle()? > 0 {
        recorder.conclude()?;
    }
    let store = rebuild.store();
    let totals = store.state().totals();
    let mut rebuilt = Rebuilt {
        captures: totals.captures,
        urls: totals.urls,
        links: totals.links,
        segments: store.state().segments().count(),
        cut_bytes: store.recovered().iter().map(|segment| segment.cut_bytes).sum(),
        broken: replayed.broken,
        removed_columns: 0,
        has_lost_settings,
        damaged_remarks,
    };
    if path.join(search::FOLDER).is_dir() {
        let index = rebuild.folder().join(search::FOLDER);
        recorder::index_all(rebuild.store(), &index)?;
        recorder::check(rebuild.store(), &index, Duration::MAX)?;
    }
    if versions.unwrap_or_else(|| path.join(search::VERSIONS_FOLDER).is_dir()) {
        let index = rebuild.folder().join(search::VERSIONS_FOLDER);
        recorder::index_all_versions(rebuild.store(), &index)?;
    }
    // Columns refer to pages by the numbers of the old state and are removed with it.
    let folder = rebuild.folder();
    prepared::prepare(rebuild.store().state(), &folder)?;
    rebuilt.removed_columns = count_files(&path.join(columns::FOLDER))?;
    rebuild.finish()?;
    Ok(rebuilt)
}

fn count_files(folder: &Path) -> Result<u64, RebuildError> {
    let entries = if_there(fs::read_dir(folder)).map_err(FileError::at(folder))?;
    Ok(entries.map_or(0, |entries| entries.count() as u64))
}

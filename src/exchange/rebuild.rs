//! Everything derived, made anew from the segments: URL table, pages, histories, links, books, full text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use archive_storage::segment::{self, SegmentError, SegmentInfo, SegmentOptions};
use archive_storage::warc::Broken;
use archive_storage::{Rebuild, SegmentId, StateError, StoreError, Watermarks};

use crate::columns;
use crate::crawl::{self, CrawlError, OpenError};
use crate::ledger::{CreditError, Credits};
use crate::search;

/// Settings of the old state that captures do not tell: what a person decided. All others are made anew.
const KEPT_SETTINGS: [&str; 2] = [crate::ledger::SCOPE_SETTING, crate::crawl::REFRESH_SETTING];

/// Changes that wait in memory before they are written, in bytes.
const DIRTY_BYTES_MAX: usize = 512 << 20;

/// Why a rebuild broke off. The old state is still in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The state failed.
    #[error("{0}")]
    State(#[from] StateError),
    /// The books failed.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// The replay failed.
    #[error("{0}")]
    Replay(#[from] OpenError),
    /// The full-text index failed.
    #[error(transparent)]
    Index(#[from] CrawlError),
    /// A segment failed, or an interrupted repair has to be gone on with first.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Without them the archive would have fewer captures than before.
    #[error(
        "{}; put back what is missing, or give it up with `archive repair`",
        .0.iter().map(SegmentInfo::missing).collect::<Vec<_>>().join(", ")
    )]
    Missing(Vec<SegmentInfo>),
    /// The file system says so.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// What a rebuild made.
#[derive(Debug, Clone, Default)]
pub struct Rebuilt {
    /// Captures.
    pub captures: u64,
    /// URLs.
    pub urls: u64,
    /// Links.
    pub links: u64,
    /// Segments.
    pub segments: usize,
    /// Bytes that a crash had left behind the last whole capture, and that were cut off.
    pub cut_bytes: u64,
    /// Places in segments that cannot be read.
    pub broken: Vec<(SegmentId, Broken)>,
    /// Columns of `archive rank --save` that were removed, because they name pages by their old numbers.
    pub removed_columns: u64,
    /// Whether the old state could not be read, and what a person had decided is lost with it.
    pub has_lost_settings: bool,
}

/// Rebuilds the archive in `path`; `progress` is told how many captures were credited so far.
///
/// # Errors
/// When another process owns the archive, segments are missing or wait in the quarantine, and when the disk refuses; the old
/// state is then still in place.
pub fn run(
    path: &Path,
    options: SegmentOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Rebuilt, RebuildError> {
    segment::check_repaired(path)?;
    remake(path, options, progress)
}

/// The same for a repair that has still to bring back what is in the quarantine.
pub(super) fn remake(
    path: &Path,
    options: SegmentOptions,
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
        if KEPT_SETTINGS.contains(&name.as_str()) {
            rebuild.store().state_mut().set_setting(&name, Some(&value))?;
        }
    }
    let mut credits = Credits::open(rebuild.store().state())?;
    let replayed = crawl::replay(rebuild.store(), &mut credits, true, &mut |captures, state| {
        progress(captures);
        if state.dirty_bytes() > DIRTY_BYTES_MAX {
            // Nobody relies on this state before it is whole: what it says to reflect is nothing yet.
            state.checkpoint(Watermarks::default())?;
        }
        Ok(())
    })?;
    let store = rebuild.store();
    credits.audit(store.state())?;
    credits.save(store.state_mut())?;
    store.checkpoint_waiting()?;
    if credits.settle(store.state_mut(), crawl::Memory::default().settling())? > 0 {
        credits.audit(store.state())?;
        credits.save(store.state_mut())?;
        store.checkpoint_waiting()?;
    }
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
    };
    if path.join(search::FOLDER).is_dir() {
        let index = rebuild.folder().join(search::FOLDER);
        crawl::index_all(rebuild.store(), &index)?;
    }
    // Columns name pages by the numbers of the old state, and go with it.
    rebuilt.removed_columns = count_files(&path.join(columns::FOLDER))?;
    rebuild.finish()?;
    Ok(rebuilt)
}

fn count_files(folder: &Path) -> Result<u64, RebuildError> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.count() as u64),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(RebuildError::Io { path: folder.to_owned(), source }),
    }
}

//! Everything derived, made anew from the segments: URL table, pages, histories, links, books, full text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use archive_storage::segment::SegmentOptions;
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
}

/// Rebuilds the archive in `path`; `progress` is told how many captures were credited so far.
///
/// # Errors
/// When another process owns the archive and when the disk refuses; the old state is then still in place.
pub fn run(
    path: &Path,
    options: SegmentOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Rebuilt, RebuildError> {
    let mut rebuild = Rebuild::begin(path, options)?;
    for (name, value) in rebuild.settings().to_vec() {
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
    };
    let index = path.join(search::FOLDER);
    let new_index = rebuild.folder().join(search::FOLDER);
    let is_searched = index.is_dir();
    if is_searched {
        crawl::index_all(rebuild.store(), &new_index)?;
    }
    // Index and columns name pages by number. Without them an archive is whole, with those of another state it is not:
    // so the old ones go before the new state comes.
    rebuilt.removed_columns = remove_columns(path)?;
    let aside = rebuild.folder().join("fulltext.old");
    if is_searched {
        rename(&index, &aside)?;
    }
    // The new index is moved out of the folder that the last step removes.
    let waiting = path.join("fulltext.new");
    if is_searched {
        remove(&waiting)?;
        rename(&new_index, &waiting)?;
    }
    rebuild.finish()?;
    if is_searched {
        rename(&waiting, &index)?;
    }
    Ok(rebuilt)
}

fn remove_columns(path: &Path) -> Result<u64, RebuildError> {
    let folder = path.join(columns::FOLDER);
    let count = match fs::read_dir(&folder) {
        Ok(entries) => entries.count() as u64,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(RebuildError::Io { path: folder, source }),
    };
    remove(&folder)?;
    Ok(count)
}

fn rename(from: &Path, to: &Path) -> Result<(), RebuildError> {
    fs::rename(from, to).map_err(|source| RebuildError::Io { path: from.to_owned(), source })
}

fn remove(folder: &Path) -> Result<(), RebuildError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RebuildError::Io { path: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

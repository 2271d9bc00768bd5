//! Erases captures for good, together with everything in the archive's folder that holds their bytes.
//!
//! An erase is a list of captures ([`ErasePlan`]) that is written durably before the first step (`intent`). Every step
//! may be repeated, so the next program that opens the archive for writing continues the list ([`resume`]):
//!
//! 1. The URLs are put on the list of pages that must not come back ([`archive_base::erased`]).
//! 2. Revisits that stay get the payload that they depend on (`--keep-copies`).
//! 3. Segments that contain the captures, or whose dictionaries contain bytes of them (`dictionaries`), are rewritten
//!    with tombstones in place of the captures; the state changes in the same commit.
//! 4. The state is replaced by a copy without the titles, links, indexed words and names of the pages, because its
//!    files keep deleted bytes for long.
//! 5. Reports, quarantined files and the list of exports are cleaned (`traces`).
//!
//! A tombstone is a `metadata` record with the time of the capture and the field `erased`, from which a replay knows
//! what was there.

mod author;
mod copies;
mod dictionaries;
mod intent;
mod list;
mod plan;
mod traces;

use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread;

use archive_base::beside;
use archive_base::erased::{Erased, FORGOTTEN, forgotten_name};
use archive_base::files::FileError;
use archive_base::remarks;
use archive_books::columns;
use archive_books::ledger::{Credits, capture_flags, forget_languages};
use archive_books::prepared;
use archive_books::recorder::{self, RecorderError};
use archive_books::search;
use archive_storage::segment::{RewriteOptions, SegmentError, SegmentInfo, SegmentOptions};
use archive_storage::warc::RecordError;
use archive_storage::{CaptureId, Location, Rebuild, Scrub, SegmentId, State, StateError, Store, UrlId};
use chrono::{DateTime, Utc};

use self::author::{CaptureFate, ReplacementWriter};
pub use self::intent::{EraseIntent, FILE as INTENT_FILE, interrupted};
pub(crate) use self::list::{list_damage, restore_list};
pub use self::plan::{ErasePlan, EraseRequest};
pub use self::traces::{Forget, Traces};

use super::copy::{self, CopyPlace, SnapshotLock};
use super::exports;
pub use super::exports::Export;
use super::verify::INDEXES;

/// Bytes of segments that are rewritten together; their new segments take additional disk space.
const BATCH_BYTES: u64 = 512 << 20;

/// Number of captures that are rewritten together.
const BATCH_CAPTURES: u64 = 1 << 19;

/// Why an erase failed. If it had begun, the next command that writes to the archive finishes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraseError {
    /// The archive failed.
    #[error(transparent)]
    Recorder(RecorderError),
    /// The file of an erase that was begun cannot be read.
    #[error("{}: {problem}; the erase that it describes is not finished: remove the file and run the same command again", path.display())]
    Intent {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A segment cannot be read to its end.
    #[error("segment {segment}: {source}; `archive repair` puts damaged segments aside")]
    Record {
        /// The segment.
        segment: SegmentId,
        /// What is wrong with its next record.
        source: RecordError,
    },
    /// The archive is being copied; the copy would contain the captures.
    #[error("{} is being copied; wait for the end of `archive copy`, or stop it", .0.display())]
    Copying(PathBuf),
    /// Files that name pages cannot be read or written.
    #[error(transparent)]
    Traces(Box<dyn Error + Send + Sync>),
}

impl<E: Into<RecorderError>> From<E> for EraseError {
    fn from(error: E) -> Self {
        Self::Recorder(error.into())
    }
}

/// What an erase has to know beyond its plan.
#[derive(Clone, Debug)]
pub struct EraseOptions {
    /// How new segments are written.
    pub segments: SegmentOptions,
    /// The files of other parts of the program that name pages: of all parts, or erased pages stay in them.
    pub traces: &'static [Traces],
}

/// The result of an erase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Number of pages that must not come back.
    pub pages: u64,
    /// Number of captures that are tombstones now.
    pub captures: u64,
    /// Number of revisits that were kept, with a payload of their own or that of another kept revisit.
    pub kept: u64,
    /// Number of segments that were rewritten.
    pub segments: u64,
    /// Bytes of these segments before.
    pub bytes_before: u64,
    /// Bytes of the new segments.
    pub bytes_after: u64,
    /// Number of reports of watches from which something was removed.
    pub reports: u64,
    /// Topics that were removed because they were learned from one of the pages.
    pub topics: Vec<String>,
    /// Number of quarantined files and cut-off tails that were removed.
    pub removed_files: u64,
    /// Files that people wrote, and settings, that still name a page whose URL is forgotten.
    pub left: Vec<String>,
    /// Recorded exports that were made since the first of the captures.
    pub exports: Vec<Export>,
    /// Copies of the archive, which hold the erased captures until they are replaced by newer copies.
    pub copies: Vec<CopyPlace>,
}

/// Erases what `plan` lists from the archive in `path`, which no other process may own. `progress` gets the bytes
/// written, before compression, and their approximate total.
///
/// # Errors
/// If the disk fails. An erase that was begun is finished by [`resume`].
pub fn run(
    path: &Path,
    options: &EraseOptions,
    plan: &ErasePlan,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Done, EraseError> {
    let _lock = keep_from_copies(path)?;
    let intent = EraseIntent::of(plan);
    intent.save(path)?;
    carry_out(path, options, intent, progress)
}

/// Finishes an interrupted erase. Returns `None` if there is none.
///
/// # Errors
/// As [`run`].
pub fn resume(
    path: &Path,
    options: &EraseOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Done>, EraseError> {
    match interrupted(path)? {
        Some(intent) => {
            let _lock = keep_from_copies(path)?;
            carry_out(path, options, intent, progress).map(Some)
        }
        None => Ok(None),
    }
}

/// Keeps copies from starting, and removes the snapshot of a copy that was killed.
fn keep_from_copies(path: &Path) -> Result<SnapshotLock, EraseError> {
    let lock = SnapshotLock::take(path).map_err(FileError::at(&path.join(copy::SNAPSHOT_FOLDER)))?;
    lock.ok_or_else(|| EraseError::Copying(path.to_owned()))
}

fn carry_out(
    path: &Path,
    options: &EraseOptions,
    mut intent: EraseIntent,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Done, EraseError> {
    let mut store = recorder::open(path, options.segments.clone())?.store;
    if intent.identity != store.state().identity() {
        let problem = "the state was rebuilt since".to_owned();
        return Err(EraseError::Intent { path: path.join(INTENT_FILE), problem });
    }
    // Rewriting takes its facts about segments from the last checkpoint.
    store.checkpoint_waiting()?;
    forbid(path, store.state(), &intent)?;
    let mut done = Done {
        pages: intent.pages.len() as u64,
        captures: (intent.captures.len() + intent.copies.len()) as u64,
        kept: intent.kept.len() as u64,
        ..Done::default()
    };
    copies::keep(&mut store, &intent, &mut done, progress)?;
    if intent.dictionaries.is_none() {
        intent.dictionaries = Some(dictionaries::holding(&store, &intent)?);
        intent.save(path)?;
    }
    write_tombstones(&mut store, &intent, &mut done, progress)?;
    let first = first_time(store.state(), &intent)?;
    let urls = urls(store.state(), &intent)?;
    renew_state(store, &intent, &urls)?;
    traces::remove(path, options.traces, &intent, &urls, &mut done)?;
    if intent.forget_url {
        done.left = traces::left(path, options.traces, Store::read_only(path)?.state(), &urls);
    }
    done.copies = copy::places(path).map_err(FileError::at(&path.join(copy::PLACES_FILE)))?;
    done.exports = exports::since(path, first).map_err(FileError::at(&exports::path(path)))?;
    intent::forget(path)?;
    Ok(done)
}

/// Puts the pages on the list of pages that must not come back.
fn forbid(path: &Path, state: &State, intent: &EraseIntent) -> Result<(), EraseError> {
    let mut erased = Erased::of_archive(path, state)?;
    for page in &intent.pages {
        let url = state.url(*page)?;
        // A page whose name is already forgotten was put on the list before.
        if !url.starts_with(FORGOTTEN) {
            erased.add(&url, intent.forget_url, intent.time(), (&intent.reason, &intent.by));
        }
    }
    Ok(erased.write(path)?)
}

/// Returns the URLs of the pages.
fn urls(state: &State, intent: &EraseIntent) -> Result<HashSet<String>, StateError> {
    intent.pages.iter().map(|page| state.url(*page)).collect()
}

/// Returns the time of the oldest capture that is erased.
fn first_time(state: &State, intent: &EraseIntent) -> Result<Option<DateTime<Utc>>, StateError> {
    let mut first = None;
    for id in intent.all() {
        let time = state.capture(id)?.time;
        first = Some(first.map_or(time, |first: i64| first.min(time)));
    }
    Ok(first.and_then(DateTime::from_timestamp_micros))
}

/// Replaces the captures by tombstones.
fn write_tombstones(
    store: &mut Store,
    intent: &EraseIntent,
    done: &mut Done,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), EraseError> {
    let mut fates = Vec::new();
    for (ids, is_copy) in [(&intent.captures, false), (&intent.copies, true)] {
        for id in ids {
            let capture = store.state().capture(*id)?;
            if !capture_flags::is_erased(&capture) {
                fates.push((*id, capture.location, CaptureFate::Tombstone { is_copy }));
            }
        }
    }
    let dictionaries = intent.dictionaries.clone().unwrap_or_default();
    rewrite(store, intent, &fates, &dictionaries, done, progress)
}

/// Rewrites the segments of captures with fates and the segments `others`, batch by batch, and changes the state along
/// with them.
fn rewrite(
    store: &mut Store,
    intent: &EraseIntent,
    fates: &[(CaptureId, Location, CaptureFate)],
    others: &[SegmentId],
    done: &mut Done,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), EraseError> {
    let mut wanted: HashSet<SegmentId> = fates.iter().map(|(_, place, _)| place.segment).collect();
    wanted.extend(others);
    let segments: Vec<_> =
        store.closed_segments().into_iter().filter(|info| wanted.contains(&info.id)).collect();
    if let Some(missing) =
        fates.iter().map(|(_, place, _)| place.segment).find(|id| segments.iter().all(|info| info.id != *id))
    {
        return Err(SegmentError::Missing(missing).into());
    }
    let total: u64 = segments.iter().map(|info| info.plain_bytes).sum();
    let mut written = 0;
    let mut count = |bytes| {
        written += bytes;
        progress(written, total);
    };
    // If its dictionary holds no bytes of the captures, the rest of a segment is copied verbatim.
    let (anew, verbatim): (Vec<_>, Vec<_>) = segments.into_iter().partition(|info| others.contains(&info.id));
    for (segments, verbatim) in [(anew, false), (verbatim, true)] {
        for batch in batches(&segments) {
            rewrite_batch(store, intent, fates, (batch, verbatim), done, &mut count)?;
        }
    }
    Ok(())
}

/// Splits segments into batches that are rewritten together.
fn batches(segments: &[SegmentInfo]) -> impl Iterator<Item = &[SegmentInfo]> {
    let mut rest = segments;
    std::iter::from_fn(move || {
        let (mut bytes, mut captures) = (0, 0);
        let fits = |info: &&SegmentInfo| {
            (bytes, captures) = (bytes + info.bytes, captures + info.captures);
            bytes <= BATCH_BYTES && captures <= BATCH_CAPTURES
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (batch, later) = rest.split_at_checked(count)?;
        rest = later;
        Some(batch)
    })
}

/// Rewrites some segments, or copies them except for captures with fates.
fn rewrite_batch(
    store: &mut Store,
    intent: &EraseIntent,
    fates: &[(CaptureId, Location, CaptureFate)],
    (batch, verbatim): (&[SegmentInfo], bool),
    done: &mut Done,
    progress: &mut dyn FnMut(u64),
) -> Result<(), EraseError> {
    let ids: Vec<SegmentId> = batch.iter().map(|info| info.id).collect();
    let mine: Vec<_> = fates.iter().filter(|(_, place, _)| ids.contains(&place.segment)).copied().collect();
    let mut writer = ReplacementWriter::new(store, intent, &mine, progress)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let options = RewriteOptions { threads, verbatim, ..RewriteOptions::default() };
    let rewritten = store.rewrite(&ids, &options, &mut writer)?;
    drop(writer);
    for (id, _, fate) in &mine {
        let state = store.state_mut();
        match fate {
            CaptureFate::Tombstone { .. } => {
                state.erase_capture(*id)?;
                state.set_capture_flags(*id, capture_flags::ERASED)?;
            }
            CaptureFate::Own => state.keep_copy(*id, None)?,
            CaptureFate::Refer(holder) => state.keep_copy(*id, Some(*holder))?,
        }
    }
    let (before, after) = rewritten.bytes();
    done.segments += ids.len() as u64;
    (done.bytes_before, done.bytes_after) = (done.bytes_before + before, done.bytes_after + after);
    Ok(store.put_in_place(&rewritten)?)
}

/// Replaces the state by a copy without the erased data.
fn renew_state(mut store: Store, intent: &EraseIntent, urls: &HashSet<String>) -> Result<(), EraseError> {
    let path = store.path().to_owned();
    let mut pages: HashSet<UrlId> = intent.pages.iter().copied().collect();
    for id in &intent.copies {
        pages.insert(store.state().capture(*id)?.url);
    }
    let mut names = std::collections::HashMap::new();
    for page in intent.pages.iter().filter(|_| intent.forget_url) {
        let url = store.state().url(*page)?;
        if !url.starts_with(FORGOTTEN) {
            names.insert(*page, forgotten_name(&url));
        }
    }
    let forgotten: HashSet<String> =
        names.keys().map(|page| store.state().url(*page)).collect::<Result<_, _>>()?;
    let mut credits = Credits::open(store.state())?;
    let mut clusters = credits.clusters(store.state())?;
    clusters.values_mut().for_each(|urls| urls.retain(|url| !forgotten.contains(url)));
    credits.set_clusters(store.state_mut(), &clusters)?;
    credits.forget_seeds(store.state_mut(), &forgotten)?;
    forget_languages(store.state_mut(), &pages)?;
    for page in &intent.pages {
        Credits::put_away(store.state_mut(), *page)?;
    }
    // The state knows the files beside it, so these change with it.
    if let Some(mark) = remarks::forget(&path, urls)? {
        mark.keep(store.state_mut())?;
    }
    beside::note(store.state_mut(), &path)?;
    store.checkpoint_waiting()?;
    let scrub = Scrub { pages, names };
    let mut renewal = Rebuild::scrub(store, &scrub)?;
    let folder = renewal.folder();
    for page in scrub.pages.iter().filter(|page| !intent.pages.contains(page)) {
        copies::recompute(renewal.store(), *page)?;
    }
    renewal.store().checkpoint_waiting()?;
    for (name, _) in INDEXES.into_iter().filter(|(name, _)| path.join(name).is_dir()) {
        let options = search::IndexOptions {
            state: renewal.store().state().identity(),
            of_versions: name == search::VERSIONS_FOLDER,
            ..search::IndexOptions::default()
        };
        search::copy_without(&path.join(name), &folder.join(name), scrub.pages.iter().copied(), options)
            .map_err(RecorderError::from)?;
    }
    let versions = folder.join(search::VERSIONS_FOLDER);
    if versions.is_dir() {
        let losing = scrub.pages.iter().filter(|page| !intent.pages.contains(page));
        recorder::index_versions_again(renewal.store(), &versions, losing.copied())?;
    }
    columns::share(&path, &folder).map_err(FileError::at(&path.join(columns::FOLDER)))?;
    let mut rewritten: HashSet<CaptureId> = intent.all().collect();
    rewritten.extend(intent.kept.iter().map(|(copy, _)| *copy));
    let state = renewal.store().state();
    prepared::write_without(&rewritten, state, (&path, &folder)).map_err(prepared::Error::from)?;
    prepared::prepare(state, &folder)?;
    Ok(renewal.finish()?)
}

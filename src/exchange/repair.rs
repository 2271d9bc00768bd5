//! Repair: what can be made good is, what is damaged is moved aside and never deleted, and what can still be read of it comes
//! back into the archive.
//!
//! In order: torn tails are cut off; every closed segment is read and compared with its manifest; a damaged dictionary is
//! made good from its guard or made again of earlier segments; a segment that stays damaged moves to `quarantine/`; if
//! anything moved, or the state does not fit, the state is made anew; last, the whole captures of quarantined segments are
//! imported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use archive_storage::segment::{self, SegmentError, SegmentOptions, Survey};
use archive_storage::{Digest, Rebuild, SegmentId, Store, StoreError};

use super::import::{self, ImportError, Listener, Note, Status};
use super::rebuild::{self, RebuildError};
use crate::crawl::{Control, OpenError};
use crate::search;

/// The folder in an archive for segments that are damaged.
pub const QUARANTINE: &str = "quarantine";

/// Between two checkpoints while captures are brought back.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// Why a repair broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A segment failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The rebuild failed.
    #[error("{0}")]
    Rebuild(#[from] RebuildError),
    /// Captures could not be brought back.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The archive could not be opened after it was repaired.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The file system says so.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The file, or the state.
    pub what: String,
    /// What was wrong with it, and what was done.
    pub done: String,
}

/// What a repair did.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Segments that were looked at.
    pub segments: u64,
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// Whether the state was made anew.
    pub rebuilt: bool,
    /// Captures of quarantined segments that are in the archive again.
    pub saved: u64,
}

/// Repairs the archive in `path`; `progress` is told how many segments were looked at, of how many.
///
/// # Errors
/// When another process owns the archive and when the disk refuses.
pub fn run(
    path: &Path,
    options: &SegmentOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Repaired, RepairError> {
    // The manifest as it is now: opening for changing brings it up to date.
    let manifest = segment::manifest(path)?;
    let mut repaired = Repaired::default();
    let mut quarantined = Vec::new();
    // While it lives nobody else changes the archive.
    let mut owned = Rebuild::begin(path, options.clone())?;
    let was_open = !owned.store().recovered().is_empty();
    for recovered in owned.store().recovered() {
        let done = format!(
            "had not been closed: {} bytes behind its last whole capture were cut off, {} captures are in it",
            recovered.cut_bytes, recovered.captures
        );
        repaired.actions.push(Action { what: recovered.name.clone(), done });
    }
    let files = segment::files(path)?;
    let total = files.len();
    for batch in files.chunks(thread::available_parallelism().map_or(1, usize::from)) {
        for (id, file, survey) in survey_all(path, batch)? {
            repaired.segments += 1;
            let Some(why) = damage(&survey, manifest.get(&file)) else { continue };
            match mend(path, id, &file, manifest.get(&file).copied(), &why)? {
                Mended::Restored(action) => repaired.actions.push(action),
                Mended::Moved(action, moved) => {
                    repaired.actions.push(action);
                    quarantined.push(moved);
                }
            }
        }
        progress(repaired.segments as usize, total);
    }
    owned.abandon()?;
    let state_problem = state_problem(path, options)?;
    if let Some(problem) = &state_problem {
        let done = format!("{problem}; made anew from the segments");
        repaired.actions.push(Action { what: "state".to_owned(), done });
    }
    if state_problem.is_some() || was_open || !quarantined.is_empty() {
        rebuild::run(path, options.clone(), &mut |_| {})?;
        repaired.rebuilt = true;
    }
    if !quarantined.is_empty() {
        repaired.saved = bring_back(path, options, quarantined)?;
    }
    Ok(repaired)
}

type Surveyed = (SegmentId, String, Survey);

/// Surveys some segments, each on a thread of its own.
fn survey_all(path: &Path, files: &[(SegmentId, String)]) -> Result<Vec<Surveyed>, SegmentError> {
    thread::scope(|scope| {
        let surveys: Vec<_> = files
            .iter()
            .map(|(id, file)| (id, file, scope.spawn(move || segment::survey(path, *id, file))))
            .collect();
        let surveys = surveys.into_iter().map(|(id, file, survey)| {
            let survey = survey.join().map_err(|_| SegmentError::Poisoned)??;
            Ok((*id, file.clone(), survey))
        });
        surveys.collect()
    })
}

/// What is wrong with a segment, if anything is.
fn damage(survey: &Survey, stated: Option<&Digest>) -> Option<String> {
    match survey.broken.as_slice() {
        [] if stated.is_some_and(|stated| *stated != survey.sha256) => {
            Some("is not the file that was closed".to_owned())
        }
        [] => None,
        [first] => Some(format!("has a {first}")),
        [first, rest @ ..] => Some(format!("has a {first}, and {} more", rest.len())),
    }
}

enum Mended {
    Restored(Action),
    Moved(Action, PathBuf),
}

/// Makes a segment good, or moves it aside.
fn mend(
    path: &Path,
    id: SegmentId,
    file: &str,
    stated: Option<Digest>,
    why: &str,
) -> Result<Mended, RepairError> {
    let folder = path.join(QUARANTINE);
    fs::create_dir_all(&folder).map_err(|source| RepairError::Io { path: folder.clone(), source })?;
    let segments = path.join(segment::FOLDER);
    let made_good = segments.join(format!("{file}.restored"));
    let is_restored = match stated {
        Some(stated) => segment::restore(path, id, file, stated, &made_good)?,
        None => false,
    };
    let moved = free_name(&folder, file);
    rename(&segments.join(file), &moved)?;
    if is_restored {
        rename(&made_good, &segments.join(file))?;
        let done = format!("{why}; its dictionary was made good, the damaged file is {}", moved.display());
        return Ok(Mended::Restored(Action { what: file.to_owned(), done }));
    }
    let index = segments.join(format!("{file}.cdxj"));
    if index.exists() {
        rename(&index, &folder.join(format!("{file}.cdxj")))?;
    }
    let done = format!("{why}; moved to {}", moved.display());
    Ok(Mended::Moved(Action { what: file.to_owned(), done }, moved))
}

/// A name in the quarantine that no earlier repair has used.
fn free_name(folder: &Path, file: &str) -> PathBuf {
    let names = (0_u32..).map(|number| match number {
        0 => folder.join(file),
        _ => folder.join(format!("{number}-{file}")),
    });
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| folder.join(file))
}

fn rename(from: &Path, to: &Path) -> Result<(), RepairError> {
    fs::rename(from, to).map_err(|source| RepairError::Io { path: from.to_owned(), source })
}

/// Why the state cannot stay as it is.
fn state_problem(path: &Path, options: &SegmentOptions) -> Result<Option<String>, RepairError> {
    let store = match Store::own(path, options.clone()) {
        Ok(store) => store,
        Err(error) if error.is_disk_full() || error.is_locked() => return Err(error.into()),
        Err(error) => return Ok(Some(error.to_string())),
    };
    let mut first = None;
    let checked = store.state().check(&mut |found| {
        first.get_or_insert_with(|| found.to_string());
    });
    Ok(checked.err().map(|error| error.to_string()).or(first))
}

/// Imports what can still be read of quarantined segments.
fn bring_back(path: &Path, options: &SegmentOptions, files: Vec<PathBuf>) -> Result<u64, RepairError> {
    let mut store = crate::crawl::open(path, options.clone())?.store;
    let options = import::Options {
        files,
        threads: thread::available_parallelism().map_or(1, usize::from),
        full_text: path.join(search::FOLDER).is_dir(),
        checkpoint_every: CHECKPOINT_EVERY,
    };
    let (_, status) = import::run(&mut store, &options, &Control::default(), &mut Silent)?;
    store.close()?;
    Ok(status.captures)
}

/// What is broken in a quarantined segment was told before.
struct Silent;

impl Listener for Silent {
    fn status(&mut self, _: &Status) {}
    fn note(&mut self, _: &Note) {}
}

//! Repair: fixes what can be fixed, moves damaged segments aside without deleting them, and imports what is still
//! readable of them. Everything else is reported as lost.
//!
//! The steps, in order: cut off torn tails and rewrite the lists of segments; read every closed segment and compare it
//! with its recorded facts; restore a damaged dictionary from its guard or recompute it from earlier segments; move
//! segments that stay damaged to `quarantine/`; rebuild the state if a segment was moved or is missing, or if the state
//! does not match the segments; finally, import the complete captures of quarantined segments.
//!
//! A segment is put on the durable list of the quarantine before it is moved, and stays pending there until its
//! captures are durable. A repair that is interrupted at any point is therefore continued by the next one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

use archive_base::control::Control;
use archive_base::erased;
use archive_base::files::{FileError, if_there};
use archive_base::remarks;
use archive_books::columns;
use archive_books::ledger;
use archive_books::prepared;
use archive_books::recorder::{self, CHECKPOINT_EVERY, Memory, RecorderError};
use archive_books::search;
use archive_books::trends::{self, Trends};
use archive_storage::backend::{Disk, RealDisk};
use archive_storage::segment::{
    self, DictionaryRepair, Fault, FaultKind, Inspection, PutAside, QUARANTINE, SegmentOptions,
};
use archive_storage::{Owner, Rebuild, SegmentId, Store, catalogued};

use super::erase;
use super::import;
use super::rebuild::{self, RebuildError};
use super::verify::{INDEXES, LOST, index_damage, lost};

/// Why a repair failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The segments, the state or the full-text index failed.
    #[error(transparent)]
    Recorder(RecorderError),
    /// The rebuild failed.
    #[error("{0}")]
    Rebuild(#[from] RebuildError),
}

impl<E: Into<RecorderError>> From<E> for RepairError {
    fn from(error: E) -> Self {
        Self::Recorder(error.into())
    }
}

/// A change that was made, or a problem that cannot be fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The file, or the state.
    pub what: String,
    /// What was wrong with it, and what was done.
    pub done: String,
}

/// The result of a repair.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Number of segments that were checked.
    pub segments: u64,
    /// Changes that were made, in order.
    pub actions: Vec<Action>,
    /// What could not be restored.
    pub lost: Vec<Action>,
    /// Whether the state was rebuilt.
    pub rebuilt: bool,
    /// Number of captures of quarantined segments that were restored.
    pub saved: u64,
}

impl Repaired {
    fn did(&mut self, what: &str, done: impl Into<String>) {
        self.actions.push(Action { what: what.to_owned(), done: done.into() });
    }
}

/// Repairs the archive in `path`. `progress` gets the number of segments checked and their total.
///
/// # Errors
/// If another process owns the archive or the disk fails. Another repair continues from there.
pub fn run(
    path: &Path,
    options: &SegmentOptions,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Repaired, RepairError> {
    let mut repaired = Repaired::default();
    // Opening for writing rewrites the lists, so they are checked first.
    let lists = segment::inspect(path, &catalogued(path), false, &|_, _| {})?;
    let was_open = close_open_segments(path, options, &mut repaired)?;
    for fault in lists.faults.iter().filter(|fault| matches!(fault.kind, FaultKind::List | FaultKind::Index))
    {
        repaired.did(&fault.file, said(&fault.what, "rebuilt"));
    }
    let mut aside = {
        let _owner = Owner::of(path)?;
        put_aside(path, progress, &mut repaired)?
    };
    let is_waiting = aside.iter().any(|entry| entry.lost.is_none());
    // With moved segments the state is rebuilt in any case; a check would only report that they are missing.
    let state_problem = if is_waiting { None } else { state_problem(path, options)? };
    if let Some(problem) = &state_problem {
        repaired.did("state", format!("{problem}; rebuilt from the segments"));
    }
    if state_problem.is_some() || was_open || is_waiting {
        let rebuilt = rebuild::remake(path, options.clone(), None, &mut |_| {})?;
        repaired.rebuilt = true;
        if rebuilt.has_lost_settings {
            let done = "the crawl's scope, if it had one, could not be read; specify it again with the next `archive crawl`";
            repaired.lost.push(Action { what: "state".to_owned(), done: done.to_owned() });
        }
    }
    restore_erased(path, &mut repaired)?;
    for entry in aside.iter_mut().filter(|entry| entry.lost.is_none()) {
        bring_back(path, options, entry, &mut repaired)?;
    }
    for (folder, name) in INDEXES {
        let damage = index_damage(&Store::read_only(path)?, folder);
        // A restored capture may hold the text of a page that was later found unchanged.
        if !damage.is_empty() || is_waiting && path.join(folder).is_dir() {
            make_index(path, options, name)?;
        }
        if let Some(first) = damage.first() {
            repaired.did(folder, format!("{first}; rebuilt from the segments"));
        }
    }
    if is_waiting {
        // The entries count as done only now: nothing has to be repeated.
        segment::save_put_aside(&RealDisk, path, &aside)?;
    }
    remove_columns(path, &mut repaired)?;
    restore_remarks(path, options, &mut repaired)?;
    for name in lost(&Store::read_only(path)?) {
        repaired.lost.push(Action { what: name.to_owned(), done: LOST.to_owned() });
    }
    Ok(repaired)
}

/// Writes the list of erased URLs again if it is damaged: nothing is imported without it.
fn restore_erased(path: &Path, repaired: &mut Repaired) -> Result<(), RepairError> {
    let _owner = Owner::of(path)?;
    let store = Store::read_only(path)?;
    if let Some(what) = erase::list_damage(&store) {
        let pages = erase::restore_list(&store)?;
        let done = format!(
            "written again from the tombstones, with {pages} pages; lift again those that had been lifted (`archive erase --lift`)"
        );
        repaired.did(erased::FILE, said(&what, &done));
    }
    Ok(())
}

/// Writes the remarks again if they are damaged: the state has them, too.
fn restore_remarks(
    path: &Path,
    options: &SegmentOptions,
    repaired: &mut Repaired,
) -> Result<(), RepairError> {
    let Some(what) = remarks::damage(path, Store::read_only(path)?.state()) else { return Ok(()) };
    let mut store = recorder::open(path, options.clone())?.store;
    let all = ledger::remarks_of(store.state())?;
    if let Some(mark) = remarks::replace(path, &all)? {
        mark.keep(store.state_mut())?;
    }
    store.checkpoint_waiting()?;
    repaired.did(remarks::FILE, said(&what, "written again from the state"));
    Ok(())
}

/// Rebuilds a full-text index and replaces the old one atomically.
fn make_index(path: &Path, options: &SegmentOptions, name: &str) -> Result<(), RepairError> {
    let store = recorder::open(path, options.clone())?.store;
    let new = path.join("rebuild").join(name);
    remove_folder(&new)?;
    match name {
        search::NAME => recorder::index_all(&store, &new)?,
        _ => recorder::index_all_versions(&store, &new)?,
    }
    store.state().exchange(&new, name)?;
    Ok(remove_folder(&path.join("rebuild"))?)
}

/// Removes columns that cannot be used.
fn remove_columns(path: &Path, repaired: &mut Repaired) -> Result<(), RepairError> {
    let store = Store::read_only(path)?;
    for (file, what) in prepared::damage(&store) {
        remove(&path.join(file))?;
        let done = match file {
            prepared::ANSWERS_FILE => {
                "removed; queries read records until `archive rebuild` creates it again"
            }
            _ => "removed, the next crawl, refresh or import rebuilds it",
        };
        repaired.did(file, said(&what, done));
    }
    if Trends::read(path).is_err() {
        remove(&path.join(trends::FILE))?;
        repaired.did(trends::FILE, "cannot be read; removed, importance over time begins again");
    }
    let identity = store.state().identity();
    for file in columns::damaged(path, identity)? {
        remove(&file)?;
        let name = file.strip_prefix(path).unwrap_or(&file).display().to_string();
        repaired.did(
            &name,
            "is not a column of this state; removed, compute it again with `archive rank --save`",
        );
    }
    Ok(())
}

/// Formats a problem, without its advice, and what was done about it.
fn said(what: &str, done: &str) -> String {
    format!("{}; {done}", what.split("; ").next().unwrap_or(what))
}

/// Closes segments that a crash had left open. Returns whether there were any.
fn close_open_segments(
    path: &Path,
    options: &SegmentOptions,
    repaired: &mut Repaired,
) -> Result<bool, RepairError> {
    let mut owned = Rebuild::begin(path, options.clone())?;
    for recovered in owned.store().recovered() {
        let done = format!(
            "had not been closed: {} bytes after its last whole capture were cut off, {} captures are in it",
            recovered.cut_bytes, recovered.captures
        );
        repaired.did(&recovered.name, done);
    }
    let was_open = !owned.store().recovered().is_empty();
    owned.abandon()?;
    Ok(was_open)
}

/// Reads all segments, fixes what can be fixed, and moves segments that stay damaged to the quarantine. Returns the
/// list of the quarantine; entries without `lost` have yet to be restored.
fn put_aside(
    path: &Path,
    progress: &(dyn Fn(usize, usize) + Sync),
    repaired: &mut Repaired,
) -> Result<Vec<PutAside>, RepairError> {
    let inspection = segment::inspect(path, &catalogued(path), true, progress)?;
    repaired.segments = inspection.closed.len() as u64;
    let (mut list, mut is_changed) = still_aside(path)?;
    for entry in list.iter().filter(|entry| entry.lost.is_none()) {
        repaired.did(
            &entry.segment,
            format!("{}; an earlier repair was interrupted and is continued", entry.why),
        );
    }
    let mut moves = Vec::new();
    for Bad { id, file, why } in bad_segments(&inspection) {
        let restored = salvage(path, id, &file, &inspection)?;
        if restored == DictionaryRepair::Whole {
            repaired.did(&file, format!("{why}; its dictionary, or the dictionary's guard, was restored"));
            continue;
        }
        let name = free_name(path, &file);
        repaired.did(&file, format!("{why}; moved to {}", path.join(QUARANTINE).join(&name).display()));
        // A stray file may be another segment under this name, so its own original name counts.
        let survey = match inspection.surveys.get(&id).filter(|_| inspection.is_closed(&file)) {
            Some(survey) if restored == DictionaryRepair::Nothing => survey.clone(),
            _ => segment::survey(path, id, &file)?,
        };
        let held = survey.captures + survey.broken_places;
        let segment = survey.written_as.unwrap_or_else(|| file.clone());
        let captures = inspection.known_as(&segment).map_or(held, |info| info.captures.max(held));
        let whole = survey.captures;
        list.push(PutAside { segment, file: Some(name.clone()), captures, whole, why, lost: None });
        moves.push((file, name));
    }
    let missing = inspection.faults.iter().filter(|fault| fault.kind == FaultKind::Missing);
    let missing = missing.map(|fault| &fault.file).chain(moves.iter().map(|(file, _)| file));
    for (file, info) in missing.filter_map(|file| Some((file, inspection.known_as(file)?))) {
        // The segment may have been found under another name.
        if list.iter().all(|entry| entry.segment != *file) {
            let (segment, why) = (file.clone(), "is missing".to_owned());
            list.push(PutAside { segment, file: None, captures: info.captures, whole: 0, why, lost: None });
            is_changed = true;
        }
    }
    for fault in &inspection.faults {
        match fault.kind {
            // Opening recreates a missing index.
            FaultKind::Index => remove(&path.join(segment::FOLDER).join(&fault.file))?,
            FaultKind::Unreadable => {
                repaired.lost.push(Action { what: fault.file.clone(), done: fault.what.clone() });
            }
            _ => {}
        }
    }
    if is_changed || !moves.is_empty() {
        segment::save_put_aside(&RealDisk, path, &list)?;
    }
    move_aside(path, &moves)?;
    Ok(list)
}

/// Returns the list of the quarantine without entries that were never moved or have been put back, and whether this
/// changes the list.
fn still_aside(path: &Path) -> Result<(Vec<PutAside>, bool), RepairError> {
    let (mut list, is_damaged) = segment::put_aside(&RealDisk, path)?;
    let count = list.len();
    list.retain(|entry| match &entry.file {
        Some(file) => entry.lost.is_some() || path.join(QUARANTINE).join(file).exists(),
        None => !path.join(segment::FOLDER).join(&entry.segment).exists(),
    });
    let is_changed = is_damaged || list.len() != count;
    Ok((list, is_changed))
}

/// A segment that must be moved away.
struct Bad {
    id: SegmentId,
    file: String,
    why: String,
}

/// Returns the segments that are damaged or do not belong here.
fn bad_segments(inspection: &Inspection) -> Vec<Bad> {
    let is_bad = |fault: &&Fault| matches!(fault.kind, FaultKind::Damaged | FaultKind::Stray);
    let mut found: Vec<Bad> = Vec::new();
    for fault in inspection.faults.iter().filter(is_bad) {
        let Some(id) = fault.segment else { continue };
        let why = match fault.offset {
            Some(offset) => format!("has a broken record at byte {offset}: {}", fault.what),
            None => fault.what.split("; ").next().unwrap_or_default().to_owned(),
        };
        match found.iter_mut().find(|bad| bad.file == fault.file) {
            None => found.push(Bad { id, file: fault.file.clone(), why }),
            Some(bad) if !bad.why.ends_with(" more") => bad.why.push_str(", and more"),
            Some(_) => {}
        }
    }
    found
}

/// Restores the dictionary of a segment, if possible.
fn salvage(
    path: &Path,
    id: SegmentId,
    file: &str,
    inspection: &Inspection,
) -> Result<DictionaryRepair, RepairError> {
    if !inspection.is_closed(file) {
        return Ok(DictionaryRepair::Nothing);
    }
    let segments = path.join(segment::FOLDER);
    let made_good = segments.join(format!("{file}.restored"));
    let sha256 = inspection.known.get(&id).and_then(|info| info.sha256);
    let restored = segment::restore(path, id, file, sha256, &made_good)?;
    if restored != DictionaryRepair::Nothing {
        rename(&made_good, &segments.join(file))?;
        sync(&segments)?;
    }
    Ok(restored)
}

/// Moves segments to the quarantine, durably. Their indexes are removed, since they can be rebuilt.
fn move_aside(path: &Path, moves: &[(String, String)]) -> Result<(), RepairError> {
    let (segments, quarantine) = (path.join(segment::FOLDER), path.join(QUARANTINE));
    for (file, name) in moves {
        rename(&segments.join(file), &quarantine.join(name))?;
        remove(&segments.join(format!("{file}.cdxj")))?;
    }
    if !moves.is_empty() {
        sync(&quarantine)?;
        sync(&segments)?;
    }
    Ok(())
}

/// Returns a name in the quarantine that no earlier repair has used.
fn free_name(path: &Path, file: &str) -> String {
    let folder = path.join(QUARANTINE);
    let mut names = (0_u32..).map(|number| match number {
        0 => file.to_owned(),
        _ => format!("{number}-{file}"),
    });
    names.find(|name| !folder.join(name).exists()).unwrap_or_else(|| file.to_owned())
}

fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).map_err(FileError::at(from))
}

fn remove(file: &Path) -> Result<(), FileError> {
    if_there(fs::remove_file(file)).map(drop).map_err(FileError::at(file))
}

fn remove_folder(folder: &Path) -> Result<(), FileError> {
    if_there(fs::remove_dir_all(folder)).map(drop).map_err(FileError::at(folder))
}

fn sync(folder: &Path) -> Result<(), FileError> {
    RealDisk.sync_dir(folder).map_err(FileError::at(folder))
}

/// Returns why the state must be rebuilt, if it must.
fn state_problem(path: &Path, options: &SegmentOptions) -> Result<Option<String>, RepairError> {
    let store = match Store::own(path, options.clone()) {
        Ok(store) => store,
        Err(error) if error.is_disk_full() || error.is_locked() || error.lacks_descriptors() => {
            return Err(error.into());
        }
        Err(error) => return Ok(Some(error.to_string())),
    };
    let state = store.state();
    let files = segment::files(path)?;
    for (id, file) in &files {
        if state.segment(*id).is_none() {
            return Ok(Some(format!("does not know {file}")));
        }
    }
    let ids: BTreeSet<SegmentId> = files.iter().map(|(id, _)| *id).collect();
    if let Some(info) = state.catalogued().values().find(|info| !ids.contains(&info.id)) {
        return Ok(Some(format!("refers to {}, which does not exist", info.name)));
    }
    let (mut first, mut count) = (None, 0_u64);
    let checked = state.check(&mut |found| {
        count += 1;
        first.get_or_insert_with(|| found.to_string());
    });
    let first = checked.err().map(|error| error.to_string()).or(first);
    Ok(first.map(|first| if count > 1 { format!("{first}, and {} more", count - 1) } else { first }))
}

/// Imports what is still readable of a quarantined segment, and records how many of its captures are lost.
fn bring_back(
    path: &Path,
    options: &SegmentOptions,
    entry: &mut PutAside,
    repaired: &mut Repaired,
) -> Result<(), RepairError> {
    let mut back = 0;
    if let Some(file) = &entry.file {
        let mut store = recorder::open(path, options.clone())?.store;
        let options = import::ImportOptions {
            files: vec![path.join(QUARANTINE).join(file)],
            form: import::ImportForm::Records,
            threads: thread::available_parallelism().map_or(1, usize::from),
            full_text: false,
            checkpoint_every: CHECKPOINT_EVERY,
            keep_cut: false,
            accept_wrong_signatures: false,
            memory: Memory::default(),
        };
        // Damage in quarantined segments has been reported before.
        let (_, status) = import::run(&mut store, &options, &Control::default(), &mut |_| {})?;
        store.close()?;
        // Captures that an interrupted repair has already restored count as duplicates.
        back = status.captures + status.duplicates;
        repaired.saved += status.captures;
    }
    let lost = entry.captures.saturating_sub(back);
    let partial = entry.captures.saturating_sub(entry.whole + lost);
    entry.lost = Some(lost);
    let captures = entry.captures;
    let done = match &entry.file {
        None => {
            format!(
                "is missing (captures lost: {lost}); put it back and run `archive repair` again to recover them"
            )
        }
        Some(file) if lost > 0 => {
            format!("captures lost: {lost} of {captures}; what is left is in {QUARANTINE}/{file}")
        }
        Some(file) if partial > 0 => format!(
            "captures recovered without their request or metadata: {partial} of {captures}; what is left of them is in \
             {QUARANTINE}/{file}"
        ),
        Some(_) => return Ok(()),
    };
    repaired.lost.push(Action { what: entry.segment.clone(), done });
    Ok(())
}

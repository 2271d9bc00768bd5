//! Checks the files in the folder of segments against their bytes and against everything stated about them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::error::{IoContext, SegmentError};
use super::index;
use super::ledger::{self, MANIFEST, SUMMARIES, SegmentInfo};
use super::name::SegmentName;
use super::quarantine::{PutAside, put_aside};
use super::recover::{self, segments};
use super::rewrite::{self, SwapIntent};
use super::statements::{Catalogued, SegmentStatements};
use super::survey::{SegmentSurvey, survey};
use crate::backend::{Disk, OpenMode, RealDisk};
use crate::ids::SegmentId;

/// Kind of a fault, which decides how it can be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A closed segment differs from what was closed, or holds unreadable bytes.
    Damaged,
    /// A segment was closed once, but its file is gone.
    Missing,
    /// A file has the id of another segment.
    Stray,
    /// A file cannot be read at all.
    Unreadable,
    /// An index is missing or differs from what was written; it can be rebuilt from the segment.
    Index,
    /// A list of segments differs from what was written; it can be rebuilt.
    List,
    /// A repair or rewrite was interrupted.
    Unfinished,
}

/// A fault that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The segment concerned, if any.
    pub segment: Option<SegmentId>,
    /// The file, within the folder of segments.
    pub file: String,
    /// Offset of the fault, unless it concerns the whole file.
    pub offset: Option<u64>,
    /// Description of the fault, as a predicate of the file.
    pub what: String,
}

/// Result of an inspection.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Contents of the closed segments that are present and could be read.
    pub surveys: BTreeMap<SegmentId, SegmentSurvey>,
    /// Closed segments that are present.
    pub closed: Vec<SegmentId>,
    /// Summaries of segments, written when they were closed.
    pub known: BTreeMap<SegmentId, SegmentInfo>,
    /// Faults found.
    pub faults: Vec<Fault>,
}

impl Inspection {
    /// Returns the summary of the segment with this file name, written when it was closed.
    #[must_use]
    pub fn known_as(&self, file: &str) -> Option<&SegmentInfo> {
        self.known.values().find(|info| info.name == file)
    }

    /// Whether the file with this name is a closed segment, not one that merely has the id of another.
    #[must_use]
    pub fn is_closed(&self, file: &str) -> bool {
        self.faults.iter().all(|fault| fault.file != file || fault.kind != FaultKind::Stray)
    }

    fn find(&mut self, kind: FaultKind, segment: Option<SegmentId>, file: &str, what: impl Into<String>) {
        self.faults.push(Fault { kind, segment, file: file.to_owned(), offset: None, what: what.into() });
    }
}

/// Checks the closed segments of an archive and the files beside them. If `is_whole`, reads every segment from end to
/// end, otherwise compares their lengths. A crawl may run meanwhile. `progress` gets the number of segments read and
/// their total number.
///
/// # Errors
/// When the folder or a list cannot be read.
pub fn inspect(
    archive: &Path,
    catalogue: &Catalogued,
    is_whole: bool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Inspection, SegmentError> {
    let (disk, folder) = (RealDisk, archive.join(super::FOLDER));
    // A segment is on the lists before it gets its final name, so listing the folder first finds only listed segments.
    let entries = disk.list(&folder).context("list", &folder)?;
    let stated = SegmentStatements::read(&disk, &folder, catalogue)?;
    let (names, strays) = segments(entries.iter().map(|entry| entry.name.as_str()), &stated);
    let closed: Vec<&SegmentName> = names.iter().filter(|name| !name.is_open).collect();
    let mut found =
        Inspection { closed: closed.iter().map(|name| name.id).collect(), ..Inspection::default() };
    for name in &strays {
        let what =
            "has the number of another segment and is not on any list; `archive repair` imports its captures";
        found.find(FaultKind::Stray, Some(name.id), &name.to_string(), what);
    }
    if SwapIntent::load(&disk, &folder)?.is_some() {
        let what = "records an interrupted rewrite of segments; the next command that changes the archive \
                    completes or undoes it";
        found.find(FaultKind::Unfinished, None, rewrite::FILE, what);
        // Until that is done, some files have two names or none.
        return Ok(found);
    }
    let aside = look_at_quarantine(archive, &mut found)?;
    look_for_missing(&folder, &stated, &names, &aside, &mut found);
    look_at_lists(&folder, &stated, &closed, &mut found)?;
    look_at_indexes(&folder, &stated, &names, &mut found);
    let surveys = if is_whole { survey_all(archive, &closed, progress) } else { Vec::new() };
    for (name, survey) in surveys {
        match survey {
            Ok(survey) => look_at_survey(name, survey, &stated, &mut found),
            Err(error) => {
                let what = format!("cannot be read: {error}");
                found.find(FaultKind::Unreadable, Some(name.id), name.closed(), what);
            }
        }
    }
    if !is_whole {
        look_at_lengths(&entries, &stated, &closed, &mut found);
    }
    Ok(found)
}

fn look_at_quarantine(archive: &Path, found: &mut Inspection) -> Result<Vec<PutAside>, SegmentError> {
    let (list, is_damaged) = put_aside(&RealDisk, archive)?;
    if is_damaged {
        let what =
            "has lines that cannot be read; `archive repair` looks at everything in the quarantine again";
        found.find(FaultKind::Unfinished, None, "the quarantine's list", what);
    }
    for entry in list.iter().filter(|entry| entry.lost.is_none()) {
        let what = "was put aside by an interrupted repair; `archive repair` continues it";
        found.find(FaultKind::Unfinished, None, &entry.segment, what);
    }
    Ok(list)
}

fn look_for_missing(
    folder: &Path,
    stated: &SegmentStatements,
    names: &[SegmentName],
    aside: &[PutAside],
    found: &mut Inspection,
) {
    let present: BTreeSet<String> = names.iter().map(|name| name.closed().to_owned()).collect();
    for (id, info) in stated.missing(&present) {
        // It was created and closed since the folder was listed, or put aside.
        let is_there = [info.name.clone(), format!("{}.open", info.name)];
        let is_there = is_there.iter().any(|name| folder.join(name).exists());
        if is_there || aside.iter().any(|entry| entry.segment == info.name) {
            continue;
        }
        let what = info.missing().split_off(info.name.len() + 1);
        let what = format!("{what}; put it back, or `archive repair` continues without it");
        found.find(FaultKind::Missing, Some(id), &info.name, what);
        found.known.insert(id, info);
    }
}

/// Returns the file name in a line of a list, if the line is intact.
type NameIn = fn(&[u8]) -> Option<String>;

const LIST_REMEDY: &str = "`archive repair` rewrites it";

fn look_at_lists(
    folder: &Path,
    stated: &SegmentStatements,
    closed: &[&SegmentName],
    found: &mut Inspection,
) -> Result<(), SegmentError> {
    let lists: [(&str, NameIn); 2] = [
        (SUMMARIES, |line| ledger::parse_summary(line).map(|info| info.name)),
        (MANIFEST, |line| ledger::parse_manifest(line).map(|(name, _)| name)),
    ];
    let there = closed.iter().map(|name| name.closed());
    let known: BTreeSet<&str> = there.chain(found.known.values().map(|info| info.name.as_str())).collect();
    let mut faults = Vec::new();
    for (file, name_in) in lists {
        let mut named = BTreeSet::new();
        let (lines, is_cut) = ledger::lines(&RealDisk, folder, file)?;
        if is_cut {
            faults.push((None, file, format!("its last line has no end; {LIST_REMEDY}")));
        }
        for (number, line) in (1..).zip(lines) {
            let name = name_in(&line);
            // A name that is only on a list was never closed, unless it was closed a moment ago.
            let is_known = |name: &String| {
                known.contains(name.as_str())
                    || folder.join(name).exists()
                    || folder.join(format!("{name}.open")).exists()
            };
            match name {
                Some(name) if is_known(&name) && named.insert(name.clone()) => {}
                _ => {
                    let what = format!("line {number} is damaged; {LIST_REMEDY}");
                    faults.push((None, file, what));
                }
            }
        }
        // Segments that are on no list are reported elsewhere.
        let is_left_out =
            |name: &&&SegmentName| stated.knows(name.closed()) && !named.contains(name.closed());
        for name in closed.iter().filter(is_left_out) {
            let what = format!("does not have {}; {LIST_REMEDY}", name.closed());
            faults.push((Some(name.id), file, what));
        }
    }
    let is_doubtful = |file| stated.manifest.contains_key(file) && !stated.agrees(file);
    for name in closed.iter().filter(|name| is_doubtful(name.closed())) {
        let what = format!("has a different digest for {} than {SUMMARIES} or the catalogue", name.closed());
        faults.push((Some(name.id), MANIFEST, what));
    }
    for (segment, file, what) in faults {
        found.find(FaultKind::List, segment, file, what);
    }
    Ok(())
}

fn look_at_indexes(folder: &Path, stated: &SegmentStatements, names: &[SegmentName], found: &mut Inspection) {
    for name in names.iter().filter(|name| !name.is_open && stated.knows(name.closed())) {
        let file = index::file_of(name.closed());
        let expected = stated.summaries.get(name.closed()).and_then(|info| info.index);
        let digest = RealDisk.open(&folder.join(&file), OpenMode::Read);
        let digest = digest.and_then(|file| recover::sha256(file.as_ref(), file.len()?));
        let what = match digest {
            Err(error) => format!("cannot be read: {error}"),
            Ok(digest) if expected.is_some_and(|expected| expected != digest) => {
                "has changed since it was written".to_owned()
            }
            Ok(_) => continue,
        };
        found.find(FaultKind::Index, Some(name.id), &file, format!("{what}; `archive repair` rebuilds it"));
    }
}

type Surveyed<'a> = (&'a SegmentName, Result<SegmentSurvey, SegmentError>);

/// Reads segments on as many threads as the machine has.
fn survey_all<'a>(
    archive: &Path,
    closed: &[&'a SegmentName],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Surveyed<'a>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut surveys = Vec::new();
        while let Some(name) = closed.get(next.fetch_add(1, Ordering::Relaxed)) {
            surveys.push((*name, survey(archive, name.id, name.closed())));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, closed.len());
        }
        surveys
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(closed.len());
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut surveys: Vec<_> =
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect();
        surveys.sort_by_key(|(name, _)| name.id);
        surveys
    })
}

fn look_at_survey(
    name: &SegmentName,
    survey: SegmentSurvey,
    stated: &SegmentStatements,
    found: &mut Inspection,
) {
    let file = name.closed();
    for (offset, what) in &survey.broken {
        let (offset, what) = (Some(*offset), what.clone());
        found.faults.push(Fault {
            kind: FaultKind::Damaged,
            segment: Some(name.id),
            file: file.to_owned(),
            offset,
            what,
        });
    }
    if survey.broken_places > survey.broken.len() as u64 {
        let what = format!("has {} unreadable places", survey.broken_places);
        found.find(FaultKind::Damaged, Some(name.id), file, what);
    }
    if stated.digest(file, survey.sha256) != survey.sha256 {
        found.find(
            FaultKind::Damaged,
            Some(name.id),
            file,
            "has changed since it was closed (its digest differs)",
        );
    }
    let info = stated.info(file).map(|info| {
        let sha256 = Some(stated.digest(file, survey.sha256));
        (name.id, SegmentInfo { sha256, ..info })
    });
    found.known.extend(info);
    found.surveys.insert(name.id, survey);
}

fn look_at_lengths(
    entries: &[crate::backend::DirEntry],
    stated: &SegmentStatements,
    closed: &[&SegmentName],
    found: &mut Inspection,
) {
    for name in closed {
        let length = entries.iter().find(|entry| entry.name == name.closed()).map(|entry| entry.length);
        let expected = stated.info(name.closed()).map(|info| info.bytes).filter(|bytes| *bytes > 0);
        if let Some(expected) = expected.filter(|expected| length != Some(*expected)) {
            let what = format!("has a different length than the {expected} bytes it was closed with");
            found.find(FaultKind::Damaged, Some(name.id), name.closed(), what);
        }
    }
}

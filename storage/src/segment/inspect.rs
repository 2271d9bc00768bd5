//! What is wrong with the files in the folder of segments, by their bytes and by all that is stated of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::error::{Context, SegmentError};
use super::index;
use super::ledger::{self, MANIFEST, SUMMARIES, SegmentInfo};
use super::name::SegmentName;
use super::quarantine::{PutAside, put_aside};
use super::recover::{self, segments};
use super::rewrite::{self, Intent};
use super::stated::{Catalogued, Stated};
use super::survey::{Survey, survey};
use crate::backend::{Disk, OpenMode, RealDisk};
use crate::ids::SegmentId;

/// What kind of thing is wrong, and so what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A closed segment is not what it was closed as, or holds what cannot be read.
    Damaged,
    /// A segment was closed once and is not there.
    Missing,
    /// A file has the number of another segment.
    Stray,
    /// A file cannot be read at all.
    Unreadable,
    /// An index is missing or is not what was written; it can be made again from the segment.
    Index,
    /// A list of segments is not what was written; it can be made again.
    List,
    /// A repair has not come to its end.
    Unfinished,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of thing.
    pub kind: FaultKind,
    /// The segment that it concerns, if it is one.
    pub segment: Option<SegmentId>,
    /// The file in the folder of segments.
    pub file: String,
    /// Bytes before the place, unless the whole file is meant.
    pub offset: Option<u64>,
    /// What is wrong, as something that is said of the file.
    pub what: String,
}

/// What was checked and found.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The segments that are there and closed, as far as they could be read, with what they hold.
    pub surveys: BTreeMap<SegmentId, Survey>,
    /// The closed segments that are there.
    pub closed: Vec<SegmentId>,
    /// What was written down of segments when they were closed.
    pub known: BTreeMap<SegmentId, SegmentInfo>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl Inspection {
    /// What was written down of a segment of this name when it was closed.
    #[must_use]
    pub fn known_as(&self, file: &str) -> Option<&SegmentInfo> {
        self.known.values().find(|info| info.name == file)
    }

    /// Whether a file of this name is one of the closed segments, and not one that only has the number of one.
    #[must_use]
    pub fn is_closed(&self, file: &str) -> bool {
        self.faults.iter().all(|fault| fault.file != file || fault.kind != FaultKind::Stray)
    }

    fn find(&mut self, kind: FaultKind, segment: Option<SegmentId>, file: &str, what: impl Into<String>) {
        self.faults.push(Fault { kind, segment, file: file.to_owned(), offset: None, what: what.into() });
    }
}

/// Looks at the closed segments of an archive and at what is beside them: if `is_whole`, reads them from end to end, else
/// compares their lengths. A crawl may run meanwhile. `progress` gets how many segments were read, and of how many.
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
    // A segment is on the lists before it gets its final name: what is listed first is on them.
    let entries = disk.list(&folder).context("list", &folder)?;
    let stated = Stated::read(&disk, &folder, catalogue)?;
    let (names, strays) = segments(entries.iter().map(|entry| entry.name.as_str()), &stated);
    let closed: Vec<&SegmentName> = names.iter().filter(|name| !name.is_open).collect();
    let mut found =
        Inspection { closed: closed.iter().map(|name| name.id).collect(), ..Inspection::default() };
    for name in &strays {
        let what =
            "has the number of another segment and is on no list; `archive repair` takes in what it holds";
        found.find(FaultKind::Stray, Some(name.id), &name.to_string(), what);
    }
    if Intent::load(&disk, &folder)?.is_some() {
        let what = "says that segments are being rewritten, which was interrupted; the next command that changes the archive \
                    ends it";
        found.find(FaultKind::Unfinished, None, rewrite::FILE, what);
        // Until then some files have two names or none.
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
        let what = "was put aside by a repair that was interrupted; `archive repair` continues it";
        found.find(FaultKind::Unfinished, None, &entry.segment, what);
    }
    Ok(list)
}

fn look_for_missing(
    folder: &Path,
    stated: &Stated,
    names: &[SegmentName],
    aside: &[PutAside],
    found: &mut Inspection,
) {
    let present: BTreeSet<String> = names.iter().map(|name| name.closed().to_owned()).collect();
    for (id, info) in stated.missing(&present) {
        // Begun and closed since the folder was listed, or put aside.
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

/// The file name in a line of a list, if the line is as it was written.
type NameIn = fn(&[u8]) -> Option<String>;

const LIST_REMEDY: &str = "`archive repair` rewrites it";

fn look_at_lists(
    folder: &Path,
    stated: &Stated,
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
            // What only one list knows was never closed, unless it was closed a moment ago.
            let is_known = |name: &String| {
                known.contains(name.as_str())
                    || folder.join(name).exists()
                    || folder.join(format!("{name}.open")).exists()
            };
            match name {
                Some(name) if is_known(&name) && named.insert(name.clone()) => {}
                _ => {
                    let what = format!("line {number} is not as it was written; {LIST_REMEDY}");
                    faults.push((None, file, what));
                }
            }
        }
        // What no list knows is not listed, and that is said of it elsewhere.
        let is_left_out =
            |name: &&&SegmentName| stated.knows(name.closed()) && !named.contains(name.closed());
        for name in closed.iter().filter(is_left_out) {
            let what = format!("does not have {}; {LIST_REMEDY}", name.closed());
            faults.push((Some(name.id), file, what));
        }
    }
    let is_doubtful = |file| stated.manifest.contains_key(file) && !stated.agrees(file);
    for name in closed.iter().filter(|name| is_doubtful(name.closed())) {
        let what = format!(
            "does not state the digest of {} that {SUMMARIES} or the catalogue states",
            name.closed()
        );
        faults.push((Some(name.id), MANIFEST, what));
    }
    for (segment, file, what) in faults {
        found.find(FaultKind::List, segment, file, what);
    }
    Ok(())
}

fn look_at_indexes(folder: &Path, stated: &Stated, names: &[SegmentName], found: &mut Inspection) {
    for name in names.iter().filter(|name| !name.is_open && stated.knows(name.closed())) {
        let file = index::file_of(name.closed());
        let expected = stated.summaries.get(name.closed()).and_then(|info| info.index);
        let digest = RealDisk.open(&folder.join(&file), OpenMode::Read);
        let digest = digest.and_then(|file| recover::sha256(file.as_ref(), file.len()?));
        let what = match digest {
            Err(error) => format!("cannot be read: {error}"),
            Ok(digest) if expected.is_some_and(|expected| expected != digest) => {
                "is not what was written".to_owned()
            }
            Ok(_) => continue,
        };
        found.find(FaultKind::Index, Some(name.id), &file, format!("{what}; `archive repair` rebuilds it"));
    }
}

type Surveyed<'a> = (&'a SegmentName, Result<Survey, SegmentError>);

/// Reads segments on as many threads as there are.
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

fn look_at_survey(name: &SegmentName, survey: Survey, stated: &Stated, found: &mut Inspection) {
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
        let what = format!("has {} places that cannot be read", survey.broken_places);
        found.find(FaultKind::Damaged, Some(name.id), file, what);
    }
    if stated.digest(file, survey.sha256) != survey.sha256 {
        found.find(FaultKind::Damaged, Some(name.id), file, "is not the file that was closed");
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
    stated: &Stated,
    closed: &[&SegmentName],
    found: &mut Inspection,
) {
    for name in closed {
        let length = entries.iter().find(|entry| entry.name == name.closed()).map(|entry| entry.length);
        let expected = stated.info(name.closed()).map(|info| info.bytes).filter(|bytes| *bytes > 0);
        if let Some(expected) = expected.filter(|expected| length != Some(*expected)) {
            let what = format!("does not have the {expected} bytes it was closed with");
            found.find(FaultKind::Damaged, Some(name.id), name.closed(), what);
        }
    }
}

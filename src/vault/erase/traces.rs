//! Removes erased pages from the other files in an archive's folder.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use archive_base::decisions::Decisions;
use archive_base::files::{self, FileError, if_there};
use archive_base::runs;
use archive_books::ledger::canonical_of;
use archive_storage::address::{surt, without_request};
use archive_storage::backend::RealDisk;
use archive_storage::segment::{self, QUARANTINE};
use archive_storage::{SegmentId, State};
use regex::bytes::Regex;
use regex::escape;

use super::{Done, EraseError, EraseIntent};
use crate::exports;

/// Maximum bytes of a file that people write, in which a forgotten URL is looked for.
const LEFT_BYTES_MAX: u64 = 16 << 20;

/// Number of URLs that are looked for at once.
const LEFT_AT_ONCE: usize = 256;

/// Part of the names of files with bytes that recovery cut off a segment.
const CUT: &str = ".cut-";

/// Removes pages, given by their URLs, from an archive's files, and adds what it removed to the result.
pub type Forget = fn(&Path, &HashSet<String>, &mut Done) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Files of a part of the program that name pages.
#[derive(Clone, Copy, Debug)]
pub struct Traces {
    /// Folder in the archive with files that people write, which only people can change; `None` if there is none.
    pub written_by_people: Option<&'static str>,
    /// Removes pages from the archive's files.
    pub forget: Forget,
}

/// Removes the pages from the files of `all` and run reports and, if their URLs are to be forgotten, from the decisions
/// and the list of exports. Deletes bytes that were cut off segments, and quarantined segments that contain one of the
/// pages or cannot be read to their end.
pub(super) fn remove(
    archive: &Path,
    all: &[Traces],
    intent: &EraseIntent,
    urls: &HashSet<String>,
    done: &mut Done,
) -> Result<(), EraseError> {
    all.iter().try_for_each(|traces| (traces.forget)(archive, urls, done)).map_err(EraseError::Traces)?;
    runs::forget(archive, urls).map_err(FileError::at(&archive.join(runs::FOLDER)))?;
    if intent.forget_url {
        Decisions::forget(archive, urls)?;
        exports::forget(archive, urls).map_err(FileError::at(&exports::path(archive)))?;
    }
    let folder = archive.join(segment::FOLDER);
    for name in names_in(&folder)?.into_iter().filter(|name| name.contains(CUT)) {
        take_away(&folder.join(name), done)?;
    }
    clear_quarantine(archive, urls, done)
}

/// Returns the files that people wrote, and the settings, that still contain one of these URLs or its SURT: only people
/// can say what is to become of them.
pub(super) fn left(archive: &Path, all: &[Traces], state: &State, urls: &HashSet<String>) -> Vec<String> {
    let wanted: Vec<String> = urls.iter().flat_map(|url| [escape(url), escape(&surt(url))]).collect();
    let patterns = wanted.chunks(LEFT_AT_ONCE).filter_map(|some| Regex::new(&some.join("|")).ok());
    let patterns: Vec<Regex> = patterns.collect();
    let names = |bytes: &[u8]| patterns.iter().any(|pattern| pattern.is_match(bytes));
    let settings = state.settings("").filter(|(_, value)| names(value));
    let mut left: Vec<String> = settings.map(|(name, _)| format!("the setting {name}")).collect();
    for folder in all.iter().filter_map(|traces| traces.written_by_people).chain([""]) {
        for name in names_in(&archive.join(folder)).unwrap_or_default() {
            let path = Path::new(folder).join(name);
            if files::read(&archive.join(&path), LEFT_BYTES_MAX).is_ok_and(|bytes| names(&bytes)) {
                left.push(path.display().to_string());
            }
        }
    }
    left.sort();
    left
}

fn clear_quarantine(archive: &Path, urls: &HashSet<String>, done: &mut Done) -> Result<(), EraseError> {
    let (mut list, _) = segment::put_aside(&RealDisk, archive)?;
    let mut is_changed = false;
    let urls = urls.iter().map(|url| without_request(url)).collect();
    for entry in &mut list {
        let Some(file) = entry.file.clone() else { continue };
        if holds(archive, &file, &urls) {
            take_away(&archive.join(QUARANTINE).join(file), done)?;
            entry.file = None;
            is_changed = true;
        }
    }
    if is_changed {
        segment::save_put_aside(&RealDisk, archive, &list)?;
    }
    Ok(())
}

/// Whether a quarantined segment contains one of the pages, or may contain one because it cannot be read.
fn holds(archive: &Path, file: &str, urls: &HashSet<&str>) -> bool {
    let path = format!("../{QUARANTINE}/{file}");
    let Ok(mut records) = segment::records(archive, SegmentId(0), &path, 0) else {
        return true;
    };
    records.any(|record| match record {
        Ok(record) => record.header.target_uri().is_some_and(|url| urls.contains(canonical_of(url).as_str())),
        Err(_) => true,
    })
}

fn names_in(folder: &Path) -> Result<Vec<String>, EraseError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(FileError::at(folder))? {
        names.push(entry.map_err(FileError::at(folder))?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn take_away(path: &Path, done: &mut Done) -> Result<(), EraseError> {
    let removed = if_there(fs::remove_file(path)).map_err(FileError::at(path))?;
    done.removed_files += u64::from(removed.is_some());
    Ok(())
}

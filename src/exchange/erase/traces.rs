//! Removes erased pages from the other files in an archive's folder.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use archive_storage::SegmentId;
use archive_storage::address::without_request;
use archive_storage::backend::RealDisk;
use archive_storage::segment::{self, QUARANTINE};

use super::{Done, EraseError, Intent};
use crate::decisions::Decisions;
use crate::exchange::exports;
use crate::files::{FileError, if_there};
use crate::ledger::canonical_of;
use crate::publish;
use crate::recorder::RecorderError;
use crate::remarks;
use crate::runs;
use crate::topics;
use crate::watch;

/// Part of the names of files with bytes that recovery cut off a segment.
const CUT: &str = ".cut-";

/// Removes the pages from the reports of watches, announcements and run reports and, if their URLs are to be forgotten,
/// from the decisions and the list of exports. Deletes topics learned from them, bytes that were cut off segments, and
/// quarantined segments that contain one of the pages or cannot be read to their end.
pub(super) fn remove(
    archive: &Path,
    intent: &Intent,
    urls: &HashSet<String>,
    done: &mut Done,
) -> Result<(), EraseError> {
    done.reports = watch::forget_pages(archive, urls)?;
    done.topics = topics::forget(archive, urls)?;
    publish::forget(archive, urls).map_err(FileError::at(&archive.join(publish::FOLDER)))?;
    remarks::forget(archive, urls).map_err(RecorderError::from)?;
    runs::forget(archive, urls).map_err(FileError::at(&archive.join(runs::FOLDER)))?;
    if intent.forget_url {
        Decisions::forget(archive, urls)?;
        exports::forget(archive, urls).map_err(FileError::at(&exports::path(archive)))?;
    }
    let folder = archive.join(segment::FOLDER);
    for name in names(&folder)?.into_iter().filter(|name| name.contains(CUT)) {
        take_away(&folder.join(name), done)?;
    }
    clear_quarantine(archive, urls, done)
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

fn names(folder: &Path) -> Result<Vec<String>, EraseError> {
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

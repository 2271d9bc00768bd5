//! Segments that repairs have put aside because of damage, and the list of their outcomes.
//!
//! The folder doubles as a list of pending work, and is durable before the first file moves: a segment in it that the
//! list does not mark as done must still be read for its undamaged captures. So a repair may be killed at any moment,
//! and the next one continues it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{IoContext, SegmentError};
use super::name::SegmentName;
use crate::backend::{Disk, RealDisk, read_file, replace_file};

/// Name of the folder for damaged segments within an archive.
pub const QUARANTINE: &str = "quarantine";
/// One JSON object per segment.
const LIST: &str = "repairs.jsonl";

/// A segment that a repair has put aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAside {
    /// Its name in the folder of segments.
    pub segment: String,
    /// Its name in the quarantine; `None` if it was missing.
    pub file: Option<String>,
    /// Number of captures when it was closed, as far as known.
    pub captures: u64,
    /// Number of captures that can be read completely.
    pub whole: u64,
    /// Why it was put aside.
    pub why: String,
    /// Number of captures that could not be restored, once all undamaged ones have been.
    pub lost: Option<u64>,
}

/// Returns the segments put aside in an archive, and whether a line of the list is unreadable. A segment in the
/// quarantine that is not on the list has yet to be read.
///
/// # Errors
/// When the folder or the list cannot be read.
pub fn put_aside(disk: &dyn Disk, archive: &Path) -> Result<(Vec<PutAside>, bool), SegmentError> {
    let folder = archive.join(QUARANTINE);
    let entries = match disk.list(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(error) => return Err(error).context("list", &folder),
    };
    let path = folder.join(LIST);
    let text = match read_file(disk, &path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context("read", &path),
    };
    let (mut list, mut is_damaged) = (Vec::<PutAside>::new(), false);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(entry) => list.push(entry),
            Err(_) => is_damaged = true,
        }
    }
    let known: BTreeMap<&str, &PutAside> =
        list.iter().filter_map(|entry| Some((entry.file.as_deref()?, entry))).collect();
    let unknown = entries.iter().filter(|entry| {
        SegmentName::parse(&entry.name).is_some() && !known.contains_key(entry.name.as_str())
    });
    let unknown: Vec<PutAside> = unknown
        .map(|entry| PutAside {
            segment: entry.name.clone(),
            file: Some(entry.name.clone()),
            captures: 0,
            whole: 0,
            why: "is in the quarantine".to_owned(),
            lost: None,
        })
        .collect();
    list.extend(unknown);
    Ok((list, is_damaged))
}

/// Checks that no repair of an archive was interrupted.
///
/// # Errors
/// [`SegmentError::Unfinished`] if one was, or an error if the list cannot be read.
pub fn check_repaired(archive: &Path) -> Result<(), SegmentError> {
    let waiting = put_aside(&RealDisk, archive)?.0.into_iter().filter(|entry| entry.lost.is_none());
    match waiting.count() {
        0 => Ok(()),
        waiting => Err(SegmentError::Unfinished { waiting }),
    }
}

/// Writes the list durably.
///
/// # Errors
/// When the disk refuses; then the list is unchanged.
pub fn save_put_aside(disk: &dyn Disk, archive: &Path, list: &[PutAside]) -> Result<(), SegmentError> {
    let folder = archive.join(QUARANTINE);
    disk.create_dir_all(&folder).context("create", &folder)?;
    disk.sync_dir(archive).context("sync", archive)?;
    let path = folder.join(LIST);
    let mut text = Vec::new();
    for entry in list {
        serde_json::to_writer(&mut text, entry).map_err(io::Error::from).context("write", &path)?;
        text.push(b'\n');
    }
    replace_file(disk, &path, &text).context("write", &path)
}

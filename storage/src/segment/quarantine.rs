//! What repairs have put aside: damaged segments, and the list of what became of them.
//!
//! The folder is a list of what is still to be done, and durable before the first file moves: a segment in it that the list
//! does not call done has yet to be read for what is whole in it. So a repair may be killed at any moment, and the next
//! one goes on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Context, SegmentError};
use super::name::SegmentName;
use crate::backend::{Disk, RealDisk, read_file, replace_file};

/// The folder in an archive for segments that are damaged.
pub const QUARANTINE: &str = "quarantine";
/// One JSON object a segment.
const LIST: &str = "repairs.jsonl";

/// A segment that is no longer among the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAside {
    /// Its name in the folder of segments.
    pub segment: String,
    /// Its name in the quarantine; nothing when it was missing.
    pub file: Option<String>,
    /// Captures it had when it was closed, as far as that is known.
    pub captures: u64,
    /// Captures that can be read whole of it.
    pub whole: u64,
    /// What was wrong.
    pub why: String,
    /// Captures that nothing brought back, once all that is whole in it has been.
    pub lost: Option<u64>,
}

/// What was put aside in the archive in this folder, and whether any line of the list cannot be read. A segment that lies in
/// the quarantine and is not in the list waits to be read.
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

/// Makes sure that no repair of an archive was interrupted.
///
/// # Errors
/// [`SegmentError::Unfinished`] when one was, and when the list cannot be read.
pub fn check_repaired(archive: &Path) -> Result<(), SegmentError> {
    let waiting = put_aside(&RealDisk, archive)?.0.into_iter().filter(|entry| entry.lost.is_none());
    match waiting.count() {
        0 => Ok(()),
        waiting => Err(SegmentError::Unfinished { waiting }),
    }
}

/// Writes the list, durably.
///
/// # Errors
/// When the disk refuses; then the list is as it was.
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

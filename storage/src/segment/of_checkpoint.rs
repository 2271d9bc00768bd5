//! The segments of a checkpoint; see [`crate::files`].
//!
//! Segments that were open at the checkpoint are copied up to its watermarks and stay open in the copy, even if they
//! have been closed since. So the copy equals what a crash at that moment would have left, and is recovered like it.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{IoContext, SegmentError};
use super::index;
use super::ledger::{self, MANIFEST, SUMMARIES};
use super::name::{REWRITTEN, SegmentName};
use crate::backend::{Disk, RealDisk};
use crate::files::{CheckpointFile, CheckpointFiles, FileChange};
use crate::ids::{SegmentId, Watermarks};
use crate::state::State;

/// Part of the file name of a torn tail that recovery cut off.
const CUT: &str = ".cut-";

/// Adds the segments of an archive with their indexes and lists, and the tails that recovery cut off.
pub(crate) fn checkpointed(
    archive: &Path,
    state: &State,
    found: &mut CheckpointFiles,
) -> Result<(), SegmentError> {
    let (disk, folder, marks) = (RealDisk, archive.join(super::FOLDER), state.watermarks());
    let mut indexes = BTreeMap::new();
    let summaries = whole_lines(&disk, &folder, SUMMARIES, &marks, |line| {
        let info = ledger::parse_summary(line)?;
        indexes.insert(info.id, info.index);
        Some(info.id)
    })?;
    let entries = disk.list(&folder).context("list", &folder)?;
    let files: BTreeMap<&str, u64> =
        entries.iter().map(|entry| (entry.name.as_str(), entry.length)).collect();
    let mut add = |name: String, source: &str, length, change, sha256| {
        let (name, source) = (format!("{}/{name}", super::FOLDER), folder.join(source));
        found.files.push(CheckpointFile { name, source, length, change, sha256 });
    };
    for (id, entry) in state.segments() {
        let name = &entry.file;
        match marks.of(id) {
            Some(0) => {}
            Some(length) => {
                let open = format!("{name}.open");
                // The segment may have been closed since the folder was listed.
                let is_open = disk.exists(&folder.join(&open)).context("open", &folder)?;
                let source = if is_open { open.as_str() } else { name.as_str() };
                add(open.clone(), source, length, FileChange::Grows, None);
            }
            None => {
                let length = *files.get(name.as_str()).ok_or_else(|| absent(&files, name, id))?;
                let digest = entry.sha256.as_ref().and_then(|digest| digest.parse().ok());
                add(name.clone(), name, length, FileChange::Never, digest);
                let index = index::file_of(name);
                if let Some(length) = files.get(index.as_str()) {
                    let digest = indexes.get(&id).copied().flatten();
                    add(index.clone(), &index, *length, FileChange::Never, digest);
                }
            }
        }
    }
    for (name, length) in files.iter().filter(|(name, _)| name.contains(CUT)) {
        add((*name).to_owned(), name, *length, FileChange::Never, None);
    }
    let manifest = whole_lines(&disk, &folder, MANIFEST, &marks, |line| {
        let (name, _) = ledger::parse_manifest(line)?;
        SegmentName::parse(&name).map(|name| name.id)
    })?;
    found.written.push((format!("{}/{SUMMARIES}", super::FOLDER), summaries));
    found.written.push((format!("{}/{MANIFEST}", super::FOLDER), manifest));
    Ok(())
}

/// Explains why a closed segment's file is absent.
fn absent(files: &BTreeMap<&str, u64>, name: &str, id: SegmentId) -> SegmentError {
    if files.contains_key(format!("{name}{REWRITTEN}").as_str()) {
        return SegmentError::Rewriting;
    }
    SegmentError::Missing(id)
}

/// Returns the lines of a list, without those of segments that were not closed at the checkpoint.
fn whole_lines(
    disk: &dyn Disk,
    folder: &Path,
    file: &str,
    marks: &Watermarks,
    mut segment: impl FnMut(&[u8]) -> Option<SegmentId>,
) -> Result<Vec<u8>, SegmentError> {
    let mut text = Vec::new();
    for line in ledger::lines(disk, folder, file)?.0 {
        if segment(&line).is_none_or(|id| marks.of(id).is_none()) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
    }
    Ok(text)
}

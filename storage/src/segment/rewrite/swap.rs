//! Replaces old segments by rewritten ones, so that a crash at any moment leaves either the old or the new ones.
//!
//! When the intent ([`FILE`]) is written, the new segments are beside the old ones as `NAME.rewrite`, durable and
//! compared record by record. Then the catalogue's transaction decides: it has the new locations of the captures and
//! the number of the intent. The remaining steps can be repeated any number of times: new segments get their names, the
//! lists are rewritten, old segments are removed, and finally the intent. Nothing is removed before all new segments
//! have their names.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::super::error::{IoContext, SegmentError};
use super::super::index;
use super::super::ledger::{self, SegmentInfo};
use super::super::name::{REWRITTEN, SegmentName};
use crate::backend::{Disk, read_file, replace_file};

/// File in the folder of segments that states which segments replace which; present only during the exchange.
pub(in super::super) const FILE: &str = "rewrite.json";

/// New segments that are to replace old ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwapIntent {
    /// The catalogue's number once the new segments count.
    pub number: u64,
    /// File names of the old segments.
    pub old: Vec<String>,
    /// Summaries of the new segments.
    pub new: Vec<SegmentInfo>,
}

/// The file's content: the intent and XXH3-64 of its JSON, so that no wrong byte removes a segment.
#[derive(Serialize, Deserialize)]
struct CheckedIntent {
    intent: SwapIntent,
    check: String,
}

impl SwapIntent {
    fn check(&self) -> io::Result<String> {
        Ok(format!("{:016x}", xxh3_64(&serde_json::to_vec(self)?)))
    }

    /// Writes the intent durably.
    pub(super) fn save(&self, disk: &dyn Disk, folder: &Path) -> Result<(), SegmentError> {
        let path = folder.join(FILE);
        let checked = self.check().map(|check| CheckedIntent { intent: self.clone(), check });
        let text = checked.and_then(|checked| Ok(serde_json::to_vec(&checked)?)).context("write", &path)?;
        replace_file(disk, &path, &text).context("write", &path)
    }

    /// Reads the intent, if there is one.
    pub(in super::super) fn load(disk: &dyn Disk, folder: &Path) -> Result<Option<Self>, SegmentError> {
        let path = folder.join(FILE);
        let text = match read_file(disk, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.context("read", &path)?,
        };
        let damaged = || io::Error::other("the file is damaged; restore it from a backup");
        let CheckedIntent { intent, check } =
            serde_json::from_slice(&text).map_err(|_| damaged()).context("read", &path)?;
        // Names of segments cannot lead to other folders.
        let names = intent.old.iter().chain(intent.new.iter().map(|info| &info.name));
        let are_names = names.clone().all(|name| SegmentName::parse(name).is_some_and(|name| !name.is_open));
        if intent.check().context("read", &path)? != check || !are_names {
            return Err(damaged()).context("read", &path);
        }
        Ok(Some(intent))
    }

    /// Replaces the old segments by the new ones durably; repeating it is harmless.
    pub(super) fn carry_out(&self, disk: &dyn Disk, folder: &Path) -> Result<(), SegmentError> {
        for info in &self.new {
            let target = folder.join(&info.name);
            let source = folder.join(format!("{}{REWRITTEN}", info.name));
            if disk.exists(&source).context("look for", &source)? {
                disk.rename(&source, &target).context("rename", &source)?;
            } else if !disk.exists(&target).context("look for", &target)? {
                return Err(SegmentError::Missing(info.id));
            }
        }
        disk.sync_dir(folder).context("sync", folder)?;
        ledger::exchange(disk, folder, &self.old, &self.new)?;
        for old in &self.old {
            remove(disk, folder, &index::file_of(old))?;
            if let Some(name) = SegmentName::parse(old) {
                // A crash while it was being closed may have left both names.
                remove(disk, folder, &name.open())?;
            }
            remove(disk, folder, old)?;
        }
        self.end(disk, folder)
    }

    /// Removes the new segments.
    fn give_up(&self, disk: &dyn Disk, folder: &Path) -> Result<(), SegmentError> {
        for info in &self.new {
            remove(disk, folder, &index::file_of(&info.name))?;
            remove(disk, folder, &format!("{}{REWRITTEN}", info.name))?;
            remove(disk, folder, &info.name)?;
        }
        let new: Vec<String> = self.new.iter().map(|info| info.name.clone()).collect();
        ledger::exchange(disk, folder, &new, &[])?;
        self.end(disk, folder)
    }

    fn end(&self, disk: &dyn Disk, folder: &Path) -> Result<(), SegmentError> {
        disk.sync_dir(folder).context("sync", folder)?;
        remove(disk, folder, FILE)?;
        disk.sync_dir(folder).context("sync", folder)
    }
}

fn remove(disk: &dyn Disk, folder: &Path, file: &str) -> Result<(), SegmentError> {
    let path = folder.join(file);
    match disk.remove(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.context("remove", &path),
    }
}

/// Completes or abandons a rewrite that a crash interrupted. `committed` is the number in the catalogue, or `None`
/// without a catalogue. Returns the number of new segments that were abandoned.
pub(crate) fn settle(disk: &dyn Disk, archive: &Path, committed: Option<u64>) -> Result<usize, SegmentError> {
    let folder = &archive.join(super::super::FOLDER);
    if !disk.exists(folder).context("look for", folder)? {
        return Ok(0);
    }
    if let Some(intent) = SwapIntent::load(disk, folder)? {
        // Without a catalogue the new segments count once an old one is gone.
        let has_lost = |old: &String| Ok(!disk.exists(&folder.join(old))?);
        let lost: io::Result<Vec<bool>> = intent.old.iter().map(has_lost).collect();
        let lost = lost.context("look for", folder)?;
        let counts = committed.map_or_else(|| lost.contains(&true), |number| number == intent.number);
        if counts { intent.carry_out(disk, folder)? } else { intent.give_up(disk, folder)? }
    }
    clear(disk, folder)
}

/// Removes new segments that no intent covers; returns their number.
pub(super) fn clear(disk: &dyn Disk, folder: &Path) -> Result<usize, SegmentError> {
    let entries = disk.list(folder).context("list", folder)?;
    let left = entries.iter().filter_map(|entry| SegmentName::parse_rewritten(&entry.name));
    let left: Vec<SegmentName> = left.collect();
    for name in &left {
        take_away(disk, folder, name)?;
    }
    remove(disk, folder, &format!("{FILE}.new"))?;
    Ok(left.len())
}

/// Removes the files of a new segment.
pub(super) fn take_away(disk: &dyn Disk, folder: &Path, name: &SegmentName) -> Result<(), SegmentError> {
    let index = index::file_of(name.closed());
    remove(disk, folder, &format!("{index}.new"))?;
    remove(disk, folder, &index)?;
    remove(disk, folder, &name.rewritten())
}

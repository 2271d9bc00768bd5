//! A segment that is being written, and its durability.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::codec::SpoolingError;
use super::dictionary::Dictionary;
use super::encode::{CompressedGroup, Generation};
use super::error::{IoContext, SegmentError};
use super::host_group::HostGroup;
use super::index::SegmentIndex;
use super::ledger::SegmentInfo;
use super::name::SegmentName;
use super::order;
use super::versions::Versions;
use crate::backend::DiskFile;
use crate::ids::{Location, Watermark, Watermarks};

/// State that syncs and appends share across threads.
#[derive(Debug, Default)]
pub(super) struct Durability {
    poisoned: AtomicBool,
}

impl Durability {
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        if self.poisoned.load(Ordering::Acquire) { Err(SegmentError::Poisoned) } else { Ok(()) }
    }

    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
    }

    /// Syncs a file; a failure poisons all segments.
    pub(super) fn sync(&self, file: &dyn DiskFile, path: &Path) -> Result<(), SegmentError> {
        self.check()?;
        file.sync().context("sync", path).inspect_err(|_| self.poison())
    }
}

/// A sync that any thread may carry out while appending continues.
#[derive(Debug)]
pub struct SyncHandle {
    pub(super) files: Vec<Unsynced>,
    pub(super) end: Watermarks,
    pub(super) durability: Arc<Durability>,
}

/// A file with bytes that are not durable yet.
#[derive(Debug)]
pub(super) struct Unsynced {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    end: u64,
    synced: Arc<AtomicU64>,
}

impl SyncHandle {
    /// Makes everything durable that was appended before the handle was created.
    ///
    /// # Errors
    /// When the disk fails; then nothing more can be appended.
    pub fn sync(&self) -> Result<Watermarks, SegmentError> {
        self.durability.check()?;
        for unsynced in &self.files {
            self.durability.sync(unsynced.file.as_ref(), &unsynced.path)?;
            unsynced.synced.fetch_max(unsynced.end, Ordering::AcqRel);
        }
        Ok(self.end.clone())
    }
}

/// The open segment of a host group.
#[derive(Debug)]
pub(super) struct Active {
    pub name: SegmentName,
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    pub info: SegmentInfo,
    pub hasher: Sha256,
    pub opened: DateTime<Utc>,
    pub dictionary: Option<Arc<Dictionary>>,
    pub index: SegmentIndex,
    /// Bytes known to be durable.
    synced: Arc<AtomicU64>,
    /// Whether a write failed and its bytes after the end may not be cut off yet.
    torn: bool,
    /// Whether the next capture needs a number frame, because a replay may start there.
    says_number: bool,
}

impl Active {
    pub(super) fn new(
        name: SegmentName,
        path: &Path,
        file: Arc<dyn DiskFile>,
        opened: DateTime<Utc>,
        dictionary: Option<Arc<Dictionary>>,
        captures_before: u64,
    ) -> Self {
        let mut info = SegmentInfo::new(name.id, name.closed(), captures_before);
        info.dictionary = dictionary.as_deref().map(Dictionary::digest);
        let index = SegmentIndex::new(name.closed());
        Self {
            path: path.to_owned(),
            file,
            info,
            hasher: Sha256::new(),
            opened,
            dictionary,
            index,
            name,
            synced: Arc::default(),
            torn: false,
            says_number: false,
        }
    }

    pub(super) fn end(&self) -> Watermark {
        Watermark { segment: self.info.id, offset: self.info.bytes }
    }

    /// Returns what has to be synced, if anything.
    pub(super) fn unsynced(&self) -> Option<Unsynced> {
        (self.synced.load(Ordering::Acquire) < self.info.bytes).then(|| Unsynced {
            file: self.file.clone(),
            path: self.path.clone(),
            end: self.info.bytes,
            synced: self.synced.clone(),
        })
    }

    /// Requests a number frame before the next capture: a replay may start there, and several segments take captures.
    pub(super) fn say_number(&mut self) {
        self.says_number = true;
    }

    /// Appends a group as the capture with this number.
    pub(super) fn append(
        &mut self,
        packed: &CompressedGroup,
        time: DateTime<Utc>,
        number: u64,
    ) -> Result<Location, SegmentError> {
        let mut start = self.info.bytes;
        if number == self.info.captures_until && !self.says_number {
            self.write_group(&[], packed)?;
        } else {
            let frame = order::number_frame(number);
            start += frame.len() as u64;
            self.write_group(&frame, packed)?;
        }
        self.says_number = false;
        self.info.count(number, time, u64::from(packed.records), packed.plain_length);
        let (offset, length) = packed.main;
        Ok(Location { segment: self.info.id, offset: start + u64::from(offset), length })
    }

    /// Writes `frame` and a group: all of it, or nothing.
    fn write_group(&mut self, frame: &[u8], packed: &CompressedGroup) -> Result<(), SegmentError> {
        if packed.spooled.is_none() && frame.is_empty() {
            return self.write(&packed.bytes);
        }
        let Some(spool) = &packed.spooled else { return self.write(&[frame, &packed.bytes].concat()) };
        let (hasher, end) = (self.hasher.clone(), self.info.bytes);
        let spooled = self.write(frame).map_err(SpoolingError::from);
        let spooled = spooled.and_then(|()| spool.each_piece(|piece| Ok(self.write(piece)?)));
        let written = spooled.map_err(|error| error.at("read", &self.path));
        let written = written.and_then(|()| self.write(&packed.bytes));
        if written.is_err() {
            (self.hasher, self.info.bytes, self.torn) = (hasher, end, true);
            let _ = self.file.set_len(end);
        }
        written
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        if let Err(error) = self.file.write_at(bytes, self.info.bytes) {
            // Truncating keeps the file intact if the process ends here; recovery would do the same.
            let _ = self.file.set_len(self.info.bytes);
            self.torn = true;
            return Err(error).context("write", &self.path);
        }
        self.hasher.update(bytes);
        self.info.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Removes what is left of a failed write: the same capture may go to another segment next, and its number to
    /// another capture.
    pub(super) fn repair(&mut self, durability: &Durability) -> Result<(), SegmentError> {
        if self.torn {
            self.file.set_len(self.info.bytes).context("cut", &self.path)?;
            durability.sync(self.file.as_ref(), &self.path)?;
            self.synced.fetch_max(self.info.bytes, Ordering::AcqRel);
            self.torn = false;
        }
        Ok(())
    }
}

/// Writes the captures of a host group.
#[derive(Debug)]
pub(super) struct GroupWriter {
    pub hosts: HostGroup,
    pub active: Option<Active>,
    pub versions: Versions,
    /// Dictionary and level for its captures.
    pub generation: Arc<Generation>,
    /// Dictionaries being built: one, or two for the halves of the group.
    pub building: Option<Building>,
}

/// A thread that builds dictionaries.
pub(super) type Building = JoinHandle<Result<Vec<Option<Dictionary>>, SegmentError>>;

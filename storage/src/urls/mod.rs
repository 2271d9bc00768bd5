//! Names and their ids: URLs, hosts and sites, numbered in the order of discovery.
//!
//! Invariant: id `i` is the `i`-th name ever added, in block `i / NAMES_PER_BLOCK` of the log; names are never changed
//! or removed. A name is identified by its fingerprint, 62 bits of the hash [`url_hash`](crate::address::url_hash) of
//! its bytes: [`NameTable::find`] compares the names themselves, [`NameTable::known`] does not read the disk.
//!
//! Fingerprints have a secret key, so only accidental collisions remain. A new name is mistaken for one of `n` known
//! names with probability `n / 2^62`. A crawl to 10^9 URLs loses one of them this way with probability 10 %, one to
//! 10^8 with 0.1 %, until the next process with another key. If two names of the table collide under the key of this
//! process (equally likely), the later one is kept as a *twin*, whose name is compared.
//!
//! The index from fingerprints to ids is not stored: reading and hashing all names again is fast enough, and saves a
//! third of the disk space of a URL. Readers build it when they first need it.

mod cache;
mod find;
mod front;

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;

use crate::address::name_hash;
use crate::backend::{Disk, OpenMode};
use crate::checkpoint::{BlockLog, Result, StateError};
use crate::index::{HashIndex, ShardBatch};
pub(crate) use cache::NameCache;
pub(crate) use find::{ALIKE_MAX, Finder};
use front::{Decoder, FrontCoder, SEPARATOR};

/// Number of names in a block of the log.
const NAMES_PER_BLOCK: u32 = 128;
/// Maximum bytes of a name. Longer URLs are refused; browsers and servers have far lower limits.
pub const NAME_BYTES_MAX: usize = 16 * 1024;
/// Number of blocks kept decompressed, a few kilobytes each.
const RECENT_BLOCKS_MAX: usize = 64;
/// Number of names whose fingerprints are collected before they are inserted into the index, 32 bytes each.
const REBUILD_NAMES: u32 = 1 << 19;

/// A table of names; see the module documentation.
#[derive(Debug)]
pub(crate) struct NameTable {
    log: BlockLog,
    /// The names after the last full block.
    open: FrontCoder,
    buffer: Vec<u8>,
    index: OnceLock<FingerprintIndex>,
    /// Computes the fingerprint of a name.
    hash: fn(&[u8]) -> u64,
    /// Recently read full blocks, most recent last. A crawl looks up single names, mostly close to earlier ones;
    /// decompressing a block costs as much as all other work to select a page.
    recent: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

/// A map from fingerprints to ids.
#[derive(Debug)]
struct FingerprintIndex {
    /// The first id of each fingerprint.
    ids: HashIndex,
    /// Further ids of a fingerprint, with that fingerprint.
    twins: Vec<(u64, u32)>,
}

impl NameTable {
    /// Opens the table with `count` names; `open` holds those after the last full block.
    pub(crate) fn open(
        disk: &dyn Disk,
        stem: &Path,
        count: u32,
        open: &[u8],
        mode: OpenMode,
    ) -> Result<Self> {
        let log = BlockLog::open(disk, stem, u64::from(count / NAMES_PER_BLOCK), mode)?;
        let Some(open) = FrontCoder::resume(open, count % NAMES_PER_BLOCK) else {
            return Err(log.corrupted(log.len(), "the open block in the catalogue"));
        };
        let (index, recent) = (OnceLock::new(), Mutex::default());
        Ok(Self { log, open, buffer: Vec::new(), index, hash: name_hash, recent })
    }

    /// Number of names in the table.
    pub(crate) fn len(&self) -> u32 {
        self.log.len() as u32 * NAMES_PER_BLOCK + self.open.count()
    }

    /// Fails for a name that the table cannot hold: too long, or with a line feed, which no URL contains.
    pub(crate) fn check(name: &str) -> Result<()> {
        if name.len() > NAME_BYTES_MAX {
            return Err(StateError::TooLong {
                what: "a URL or name",
                length: name.len(),
                limit: NAME_BYTES_MAX,
            });
        }
        if memchr::memchr(SEPARATOR, name.as_bytes()).is_some() {
            return Err(StateError::LineFeed);
        }
        Ok(())
    }

    /// Adds a name whose fingerprint is unknown and returns its id.
    pub(crate) fn push(&mut self, name: &str, fingerprint: u64) -> Result<u32> {
        let id = self.len();
        self.index()?;
        if let Some(index) = self.index.get_mut() {
            index.ids.insert(fingerprint, id);
        }
        self.open.push(name);
        if self.open.count() == NAMES_PER_BLOCK {
            self.open.write(&mut self.buffer);
            self.open.clear();
            self.log.push(&self.buffer)?;
        }
        Ok(id)
    }

    /// Returns the id of a name with this fingerprint, if there is one. Compares the names of twins only.
    #[inline]
    pub(crate) fn known(&self, name: &str, fingerprint: u64) -> Result<Option<u32>> {
        let index = self.index()?;
        for &(_, id) in index.twins.iter().filter(|(twin, _)| *twin == fingerprint) {
            if self.get(id)?.as_deref() == Some(name) {
                return Ok(Some(id));
            }
        }
        Ok(index.ids.get(fingerprint))
    }

    /// Whether names are looked up in memory.
    pub(crate) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    /// Announces that these fingerprints will be looked up next; see [`HashIndex::warm`].
    pub(crate) fn warm(&self, fingerprints: impl IntoIterator<Item = u64>) -> Result<()> {
        self.index()?.ids.warm(fingerprints);
        Ok(())
    }

    /// The id of a name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<u32>> {
        let Some(id) = self.known(name, (self.hash)(name.as_bytes()))? else { return Ok(None) };
        Ok((self.get(id)?.as_deref() == Some(name)).then_some(id))
    }

    /// The name of an id, or `None` past the last.
    pub(crate) fn get(&self, id: u32) -> Result<Option<String>> {
        let (block, slot) = (u64::from(id / NAMES_PER_BLOCK), id % NAMES_PER_BLOCK);
        if block >= self.log.len() {
            return NameCursor::new(self).get(id).map(|name| name.map(str::to_owned));
        }
        let raw = self.block(block)?;
        let mut decoder = Decoder::default();
        decoder.start(&raw, NAMES_PER_BLOCK).ok_or_else(|| self.damaged(block))?;
        let name = decoder.seek(&raw, slot).map(str::to_owned);
        name.map(Some).ok_or_else(|| self.damaged(block))
    }

    /// Reads a full block; these never change.
    fn block(&self, block: u64) -> Result<Arc<[u8]>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().rposition(|(known, _)| *known == block);
        let raw = match known.and_then(|place| recent.remove(place)) {
            Some((_, raw)) => raw,
            None => {
                let mut raw = Vec::new();
                self.log.read(block, &mut raw)?;
                raw.into()
            }
        };
        if recent.len() >= RECENT_BLOCKS_MAX {
            recent.pop_front();
        }
        recent.push_back((block, Arc::clone(&raw)));
        Ok(raw)
    }

    /// Calls `visit` with all names of a range of ids, in order.
    pub(crate) fn scan(&self, ids: Range<u32>, mut visit: impl FnMut(u32, &str) -> Result<()>) -> Result<()> {
        self.scan_bytes(ids, |id, name| match std::str::from_utf8(name) {
            Ok(name) => visit(id, name),
            Err(_) => Err(self.damaged(u64::from(id / NAMES_PER_BLOCK))),
        })
    }

    fn scan_bytes(&self, ids: Range<u32>, mut visit: impl FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
        let last = ids.end.min(self.len());
        let mut block = ids.start / NAMES_PER_BLOCK;
        let blocks = u64::from(block)..u64::from(last.div_ceil(NAMES_PER_BLOCK)).min(self.log.len());
        let mut decoder = Decoder::default();
        let mut visit_block = |block: u32, raw: &[u8]| {
            let damaged = || self.damaged(u64::from(block));
            decoder.start(raw, self.count_in(u64::from(block))).ok_or_else(damaged)?;
            for id in block * NAMES_PER_BLOCK..((block + 1) * NAMES_PER_BLOCK).min(last) {
                let name = decoder.step(raw).ok_or_else(damaged)?;
                if id >= ids.start {
                    visit(id, name)?;
                }
            }
            Ok(())
        };
        self.log.read_many(blocks, |raw| {
            visit_block(block, raw)?;
            block += 1;
            Ok(())
        })?;
        if u64::from(block) == self.log.len() { visit_block(block, &self.open_block()) } else { Ok(()) }
    }

    /// The bytes of the open block, for the commit.
    pub(crate) fn open_block(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.open.write(&mut bytes);
        bytes
    }

    /// Number of names in a block.
    fn count_in(&self, block: u64) -> u32 {
        if block < self.log.len() { NAMES_PER_BLOCK } else { self.open.count() }
    }

    pub(crate) fn log(&self) -> &BlockLog {
        &self.log
    }

    pub(crate) fn log_mut(&mut self) -> &mut BlockLog {
        &mut self.log
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + self.index.get().map_or(0, |index| index.ids.memory_bytes())
    }

    fn damaged(&self, block: u64) -> StateError {
        self.log.corrupted(block, "a block's names end too early")
    }

    /// Takes over the index of an earlier state of the same table, if there is one, and adds the names since.
    pub(crate) fn adopt_index(&mut self, earlier: &mut Self) -> Result<()> {
        if let Some(FingerprintIndex { mut ids, mut twins }) = earlier.index.take() {
            self.scan_bytes(earlier.len()..self.len(), |id, name| {
                let fingerprint = (self.hash)(name);
                if ids.insert(fingerprint, id).is_some() {
                    twins.push((fingerprint, id));
                }
                Ok(())
            })?;
            let index = FingerprintIndex { ids, twins };
            self.index = OnceLock::from(index);
        }
        Ok(())
    }

    fn index(&self) -> Result<&FingerprintIndex> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => {
                let index = self.build_index()?;
                Ok(self.index.get_or_init(|| index))
            }
        }
    }

    /// Hashes all names, in parallel on all CPUs.
    fn build_index(&self) -> Result<FingerprintIndex> {
        let mut ids = HashIndex::with_capacity(self.len() as usize);
        let mut twins = Vec::new();
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let part = (REBUILD_NAMES / threads).next_multiple_of(NAMES_PER_BLOCK);
        for first in (0..self.len()).step_by((part * threads) as usize) {
            let parts = (0..threads)
                .map(|number| first.saturating_add(number * part))
                .filter(|&start| start < self.len());
            let batches: Result<Vec<ShardBatch>> = std::thread::scope(|scope| {
                let ids = &ids;
                let work =
                    |start| move || Ok(ids.batch(&self.fingerprints(start..start.saturating_add(part))?));
                let workers: Vec<_> = parts.map(|start| scope.spawn(work(start))).collect();
                let join = |worker: ScopedJoinHandle<'_, _>| match worker.join() {
                    Ok(batch) => batch,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                workers.into_iter().map(join).collect()
            });
            twins.extend(ids.insert_batches(&batches?));
        }
        let mut cursor = NameCursor::new(self);
        let twins = twins.into_iter().map(|id| {
            let name = cursor.get(id)?.unwrap_or_default();
            Ok(((self.hash)(name.as_bytes()), id))
        });
        Ok(FingerprintIndex { ids, twins: twins.collect::<Result<_>>()? })
    }

    fn fingerprints(&self, ids: Range<u32>) -> Result<Vec<(u64, u32)>> {
        let mut entries = Vec::with_capacity(ids.len());
        self.scan_bytes(ids, |id, name| {
            entries.push(((self.hash)(name), id));
            Ok(())
        })?;
        Ok(entries)
    }
}

/// Looks up successive names; cheap when their ids are close together.
#[derive(Debug)]
pub(crate) struct NameCursor<'a> {
    table: &'a NameTable,
    block: Option<u64>,
    raw: Vec<u8>,
    decoder: Decoder,
}

impl<'a> NameCursor<'a> {
    pub(crate) fn new(table: &'a NameTable) -> Self {
        Self { table, block: None, raw: Vec::new(), decoder: Decoder::default() }
    }

    /// The name of an id, or `None` past the last.
    pub(crate) fn get(&mut self, id: u32) -> Result<Option<&str>> {
        if id >= self.table.len() {
            return Ok(None);
        }
        let (block, slot) = (u64::from(id / NAMES_PER_BLOCK), id % NAMES_PER_BLOCK);
        if self.block != Some(block) {
            self.block = None;
            if block == self.table.log.len() {
                self.table.open.write(&mut self.raw);
            } else {
                self.table.log.read(block, &mut self.raw)?;
            }
            let started = self.decoder.start(&self.raw, self.table.count_in(block));
            started.ok_or_else(|| self.table.damaged(block))?;
            self.block = Some(block);
        }
        let name = self.decoder.seek(&self.raw, slot);
        name.map(Some).ok_or_else(|| self.table.damaged(block))
    }
}

#[cfg(test)]
mod tests;

//! The files `urls.find` and `keys.find`, which find the id of a URL by reading one block: `urls.find` by the URL itself,
//! `keys.find` a captured URL by its [`lookup_key`](crate::address::lookup_key). Without them, a reader has to hash all
//! URLs, or all captured ones.
//!
//! Block 0 starts with the state's identity, the number of URLs in the file (the first ones that were known or captured,
//! so that the file stays valid for later checkpoints, which only add some) and the number of further blocks. The upper
//! half of a hash selects its block, which holds the lower half and the id. The hash is XXH3 seeded with the identity,
//! which is secret. Names are compared, so hashes may collide. The files are derived data.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::NameTable;
use crate::backend::{Disk, OpenMode};
use crate::checkpoint::{FieldReader, FieldWriter, RecordTable, Result, StateError, TableRecord};

/// Maximum number of URLs added after the file was written, whose hashes are collected on the first lookup: the larger
/// of this number and this fraction of those in the file.
const LATER_MIN: u32 = 1 << 9;
const LATER_DIVISOR: u32 = 64;
/// Maximum number of captured URLs with one key that are found.
pub(crate) const ALIKE_MAX: usize = 64;
/// Average number of names in a block: with 10^8 blocks, none overflows.
const PER_BLOCK_MEAN: u32 = 360;
/// Number of entries sorted into blocks at a time; each takes 12 bytes.
const PART: usize = 1 << 24;
/// Number of the table in the checksums of its blocks.
const TABLE: u32 = 0x6669_6e64;

/// Passes on hashes and ids of names, as often as it is called.
type EachName<'a> = dyn Fn(&mut dyn FnMut(u64, u32)) -> Result<()> + 'a;

/// Entry of a name: the lower half of its hash, and its id plus one.
#[derive(Clone, Copy, Debug, Default)]
struct NameSlot(u32, u32);

impl TableRecord for NameSlot {
    const BYTES: usize = 8;

    fn encode(&self, fields: &mut FieldWriter<'_>) {
        fields.u32(self.0).u32(self.1);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Self {
        Self(fields.u32(), fields.u32())
    }
}

/// The file, open for reading.
#[derive(Debug)]
pub(crate) struct Finder {
    entries: RecordTable<NameSlot>,
    identity: u64,
    /// Number of names in the file.
    pub(crate) names: u32,
    /// Hashes of the names added later, in order, with their ids.
    later: OnceLock<Vec<(u64, u32)>>,
}

const SLOTS: u32 = RecordTable::<NameSlot>::PER_BLOCK;

impl Finder {
    /// Opens the file if it exists.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, identity: u64) -> Result<Option<Self>> {
        let failed = |error| StateError::io(path, error);
        if !disk.exists(path).map_err(failed)? {
            return Ok(None);
        }
        let length = disk.open(path, OpenMode::Read).and_then(|file| file.len()).map_err(failed)?;
        let blocks = length / crate::checkpoint::BLOCK_BYTES as u64;
        let count = u32::try_from(blocks * u64::from(SLOTS)).unwrap_or(u32::MAX);
        let entries: RecordTable<NameSlot> =
            RecordTable::open(disk, path.to_owned(), TABLE, count, OpenMode::Read, 0)?;
        let damaged = |what| Err(StateError::corrupted(path, 0, what));
        match (entries.get(0)?, entries.get(1)?) {
            (Some(NameSlot(low, high)), _) if u64::from(high) << 32 | u64::from(low) != identity => {
                damaged("it belongs to another state")
            }
            (_, Some(NameSlot(names, further))) if blocks == u64::from(further) + 1 && further > 0 => {
                Ok(Some(Self { entries, identity, names, later: OnceLock::new() }))
            }
            _ => damaged("its length does not match its header"),
        }
    }

    /// Whether `names` names are only a few more than those in the file.
    pub(crate) fn has_nearly(&self, names: u32) -> bool {
        let later = names.checked_sub(self.names);
        later.is_some_and(|later| later <= LATER_MIN.max(self.names / LATER_DIVISOR))
    }

    /// The ids under a hash in the file.
    pub(crate) fn under(&self, hash: u64) -> Result<Vec<u32>> {
        let (block, low) = place(hash, self.entries.len() / SLOTS - 1);
        let (mut entries, mut ids) = (self.entries.cursor(), Vec::new());
        for slot in 0..SLOTS {
            match entries.get((block + 1) * SLOTS + slot)?.unwrap_or_default() {
                NameSlot(_, 0) => break,
                NameSlot(found, id) if found == low => ids.push(id - 1),
                NameSlot(..) => {}
            }
        }
        Ok(ids)
    }

    /// Returns the id of a name of the table, which has only a few more names than the file.
    pub(crate) fn find(&self, table: &NameTable, name: &str) -> Result<Option<u32>> {
        let is_it = |id: u32| Ok::<_, StateError>(table.get(id)?.as_deref() == Some(name));
        let hash = xxh3_64_with_seed(name.as_bytes(), self.identity);
        for id in self.under(hash)? {
            if is_it(id)? {
                return Ok(Some(id));
            }
        }
        let later = self.later(table)?;
        let first = later.partition_point(|(found, _)| *found < hash);
        for (_, id) in later[first..].iter().take_while(|(found, _)| *found == hash) {
            if is_it(*id)? {
                return Ok(Some(*id));
            }
        }
        Ok(None)
    }

    fn later(&self, table: &NameTable) -> Result<&[(u64, u32)]> {
        if self.later.get().is_none() {
            let mut later = Vec::new();
            table.scan_bytes(self.names..table.len(), |id, name| {
                later.push((xxh3_64_with_seed(name, self.identity), id));
                Ok(())
            })?;
            later.sort_unstable();
            return Ok(self.later.get_or_init(|| later));
        }
        Ok(self.later.get().map(Vec::as_slice).unwrap_or_default())
    }

    /// Reads every block and reports damaged ones.
    pub(crate) fn check(&self, report: &mut dyn FnMut(&StateError)) {
        self.entries.check(report);
    }

    /// Writes a file for all names of a table, and makes it durable.
    pub(crate) fn write(disk: &dyn Disk, path: &Path, table: &NameTable, identity: u64) -> Result<()> {
        let each = |take: &mut dyn FnMut(u64, u32)| {
            table.scan_bytes(0..table.len(), |id, name| {
                take(xxh3_64_with_seed(name, identity), id);
                Ok(())
            })
        };
        Self::write_entries(disk, path, identity, table.len(), usize::MAX, &each)
    }

    /// Writes a file with the first `names` names, whose hashes and ids `each` passes on. Of one hash it holds `most` ids
    /// at most, and fewer in a block that would be too long.
    pub(crate) fn write_entries(
        disk: &dyn Disk,
        path: &Path,
        identity: u64,
        names: u32,
        most: usize,
        each: &EachName<'_>,
    ) -> Result<()> {
        let mut entries: RecordTable<NameSlot> =
            RecordTable::open(disk, path.to_owned(), TABLE, 0, OpenMode::Create, 0)?;
        let blocks = names.div_ceil(PER_BLOCK_MEAN).max(1);
        push_block(
            &mut entries,
            &[NameSlot(identity as u32, (identity >> 32) as u32), NameSlot(names, blocks)],
        )?;
        let step = ((PART as u32) / PER_BLOCK_MEAN).min(blocks);
        for first in (0..blocks).step_by(step as usize) {
            let mut sorted = vec![Vec::new(); step.min(blocks - first) as usize];
            each(&mut |hash, id| {
                let (block, low) = place(hash, blocks);
                if let Some(entries) = block.checked_sub(first).and_then(|it| sorted.get_mut(it as usize)) {
                    entries.push(NameSlot(low, id + 1));
                }
            })?;
            for block in sorted {
                push_block(&mut entries, &fitting(block, most))?;
            }
        }
        entries.write_new()?;
        entries.sync()
    }
}

/// The block of a hash among `blocks`, and its lower half.
fn place(hash: u64, blocks: u32) -> (u32, u32) {
    ((((hash >> 32) * u64::from(blocks)) >> 32) as u32, hash as u32)
}

/// The entries of a block with `most` ids of each hash at most, fewer if the block would be too long.
fn fitting(block: Vec<NameSlot>, mut most: usize) -> Vec<NameSlot> {
    if most == usize::MAX {
        return block;
    }
    loop {
        let mut counts = HashMap::new();
        let mut is_kept = |slot: &&NameSlot| {
            let count: &mut usize = counts.entry(slot.0).or_default();
            *count += 1;
            *count <= most
        };
        let kept: Vec<NameSlot> = block.iter().filter(&mut is_kept).copied().collect();
        if kept.len() <= SLOTS as usize || most == 1 {
            return kept;
        }
        most /= 2;
    }
}

fn push_block(entries: &mut RecordTable<NameSlot>, block: &[NameSlot]) -> Result<()> {
    if block.len() > SLOTS as usize {
        return Err(StateError::Full { what: "URLs of one hash" });
    }
    for slot in 0..SLOTS as usize {
        entries.push(&block.get(slot).copied().unwrap_or_default())?;
    }
    Ok(())
}

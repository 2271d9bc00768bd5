//! Looks up names in any order, caching those of many blocks.

use super::{Decoder, NAMES_PER_BLOCK, NameTable};
use crate::checkpoint::Result;

/// A cache of names by whole blocks, direct-mapped by block number.
#[derive(Debug)]
pub(crate) struct NameCache<'a> {
    table: &'a NameTable,
    /// Number of blocks that the cache can hold.
    places: usize,
    blocks: Vec<Option<BlockNames>>,
    raw: Vec<u8>,
    decoder: Decoder,
}

/// The names of one block.
#[derive(Debug)]
struct BlockNames {
    block: u32,
    text: Box<str>,
    /// End of each name in `text`.
    ends: Box<[u32]>,
}

impl<'a> NameCache<'a> {
    /// Creates a cache of at most `names` names, but at least one block.
    pub(crate) fn new(table: &'a NameTable, names: usize) -> Self {
        let places = (names / NAMES_PER_BLOCK as usize).max(1);
        Self { table, places, blocks: Vec::new(), raw: Vec::new(), decoder: Decoder::default() }
    }

    /// The name of an id, or `None` past the last.
    #[inline]
    pub(crate) fn get(&mut self, id: u32) -> Result<Option<&str>> {
        if id >= self.table.len() {
            return Ok(None);
        }
        let (block, slot) = (id / NAMES_PER_BLOCK, (id % NAMES_PER_BLOCK) as usize);
        let place = block as usize % self.places;
        if self.blocks.get(place).and_then(Option::as_ref).is_none_or(|names| names.block != block) {
            let names = self.read(block)?;
            if place >= self.blocks.len() {
                self.blocks.resize_with(place + 1, || None);
            }
            self.blocks[place] = Some(names);
        }
        let Some(names) = &self.blocks[place] else { return Ok(None) };
        let start = slot.checked_sub(1).map_or(0, |before| names.ends[before] as usize);
        Ok(names.text.get(start..names.ends[slot] as usize))
    }

    fn read(&mut self, block: u32) -> Result<BlockNames> {
        let (table, number) = (self.table, u64::from(block));
        if number == table.log.len() {
            table.open.write(&mut self.raw);
        } else {
            table.log.read(number, &mut self.raw)?;
        }
        let damaged = || table.damaged(number);
        let count = table.count_in(number);
        self.decoder.start(&self.raw, count).ok_or_else(damaged)?;
        let (mut text, mut ends) = (Vec::with_capacity(2 * self.raw.len()), Vec::new());
        for _ in 0..count {
            text.extend_from_slice(self.decoder.step(&self.raw).ok_or_else(damaged)?);
            ends.push(text.len() as u32);
        }
        let text = String::from_utf8(text).map_err(|_| damaged())?.into_boxed_str();
        Ok(BlockNames { block, text, ends: ends.into_boxed_slice() })
    }
}

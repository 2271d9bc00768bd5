//! Reads many records of a table: all of them in sequence, or selected ones in file order.

use super::{BLOCK_BYTES, RecordTable, TableBlock, is_whole, torn};
use crate::checkpoint::error::{Result, StateError};
use crate::checkpoint::fields::TableRecord;

/// Number of blocks that a scan reads at once.
const SCAN_BLOCKS: usize = 64;
/// Maximum number of unneeded blocks that are read between two needed ones, because another read would cost more.
const GAP_BLOCKS: u32 = 4;

impl<R: TableRecord> RecordTable<R> {
    /// All records from a number on, in order, read in large pieces.
    pub(crate) fn scan(&self, from: u32) -> TableScan<'_, R> {
        TableScan { cursor: TableCursor { ahead: SCAN_BLOCKS, ..self.cursor() }, next: from }
    }

    /// Reads single records; cheap when successive ones lie close together.
    pub(crate) fn cursor(&self) -> TableCursor<'_, R> {
        TableCursor { table: self, ahead: 1, first_block: 0, blocks: Vec::new() }
    }

    /// Returns the records with some numbers, in the given order; `None` past the last. Reads them in file order.
    pub(crate) fn gather(&self, numbers: &[u32]) -> Result<Vec<Option<R>>> {
        let mut order: Vec<u64> =
            (0..).zip(numbers).map(|(place, number)| u64::from(*number) << 32 | place).collect();
        order.sort_unstable();
        let mut records = vec![None; numbers.len()];
        let mut cursor = self.cursor();
        let block_of = |entry: &u64| (entry >> 32) as u32 / Self::PER_BLOCK;
        let mut rest = order.as_slice();
        while let Some(first) = rest.first() {
            // One read for blocks that are (nearly) adjacent.
            let mut last = block_of(first);
            let count = rest.iter().take_while(|entry| {
                let block = block_of(entry);
                let is_near = block - last <= GAP_BLOCKS && block - block_of(first) < SCAN_BLOCKS as u32;
                last = if is_near { block } else { last };
                is_near
            });
            let (these, others) = rest.split_at(count.count());
            cursor.expect(block_of(first), last);
            for entry in these {
                records[*entry as u32 as usize] = cursor.get((entry >> 32) as u32)?;
            }
            rest = others;
        }
        Ok(records)
    }
}

/// Iterates over a table; stops after the first error.
#[derive(Debug)]
pub(crate) struct TableScan<'a, R> {
    cursor: TableCursor<'a, R>,
    next: u32,
}

impl<R: TableRecord> Iterator for TableScan<'_, R> {
    type Item = Result<(u32, R)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        match self.cursor.get(number) {
            Ok(record) => {
                self.next += u32::from(record.is_some());
                record.map(|record| Ok((number, record)))
            }
            Err(error) => {
                self.next = u32::MAX;
                Some(Err(error))
            }
        }
    }
}

/// Reads single records, keeping the blocks read last.
#[derive(Debug)]
pub(crate) struct TableCursor<'a, R> {
    table: &'a RecordTable<R>,
    /// Number of blocks read at once.
    ahead: usize,
    first_block: u32,
    blocks: Vec<TableBlock>,
}

impl<R: TableRecord> TableCursor<'_, R> {
    /// The record with a number, or `None` past the last.
    #[inline]
    pub(crate) fn get(&mut self, number: u32) -> Result<Option<R>> {
        if number >= self.table.count {
            return Ok(None);
        }
        let (block, slot) = (number / RecordTable::<R>::PER_BLOCK, number % RecordTable::<R>::PER_BLOCK);
        if (block.wrapping_sub(self.first_block)) as usize >= self.blocks.len() {
            if let Some(frame) = self.table.frame(block) {
                return Ok(Some(RecordTable::<R>::decode(&frame.bytes, slot)));
            }
            self.fill(block)?;
        }
        let bytes = &self.blocks[(block - self.first_block) as usize];
        Ok(Some(RecordTable::<R>::decode(bytes, slot)))
    }

    /// Announces the range of blocks whose records will be read next, starting with the first.
    fn expect(&mut self, first: u32, last: u32) {
        self.ahead = (last - first) as usize + 1;
    }

    fn fill(&mut self, block: u32) -> Result<()> {
        let table = self.table;
        let count = (table.frame_of.len() - block as usize).min(self.ahead);
        self.first_block = block;
        // On an error, no partly filled blocks must remain.
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.resize(count, [0; BLOCK_BYTES]);
        // New blocks may exist only in memory, past the end of the file.
        let bytes = blocks.as_flattened_mut();
        let mut filled = 0;
        while filled < bytes.len() {
            let offset = u64::from(block) * BLOCK_BYTES as u64 + filled as u64;
            let (_, rest) = bytes.split_at_mut(filled);
            match table.file.read_at(rest, offset).map_err(|error| StateError::io(&table.path, error))? {
                0 => break,
                read => filled += read,
            }
        }
        for (number, bytes) in (block..).zip(&mut blocks) {
            if let Some(frame) = table.frame(number) {
                bytes.copy_from_slice(frame.bytes.as_slice());
            } else if !is_whole(bytes, number, table.seed) {
                return Err(torn(&table.path, number));
            }
        }
        self.blocks = blocks;
        Ok(())
    }
}

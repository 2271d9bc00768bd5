//! One part of the index: a hash table of lines with two choices, grown by an eighth at a time.
//!
//! Lines are allocated in chunks of one size that a growing shard keeps: arrays that grow little by little would leave
//! holes all over the heap (measured: a fourth of the memory at 10^8 entries).

use super::REST_BITS;
use super::line::Line;

/// Entries a shard may hold before it grows, in 64ths of its slots. Lines of five slots and more with two choices can be
/// filled to 98 % and beyond; up to here an insertion pushes few entries on.
const LOAD_MAX: usize = 61;
/// Entries that a shard is made for, in 64ths of its slots: a few more than expected still fit.
const LOAD_EXPECTED: usize = 58;
/// A full shard grows by one of so many parts.
const GROWTH: usize = 8;
/// Entries that may be pushed from line to line for one insertion.
const MOVES_MAX: usize = 100;
/// Lines in a chunk of 4 KiB; a shard with fewer has one smaller chunk.
const CHUNK_LINES: usize = 64;
/// From so many lines on, a line implies two bits: remainders of 48 bits are enough.
const LINES_FOR_48_BITS: usize = 1 << (REST_BITS - 48);
/// From so many lines on, a line implies ten bits: remainders of 40 bits are enough.
const LINES_FOR_40_BITS: usize = 1 << (REST_BITS - 40);

/// Calls a function with the remainder's bytes and the slots of a line as constants, by the number of lines.
macro_rules! with_layout {
    ($lines:expr, $call:ident ( $($argument:expr),* )) => {
        if $lines >= LINES_FOR_40_BITS {
            $call::<5, 7>($($argument),*)
        } else if $lines >= LINES_FOR_48_BITS {
            $call::<6, 6>($($argument),*)
        } else {
            $call::<7, 5>($($argument),*)
        }
    };
}

fn slots_in(lines: usize) -> usize {
    fn slots<const WIDTH: usize, const SLOTS: usize>() -> usize {
        SLOTS
    }
    with_layout!(lines, slots())
}

/// An array of lines in chunks.
#[derive(Debug, Default)]
struct Lines {
    chunks: Vec<Box<[Line]>>,
    count: usize,
}

impl Lines {
    #[inline]
    fn get(&self, line: usize) -> &Line {
        &self.chunks[line / CHUNK_LINES][line % CHUNK_LINES]
    }

    #[inline]
    fn get_mut(&mut self, line: usize) -> &mut Line {
        &mut self.chunks[line / CHUNK_LINES][line % CHUNK_LINES]
    }

    /// Empties all lines and makes them as many as asked for, or a few more.
    fn reset(&mut self, count: usize) {
        self.count = if count < CHUNK_LINES { count } else { count.next_multiple_of(CHUNK_LINES) };
        let in_chunk = self.count.min(CHUNK_LINES);
        self.chunks.retain(|chunk| chunk.len() == in_chunk);
        for chunk in &mut self.chunks {
            chunk.fill(Line::EMPTY);
        }
        self.chunks
            .resize_with(self.count.div_ceil(CHUNK_LINES), || vec![Line::EMPTY; in_chunk].into_boxed_slice());
    }
}

/// A shard; see the module.
#[derive(Debug, Default)]
pub(super) struct Shard {
    lines: Lines,
    entries: u32,
}

impl Shard {
    pub(super) fn with_capacity(entries: usize) -> Self {
        let mut shard = Self::default();
        let lines_for = |slots: usize| (entries * 64).div_ceil(slots * LOAD_EXPECTED);
        // Fewer slots make more lines, which may have more slots: take the first layout that holds what it promises.
        let layouts = [slots_in(LINES_FOR_40_BITS), slots_in(LINES_FOR_48_BITS), slots_in(1)];
        if let Some(lines) =
            layouts.map(lines_for).into_iter().zip(layouts).find(|&(lines, slots)| slots_in(lines) >= slots)
            && entries > 0
        {
            shard.lines.reset(lines.0);
        }
        shard
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.count * size_of::<Line>() + self.lines.chunks.capacity() * size_of::<Box<[Line]>>()
    }

    /// Reads a byte of the line where a look-up begins; what it is means nothing.
    #[inline]
    pub(super) fn touch(&self, rest: u64) -> u8 {
        match self.lines.count {
            0 => 0,
            count => self.lines.get(home(rest, count)).0[0],
        }
    }

    #[inline]
    pub(super) fn get(&self, rest: u64) -> Option<u32> {
        if self.lines.count == 0 {
            return None;
        }
        with_layout!(self.lines.count, find(&self.lines, rest))
    }

    /// Stores an id unless there is one, which is then returned.
    #[inline]
    pub(super) fn insert(&mut self, rest: u64, id: u32) -> Option<u32> {
        if let Some(known) = self.get(rest) {
            return Some(known);
        }
        let slots = self.lines.count * slots_in(self.lines.count);
        if self.entries as usize * 64 >= slots * LOAD_MAX {
            self.grow(rest, id);
        } else if let Err((rest, id)) = with_layout!(self.lines.count, place(&mut self.lines, rest, id)) {
            self.grow(rest, id);
        }
        self.entries += 1;
        None
    }

    /// Moves all entries and a new one into more lines.
    #[cold]
    fn grow(&mut self, rest: u64, id: u32) {
        let lines = &mut self.lines;
        let mut entries = with_layout!(lines.count, entries(lines));
        entries.push((rest, id));
        loop {
            lines.reset(lines.count + (lines.count / GROWTH).max(1));
            let mut placed =
                entries.iter().map(|&(rest, id)| with_layout!(lines.count, place(lines, rest, id)));
            if placed.all(|outcome| outcome.is_ok()) {
                return;
            }
        }
    }
}

/// The line where an entry is at home: lines share the numbers out in order.
#[inline]
fn home(rest: u64, lines: usize) -> usize {
    ((u128::from(rest) * lines as u128) >> REST_BITS) as usize
}

/// The other line of an entry that is in one of its two: applied twice it gives the first again.
#[inline]
fn other(line: usize, remainder: u64, lines: usize) -> usize {
    let spread = (remainder.wrapping_mul(0xa076_1d64_78bd_642f) >> 32) as usize;
    let sum = (spread * lines) >> 32;
    if sum >= line { sum - line } else { sum + lines - line }
}

#[inline]
const fn mask<const WIDTH: usize>() -> u64 {
    (1 << (8 * WIDTH)) - 1
}

#[inline]
fn find<const WIDTH: usize, const SLOTS: usize>(lines: &Lines, rest: u64) -> Option<u32> {
    let remainder = rest & mask::<WIDTH>();
    let home = home(rest, lines.count);
    let line = lines.get(home);
    if let Some(id) = line.find::<WIDTH, SLOTS>(remainder, false) {
        return Some(id);
    }
    if !line.is_spilled() {
        return None;
    }
    lines.get(other(home, remainder, lines.count)).find::<WIDTH, SLOTS>(remainder, true)
}

/// An entry on its way into a line.
#[derive(Clone, Copy)]
struct Entry {
    remainder: u64,
    id: u32,
    displaced: bool,
}

/// Puts a new entry into its home line or its other line; when both are full, pushes entries on to their other lines. An
/// entry that finds no place in the end is given back: perhaps not the new one.
fn place<const WIDTH: usize, const SLOTS: usize>(
    lines: &mut Lines,
    rest: u64,
    id: u32,
) -> Result<(), (u64, u32)> {
    if lines.count == 0 {
        return Err((rest, id));
    }
    let mut line = home(rest, lines.count);
    let mut entry = Entry { remainder: rest & mask::<WIDTH>(), id, displaced: false };
    if put_if_free::<WIDTH, SLOTS>(lines, line, entry) {
        return Ok(());
    }
    for step in 0..MOVES_MAX {
        // The entry is at home in `line`, or displaced into it, and found it full.
        if !entry.displaced {
            lines.get_mut(line).set_spilled();
        }
        line = other(line, entry.remainder, lines.count);
        entry.displaced = !entry.displaced;
        if put_if_free::<WIDTH, SLOTS>(lines, line, entry) {
            return Ok(());
        }
        let slot = (entry.remainder as usize ^ step) % SLOTS;
        let full = lines.get_mut(line);
        let pushed = Entry {
            remainder: full.remainder::<WIDTH>(slot),
            id: full.id::<WIDTH, SLOTS>(slot).unwrap_or_default(),
            displaced: full.is_displaced(slot),
        };
        full.put::<WIDTH, SLOTS>(slot, entry.remainder, entry.id, entry.displaced);
        entry = pushed;
    }
    let home = if entry.displaced { other(line, entry.remainder, lines.count) } else { line };
    Err((rest_from::<WIDTH>(first_at(home, lines.count), entry.remainder), entry.id))
}

fn put_if_free<const WIDTH: usize, const SLOTS: usize>(lines: &mut Lines, line: usize, entry: Entry) -> bool {
    let line = lines.get_mut(line);
    let Some(slot) = line.free_slot::<WIDTH, SLOTS>() else { return false };
    line.put::<WIDTH, SLOTS>(slot, entry.remainder, entry.id, entry.displaced);
    true
}

/// The smallest number at home in a line.
#[inline]
fn first_at(line: usize, lines: usize) -> u64 {
    if line < 1 << (64 - REST_BITS) {
        ((line as u64) << REST_BITS).div_ceil(lines as u64)
    } else {
        ((line as u128) << REST_BITS).div_ceil(lines as u128) as u64
    }
}

/// The number that an entry stands for: from the first at home in its line on, the first one that ends in the remainder.
#[inline]
fn rest_from<const WIDTH: usize>(first: u64, remainder: u64) -> u64 {
    first + (remainder.wrapping_sub(first) & mask::<WIDTH>())
}

/// All entries with the bits that their lines imply put back.
fn entries<const WIDTH: usize, const SLOTS: usize>(lines: &Lines) -> Vec<(u64, u32)> {
    let mut entries = Vec::with_capacity(lines.count * SLOTS + 1);
    for number in 0..lines.count {
        let line = lines.get(number);
        let first_here = first_at(number, lines.count);
        for slot in 0..SLOTS {
            let Some(id) = line.id::<WIDTH, SLOTS>(slot) else { break };
            let remainder = line.remainder::<WIDTH>(slot);
            let first = match line.is_displaced(slot) {
                true => first_at(other(number, remainder, lines.count), lines.count),
                false => first_here,
            };
            entries.push((rest_from::<WIDTH>(first, remainder), id));
        }
    }
    entries
}

//! One part of the index: a hash table of lines with two choices, grown by an eighth at a time.

use super::REST_BITS;
use super::line::Line;

/// Entries a shard may hold before it grows, in 64ths of its slots.
const LOAD_MAX: usize = 59;
/// From so many lines on, a line implies two bits: remainders of 48 bits are enough.
const LINES_FOR_48_BITS: usize = 1 << (REST_BITS - 48);
/// From so many lines on, a line implies ten bits: remainders of 40 bits are enough.
const LINES_FOR_40_BITS: usize = 1 << (REST_BITS - 40);

/// Runs `$body` with the remainder's bytes and the slots of a line as constants, by the number of lines.
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

/// A shard; see the module.
#[derive(Debug, Default)]
pub(super) struct Shard {
    lines: Box<[Line]>,
    count: u32,
}

impl Shard {
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.lines.as_ref())
    }

    #[inline]
    pub(super) fn get(&self, rest: u64) -> Option<u32> {
        let lines = self.lines.as_ref();
        if lines.is_empty() {
            return None;
        }
        with_layout!(lines.len(), find(lines, rest))
    }

    /// Stores an id unless there is one, which is then returned.
    #[inline]
    pub(super) fn insert(&mut self, rest: u64, id: u32) -> Option<u32> {
        if let Some(known) = self.get(rest) {
            return Some(known);
        }
        let slots = self.lines.len() * slots_in(self.lines.len());
        let lines = self.lines.as_mut();
        if self.count as usize * 64 >= slots * LOAD_MAX || !with_layout!(lines.len(), place(lines, rest, id))
        {
            self.grow(rest, id);
        }
        self.count += 1;
        None
    }

    /// Moves all entries and a new one into a larger table.
    #[cold]
    fn grow(&mut self, rest: u64, id: u32) {
        let old = self.lines.as_ref();
        let mut entries = with_layout!(old.len(), entries(old));
        entries.push((rest, id));
        let mut count = self.lines.len();
        loop {
            count += (count / 8).max(1);
            let mut grown = vec![Line::EMPTY; count].into_boxed_slice();
            let lines = grown.as_mut();
            if entries.iter().all(|&(rest, id)| with_layout!(count, place(lines, rest, id))) {
                self.lines = grown;
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
fn find<const WIDTH: usize, const SLOTS: usize>(lines: &[Line], rest: u64) -> Option<u32> {
    let remainder = rest & mask::<WIDTH>();
    let home = home(rest, lines.len());
    let line = &lines[home];
    if let Some(id) = line.find::<WIDTH, SLOTS>(remainder, false) {
        return Some(id);
    }
    if !line.is_spilled() {
        return None;
    }
    lines[other(home, remainder, lines.len())].find::<WIDTH, SLOTS>(remainder, true)
}

/// Puts a new entry into its home line, its other line, or a place made free in either; `false` when there is none.
fn place<const WIDTH: usize, const SLOTS: usize>(lines: &mut [Line], rest: u64, id: u32) -> bool {
    if lines.is_empty() {
        return false;
    }
    let remainder = rest & mask::<WIDTH>();
    let home = home(rest, lines.len());
    if let Some(slot) = lines[home].free_slot::<WIDTH, SLOTS>() {
        lines[home].put::<WIDTH, SLOTS>(slot, remainder, id, false);
        return true;
    }
    let other = other(home, remainder, lines.len());
    if other == home {
        return false;
    }
    let spare = lines[other].free_slot::<WIDTH, SLOTS>();
    if let Some(slot) = spare.or_else(|| make_room::<WIDTH, SLOTS>(lines, other)) {
        lines[home].set_spilled();
        lines[other].put::<WIDTH, SLOTS>(slot, remainder, id, true);
        return true;
    }
    if let Some(slot) = make_room::<WIDTH, SLOTS>(lines, home) {
        lines[home].put::<WIDTH, SLOTS>(slot, remainder, id, false);
        return true;
    }
    false
}

/// Moves one entry of a full line to that entry's other line, if one of those has a free slot.
fn make_room<const WIDTH: usize, const SLOTS: usize>(lines: &mut [Line], full: usize) -> Option<usize> {
    for slot in 0..SLOTS {
        let remainder = lines[full].remainder::<WIDTH>(slot);
        let target = other(full, remainder, lines.len());
        if target == full {
            continue;
        }
        let Some(free) = lines[target].free_slot::<WIDTH, SLOTS>() else { continue };
        let id = lines[full].id::<WIDTH, SLOTS>(slot)?;
        let displaced = lines[full].is_displaced(slot);
        if !displaced {
            lines[full].set_spilled();
        }
        lines[target].put::<WIDTH, SLOTS>(free, remainder, id, !displaced);
        return Some(slot);
    }
    None
}

/// All entries with the bits that their lines imply put back.
fn entries<const WIDTH: usize, const SLOTS: usize>(lines: &[Line]) -> Vec<(u64, u32)> {
    let mut entries = Vec::with_capacity(lines.len() * SLOTS + 1);
    for (number, line) in lines.iter().enumerate() {
        for slot in 0..SLOTS {
            let Some(id) = line.id::<WIDTH, SLOTS>(slot) else { continue };
            let remainder = line.remainder::<WIDTH>(slot);
            let home = if line.is_displaced(slot) { other(number, remainder, lines.len()) } else { number };
            // The smallest number at home in this line, and from there the first one that ends in the remainder.
            let first = ((home as u128) << REST_BITS).div_ceil(lines.len() as u128) as u64;
            let rest = first + (remainder.wrapping_sub(first) & mask::<WIDTH>());
            entries.push((rest, id));
        }
    }
    entries
}

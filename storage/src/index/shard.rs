//! One shard of the index: a hash table of lines with two choices, which grows by an eighth at a time.

use super::REST_BITS;
use super::line;
use super::lines::LineArray;
use super::pool::{Pool, Spot};

/// Number of entries that a shard may hold before it grows, in 64ths of its slots. Lines of five or more slots with two
/// choices can be filled to 98 % and beyond; up to this limit an insertion displaces few entries.
const LOAD_MAX: usize = 61;
/// Number of entries for which a shard is sized, in 64ths of its slots: it can take a few more than expected.
const LOAD_EXPECTED: usize = 58;
/// A full shard grows by one part in this many.
const GROWTH: usize = 8;
/// Maximum number of entries displaced by one insertion.
const MOVES_MAX: usize = 100;
/// From this number of lines on, a line implies two bits: remainders of 48 bits are enough.
const LINES_FOR_48_BITS: usize = 1 << (REST_BITS - 48);
/// From this number of lines on, a line implies ten bits: remainders of 40 bits are enough.
const LINES_FOR_40_BITS: usize = 1 << (REST_BITS - 40);

/// Calls a function with the width of the remainders and the slots per line as constants, chosen by the number of
/// lines.
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

/// A shard; see the module documentation. Every call must be given the same pool.
#[derive(Debug, Default)]
pub(super) struct Shard {
    lines: LineArray,
    entries: u32,
}

impl Shard {
    pub(super) fn with_capacity(pool: &mut Pool, entries: usize) -> Self {
        let mut shard = Self::default();
        let lines_for = |slots: usize| (entries * 64).div_ceil(slots * LOAD_EXPECTED);
        // Fewer slots per line mean more lines, which may imply more slots per line: take the first layout that is
        // consistent.
        let layouts = [slots_in(LINES_FOR_40_BITS), slots_in(LINES_FOR_48_BITS), slots_in(1)];
        if let Some(lines) =
            layouts.map(lines_for).into_iter().zip(layouts).find(|&(lines, slots)| slots_in(lines) >= slots)
            && entries > 0
        {
            shard.lines.reset(pool, lines.0);
        }
        shard
    }

    /// Bytes of memory outside the pool.
    pub(super) fn memory_bytes(&self) -> usize {
        self.lines.memory_bytes()
    }

    /// The line at which a lookup starts, if it is in the pool.
    #[inline]
    pub(super) fn home_spot(&self, rest: u64) -> Option<Spot> {
        self.lines.spot(home(rest, self.lines.count()))
    }

    /// The line at which a lookup continues, or the insertion after it, if it does and the line is in the pool.
    #[inline]
    pub(super) fn other_spot(&self, pool: &Pool, rest: u64) -> Option<Spot> {
        match self.lines.count() {
            0 => None,
            count => with_layout!(count, other_spot(&self.lines, pool, rest)),
        }
    }

    #[inline]
    pub(super) fn get(&self, pool: &Pool, rest: u64) -> Option<u32> {
        match self.lines.count() {
            0 => None,
            count => with_layout!(count, find(&self.lines, pool, rest)),
        }
    }

    /// Stores an id unless there is one, which is then returned.
    #[inline]
    pub(super) fn insert(&mut self, pool: &mut Pool, rest: u64, id: u32) -> Option<u32> {
        if let Some(known) = self.get(pool, rest) {
            return Some(known);
        }
        let count = self.lines.count();
        if self.entries as usize * 64 >= count * slots_in(count) * LOAD_MAX {
            self.grow(pool, rest, id);
        } else if let Err((rest, id)) = with_layout!(count, place(&mut self.lines, pool, rest, id)) {
            self.grow(pool, rest, id);
        }
        self.entries += 1;
        None
    }

    /// Moves all entries and a new one into a larger number of lines.
    #[cold]
    fn grow(&mut self, pool: &mut Pool, rest: u64, id: u32) {
        let lines = &mut self.lines;
        let mut entries = with_layout!(lines.count(), entries(lines, pool));
        entries.push((rest, id));
        loop {
            lines.reset(pool, lines.count() + (lines.count() / GROWTH).max(1));
            let mut placed =
                entries.iter().map(|&(rest, id)| with_layout!(lines.count(), place(lines, pool, rest, id)));
            if placed.all(|outcome| outcome.is_ok()) {
                return;
            }
        }
    }
}

/// The home line of an entry: lines divide the range of numbers in order.
#[inline]
fn home(rest: u64, lines: usize) -> usize {
    ((u128::from(rest) * lines as u128) >> REST_BITS) as usize
}

/// The other of the two lines of an entry; applied twice, it returns the first.
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
fn other_spot<const WIDTH: usize, const SLOTS: usize>(
    lines: &LineArray,
    pool: &Pool,
    rest: u64,
) -> Option<Spot> {
    let remainder = rest & mask::<WIDTH>();
    let home = home(rest, lines.count());
    let line = lines.get(pool, home);
    // Following the other line may wait for memory: only for the few lookups that continue there.
    let continues = (line::is_spilled(line) || line::is_full::<WIDTH, SLOTS>(line))
        && line::find::<WIDTH, SLOTS>(line, remainder, false).is_none();
    if continues { lines.spot(other(home, remainder, lines.count())) } else { None }
}

#[inline]
fn find<const WIDTH: usize, const SLOTS: usize>(lines: &LineArray, pool: &Pool, rest: u64) -> Option<u32> {
    let remainder = rest & mask::<WIDTH>();
    let home = home(rest, lines.count());
    let line = lines.get(pool, home);
    if let Some(id) = line::find::<WIDTH, SLOTS>(line, remainder, false) {
        return Some(id);
    }
    if !line::is_spilled(line) {
        return None;
    }
    line::find::<WIDTH, SLOTS>(lines.get(pool, other(home, remainder, lines.count())), remainder, true)
}

/// An entry being inserted.
#[derive(Clone, Copy)]
struct ShardEntry {
    remainder: u64,
    id: u32,
    displaced: bool,
}

/// Puts a new entry into its home line or its other line; if both are full, displaces entries to their other lines.
/// Returns the entry for which there was no place in the end, which may not be the new one.
fn place<const WIDTH: usize, const SLOTS: usize>(
    lines: &mut LineArray,
    pool: &mut Pool,
    rest: u64,
    id: u32,
) -> Result<(), (u64, u32)> {
    if lines.count() == 0 {
        return Err((rest, id));
    }
    let mut line = home(rest, lines.count());
    let mut entry = ShardEntry { remainder: rest & mask::<WIDTH>(), id, displaced: false };
    if put_if_free::<WIDTH, SLOTS>(lines, pool, line, entry) {
        return Ok(());
    }
    for step in 0..MOVES_MAX {
        // The home of the entry is `line`, or it is displaced into it, and `line` was full.
        if !entry.displaced {
            line::set_spilled(lines.get_mut(pool, line));
        }
        line = other(line, entry.remainder, lines.count());
        entry.displaced = !entry.displaced;
        if put_if_free::<WIDTH, SLOTS>(lines, pool, line, entry) {
            return Ok(());
        }
        let movable = slot_with_room_elsewhere::<WIDTH, SLOTS>(lines, pool, line);
        let slot = movable.unwrap_or((entry.remainder as usize ^ step) % SLOTS);
        let full = lines.get_mut(pool, line);
        let pushed = ShardEntry {
            remainder: line::stored_remainder::<WIDTH>(full, slot),
            id: line::id::<WIDTH, SLOTS>(full, slot).unwrap_or_default(),
            displaced: line::is_displaced(full, slot),
        };
        line::put::<WIDTH, SLOTS>(full, slot, entry.remainder, entry.id, entry.displaced);
        entry = pushed;
    }
    let home = if entry.displaced { other(line, entry.remainder, lines.count()) } else { line };
    Err((rest_from::<WIDTH>(first_at(home, lines.count()), entry.remainder), entry.id))
}

/// Finds a slot of a full line whose entry has room in its other line.
///
/// Reads all other lines before examining any, so that memory is waited for once. Displacing an arbitrary entry and
/// hoping for room, one line after the other, took about four such waits in an index of a gigabyte.
fn slot_with_room_elsewhere<const WIDTH: usize, const SLOTS: usize>(
    lines: &LineArray,
    pool: &Pool,
    line: usize,
) -> Option<usize> {
    let full = lines.get(pool, line);
    let others: [usize; SLOTS] =
        std::array::from_fn(|slot| other(line, line::stored_remainder::<WIDTH>(full, slot), lines.count()));
    let read = others.iter().fold(0, |read, &other| read ^ lines.get(pool, other)[0]);
    std::hint::black_box(read);
    others.iter().position(|&other| !line::is_full::<WIDTH, SLOTS>(lines.get(pool, other)))
}

fn put_if_free<const WIDTH: usize, const SLOTS: usize>(
    lines: &mut LineArray,
    pool: &mut Pool,
    line: usize,
    entry: ShardEntry,
) -> bool {
    let line = lines.get_mut(pool, line);
    let Some(slot) = line::free_slot::<WIDTH, SLOTS>(line) else { return false };
    line::put::<WIDTH, SLOTS>(line, slot, entry.remainder, entry.id, entry.displaced);
    true
}

/// The smallest number whose home is a line.
#[inline]
fn first_at(line: usize, lines: usize) -> u64 {
    if line < 1 << (64 - REST_BITS) {
        ((line as u64) << REST_BITS).div_ceil(lines as u64)
    } else {
        ((line as u128) << REST_BITS).div_ceil(lines as u128) as u64
    }
}

/// The number that an entry represents: the first one from the start of its home line that ends in the remainder.
#[inline]
fn rest_from<const WIDTH: usize>(first: u64, remainder: u64) -> u64 {
    first + (remainder.wrapping_sub(first) & mask::<WIDTH>())
}

/// All entries, with the bits implied by their lines restored.
fn entries<const WIDTH: usize, const SLOTS: usize>(lines: &LineArray, pool: &Pool) -> Vec<(u64, u32)> {
    let mut entries = Vec::with_capacity(lines.count() * SLOTS + 1);
    for number in 0..lines.count() {
        let line = lines.get(pool, number);
        let first_here = first_at(number, lines.count());
        for slot in 0..SLOTS {
            let Some(id) = line::id::<WIDTH, SLOTS>(line, slot) else { break };
            let remainder = line::stored_remainder::<WIDTH>(line, slot);
            let first = match line::is_displaced(line, slot) {
                true => first_at(other(number, remainder, lines.count()), lines.count()),
                false => first_here,
            };
            entries.push((rest_from::<WIDTH>(first, remainder), id));
        }
    }
    entries
}

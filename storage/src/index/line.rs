//! One cache line of entries.
//!
//! `SLOTS` remainders of `WIDTH` bytes, then as many ids of four bytes (one higher; 0 is an empty slot), then zeros, and
//! in the last byte a flag for each slot whose entry is in its alternate line, and one for a home line that has entries
//! elsewhere. Slots fill from the front and are never emptied, only overwritten.

/// Bytes of a line: a cache line of the processors that crawls run on.
pub(super) const LINE_BYTES: usize = 64;

/// The bytes of a line; all zeros is an empty one.
pub(super) type Line = [u8; LINE_BYTES];

/// Set in the last byte when entries at home here live in their alternate line.
const SPILLED: u8 = 0x80;
const LAST: usize = LINE_BYTES - 1;

/// The stored bits of the entry in a slot.
#[inline]
pub(super) fn stored_remainder<const WIDTH: usize>(line: &Line, slot: usize) -> u64 {
    // Ids follow the remainders, so there are always eight bytes: one read, and the surplus masked off.
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&line[slot * WIDTH..slot * WIDTH + 8]);
    u64::from_le_bytes(bytes) & ((1 << (8 * WIDTH)) - 1)
}

/// The id in a slot, `None` for an empty one.
#[inline]
pub(super) fn id<const WIDTH: usize, const SLOTS: usize>(line: &Line, slot: usize) -> Option<u32> {
    let start = SLOTS * WIDTH + slot * 4;
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&line[start..start + 4]);
    u32::from_le_bytes(bytes).checked_sub(1)
}

/// Whether the entry in a slot is at home in its other line.
#[inline]
pub(super) fn is_displaced(line: &Line, slot: usize) -> bool {
    line[LAST] & (1 << slot) != 0
}

/// Whether entries at home here live in their other lines.
#[inline]
pub(super) fn is_spilled(line: &Line) -> bool {
    line[LAST] & SPILLED != 0
}

/// Notes that an entry at home here lives in its other line.
#[inline]
pub(super) fn set_spilled(line: &mut Line) {
    line[LAST] |= SPILLED;
}

/// The id of a remainder that is at home here, or displaced into here.
#[inline]
pub(super) fn find<const WIDTH: usize, const SLOTS: usize>(
    line: &Line,
    remainder: u64,
    displaced: bool,
) -> Option<u32> {
    // All slots are compared, without an unpredictable branch. From the last to the first: an empty slot
    // reads as remainder 0, and the full ones are in front.
    let mut found = SLOTS;
    for slot in (0..SLOTS).rev() {
        if stored_remainder::<WIDTH>(line, slot) == remainder && is_displaced(line, slot) == displaced {
            found = slot;
        }
    }
    if found < SLOTS { id::<WIDTH, SLOTS>(line, found) } else { None }
}

/// Whether there is no empty slot.
#[inline]
pub(super) fn is_full<const WIDTH: usize, const SLOTS: usize>(line: &Line) -> bool {
    id::<WIDTH, SLOTS>(line, SLOTS - 1).is_some()
}

/// The first empty slot.
#[inline]
pub(super) fn free_slot<const WIDTH: usize, const SLOTS: usize>(line: &Line) -> Option<usize> {
    if is_full::<WIDTH, SLOTS>(line) {
        return None;
    }
    (0..SLOTS).find(|&slot| id::<WIDTH, SLOTS>(line, slot).is_none())
}

/// Puts an entry into a slot.
#[inline]
pub(super) fn put<const WIDTH: usize, const SLOTS: usize>(
    line: &mut Line,
    slot: usize,
    remainder: u64,
    id: u32,
    displaced: bool,
) {
    line[slot * WIDTH..(slot + 1) * WIDTH].copy_from_slice(&remainder.to_le_bytes()[..WIDTH]);
    let start = SLOTS * WIDTH + slot * 4;
    line[start..start + 4].copy_from_slice(&(id + 1).to_le_bytes());
    line[LAST] = (line[LAST] & !(1 << slot)) | (u8::from(displaced) << slot);
}

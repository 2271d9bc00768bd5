//! One cache line of entries.
//!
//! Layout: `SLOTS` remainders of `WIDTH` bytes, then as many ids of four bytes (plus one; 0 marks an empty slot), then
//! zeros, and in the last byte one flag per slot whose entry is in its alternate line, and one for a home line that has
//! entries elsewhere. Slots fill from the front and are never emptied, only overwritten.

/// Bytes of a line: one cache line of common CPUs.
pub(super) const LINE_BYTES: usize = 64;

/// The bytes of a line; an empty line is all zeros.
pub(super) type IndexLine = [u8; LINE_BYTES];

/// Set in the last byte if entries whose home is this line are in their alternate line.
const SPILLED: u8 = 0x80;
const LAST: usize = LINE_BYTES - 1;

/// The stored bits of the entry in a slot.
#[inline]
pub(super) fn stored_remainder<const WIDTH: usize>(line: &IndexLine, slot: usize) -> u64 {
    // Ids follow the remainders, so eight bytes are always available: one read, and the surplus is masked off.
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&line[slot * WIDTH..slot * WIDTH + 8]);
    u64::from_le_bytes(bytes) & ((1 << (8 * WIDTH)) - 1)
}

/// The id in a slot; `None` if it is empty.
#[inline]
pub(super) fn id<const WIDTH: usize, const SLOTS: usize>(line: &IndexLine, slot: usize) -> Option<u32> {
    let start = SLOTS * WIDTH + slot * 4;
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&line[start..start + 4]);
    u32::from_le_bytes(bytes).checked_sub(1)
}

/// Whether the home of the entry in a slot is its other line.
#[inline]
pub(super) fn is_displaced(line: &IndexLine, slot: usize) -> bool {
    line[LAST] & (1 << slot) != 0
}

/// Whether entries whose home is this line are in their other lines.
#[inline]
pub(super) fn is_spilled(line: &IndexLine) -> bool {
    line[LAST] & SPILLED != 0
}

/// Records that an entry whose home is this line is in its other line.
#[inline]
pub(super) fn set_spilled(line: &mut IndexLine) {
    line[LAST] |= SPILLED;
}

/// Finds the id of a remainder whose home is this line, or, if `displaced`, the other one.
#[inline]
pub(super) fn find<const WIDTH: usize, const SLOTS: usize>(
    line: &IndexLine,
    remainder: u64,
    displaced: bool,
) -> Option<u32> {
    // Compares all slots without unpredictable branches, from last to first: an empty slot reads as remainder 0, and
    // the occupied ones come first.
    let mut found = SLOTS;
    for slot in (0..SLOTS).rev() {
        if stored_remainder::<WIDTH>(line, slot) == remainder && is_displaced(line, slot) == displaced {
            found = slot;
        }
    }
    if found < SLOTS { id::<WIDTH, SLOTS>(line, found) } else { None }
}

/// Whether the line has no empty slot.
#[inline]
pub(super) fn is_full<const WIDTH: usize, const SLOTS: usize>(line: &IndexLine) -> bool {
    id::<WIDTH, SLOTS>(line, SLOTS - 1).is_some()
}

/// The first empty slot.
#[inline]
pub(super) fn free_slot<const WIDTH: usize, const SLOTS: usize>(line: &IndexLine) -> Option<usize> {
    if is_full::<WIDTH, SLOTS>(line) {
        return None;
    }
    (0..SLOTS).find(|&slot| id::<WIDTH, SLOTS>(line, slot).is_none())
}

/// Stores an entry in a slot.
#[inline]
pub(super) fn put<const WIDTH: usize, const SLOTS: usize>(
    line: &mut IndexLine,
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

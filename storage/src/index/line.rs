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

/// What the bytes of a line say.
pub(super) trait Slots {
    /// The stored bits of the entry in a slot.
    fn remainder<const WIDTH: usize>(&self, slot: usize) -> u64;
    /// The id in a slot, `None` for an empty one.
    fn id<const WIDTH: usize, const SLOTS: usize>(&self, slot: usize) -> Option<u32>;
    /// Whether the entry in a slot is at home in its other line.
    fn is_displaced(&self, slot: usize) -> bool;
    /// Whether entries at home here live in their other lines.
    fn is_spilled(&self) -> bool;
    /// Notes that an entry at home here lives in its other line.
    fn set_spilled(&mut self);
    /// The id of a remainder that is at home here, or displaced into here.
    fn find<const WIDTH: usize, const SLOTS: usize>(&self, remainder: u64, displaced: bool) -> Option<u32>;
    /// The first empty slot.
    fn free_slot<const WIDTH: usize, const SLOTS: usize>(&self) -> Option<usize>;
    /// Puts an entry into a slot.
    fn put<const WIDTH: usize, const SLOTS: usize>(
        &mut self,
        slot: usize,
        remainder: u64,
        id: u32,
        displaced: bool,
    );
}

impl Slots for Line {
    #[inline]
    fn remainder<const WIDTH: usize>(&self, slot: usize) -> u64 {
        // Ids follow the remainders, so there are always eight bytes: one read, and the surplus masked off.
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self[slot * WIDTH..slot * WIDTH + 8]);
        u64::from_le_bytes(bytes) & ((1 << (8 * WIDTH)) - 1)
    }

    #[inline]
    fn id<const WIDTH: usize, const SLOTS: usize>(&self, slot: usize) -> Option<u32> {
        let start = SLOTS * WIDTH + slot * 4;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self[start..start + 4]);
        u32::from_le_bytes(bytes).checked_sub(1)
    }

    #[inline]
    fn is_displaced(&self, slot: usize) -> bool {
        self[LAST] & (1 << slot) != 0
    }

    #[inline]
    fn is_spilled(&self) -> bool {
        self[LAST] & SPILLED != 0
    }

    #[inline]
    fn set_spilled(&mut self) {
        self[LAST] |= SPILLED;
    }

    #[inline]
    fn find<const WIDTH: usize, const SLOTS: usize>(&self, remainder: u64, displaced: bool) -> Option<u32> {
        // All slots are compared, without a branch that nobody could predict. From the last to the first: an empty slot
        // reads as remainder 0, and the full ones are in front.
        let mut found = SLOTS;
        for slot in (0..SLOTS).rev() {
            if self.remainder::<WIDTH>(slot) == remainder && self.is_displaced(slot) == displaced {
                found = slot;
            }
        }
        if found < SLOTS { self.id::<WIDTH, SLOTS>(found) } else { None }
    }

    #[inline]
    fn free_slot<const WIDTH: usize, const SLOTS: usize>(&self) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.id::<WIDTH, SLOTS>(slot).is_none())
    }

    #[inline]
    fn put<const WIDTH: usize, const SLOTS: usize>(
        &mut self,
        slot: usize,
        remainder: u64,
        id: u32,
        displaced: bool,
    ) {
        self[slot * WIDTH..(slot + 1) * WIDTH].copy_from_slice(&remainder.to_le_bytes()[..WIDTH]);
        let start = SLOTS * WIDTH + slot * 4;
        self[start..start + 4].copy_from_slice(&(id + 1).to_le_bytes());
        self[LAST] = (self[LAST] & !(1 << slot)) | (u8::from(displaced) << slot);
    }
}

//! One cache line of entries.
//!
//! `SLOTS` remainders of `WIDTH` bytes, then as many ids of four bytes (one higher; 0 is an empty slot), then zeros, and
//! in the last byte a flag for each slot whose entry is in its alternate line, and one for a home line that has entries
//! elsewhere. Slots fill from the front and are never emptied, only overwritten.

/// Set in the last byte when entries at home here live in their alternate line.
const SPILLED: u8 = 0x80;
const LAST: usize = 63;

/// 64 bytes, aligned so that a look-up costs one cache miss.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [u8; 64]);

impl Line {
    pub(super) const EMPTY: Self = Self([0; 64]);

    #[inline]
    pub(super) fn remainder<const WIDTH: usize>(&self, slot: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..WIDTH].copy_from_slice(&self.0[slot * WIDTH..(slot + 1) * WIDTH]);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn stored_id<const WIDTH: usize, const SLOTS: usize>(&self, slot: usize) -> u32 {
        let start = SLOTS * WIDTH + slot * 4;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[start..start + 4]);
        u32::from_le_bytes(bytes)
    }

    /// The id in a slot, `None` for an empty one.
    #[inline]
    pub(super) fn id<const WIDTH: usize, const SLOTS: usize>(&self, slot: usize) -> Option<u32> {
        self.stored_id::<WIDTH, SLOTS>(slot).checked_sub(1)
    }

    #[inline]
    pub(super) fn is_displaced(&self, slot: usize) -> bool {
        self.0[LAST] & (1 << slot) != 0
    }

    #[inline]
    pub(super) fn is_spilled(&self) -> bool {
        self.0[LAST] & SPILLED != 0
    }

    #[inline]
    pub(super) fn set_spilled(&mut self) {
        self.0[LAST] |= SPILLED;
    }

    /// The id of a remainder that is at home here, or displaced into here.
    #[inline]
    pub(super) fn find<const WIDTH: usize, const SLOTS: usize>(
        &self,
        remainder: u64,
        displaced: bool,
    ) -> Option<u32> {
        for slot in 0..SLOTS {
            if self.remainder::<WIDTH>(slot) == remainder && self.is_displaced(slot) == displaced {
                // An empty slot reads as remainder 0, whose id is none; a later slot can't be full then.
                return self.id::<WIDTH, SLOTS>(slot);
            }
        }
        None
    }

    #[inline]
    pub(super) fn free_slot<const WIDTH: usize, const SLOTS: usize>(&self) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.stored_id::<WIDTH, SLOTS>(slot) == 0)
    }

    #[inline]
    pub(super) fn put<const WIDTH: usize, const SLOTS: usize>(
        &mut self,
        slot: usize,
        remainder: u64,
        id: u32,
        displaced: bool,
    ) {
        self.0[slot * WIDTH..(slot + 1) * WIDTH].copy_from_slice(&remainder.to_le_bytes()[..WIDTH]);
        let start = SLOTS * WIDTH + slot * 4;
        self.0[start..start + 4].copy_from_slice(&(id + 1).to_le_bytes());
        self.0[LAST] = (self.0[LAST] & !(1 << slot)) | (u8::from(displaced) << slot);
    }
}

//! Recent payloads: guesses which ones will be stored as revisits, before the owner of the state decides.

use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of payloads remembered: a mebibyte.
const SLOTS: usize = 1 << 17;

/// The payloads that processing threads saw last. Each has one slot, which the next payload for the slot overwrites.
#[derive(Debug)]
pub(super) struct SeenPayloads(Box<[AtomicU64]>);

impl Default for SeenPayloads {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl SeenPayloads {
    /// Notes the payload with this digest; returns whether it was seen before.
    pub(super) fn note(&self, digest: &[u8; 16]) -> bool {
        let (slot, mark) = digest.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let slot = self.0.get(number(slot) as usize % SLOTS);
        slot.is_some_and(|slot| slot.swap(number(mark), Ordering::Relaxed) == number(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::SeenPayloads;

    #[test]
    fn a_payload_is_seen_until_another_takes_its_place() {
        let seen = SeenPayloads::default();
        let (one, other) = ([1; 16], [[1; 8], [2; 8]].concat().try_into().unwrap());
        assert_eq!([one, one, other, one].map(|digest| seen.note(&digest)), [false, true, false, false]);
    }
}

//! What is kept from search to search: open indexes, and texts of captures that results have shown lately. What a capture says never
//! changes, so texts outlive checkpoints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_storage::{Capture, SegmentId, Store};
use lru::LruCache;

use crate::change::{self, VersionError};
use crate::search::Readers;

/// Bytes of texts that are kept.
const BYTES_MAX: usize = 16 << 20;

/// What is kept of any number of archives.
#[derive(Debug, Default)]
pub struct Kept {
    pub(super) indexes: Readers,
    texts: Mutex<Texts>,
}

#[derive(Debug)]
struct Texts {
    texts: LruCache<Key, Arc<str>>,
    bytes: usize,
}

/// A payload, where it is stored. The state tells archives apart, and an archive before and after a rebuild or an erase.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    state: u64,
    segment: SegmentId,
    offset: u64,
    digest: [u8; 16],
}

impl Default for Texts {
    fn default() -> Self {
        Self { texts: LruCache::unbounded(), bytes: 0 }
    }
}

impl Kept {
    /// The text of a capture; empty for what has none or takes too long to read, and for a revisit whose original is elsewhere.
    pub(super) fn text(&self, store: &Store, capture: &Capture) -> Result<Arc<str>, VersionError> {
        let Some(original) = store.original(capture)? else { return Ok(Arc::default()) };
        let (state, location) = (store.state().identity(), original.location);
        let key = Key { state, segment: location.segment, offset: location.offset, digest: original.digest };
        if let Some(text) = self.texts().texts.get(&key) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = change::text_of(store, &original)?.into();
        self.texts().keep(key, Arc::clone(&text), BYTES_MAX);
        Ok(text)
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a text in memory, with what finds it.
fn bytes_of(text: &str) -> usize {
    text.len() + 2 * size_of::<Key>()
}

impl Texts {
    fn keep(&mut self, key: Key, text: Arc<str>, bytes_max: usize) {
        self.bytes += bytes_of(&text);
        let replaced = self.texts.put(key, text);
        self.bytes -= replaced.map_or(0, |text| bytes_of(&text));
        while self.bytes > bytes_max {
            let Some((_, text)) = self.texts.pop_lru() else { break };
            self.bytes -= bytes_of(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_that_were_asked_for_last_are_kept() {
        let mut kept = Texts::default();
        let key = |offset| Key { state: 1, segment: SegmentId(1), offset, digest: [0; 16] };
        let text = |text: &str| Arc::<str>::from(text);
        let max = 3 * bytes_of(&text("abc"));
        for offset in 0..3 {
            kept.keep(key(offset), text("abc"), max);
        }
        assert!(kept.texts.get(&key(0)).is_some());
        kept.keep(key(2), text("abc"), max);
        kept.keep(key(3), text("abc"), max);
        let has = [0, 1, 2, 3].map(|offset| kept.texts.contains(&key(offset)));
        assert_eq!((has, kept.bytes), ([true, false, true, true], max));
        kept.keep(key(4), text(&"x".repeat(max)), max);
        assert_eq!((kept.texts.len(), kept.bytes), (0, 0));
    }
}

//! Cache shared between searches: open indexes, and texts of captures shown in recent results. The content of a capture
//! never changes, so texts outlive checkpoints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_base::access::Access;
use archive_books::change::{self, VersionError};
use archive_books::search::Readers;
use archive_storage::{Capture, SegmentId, Store};
use lru::LruCache;

/// Maximum bytes of compressed texts in the cache.
const BYTES_MAX: usize = 16 << 20;

/// zstd's fastest level, which compresses texts to a third.
const LEVEL: i32 = 1;

/// The cache, for any number of archives.
#[derive(Debug, Default)]
pub struct PageTextCache {
    pub(super) indexes: Readers,
    texts: Mutex<PageTexts>,
}

#[derive(Debug)]
struct PageTexts {
    texts: LruCache<PayloadKey, CompressedText>,
    bytes: usize,
}

/// A compressed text: three times as many fit, and decompressing one takes a tenth of the time to read it from the
/// archive.
#[derive(Clone, Debug)]
struct CompressedText {
    bytes: Arc<[u8]>,
    length: usize,
}

/// Location of a stored payload. The state's identity distinguishes archives, and an archive before and after a rebuild
/// or an erasure.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PayloadKey {
    state: u64,
    segment: SegmentId,
    offset: u64,
    digest: [u8; 16],
}

impl Default for PageTexts {
    fn default() -> Self {
        Self { texts: LruCache::unbounded(), bytes: 0 }
    }
}

impl PageTextCache {
    /// Returns the text of a capture; empty if it has none or takes too long to read, or for a revisit whose original
    /// is in another archive.
    pub(super) fn text(
        &self,
        store: &Store,
        access: &Access,
        capture: &Capture,
    ) -> Result<String, VersionError> {
        let Some(original) = store.original(capture)? else { return Ok(String::new()) };
        let (state, location) = (store.state().identity(), original.location);
        let key =
            PayloadKey { state, segment: location.segment, offset: location.offset, digest: original.digest };
        let kept = self.texts().texts.get(&key).cloned();
        if let Some(text) = kept.and_then(|kept| kept.unpacked()) {
            return Ok(text);
        }
        let (text, has_parts) = change::text_of(store, access, capture)?;
        // Parts of other captures depend on who asks, and when.
        if let Some(packed) = CompressedText::of(&text).filter(|_| !has_parts) {
            self.texts().keep(key, packed, BYTES_MAX);
        }
        Ok(text)
    }

    fn texts(&self) -> MutexGuard<'_, PageTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompressedText {
    /// Compresses a text; one that cannot be compressed is not cached.
    fn of(text: &str) -> Option<Self> {
        let bytes = zstd::bulk::compress(text.as_bytes(), LEVEL).ok()?;
        Some(Self { bytes: bytes.into(), length: text.len() })
    }

    fn unpacked(&self) -> Option<String> {
        String::from_utf8(zstd::bulk::decompress(&self.bytes, self.length).ok()?).ok()
    }

    /// Bytes in memory, including those of the cache's own structures.
    fn size(&self) -> usize {
        self.bytes.len() + 2 * (size_of::<PayloadKey>() + size_of::<Self>())
    }
}

impl PageTexts {
    fn keep(&mut self, key: PayloadKey, text: CompressedText, bytes_max: usize) {
        self.bytes += text.size();
        let replaced = self.texts.put(key, text);
        self.bytes -= replaced.map_or(0, |text| text.size());
        while self.bytes > bytes_max {
            let Some((_, text)) = self.texts.pop_lru() else { break };
            self.bytes -= text.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_that_were_asked_for_last_are_kept() {
        let mut kept = PageTexts::default();
        let key = |offset| PayloadKey { state: 1, segment: SegmentId(1), offset, digest: [0; 16] };
        let text = |text: &str| CompressedText::of(text).unwrap();
        assert_eq!(text("abc").unpacked().unwrap(), "abc");
        let max = 3 * text("abc").size();
        for offset in 0..3 {
            kept.keep(key(offset), text("abc"), max);
        }
        assert!(kept.texts.get(&key(0)).is_some());
        kept.keep(key(2), text("abc"), max);
        kept.keep(key(3), text("abc"), max);
        let has = [0, 1, 2, 3].map(|offset| kept.texts.contains(&key(offset)));
        assert_eq!((has, kept.bytes), ([true, false, true, true], max));
        let mut random = fastrand::Rng::with_seed(1);
        let unlike: String = (0..max).map(|_| random.alphanumeric()).collect();
        kept.keep(key(4), text(&(unlike.clone() + &unlike)), max);
        assert_eq!((kept.texts.len(), kept.bytes), (0, 0));
    }
}

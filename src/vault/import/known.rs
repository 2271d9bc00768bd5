//! What the archive already has: captures, record identifiers, payloads.
//!
//! Two captures of the same URL and time are the same if their records have the same identifier, date and content. The
//! captures of a URL and time are read from the archive once and then cached, so that many of them cost no more than as
//! many other captures.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

use archive_storage::warc::Date;
use archive_storage::{Capture, CaptureId, CaptureKind, Digest, Store, StoreError, UrlId};

use super::prepare::{IMPORTED_ID, PreparedCapture};

/// Maximum number of cached marks of captures; beyond it, the cache is cleared.
const MARKS_MAX: usize = 1 << 20;

/// Distinguishes captures of the same URL and time.
#[derive(Debug, Clone, Default)]
pub(super) struct CaptureIdentity {
    /// `WARC-Record-ID`.
    pub(super) id: Option<String>,
    /// The date, unless it equals the time; it may be less or more precise.
    pub(super) date: String,
    /// Identifies the content, see [`content`].
    pub(super) content: String,
}

/// Result of looking up a capture that is to be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportMatch {
    /// The archive already has this capture.
    Before,
    /// Another record has the same identifier.
    Namesake,
    /// Neither is the case.
    Never,
}

/// What an import has found in the archive or added to it.
pub(super) struct ImportedCaptures {
    hasher: RandomState,
    /// Marks of the captures of a URL and a time.
    moments: HashMap<(UrlId, i64), HashSet<u64>>,
    marks: usize,
    /// Identifiers of records in this import.
    ids: Recent<u64, ()>,
    /// Captures by the prefixes of their stated digests, if the archive indexes them by another digest.
    payloads: Recent<[u8; 16], CaptureId>,
}

impl ImportedCaptures {
    /// Creates a cache of at most `bytes` bytes, plus the marks of captures.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            moments: HashMap::new(),
            marks: 0,
            ids: Recent::new(bytes / 3 / 16),
            payloads: Recent::new(bytes / 3 * 2 / 48),
        }
    }

    fn mark(&self, what: impl Hash) -> u64 {
        self.hasher.hash_one(what)
    }

    /// Returns the hashes that identify a capture: of everything, of everything but its identifier, and of its
    /// identifier.
    fn marks(&self, identity: &CaptureIdentity) -> [Option<u64>; 3] {
        let CaptureIdentity { id, date, content } = identity;
        [
            id.as_ref().map(|id| self.mark((0, id, date, content))),
            Some(self.mark((1, date, content))),
            id.as_ref().map(|id| self.mark((2, id))),
        ]
    }

    /// Looks up a capture, and caches its identifier.
    pub(super) fn look(
        &mut self,
        store: &Store,
        prepared: &PreparedCapture,
    ) -> Result<ImportMatch, StoreError> {
        let identity = &prepared.identity;
        let [whole, nameless, name] = self.marks(identity);
        let is_namesake = name.is_some_and(|name| self.ids.get(&name).is_some());
        if let Some(name) = name {
            self.ids.insert(name, ());
        }
        let state = store.state();
        let time = prepared.outcome.time.timestamp_micros();
        let Some(url) = state.find(&prepared.outcome.name())? else {
            return Ok(ImportMatch::of(is_namesake));
        };
        if !self.moments.contains_key(&(url, time)) {
            let Some((newest, _)) = state.nearest(url, time)?.filter(|(_, nearest)| nearest.time == time)
            else {
                return Ok(ImportMatch::of(is_namesake));
            };
            self.read_moment(store, (url, time), newest)?;
        }
        let moment = self.moments.get(&(url, time));
        let has = |mark: u64| moment.is_some_and(|moment| moment.contains(&mark));
        let renamed = self.marks(&CaptureIdentity { id: prepared.new_id(), ..identity.clone() });
        let is_same = match whole {
            Some(whole) => has(whole) || renamed[0].is_some_and(has),
            None => nameless.is_some_and(has),
        };
        Ok(if is_same { ImportMatch::Before } else { ImportMatch::of(is_namesake || name.is_some_and(has)) })
    }

    /// Whether the archive has the capture that a conversion was made from: one of its URL and second by another kind of
    /// record, or the record that it names, if this import has read it.
    pub(super) fn has_source(&self, store: &Store, prepared: &PreparedCapture) -> Result<bool, StoreError> {
        let named = prepared.made_from.as_ref().map(|id| self.mark((2, id)));
        if named.is_some_and(|name| self.ids.get(&name).is_some()) {
            return Ok(true);
        }
        let Some(url) = store.state().find(&prepared.outcome.name())? else { return Ok(false) };
        let time = prepared.outcome.time;
        let near = store.state().nearest(url, time.timestamp_micros())?;
        Ok(near.is_some_and(|(_, near)| {
            near.time.div_euclid(1_000_000) == time.timestamp()
                && near.status > 0
                && near.kind != CaptureKind::Resource
        }))
    }

    fn read_moment(
        &mut self,
        store: &Store,
        moment: (UrlId, i64),
        newest: CaptureId,
    ) -> Result<(), StoreError> {
        if self.marks >= MARKS_MAX {
            (self.moments, self.marks) = (HashMap::new(), 0);
        }
        let mut marks = HashSet::new();
        for capture in store.state().history_from(newest) {
            let (_, capture) = capture?;
            if capture.time != moment.1 {
                break;
            }
            marks.extend(self.marks(&stored(store, &capture)?).into_iter().flatten());
        }
        self.marks += marks.len();
        self.moments.insert(moment, marks);
        Ok(())
    }

    /// Adds a capture that is now in the archive.
    pub(super) fn add(
        &mut self,
        store: &Store,
        prepared: &PreparedCapture,
        capture: CaptureId,
    ) -> Result<(), StoreError> {
        let Capture { url, time, digest, .. } = store.state().capture(capture)?;
        let marks = self.marks(&prepared.identity);
        if let Some(moment) = self.moments.get_mut(&(url, time)) {
            let before = moment.len();
            moment.extend(marks.into_iter().flatten());
            self.marks += moment.len() - before;
        }
        if prepared.outcome.kind.has_payload()
            && let Some(stated) = prepared.stated.map(|stated| stated.prefix())
            && stated != digest
            && self.payloads.get(&stated).is_none()
        {
            self.payloads.insert(stated, capture);
        }
        Ok(())
    }

    /// Returns the capture of this import that states a digest.
    pub(super) fn payload(&self, digest: &Digest) -> Option<CaptureId> {
        self.payloads.get(&digest.prefix()).copied()
    }
}

impl ImportMatch {
    const fn of(is_namesake: bool) -> Self {
        if is_namesake { Self::Namesake } else { Self::Never }
    }
}

/// Returns the identity of a stored capture.
fn stored(store: &Store, capture: &Capture) -> Result<CaptureIdentity, StoreError> {
    if capture.kind == CaptureKind::Failed {
        let record = store.record(capture.location)?;
        let fields = record.fields();
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        return Ok(CaptureIdentity {
            id: field(IMPORTED_ID),
            date: String::new(),
            content: field("error").unwrap_or_default(),
        });
    }
    let header = store.reader().header(capture.location)?;
    let digest = |name| header.get(name).and_then(|text| text.parse().ok());
    // A record without a block need not state its digest.
    let block = digest("WARC-Block-Digest").filter(|_| header.content_length() != Some(0));
    let payload = digest("WARC-Payload-Digest").filter(|_| !capture.kind.has_payload());
    Ok(CaptureIdentity {
        id: header.record_id().map(str::to_owned),
        date: header.get("WARC-Date").map(unusual_date).unwrap_or_default(),
        content: content(block, payload),
    })
}

/// Identifies the content of a record by the digest of its block and, for a revisit, that of its payload. The content
/// of a capture without a response is the error.
pub(super) fn content(block: Option<Digest>, payload: Option<Digest>) -> String {
    [block, payload].into_iter().flatten().map(|digest| digest.to_string()).collect()
}

/// Returns a date, unless it equals its time to the microsecond.
pub(super) fn unusual_date(date: &str) -> String {
    let is_time = |date: Date| !date.is_partial && date.time.timestamp_subsec_nanos().is_multiple_of(1000);
    if Date::parse(date).is_some_and(is_time) { String::new() } else { date.to_owned() }
}

/// A map that evicts the oldest entries, half of them at a time.
struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq, V> Recent<K, V> {
    fn new(entries_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (entries_max / 2).max(1) }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut recent = Recent::new(8);
        for number in 0..100 {
            recent.insert(number, ());
        }
        assert!((96..100).all(|number| recent.get(&number).is_some()));
        assert!((0..90).all(|number| recent.get(&number).is_none()));
        assert!(recent.young.len() + recent.old.len() <= 8);
    }
}

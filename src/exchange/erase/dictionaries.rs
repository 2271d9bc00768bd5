//! Which segments have bytes of what goes in their dictionaries.
//!
//! A dictionary holds whole versions of pages, or stretches of many. Content is compared by fingerprints chosen by winnowing
//! (Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", 2003), which find any stretch of
//! 31 bytes ([`GRAM_BYTES`] + [`WINDOW`] - 1) that two contents share. What captures that stay in the same segments have too is nobody's own, and
//! does not count: otherwise a site's template would lead to all its segments.

use std::collections::{HashMap, HashSet};

use archive_storage::segment;
use archive_storage::warc::RecordType;
use archive_storage::{SegmentId, Store};
use memchr::memmem;

use super::{EraseError, Intent};
use crate::exchange::export::ExportError;

/// Bytes of which a fingerprint is made.
const GRAM_BYTES: usize = 20;

/// Fingerprints among which the least is taken.
const WINDOW: usize = 12;

/// Fingerprints that are kept in memory: of some 50 MiB. With more to look for, every dictionary is taken to hold some of it.
const FINGERPRINTS_MAX: usize = 8 << 20;

/// URLs that are looked for one by one.
const URLS_MAX: usize = 1000;

/// The segments whose dictionaries hold bytes of the captures, or of URLs that are to be forgotten.
pub(super) fn holding(store: &Store, intent: &Intent) -> Result<Vec<SegmentId>, EraseError> {
    let mut urls = Vec::new();
    for page in intent.pages.iter().filter(|_| intent.forget_url) {
        urls.push(store.state().url(*page)?);
    }
    let wanted = fingerprints_of(store, intent)?.filter(|_| urls.len() <= URLS_MAX);
    let reader = store.reader();
    let mut found = Vec::new();
    for info in store.closed_segments() {
        let Some(dictionary) = reader.dictionary_bytes(info.id)? else { continue };
        let holds = wanted.as_ref().is_none_or(|wanted| {
            let mut holds = urls.iter().any(|url| memmem::find(&dictionary, url.as_bytes()).is_some());
            fingerprints(&dictionary, &mut |fingerprint| holds |= wanted.contains(&fingerprint));
            holds
        });
        if holds {
            found.push(info.id);
        }
    }
    Ok(found)
}

/// The fingerprints that only the captures have; nothing if they are too many.
fn fingerprints_of(store: &Store, intent: &Intent) -> Result<Option<HashSet<u64>>, EraseError> {
    let mut places: HashMap<SegmentId, HashSet<u64>> = HashMap::new();
    for id in intent.all() {
        let place = store.state().capture(id)?.location;
        places.entry(place.segment).or_default().insert(place.offset);
    }
    let mut wanted = HashSet::new();
    for goes in [true, false] {
        for (segment, offsets) in &places {
            let mut is_wanted = false;
            each_record(store, *segment, &mut |offset, starts, content| {
                if starts {
                    is_wanted = offsets.contains(&offset);
                }
                if is_wanted != goes || wanted.len() > FINGERPRINTS_MAX {
                    return;
                }
                fingerprints(content, &mut |fingerprint| {
                    let _ = if goes { wanted.insert(fingerprint) } else { wanted.remove(&fingerprint) };
                });
            })?;
        }
    }
    Ok((wanted.len() <= FINGERPRINTS_MAX).then_some(wanted))
}

/// Hands over every record's place and content, and whether it begins a capture.
fn each_record(
    store: &Store,
    id: SegmentId,
    take: &mut dyn FnMut(u64, bool, &[u8]),
) -> Result<(), EraseError> {
    let file = store.state().segment(id).map(|entry| entry.file.clone()).unwrap_or_default();
    let mut starts = true;
    for record in segment::records(store.path(), id, &file, 0)? {
        let record =
            record.map_err(|source| EraseError::Unreadable(ExportError::Record { segment: id, source }))?;
        let record_type = record.header.record_type();
        if record_type == RecordType::Warcinfo {
            continue;
        }
        take(record.offset, starts, &record.content);
        starts = record_type == RecordType::Metadata;
    }
    Ok(())
}

/// Hands over the fingerprints of some bytes; of fewer than [`GRAM_BYTES`] there is none.
fn fingerprints(bytes: &[u8], take: &mut dyn FnMut(u64)) {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let out = (0..GRAM_BYTES).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let (mut rolling, mut recent, mut last) = (0_u64, [u64::MAX; WINDOW], None);
    for (number, byte) in bytes.iter().enumerate() {
        rolling = rolling.wrapping_mul(BASE).wrapping_add(u64::from(*byte) + 1);
        if let Some(gone) = number.checked_sub(GRAM_BYTES).and_then(|gone| bytes.get(gone)) {
            rolling = rolling.wrapping_sub(out.wrapping_mul(u64::from(*gone) + 1));
        }
        let Some(gram) = (number + 1).checked_sub(GRAM_BYTES) else { continue };
        // The bits above are better mixed than those below.
        let mixed = (rolling ^ rolling >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        recent[gram % WINDOW] = mixed ^ mixed >> 32;
        let is_full = gram + 1 >= WINDOW || number + 1 == bytes.len();
        let least = recent.iter().copied().min();
        if is_full && least != last {
            least.into_iter().for_each(&mut *take);
            last = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GRAM_BYTES, WINDOW, fingerprints};
    use std::collections::HashSet;

    fn of(bytes: &[u8]) -> HashSet<u64> {
        let mut found = HashSet::new();
        fingerprints(bytes, &mut |fingerprint| {
            found.insert(fingerprint);
        });
        found
    }

    #[test]
    fn a_stretch_that_two_contents_share_is_found_wherever_it_stands() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut bytes = |count: usize| (0..count).map(|_| random.u8(..)).collect::<Vec<u8>>();
        for length in [GRAM_BYTES + WINDOW - 1, 100] {
            for before in [0, 1, 17, 400] {
                let shared = bytes(length);
                let one = [bytes(333), shared.clone(), bytes(50)].concat();
                let other = [bytes(before), shared, bytes(77)].concat();
                assert!(!of(&one).is_disjoint(&of(&other)), "{length} bytes after {before}");
            }
        }
        assert!(of(&bytes(10_000)).is_disjoint(&of(&bytes(10_000))));
        assert!(of(&bytes(10)).is_empty());
        assert_eq!(of(&[7; 1000]).len(), 1);
    }
}

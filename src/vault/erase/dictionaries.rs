//! Finds the segments whose dictionaries contain bytes of erased captures.
//!
//! A dictionary holds whole versions of pages, or parts of many. Content is compared by fingerprints chosen by
//! winnowing (Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", 2003), which
//! find any 31 bytes ([`GRAM_BYTES`] + [`WINDOW`] - 1) that two contents share. Content that also occurs in remaining
//! captures of the dictionary's segment does not count: otherwise a template would match all segments of its site.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use archive_storage::segment;
use archive_storage::warc::RecordType;
use archive_storage::{SegmentId, Store};
use memchr::memmem;

use super::{EraseError, EraseIntent};

/// Number of bytes that a fingerprint is computed from.
const GRAM_BYTES: usize = 20;

/// Number of consecutive fingerprints from which the least is chosen.
const WINDOW: usize = 12;

/// Maximum number of fingerprints in memory, about those of 50 MiB. If there are more, every dictionary is assumed to
/// contain some.
const FINGERPRINTS_MAX: usize = 8 << 20;

/// Bytes of remaining captures of a segment that are examined for common content. Content not found in them is assumed
/// to belong to the erased captures alone.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Maximum number of URLs that are searched for individually.
const URLS_MAX: usize = 1000;

/// Offsets of erased captures, by segment.
type Places = HashMap<SegmentId, HashSet<u64>>;

/// Returns the segments whose dictionaries contain bytes of the captures, or URLs that are to be forgotten.
pub(super) fn holding(store: &Store, intent: &EraseIntent) -> Result<Vec<SegmentId>, EraseError> {
    let mut urls = Vec::new();
    for page in intent.pages.iter().filter(|_| intent.forget_url) {
        urls.push(store.state().url(*page)?);
    }
    let mut places = Places::new();
    for id in intent.all() {
        let place = store.state().capture(id)?.location;
        places.entry(place.segment).or_default().insert(place.offset);
    }
    let mut wanted = fingerprints_of(store, &places)?.filter(|_| urls.len() <= URLS_MAX);
    if let Some(wanted) = &mut wanted {
        for (segment, goes) in &places {
            remove_common(store, *segment, goes, wanted)?;
        }
    }
    let (reader, nothing) = (store.reader(), HashSet::new());
    let mut found = Vec::new();
    for info in store.closed_segments() {
        let Some(dictionary) = reader.dictionary_bytes(info.id)? else { continue };
        let holds = match &mut wanted {
            None => true,
            Some(_) if urls.iter().any(|url| memmem::find(&dictionary, url.as_bytes()).is_some()) => true,
            Some(wanted) => {
                let mut held = HashSet::new();
                fingerprints(&dictionary, &mut |fingerprint| {
                    if wanted.contains(&fingerprint) {
                        held.insert(fingerprint);
                    }
                });
                let mut own = held.clone();
                remove_common(store, info.id, places.get(&info.id).unwrap_or(&nothing), &mut own)?;
                for common in held.difference(&own) {
                    wanted.remove(common);
                }
                !own.is_empty()
            }
        };
        if holds {
            found.push(info.id);
        }
    }
    Ok(found)
}

/// Returns the fingerprints of the captures, or `None` if there are more than [`FINGERPRINTS_MAX`].
fn fingerprints_of(store: &Store, places: &Places) -> Result<Option<HashSet<u64>>, EraseError> {
    let mut wanted = HashSet::new();
    for (segment, offsets) in places {
        let (first, last) = (offsets.iter().min().copied(), offsets.iter().max().copied());
        each_record(store, *segment, first.unwrap_or(0), &mut |start, content| {
            if Some(start) > last || wanted.len() > FINGERPRINTS_MAX {
                return ControlFlow::Break(());
            }
            if offsets.contains(&start) {
                fingerprints(content, &mut |fingerprint| {
                    wanted.insert(fingerprint);
                });
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok((wanted.len() <= FINGERPRINTS_MAX).then_some(wanted))
}

/// Removes the fingerprints that remaining captures of a segment have, too.
fn remove_common(
    store: &Store,
    segment: SegmentId,
    goes: &HashSet<u64>,
    wanted: &mut HashSet<u64>,
) -> Result<(), EraseError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut left = KEPT_BYTES_MAX;
    each_record(store, segment, 0, &mut |start, content| {
        if wanted.is_empty() || left == 0 {
            return ControlFlow::Break(());
        }
        if !goes.contains(&start) {
            left = left.saturating_sub(content.len());
            fingerprints(content, &mut |fingerprint| {
                wanted.remove(&fingerprint);
            });
        }
        ControlFlow::Continue(())
    })
}

/// Calls `take` for every record from an offset on, until it breaks, with the offset of its capture and its content.
fn each_record(
    store: &Store,
    id: SegmentId,
    from: u64,
    take: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<(), EraseError> {
    let file = store.state().segment(id).map(|entry| entry.file.clone()).unwrap_or_default();
    let mut start = None;
    for record in segment::records(store.path(), id, &file, from)? {
        let record = record.map_err(|source| EraseError::Record { segment: id, source })?;
        let record_type = record.header.record_type();
        if record_type == RecordType::Warcinfo {
            continue;
        }
        let begun = *start.get_or_insert(record.offset);
        if take(begun, &record.content).is_break() {
            break;
        }
        if record_type == RecordType::Metadata {
            start = None;
        }
    }
    Ok(())
}

/// Calls `take` with the fingerprints of some bytes; fewer than [`GRAM_BYTES`] have none.
fn fingerprints(bytes: &[u8], take: &mut dyn FnMut(u64)) {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let out = (0..GRAM_BYTES).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let (mut rolling, mut recent, mut last) = (0_u64, [u64::MAX; WINDOW], None);
    // The least fingerprint of the window, and the number of its gram.
    let (mut least, mut least_gram) = (u64::MAX, 0);
    for (number, byte) in bytes.iter().enumerate() {
        rolling = rolling.wrapping_mul(BASE).wrapping_add(u64::from(*byte) + 1);
        if let Some(gone) = number.checked_sub(GRAM_BYTES).and_then(|gone| bytes.get(gone)) {
            rolling = rolling.wrapping_sub(out.wrapping_mul(u64::from(*gone) + 1));
        }
        let Some(gram) = (number + 1).checked_sub(GRAM_BYTES) else { continue };
        // The high bits are better mixed than the low bits.
        let mixed = (rolling ^ rolling >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let fingerprint = mixed ^ mixed >> 32;
        recent[gram % WINDOW] = fingerprint;
        if fingerprint <= least {
            (least, least_gram) = (fingerprint, gram);
        } else if least_gram + WINDOW <= gram {
            let grams = (gram + 1 - WINDOW..=gram).map(|gram| (recent[gram % WINDOW], gram));
            (least, least_gram) =
                grams.min_by_key(|(value, gram)| (*value, usize::MAX - gram)).unwrap_or_default();
        }
        let is_full = gram + 1 >= WINDOW || number + 1 == bytes.len();
        if is_full && last != Some(least) {
            take(least);
            last = Some(least);
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
    fn a_stretch_that_two_contents_share_is_found_anywhere() {
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

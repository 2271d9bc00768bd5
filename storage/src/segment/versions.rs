//! The newest versions of the pages captured lately, from which the next dictionary is built, and the rule for when
//! that pays off.
//!
//! A new dictionary costs its own bytes and those of its guard, once. Without it, each recapture of a page takes more
//! bytes than it would next to its newest version. That excess grows as pages drift away from their bases, and as pages
//! without a base return. The segment is closed when its total excess reaches the cost of the dictionary that would
//! have avoided it. This is the ski rental problem: no rule that does not know the future can promise to lose less, and
//! for a steady drift this one is optimal (Karlin et al., "Competitive snoopy caching", Algorithmica 3, 1988).
//!
//! Pages captured for the first time have an excess too, because pages of one site share their templates: all of them
//! if there is no dictionary, and with one, as the crawl moves on to other sites.

use std::collections::HashMap;

use super::dictionary::{DICTIONARY_BYTES_MAX, Dictionary, DictionaryBase};
use super::error::SegmentError;
use super::group::CaptureGroup;
use super::guard::Guard;
use super::host_group::{HostGroup, host_hash};
use super::read::SegmentReader;
use super::rewrite::Moved;
use super::samples::Samples;
use crate::address::url_hash;
use crate::ids::Location;

/// A recapture next to its newest version is expected to shrink to one part in this many, unless the page has shown
/// better.
const SHRINKING: u64 = 64;
/// Without a dictionary, a first capture is expected to save one part in this many with one. Pages of one site shrink
/// to a quarter, pages that have nothing in common to nine tenths.
const FRAME_SHARE: u64 = 2;
/// Bytes of first captures, before compression, beyond which more of them add little to a dictionary.
const FRAMES_BYTES_MAX: u64 = 2 << 20;
/// Minimum bytes of first captures, before compression, for training a dictionary.
const TRAINING_BYTES_MIN: u64 = 4 << 20;
/// Approximate bytes of a trained dictionary and its guard.
const TRAINED_COST_BYTES: u64 = 80 << 10;
/// Number of first captures after which the compression ratio of a new dictionary for them is known.
const NEW_CAPTURES: u64 = 64;
/// Assumed compression ratio of a version that an earlier process appended.
const SHRINKING_ALONE: u64 = 6;
/// Cost in bytes of closing a segment and opening the next, besides the dictionary. It keeps segments of small archives
/// from becoming tiny.
const SEGMENT_COST_BYTES: u64 = 32 << 10;
/// Maximum number of pages remembered by all host groups together; beyond it, those captured least are evicted. Each
/// takes 72 bytes, and twice as many in a table that has just grown.
pub(super) const PAGES_MAX: usize = 1 << 18;

/// Hash of a page's URL, and that of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageHash {
    url: u64,
    pub(super) host: u32,
}

impl PageHash {
    pub(super) fn of(url: &str) -> Self {
        Self { url: url_hash(url), host: host_hash(url) }
    }
}

/// A page's newest version.
#[derive(Clone, Copy, Debug)]
struct NewestVersion {
    location: Location,
    /// Hash of its site.
    host: u32,
    /// Whether the page will be captured soon.
    is_due: bool,
    /// Bytes of its records before compression.
    plain_length: u64,
    /// Recent captures: halved with each segment.
    captures: u32,
    /// Fewest bytes that a version took in this segment.
    least: u64,
    /// Append counter, to tell later versions from earlier ones.
    order: u64,
}

/// First captures of pages in this segment: their number, and their bytes before and after compression.
#[derive(Clone, Copy, Debug, Default)]
struct FirstCaptures {
    count: u64,
    plain: u64,
    packed: u64,
    /// Both sums when the dictionary was new.
    new: (u64, u64),
}

impl FirstCaptures {
    fn count(&mut self, plain_length: u64, packed_length: u64) {
        self.count += 1;
        self.plain += plain_length;
        self.packed += packed_length;
        if self.count == NEW_CAPTURES && self.new == (0, 0) {
            self.new = (self.plain, self.packed);
        }
    }

    /// Returns the bytes beyond those expected with a better dictionary.
    fn excess(&self, has_dictionary: bool) -> u64 {
        if !has_dictionary {
            return self.packed / FRAME_SHARE;
        }
        let (plain, packed) = self.new;
        let expected = u128::from(self.plain) * u128::from(packed) / u128::from(plain.max(1));
        if plain == 0 { 0 } else { self.packed.saturating_sub(u64::try_from(expected).unwrap_or(u64::MAX)) }
    }
}

/// Pages captured lately, and what the segment loses for lack of a newer dictionary.
#[derive(Debug)]
pub(super) struct Versions {
    guard: Guard,
    pages: HashMap<u64, NewestVersion>,
    /// This host group's share of [`PAGES_MAX`].
    pages_max: usize,
    order: u64,
    has_dictionary: bool,
    /// Bytes that recaptures took beyond those expected.
    excess: u64,
    first: FirstCaptures,
    /// Bytes that a new dictionary and its guard would take.
    cost: u64,
    /// Bytes that a new dictionary would hold.
    content: u64,
    /// Samples of the first captures of this segment.
    samples: Samples,
}

impl Versions {
    pub(super) fn new(guard: Guard) -> Self {
        let cost = SEGMENT_COST_BYTES;
        let first = FirstCaptures::default();
        Self {
            guard,
            pages: HashMap::new(),
            pages_max: PAGES_MAX,
            order: 0,
            has_dictionary: false,
            excess: 0,
            first,
            cost,
            content: 0,
            samples: Samples::default(),
        }
    }

    /// Reserves space for versions to come.
    pub(super) fn expect_more(&mut self, versions: usize) {
        self.pages.reserve(versions.min(self.pages_max));
    }

    /// Notes a version that an earlier process appended.
    pub(super) fn recall(&mut self, page: PageHash, location: Location) {
        let plain_length = u64::from(location.length) * SHRINKING_ALONE;
        self.set(page, location, plain_length);
    }

    /// Notes the newest version of a page that will be captured soon.
    pub(super) fn expect(&mut self, page: PageHash, location: Location) {
        if !self.pages.contains_key(&page.url) {
            self.recall(page, location);
        }
        if let Some(version) = self.pages.get_mut(&page.url) {
            version.is_due = true;
        }
    }

    /// Updates the locations of captures that were moved.
    pub(super) fn relocate(&mut self, moved: &[Moved]) {
        for version in self.pages.values_mut() {
            let from = (version.location.segment, version.location.offset);
            if let Ok(place) = moved.binary_search_by_key(&from, |moved| (moved.segment, moved.offset)) {
                version.location = moved[place].to;
            }
        }
    }

    /// Replaces a page's version; a page that is not known yet is only added if there is room.
    fn set(&mut self, PageHash { url, host }: PageHash, location: Location, plain_length: u64) {
        self.order += 1;
        let order = self.order;
        let version = NewestVersion {
            location,
            host,
            is_due: false,
            plain_length,
            captures: 1,
            least: u64::MAX,
            order,
        };
        if self.pages.len() < self.pages_max || self.pages.contains_key(&url) {
            self.pages.insert(url, version);
        }
    }

    /// Notes a version and its bytes before compression. Returns whether it is useful as a sample: a first capture, of
    /// a kind that shrinks.
    pub(super) fn count(&mut self, url: &str, plain_length: u64, location: Location) -> bool {
        let packed_length = u64::from(location.length);
        if let Some(version) = self.pages.get_mut(&url_hash(url)) {
            self.order += 1;
            version.least = version.least.min(packed_length);
            let reachable = version.least.min(plain_length / SHRINKING);
            self.excess += packed_length - reachable.min(packed_length);
            version.captures = version.captures.saturating_add(1);
            (version.location, version.order) = (location, self.order);
            (version.is_due, version.plain_length) = (false, plain_length);
            return false;
        }
        self.first.count(plain_length, packed_length);
        self.content += plain_length;
        if self.content <= if self.has_dictionary { DICTIONARY_BYTES_MAX as u64 } else { FRAMES_BYTES_MAX } {
            // Next to similar pages a page takes less than alone, about two thirds.
            let base = packed_length * 2 / 3;
            self.cost += base + self.guard.length(base);
        }
        self.set(PageHash::of(url), location, plain_length);
        packed_length < plain_length / 2
    }

    /// Whether a new dictionary would have paid by now.
    pub(super) fn dictionary_pays(&self) -> bool {
        let first = self.first.excess(self.has_dictionary);
        let excess = self.excess + first;
        if self.should_train() {
            return self.first.plain >= TRAINING_BYTES_MIN
                && excess >= TRAINED_COST_BYTES + SEGMENT_COST_BYTES;
        }
        // Few long pages that are all first captures: wait for more of them, to train on.
        let is_early = first > self.excess && self.first.plain < DICTIONARY_BYTES_MAX as u64;
        excess >= self.cost && !is_early
    }

    /// Whether the excess of first captures is larger than that of recaptures. Then the next dictionary is trained on a
    /// sample of their records, otherwise it is made of whole versions.
    fn should_train(&self) -> bool {
        self.first.excess(self.has_dictionary) > self.excess && self.samples.are_enough()
    }

    /// Offers a first capture of a page to the sample.
    pub(super) fn sample(&mut self, group: &CaptureGroup) {
        self.samples.offer(group);
    }

    /// Begins a new segment with the dictionary of the previous one; its ratio when it was new remains the reference.
    pub(super) fn go_on(&mut self) {
        self.first = FirstCaptures { new: self.first.new, ..FirstCaptures::default() };
        self.begin();
    }

    /// Begins a new segment with a new dictionary.
    pub(super) fn rotate(&mut self, dictionary: Option<&Dictionary>) {
        self.first = FirstCaptures::default();
        self.has_dictionary = dictionary.is_some();
        self.cost =
            SEGMENT_COST_BYTES + dictionary.map_or(0, |dictionary| dictionary.stored_length(self.guard));
        self.content = dictionary.map_or(0, |dictionary| dictionary.as_bytes().len() as u64);
        self.begin();
    }

    fn begin(&mut self) {
        self.excess = 0;
        self.samples = Samples::default();
        for version in self.pages.values_mut() {
            version.captures /= 2;
            version.least = u64::MAX;
        }
        if self.pages.len() > self.pages_max / 2 {
            self.pages.retain(|_, version| version.captures > 0 || version.is_due);
        }
    }

    /// Whether the versions have outgrown one dictionary, and each half of the hosts has a good part of them.
    pub(super) fn is_worth_splitting(&self, halves: [HostGroup; 2]) -> bool {
        let room = DICTIONARY_BYTES_MAX as u64;
        let bytes = halves.map(|half| {
            let held = self.pages.values().filter(|version| half.holds(version.host));
            held.map(|version| version.plain_length).sum::<u64>()
        });
        let [one, other] = bytes;
        one + other > room && one.min(other) >= room / 8
    }

    /// Splits off the versions of some hosts.
    pub(super) fn split_off(&mut self, hosts: HostGroup) -> Self {
        let mut other = Self::new(self.guard);
        other.order = self.order;
        other.pages = match hosts {
            // As when an archive is opened: copying all of them would take longer than reading them did.
            HostGroup::ALL => std::mem::take(&mut self.pages),
            _ => self.pages.extract_if(|_, version| hosts.holds(version.host)).collect(),
        };
        other.pages_max = hosts.share(PAGES_MAX);
        self.pages_max = self.pages_max.min(other.pages_max);
        self.pages.shrink_to_fit();
        other
    }

    /// Returns the locations of the newest versions of some hosts' pages: pages that are due first, then those captured
    /// often, then those captured last.
    fn locations(&self, hosts: HostGroup) -> Vec<Location> {
        let held = self.pages.values().filter(|version| hosts.holds(version.host));
        let mut versions: Vec<NewestVersion> = held.copied().collect();
        versions.sort_unstable_by_key(|version| {
            std::cmp::Reverse((version.is_due, version.captures, version.order))
        });
        versions.into_iter().map(|version| version.location).collect()
    }

    pub(super) fn plan(&self, hosts: HostGroup, reader: SegmentReader) -> DictionaryPlan {
        let samples = self.should_train().then(|| self.samples.of(hosts));
        DictionaryPlan { reader, locations: self.locations(hosts), samples }
    }
}

/// Plan for the next segment's dictionary; any thread can build it while writing continues.
#[derive(Debug)]
pub(super) struct DictionaryPlan {
    reader: SegmentReader,
    /// Most valuable first.
    locations: Vec<Location>,
    /// If set, train a small dictionary on these instead.
    samples: Option<Samples>,
}

impl DictionaryPlan {
    /// Builds a dictionary from the newest versions of the pages captured lately, as many as fit. Returns `None` if
    /// there are none. Takes some seconds for 8 MiB.
    ///
    /// # Errors
    /// When a segment cannot be read, or there is no memory.
    pub(super) fn build(&self) -> Result<Option<Dictionary>, SegmentError> {
        if let Some(samples) = &self.samples {
            return Dictionary::train(samples);
        }
        let (mut bases, mut length, mut passed_over) = (Vec::new(), 0, 0);
        for location in &self.locations {
            let record = match self.reader.read(*location) {
                Ok(record) => record,
                // Damage elsewhere is no reason to stop writing.
                Err(SegmentError::Corrupted { .. } | SegmentError::Missing(_)) => continue,
                Err(error) => return Err(error),
            };
            if length + record.content.len() > DICTIONARY_BYTES_MAX {
                passed_over += 1;
                if passed_over > PASSED_OVER_MAX {
                    break;
                }
                continue;
            }
            length += record.content.len();
            let url = record.header.target_uri().unwrap_or_default().to_owned();
            bases.push(DictionaryBase { url, content: record.content, origin: Some(*location) });
        }
        Dictionary::build(&bases)
    }
}

/// Number of versions that did not fit, after which no smaller one is searched for.
const PASSED_OVER_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SegmentId;

    fn at(length: u32) -> Location {
        Location { segment: SegmentId(0), offset: 0, length }
    }

    #[test]
    fn all_groups_together_keep_so_many_pages_in_mind() {
        let mut whole = Versions::new(Guard::default());
        let groups = HostGroup::first(4);
        let mut parts: Vec<Versions> = groups.iter().map(|hosts| whole.split_off(*hosts)).collect();
        assert_eq!(parts.iter().map(|part| part.pages_max).sum::<usize>(), PAGES_MAX);
        let part = &mut parts[0];
        part.pages_max = 10;
        for page in 0..20 {
            part.count(&format!("http://a/{page}"), 1000, at(100));
        }
        assert_eq!(part.pages.len(), 10);
        part.count("http://a/0", 1000, at(100));
        part.rotate(None);
        assert_eq!(part.pages.len(), 1, "what came once makes room");
    }

    fn round(versions: &mut Versions, packed: u32) {
        for page in 0..20 {
            versions.count(&format!("http://a/{page}"), 100_000, at(packed));
        }
    }

    #[test]
    fn recaptures_without_a_base_make_a_dictionary_pay_soon() {
        for guard in [Guard::Copy, Guard::Parity] {
            let mut versions = Versions::new(guard);
            let mut rounds = 0;
            while !versions.dictionary_pays() {
                round(&mut versions, 20_000);
                rounds += 1;
            }
            assert_eq!(rounds, 2, "{guard:?}");
        }
    }

    #[test]
    fn first_captures_make_one_pay_once_there_is_no_more_waiting_for_a_sample() {
        let mut versions = Versions::new(Guard::Parity);
        let pages = (0..2000).find(|page| {
            versions.count(&format!("http://a/{page}"), 100_000, at(15_000));
            versions.dictionary_pays()
        });
        assert!(pages.is_some_and(|pages| (80..90).contains(&pages)), "{pages:?}");
    }

    #[test]
    fn recaptures_beside_their_base_don_t() {
        let bases: Vec<_> = (0..20u8)
            .map(|page| DictionaryBase {
                url: format!("http://a/{page}"),
                content: vec![page; 5000].into(),
                origin: None,
            })
            .collect();
        let dictionary = Dictionary::build(&bases).expect("memory").expect("bases");
        let mut versions = Versions::new(Guard::Parity);
        round(&mut versions, 20_000);
        versions.rotate(Some(&dictionary));
        for _ in 0..100 {
            round(&mut versions, 900);
        }
        assert!(!versions.dictionary_pays());
        // Then the design of one page changes.
        let recaptures = (1..).find(|_| {
            versions.count("http://a/7", 100_000, at(20_000));
            versions.dictionary_pays()
        });
        assert!(recaptures.is_some_and(|count| count <= 3), "{recaptures:?}");
    }

    #[test]
    fn pages_captured_often_come_first() {
        let mut versions = Versions::new(Guard::Parity);
        for (url, length) in [("http://a/", 1), ("http://b/", 2), ("http://a/", 3), ("http://c/", 4)] {
            versions.count(url, 1000, at(length));
        }
        assert_eq!(versions.locations(HostGroup::ALL), [at(3), at(4), at(2)]);
        // Pages that are due come before them, until they are captured.
        versions.expect(PageHash::of("http://d/"), at(5));
        assert_eq!(versions.locations(HostGroup::ALL), [at(5), at(3), at(4), at(2)]);
        versions.count("http://d/", 1000, at(6));
        assert_eq!(versions.locations(HostGroup::ALL), [at(6), at(3), at(4), at(2)]);
    }

    #[test]
    fn what_outgrows_a_dictionary_is_split_by_hosts() {
        let mut versions = Versions::new(Guard::Copy);
        let halves = HostGroup::ALL.split();
        for host in 0..64 {
            assert!(!versions.is_worth_splitting(halves));
            versions.count(&format!("http://host{host}.example{host}.org/"), 130 << 10, at(host));
        }
        versions.count("http://one.example/", 1 << 20, at(100));
        assert!(versions.is_worth_splitting(halves));
        let count = versions.pages.len();
        let other = versions.split_off(halves[1]);
        assert!(versions.pages.len() > 10 && other.pages.len() > 10);
        assert_eq!(versions.pages.len() + other.pages.len(), count);
        assert!(versions.locations(halves[1]).is_empty() && other.locations(halves[0]).is_empty());
    }
}

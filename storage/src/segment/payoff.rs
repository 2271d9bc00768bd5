//! When a segment should give way to one with a dictionary of newer versions.
//!
//! A new dictionary costs its bytes and those that guard it, once. Not having it costs, at each recapture of a page, the bytes that the page
//! takes above what it would take beside its newest version. That excess grows as pages drift away from their bases, and
//! as pages come back that have none. The segment is closed when the excess that it has suffered reaches the cost of the
//! dictionary that would have spared it: as with renting or buying skis, no rule that doesn't know the future can promise
//! to lose less, and for a steady drift it is the best there is (Karlin et al., "Competitive snoopy caching",
//! Algorithmica 3, 1988).

use std::collections::HashMap;

use super::dictionary::Dictionary;
use super::guard::Guard;
use crate::address::url_hash;

/// A recapture beside its newest version is taken to shrink to one part in so many, unless the page has shown better.
const SHRINKING: u64 = 64;
/// What closing a segment and opening the next one costs besides the dictionary, in bytes. It keeps segments of small
/// archives from becoming tiny.
const SEGMENT_COST_BYTES: u64 = 32 << 10;
/// Pages that one segment keeps in mind; captures of further ones count as first ones.
const PAGES_MAX: usize = 1 << 18;

/// What is known of a page within this segment.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The least that a version beside a base took.
    least: u64,
}

/// Counts what a segment loses for want of a newer dictionary.
#[derive(Debug)]
pub(super) struct Payoff {
    pages: HashMap<u64, Page>,
    /// Bytes that recaptures took above what they would have taken.
    excess: u64,
    /// Bytes that a new dictionary would take with what guards it.
    cost: u64,
    guard: Guard,
}

impl Payoff {
    pub(super) fn new(dictionary: Option<&Dictionary>, guard: Guard) -> Self {
        let urls = dictionary.map(Dictionary::urls).unwrap_or_default();
        let pages = urls.iter().map(|url| (*url, Page { least: u64::MAX })).collect();
        let stored = dictionary.map_or(0, |dictionary| dictionary.stored_length(guard));
        Self { pages, excess: 0, cost: SEGMENT_COST_BYTES + stored, guard }
    }

    /// Counts a version of a page: its bytes before and after compression.
    pub(super) fn count(&mut self, url: &str, plain_length: u64, packed_length: u64) {
        let hash = url_hash(url);
        match self.pages.get_mut(&hash) {
            Some(page) => {
                page.least = page.least.min(packed_length);
                let reachable = page.least.min(plain_length / SHRINKING);
                self.excess += packed_length - reachable.min(packed_length);
            }
            None => {
                if self.pages.len() < PAGES_MAX {
                    self.pages.insert(hash, Page { least: u64::MAX });
                    // Beside others of its kind a page takes less than alone, about two thirds of it.
                    let base = packed_length * 2 / 3;
                    self.cost += match self.guard {
                        Guard::Copy => 2 * base,
                        Guard::Parity => base + base / 8,
                    };
                }
            }
        }
    }

    /// Whether a new dictionary would have paid by now.
    pub(super) fn is_due(&self) -> bool {
        self.excess >= self.cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_captures_never_make_a_segment_give_way() {
        let mut payoff = Payoff::new(None, Guard::Copy);
        for page in 0..1000 {
            payoff.count(&format!("http://a/{page}"), 100_000, 20_000);
        }
        assert!(!payoff.is_due());
    }

    #[test]
    fn recaptures_without_a_base_do_so_soon() {
        let mut payoff = Payoff::new(None, Guard::Copy);
        let mut rounds = 0;
        while !payoff.is_due() {
            for page in 0..20 {
                payoff.count(&format!("http://a/{page}"), 100_000, 20_000);
            }
            rounds += 1;
        }
        assert_eq!(rounds, 3);
    }

    #[test]
    fn recaptures_beside_their_base_don_t() {
        let bases: Vec<_> = (0..20u8)
            .map(|page| super::super::Base {
                url: format!("http://a/{page}"),
                content: vec![page; 5000].into(),
            })
            .collect();
        let dictionary = Dictionary::build(&bases).expect("memory").expect("bases");
        let mut payoff = Payoff::new(Some(&dictionary), Guard::Copy);
        for _ in 0..100 {
            for page in 0..20 {
                payoff.count(&format!("http://a/{page}"), 100_000, 900);
            }
        }
        assert!(!payoff.is_due());
        // Then one of them is designed anew.
        let recaptures = (1..).find(|_| {
            payoff.count("http://a/7", 100_000, 20_000);
            payoff.is_due()
        });
        assert!(recaptures.is_some_and(|count| count <= 3), "{recaptures:?}");
    }
}

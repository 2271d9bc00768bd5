//! Host groups decide which writer a capture goes to, so that similar pages share a dictionary.
//!
//! Groups are made as needed. At first one group holds all hosts; when the versions of its pages no longer fit into one
//! dictionary, it is split in two by one more bit of a hash. The hash is that of the site, because hosts of one site
//! share their page templates. Nothing on disk depends on it.

use xxhash_rust::xxh3::xxh3_64;

use crate::address::site_of;

/// Maximum number of groups: each has an open segment, and its dictionary in memory once for each compressing thread.
pub(super) const HOST_GROUPS_MAX: usize = 8;

/// The hosts whose hash ends in certain bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostGroup {
    depth: u32,
    bits: u32,
}

impl HostGroup {
    /// All hosts.
    pub(super) const ALL: Self = Self { depth: 0, bits: 0 };

    /// Splits all hosts into `count` groups, rounded down to a power of two within the limit.
    pub(super) fn first(count: usize) -> Vec<Self> {
        let mut groups = vec![Self::ALL];
        while groups.len() * 2 <= count.min(HOST_GROUPS_MAX) {
            groups = groups.into_iter().flat_map(Self::split).collect();
        }
        groups
    }

    pub(super) fn holds(self, hash: u32) -> bool {
        hash & ((1 << self.depth) - 1) == self.bits
    }

    /// Returns this group's share of something that all hosts share.
    pub(super) fn share(self, of: usize) -> usize {
        of >> self.depth
    }

    /// Splits it into halves.
    pub(super) fn split(self) -> [Self; 2] {
        let depth = self.depth + 1;
        [Self { depth, bits: self.bits }, Self { depth, bits: self.bits | 1 << self.depth }]
    }
}

/// Returns the hash of a URL's site. It has no key: sites with colliding hashes gain nothing.
pub(super) fn host_hash(url: &str) -> u32 {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    xxh3_64(site_of(host).as_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_site_stay_together() {
        let hash = host_hash("https://www.example.org/a?b");
        for url in ["http://example.org:8080", "https://user@news.example.org/#c", "http://example.org?x"] {
            assert_eq!(host_hash(url), hash, "{url}");
        }
        assert_ne!(host_hash("https://www.example.com/a?b"), hash);
    }

    #[test]
    fn halves_share_what_the_whole_held() {
        for (count, expected) in [(0, 1), (1, 1), (3, 2), (8, 8), (1000, HOST_GROUPS_MAX)] {
            let groups = HostGroup::first(count);
            assert_eq!(groups.len(), expected);
            for hash in 0..64 {
                assert_eq!(groups.iter().filter(|group| group.holds(hash)).count(), 1);
            }
        }
    }
}

//! The URLs of one host: the best in memory, the others on disk.
//!
//! In memory they are ordered by level, and within a level by arrival. Excess URLs go to disk, the lowest first, into
//! one chain per doubling of value. They return from the highest chain, in order of arrival, once it is better than
//! everything left in memory. So the order is exact to levels in memory and to doublings on disk, and moving a URL
//! costs the same however many there are.

use std::io;

use super::spill::{Chain, Spill, SpilledUrl};

/// Levels per chain: a doubling of what pages received.
const LEVELS_PER_CHAIN: u8 = 8;

/// The URLs of one host.
#[derive(Debug, Default)]
pub(super) struct HostQueue {
    /// Lowest level first; within a level newest first, so that the oldest of the best comes last.
    front: Vec<SpilledUrl>,
    /// Chains on disk, the highest last.
    chains: Vec<(u8, Chain)>,
}

impl HostQueue {
    /// Whether nothing waits, in memory or on disk.
    pub(super) fn is_empty(&self) -> bool {
        self.front.is_empty() && self.chains.is_empty()
    }

    /// Number of entries in memory.
    pub(super) fn len(&self) -> usize {
        self.front.len()
    }

    /// Bytes of memory besides the struct itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.front.capacity() * size_of::<SpilledUrl>() + self.chains.capacity() * size_of::<(u8, Chain)>()
    }

    /// Adds a URL.
    pub(super) fn push(&mut self, entry: SpilledUrl) {
        let place = self.front.partition_point(|(level, _)| *level < entry.0);
        self.front.insert(place, entry);
    }

    /// Moves the lower half of the entries in memory to disk. Entries that cannot be written stay.
    pub(super) fn spill(&mut self, spill: &mut Spill) -> io::Result<()> {
        let half = self.front.len() / 2;
        while self.front.len() > half {
            let Some(class) = self.front.first().map(|(level, _)| class(*level)) else { break };
            let end = self.front.iter().position(|(level, _)| self::class(*level) != class);
            let end = end.unwrap_or(self.front.len()).min(self.front.len() - half);
            // In a chain, the oldest entry comes first.
            let entries: Vec<SpilledUrl> = self.front[..end].iter().rev().copied().collect();
            let place = self.chains.binary_search_by_key(&class, |(class, _)| *class);
            let chain = place.ok().map(|place| self.chains[place].1);
            let chain = spill.append(chain, &entries)?;
            match (place, chain) {
                (Ok(place), Some(chain)) => self.chains[place].1 = chain,
                (Err(place), Some(chain)) => self.chains.insert(place, (class, chain)),
                (_, None) => {}
            }
            self.front.drain(..end);
        }
        self.front.shrink_to(half + half / 2);
        Ok(())
    }

    /// Loads entries from disk that are better than all in memory, and returns the best level; `is_valid` says which
    /// entries are current.
    pub(super) fn settle(
        &mut self,
        spill: Option<&mut Spill>,
        is_valid: impl Fn(SpilledUrl) -> bool,
    ) -> io::Result<Option<u8>> {
        let Some(spill) = spill else {
            self.drop_invalid(&is_valid);
            return Ok(self.front.last().map(|(level, _)| *level));
        };
        loop {
            self.drop_invalid(&is_valid);
            let best = self.front.last().map(|(level, _)| *level);
            match self.chains.last() {
                Some((highest, _)) if best.is_none_or(|level| class(level) < *highest) => {
                    self.load(spill, &is_valid)?;
                }
                _ => return Ok(best),
            }
        }
    }

    fn drop_invalid(&mut self, is_valid: &impl Fn(SpilledUrl) -> bool) {
        while self.front.last().is_some_and(|entry| !is_valid(*entry)) {
            self.front.pop();
        }
    }

    fn load(&mut self, spill: &mut Spill, is_valid: &impl Fn(SpilledUrl) -> bool) -> io::Result<()> {
        let Some((_, chain)) = self.chains.last_mut() else { return Ok(()) };
        let mut entries = Vec::new();
        match spill.take(*chain, &mut entries)? {
            Some(rest) => *chain = rest,
            None => {
                self.chains.pop();
            }
        }
        for entry in entries {
            if is_valid(entry) {
                self.push(entry);
            }
        }
        Ok(())
    }

    /// Takes the best entry; call [`HostQueue::settle`] first.
    pub(super) fn pop(&mut self) -> Option<SpilledUrl> {
        self.front.pop()
    }

    /// Returns the best entry; call [`HostQueue::settle`] first.
    pub(super) fn best(&self) -> Option<SpilledUrl> {
        self.front.last().copied()
    }

    /// Takes all entries.
    pub(super) fn take_all(&mut self, mut spill: Option<&mut Spill>) -> io::Result<Vec<SpilledUrl>> {
        let mut entries = std::mem::take(&mut self.front);
        for (_, chain) in std::mem::take(&mut self.chains) {
            let mut rest = Some(chain);
            while let (Some(chain), Some(spill)) = (rest, spill.as_deref_mut()) {
                rest = spill.take(chain, &mut entries)?;
            }
        }
        Ok(entries)
    }
}

const fn class(level: u8) -> u8 {
    level / LEVELS_PER_CHAIN
}

#[cfg(test)]
mod tests {
    use super::{HostQueue, LEVELS_PER_CHAIN};
    use crate::frontier::spill::Spill;
    use archive_storage::UrlId;

    #[test]
    fn what_is_on_disk_comes_back_by_doublings_and_in_order_of_arrival() {
        let mut spill = Spill::new(tempfile::tempfile().unwrap());
        let mut queue = HostQueue::default();
        let level = |url: u32| (url.wrapping_mul(2_654_435_761) >> 24) as u8;
        for url in 0..20_000 {
            queue.push((level(url), UrlId(url)));
            if queue.len() > 40 {
                queue.spill(&mut spill).unwrap();
            }
        }
        assert!(spill.entries() > 19_900 && queue.memory_bytes() < 4096, "{}", queue.memory_bytes());
        let mut seen = vec![false; 20_000];
        let mut last = u8::MAX;
        while queue.settle(Some(&mut spill), |(_, url)| url.0 % 5 != 0).unwrap().is_some() {
            let (found, url) = queue.pop().unwrap();
            assert_eq!(found, level(url.0));
            assert!(found / LEVELS_PER_CHAIN <= last / LEVELS_PER_CHAIN, "{found} after {last}");
            last = found;
            assert!(!std::mem::replace(&mut seen[url.index()], true), "{url:?} came twice");
        }
        assert!(seen.iter().enumerate().all(|(url, seen)| *seen == (url % 5 != 0)));
        assert!(queue.is_empty() && spill.entries() == 0);
    }

    #[test]
    fn without_a_disk_the_order_is_that_of_levels_and_of_arrival() {
        let mut queue = HostQueue::default();
        for (level, url) in [(3, 1), (9, 2), (3, 3), (9, 4), (1, 5)] {
            queue.push((level, UrlId(url)));
        }
        let mut order = Vec::new();
        while queue.settle(None, |_| true).unwrap().is_some() {
            order.extend(queue.pop().map(|(_, url)| url.0));
        }
        assert_eq!(order, [2, 4, 1, 3, 5]);
    }
}

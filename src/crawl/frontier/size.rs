//! Memory and disk space of a frontier.

use std::cmp::Reverse;
use std::time::Instant;

use archive_storage::HostId;

use super::ahead::Unresolved;
use super::spill::Spill;
use super::{Frontier, FrontierAddress, FrontierHost, Spaced};

impl Frontier {
    /// Bytes of memory, summed over all hosts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_host = |host: &FrontierHost| size_of::<FrontierHost>() + host.queue.memory_bytes();
        let of_address = |address: &FrontierAddress| {
            size_of::<FrontierAddress>()
                + address.awake.capacity() * size_of::<(u8, Reverse<u64>, HostId)>()
                + address.asleep.capacity() * size_of::<Reverse<(Instant, HostId)>>()
        };
        self.hosts.iter().map(of_host).sum::<usize>()
            + self.addresses.iter().map(of_address).sum::<usize>()
            + (self.hosts.capacity() - self.hosts.len()) * size_of::<FrontierHost>()
            + self.level_of.capacity()
            + self.vacant.capacity() * size_of::<usize>()
            + self.address_numbers.capacity() * size_of::<(Spaced, usize)>()
            + self.unresolved.capacity() * size_of::<Unresolved>()
            + self.ahead.memory_bytes()
            + self.ready.capacity() * size_of::<(u8, Reverse<u64>, usize)>()
            + self.waiting.capacity() * size_of::<Reverse<(Instant, usize)>>()
            + self.spill.as_ref().map_or(0, Spill::memory_bytes)
    }

    /// Bytes on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::bytes)
    }

    /// Number of entries on disk; a URL whose level rose may have several.
    #[must_use]
    pub fn on_disk_entries(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::entries)
    }
}

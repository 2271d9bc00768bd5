//! Wrong passwords are counted by address and by name, so that guessing takes years.
//!
//! Counters have fixed places that are found by a secret hash, so they take the same memory however many try. Names that nobody has are counted
//! like others: nothing distinguishes them.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So many may fail within so long: of one address, and of one name from all addresses.
const OF_ADDRESS_MAX: u32 = 20;
const OF_NAME_MAX: u32 = 50;
const WINDOW: Duration = Duration::from_secs(900);

/// Counters of each kind.
const PLACES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Attempts {
    secret: RandomState,
    addresses: Counters,
    names: Counters,
}

#[derive(Debug)]
struct Counters(Vec<(u32, Option<Instant>)>);

impl Default for Counters {
    fn default() -> Self {
        Self(vec![(0, None); PLACES])
    }
}

impl Attempts {
    /// Counts an attempt as one that fails.
    ///
    /// # Errors
    /// When there were too many; says whether this is the first that is refused.
    pub(super) fn begin(&mut self, name: &str, address: IpAddr, now: Instant) -> Result<(), bool> {
        let (address, name) = self.places(name, address);
        let counted =
            [(self.addresses.at(address, now), OF_ADDRESS_MAX), (self.names.at(name, now), OF_NAME_MAX)];
        if counted.iter().all(|(count, most)| **count < *most) {
            counted.into_iter().for_each(|(count, _)| *count += 1);
            return Ok(());
        }
        // What is refused counts for nothing else: one address alone locks no name.
        let mut is_first = false;
        for (count, most) in counted.into_iter().filter(|(count, most)| **count >= *most) {
            is_first |= *count == most;
            *count = most + 1;
        }
        Err(is_first)
    }

    /// One has not failed.
    pub(super) fn forgive(&mut self, name: &str, address: IpAddr) {
        let (address, name) = self.places(name, address);
        for (count, _) in [&mut self.addresses.0[address], &mut self.names.0[name]] {
            *count = count.saturating_sub(1);
        }
    }

    fn places(&self, name: &str, address: IpAddr) -> (usize, usize) {
        // A client with one IPv6 address has all addresses of its network.
        let address = match address.to_canonical() {
            IpAddr::V6(address) => u128::from(address) >> 64 << 64,
            IpAddr::V4(address) => u128::from(u32::from(address)),
        };
        let place = |hash: u64| (hash % PLACES as u64) as usize;
        (place(self.secret.hash_one(address)), place(self.secret.hash_one(name)))
    }
}

impl Counters {
    /// What was counted at a place since its window began.
    fn at(&mut self, place: usize, now: Instant) -> &mut u32 {
        let (count, since) = &mut self.0[place];
        if since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (*count, *since) = (0, Some(now));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_is_bounded_by_address_and_by_name() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        let address = |number: u32| IpAddr::from(std::net::Ipv4Addr::from(number));
        for _ in 0..OF_ADDRESS_MAX {
            assert_eq!(attempts.begin("anna", address(1), start), Ok(()));
        }
        assert_eq!(attempts.begin("anna", address(1), start), Err(true));
        for _ in 0..OF_NAME_MAX {
            assert_eq!(attempts.begin("anna", address(1), start), Err(false), "it is written down once");
        }
        assert_eq!(attempts.begin("anna", address(2), start), Ok(()), "one address alone locks no name");
        attempts = Attempts::default();
        for number in 0..OF_NAME_MAX {
            assert_eq!(attempts.begin("anna", address(number << 8), start), Ok(()), "{number}");
        }
        assert_eq!(attempts.begin("anna", address(7), start), Err(true));
        assert_eq!(attempts.begin("anna", address(7), start + WINDOW), Ok(()));
        for _ in 0..9 * OF_ADDRESS_MAX {
            assert_eq!(
                attempts.begin("ben", address(9), start),
                Ok(()),
                "who is right may come again and again"
            );
            attempts.forgive("ben", address(9));
        }
        let of_one = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        assert_eq!(attempts.places("", of_one(1)).0, attempts.places("", of_one(2)).0);
    }
}

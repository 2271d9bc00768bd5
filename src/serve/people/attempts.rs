//! Limits failed logins by address and by name, so that guessing a password takes years.
//!
//! Counters have fixed slots, selected by a secret hash, so memory use does not depend on the number of attempts.
//! Unknown names are counted like known ones, so that they cannot be distinguished.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum number of failures within a time window, per address, and per name from all addresses.
const OF_ADDRESS_MAX: u32 = 20;
const OF_NAME_MAX: u32 = 50;
const WINDOW: Duration = Duration::from_secs(900);

/// Number of counters of each kind.
const PLACES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Attempts {
    secret: RandomState,
    addresses: AttemptCounters,
    names: AttemptCounters,
}

#[derive(Debug)]
struct AttemptCounters(Vec<(u32, Option<Instant>)>);

impl Default for AttemptCounters {
    fn default() -> Self {
        Self(vec![(0, None); PLACES])
    }
}

impl Attempts {
    /// Counts an attempt, provisionally as a failure.
    ///
    /// # Errors
    /// When there were too many; the value states whether this is the first refusal.
    pub(super) fn begin(&mut self, name: &str, address: IpAddr, now: Instant) -> Result<(), bool> {
        let (address, name) = self.places(name, address);
        let counted =
            [(self.addresses.at(address, now), OF_ADDRESS_MAX), (self.names.at(name, now), OF_NAME_MAX)];
        if counted.iter().all(|(count, most)| **count < *most) {
            counted.into_iter().for_each(|(count, _)| *count += 1);
            return Ok(());
        }
        // A refused attempt counts for nothing else, so that a single address cannot lock a name.
        let mut is_first = false;
        for (count, most) in counted.into_iter().filter(|(count, most)| **count >= *most) {
            is_first |= *count == most;
            *count = most + 1;
        }
        Err(is_first)
    }

    /// Uncounts an attempt that did not fail.
    pub(super) fn forgive(&mut self, name: &str, address: IpAddr) {
        let (address, name) = self.places(name, address);
        for (count, _) in [&mut self.addresses.0[address], &mut self.names.0[name]] {
            *count = count.saturating_sub(1);
        }
    }

    fn places(&self, name: &str, address: IpAddr) -> (usize, usize) {
        // A client with one IPv6 address controls all addresses of its /64 network.
        let address = match address.to_canonical() {
            IpAddr::V6(address) => u128::from(address) >> 64 << 64,
            IpAddr::V4(address) => u128::from(u32::from(address)),
        };
        let place = |hash: u64| (hash % PLACES as u64) as usize;
        (place(self.secret.hash_one(address)), place(self.secret.hash_one(name)))
    }
}

impl AttemptCounters {
    /// The count in a slot since its window began.
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

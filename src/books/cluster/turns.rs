//! Takes turns at asking an address that sites of several partitions share.
//!
//! A node writes the addresses that it asks into the store before it asks them, and then waits until every other node
//! has either seen them or no longer relies on what it saw (a lease later). An address that no other node has is asked
//! freely. All others are asked in turns. Every partition has a turn, even if it does not ask the address, so that
//! nodes need not agree on who shares it. At any time, it is the turn of different partitions at different addresses,
//! so that no node waits with all of its addresses.
//!
//! Turns follow the clock of the store ([`Clock`]), since those of the machines may be wrong. A node that cannot reach
//! the store waits.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::Spans;

/// Unused time at the end of a turn, in addition to the delay of the address: two clocks that are each off by
/// [`CLOCK_ERROR_MAX`], and [`ARRIVAL_MAX`].
pub(super) const GUARD: Duration = Duration::from_secs(3);

/// Maximum time between handing out a request and its arrival.
const ARRIVAL_MAX: Duration = Duration::from_secs(1);

/// Maximum error of a clock: half a second, since stores report whole seconds, half of a round trip to the store, and
/// drift.
#[cfg(test)]
const CLOCK_ERROR_MAX: Duration = Duration::from_secs(1);
const CLOCK_TRIP_MAX: Duration = Duration::from_millis(800);
const CLOCK_AGE_MAX: Duration = Duration::from_secs(600);

/// Time to wait before a retry while nothing is known.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Maximum number of addresses that a node announces individually. If it has more, others treat all addresses as
/// shared.
pub(super) const ADDRESSES_MAX: usize = 100_000;

/// Stands for all addresses.
pub(super) const EVERY_ADDRESS: u64 = 0;

/// The time of the store's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    at: Instant,
    /// Time since 1970.
    time: Duration,
}

impl Clock {
    /// Derives the time from an object that was written between two moments, and whose timestamp by the store's clock
    /// is `second` since 1970. Returns `None` if the write took too long to be accurate.
    pub(super) fn read(begun: Instant, ended: Instant, second: u64) -> Option<Self> {
        let trip = ended.saturating_duration_since(begun);
        let time = Duration::from_secs(second) + Duration::from_millis(500);
        (trip <= CLOCK_TRIP_MAX).then(|| Self { at: begun + trip / 2, time })
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }

    fn time(&self, now: Instant) -> Duration {
        self.time + now.saturating_duration_since(self.at)
    }
}

/// Result of a look at the store.
#[derive(Clone, Debug)]
pub struct Look {
    /// The addresses that other nodes ask.
    pub(super) others: Arc<HashSet<u64>>,
    /// When the look began.
    pub(super) at: Instant,
    /// Since when this node is sure to hold its partition.
    pub(super) held: Instant,
    pub(super) clock: Option<Clock>,
}

/// Number of addresses that nodes have announced, by partition and epoch.
pub(super) type Announced = BTreeMap<(u16, u64), u64>;

/// The addresses that another node asks.
#[derive(Debug, Default)]
struct AnnouncedAddresses {
    count: u64,
    addresses: Vec<u64>,
    /// Since when the node is known to have ended.
    gone: Option<Instant>,
}

/// The addresses that all other nodes ask.
#[derive(Debug, Default)]
pub(super) struct OtherAddresses {
    nodes: BTreeMap<(u16, u64), AnnouncedAddresses>,
    all: Arc<HashSet<u64>>,
}

impl OtherAddresses {
    /// Returns the nodes that have announced more addresses than are known.
    pub(super) fn unread(&self, announced: &Announced) -> Vec<(u16, u64)> {
        let is_news =
            |node: &(u16, u64), count: u64| self.nodes.get(node).is_none_or(|known| known.count < count);
        announced.iter().filter(|(node, count)| is_news(node, **count)).map(|(node, _)| *node).collect()
    }

    /// Adds the addresses read from nodes, and removes those of nodes that ended or were succeeded some time ago.
    pub(super) fn look(
        &mut self,
        announced: &Announced,
        read: BTreeMap<(u16, u64), Vec<u64>>,
        now: Instant,
        spans: Spans,
        has_ended: impl Fn(u16, u64) -> bool,
    ) -> Arc<HashSet<u64>> {
        // The last request of a departed node may have been sent just before it ended.
        let gone_after = spans.address_delay_max() + ARRIVAL_MAX;
        let mut is_same = read.is_empty();
        for (node, addresses) in read {
            let known = self.nodes.entry(node).or_default();
            (known.addresses, known.count) = (addresses, announced.get(&node).copied().unwrap_or(0));
        }
        for (&(partition, epoch), node) in &mut self.nodes {
            let is_followed =
                announced.range((partition, epoch + 1)..=(partition, u64::MAX)).next().is_some();
            if is_followed || has_ended(partition, epoch) {
                let gone = *node.gone.get_or_insert(now);
                if !node.addresses.is_empty() && now >= gone + gone_after {
                    node.addresses = Vec::new();
                    is_same = false;
                }
            }
        }
        if !is_same {
            self.all = Arc::new(self.nodes.values().flat_map(|node| &node.addresses).copied().collect());
        }
        Arc::clone(&self.all)
    }
}

/// The turns of a node.
#[derive(Debug)]
pub struct Turns {
    number: u16,
    count: u16,
    spans: Spans,
    /// Since when each address of this node has been in the store; `None` if it is not known to be there.
    own: HashMap<u64, Option<Instant>>,
    unannounced: Vec<u64>,
    seen: Option<Look>,
}

impl Turns {
    /// Returns the turns of partition `number` of `count`.
    #[must_use]
    pub fn new(number: u16, count: u16, spans: Spans) -> Self {
        Self { number, count, spans, own: HashMap::new(), unannounced: Vec::new(), seen: None }
    }

    /// Returns new addresses, each once. They must be announced to the others and then passed to [`Turns::announced`]
    /// before they are asked.
    pub fn take_unannounced(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unannounced)
    }

    /// Records that these addresses have been in the store since `at`.
    pub fn announced(&mut self, addresses: &[u64], at: Instant) {
        self.own.extend(addresses.iter().map(|address| (*address, Some(at))));
    }

    /// Sets the result of the last look.
    pub fn see(&mut self, seen: Look) {
        self.seen = Some(seen);
    }

    /// Returns when to try an address again, or `None` if it may be asked now.
    pub fn wait(&mut self, address: IpAddr, delay: Duration, now: Instant) -> Option<Instant> {
        let address = hash(address);
        let later = Some(now + LOOK_AGAIN);
        let announced = match self.own.entry(address) {
            Entry::Vacant(entry) => {
                entry.insert(None);
                self.unannounced.push(address);
                return later;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        // By then, a node that has not seen the address has sent its last request.
        let lease = self.spans.lease();
        let Some(from) = announced.map(|at| at + lease + ARRIVAL_MAX + delay) else { return later };
        if now < from {
            return Some(from);
        }
        let Some(seen) = &self.seen else { return later };
        let is_shared = seen.others.contains(&address) || seen.others.contains(&EVERY_ADDRESS);
        if !is_shared && now < seen.at.min(seen.held) + lease {
            return None;
        }
        match seen.clock {
            // Later, another node may have taken over the partition and its turn.
            Some(clock) if now < (clock.at + CLOCK_AGE_MAX).min(seen.held + lease) => {
                self.until_turn(address, delay, clock.time(now)).map(|wait| now + wait)
            }
            _ => later,
        }
    }

    /// Returns the time to the next turn, or `None` during a turn.
    fn until_turn(&self, address: u64, delay: Duration, time: Duration) -> Option<Duration> {
        let span = self.spans.turn();
        let (turn, count) = (time.as_secs() / span.as_secs(), u64::from(self.count));
        let whose = (turn + address % count) % count;
        let ahead = (u64::from(self.number) - 1 + count - whose) % count;
        let into = time.saturating_sub(span * u32::try_from(turn).unwrap_or(u32::MAX));
        if ahead == 0 && into < span.saturating_sub(GUARD + delay) {
            return None;
        }
        let ahead = if ahead == 0 { count } else { ahead };
        // There are at most 65535 partitions.
        Some((span * ahead as u32).saturating_sub(into))
    }
}

fn hash(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => xxh3_64(&address.octets()),
        IpAddr::V6(address) => xxh3_64(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn seen(others: &[u64], at: Instant, clock: Option<Clock>) -> Look {
        Look { others: Arc::new(others.iter().copied().collect()), at, held: at, clock }
    }

    #[test]
    fn an_address_is_announced_before_it_is_asked_and_is_asked_freely_while_nobody_else_has_it() {
        let (start, delay) = (Instant::now(), Duration::from_millis(500));
        let after = |millis| start + Duration::from_millis(millis);
        let mut turns = Turns::new(1, 2, Spans::default());
        assert!(turns.wait(ADDRESS, delay, start).is_some());
        assert!(turns.wait(ADDRESS, delay, start).is_some());
        assert_eq!(turns.take_unannounced(), [hash(ADDRESS)], "it is announced once");
        assert!(turns.wait(ADDRESS, delay, after(60_000)).is_some(), "it is not announced");
        turns.announced(&[hash(ADDRESS)], start);
        assert_eq!(turns.wait(ADDRESS, delay, after(0)), Some(after(11_500)));
        assert!(turns.wait(ADDRESS, delay, after(11_500)).is_some(), "the others' addresses were never seen");
        turns.see(seen(&[], after(2_000), None));
        assert_eq!(turns.wait(ADDRESS, delay, after(11_999)), None);
        assert!(
            turns.wait(ADDRESS, delay, after(12_000)).is_some(),
            "the look is too old, and there is no clock"
        );
        for others in [hash(ADDRESS), EVERY_ADDRESS] {
            turns.see(seen(&[others], after(11_000), None));
            assert!(turns.wait(ADDRESS, delay, after(12_000)).is_some(), "shared, and there is no clock");
        }
        turns.see(seen(&[1], after(12_000), None));
        assert_eq!(turns.wait(ADDRESS, delay, after(12_000)), None);
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(turns.wait(mapped, delay, after(12_000)), None, "the same address");
        // The clock is valid for a limited time, and so is the lease.
        let clock = Clock::read(start, start, 0).unwrap();
        let asked = |turns: &mut Turns, from: u64, held: u64| {
            (from..from + 40).any(|second| {
                turns.see(seen(&[EVERY_ADDRESS], after((second - second % held) * 1000), Some(clock)));
                turns.wait(ADDRESS, delay, after(second * 1000)).is_none()
            })
        };
        assert!(asked(&mut turns, 500, 1) && !asked(&mut turns, 600, 1));
        turns.see(seen(&[EVERY_ADDRESS], after(5_000), Some(clock)));
        let until_held = (12..80).map(|second| turns.wait(ADDRESS, delay, after(second * 1000)).is_none());
        let last =
            until_held.enumerate().filter(|(_, is_asked)| *is_asked).map(|(second, _)| second + 12).max();
        assert!(last.is_none_or(|last| last < 15), "{last:?}");
    }

    #[test]
    fn what_a_node_has_asked_counts_until_some_time_after_its_end() {
        let start = Instant::now();
        let mut others = OtherAddresses::default();
        let mut look = |announced: &[((u16, u64), u64)], seconds, ended: Option<(u16, u64)>| {
            let (announced, now): (Announced, _) =
                (announced.iter().copied().collect(), start + Duration::from_secs(seconds));
            let read = |(partition, epoch)| ((partition, epoch), vec![u64::from(partition) * 10 + epoch]);
            let read = others.unread(&announced).into_iter().map(read).collect();
            let has_ended = |partition, epoch| ended == Some((partition, epoch));
            let all = others.look(&announced, read, now, Spans::default(), has_ended);
            let mut all: Vec<u64> = all.iter().copied().collect();
            all.sort_unstable();
            all
        };
        assert_eq!(look(&[((1, 1), 8), ((2, 1), 8)], 0, None), [11, 21]);
        // Partition 1 has a new node, and the node of partition 2 has ended.
        assert_eq!(look(&[((1, 1), 8), ((1, 2), 8), ((2, 1), 8)], 1, Some((2, 1))), [11, 12, 21]);
        assert_eq!(look(&[((1, 1), 8), ((1, 2), 8), ((2, 1), 8)], 11, Some((2, 1))), [11, 12, 21]);
        assert_eq!(look(&[((1, 1), 8), ((1, 2), 8), ((2, 1), 8)], 12, Some((2, 1))), [12]);
        assert_eq!(look(&[((1, 1), 8), ((1, 2), 8), ((2, 1), 8)], 40, Some((2, 1))), [12], "none comes back");
    }

    #[test]
    fn a_clock_is_not_read_from_what_took_long() {
        let start = Instant::now();
        assert!(Clock::read(start, start + CLOCK_TRIP_MAX, 7).is_some());
        assert!(Clock::read(start, start + CLOCK_TRIP_MAX + Duration::from_millis(1), 7).is_none());
    }

    proptest! {
        /// This holds within the limits, whatever the clocks show and however long requests take.
        #[test]
        fn two_nodes_never_ask_an_address_within_its_delay(
            count in 2..9u16, one in 0..9u16, other in 0..9u16, address: u64, lease in 3..=10u8,
            delay in 1..10_000u64, time in 1_700_000_000_000..1_700_000_400_000u64, apart in 0..10_000u64,
            errors in (-1000..=1000i64, -1000..=1000i64), arrivals in (0..1000u64, 0..1000u64),
        ) {
            let (one, other) = (one % count + 1, other % count + 1);
            prop_assume!(one != other && CLOCK_ERROR_MAX.as_millis() == 1000 && ARRIVAL_MAX.as_millis() == 1000);
            let delay = Duration::from_millis(delay);
            let asks = |number, time: u64, error: i64| {
                let time = Duration::from_millis(time.saturating_add_signed(error));
                Turns::new(number, count, Spans::of(lease)).until_turn(address, delay, time).is_none()
            };
            if asks(one, time, errors.0) && asks(other, time + apart, errors.1) {
                let gap = (time + apart + arrivals.1).abs_diff(time + arrivals.0);
                prop_assert!(gap >= delay.as_millis() as u64, "{gap}");
            }
        }

        #[test]
        fn every_partition_has_its_turn_and_knows_its_next_one(
            count in 1..9u16, address: u64, lease in 3..=10u8, time in 1_700_000_000_000..1_700_000_400_000u64,
        ) {
            let spans = Spans::of(lease);
            let (delay, time) = (spans.address_delay_max(), Duration::from_millis(time));
            for number in 1..=count {
                let turns = Turns::new(number, count, spans);
                let wait = turns.until_turn(address, delay, time).unwrap_or_default();
                prop_assert!(wait <= spans.turn() * u32::from(count));
                prop_assert_eq!(turns.until_turn(address, delay, time + wait), None);
            }
        }
    }
}

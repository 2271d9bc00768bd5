//! What to fetch next: by importance among all that politeness allows now.
//!
//! Every host has its URLs in levels of importance. Every address has its hosts, awake (fetchable as far as the host is
//! concerned) or asleep. Every address that could serve a request now stands in a heap by the level of its best host,
//! every other one in a heap by the time it wakes. So the next request is found in logarithmic time, and if anything is
//! fetchable, it is found.
//!
//! Entries are never searched for: a URL that rises is entered again, and what is met out of date is passed over. The
//! frontier itself is derived: after a restart it is filled anew from the page states.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use archive_storage::{HostId, UrlId};

use crate::ledger::{LEVEL_REQUISITE, Refusal};

/// Hosts whose address is asked for at the same time.
const RESOLVING_MAX: usize = 64;

/// Stands in the place of a level once a URL was picked: higher than all levels, so that it cannot be raised again.
const PICKED: u8 = u8::MAX;

/// How long and how often servers are asked.
#[derive(Debug, Clone)]
pub struct Politeness {
    /// From the end of one request to a host to the start of the next.
    pub host_delay: Duration,
    /// The same for an address, which may serve many hosts.
    pub address_delay: Duration,
    /// Requests under way to one host.
    pub per_host: u32,
    /// Requests under way to one address.
    pub per_address: u32,
}

/// What the frontier wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The address of a host has to be found.
    Resolve(HostId),
    /// The robots.txt of a host has to be fetched before anything else of it.
    Robots(HostId, SocketAddr),
    /// A page.
    Page(HostId, UrlId, SocketAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    New,
    Resolving,
    /// At this address; by its number in `Frontier::addresses`.
    At(usize, SocketAddr),
    /// Not to be asked again in this run, for this reason.
    GivenUp(Refusal),
}

#[derive(Debug, Default)]
struct Host {
    /// By level, lowest first; within a level in order of arrival.
    levels: Vec<(u8, VecDeque<UrlId>)>,
    phase: Phase,
    robots_known: bool,
    robots_under_way: bool,
    /// Whether its robots.txt is needed although none of its URLs may wait.
    robots_wanted: bool,
    active: u32,
    next: Option<Instant>,
    /// When the last request to it was over.
    last: Option<Instant>,
    delay: Option<Duration>,
    /// The level under which the host stands among the awake (or the unresolved), if it does.
    awake_level: Option<u8>,
    asleep: bool,
}

#[derive(Debug)]
struct Address {
    active: u32,
    next: Option<Instant>,
    awake: BinaryHeap<(u8, Reverse<u64>, HostId)>,
    asleep: BinaryHeap<Reverse<(Instant, HostId)>>,
    /// The level under which the address stands among the ready, if it does.
    ready_level: Option<u8>,
    /// When the address is to be looked at again, if it waits.
    waits_until: Option<Instant>,
}

/// All URLs to fetch, and when their servers may be asked.
#[derive(Debug)]
pub struct Frontier {
    politeness: Politeness,
    hosts: Vec<Host>,
    addresses: Vec<Address>,
    address_numbers: HashMap<IpAddr, usize>,
    /// The level under which each URL is queued; 0 when it is not, [`PICKED`] once it was picked in this run.
    level_of: Vec<u8>,
    queued: u64,
    unresolved: BinaryHeap<(u8, Reverse<u64>, HostId)>,
    resolving: usize,
    ready: BinaryHeap<(u8, Reverse<u64>, usize)>,
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Counts entries, so that equals leave a heap in the order they came.
    ticket: u64,
    active: usize,
    /// Until when an earlier run may have asked servers.
    earlier: Option<Instant>,
}

impl Frontier {
    /// An empty frontier.
    #[must_use]
    pub fn new(politeness: Politeness) -> Self {
        Self {
            politeness,
            hosts: Vec::new(),
            addresses: Vec::new(),
            address_numbers: HashMap::new(),
            level_of: Vec::new(),
            queued: 0,
            unresolved: BinaryHeap::new(),
            resolving: 0,
            ready: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            ticket: 0,
            active: 0,
            earlier: None,
        }
    }

    /// Says that an earlier run may have asked any server until `now`, so that each gets its delay first.
    pub fn goes_on(&mut self, now: Instant) {
        self.earlier = Some(now);
    }

    /// URLs that wait to be fetched.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Requests under way, resolutions included.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active + self.resolving
    }

    /// Hosts that have a request under way.
    #[must_use]
    pub fn hosts_active(&self) -> usize {
        self.hosts.iter().filter(|host| host.active > 0).count()
    }

    /// Enters `url` under `level` (1 to 254), or raises it to that level.
    ///
    /// A lower level changes nothing, nor does a URL that was picked in this run.
    ///
    /// # Errors
    /// The reason why nothing of the host is fetched in this run.
    pub fn push(&mut self, url: UrlId, host: HostId, level: u8, now: Instant) -> Result<(), Refusal> {
        let level = level.clamp(1, LEVEL_REQUISITE);
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        if let Phase::GivenUp(why) = entry.phase {
            return Err(why);
        }
        if self.level_of.len() <= url.index() {
            self.level_of.resize(url.index() + 1, 0);
        }
        let known = &mut self.level_of[url.index()];
        if *known >= level {
            return Ok(());
        }
        self.queued += u64::from(*known == 0);
        *known = level;
        match entry.levels.binary_search_by_key(&level, |(l, _)| *l) {
            Ok(place) => entry.levels[place].1.push_back(url),
            Err(place) => entry.levels.insert(place, (level, VecDeque::from([url]))),
        }
        self.offer(host, now);
        Ok(())
    }

    /// Enters a URL once more that was picked in this run: its fetch may succeed another time.
    ///
    /// # Errors
    /// As [`Frontier::push`].
    pub fn push_again(&mut self, url: UrlId, host: HostId, level: u8, now: Instant) -> Result<(), Refusal> {
        if let Some(known) = self.level_of.get_mut(url.index()) {
            *known = 0;
        }
        self.push(url, host, level, now)
    }

    /// Gives a host its own delay, which its seed or its robots.txt asks for; it counts from its last request on.
    pub fn set_delay(&mut self, host: HostId, delay: Duration) {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.delay = Some(delay);
        entry.next = entry.next.max(after(entry.last, delay));
    }

    /// The next thing to do at `now`, if there is anything.
    pub fn next(&mut self, now: Instant) -> Option<Pick> {
        if let Some(host) = self.next_unresolved() {
            return Some(Pick::Resolve(host));
        }
        self.wake_addresses(now);
        while let Some((level, _, number)) = self.ready.pop() {
            if self.addresses[number].ready_level != Some(level) {
                continue;
            }
            self.addresses[number].ready_level = None;
            let pick = self.pick_at(number, now);
            self.enter(number, now);
            if pick.is_some() {
                return pick;
            }
        }
        None
    }

    /// When something may become fetchable without anything else happening first.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((time, _))| *time)
    }

    /// Says what the resolution of `host` gave. Without an address its URLs leave the frontier; they are returned.
    pub fn resolved(&mut self, host: HostId, address: Option<SocketAddr>, now: Instant) -> Vec<UrlId> {
        self.resolving = self.resolving.saturating_sub(1);
        let Some(address) = address else { return self.give_up(host, Refusal::Unresolved) };
        let (addresses, earlier) = (&mut self.addresses, self.earlier);
        let address_delay = self.politeness.address_delay;
        let number = *self.address_numbers.entry(address.ip()).or_insert_with(|| {
            addresses.push(Address {
                active: 0,
                next: after(earlier, address_delay),
                awake: BinaryHeap::new(),
                asleep: BinaryHeap::new(),
                ready_level: None,
                waits_until: None,
            });
            addresses.len() - 1
        });
        let entry = &mut self.hosts[host.index()];
        entry.phase = Phase::At(number, address);
        entry.awake_level = None;
        entry.last = entry.last.max(earlier);
        let delay = entry.delay.unwrap_or(self.politeness.host_delay);
        entry.next = entry.next.max(after(entry.last, delay));
        self.offer(host, now);
        self.enter(number, now);
        Vec::new()
    }

    /// Says that the robots rules of `host` are known, so that its pages may be picked.
    pub fn robots_known(&mut self, host: HostId, now: Instant) {
        if let Some(entry) = self.hosts.get_mut(host.index()) {
            entry.robots_known = true;
            entry.robots_wanted = false;
            self.offer(host, now);
        }
    }

    /// Says that a request to `host` is over; it lasted `elapsed`, and the server may have asked to be left alone for
    /// the time of `pause`.
    pub fn completed(&mut self, host: HostId, now: Instant, elapsed: Duration, pause: Option<Duration>) {
        self.active = self.active.saturating_sub(1);
        let entry = &mut self.hosts[host.index()];
        entry.active = entry.active.saturating_sub(1);
        let delay = entry.delay.unwrap_or(self.politeness.host_delay);
        // A server that takes long to answer is busy: it is left in peace for as long as it took.
        let delay = if delay.is_zero() { delay } else { delay.max(elapsed) };
        let delay = delay.max(pause.unwrap_or_default());
        entry.last = Some(now);
        // Another request may have learned that the server wants to be left alone for longer.
        entry.next = entry.next.max(after(entry.last, delay));
        let Phase::At(number, _) = entry.phase else { return };
        let address = &mut self.addresses[number];
        address.active = address.active.saturating_sub(1);
        address.next = after(Some(now), self.politeness.address_delay);
        self.offer(host, now);
        self.enter(number, now);
    }

    /// Says that a request that was picked has not been sent after all, so that it counts for no delay.
    pub fn cancelled(&mut self, host: HostId, now: Instant) {
        self.active = self.active.saturating_sub(1);
        let entry = &mut self.hosts[host.index()];
        entry.active = entry.active.saturating_sub(1);
        entry.next = None;
        let Phase::At(number, _) = entry.phase else { return };
        let address = &mut self.addresses[number];
        address.active = address.active.saturating_sub(1);
        address.next = None;
        self.offer(host, now);
        self.enter(number, now);
    }

    /// The URL of `host` that is wanted most.
    pub fn best(&mut self, host: HostId) -> Option<UrlId> {
        self.hosts.get(host.index())?;
        self.top_level(host)?;
        self.hosts.get(host.index())?.levels.last().and_then(|(_, urls)| urls.front().copied())
    }

    /// Asks for the robots.txt of `host` once more, or for the first time even if no URL of it waits.
    pub fn want_robots(&mut self, host: HostId, now: Instant) {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        if !entry.robots_known {
            entry.robots_under_way = false;
            entry.robots_wanted = true;
            self.offer(host, now);
        }
    }

    /// Takes `host` out for the rest of this run; its URLs leave the frontier and are returned.
    pub fn give_up(&mut self, host: HostId, why: Refusal) -> Vec<UrlId> {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.phase = Phase::GivenUp(why);
        entry.awake_level = None;
        let levels = std::mem::take(&mut entry.levels);
        let mut left = Vec::new();
        for (level, urls) in levels {
            for url in urls {
                if self.level_of[url.index()] == level {
                    self.level_of[url.index()] = 0;
                    left.push(url);
                }
            }
        }
        self.queued -= left.len() as u64;
        left
    }

    fn grow(&mut self, host: HostId) {
        if self.hosts.len() <= host.index() {
            self.hosts.resize_with(host.index() + 1, Host::default);
        }
    }

    fn next_unresolved(&mut self) -> Option<HostId> {
        while self.resolving < RESOLVING_MAX {
            let (_, _, host) = self.unresolved.pop()?;
            let entry = &mut self.hosts[host.index()];
            if entry.phase == Phase::New && (entry.robots_wanted || !entry.levels.is_empty()) {
                entry.phase = Phase::Resolving;
                self.resolving += 1;
                return Some(host);
            }
        }
        None
    }

    /// Moves addresses whose time has come from the waiting to the ready.
    fn wake_addresses(&mut self, now: Instant) {
        while let Some(Reverse((time, number))) = self.waiting.peek().copied() {
            if time > now {
                return;
            }
            self.waiting.pop();
            if self.addresses[number].waits_until == Some(time) {
                self.addresses[number].waits_until = None;
                self.enter(number, now);
            }
        }
    }

    /// Takes one request from the best host at an address.
    fn pick_at(&mut self, number: usize, now: Instant) -> Option<Pick> {
        while let Some((level, _, host)) = self.addresses[number].awake.pop() {
            let entry = &mut self.hosts[host.index()];
            if entry.awake_level != Some(level) {
                continue;
            }
            entry.awake_level = None;
            let Phase::At(_, address) = entry.phase else { continue };
            let pick = if entry.robots_known {
                Pick::Page(host, self.pop_url(host)?, address)
            } else if entry.robots_under_way {
                continue;
            } else {
                entry.robots_under_way = true;
                Pick::Robots(host, address)
            };
            let entry = &mut self.hosts[host.index()];
            entry.active += 1;
            self.active += 1;
            let delay = entry.delay.unwrap_or(self.politeness.host_delay);
            // Until the answer is there nobody knows when the next request may go out, but never before this.
            entry.next = after(Some(now), delay);
            let address_delay = self.politeness.address_delay;
            let address = &mut self.addresses[number];
            address.active += 1;
            address.next = after(Some(now), address_delay);
            self.offer(host, now);
            return Some(pick);
        }
        None
    }

    /// The best URL of a host; out-of-date entries on the way are dropped.
    fn pop_url(&mut self, host: HostId) -> Option<UrlId> {
        let levels = &mut self.hosts[host.index()].levels;
        while let Some((level, urls)) = levels.last_mut() {
            let Some(url) = urls.pop_front() else {
                levels.pop();
                continue;
            };
            if self.level_of[url.index()] == *level {
                self.level_of[url.index()] = PICKED;
                self.queued -= 1;
                if urls.is_empty() {
                    levels.pop();
                }
                return Some(url);
            }
        }
        None
    }

    /// Drops out-of-date entries from the top of a host's levels and tells its best level.
    fn top_level(&mut self, host: HostId) -> Option<u8> {
        let levels = &mut self.hosts[host.index()].levels;
        while let Some((level, urls)) = levels.last_mut() {
            while urls.front().is_some_and(|url| self.level_of[url.index()] != *level) {
                urls.pop_front();
            }
            if !urls.is_empty() {
                return Some(*level);
            }
            levels.pop();
        }
        self.hosts[host.index()].robots_wanted.then_some(LEVEL_REQUISITE)
    }

    /// Puts a host that could be asked (now or later) where it will be found.
    fn offer(&mut self, host: HostId, now: Instant) {
        let Some(level) = self.top_level(host) else { return };
        let per_host = self.politeness.per_host;
        self.ticket += 1;
        let ticket = Reverse(self.ticket);
        let entry = &mut self.hosts[host.index()];
        match entry.phase {
            Phase::New if entry.awake_level.is_none_or(|known| known < level) => {
                entry.awake_level = Some(level);
                self.unresolved.push((level, ticket, host));
            }
            Phase::At(number, _)
                if entry.active < per_host && (entry.robots_known || !entry.robots_under_way) =>
            {
                let address = &mut self.addresses[number];
                match entry.next {
                    Some(time) if time > now && entry.asleep => {}
                    Some(time) if time > now => {
                        entry.asleep = true;
                        address.asleep.push(Reverse((time, host)));
                    }
                    _ if entry.awake_level.is_none_or(|known| known < level) => {
                        entry.awake_level = Some(level);
                        address.awake.push((level, ticket, host));
                    }
                    _ => {}
                }
                self.enter(number, now);
            }
            Phase::New | Phase::At(..) | Phase::Resolving | Phase::GivenUp(_) => {}
        }
    }

    /// Puts an address among the ready or the waiting, as its hosts and its own delay demand.
    fn enter(&mut self, number: usize, now: Instant) {
        self.wake_hosts(number, now);
        let address = &mut self.addresses[number];
        if address.active >= self.politeness.per_address {
            return;
        }
        while let Some((level, _, host)) = address.awake.peek() {
            if self.hosts[host.index()].awake_level == Some(*level) {
                break;
            }
            address.awake.pop();
        }
        let own_time = address.next.filter(|time| *time > now);
        let wake = match (address.awake.peek(), address.asleep.peek()) {
            (Some((level, _, _)), _) if own_time.is_none() => {
                if address.ready_level.is_none_or(|known| known < *level) {
                    address.ready_level = Some(*level);
                    self.ticket += 1;
                    self.ready.push((*level, Reverse(self.ticket), number));
                }
                return;
            }
            (Some(_), _) => own_time,
            (None, Some(Reverse((time, _)))) => Some(own_time.map_or(*time, |own| own.max(*time))),
            (None, None) => None,
        };
        if let Some(time) = wake
            && address.waits_until.is_none_or(|known| time < known)
        {
            address.waits_until = Some(time);
            self.waiting.push(Reverse((time, number)));
        }
    }

    /// Wakes the hosts of an address whose time has come.
    fn wake_hosts(&mut self, number: usize, now: Instant) {
        while let Some(Reverse((time, host))) = self.addresses[number].asleep.peek().copied() {
            if time > now {
                return;
            }
            self.addresses[number].asleep.pop();
            let entry = &mut self.hosts[host.index()];
            entry.asleep = false;
            match entry.next {
                // Its time was moved while it slept.
                Some(later) if later > now => {
                    entry.asleep = true;
                    self.addresses[number].asleep.push(Reverse((later, host)));
                }
                _ => self.wake_host(number, host),
            }
        }
    }

    fn wake_host(&mut self, number: usize, host: HostId) {
        let Some(level) = self.top_level(host) else { return };
        let entry = &mut self.hosts[host.index()];
        let free = entry.active < self.politeness.per_host && (entry.robots_known || !entry.robots_under_way);
        if free && matches!(entry.phase, Phase::At(..)) && entry.awake_level.is_none_or(|known| known < level)
        {
            entry.awake_level = Some(level);
            self.ticket += 1;
            self.addresses[number].awake.push((level, Reverse(self.ticket), host));
        }
    }
}

/// When a server may be asked again that was asked at `time`; nothing when there is no delay.
fn after(time: Option<Instant>, delay: Duration) -> Option<Instant> {
    time.filter(|_| !delay.is_zero()).map(|time| time + delay)
}

#[cfg(test)]
mod tests;

//! What to fetch next: by importance among all that politeness allows now.
//!
//! Every host has its URLs in levels of importance. Every address has its hosts, awake (fetchable as far as the host is
//! concerned) or asleep. Every address that could serve a request now is in a heap by the level of its best host,
//! every other one in a heap by the time it wakes. So the next request is found in logarithmic time, and if anything is
//! fetchable, it is found.
//!
//! Entries are never searched for: a URL that rises is entered again, and outdated entries are skipped. The
//! frontier itself is derived: after a restart it is filled again from the page states.
//!
//! Of a host's URLs the best are in memory, the others on disk. How many are in memory altogether, the front, is the one
//! number that says how much memory the frontier takes (BUbiNG has the same: Boldi, Marino, Santini, Vigna, "BUbiNG:
//! massive crawling for the masses", WWW 2014, section 4.5).

mod ahead;
mod host_queue;
mod politeness;
mod schedule;
mod size;
mod spill;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use archive_storage::{HostId, SiteId, UrlId};

use self::ahead::{Ahead, Unresolved};
use self::host_queue::HostQueue;
pub use self::politeness::Politeness;
use self::spill::Spill;
use crate::cluster::Turns;
use crate::ledger::{LEVEL_PAGE_MAX, LEVEL_REQUISITE, Refusal, units_of};

/// URLs of one host in memory before some go to disk: at least, however many hosts there are, and at most.
const SHARE_MIN: usize = 32;
const SHARE_MAX: usize = 512;

/// An address is looked up again after this time: the system's resolver does not say how long it holds.
const ADDRESS_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// An address that could not be looked up again is used for so much longer.
const ADDRESS_KEPT: Duration = Duration::from_secs(5 * 60);

/// Stands in the place of a level once a URL was picked: higher than all levels, so that it cannot be raised again.
const PICKED: u8 = u8::MAX;

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
    /// Its address is being looked up, for the first time or again.
    Resolving(Option<SocketAddr>),
    /// At this address; by its number in `Frontier::addresses`.
    At(usize, SocketAddr),
    /// Not to be asked again in this run, for this reason.
    GivenUp(Refusal),
}

#[derive(Debug, Default)]
struct Host {
    queue: HostQueue,
    phase: Phase,
    /// Until when its address holds.
    address_until: Option<Instant>,
    /// Until when its robots rules hold; nothing before they were known.
    robots_until: Option<Instant>,
    /// Whether its rules are being found out.
    robots_under_way: bool,
    /// Whether it is to be asked for a robots.txt, or for what one redirects to, before anything else.
    robots_wanted: bool,
    active: u32,
    next: Option<Instant>,
    /// When the last request to it was over.
    last: Option<Instant>,
    delay: Option<Duration>,
    /// The level under which the host stands among the awake (or the unresolved), if it does.
    awake_level: Option<u8>,
    asleep: bool,
    /// Whether it is being resolved, or was, and nothing was asked of it yet.
    ahead: bool,
    /// Its site, once it is known.
    site: Option<SiteId>,
}

impl Host {
    /// Whether it is at the address with this number. Names move: entries among the hosts of another address are out of date.
    fn is_at(&self, number: usize) -> bool {
        matches!(self.phase, Phase::At(at, _) if at == number)
    }

    /// Whether there is something to fetch that its rules allow.
    fn may_be_asked(&self) -> bool {
        self.robots_wanted || !self.robots_under_way
    }
}

#[derive(Debug, Default)]
struct Address {
    /// Hosts that are there.
    hosts: u32,
    active: u32,
    next: Option<Instant>,
    ip: Option<IpAddr>,
    awake: BinaryHeap<(u8, Reverse<u64>, HostId)>,
    asleep: BinaryHeap<Reverse<(Instant, HostId)>>,
    /// The level under which the address stands among the ready, if it does.
    ready_level: Option<u8>,
    /// When the address is checked again, if it waits.
    waits_until: Option<Instant>,
}

/// All URLs to fetch, and when their servers may be asked.
#[derive(Debug)]
pub struct Frontier {
    politeness: Politeness,
    hosts: Vec<Host>,
    addresses: Vec<Address>,
    address_numbers: HashMap<IpAddr, usize>,
    /// Numbers of addresses that all their hosts have left.
    vacant: Vec<usize>,
    /// The level under which each URL is queued; 0 when it is not, [`PICKED`] once it was picked in this run.
    level_of: Vec<u8>,
    queued: u64,
    /// Of these, those of the highest level.
    requisites: u64,
    /// URLs below this level stay where they are.
    floor: u8,
    unresolved: BinaryHeap<Unresolved>,
    ahead: Ahead,
    ready: BinaryHeap<(u8, Reverse<u64>, usize)>,
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Counts entries, so that equals leave a heap in the order they came.
    ticket: u64,
    active: usize,
    /// Hosts that have a request under way.
    hosts_active: usize,
    /// Hosts that have something to fetch, and sleep.
    hosts_asleep: usize,
    /// Where URLs go that do not fit in memory; none for a frontier that is all in memory.
    spill: Option<Spill>,
    /// URLs in memory, about.
    front_max: usize,
    /// The disk's first error; see [`Frontier::failure`].
    failure: Option<io::Error>,
    /// Until when an earlier run may have asked servers.
    earlier: Option<Instant>,
    /// When addresses may be asked that other nodes ask, too; nothing without others.
    pub(super) turns: Option<Turns>,
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
            vacant: Vec::new(),
            level_of: Vec::new(),
            queued: 0,
            requisites: 0,
            floor: 0,
            unresolved: BinaryHeap::new(),
            ahead: Ahead::default(),
            ready: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            ticket: 0,
            active: 0,
            hosts_active: 0,
            hosts_asleep: 0,
            spill: None,
            front_max: usize::MAX,
            failure: None,
            earlier: None,
            turns: None,
        }
    }

    /// An empty frontier that keeps about `front_max` URLs in memory and the others in a file that nobody else uses.
    #[must_use]
    pub fn on_disk(politeness: Politeness, front_max: usize, file: File) -> Self {
        Self { spill: Some(Spill::new(file)), front_max, ..Self::new(politeness) }
    }

    /// What the disk has refused since it was asked last. URLs that could not be read back are lost to this run.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Says that an earlier run may have asked any server until `now`, so that each gets its delay first.
    pub fn resume(&mut self, now: Instant) {
        self.earlier = Some(now);
    }

    /// Ordinary pages that wait, looked for among all URLs.
    pub fn waiting(&self) -> impl Iterator<Item = UrlId> {
        let levels = self.level_of.iter().zip(0..);
        levels.filter(|(level, _)| (1..=LEVEL_PAGE_MAX).contains(*level)).map(|(_, url)| UrlId(url))
    }

    /// URLs that wait to be fetched.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Of these, parts of pages, which have the highest level.
    #[must_use]
    pub fn requisites(&self) -> u64 {
        self.requisites
    }

    /// The cash of the ordinary pages that wait, in units, by their levels: a seventh too little on average.
    #[must_use]
    pub fn waiting_cash(&self) -> u64 {
        let mut pages = [0_u64; 1 + u8::MAX as usize];
        self.level_of.iter().for_each(|level| pages[usize::from(*level)] += 1);
        let levels = pages.iter().zip(0..=u8::MAX);
        levels.fold(0, |sum, (pages, level)| sum.saturating_add(pages.saturating_mul(units_of(level))))
    }

    /// Lets only URLs of this level and above be picked.
    pub fn set_floor(&mut self, level: u8) {
        self.floor = level;
    }

    /// Requests under way, resolutions included.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active + self.ahead.resolving
    }

    /// Hosts that have a request under way.
    #[must_use]
    pub fn hosts_active(&self) -> usize {
        self.hosts_active
    }

    /// Hosts that have something to be asked for, and are left alone until their delay is over.
    #[must_use]
    pub fn hosts_waiting(&self) -> usize {
        self.hosts_asleep
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
        self.requisites += u64::from(level == LEVEL_REQUISITE);
        *known = level;
        entry.queue.push((level, url));
        if let Some(spill) = &mut self.spill {
            let share = (self.front_max / self.hosts.len()).clamp(SHARE_MIN, SHARE_MAX);
            let queue = &mut self.hosts[host.index()].queue;
            if queue.len() > share
                && let Err(error) = queue.spill(spill)
            {
                self.failure.get_or_insert(error);
            }
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

    /// Treats servers in another way from now on.
    pub fn set_politeness(&mut self, politeness: Politeness) {
        self.politeness = politeness;
    }

    /// Gives a host its own delay, or that of all others; it counts from its last request on.
    pub fn set_delay(&mut self, host: HostId, delay: Option<Duration>) {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.delay = delay;
        entry.next = entry.next.max(delay.and_then(|delay| after(entry.last, delay)));
    }

    /// The next thing to do at `now`, if there is anything.
    pub fn next(&mut self, now: Instant) -> Option<Pick> {
        self.wake_addresses(now);
        if let Some(host) = self.next_unresolved() {
            return Some(Pick::Resolve(host));
        }
        while self.ready_level()? >= self.floor {
            let (_, _, number) = self.ready.pop()?;
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
        self.ahead.resolving = self.ahead.resolving.saturating_sub(1);
        let Some(address) = address else { return self.give_up(host, Refusal::Unresolved) };
        let before = match self.hosts[host.index()].phase {
            Phase::New | Phase::Resolving(None) => None,
            Phase::Resolving(Some(before)) => Some(before.ip()),
            Phase::At(..) | Phase::GivenUp(_) => return Vec::new(),
        };
        let number = self.move_host(before, address.ip(), now);
        let earlier = self.earlier;
        let entry = &mut self.hosts[host.index()];
        entry.phase = Phase::At(number, address);
        entry.address_until = Some(now + ADDRESS_AGE_MAX);
        entry.awake_level = None;
        self.hosts_asleep -= usize::from(std::mem::take(&mut entry.asleep));
        entry.last = entry.last.max(earlier);
        let delay = entry.delay.unwrap_or(self.politeness.host_delay);
        entry.next = entry.next.max(after(entry.last, delay));
        self.offer(host, now);
        self.enter(number, now);
        Vec::new()
    }

    /// Says that the address of `host` could not be looked up again, and lets it hold for a while; false if there was none.
    pub fn keep_address(&mut self, host: HostId, now: Instant) -> bool {
        let Some(Phase::Resolving(Some(address))) = self.hosts.get(host.index()).map(|host| host.phase)
        else {
            return false;
        };
        self.resolved(host, Some(address), now);
        self.hosts[host.index()].address_until = Some(now + ADDRESS_KEPT);
        true
    }

    /// Says that the robots rules of `host` are known and hold for a time, so that its pages may be picked.
    pub fn robots_known(&mut self, host: HostId, now: Instant, holds: Duration) {
        if let Some(entry) = self.hosts.get_mut(host.index()) {
            (entry.robots_until, entry.robots_under_way) = (Some(now + holds), false);
            if entry.queue.is_empty() {
                self.is_asked(host);
            }
            self.offer(host, now);
        }
    }

    /// Whether the robots rules of `host` are known and hold.
    #[must_use]
    pub fn knows_robots(&self, host: HostId, now: Instant) -> bool {
        self.hosts.get(host.index()).is_some_and(|host| host.robots_until.is_some_and(|until| now < until))
    }

    /// Says that a request to `host` is over; it lasted `elapsed`, and the server may have asked to be left alone for
    /// the time of `pause`.
    pub fn completed(&mut self, host: HostId, now: Instant, elapsed: Duration, pause: Option<Duration>) {
        self.active = self.active.saturating_sub(1);
        self.ended(host);
        let entry = &mut self.hosts[host.index()];
        let delay = self.politeness.delay_after(entry.delay, elapsed, pause);
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
        self.ended(host);
        let entry = &mut self.hosts[host.index()];
        // What was learned of its delay in the meantime holds.
        entry.next = after(entry.last, entry.delay.unwrap_or(self.politeness.host_delay));
        let (phase, has_asked) = (entry.phase, entry.robots_until.is_some());
        if !has_asked && self.top_level(host).is_some() {
            self.get_ahead(host);
        }
        let Phase::At(number, _) = phase else { return };
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
        self.hosts.get(host.index())?.queue.best().map(|(_, url)| url)
    }

    /// Lets [`Pick::Robots`] come for `host` once more, even if no URL of it waits or its rules are known; whether the host can
    /// be asked at all in this run.
    pub fn want_robots(&mut self, host: HostId, now: Instant) -> bool {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.robots_wanted = !matches!(entry.phase, Phase::GivenUp(_));
        let is_wanted = entry.robots_wanted;
        self.offer(host, now);
        is_wanted
    }

    /// Takes `host` out for the rest of this run; its URLs leave the frontier and are returned.
    pub fn give_up(&mut self, host: HostId, why: Refusal) -> Vec<UrlId> {
        self.grow(host);
        self.is_asked(host);
        let entry = &mut self.hosts[host.index()];
        entry.phase = Phase::GivenUp(why);
        entry.awake_level = None;
        self.hosts_asleep -= usize::from(std::mem::take(&mut entry.asleep));
        let entries = entry.queue.take_all(self.spill.as_mut()).unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Vec::new()
        });
        let mut left = Vec::new();
        for (level, url) in entries {
            if self.level_of[url.index()] == level {
                self.level_of[url.index()] = 0;
                self.requisites -= u64::from(level == LEVEL_REQUISITE);
                left.push(url);
            }
        }
        self.queued -= left.len() as u64;
        left
    }
}

/// When a server may be asked again that was asked at `time`; nothing when there is no delay.
fn after(time: Option<Instant>, delay: Duration) -> Option<Instant> {
    time.filter(|_| !delay.is_zero()).map(|time| time + delay)
}

#[cfg(test)]
mod tests;

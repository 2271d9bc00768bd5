//! What to fetch next: the most important of all URLs that politeness allows now.
//!
//! Every host has its URLs in levels of importance. Every address has its hosts, either awake (fetchable as far as the
//! host is concerned) or asleep. Every address that could take a request now is in one heap, by the level of its best
//! host; every other one is in another heap, by the time at which it wakes. So the next request is found in logarithmic
//! time, and if anything is fetchable, it is found.
//!
//! Heaps are never searched: a URL whose level rises is added again, and outdated entries are skipped. The frontier is
//! derived data: after a restart it is filled again from the page states.
//!
//! The best of a host's URLs are in memory, the others on disk. The total number in memory, the front, is the one
//! parameter that determines how much memory the frontier takes (as in BUbiNG: Boldi, Marino, Santini, Vigna, "BUbiNG:
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
use std::net::IpAddr;
use std::time::{Duration, Instant};

use archive_books::cluster::Turns;
use archive_books::ledger::{LEVEL_PAGE_MAX, LEVEL_REQUISITE, Refusal, units_of};
use archive_storage::{HostId, SiteId, UrlId};
use archive_web::fetch::Place;

use self::ahead::{HostsAhead, Unresolved};
use self::host_queue::HostQueue;
pub use self::politeness::Politeness;
use self::spill::Spill;

/// Minimum and maximum of the number of URLs of one host in memory before some go to disk.
const SHARE_MIN: usize = 32;
const SHARE_MAX: usize = 512;

/// Addresses are looked up again after this time: the system's resolver does not report their lifetime.
const ADDRESS_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// Time for which an address stays in use after its lookup failed.
const ADDRESS_KEPT: Duration = Duration::from_secs(5 * 60);

/// Stored instead of a level once a URL was picked: above all levels, so that the URL cannot be raised again.
const PICKED: u8 = u8::MAX;

/// A task for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Look up the address of a host.
    Resolve(HostId),
    /// Fetch the robots.txt of a host, before anything else from it.
    Robots(HostId, Place),
    /// Fetch a page.
    Page(HostId, UrlId, Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    New,
    /// Its address is being looked up; the earlier address if this is not the first time.
    Resolving(Option<Place>),
    /// At this address, with its number in `Frontier::addresses`.
    At(usize, Place),
    /// Not asked again in this run, for this reason.
    GivenUp(Refusal),
}

#[derive(Debug, Default)]
struct FrontierHost {
    queue: HostQueue,
    phase: Phase,
    /// When its address expires.
    address_until: Option<Instant>,
    /// When its robots rules expire; `None` before they are known.
    robots_until: Option<Instant>,
    /// Whether its rules are being looked up.
    robots_under_way: bool,
    /// Whether a robots.txt, or the target of one's redirect, must be requested from it before anything else.
    robots_wanted: bool,
    active: u32,
    /// Whether it is left alone for a while, or was and has not answered since: then it gets one request at a time.
    is_left_alone: bool,
    next: Option<Instant>,
    /// When its last request ended.
    last: Option<Instant>,
    delay: Option<Duration>,
    /// Level of its entry among the awake (or unresolved) hosts, if any.
    awake_level: Option<u8>,
    asleep: bool,
    /// Whether it is being resolved, or was, and nothing was requested from it so far.
    ahead: bool,
    /// Its site, once known.
    site: Option<SiteId>,
}

impl FrontierHost {
    /// Whether it is at the address with this number. Hosts move: entries at their earlier addresses are outdated.
    fn is_at(&self, number: usize) -> bool {
        matches!(self.phase, Phase::At(at, _) if at == number)
    }

    /// Whether its rules allow a request now.
    fn may_be_asked(&self) -> bool {
        self.robots_wanted || !self.robots_under_way
    }

    /// Whether one more request may be in flight to it.
    fn has_room(&self, per_host: u32) -> bool {
        self.active < if self.is_left_alone { 1 } else { per_host }
    }
}

/// What has a delay of its own, whatever hosts it serves: an address, or a host whose address only a proxy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spaced {
    Address(IpAddr),
    Host(HostId),
}

impl Spaced {
    fn of(host: HostId, place: Place) -> Self {
        match place {
            Place::Address(ip) => Self::Address(ip),
            Place::BehindProxy => Self::Host(host),
        }
    }
}

#[derive(Debug, Default)]
struct FrontierAddress {
    /// Number of hosts at this address.
    hosts: u32,
    active: u32,
    next: Option<Instant>,
    spaced: Option<Spaced>,
    awake: BinaryHeap<(u8, Reverse<u64>, HostId)>,
    asleep: BinaryHeap<Reverse<(Instant, HostId)>>,
    /// Level of its entry among the ready addresses, if any.
    ready_level: Option<u8>,
    /// When the address is checked again, if it waits.
    waits_until: Option<Instant>,
}

/// All URLs to fetch, and when their servers may be asked.
#[derive(Debug, Default)]
pub struct Frontier {
    politeness: Politeness,
    hosts: Vec<FrontierHost>,
    addresses: Vec<FrontierAddress>,
    address_numbers: HashMap<Spaced, usize>,
    /// Numbers of addresses without hosts.
    vacant: Vec<usize>,
    /// Level of each queued URL; 0 if it is not queued, [`PICKED`] once it was picked in this run.
    level_of: Vec<u8>,
    queued: u64,
    /// Number of queued entries with the highest level.
    requisites: u64,
    /// URLs below this level are not picked.
    floor: u8,
    unresolved: BinaryHeap<Unresolved>,
    ahead: HostsAhead,
    ready: BinaryHeap<(u8, Reverse<u64>, usize)>,
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Counts entries, so that entries of equal level leave a heap in order of arrival.
    ticket: u64,
    active: usize,
    /// Number of hosts with a request in flight.
    hosts_active: usize,
    /// Number of hosts asleep that have something to fetch.
    hosts_asleep: usize,
    /// Where excess URLs go; `None` for a frontier in memory only.
    spill: Option<Spill>,
    /// Approximate number of URLs in memory, if there is a spill.
    front_max: usize,
    /// First disk error since the last [`Frontier::failure`].
    failure: Option<io::Error>,
    /// Time until which an earlier run may have sent requests.
    earlier: Option<Instant>,
    /// This node's turns at addresses that other nodes ask, too; `None` without other nodes.
    pub(super) turns: Option<Turns>,
}

impl Frontier {
    /// Creates an empty frontier.
    #[must_use]
    pub fn new(politeness: Politeness) -> Self {
        Self { politeness, ..Self::default() }
    }

    /// Creates an empty frontier that keeps about `front_max` URLs in memory and the others in a file that nobody else
    /// uses.
    #[must_use]
    pub fn on_disk(politeness: Politeness, front_max: usize, file: File) -> Self {
        Self { spill: Some(Spill::new(file)), front_max, ..Self::new(politeness) }
    }

    /// Returns the first disk error since the last call. URLs that could not be read back are lost to this run.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Notes that an earlier run may have asked any server until `now`, so that each gets its delay first.
    pub fn resume(&mut self, now: Instant) {
        self.earlier = Some(now);
    }

    /// Returns the ordinary pages that wait, in a pass over all URLs.
    pub fn waiting(&self) -> impl Iterator<Item = UrlId> {
        let levels = self.level_of.iter().zip(0..);
        levels.filter(|(level, _)| (1..=LEVEL_PAGE_MAX).contains(*level)).map(|(_, url)| UrlId(url))
    }

    /// Number of waiting URLs.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Number of those that are requisites, which have the highest level.
    #[must_use]
    pub fn requisites(&self) -> u64 {
        self.requisites
    }

    /// Returns the cash of the waiting ordinary pages in units, computed from their levels: what they received
    /// counts a twentieth too little on average.
    #[must_use]
    pub fn waiting_cash(&self) -> u64 {
        let mut pages = [0_u64; 1 + u8::MAX as usize];
        self.level_of.iter().for_each(|level| pages[usize::from(*level)] += 1);
        let levels = pages.iter().zip(0..=u8::MAX);
        levels.fold(0, |sum, (pages, level)| sum.saturating_add(pages.saturating_mul(units_of(level))))
    }

    /// Restricts picks to URLs of this level and above.
    pub fn set_floor(&mut self, level: u8) {
        self.floor = level;
    }

    /// Number of requests in flight, including lookups.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active + self.ahead.resolving
    }

    /// Number of hosts with a request in flight.
    #[must_use]
    pub fn hosts_active(&self) -> usize {
        self.hosts_active
    }

    /// Number of hosts with something to request whose delay is not over.
    #[must_use]
    pub fn hosts_waiting(&self) -> usize {
        self.hosts_asleep
    }

    /// Adds `url` with `level` (1 to 254), or raises it to that level.
    ///
    /// Lower levels, and URLs that were picked in this run, change nothing.
    ///
    /// # Errors
    /// The reason why nothing from the host is fetched in this run.
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

    /// Adds a URL again that was picked in this run, for another attempt.
    ///
    /// # Errors
    /// As [`Frontier::push`].
    pub fn push_again(&mut self, url: UrlId, host: HostId, level: u8, now: Instant) -> Result<(), Refusal> {
        self.unpick(url);
        self.push(url, host, level, now)
    }

    /// Lets a URL that was picked in this run be added once more.
    pub fn unpick(&mut self, url: UrlId) {
        if let Some(known) = self.level_of.get_mut(url.index()) {
            *known = 0;
        }
    }

    /// Leaves a host alone until a time, as it asked an earlier run.
    pub fn leave_alone(&mut self, host: HostId, until: Instant) {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        (entry.is_left_alone, entry.next) = (true, entry.next.max(Some(until)));
    }

    /// Whether everything that waits is at hosts that are left alone, or waits for the robots.txt of one.
    pub fn waits_for_hosts_left_alone(&mut self) -> bool {
        (0..self.hosts.len()).all(|index| {
            let entry = &self.hosts[index];
            let is_out =
                entry.is_left_alone || matches!(entry.phase, Phase::GivenUp(_)) || !entry.may_be_asked();
            is_out || u32::try_from(index).is_ok_and(|host| self.top_level(HostId(host)).is_none())
        })
    }

    /// Replaces the politeness settings.
    pub fn set_politeness(&mut self, politeness: Politeness) {
        self.politeness = politeness;
    }

    /// Sets a host's own delay, or removes it; the delay counts from the last request.
    pub fn set_delay(&mut self, host: HostId, delay: Option<Duration>) {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.delay = delay;
        entry.next = entry.next.max(delay.and_then(|delay| after(entry.last, delay)));
    }

    /// Returns the next task at `now`, if any.
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

    /// Returns when something becomes fetchable, if no other event comes first.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((time, _))| *time)
    }

    /// Notes where `host` is. Without a place, its URLs leave the frontier and are returned.
    pub fn resolved(&mut self, host: HostId, place: Option<Place>, now: Instant) -> Vec<UrlId> {
        self.ahead.resolving = self.ahead.resolving.saturating_sub(1);
        let Some(place) = place else { return self.give_up(host, Refusal::Unresolved) };
        let before = match self.hosts[host.index()].phase {
            Phase::New | Phase::Resolving(None) => None,
            Phase::Resolving(Some(before)) => Some(Spaced::of(host, before)),
            Phase::At(..) | Phase::GivenUp(_) => return Vec::new(),
        };
        let number = self.move_host(before, Spaced::of(host, place), now);
        let earlier = self.earlier;
        let entry = &mut self.hosts[host.index()];
        entry.phase = Phase::At(number, place);
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

    /// Notes that the lookup of a known address failed, and keeps the address for a while; returns false if there was
    /// none.
    pub fn keep_address(&mut self, host: HostId, now: Instant) -> bool {
        let Some(Phase::Resolving(Some(address))) = self.hosts.get(host.index()).map(|host| host.phase)
        else {
            return false;
        };
        self.resolved(host, Some(address), now);
        self.hosts[host.index()].address_until = Some(now + ADDRESS_KEPT);
        true
    }

    /// Notes that another address of `host` answered than the one that was asked.
    pub fn moved(&mut self, host: HostId, address: IpAddr, now: Instant) {
        let entry = &mut self.hosts[host.index()];
        // Other requests count for the earlier address.
        if let Phase::At(_, before) = entry.phase
            && entry.active == 0
        {
            entry.phase = Phase::Resolving(Some(before));
            self.ahead.resolving += 1;
            self.resolved(host, Some(Place::Address(address)), now);
            if let Some(&number) = self.address_numbers.get(&Spaced::Address(address)) {
                self.addresses[number].next = after(Some(now), self.politeness.address_delay);
                self.enter(number, now);
            }
        }
    }

    /// Notes that the robots rules of `host` are known for the time `holds`, so that its pages may be picked.
    pub fn robots_known(&mut self, host: HostId, now: Instant, holds: Duration) {
        if let Some(entry) = self.hosts.get_mut(host.index()) {
            (entry.robots_until, entry.robots_under_way) = (Some(now + holds), false);
            if entry.queue.is_empty() {
                self.mark_asked(host);
            }
            self.offer(host, now);
        }
    }

    /// Whether the robots rules of `host` are known and current.
    #[must_use]
    pub fn knows_robots(&self, host: HostId, now: Instant) -> bool {
        self.hosts.get(host.index()).is_some_and(|host| host.robots_until.is_some_and(|until| now < until))
    }

    /// Notes that a request to `host` has ended. It took `elapsed`, and the host may be left alone for a `pause`.
    pub fn completed(&mut self, host: HostId, now: Instant, elapsed: Duration, pause: Option<Duration>) {
        self.active = self.active.saturating_sub(1);
        self.ended(host);
        let entry = &mut self.hosts[host.index()];
        let delay = self.politeness.delay_after(entry.delay, elapsed, pause);
        (entry.is_left_alone, entry.last) = (pause.is_some(), Some(now));
        // Another answer may have asked for a longer pause.
        entry.next = entry.next.max(after(entry.last, delay));
        let Phase::At(number, _) = entry.phase else { return };
        let address = &mut self.addresses[number];
        address.active = address.active.saturating_sub(1);
        address.next = after(Some(now), self.politeness.address_delay);
        self.offer(host, now);
        self.enter(number, now);
    }

    /// Notes that a picked request was not sent after all, so that it counts for no delay.
    pub fn cancelled(&mut self, host: HostId, now: Instant) {
        self.active = self.active.saturating_sub(1);
        self.ended(host);
        let entry = &mut self.hosts[host.index()];
        // Changes of its delay in the meantime stay in force.
        entry.next = after(entry.last, entry.delay.unwrap_or(self.politeness.host_delay));
        let (phase, has_asked) = (entry.phase, entry.robots_until.is_some());
        if !has_asked && self.top_level(host).is_some() {
            self.mark_ahead(host);
        }
        let Phase::At(number, _) = phase else { return };
        let address = &mut self.addresses[number];
        address.active = address.active.saturating_sub(1);
        address.next = None;
        self.offer(host, now);
        self.enter(number, now);
    }

    /// Returns the best URL of `host`.
    pub fn best(&mut self, host: HostId) -> Option<UrlId> {
        self.hosts.get(host.index())?;
        self.top_level(host)?;
        self.hosts.get(host.index())?.queue.best().map(|(_, url)| url)
    }

    /// Makes [`Pick::Robots`] come for `host` once more, even if none of its URLs wait or its rules are known; returns
    /// whether the host can be asked at all in this run.
    pub fn want_robots(&mut self, host: HostId, now: Instant) -> bool {
        self.grow(host);
        let entry = &mut self.hosts[host.index()];
        entry.robots_wanted = !matches!(entry.phase, Phase::GivenUp(_));
        let is_wanted = entry.robots_wanted;
        self.offer(host, now);
        is_wanted
    }

    /// Drops `host` for the rest of this run; its URLs leave the frontier and are returned.
    pub fn give_up(&mut self, host: HostId, why: Refusal) -> Vec<UrlId> {
        self.grow(host);
        self.mark_asked(host);
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

/// Returns when a server that was asked at `time` may be asked again; `None` if there is no delay.
fn after(time: Option<Instant>, delay: Duration) -> Option<Instant> {
    time.filter(|_| !delay.is_zero()).map(|time| time + delay)
}

#[cfg(test)]
mod tests;

//! Scheduling: moves hosts between awake and asleep, and addresses between ready and waiting.

use std::cmp::Reverse;
use std::time::Instant;

use archive_books::ledger::{LEVEL_PAGE_MAX, LEVEL_REQUISITE};
use archive_storage::{HostId, UrlId};

use super::{Frontier, FrontierAddress, FrontierHost, PICKED, Phase, Pick, Spaced, after};

impl Frontier {
    /// Moves a waiting ordinary page to another level, higher or lower; returns whether it waits.
    pub fn reorder(&mut self, url: UrlId, host: HostId, level: u8, now: Instant) -> bool {
        let Some(known) = self.level_of.get_mut(url.index()) else { return false };
        if *known == 0 || *known > LEVEL_PAGE_MAX {
            return false;
        }
        let level = level.clamp(1, LEVEL_PAGE_MAX);
        if level < *known {
            // Its entry is outdated from now on.
            *known = 0;
            self.queued -= 1;
        }
        self.push(url, host, level, now).is_ok()
    }

    pub(super) fn grow(&mut self, host: HostId) {
        if self.hosts.len() <= host.index() {
            self.hosts.resize_with(host.index() + 1, FrontierHost::default);
        }
    }

    /// Counts a host at an address, and no longer at the one where it was `before`; returns the address's number. An
    /// address without hosts whose delay is over is dropped, so that moving host names take no memory.
    pub(super) fn move_host(&mut self, before: Option<Spaced>, to: Spaced, now: Instant) -> usize {
        let next = after(self.earlier, self.politeness.address_delay);
        let Self { addresses, address_numbers, vacant, .. } = self;
        let number = *address_numbers.entry(to).or_insert_with(|| {
            let number = vacant.pop().unwrap_or(addresses.len());
            if number == addresses.len() {
                addresses.push(FrontierAddress::default());
            }
            addresses[number] = FrontierAddress { next, spaced: Some(to), ..FrontierAddress::default() };
            number
        });
        addresses[number].hosts += 1;
        if let Some((before, left)) = before.and_then(|at| Some((at, *address_numbers.get(&at)?))) {
            let address = &mut addresses[left];
            address.hosts -= 1;
            if address.hosts == 0 && address.active == 0 && address.next.is_none_or(|next| next <= now) {
                address_numbers.remove(&before);
                vacant.push(left);
            }
        }
        number
    }

    /// Returns the level of the best address that may be asked now.
    pub(super) fn ready_level(&mut self) -> Option<u8> {
        while let Some(&(level, _, number)) = self.ready.peek() {
            if self.addresses[number].ready_level == Some(level) {
                return Some(level);
            }
            self.ready.pop();
        }
        None
    }

    /// Returns the level of what [`Frontier::next`] would pick; 0 if nothing. It may be too high while the best entry
    /// is outdated.
    pub fn best_level(&mut self, now: Instant) -> u8 {
        self.wake_addresses(now);
        let best = self.ready_level().max(self.unresolved_level());
        best.filter(|level| *level >= self.floor).unwrap_or(0)
    }

    /// Moves addresses whose time has come from waiting to ready.
    pub(super) fn wake_addresses(&mut self, now: Instant) {
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

    /// Picks a request at the best host of an address, if it is this node's turn there.
    pub(super) fn pick_at(&mut self, number: usize, now: Instant) -> Option<Pick> {
        let delay = self.politeness.address_delay;
        if let (Some(turns), Some(Spaced::Address(ip))) = (&mut self.turns, self.addresses[number].spaced)
            && !delay.is_zero()
            && let Some(until) = turns.wait(ip, delay, now.max(Instant::now()))
        {
            let address = &mut self.addresses[number];
            address.next = address.next.max(Some(until));
            return None;
        }
        while let Some(&(level, _, host)) = self.addresses[number].awake.peek() {
            if level < self.floor {
                return None;
            }
            self.addresses[number].awake.pop();
            let entry = &mut self.hosts[host.index()];
            if entry.awake_level != Some(level) || !entry.is_at(number) {
                continue;
            }
            entry.awake_level = None;
            match self.top_level(host) {
                Some(top) if top < level => {
                    // Another request has taken what this entry was for.
                    self.offer(host, now);
                    continue;
                }
                Some(_) => {}
                None => continue,
            }
            let entry = &mut self.hosts[host.index()];
            let Phase::At(_, address) = entry.phase else { continue };
            if entry.address_until.is_some_and(|until| until <= now) {
                if entry.active > 0 {
                    // It is offered again when that request ends.
                    continue;
                }
                entry.phase = Phase::Resolving(Some(address));
                self.ahead.resolving += 1;
                return Some(Pick::Resolve(host));
            }
            let pick = if std::mem::take(&mut entry.robots_wanted) {
                Pick::Robots(host, address)
            } else if entry.robots_until.is_some_and(|until| now < until) {
                Pick::Page(host, self.pop_url(host)?, address)
            } else if entry.robots_under_way {
                continue;
            } else {
                entry.robots_under_way = true;
                Pick::Robots(host, address)
            };
            self.mark_asked(host);
            let entry = &mut self.hosts[host.index()];
            self.hosts_active += usize::from(entry.active == 0);
            entry.active += 1;
            self.active += 1;
            let delay = entry.delay.unwrap_or(self.politeness.host_delay);
            // Only the answer decides when the next request may be sent, but it is never before this.
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

    /// Counts the end of a request to a host.
    pub(super) fn ended(&mut self, host: HostId) {
        let entry = &mut self.hosts[host.index()];
        self.hosts_active -= usize::from(entry.active == 1);
        entry.active = entry.active.saturating_sub(1);
    }

    /// Takes the best URL of a host, dropping outdated entries.
    pub(super) fn pop_url(&mut self, host: HostId) -> Option<UrlId> {
        self.settle(host)?;
        let (level, url) = self.hosts[host.index()].queue.pop()?;
        self.level_of[url.index()] = PICKED;
        self.queued -= 1;
        self.requisites -= u64::from(level == LEVEL_REQUISITE);
        Some(url)
    }

    /// Drops outdated entries from the top of a host's queue and returns its best level.
    pub(super) fn top_level(&mut self, host: HostId) -> Option<u8> {
        if self.hosts[host.index()].robots_wanted { Some(LEVEL_REQUISITE) } else { self.settle(host) }
    }

    pub(super) fn settle(&mut self, host: HostId) -> Option<u8> {
        let level_of = &self.level_of;
        let is_valid = |(level, url): (u8, UrlId)| level_of[url.index()] == level;
        let queue = &mut self.hosts[host.index()].queue;
        queue.settle(self.spill.as_mut(), is_valid).unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            None
        })
    }

    /// Adds an entry for a host that could be asked, now or later.
    pub(super) fn offer(&mut self, host: HostId, now: Instant) {
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
            Phase::At(number, _) if entry.has_room(per_host) && entry.may_be_asked() => {
                let address = &mut self.addresses[number];
                match entry.next {
                    Some(time) if time > now && entry.asleep => {}
                    Some(time) if time > now => {
                        entry.asleep = true;
                        self.hosts_asleep += 1;
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
            Phase::New | Phase::At(..) | Phase::Resolving(_) | Phase::GivenUp(_) => {}
        }
    }

    /// Adds an address to the ready or the waiting ones, depending on its hosts and its own delay.
    pub(super) fn enter(&mut self, number: usize, now: Instant) {
        self.wake_hosts(number, now);
        let address = &mut self.addresses[number];
        if address.active >= self.politeness.per_address {
            return;
        }
        while let Some((level, _, host)) = address.awake.peek() {
            let entry = &self.hosts[host.index()];
            if entry.awake_level == Some(*level) && entry.is_at(number) {
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
    pub(super) fn wake_hosts(&mut self, number: usize, now: Instant) {
        while let Some(Reverse((time, host))) = self.addresses[number].asleep.peek().copied() {
            if time > now {
                return;
            }
            self.addresses[number].asleep.pop();
            let entry = &mut self.hosts[host.index()];
            if !entry.is_at(number) {
                continue;
            }
            match entry.next {
                // Its time was moved while it slept.
                Some(later) if later > now => {
                    self.hosts_asleep += usize::from(!std::mem::replace(&mut entry.asleep, true));
                    self.addresses[number].asleep.push(Reverse((later, host)));
                }
                _ => {
                    self.hosts_asleep -= usize::from(std::mem::take(&mut entry.asleep));
                    self.wake_host(number, host);
                }
            }
        }
    }

    pub(super) fn wake_host(&mut self, number: usize, host: HostId) {
        let Some(level) = self.top_level(host) else { return };
        let entry = &mut self.hosts[host.index()];
        let free = entry.has_room(self.politeness.per_host) && entry.may_be_asked();
        if free && matches!(entry.phase, Phase::At(..)) && entry.awake_level.is_none_or(|known| known < level)
        {
            entry.awake_level = Some(level);
            self.ticket += 1;
            self.addresses[number].awake.push((level, Reverse(self.ticket), host));
        }
    }
}

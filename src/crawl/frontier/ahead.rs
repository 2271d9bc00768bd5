//! Which hosts are resolved before it is their turn.
//!
//! A host is ahead when it is being resolved, or was, and nothing was asked of it yet. There is a small stock of hosts
//! ahead; a further one is resolved only if it would be asked next: because it is more important than all that could be
//! asked now, or because nothing could. Few hosts of one site are ahead, so that a site with a name for every page costs
//! about as many look-ups as requests, and those of other sites need not wait for it.
//!
//! Invariant: a host that waits behind others of its site is offered again once fewer of them are ahead.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use archive_storage::{HostId, SiteId};

use super::{Frontier, Host, Phase};

/// Hosts whose address is asked for at the same time.
const RESOLVING_MAX: usize = 64;

/// So many hosts are ahead even if others could be asked first: an address may take seconds to be found.
const STOCK: usize = 64;

/// Hosts ahead at most: with so many waiting for their addresses' delays, the next one would only wait with them.
const AHEAD_MAX: usize = 4096;

/// Hosts of one site that are ahead, at most.
const OF_SITE_MAX: u32 = 16;

/// A host that is to be resolved: its level and the number of its entry go before.
pub(super) type Unresolved = (u8, Reverse<u64>, HostId);

/// Hosts that are ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) resolving: usize,
    hosts: usize,
    sites: HashMap<SiteId, OfSite>,
}

/// Hosts of one site.
#[derive(Debug, Default)]
struct OfSite {
    ahead: u32,
    /// Those that wait until fewer are ahead.
    later: BinaryHeap<Unresolved>,
}

impl Ahead {
    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let later = |of: &OfSite| of.later.capacity() * size_of::<Unresolved>();
        self.sites.capacity() * size_of::<(SiteId, OfSite)>() + self.sites.values().map(later).sum::<usize>()
    }
}

impl Host {
    /// Whether an entry under this level among the unresolved is still meant.
    fn is_to_be_resolved(&self, level: u8) -> bool {
        let is_wanted = self.robots_wanted || !self.queue.is_empty();
        self.phase == Phase::New && self.awake_level == Some(level) && is_wanted
    }
}

impl Frontier {
    /// The host that is to be resolved now, if one is.
    pub(super) fn next_unresolved(&mut self) -> Option<HostId> {
        let ready = self.ready_level();
        while self.unresolved_level().is_some() {
            let &(level, _, host) = self.unresolved.peek()?;
            let is_next = ready.is_none_or(|ready| ready < level);
            if level < self.floor || !(is_next || self.ahead.hosts < STOCK) {
                return None;
            }
            self.unresolved.pop();
            let entry = &mut self.hosts[host.index()];
            if entry.is_to_be_resolved(level) {
                entry.phase = Phase::Resolving(None);
                self.ahead.resolving += 1;
                self.get_ahead(host);
                return Some(host);
            }
            if let Some(site) = entry.site {
                self.offer_later(site);
            }
        }
        None
    }

    /// The level of the best host that may be resolved now.
    pub(super) fn unresolved_level(&self) -> Option<u8> {
        let may_resolve = self.ahead.resolving < RESOLVING_MAX && self.ahead.hosts < AHEAD_MAX;
        self.unresolved.peek().filter(|_| may_resolve).map(|(level, ..)| *level)
    }

    /// Says of which site a host is that was picked to be resolved, and whether that is to be done now. If not, it will be
    /// picked again.
    pub fn may_resolve(&mut self, host: HostId, site: SiteId) -> bool {
        let entry = &mut self.hosts[host.index()];
        if matches!(entry.phase, Phase::Resolving(Some(_))) {
            // Something was asked of it before: it is not ahead.
            return true;
        }
        if entry.site.is_none() {
            // So far it was counted for no site.
            entry.site = Some(site);
            self.ahead.sites.entry(site).or_default().ahead += 1;
        }
        let of_site = self.ahead.sites.entry(site).or_default();
        if of_site.ahead <= OF_SITE_MAX {
            return true;
        }
        if let Some(level) = entry.awake_level {
            self.ticket += 1;
            of_site.later.push((level, Reverse(self.ticket), host));
        }
        entry.phase = Phase::New;
        self.ahead.resolving -= 1;
        self.is_asked(host);
        false
    }

    /// Notes that something is asked of a host, or never will be.
    pub(super) fn is_asked(&mut self, host: HostId) {
        let entry = &mut self.hosts[host.index()];
        if !std::mem::take(&mut entry.ahead) {
            return;
        }
        self.ahead.hosts -= 1;
        if let Some(site) = entry.site {
            if let Some(of_site) = self.ahead.sites.get_mut(&site) {
                of_site.ahead -= 1;
            }
            self.offer_later(site);
        }
    }

    /// Notes that a host is ahead.
    pub(super) fn get_ahead(&mut self, host: HostId) {
        let entry = &mut self.hosts[host.index()];
        if std::mem::replace(&mut entry.ahead, true) {
            return;
        }
        self.ahead.hosts += 1;
        if let Some(site) = entry.site {
            self.ahead.sites.entry(site).or_default().ahead += 1;
        }
    }

    /// Offers the best of a site's hosts that waited until fewer are ahead, if that is so.
    fn offer_later(&mut self, site: SiteId) {
        let Some(of_site) = self.ahead.sites.get_mut(&site) else { return };
        if of_site.ahead >= OF_SITE_MAX {
            return;
        }
        while let Some((level, ticket, host)) = of_site.later.pop() {
            if self.hosts[host.index()].is_to_be_resolved(level) {
                self.unresolved.push((level, ticket, host));
                return;
            }
        }
        if of_site.ahead == 0 {
            self.ahead.sites.remove(&site);
        }
    }
}

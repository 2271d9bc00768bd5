//! Which hosts are resolved before it is their turn.
//!
//! A host is ahead if it is being resolved, or was resolved, and nothing was requested from it so far. There is a small
//! stock of hosts ahead; a further one is resolved only if it would be asked next: because it is more important than
//! everything that could be requested now, or because nothing could. The number of hosts ahead per site is limited, so
//! that a site with a host name for every page costs about as many lookups as requests, and the hosts of other sites
//! need not wait for it.
//!
//! Invariant: a host that waits because of its site is offered again once fewer of the site's hosts are ahead.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use archive_storage::{HostId, SiteId};

use super::{Frontier, FrontierHost, Phase};

/// Maximum number of hosts being resolved at the same time.
const RESOLVING_MAX: usize = 64;

/// This many hosts are ahead even if others could be asked first: a lookup may take seconds.
const STOCK: usize = 64;

/// Maximum number of hosts ahead: if so many wait for their addresses' delays, one more would only wait with them.
const AHEAD_MAX: usize = 4096;

/// Maximum number of hosts of one site that are ahead.
const OF_SITE_MAX: u32 = 16;

/// A host to resolve, preceded by its level and ticket.
pub(super) type Unresolved = (u8, Reverse<u64>, HostId);

/// Hosts that are ahead.
#[derive(Debug, Default)]
pub(super) struct HostsAhead {
    pub(super) resolving: usize,
    hosts: usize,
    sites: HashMap<SiteId, OfSite>,
}

/// Hosts of one site.
#[derive(Debug, Default)]
struct OfSite {
    ahead: u32,
    /// Hosts that wait until fewer are ahead.
    later: BinaryHeap<Unresolved>,
}

impl HostsAhead {
    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let later = |of: &OfSite| of.later.capacity() * size_of::<Unresolved>();
        self.sites.capacity() * size_of::<(SiteId, OfSite)>() + self.sites.values().map(later).sum::<usize>()
    }
}

impl FrontierHost {
    /// Whether an entry with this level among the unresolved hosts is current.
    fn is_to_be_resolved(&self, level: u8) -> bool {
        let is_wanted = self.robots_wanted || !self.queue.is_empty();
        self.phase == Phase::New && self.awake_level == Some(level) && is_wanted
    }
}

impl Frontier {
    /// Returns the next host to resolve now, if any.
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
                self.mark_ahead(host);
                return Some(host);
            }
            if let Some(site) = entry.site {
                self.offer_later(site);
            }
        }
        None
    }

    /// Returns the level of the best host that may be resolved now.
    pub(super) fn unresolved_level(&self) -> Option<u8> {
        let may_resolve = self.ahead.resolving < RESOLVING_MAX && self.ahead.hosts < AHEAD_MAX;
        self.unresolved.peek().filter(|_| may_resolve).map(|(level, ..)| *level)
    }

    /// Sets the site of a host that was picked for resolving; returns whether to resolve it now. If not, it will be
    /// picked again.
    pub fn may_resolve(&mut self, host: HostId, site: SiteId) -> bool {
        let entry = &mut self.hosts[host.index()];
        if matches!(entry.phase, Phase::Resolving(Some(_))) {
            // It was asked before, so it is not ahead.
            return true;
        }
        if entry.site.is_none() {
            // So far, it was not counted for its site.
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
        self.mark_asked(host);
        false
    }

    /// Notes that something is requested from a host, or never will be.
    pub(super) fn mark_asked(&mut self, host: HostId) {
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
    pub(super) fn mark_ahead(&mut self, host: HostId) {
        let entry = &mut self.hosts[host.index()];
        if std::mem::replace(&mut entry.ahead, true) {
            return;
        }
        self.ahead.hosts += 1;
        if let Some(site) = entry.site {
            self.ahead.sites.entry(site).or_default().ahead += 1;
        }
    }

    /// Offers the best of a site's waiting hosts again, if few enough are ahead.
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

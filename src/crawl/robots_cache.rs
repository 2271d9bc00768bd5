//! The robots rules of every host of a run, and who waits for whose.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive_storage::HostId;

use crate::fetch::robots::Robots;
use crate::ledger::authority;

/// Redirects of one robots.txt that are followed (RFC 9309 section 2.3.1.2).
pub(super) const REDIRECTS_MAX: u8 = 5;

/// What a host lets the crawler do.
#[derive(Debug, Clone)]
pub(super) enum Rules {
    /// The rules of its robots.txt.
    Given(Arc<Robots>),
    /// It has none (status 4xx): everything may be fetched (RFC 9309 section 2.3.1.3).
    Free,
    /// It cannot be asked (no answer, status 5xx): nothing may be fetched (RFC 9309 section 2.3.1.4).
    Closed,
}

/// Where to look next for a host's rules.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// At another URL of the same host.
    SameHost(String),
    /// At another host.
    OtherHost(String),
    /// Nowhere: the redirects go on too long, which counts as no robots.txt.
    Nowhere,
}

/// Robots rules by host.
#[derive(Debug, Default)]
pub(super) struct RobotsCache {
    rules: HashMap<HostId, Rules>,
    /// Where a host's robots.txt was moved to, and how often.
    moved: HashMap<HostId, (String, u8)>,
    /// Hosts whose robots.txt was moved to that of another host.
    waiting: HashMap<HostId, Vec<HostId>>,
    /// Hosts that are to be asked over https although none of their URLs may wait.
    secure: HashSet<HostId>,
    /// Hosts that did not answer over one scheme and are asked over the other.
    other_scheme: HashSet<HostId>,
}

impl RobotsCache {
    pub(super) fn get(&self, host: HostId) -> Option<&Rules> {
        self.rules.get(&host)
    }

    /// Sets a host's rules, and those of all hosts that waited for them; returns these hosts with the host itself.
    pub(super) fn set(&mut self, host: HostId, rules: &Rules) -> Vec<HostId> {
        let mut settled = vec![host];
        let mut place = 0;
        while let Some(host) = settled.get(place).copied() {
            self.rules.insert(host, rules.clone());
            self.moved.remove(&host);
            settled.extend(self.waiting.remove(&host).unwrap_or_default());
            place += 1;
        }
        settled
    }

    /// Where a host's robots.txt is to be fetched instead of its usual place.
    pub(super) fn moved_to(&self, host: HostId) -> Option<&str> {
        self.moved.get(&host).map(|(url, _)| url.as_str())
    }

    /// Notes that a host is known by https.
    pub(super) fn set_secure(&mut self, host: HostId) {
        self.secure.insert(host);
    }

    pub(super) fn is_secure(&self, host: HostId) -> bool {
        self.secure.contains(&host)
    }

    /// Lets a host that nothing connects to be asked at `url`, over the other scheme; once, then it returns false. So it does
    /// where a redirect led: the file is there, and cannot be reached (RFC 9309 section 2.3.1.4).
    pub(super) fn ask_otherwise(&mut self, host: HostId, url: String) -> bool {
        let was_redirected = self.moved.get(&host).is_some_and(|(_, count)| *count > 0);
        let is_first = !was_redirected && self.other_scheme.insert(host);
        if is_first {
            self.moved.insert(host, (url, 0));
        }
        is_first
    }

    /// Notes that a host's robots.txt redirects to `url`.
    pub(super) fn redirect(&mut self, host: HostId, own_authority: &str, url: String) -> Next {
        let count = self.moved.get(&host).map_or(0, |(_, count)| *count) + 1;
        if count > REDIRECTS_MAX {
            return Next::Nowhere;
        }
        self.moved.insert(host, (url.clone(), count));
        if authority(&url) == own_authority { Next::SameHost(url) } else { Next::OtherHost(url) }
    }

    /// Lets `host` wait for the rules of `other`.
    pub(super) fn wait(&mut self, host: HostId, other: HostId) {
        self.waiting.entry(other).or_default().push(host);
    }

    /// Hosts that wait for each other in a circle or for hosts that never answered; nobody waits afterwards.
    pub(super) fn take_waiting(&mut self) -> Vec<HostId> {
        self.waiting.drain().flat_map(|(_, hosts)| hosts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, RobotsCache, Rules};
    use archive_storage::HostId;

    #[test]
    fn hosts_that_wait_get_the_rules_they_wait_for() {
        let mut cache = RobotsCache::default();
        let url = "http://www.a.test/robots.txt".to_owned();
        assert_eq!(cache.redirect(HostId(1), "a.test", url.clone()), Next::OtherHost(url));
        cache.wait(HostId(1), HostId(2));
        cache.wait(HostId(3), HostId(1));
        assert_eq!(cache.set(HostId(2), &Rules::Free), [HostId(2), HostId(1), HostId(3)]);
        assert!(matches!(cache.get(HostId(3)), Some(Rules::Free)));
        assert!(cache.take_waiting().is_empty());
    }

    #[test]
    fn the_other_scheme_is_tried_once() {
        let mut cache = RobotsCache::default();
        let url = "https://a.test/robots.txt";
        assert!(cache.ask_otherwise(HostId(1), url.to_owned()));
        assert_eq!(cache.moved_to(HostId(1)), Some(url));
        assert!(!cache.ask_otherwise(HostId(1), "http://a.test/robots.txt".to_owned()));
        assert_eq!(cache.moved_to(HostId(1)), Some(url));
    }

    #[test]
    fn where_a_redirect_led_the_other_scheme_is_not_tried() {
        let mut cache = RobotsCache::default();
        let url = "https://a.test/robots.txt";
        assert_eq!(cache.redirect(HostId(1), "a.test", url.to_owned()), Next::SameHost(url.to_owned()));
        assert!(!cache.ask_otherwise(HostId(1), "http://a.test/robots.txt".to_owned()));
        assert_eq!(cache.moved_to(HostId(1)), Some(url));
    }

    #[test]
    fn redirects_of_robots_end() {
        let mut cache = RobotsCache::default();
        let url = || "http://a.test/r".to_owned();
        for _ in 0..5 {
            assert_eq!(cache.redirect(HostId(1), "a.test", url()), Next::SameHost(url()));
        }
        assert_eq!(cache.redirect(HostId(1), "a.test", url()), Next::Nowhere);
    }
}

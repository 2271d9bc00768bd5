//! The robots rules of every host in a run, and which hosts wait for which answers.
//!
//! For each host, only a reference to its rules is kept, in a few bytes. The files themselves are read from the archive
//! when needed; the most recently used ones stay in memory, within a number of bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use archive_storage::{CaptureId, HostId, UrlId};
use archive_web::fetch::robots::Robots;
use lru::LruCache;

/// What a host allows the crawler.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostRules {
    /// The rules of a file.
    Given {
        /// The capture with the file.
        file: CaptureId,
        /// Crawl delay that the file asks for.
        delay: Option<Duration>,
    },
    /// The host has no file (status 4xx): everything may be fetched (RFC 9309 section 2.3.1.3).
    Free,
    /// The file is unreachable (no answer, status 5xx): nothing may be fetched (RFC 9309 section 2.3.1.4).
    Closed,
}

/// A URL that hosts wait for and that was not requested yet.
#[derive(Debug)]
struct Sought {
    url: UrlId,
    /// Whether it is its own host's robots.txt, which may always be requested.
    is_own: bool,
}

/// Robots rules by host.
#[derive(Debug)]
pub(super) struct RobotsCache {
    rules: HashMap<HostId, HostRules>,
    files: LruCache<CaptureId, Arc<Robots>>,
    /// Bytes of the files in memory; at most `bytes_max`.
    bytes: usize,
    bytes_max: usize,
    /// Hosts waiting for the answer of a URL.
    waiting: HashMap<UrlId, Vec<HostId>>,
    /// All waiting hosts.
    waits: HashSet<HostId>,
    /// URLs to request, by host.
    sought: HashMap<HostId, Vec<Sought>>,
    /// Hosts that did not answer over one scheme and are asked over the other.
    other_scheme: HashSet<HostId>,
}

impl RobotsCache {
    /// Creates a cache of this many bytes; the last file used always stays.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            rules: HashMap::new(),
            files: LruCache::unbounded(),
            bytes: 0,
            bytes_max,
            waiting: HashMap::new(),
            waits: HashSet::new(),
            sought: HashMap::new(),
            other_scheme: HashSet::new(),
        }
    }

    pub(super) fn rules(&self, host: HostId) -> Option<HostRules> {
        self.rules.get(&host).copied()
    }

    /// Sets the rules of a host and returns those in force. If the host has become unreachable, its earlier rules stay
    /// (RFC 9309 section 2.4).
    pub(super) fn set_rules(&mut self, host: HostId, rules: HostRules) -> HostRules {
        let known = self.rules.entry(host).or_insert(rules);
        if !matches!(rules, HostRules::Closed) {
            *known = rules;
        }
        *known
    }

    /// Returns a file, if it is in memory.
    pub(super) fn file(&mut self, capture: CaptureId) -> Option<Arc<Robots>> {
        self.files.get(&capture).map(Arc::clone)
    }

    /// Adds a file; evicts the least recently used ones.
    pub(super) fn keep(&mut self, capture: CaptureId, file: Robots) -> Arc<Robots> {
        let file = Arc::new(file);
        self.bytes += file.memory_bytes();
        if let Some(before) = self.files.put(capture, Arc::clone(&file)) {
            self.bytes -= before.memory_bytes();
        }
        while self.bytes > self.bytes_max && self.files.len() > 1 {
            let Some((_, oldest)) = self.files.pop_lru() else { break };
            self.bytes -= oldest.memory_bytes();
        }
        file
    }

    /// Makes `host` wait for the answer of a URL at the host `at`. The URL is requested unless another host waits for
    /// it already; `is_own` if it is the robots.txt of `at`.
    pub(super) fn wait(&mut self, host: HostId, url: UrlId, at: HostId, is_own: bool) {
        self.waits.insert(host);
        let waiting = self.waiting.entry(url).or_default();
        waiting.push(host);
        if waiting.len() == 1 {
            self.seek(url, at, is_own);
        }
    }

    /// Requests a URL, possibly again.
    pub(super) fn seek(&mut self, url: UrlId, at: HostId, is_own: bool) {
        self.sought.entry(at).or_default().push(Sought { url, is_own });
    }

    /// Whether a host waits for an answer.
    pub(super) fn waits(&self, host: HostId) -> bool {
        self.waits.contains(&host)
    }

    /// Whether a host waits for this URL itself.
    fn waits_for(&self, host: HostId, url: UrlId) -> bool {
        self.waiting.get(&url).is_some_and(|hosts| hosts.contains(&host))
    }

    /// Returns the hosts that waited for a URL, and removes them from the waiting ones.
    pub(super) fn answered(&mut self, url: UrlId) -> Vec<HostId> {
        let hosts = self.waiting.remove(&url).unwrap_or_default();
        for host in &hosts {
            self.waits.remove(host);
        }
        hosts
    }

    /// Returns a URL to request at a host.
    pub(super) fn sought(&self, host: HostId) -> Option<UrlId> {
        self.sought.get(&host).and_then(|urls| urls.first()).map(|sought| sought.url)
    }

    /// Takes a URL that can be requested at a host now; also returns whether the host's rules do not apply to it.
    pub(super) fn take_sought(&mut self, host: HostId) -> Option<(UrlId, bool)> {
        let place = self.ready(host)?;
        let urls = self.sought.get_mut(&host)?;
        let Sought { url, is_own } = urls.remove(place);
        if urls.is_empty() {
            self.sought.remove(&host);
        }
        Some((url, is_own || self.waits_for(host, url)))
    }

    /// Returns the position of a URL that can be requested at a host now. Other files than its own robots.txt need the
    /// host's rules first, unless its own robots.txt redirects there.
    fn ready(&self, host: HostId) -> Option<usize> {
        let is_known = self.rules.contains_key(&host);
        let is_ready = |sought: &Sought| is_known || sought.is_own || self.waits_for(host, sought.url);
        self.sought.get(&host)?.iter().position(is_ready)
    }

    /// Whether any URL can be requested at a host now.
    pub(super) fn is_ready(&self, host: HostId) -> bool {
        self.ready(host).is_some()
    }

    /// Whether a URL to be requested at a host needs the host's rules first.
    pub(super) fn needs_rules(&self, host: HostId) -> bool {
        let needs = |sought: &Sought| !sought.is_own && !self.waits_for(host, sought.url);
        self.sought.get(&host).is_some_and(|urls| urls.iter().any(needs))
    }

    /// Drops what is to be requested at a host; returns the hosts that waited for it.
    pub(super) fn abandon(&mut self, host: HostId) -> Vec<HostId> {
        let urls = self.sought.remove(&host).unwrap_or_default();
        urls.into_iter().flat_map(|sought| self.answered(sought.url)).collect()
    }

    /// Switches a host that nothing connects to over to the other scheme; returns false after the first time.
    pub(super) fn ask_otherwise(&mut self, host: HostId) -> bool {
        self.other_scheme.insert(host)
    }

    /// Whether a host is asked over another scheme than its URLs have.
    pub(super) fn is_asked_otherwise(&self, host: HostId) -> bool {
        self.other_scheme.contains(&host)
    }

    /// Returns all waiting hosts: those that wait for each other in a circle, or for what was never answered.
    /// Afterwards none waits.
    pub(super) fn give_up(&mut self) -> Vec<HostId> {
        self.waiting.clear();
        self.sought.clear();
        self.waits.drain().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{HostRules, RobotsCache};
    use archive_storage::{CaptureId, HostId, UrlId};
    use archive_web::fetch::robots::Robots;

    #[test]
    fn a_url_is_asked_for_once_for_all_that_wait_for_it() {
        let mut cache = RobotsCache::new(0);
        cache.wait(HostId(1), UrlId(7), HostId(2), true);
        cache.wait(HostId(3), UrlId(7), HostId(2), true);
        assert_eq!((cache.sought(HostId(2)), cache.needs_rules(HostId(2))), (Some(UrlId(7)), false));
        assert_eq!(cache.take_sought(HostId(2)), Some((UrlId(7), true)));
        assert_eq!(cache.sought(HostId(2)), None);
        assert_eq!(cache.answered(UrlId(7)), [HostId(1), HostId(3)]);
        assert!(!cache.waits(HostId(1)) && cache.answered(UrlId(7)).is_empty());
        cache.wait(HostId(1), UrlId(8), HostId(2), true);
        assert_eq!(cache.abandon(HostId(2)), [HostId(1)]);
        cache.wait(HostId(1), UrlId(9), HostId(2), true);
        assert_eq!((cache.give_up(), cache.sought(HostId(2))), (vec![HostId(1)], None));
    }

    #[test]
    fn pages_are_asked_for_when_the_rules_of_their_host_are_known() {
        let mut cache = RobotsCache::new(0);
        cache.wait(HostId(1), UrlId(7), HostId(2), false);
        assert!(cache.needs_rules(HostId(2)) && cache.take_sought(HostId(2)).is_none());
        cache.set_rules(HostId(2), HostRules::Free);
        assert_eq!(cache.take_sought(HostId(2)), Some((UrlId(7), false)));
        // Where its own robots.txt redirects to.
        cache.wait(HostId(3), UrlId(8), HostId(3), false);
        assert!(!cache.needs_rules(HostId(3)));
        assert_eq!(cache.take_sought(HostId(3)), Some((UrlId(8), true)));
    }

    #[test]
    fn rules_that_are_known_hold_when_a_host_cannot_be_asked_again() {
        let mut cache = RobotsCache::new(0);
        assert!(matches!(cache.set_rules(HostId(1), HostRules::Closed), HostRules::Closed));
        assert!(matches!(cache.set_rules(HostId(1), HostRules::Free), HostRules::Free));
        assert!(matches!(cache.set_rules(HostId(1), HostRules::Closed), HostRules::Free));
        let given = HostRules::Given { file: CaptureId(3), delay: None };
        assert!(matches!(cache.set_rules(HostId(1), given), HostRules::Given { .. }));
        assert!(matches!(cache.rules(HostId(1)), Some(HostRules::Given { .. })));
    }

    #[test]
    fn the_other_scheme_is_tried_once() {
        let mut cache = RobotsCache::new(0);
        assert!(!cache.is_asked_otherwise(HostId(1)));
        assert!(cache.ask_otherwise(HostId(1)));
        assert!(!cache.ask_otherwise(HostId(1)));
        assert!(cache.is_asked_otherwise(HostId(1)) && !cache.is_asked_otherwise(HostId(2)));
    }

    #[test]
    fn files_in_memory_have_no_more_than_their_bytes() {
        let file = || Robots::parse(b"User-agent: *\nDisallow: /some/path\n", "archive");
        let each = file().memory_bytes();
        let mut cache = RobotsCache::new(3 * each);
        for number in 0..3 {
            cache.keep(CaptureId(number), file());
        }
        assert!(cache.file(CaptureId(0)).is_some());
        cache.keep(CaptureId(3), file());
        let kept = (0..4).filter(|number| cache.file(CaptureId(*number)).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(cache.bytes, 3 * each);
        cache.bytes_max = each - 1;
        cache.keep(CaptureId(4), file());
        assert!(cache.file(CaptureId(4)).is_some() && cache.files.len() == 1);
    }
}

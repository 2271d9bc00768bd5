//! The robots rules of a host: from the archive, from the network, by redirect from another host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_storage::HostId;
use archive_storage::address::canonical;
use url::Url;

use super::super::process::FetchTag;
use super::super::robots_cache::{Next, Rules};
use super::{CrawlError, Run};
use crate::fetch::robots::Robots;
use crate::ledger::CreditError;

/// Robots rules are fetched anew after this time (RFC 9309 section 2.4).
const ROBOTS_AGE_MAX_HOURS: i64 = 24;

/// A Crawl-delay longer than this is taken for this long.
const CRAWL_DELAY_MAX: Duration = Duration::from_secs(60);

impl Run<'_> {
    pub(super) fn host_name(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(self.store.state().host_name(host).map_err(CreditError::from)?)
    }

    pub(super) fn robots_url(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(format!("http://{}/robots.txt", self.host_name(host)?))
    }

    pub(super) fn is_allowed(&self, host: HostId, url: &Url) -> bool {
        match self.robots.get(host) {
            Some(Rules::Given(robots)) => robots.check(url).allowed,
            Some(Rules::Free) => true,
            Some(Rules::Closed) | None => false,
        }
    }

    /// The rules in the archive, if they are young enough to be used without asking again.
    pub(super) fn stored_rules(&self, url: &str) -> Result<Option<Rules>, CrawlError> {
        let state = self.store.state();
        let Some(id) = state.find(url).map_err(CreditError::from)? else { return Ok(None) };
        let Some(visit) = state.visit(id).map_err(CreditError::from)? else { return Ok(None) };
        let age = self.options.fetch.clock.now().timestamp() - i64::from(visit.last_seen);
        if age > ROBOTS_AGE_MAX_HOURS * 3600 {
            return Ok(None);
        }
        if (400..500).contains(&visit.status) && visit.status != 429 {
            return Ok(Some(Rules::Free));
        }
        if visit.status != 200 {
            return Ok(None);
        }
        let Some(capture) = self.store.newest_version(id)? else { return Ok(None) };
        let payload = self.store.payload(&capture)?;
        Ok(payload.map(|payload| Rules::Given(Arc::new(Robots::parse(&payload, &self.options.robots_name)))))
    }

    pub(super) fn robots_fetched(
        &mut self,
        tag: &FetchTag,
        status: u16,
        robots: Option<Robots>,
        location: Option<String>,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let rules = match (status, robots, location) {
            (200..=299, robots, _) => Rules::Given(Arc::new(robots.unwrap_or_default())),
            (300..=399, _, Some(location)) => return self.robots_moved(tag, &location, now),
            (429 | 500..=599, ..) => Rules::Closed,
            _ => Rules::Free,
        };
        self.settle_robots(tag.host, &rules, now);
        Ok(())
    }

    pub(super) fn robots_moved(
        &mut self,
        tag: &FetchTag,
        location: &str,
        now: Instant,
    ) -> Result<(), CrawlError> {
        let own = self.host_name(tag.host)?;
        let target = tag.url.join(location).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let next = match target {
            Some(url) => self.robots.redirect(tag.host, &own, canonical(&url)),
            None => Next::Nowhere,
        };
        match next {
            Next::SameHost(_) => self.frontier.want_robots(tag.host, now),
            Next::Nowhere => self.settle_robots(tag.host, &Rules::Free, now),
            Next::OtherHost(url) => {
                let other = self.credits.know_robots(self.store.state_mut(), &url)?;
                let other = self.store.state().page(other).map_err(CreditError::from)?.host;
                if let Some(rules) = self.robots.get(other).cloned() {
                    self.settle_robots(tag.host, &rules, now);
                } else {
                    self.robots.wait(tag.host, other);
                    self.frontier.want_robots(other, now);
                }
            }
        }
        Ok(())
    }

    /// Sets the rules of a host and of all that waited for them.
    pub(super) fn settle_robots(&mut self, host: HostId, rules: &Rules, now: Instant) {
        for host in self.robots.set(host, rules) {
            match rules {
                Rules::Closed => drop(self.frontier.give_up(host)),
                Rules::Given(robots) => {
                    let asked = robots.crawl_delay();
                    // A crawl without delays is of one's own servers: a person has said so.
                    let own = self.options.politeness.host_delay;
                    if let Some(delay) = asked.filter(|delay| !own.is_zero() && *delay > own) {
                        self.frontier.set_delay(host, delay.min(CRAWL_DELAY_MAX));
                    }
                    self.frontier.robots_known(host, now);
                }
                Rules::Free => self.frontier.robots_known(host, now),
            }
        }
    }
}

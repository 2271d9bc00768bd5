//! The robots rules of a host: from the archive, from the network, by redirect from another host.

use std::sync::Arc;
use std::time::Instant;

use archive_storage::HostId;
use archive_storage::address::canonical;
use url::Url;

use super::super::process::FetchTag;
use super::super::robots_cache::{Next, Rules};
use super::super::stored_robots;
use super::{CrawlError, Run};
use crate::fetch::FetchError;
use crate::fetch::robots::Robots;
use crate::ledger::{Credits, Refusal};

/// Robots rules are fetched anew after this time (RFC 9309 section 2.4).
const ROBOTS_AGE_MAX_HOURS: i64 = 24;

impl Run<'_> {
    pub(super) fn host_name(&self, host: HostId) -> Result<String, CrawlError> {
        Ok(self.store.state().host_name(host)?)
    }

    /// Whether a host is asked over https first: as the URL that is wanted most of it says.
    pub(super) fn is_secure(&mut self, host: HostId) -> Result<bool, CrawlError> {
        Ok(match self.frontier.best(host) {
            Some(id) => self.store.state().url(id)?.starts_with("https:"),
            None => self.robots.is_secure(host),
        })
    }

    /// Where the robots.txt of a host is asked for.
    pub(super) fn robots_url(&mut self, host: HostId) -> Result<String, CrawlError> {
        let scheme = if self.is_secure(host)? { "https" } else { "http" };
        Ok(format!("{scheme}://{}/robots.txt", self.host_name(host)?))
    }

    /// Why a URL of a host may not be fetched.
    pub(super) fn forbidden(&self, host: HostId, url: &Url) -> Option<Refusal> {
        match self.robots.get(host) {
            Some(Rules::Given(robots)) => (!robots.check(url).allowed).then_some(Refusal::Robots),
            Some(Rules::Free) => None,
            Some(Rules::Closed) | None => Some(Refusal::RobotsUnreachable),
        }
    }

    /// The rules in the archive, if they are young enough to be used without asking again.
    pub(super) fn stored_rules(&self, host: HostId) -> Result<Option<Rules>, CrawlError> {
        let name = &self.options.conduct.robots_name;
        let stored = stored_robots::find(self.store, &self.host_name(host)?, name, i64::MAX)?;
        let oldest = self.options.fetch.clock.now().timestamp() - ROBOTS_AGE_MAX_HOURS * 3600;
        Ok(stored.filter(|stored| stored.time >= oldest).and_then(|stored| stored.rules()))
    }

    /// After a robots.txt that nothing connected to: whether it is now asked for over the other scheme.
    pub(super) fn ask_otherwise(&mut self, tag: &FetchTag, error: &FetchError) -> Result<bool, CrawlError> {
        let no_connection = matches!(
            error,
            FetchError::Connect(_)
                | FetchError::ConnectTimeout(_)
                | FetchError::Tls(_)
                | FetchError::Certificate(_)
        );
        let other = if tag.url.scheme() == "https" { "http" } else { "https" };
        let url = format!("{other}://{}/robots.txt", self.host_name(tag.host)?);
        // With a port in its name only one scheme can be meant.
        Ok(no_connection && tag.url.port().is_none() && self.robots.ask_otherwise(tag.host, url))
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
        self.settle_robots(tag.host, &rules, now)
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
            Next::SameHost(_) => self.frontier.ask_robots_again(tag.host, now),
            Next::Nowhere => self.settle_robots(tag.host, &Rules::Free, now)?,
            Next::OtherHost(url) => {
                let other = self.credits.know_robots(self.store.state_mut(), &url)?;
                let other = self.store.state().page(other)?.host;
                if let Some(rules) = self.robots.get(other).cloned() {
                    self.settle_robots(tag.host, &rules, now)?;
                } else {
                    if url.starts_with("https:") {
                        self.robots.set_secure(other);
                    }
                    self.robots.wait(tag.host, other);
                    self.frontier.want_robots(other, now);
                }
            }
        }
        Ok(())
    }

    /// Sets the rules of a host and of all that waited for them.
    pub(super) fn settle_robots(
        &mut self,
        host: HostId,
        rules: &Rules,
        now: Instant,
    ) -> Result<(), CrawlError> {
        for host in self.robots.set(host, rules) {
            match rules {
                Rules::Closed => {
                    for url in self.frontier.give_up(host, Refusal::RobotsUnreachable) {
                        Credits::put_off(self.store.state_mut(), url, Refusal::RobotsUnreachable)?;
                        self.status.refused += 1;
                    }
                }
                Rules::Given(_) | Rules::Free => {
                    self.set_delay(host)?;
                    self.frontier.robots_known(host, now);
                }
            }
        }
        Ok(())
    }
}

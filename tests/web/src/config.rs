//! Configuration of a test web: every setting, its default and its range.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::clock::{Clock, from_micros};
use super::town::Town;

/// Largest number of hosts of a web.
pub const HOSTS_MAX: u32 = 4_000_000;
/// Largest number of pages of a web.
pub const PAGES_MAX: u64 = 4_000_000_000;
/// Largest configurable number of links per page.
pub const LINKS_PER_PAGE_MAX: u32 = 1000;

/// Settings of a [`Web`](super::Web). Shares and probabilities are in [0, 1].
#[derive(Clone, Debug)]
pub struct Config {
    /// Determines everything: the same settings and the same seed give the same web, byte for byte.
    pub seed: u64,
    /// Number of hosts, 1 to [`HOSTS_MAX`].
    pub hosts: u32,
    /// Number of sites (registrable domains), 1 to `hosts`.
    pub sites: u32,
    /// Number of pages on all hosts together, `hosts` to [`PAGES_MAX`].
    pub pages: u64,
    /// How steeply the number of pages of a host falls with its rank; 0 gives all hosts the same number.
    pub host_size_exponent: f64,
    /// Average number of links per page, up to [`LINKS_PER_PAGE_MAX`]; each page has between half and one and a half
    /// times as many. Structural links (home, parent, siblings, children) count and are kept even if there are more of
    /// them.
    pub links_per_page: u32,
    /// Share of a page's links that lead to other hosts. 0 makes every host an island.
    pub inter_host_share: f64,
    /// How steeply popularity falls with rank, over sites and over the pages of a host. 0.9 gives in-degrees a power
    /// law with exponent 2.6 (measured on 20 000 pages); the real web's is 2.1 to 2.7.
    pub popularity_exponent: f64,
    /// Share of pages that are XML documents.
    pub xml_share: f64,
    /// How often pages change.
    pub changes: ChangeRates,
    /// Changes that hit many pages of one site at once.
    pub site_edits: SiteEdits,
    /// Share of a page's free links that is redrawn at each change of the page.
    pub link_churn: f64,
    /// Share of leaf pages that are born only after `start`, uniformly over the first two years.
    pub birth_share: f64,
    /// Share of leaf pages that answer 404 or 410 from some time after `start`, uniformly over two years.
    pub death_share: f64,
    /// Share of leaf pages that repeat another page of the host except for a few words.
    pub near_duplicate_share: f64,
    /// Share of leaf pages that repeat another page of the host byte for byte.
    pub duplicate_share: f64,
    /// Share of pages that show a different advertisement and the time of day at each fetch.
    pub noise_share: f64,
    /// Share of pages that send `ETag` and `Last-Modified` and answer 304.
    pub validator_share: f64,
    /// Share of links that go through a redirect (301, 302, 303, 307, 308, some of them chains).
    pub redirect_share: f64,
    /// Share of links to pages that do not exist (404 or 410).
    pub broken_share: f64,
    /// Share of hosts whose robots.txt disallows one section.
    pub robots_share: f64,
    /// Share of hosts whose robots.txt asks for a crawl delay.
    pub crawl_delay_share: f64,
    /// Crawl delay of these hosts, in seconds.
    pub crawl_delay_seconds: u32,
    /// Share of minutes in which a host answers every request with 503 or 429 and `Retry-After`.
    pub busy_share: f64,
    /// Share of pages sent in chunks.
    pub chunked_share: f64,
    /// Share of hosts that compress for clients that accept gzip.
    pub gzip_share: f64,
    /// Share of hosts that write in a legacy encoding (windows-1252, windows-1251), declared in the header, in a meta
    /// element, or in both.
    pub legacy_encoding_share: f64,
    /// Whether pages have style sheets, scripts and pictures.
    pub requisites: bool,
    /// Whether hosts have feeds and sitemaps and announce them.
    pub feeds: bool,
    /// Whether some home pages link to the trap hosts. The trap hosts answer in any case.
    pub traps: bool,
    /// Whether some home pages link to the host of faults. It answers in any case.
    pub faults: bool,
    /// Further hosts, which live by a script.
    pub town: Town,
    /// Delay before every answer of the server.
    pub latency: Duration,
    /// Start of the web: no page changes before it. Changes are drawn for the 8.9 years after it.
    pub start: DateTime<Utc>,
    /// Clock that determines the current time of the web.
    pub clock: Clock,
}

/// How often pages change: each page is a Poisson process whose rate is drawn from a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeRates {
    /// Share of pages that never change.
    pub never_share: f64,
    /// Median rate of the others, in changes per day.
    pub median_per_day: f64,
    /// Standard deviation of the natural logarithm of the rate.
    pub spread: f64,
    /// Upper limit for rates, in changes per day, at most 100.
    pub per_day_max: f64,
}

/// Changes that affect many pages of one site at the same time, such as a new template or a mass edit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteEdits {
    /// Number of edits of a site per day.
    pub per_day: f64,
    /// Probability that a page of the site is part of an edit.
    pub share: f64,
}

/// Start of the default web: 1 January 2025.
const DEFAULT_START_MICROS: i64 = 1_735_689_600_000_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            hosts: 100,
            sites: 50,
            pages: 10_000,
            host_size_exponent: 0.8,
            links_per_page: 30,
            inter_host_share: 0.25,
            popularity_exponent: 0.9,
            xml_share: 0.1,
            changes: ChangeRates { never_share: 0.2, median_per_day: 0.02, spread: 1.8, per_day_max: 24.0 },
            site_edits: SiteEdits { per_day: 0.0, share: 0.3 },
            link_churn: 0.0,
            birth_share: 0.0,
            death_share: 0.0,
            near_duplicate_share: 0.03,
            duplicate_share: 0.01,
            noise_share: 0.05,
            validator_share: 0.7,
            redirect_share: 0.02,
            broken_share: 0.01,
            robots_share: 0.1,
            crawl_delay_share: 0.0,
            crawl_delay_seconds: 1,
            busy_share: 0.0,
            chunked_share: 0.1,
            gzip_share: 0.0,
            legacy_encoding_share: 0.05,
            requisites: true,
            feeds: true,
            traps: false,
            faults: false,
            town: Town::default(),
            latency: Duration::ZERO,
            start: from_micros(DEFAULT_START_MICROS),
            clock: Clock::real(),
        }
    }
}

impl Config {
    /// Returns the settings for `pages` pages on `hosts` hosts and half as many sites, with defaults for the rest.
    #[must_use]
    pub fn sized(seed: u64, hosts: u32, pages: u64) -> Self {
        Self { seed, hosts, sites: (hosts / 2).max(1), pages, ..Self::default() }
    }

    /// Returns the settings for a web of nothing but pages and links: the graph that a crawler sees is the true graph,
    /// node for node and link for link.
    #[must_use]
    pub fn plain(seed: u64, hosts: u32, pages: u64) -> Self {
        Self {
            near_duplicate_share: 0.0,
            duplicate_share: 0.0,
            noise_share: 0.0,
            redirect_share: 0.0,
            broken_share: 0.0,
            robots_share: 0.0,
            requisites: false,
            feeds: false,
            ..Self::sized(seed, hosts, pages)
        }
    }

    /// Checks that every setting is in its range.
    ///
    /// # Errors
    /// The first setting that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let whole = |name, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::Number { name, value, low, high })
            }
        };
        whole("hosts", u64::from(self.hosts), 1, u64::from(HOSTS_MAX))?;
        whole("sites", u64::from(self.sites), 1, u64::from(self.hosts))?;
        whole("pages", self.pages, u64::from(self.hosts), PAGES_MAX)?;
        whole("links_per_page", u64::from(self.links_per_page), 1, u64::from(LINKS_PER_PAGE_MAX))?;
        let real = |name, value: f64, high: f64| {
            if (0.0..=high).contains(&value) { Ok(()) } else { Err(ConfigError::Real { name, value, high }) }
        };
        real("host_size_exponent", self.host_size_exponent, 3.0)?;
        real("popularity_exponent", self.popularity_exponent, 3.0)?;
        real("changes.per_day_max", self.changes.per_day_max, 100.0)?;
        real("changes.median_per_day", self.changes.median_per_day, 100.0)?;
        real("changes.spread", self.changes.spread, 10.0)?;
        real("site_edits.per_day", self.site_edits.per_day, 100.0)?;
        for (name, share) in self.shares() {
            real(name, share, 1.0)?;
        }
        Ok(())
    }

    const fn shares(&self) -> [(&'static str, f64); 20] {
        [
            ("inter_host_share", self.inter_host_share),
            ("xml_share", self.xml_share),
            ("changes.never_share", self.changes.never_share),
            ("site_edits.share", self.site_edits.share),
            ("link_churn", self.link_churn),
            ("birth_share", self.birth_share),
            ("death_share", self.death_share),
            ("near_duplicate_share", self.near_duplicate_share),
            ("duplicate_share", self.duplicate_share),
            ("noise_share", self.noise_share),
            ("validator_share", self.validator_share),
            ("redirect_share", self.redirect_share),
            ("broken_share", self.broken_share),
            ("robots_share", self.robots_share),
            ("crawl_delay_share", self.crawl_delay_share),
            ("busy_share", self.busy_share),
            ("chunked_share", self.chunked_share),
            ("gzip_share", self.gzip_share),
            ("legacy_encoding_share", self.legacy_encoding_share),
            ("near_duplicate_share + duplicate_share", self.near_duplicate_share + self.duplicate_share),
        ]
    }
}

/// A setting out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A count out of its range.
    #[error("{name} is {value}, but must be from {low} to {high}")]
    Number {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Smallest allowed value.
        low: u64,
        /// Largest allowed value.
        high: u64,
    },
    /// A share, rate or exponent out of its range.
    #[error("{name} is {value}, but must be from 0 to {high}")]
    Real {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Largest allowed value.
        high: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dials_out_of_range_are_named() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::plain(1, 1, 1).check(), Ok(()));
        let refused = |config: Config| config.check().unwrap_err().to_string();
        assert_eq!(refused(Config::sized(1, 10, 9)), "pages is 9, but must be from 10 to 4000000000");
        assert_eq!(
            refused(Config { sites: 101, ..Config::default() }),
            "sites is 101, but must be from 1 to 100"
        );
        assert_eq!(
            refused(Config { noise_share: 1.5, ..Config::default() }),
            "noise_share is 1.5, but must be from 0 to 1"
        );
        assert!(Config { noise_share: f64::NAN, ..Config::default() }.check().is_err());
    }
}

//! The web and all queries about it.

use std::ops::Range;

use chrono::{DateTime, Utc};

use super::clock::{Clock, from_micros};
use super::config::{Config, ConfigError};
use super::layout::{Form, HostIndex, Layout, PageIndex, SiteIndex};
use super::links::{Link, Outline, Target, Way};
use super::pages::Existence;
use super::random::{Key, Shuffle, Subject, Zipf};
use super::{media, xml};

/// A deterministic web. It holds its settings and a few numbers derived from them, but no pages or links.
///
/// Indices passed to its methods must be below [`pages`](Self::pages), [`hosts`](Self::hosts) and
/// [`sites`](Self::sites).
#[derive(Debug)]
pub struct Web {
    pub(super) config: Config,
    pub(super) root: Key,
    pub(super) layout: Layout,
    pub(super) site_law: Zipf,
    /// Maps a site's popularity rank to its index.
    pub(super) by_popularity: Shuffle,
}

impl Web {
    /// Creates the web that `config` describes.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let root = Key::new(config.seed);
        let sites = u64::from(config.sites);
        Ok(Self {
            layout: Layout::new(&config),
            site_law: Zipf::new(sites, config.popularity_exponent),
            by_popularity: Shuffle::new(root.of(Subject::Popularity), sites),
            root,
            config,
        })
    }

    /// Returns the settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the clock of the web.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// Returns the number of pages, including those not yet born and those that vanished.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.config.pages
    }

    /// Returns the number of hosts.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.config.hosts
    }

    /// Returns the number of sites.
    #[must_use]
    pub const fn sites(&self) -> u32 {
        self.config.sites
    }

    /// Returns the host of a page.
    #[must_use]
    pub fn host_of(&self, page: PageIndex) -> HostIndex {
        HostIndex(self.layout.place(page).0.index)
    }

    /// Returns the site that a host belongs to.
    #[must_use]
    pub fn site_of(&self, host: HostIndex) -> SiteIndex {
        SiteIndex(self.layout.host(host.0).site)
    }

    /// Returns the name of a host, such as `h3.s17.test`.
    #[must_use]
    pub fn host_name(&self, host: HostIndex) -> String {
        text(|out| self.layout.host(host.0).put_name(out))
    }

    /// Returns the name of a site, such as `s17.test`.
    #[must_use]
    pub fn site_name(&self, site: SiteIndex) -> String {
        format!("s{}.test", site.0)
    }

    /// Returns the host with this name, in any letter case.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostIndex> {
        self.layout.host_named(name.as_bytes()).map(|host| HostIndex(host.index))
    }

    /// Returns the pages of a host in page order; the first is its home page.
    #[must_use]
    pub fn pages_of(&self, host: HostIndex) -> Range<u64> {
        let host = self.layout.host(host.0);
        host.first..host.first + u64::from(host.pages)
    }

    /// Returns the home page of a host.
    #[must_use]
    pub fn home(&self, host: HostIndex) -> PageIndex {
        PageIndex(self.layout.host(host.0).first)
    }

    /// Returns the addresses of the home pages of the `count` most popular sites, most popular first.
    #[must_use]
    pub fn seeds(&self, count: u32) -> Vec<String> {
        (0..u64::from(count.min(self.config.sites)))
            .map(|rank| self.layout.host_of_site(self.by_popularity.forward(rank) as u32, 0))
            .map(|host| self.url(PageIndex(host.first)))
            .collect()
    }

    /// Returns the address of a page.
    #[must_use]
    pub fn url(&self, page: PageIndex) -> String {
        let (host, local) = self.layout.place(page);
        text(|out| Target { host, local, way: Way::Direct }.put_address(self, None, out))
    }

    /// Returns the page with this address, which must be written as [`url`](Self::url) writes it.
    #[must_use]
    pub fn page_of(&self, url: &str) -> Option<PageIndex> {
        let rest = url.strip_prefix("http://")?;
        let (name, path) = rest.split_at(rest.find('/')?);
        let host = self.layout.host_named(name.as_bytes())?;
        let local = self.layout.page_at(&host, path.as_bytes(), &mut Vec::new())?;
        Some(PageIndex(host.first + u64::from(local)))
    }

    /// Returns the markup language of a page.
    #[must_use]
    pub fn form(&self, page: PageIndex) -> Form {
        let (host, local) = self.layout.place(page);
        self.layout.form(&host, local)
    }

    /// Returns the navigational links (`a`, `area`, `iframe`, `XLink`) of a page at `time`, in document order, without
    /// duplicates. The document may repeat some of them.
    #[must_use]
    pub fn links(&self, page: PageIndex, time: DateTime<Utc>) -> Vec<Link> {
        self.link_targets(page, time).all().iter().map(Target::link).collect()
    }

    /// Returns the resolved addresses of [`links`](Self::links).
    #[must_use]
    pub fn link_urls(&self, page: PageIndex, time: DateTime<Utc>) -> Vec<String> {
        let outline = self.link_targets(page, time);
        outline.all().iter().map(|target| text(|out| target.put_address(self, None, out))).collect()
    }

    fn link_targets(&self, page: PageIndex, time: DateTime<Utc>) -> Outline {
        let (host, local) = self.layout.place(page);
        let now = time.timestamp_micros();
        let version = self.version_of(&host, local, now);
        let face = self.face_of(&host, local);
        let mut outline = Outline::new();
        self.outline(&host, face.local, face.source, version.number, now, &mut outline);
        outline
    }

    /// Returns the addresses of a page's requisites: style sheets, scripts, pictures, fonts, and for an XML page its
    /// style sheet, DTD and external entities. Empty if the web has no requisites.
    #[must_use]
    pub fn requisites(&self, page: PageIndex) -> Vec<String> {
        if !self.config.requisites {
            return Vec::new();
        }
        let (host, local) = self.layout.place(page);
        let source = host.page_key(self.face_of(&host, local).source);
        let mut paths = match self.layout.form(&host, local) {
            Form::Html => media::requisites(&host, source),
            Form::Xml => xml::requisites(xml::has_legal_notice(source)),
        };
        for path in &mut paths {
            *path = format!("http://{}{path}", text(|out| host.put_name(out)));
        }
        paths
    }

    /// Returns the page that this page repeats, and whether it does so byte for byte.
    #[must_use]
    pub fn original(&self, page: PageIndex) -> Option<(PageIndex, bool)> {
        let (host, local) = self.layout.place(page);
        self.original_of(&host, local)
            .map(|original| (PageIndex(host.first + u64::from(original.local)), original.exact))
    }

    /// Whether a page answers 200 at `time`: it has been born and has not vanished.
    #[must_use]
    pub fn exists(&self, page: PageIndex, time: DateTime<Utc>) -> bool {
        let (host, local) = self.layout.place(page);
        self.existence(&host, local, time.timestamp_micros()) == Existence::Here
    }

    /// Whether the host's robots.txt allows a page.
    #[must_use]
    pub fn allowed(&self, page: PageIndex) -> bool {
        let (host, local) = self.layout.place(page);
        self.is_allowed(&host, local)
    }

    /// Returns the delay in seconds that a host's robots.txt asks for.
    #[must_use]
    pub fn crawl_delay(&self, host: HostIndex) -> Option<u32> {
        self.has_crawl_delay(&self.layout.host(host.0)).then_some(self.config.crawl_delay_seconds)
    }

    /// Returns the number of a page's version at `time`: 0 at first, one more with each change. Content that differs at
    /// each fetch (see [`noisy`](Self::noisy)) does not count.
    #[must_use]
    pub fn version(&self, page: PageIndex, time: DateTime<Utc>) -> u64 {
        let (host, local) = self.layout.place(page);
        self.version_of(&host, local, time.timestamp_micros()).number
    }

    /// Returns the start of the version that is current at `time`, to the microsecond.
    #[must_use]
    pub fn last_modified(&self, page: PageIndex, time: DateTime<Utc>) -> DateTime<Utc> {
        let (host, local) = self.layout.place(page);
        from_micros(self.version_of(&host, local, time.timestamp_micros()).since)
    }

    /// Returns the times at which a page changes, after `from` up to and including `to`, in order.
    #[must_use]
    pub fn changes(&self, page: PageIndex, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let (host, local) = self.layout.place(page);
        let times = self.changes_of(&host, local, from.timestamp_micros(), to.timestamp_micros());
        times.into_iter().map(from_micros).collect()
    }

    /// Returns the rate of a page's changes per day, including edits of its site.
    #[must_use]
    pub fn rate(&self, page: PageIndex) -> f64 {
        let (host, local) = self.layout.place(page);
        let local = self.original_of(&host, local).map_or(local, |original| original.local);
        self.rate_of(&host, local) + self.config.site_edits.per_day * self.config.site_edits.share
    }

    /// Whether a page shows something different at each fetch, such as an advertisement.
    #[must_use]
    pub fn noisy(&self, page: PageIndex) -> bool {
        let (host, local) = self.layout.place(page);
        self.is_noisy(&host, local)
    }
}

/// Returns what `write` appends, all of it UTF-8.
pub(super) fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

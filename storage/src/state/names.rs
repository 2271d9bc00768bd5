//! URLs, hosts and sites by name.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{FOLDER, State};
use crate::address::url_hash;
use crate::checkpoint::{Result, StateError, lock};
use crate::ids::{HostId, SiteId, UrlId};
use crate::pages::{Host, Page, Site};
use crate::urls::{Finder, NameCache, NameCursor, NameTable};

impl State {
    /// Returns the id of a URL, assigning one if it has none, and whether it is new. `hash` is [`url_hash`] of the URL.
    ///
    /// A known URL costs one lookup in memory. A new URL gets an empty page, unless its hash collides with that of a
    /// known one: with 10^9 known URLs the probability is 10^9 / 2^62 for each new URL.
    ///
    /// # Errors
    /// A URL that is too long, a full table, and I/O errors.
    #[inline]
    pub fn intern(&mut self, url: &str, hash: u64) -> Result<(UrlId, bool)> {
        self.writable()?;
        if let Some(id) = self.urls.known(url, hash)? {
            return Ok((UrlId(id), false));
        }
        NameTable::check(url)?;
        self.pages.push(&Page::NEW)?;
        let outcome = self.urls.push(url, hash);
        self.finish(outcome).map(|id| (UrlId(id), true))
    }

    /// Prefetches index entries of URLs that will be looked up next, which is faster where the index is much larger
    /// than the CPU caches. Intended for tens of hashes at a time, such as those of a page's links.
    ///
    /// # Errors
    /// I/O errors, for a reader that has to build its index.
    pub fn expect_urls(&self, hashes: impl IntoIterator<Item = u64>) -> Result<()> {
        self.urls.warm(hashes)
    }

    /// Returns the id of a URL.
    ///
    /// # Errors
    /// I/O errors.
    pub fn find(&self, url: &str) -> Result<Option<UrlId>> {
        let finder = if self.urls.is_indexed() { None } else { self.finder()? };
        let found = match finder {
            Some(finder) => finder.find(&self.urls, url)?,
            None => self.urls.find(url)?,
        };
        Ok(found.map(UrlId).filter(|url| self.knows(*url)))
    }

    /// Whether a reader may know of a URL.
    #[must_use]
    pub fn knows(&self, url: UrlId) -> bool {
        self.veil.as_ref().is_none_or(|veil| !veil.unknown.contains(&url))
    }

    /// The file that finds URLs, if it covers nearly all of them.
    pub(super) fn finder(&self) -> Result<Option<&Finder>> {
        if self.finder.get().is_none() {
            let found = Finder::open(self.disk.as_ref(), &self.finder_path(), self.identity())?;
            let fitting = found.filter(|finder| finder.has_nearly(self.urls.len()));
            return Ok(self.finder.get_or_init(|| fitting).as_ref());
        }
        Ok(self.finder.get().and_then(Option::as_ref))
    }

    /// Rewrites the files that find URLs for readers if they cover too few URLs or belong to another state.
    ///
    /// # Errors
    /// I/O errors; the state stays unchanged.
    pub(crate) fn prepare_finding(&self) -> Result<()> {
        let (disk, path) = (self.disk.as_ref(), self.finder_path());
        match Finder::open(disk, &path, self.identity()) {
            Ok(Some(finder)) if finder.has_nearly(self.urls.len()) => {}
            _ => self.replace_finder(&path, |new| Finder::write(disk, new, &self.urls, self.identity()))?,
        }
        self.prepare_keys()
    }

    /// Replaces a file by another one that `write` writes.
    pub(super) fn replace_finder(&self, path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let (disk, new) = (self.disk.as_ref(), path.with_extension("new"));
        write(&new)?;
        // If readers stay, they keep their file and the next owner writes it again.
        let lock_path = self.lock_path();
        if lock::exclude_readers(self.checkpoint_lock.as_ref(), &lock_path, self.options.reader_wait)? {
            let renamed = disk.rename(&new, path);
            self.checkpoint_lock.unlock().map_err(|error| StateError::io(&lock_path, error))?;
            renamed.map_err(|error| StateError::io(path, error))?;
        }
        Ok(())
    }

    pub(super) fn finder_path(&self) -> PathBuf {
        self.folder.join(FOLDER).join("urls.find")
    }

    /// Returns the id of a URL by its [`crate::address::url_hash`] alone, without reading a name.
    ///
    /// # Errors
    /// I/O errors.
    pub fn known(&self, url: &str, hash: u64) -> Result<Option<UrlId>> {
        Ok(self.urls.known(url, hash)?.map(UrlId))
    }

    /// The URL with an id.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn url(&self, id: UrlId) -> Result<String> {
        self.urls.get(id.0)?.ok_or(StateError::Unknown { what: "URL", id: u64::from(id.0) })
    }

    /// Looks up many URLs; cheap when successive lookups are close together.
    #[must_use]
    pub fn url_cursor(&self) -> UrlCursor<'_> {
        UrlCursor(NameCursor::new(&self.urls))
    }

    /// Looks up many URLs in any order, caching at most `urls` of them.
    #[must_use]
    pub fn url_cache(&self, urls: usize) -> TextCache<'_> {
        TextCache { names: NameCache::new(&self.urls, urls), what: "URL" }
    }

    /// As [`State::url_cache`], for host names.
    #[must_use]
    pub fn host_name_cache(&self, hosts: usize) -> TextCache<'_> {
        TextCache { names: NameCache::new(&self.host_names, hosts), what: "host" }
    }

    /// As [`State::url_cache`], for site names.
    #[must_use]
    pub fn site_name_cache(&self, sites: usize) -> TextCache<'_> {
        TextCache { names: NameCache::new(&self.site_names, sites), what: "site" }
    }

    /// Calls `visit` with the URLs of a range of ids, in order.
    ///
    /// # Errors
    /// Any error that `visit` returns, and I/O errors.
    pub fn scan_urls(&self, ids: Range<u32>, mut visit: impl FnMut(UrlId, &str) -> Result<()>) -> Result<()> {
        self.urls.scan(ids, |id, url| visit(UrlId(id), url))
    }

    /// Number of known URLs.
    #[must_use]
    pub fn url_count(&self) -> u32 {
        self.urls.len()
    }

    /// Returns the id of a host, assigning one if it has none, and whether it is new; `site` is the site of a new host.
    ///
    /// # Errors
    /// As [`State::intern`].
    pub fn intern_host(&mut self, name: &str, site: SiteId) -> Result<(HostId, bool)> {
        self.writable()?;
        let hash = url_hash(name);
        if let Some(id) = self.host_names.known(name, hash)? {
            return Ok((HostId(id), false));
        }
        NameTable::check(name)?;
        self.hosts.push(&Host::new(site))?;
        let outcome = self.host_names.push(name, hash);
        self.finish(outcome).map(|id| (HostId(id), true))
    }

    /// Returns the id of a host.
    ///
    /// # Errors
    /// I/O errors.
    pub fn find_host(&self, name: &str) -> Result<Option<HostId>> {
        Ok(self.host_names.find(name)?.map(HostId))
    }

    /// A host's name.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn host_name(&self, id: HostId) -> Result<String> {
        self.host_names.get(id.0)?.ok_or(StateError::Unknown { what: "host", id: u64::from(id.0) })
    }

    /// The record of a host.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn host(&self, id: HostId) -> Result<Host> {
        let stored = self.hosts.get(id.0)?.map(|host| self.shown_host(id, host));
        stored.ok_or(StateError::Unknown { what: "host", id: u64::from(id.0) })
    }

    /// Changes the record of a host.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn update_host<T>(&mut self, id: HostId, change: impl FnOnce(&mut Host) -> T) -> Result<T> {
        self.writable()?;
        self.hosts.update(id.0, change)?.ok_or(StateError::Unknown { what: "host", id: u64::from(id.0) })
    }

    /// All hosts with their names, in order of discovery; stops after the first error.
    pub fn hosts(&self) -> impl Iterator<Item = Result<(HostId, String, Host)>> + '_ {
        let mut names = NameCursor::new(&self.host_names);
        self.hosts.scan(0).map(move |host| {
            let (id, host) = host?;
            Ok((HostId(id), named(&mut names, id, "host")?, self.shown_host(HostId(id), host)))
        })
    }

    /// A host as the veil shows it; one that is hidden has nothing.
    fn shown_host(&self, id: HostId, stored: Host) -> Host {
        match self.veil.as_ref().and_then(|veil| veil.hosts.get(&id)) {
            Some(shown) => shown.unwrap_or_else(|| Host::new(stored.site)),
            None => stored,
        }
    }

    /// Whether a reader may know of a host.
    #[must_use]
    pub fn shows_host(&self, host: HostId) -> bool {
        self.veil.as_ref().is_none_or(|veil| !matches!(veil.hosts.get(&host), Some(None)))
    }

    /// Whether a reader may know of a site.
    #[must_use]
    pub fn shows_site(&self, site: SiteId) -> bool {
        self.veil.as_ref().is_none_or(|veil| !matches!(veil.sites.get(&site), Some(None)))
    }

    /// All hosts without their names, in order of discovery; stops after the first error.
    pub fn host_records(&self) -> impl Iterator<Item = Result<Host>> + '_ {
        self.hosts.scan(0).map(|host| host.map(|(_, host)| host))
    }

    /// The site of each host, indexed by host id.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sites_of_hosts(&self) -> Result<Vec<SiteId>> {
        self.host_records().map(|host| host.map(|host| host.site)).collect()
    }

    /// Number of known hosts.
    #[must_use]
    pub fn host_count(&self) -> u32 {
        self.hosts.len()
    }

    /// Returns the id of a site, assigning one if it has none, and whether it is new.
    ///
    /// # Errors
    /// As [`State::intern`].
    pub fn intern_site(&mut self, name: &str) -> Result<(SiteId, bool)> {
        self.writable()?;
        let hash = url_hash(name);
        if let Some(id) = self.site_names.known(name, hash)? {
            return Ok((SiteId(id), false));
        }
        NameTable::check(name)?;
        self.sites.push(&Site::default())?;
        let outcome = self.site_names.push(name, hash);
        self.finish(outcome).map(|id| (SiteId(id), true))
    }

    /// Returns the id of a site.
    ///
    /// # Errors
    /// I/O errors.
    pub fn find_site(&self, name: &str) -> Result<Option<SiteId>> {
        Ok(self.site_names.find(name)?.map(SiteId).filter(|site| self.shows_site(*site)))
    }

    /// A site's name.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn site_name(&self, id: SiteId) -> Result<String> {
        self.site_names.get(id.0)?.ok_or(StateError::Unknown { what: "site", id: u64::from(id.0) })
    }

    /// The record of a site.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn site(&self, id: SiteId) -> Result<Site> {
        if let Some(Some(site)) = self.veil.as_ref().and_then(|veil| veil.sites.get(&id)) {
            return Ok(*site);
        }
        self.sites.get(id.0)?.ok_or(StateError::Unknown { what: "site", id: u64::from(id.0) })
    }

    /// Replaces the record of a site.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn set_site(&mut self, id: SiteId, site: &Site) -> Result<()> {
        self.update_site(id, |stored| *stored = *site)
    }

    /// Changes the record of a site.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn update_site<T>(&mut self, id: SiteId, change: impl FnOnce(&mut Site) -> T) -> Result<T> {
        self.writable()?;
        let mut moved = 0;
        let change = |site: &mut Site| {
            let cash = site.cash;
            let outcome = change(site);
            moved = site.cash.wrapping_sub(cash);
            outcome
        };
        let unknown = StateError::Unknown { what: "site", id: u64::from(id.0) };
        let outcome = self.sites.update(id.0, change)?.ok_or(unknown)?;
        self.cash_written.sites = self.cash_written.sites.wrapping_add(moved);
        Ok(outcome)
    }

    /// All sites with their names, in order of discovery; stops after the first error.
    pub fn sites(&self) -> impl Iterator<Item = Result<(SiteId, String, Site)>> + '_ {
        let mut names = NameCursor::new(&self.site_names);
        self.sites.scan(0).map(move |site| {
            let (id, site) = site?;
            Ok((SiteId(id), named(&mut names, id, "site")?, site))
        })
    }

    /// All sites without their names, in order of discovery; stops after the first error.
    pub fn site_records(&self) -> impl Iterator<Item = Result<Site>> + '_ {
        self.sites.scan(0).map(|site| site.map(|(_, site)| site))
    }

    /// Number of known sites.
    #[must_use]
    pub fn site_count(&self) -> u32 {
        self.sites.len()
    }
}

fn named(names: &mut NameCursor<'_>, id: u32, what: &'static str) -> Result<String> {
    names.get(id)?.map(str::to_owned).ok_or(StateError::Unknown { what, id: u64::from(id) })
}

/// Looks up URLs, keeping the last block decompressed.
#[derive(Debug)]
pub struct UrlCursor<'a>(NameCursor<'a>);

impl UrlCursor<'_> {
    /// The URL with an id.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    pub fn get(&mut self, id: UrlId) -> Result<&str> {
        self.0.get(id.0)?.ok_or(StateError::Unknown { what: "URL", id: u64::from(id.0) })
    }
}

/// Looks up URLs, or names of hosts or sites, and caches them.
#[derive(Debug)]
pub struct TextCache<'a> {
    names: NameCache<'a>,
    what: &'static str,
}

impl TextCache<'_> {
    /// The text with an id.
    ///
    /// # Errors
    /// [`StateError::Unknown`] and I/O errors.
    #[inline]
    pub fn get(&mut self, id: u32) -> Result<&str> {
        self.names.get(id)?.ok_or(StateError::Unknown { what: self.what, id: u64::from(id) })
    }
}

//! The view of an archive from which joined graphs are built.

use std::collections::HashMap;
use std::path::PathBuf;

use archive_storage::{Page, PageFlags, SiteId, State, StateError, Store, UrlId};

use super::several::JoinError;
use crate::ledger::{Credits, LinkCode, aliases, known_sites, shown};

/// Receives a page's links that carry importance.
pub(super) type See<'a> = dyn FnMut(UrlId, &[UrlId]) + 'a;

/// What is known about a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Site of its host.
    pub(super) site: Option<SiteId>,
    /// Page flags; only [`flags::ACCOUNT`] and [`flags::ALIAS`] are used.
    pub(super) flags: PageFlags,
    /// Whether it was fetched.
    pub(super) is_visited: bool,
}

/// An archive whose pages are ranked together with those of others.
pub trait Books {
    /// Key by which URLs of this archive are found in others.
    type Name;

    /// Returns the archive's name.
    fn called(&self) -> PathBuf;

    /// Returns its sites by number, and whether pages of them were captured.
    ///
    /// # Errors
    /// When the archive cannot be read; the other functions fail likewise.
    fn sites(&self) -> Result<Vec<(String, bool)>, JoinError>;

    /// Number of known URLs.
    fn url_count(&self) -> u32;

    /// Returns what is known about a URL.
    fn entry(&self, id: UrlId) -> Result<Entry, JoinError>;

    /// Returns what is known about all URLs, in order.
    fn entries(&self) -> Box<dyn Iterator<Item = Result<(UrlId, Entry), JoinError>> + '_>;

    /// Returns the site of a page by the archive's rule.
    fn site_by_rule(&self, id: UrlId) -> Result<Option<SiteId>, JoinError>;

    /// Whether the server's last answer was that the page does not exist.
    fn is_gone(&self, id: UrlId) -> Result<bool, JoinError>;

    /// Returns the page that each alias stands for.
    fn aliases(&self) -> Result<HashMap<UrlId, UrlId>, JoinError>;

    /// Passes the newest links of all pages to `see`.
    fn links(&self, see: &mut See<'_>) -> Result<(), JoinError>;

    /// Returns the key of a URL.
    fn url(&self, id: UrlId) -> Result<Self::Name, JoinError>;

    /// Returns the URL with a key.
    fn find(&self, name: &Self::Name) -> Result<Option<UrlId>, JoinError>;
}

/// An archive in a local folder.
#[derive(Debug)]
pub struct Folder<'a> {
    path: PathBuf,
    state: &'a State,
    /// Sites by host number.
    sites: Vec<SiteId>,
    credits: Credits,
}

impl<'a> Folder<'a> {
    /// Creates the view of a store.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn of(store: &'a Store) -> Result<Self, JoinError> {
        let state = store.state();
        let sites = state.hosts().map(|host| Ok(host?.2.site)).collect::<Result<_, StateError>>()?;
        Ok(Self { path: store.path().to_owned(), state, sites, credits: Credits::open(state)? })
    }

    pub(super) fn state(&self) -> &'a State {
        self.state
    }

    pub(super) fn entry_of(&self, page: &Page) -> Entry {
        let site = self.sites.get(page.host.index()).copied();
        Entry { site, flags: page.flags, is_visited: page.visit.is_some() }
    }
}

impl Books for Folder<'_> {
    type Name = String;

    fn called(&self) -> PathBuf {
        self.path.clone()
    }

    fn sites(&self) -> Result<Vec<(String, bool)>, JoinError> {
        Ok(known_sites(self.state)?)
    }

    fn url_count(&self) -> u32 {
        self.state.url_count()
    }

    fn entry(&self, id: UrlId) -> Result<Entry, JoinError> {
        Ok(self.entry_of(&self.state.page(id)?))
    }

    fn entries(&self) -> Box<dyn Iterator<Item = Result<(UrlId, Entry), JoinError>> + '_> {
        Box::new(self.state.pages(UrlId(0)).map(|page| {
            let (id, page) = page?;
            Ok((id, self.entry_of(&page)))
        }))
    }

    fn site_by_rule(&self, id: UrlId) -> Result<Option<SiteId>, JoinError> {
        Ok(self.credits.site(self.state, id)?)
    }

    fn is_gone(&self, id: UrlId) -> Result<bool, JoinError> {
        Ok(shown(self.state, id)?.is_some_and(|(_, capture)| matches!(capture.status, 404 | 410)))
    }

    fn aliases(&self) -> Result<HashMap<UrlId, UrlId>, JoinError> {
        Ok(aliases(self.state)?.into_iter().map(|(page, alias)| (alias, page)).collect())
    }

    fn links(&self, see: &mut See<'_>) -> Result<(), JoinError> {
        let mut targets = Vec::new();
        self.state.newest_links(|(source, ..), list| {
            targets.clear();
            let carrying = list.iter().filter(|link| LinkCode::from_byte(link.kind).carries_cash());
            targets.extend(carrying.map(|link| link.target));
            see(source, &targets);
            Ok::<_, StateError>(())
        })?;
        Ok(())
    }

    fn url(&self, id: UrlId) -> Result<String, JoinError> {
        Ok(self.state.url(id)?)
    }

    fn find(&self, name: &String) -> Result<Option<UrlId>, JoinError> {
        Ok(self.state.find(name)?)
    }
}

//! Sites: which one a page belongs to, by the archive's rule, and which ones people favour.

use archive_math::importance::SiteAccount;
use archive_storage::{HostId, Page, SiteId, State, StateError, UrlId};

use super::account::store_site_account;
use super::authority::authority;
use super::credit::Credits;
use super::error::CreditError;
use super::rules::SiteRule;
use super::settings::{FAVOURED_SITES_MAX, read_favoured_sites, write_favoured_sites};

impl Credits {
    /// Favours the pages of these sites from now on, each by its bonus; of more than 10^6 sites, those with the highest
    /// bonus.
    ///
    /// # Errors
    /// When the store fails.
    pub fn favour_sites(
        &mut self,
        state: &mut State,
        mut sites: Vec<(SiteId, f64)>,
    ) -> Result<(), CreditError> {
        sites.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sites.truncate(FAVOURED_SITES_MAX);
        write_favoured_sites(state, &sites)?;
        self.favoured_sites = read_favoured_sites(state);
        Ok(())
    }

    /// Returns the host of a canonical URL, adding it, and the account of its site, if it is new.
    pub(super) fn host_of(&mut self, state: &mut State, url: &str) -> Result<HostId, CreditError> {
        let host = authority(url);
        if let Some(id) = state.find_host(host)? {
            return Ok(id);
        }
        let id = self.new_host(state, url, host)?;
        if let Some(transfers) = &mut self.transfers {
            transfers.note_host(id, host);
        }
        Ok(id)
    }

    fn new_host(&mut self, state: &mut State, url: &str, host: &str) -> Result<HostId, CreditError> {
        let name = match self.rules().sites {
            SiteRule::Path(_) => SiteRule::Host.site(url),
            rule => rule.site(url),
        };
        let site = self.open_site(state, &name)?;
        Ok(state.intern_host(host, site)?.0)
    }

    /// Returns the site with this name; a new one gets an account.
    fn open_site(&mut self, state: &mut State, name: &str) -> Result<SiteId, CreditError> {
        let (site, is_new) = state.intern_site(name)?;
        if is_new {
            let mut record = state.site(site)?;
            store_site_account(&mut record, &SiteAccount::discover(&mut self.sites));
            state.set_site(site, &record)?;
        }
        Ok(site)
    }

    /// Returns the site of a page, adding it if it is new.
    pub(super) fn know_site(&mut self, state: &mut State, id: UrlId) -> Result<SiteId, CreditError> {
        let rule = self.rules().sites;
        if let SiteRule::Path(_) = rule {
            let url = state.url(id)?;
            return self.open_site(state, &rule.site(&url));
        }
        Ok(state.host(state.page(id)?.host)?.site)
    }

    /// Returns the site of a page; `None` if no page of the site was read so far.
    ///
    /// # Errors
    /// When the store fails.
    pub fn site(&self, state: &State, id: UrlId) -> Result<Option<SiteId>, StateError> {
        match self.rules().sites {
            SiteRule::Path(_) => state.find_site(&self.rules().sites.site(&state.url(id)?)),
            SiteRule::Domain | SiteRule::Host => {
                let host = state.page(id)?.host;
                if host == Page::HOST_UNKNOWN { Ok(None) } else { Ok(Some(state.host(host)?.site)) }
            }
        }
    }
}

//! Budgets of hosts and sites: of pages in all, and of bytes in a run. Sites that others link to get more pages.
//!
//! A host with a calendar or a site with a host name for every page has no end, and its own links make it look
//! important. So the budget grows only with the importance that comes from other sites (IRLbot has the same idea: Lee,
//! Leonard, Wang, Loguinov, "IRLbot: Scaling to 6 billion pages and beyond", WWW 2008, section 5).

use std::collections::HashMap;

use archive_base::decisions::{DecisionVerdict, Decisions};
use archive_books::ledger::{Candidate, Credits, LEVEL_PAGE_MAX, Refusal};
use archive_storage::{HostId, SiteId, State, StateError, UrlId};
use serde::{Deserialize, Serialize};

/// The budget of the most important site is this many times that of an ordinary one.
const GROWTH_MAX: f64 = 100.0;

/// Limits on what is fetched of a host and of a site, if any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Page limit of a host whose site has importance 1 or less.
    pub pages_per_host: Option<u32>,
    /// Page limit of a site of importance 1 or less.
    pub pages_per_site: Option<u32>,
    /// Limit on the bytes that a run receives from a host.
    pub bytes_per_host: Option<u64>,
    /// Limit on the bytes that a run receives from a site.
    pub bytes_per_site: Option<u64>,
}

/// What a run has used of budgets, besides the pages that the state counts.
#[derive(Debug, Default)]
pub struct BudgetUnderWay {
    /// Pages that are being fetched.
    hosts: HashMap<HostId, u32>,
    sites: HashMap<SiteId, u32>,
    /// Bytes received.
    host_bytes: HashMap<HostId, u64>,
    site_bytes: HashMap<SiteId, u64>,
    /// Budgets in bytes that hosts have of their own.
    own_bytes: HashMap<HostId, u64>,
}

impl Budgets {
    /// Page limit of a host, given the importance of its site.
    #[must_use]
    pub fn of_host(&self, site_importance: f64) -> Option<u32> {
        self.pages_per_host.map(|pages| grown(pages, site_importance))
    }

    /// Page limit of a site of this importance.
    #[must_use]
    pub fn of_site(&self, importance: f64) -> Option<u32> {
        self.pages_per_site.map(|pages| grown(pages, importance))
    }

    /// Returns why a page need not enter the frontier: the budget of its host or site is spent. So a site with
    /// countless host names takes no memory there.
    pub fn early(
        &self,
        state: &State,
        credits: &Credits,
        candidate: &Candidate,
        under_way: &BudgetUnderWay,
        decisions: &Decisions,
    ) -> Result<Option<Refusal>, StateError> {
        // A state from elsewhere may name a host that does not exist, and the frontier would grow to its number.
        if candidate.host.0 >= state.host_count() {
            return Err(StateError::Unknown { what: "host", id: u64::from(candidate.host.0) });
        }
        // Seeds were requested by a person, and parts of a page belong to the page.
        if candidate.level > LEVEL_PAGE_MAX {
            return Ok(None);
        }
        let spent = self.spent(state, credits, candidate.host, under_way, decisions)?;
        let is_kept = spent.is_some() && is_kept(state, candidate.url, candidate.host, decisions)?;
        Ok(spent.filter(|_| !is_kept))
    }

    /// Returns why nothing more of a host may be fetched in this run: its budget of bytes, or that of its site, is spent.
    pub fn bytes_spent(
        &self,
        state: &State,
        host: HostId,
        used: &BudgetUnderWay,
    ) -> Result<Option<Refusal>, StateError> {
        let budget = used.own_bytes.get(&host).copied().or(self.bytes_per_host);
        if budget.is_some_and(|budget| used.host_bytes.get(&host).is_some_and(|bytes| *bytes >= budget)) {
            return Ok(Some(Refusal::PagesPerHost));
        }
        let Some(budget) = self.bytes_per_site else { return Ok(None) };
        let bytes = used.site_bytes.get(&state.host(host)?.site);
        Ok(bytes.is_some_and(|bytes| *bytes >= budget).then_some(Refusal::PagesPerSite))
    }

    /// Returns why no further page of a host may be fetched. People's ratings scale budgets up and down.
    pub fn spent(
        &self,
        state: &State,
        credits: &Credits,
        host: HostId,
        under_way: &BudgetUnderWay,
        decisions: &Decisions,
    ) -> Result<Option<Refusal>, StateError> {
        if self.pages_per_host.is_none() && self.pages_per_site.is_none() {
            return Ok(None);
        }
        let record = state.host(host)?;
        let site = state.site(record.site)?;
        let importance = credits.site_importance(&site);
        let of_host = record.fetched + under_way.hosts.get(&host).copied().unwrap_or(0);
        let of_site = site.fetched + under_way.sites.get(&record.site).copied().unwrap_or(0);
        let weight = if decisions.is_empty() {
            1.0
        } else {
            decisions.of_host(&state.host_name(host)?, &state.site_name(record.site)?).rated_weight()
        };
        let is_spent = |budget: Option<u32>, pages: u32| {
            // Conversion saturates.
            budget.is_some_and(|budget| pages >= (f64::from(budget) * weight).ceil() as u32)
        };
        Ok(if is_spent(self.of_host(importance), of_host) {
            Some(Refusal::PagesPerHost)
        } else if is_spent(self.of_site(importance), of_site) {
            Some(Refusal::PagesPerSite)
        } else {
            None
        })
    }
}

/// Whether people want a page regardless of budgets.
fn is_kept(state: &State, url: UrlId, host: HostId, decisions: &Decisions) -> Result<bool, StateError> {
    if decisions.is_empty() {
        return Ok(false);
    }
    let site = state.site_name(state.host(host)?.site)?;
    let verdict = decisions.of_page(&state.url(url)?, &state.host_name(host)?, &site).verdict;
    Ok(verdict.is_some_and(|(verdict, ..)| verdict == DecisionVerdict::Keep))
}

fn grown(pages: u32, importance: f64) -> u32 {
    // Conversion saturates.
    (f64::from(pages) * importance.clamp(1.0, GROWTH_MAX)) as u32
}

impl BudgetUnderWay {
    /// Counts a page of this host whose fetch begins.
    pub fn begin(&mut self, state: &State, host: HostId) -> Result<(), StateError> {
        *self.hosts.entry(host).or_insert(0) += 1;
        *self.sites.entry(state.host(host)?.site).or_insert(0) += 1;
        Ok(())
    }

    /// Counts bytes received from a host.
    pub fn receive(&mut self, state: &State, host: HostId, bytes: u64) -> Result<(), StateError> {
        *self.host_bytes.entry(host).or_insert(0) += bytes;
        *self.site_bytes.entry(state.host(host)?.site).or_insert(0) += bytes;
        Ok(())
    }

    /// Gives a host a budget in bytes of its own.
    pub fn set_bytes(&mut self, host: HostId, budget: u64) {
        self.own_bytes.insert(host, budget);
    }

    /// Uncounts a page of this host whose fetch has ended.
    pub fn end(&mut self, state: &State, host: HostId) -> Result<(), StateError> {
        take_one(&mut self.hosts, &host);
        take_one(&mut self.sites, &state.host(host)?.site);
        Ok(())
    }
}

fn take_one<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_storage::backend::RealDisk;
    use archive_storage::{HostId, State, StateError, StateMode, UrlId};

    use super::{BudgetUnderWay, Budgets, Candidate, Decisions};
    use archive_books::ledger::Credits;

    #[test]
    fn a_host_that_there_is_not_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::open(Arc::new(RealDisk), folder.path(), StateMode::Own).unwrap();
        let mut credits = Credits::open(&state).unwrap();
        credits.add_seeds(&mut state, &["http://a.test/".to_owned()]).unwrap();
        let early = |host| {
            let candidate = Candidate { url: UrlId(0), host: HostId(host), level: 1 };
            Budgets::default().early(
                &state,
                &credits,
                &candidate,
                &BudgetUnderWay::default(),
                &Decisions::default(),
            )
        };
        assert!(early(0).unwrap().is_none());
        assert!(matches!(early(1), Err(StateError::Unknown { .. })));
    }

    #[test]
    fn a_budget_grows_with_the_importance_of_the_site() {
        let budgets = Budgets { pages_per_host: Some(10), pages_per_site: Some(100), ..Budgets::default() };
        assert_eq!((budgets.of_host(0.1), budgets.of_site(0.1)), (Some(10), Some(100)));
        assert_eq!((budgets.of_host(2.5), budgets.of_site(2.5)), (Some(25), Some(250)));
        assert_eq!(budgets.of_host(1e9), Some(1000));
        assert_eq!(Budgets { pages_per_host: Some(u32::MAX), ..budgets }.of_host(50.0), Some(u32::MAX));
        assert_eq!(Budgets::default().of_site(1.0), None);
    }
}

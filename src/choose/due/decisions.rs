//! People's decisions as page weights.

use std::collections::{HashMap, HashSet};

use archive_base::decisions::{CurrentDecisions, Decisions, Subject};
use archive_books::ledger::{CreditError, authority};
use archive_storage::{HostId, State, UrlId};

/// The factors by which decisions change page weights; hosts without a decision are left out.
#[derive(Debug, Default)]
pub(super) struct DecisionFactors {
    decisions: Decisions,
    hosts: HashMap<HostId, HostFactor>,
}

#[derive(Debug)]
struct HostFactor {
    name: String,
    site: String,
    /// Weight of its pages, unless a narrower decision applies.
    weight: f64,
    /// Whether there are decisions about its folders or pages.
    has_narrower: bool,
}

impl DecisionFactors {
    pub(super) fn of(state: &State, decisions: Decisions) -> Result<Self, CreditError> {
        if decisions.is_empty() {
            return Ok(Self::default());
        }
        let narrower: HashSet<&str> = decisions
            .subjects()
            .filter_map(|(subject, _)| match subject {
                Subject::Folder(url) | Subject::Page(url) => Some(authority(url)),
                Subject::Site(_) | Subject::Host(_) => None,
            })
            .collect();
        let mut hosts = HashMap::new();
        for host in state.hosts() {
            let (id, name, host) = host?;
            let site = state.site_name(host.site)?;
            let weight = decisions.of_host(&name, &site).weight();
            let has_narrower = narrower.contains(name.as_str());
            if has_narrower || decisions.of_host(&name, &site).newest > 0 {
                hosts.insert(id, HostFactor { name, site, weight, has_narrower });
            }
        }
        Ok(Self { decisions, hosts })
    }

    /// Number of decisions, including undone ones.
    pub(super) fn count(&self) -> u64 {
        self.decisions.log().len() as u64
    }

    /// Returns the decisions that apply to a page.
    pub(super) fn standing(&self, state: &State, id: UrlId) -> Result<CurrentDecisions, CreditError> {
        Ok(match self.hosts.get(&state.page(id)?.host) {
            None => CurrentDecisions::default(),
            Some(host) => self.decisions.of_page(&state.url(id)?, &host.name, &host.site),
        })
    }

    /// Returns the factor for a page of this host; 0 if it must not be fetched.
    pub(super) fn weight(&self, state: &State, id: UrlId, host: HostId) -> Result<f64, CreditError> {
        if self.hosts.is_empty() {
            return Ok(1.0);
        }
        Ok(match self.hosts.get(&host) {
            None => 1.0,
            Some(host) if !host.has_narrower => host.weight,
            Some(host) => self.decisions.of_page(&state.url(id)?, &host.name, &host.site).weight(),
        })
    }
}

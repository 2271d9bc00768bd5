//! How the servers of an archive are to be treated and by whom, as its runs were told: kept in the archive, so that every
//! later run of any command comes under the same name, at the same pace and within the same limits.
//!
//! What widens the reach of the program (private addresses, other authorities, redirected connections) is not taken from
//! the archive, because its folder may come from a stranger: only that it was given is remembered, to say so.

use std::collections::BTreeMap;
use std::time::Duration;

use archive_books::ledger::{CreditError, MANNERS_SETTING, ScopeKind};
use archive_storage::State;
use archive_web::fetch::{Compression, TypeLimit};
use serde::{Deserialize, Serialize};

use super::options::CookieUse;

/// Maximum number of hosts whose delay, and whose budget, is kept.
const HOSTS_MAX: usize = 100_000;

/// What the runs of an archive were told; `None` for what nobody said. The fields are those of the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the options of the same names describe them")]
pub struct Manners {
    pub user_agent: Option<String>,
    pub delay: Option<Duration>,
    pub address_delay: Option<Duration>,
    pub delay_factor: Option<f64>,
    pub per_host: Option<u32>,
    pub max_body: Option<u64>,
    pub max_body_of: Option<Vec<TypeLimit>>,
    pub timeout: Option<Duration>,
    pub max_time: Option<Duration>,
    pub obey_noarchive: Option<bool>,
    pub obey_nofollow: Option<bool>,
    pub scope: Option<ScopeKind>,
    pub max_depth: Option<u8>,
    pub pages_per_host: Option<u32>,
    pub pages_per_site: Option<u32>,
    pub bytes_per_host: Option<u64>,
    pub bytes_per_site: Option<u64>,
    pub query_variations: Option<u32>,
    pub same_content: Option<u32>,
    pub drop_parameters: Option<Vec<String>>,
    pub leave_moved_seeds: Option<bool>,
    pub cookies: Option<CookieUse>,
    pub compression: Option<Compression>,
    /// Delays of hosts, from the seeds.
    pub delays: BTreeMap<String, Duration>,
    /// Budgets in bytes of hosts, from the seeds.
    pub bytes: BTreeMap<String, u64>,
    /// Options given that widen the reach of the program.
    pub reach: Vec<String>,
}

impl Manners {
    /// Returns the manners that are kept in a state.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn of(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(MANNERS_SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(MANNERS_SETTING))
    }

    /// Keeps them from the next checkpoint on.
    pub(super) fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(MANNERS_SETTING))?;
        if state.setting(MANNERS_SETTING) != Some(&bytes) {
            state.set_setting(MANNERS_SETTING, Some(&bytes))?;
        }
        Ok(())
    }

    /// Completes what is said now by what was said before.
    #[must_use]
    pub fn over(self, before: Self) -> Self {
        Self {
            user_agent: self.user_agent.or(before.user_agent),
            delay: self.delay.or(before.delay),
            address_delay: self.address_delay.or(before.address_delay),
            delay_factor: self.delay_factor.or(before.delay_factor),
            // Several connections go with no delay, so a new delay replaces both.
            per_host: self.per_host.or(before.per_host.filter(|_| self.delay.is_none())),
            max_body: self.max_body.or(before.max_body),
            max_body_of: self.max_body_of.or(before.max_body_of),
            timeout: self.timeout.or(before.timeout),
            max_time: self.max_time.or(before.max_time),
            obey_noarchive: self.obey_noarchive.or(before.obey_noarchive),
            obey_nofollow: self.obey_nofollow.or(before.obey_nofollow),
            scope: self.scope.or(before.scope),
            max_depth: self.max_depth.or(before.max_depth),
            pages_per_host: self.pages_per_host.or(before.pages_per_host),
            pages_per_site: self.pages_per_site.or(before.pages_per_site),
            bytes_per_host: self.bytes_per_host.or(before.bytes_per_host),
            bytes_per_site: self.bytes_per_site.or(before.bytes_per_site),
            query_variations: self.query_variations.or(before.query_variations),
            same_content: self.same_content.or(before.same_content),
            drop_parameters: self.drop_parameters.or(before.drop_parameters),
            leave_moved_seeds: self.leave_moved_seeds.or(before.leave_moved_seeds),
            cookies: self.cookies.or(before.cookies),
            compression: self.compression.or(before.compression),
            delays: before.delays,
            bytes: before.bytes,
            reach: if self.reach.is_empty() { before.reach } else { self.reach },
        }
    }
}

/// Notes what a seed says of its host, or that it says nothing.
pub(super) fn set_of_host<T>(hosts: &mut BTreeMap<String, T>, host: &str, said: Option<T>) {
    match said {
        Some(said) if hosts.len() < HOSTS_MAX => drop(hosts.insert(host.to_owned(), said)),
        Some(_) => {}
        None => drop(hosts.remove(host)),
    }
}

#[cfg(test)]
mod tests {
    use super::Manners;
    use std::time::Duration;

    #[test]
    fn what_is_said_later_holds_and_the_rest_stays() {
        let before = Manners {
            user_agent: Some("old/1".to_owned()),
            delay: Some(Duration::ZERO),
            per_host: Some(8),
            reach: vec!["--allow-private".to_owned()],
            ..Manners::default()
        };
        let later =
            Manners { user_agent: Some("new/1".to_owned()), ..Manners::default() }.over(before.clone());
        assert_eq!(later, Manners { user_agent: Some("new/1".to_owned()), ..before.clone() });
        let slower = Manners { delay: Some(Duration::from_secs(1)), ..Manners::default() }.over(before);
        assert_eq!((slower.per_host, slower.user_agent.as_deref()), (None, Some("old/1")));
    }
}

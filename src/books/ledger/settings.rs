//! Settings that the books keep in the catalogue.

use std::collections::HashMap;

use archive_math::importance::{self, Cash, Ledger, LedgerNumbers};
use archive_storage::{SiteId, State, UrlId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::CreditError;

/// Setting with the page ledger's numbers.
pub(super) const PAGE_LEDGER: &str = "ledger.pages";
/// Setting with the site ledger's numbers.
pub(super) const SITE_LEDGER: &str = "ledger.sites";
/// Setting with the queue of announced pages.
pub(super) const PUBLISHED: &str = "publish.queue";
/// Setting with the clusters.
pub(super) const CLUSTERS: &str = "publish.clusters";
/// Setting with the rules for dividing cash.
pub(super) const RULES: &str = "ledger.rules";
/// Setting with the pages that queries favour: the bonus as an `f32`, then ids as `u32`, little-endian.
pub(super) const FAVOURED: &str = "ledger.favoured";
/// Setting with the sites that people favour: ids as `u32`, each with its bonus as an `f32`, little-endian.
pub(super) const FAVOURED_SITES: &str = "ledger.favoured_sites";
/// Setting with the scope.
pub(super) const SCOPE: &str = "crawl.scope";
/// Setting with what is known about parameters of URLs.
pub(super) const PARAMETERS: &str = "crawl.parameters";
/// Setting with the policy of the last crawl: what it took and what it left.
pub const POLICY_SETTING: &str = "crawl.conduct";
/// Setting with the rules by which refreshes choose pages.
pub const REFRESH_SETTING: &str = "refresh.rules";
/// Setting with how servers are to be treated, as runs were told.
pub const MANNERS_SETTING: &str = "crawl.manners";
/// Setting with what runs leave to the next one because of servers.
pub(super) const PUT_OFF: &str = "crawl.put_off";
/// Settings decided by a person and not in captures; all others can be rebuilt.
pub const DECISIONS: [&str; 5] = [RULES, SCOPE, POLICY_SETTING, REFRESH_SETTING, MANNERS_SETTING];

/// The part of [`POLICY_SETTING`] that the books need.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct BookPolicy {
    pub(super) obey_nofollow: bool,
    pub(super) dropped_parameters: Vec<String>,
    pub(super) leave_moved_seeds: bool,
}

/// Returns the policy of the last crawl.
pub(super) fn read_policy(state: &State) -> Result<BookPolicy, CreditError> {
    Ok(read_setting(state, POLICY_SETTING)?.unwrap_or_default())
}

/// Opens a ledger as saved, or a new one with this total cash.
pub(super) fn open_ledger(
    state: &State,
    name: &'static str,
    policy: importance::Policy,
    total: Cash,
) -> Result<Ledger, CreditError> {
    let numbers: Option<LedgerNumbers> = read_setting(state, name)?;
    Ok(numbers.map_or_else(|| Ledger::with_total(policy, total), |numbers| Ledger::resume(numbers, policy)))
}

pub(super) fn read_setting<T: DeserializeOwned>(
    state: &State,
    name: &'static str,
) -> Result<Option<T>, CreditError> {
    let Some(bytes) = state.setting(name) else { return Ok(None) };
    serde_json::from_slice(bytes).map(Some).map_err(|_| CreditError::Setting(name))
}

pub(super) fn write_setting(
    state: &mut State,
    name: &'static str,
    value: &impl Serialize,
) -> Result<(), CreditError> {
    let bytes = serde_json::to_vec(value).map_err(|_| CreditError::Setting(name))?;
    Ok(state.set_setting(name, Some(&bytes))?)
}

/// Maximum number of pages that queries favour.
pub(super) const FAVOURED_MAX: usize = 1_000_000;

/// Returns the pages that a query favours, with their bonus.
pub(super) fn read_favoured(state: &State) -> HashMap<UrlId, f64> {
    let Some((bonus, ids)) = state.setting(FAVOURED).and_then(|bytes| bytes.split_first_chunk::<4>()) else {
        return HashMap::new();
    };
    let bonus = f64::from(f32::from_le_bytes(*bonus));
    ids.as_chunks::<4>().0.iter().map(|&id| (UrlId(u32::from_le_bytes(id)), bonus)).collect()
}

pub(super) fn write_favoured(state: &mut State, pages: &[UrlId], bonus: f64) -> Result<(), CreditError> {
    let mut bytes = (bonus as f32).to_le_bytes().to_vec();
    bytes.extend(pages.iter().flat_map(|page| page.0.to_le_bytes()));
    Ok(state.set_setting(FAVOURED, (!pages.is_empty()).then_some(&bytes[..]))?)
}

/// Maximum number of favoured sites; those with the highest bonus are kept.
pub(super) const FAVOURED_SITES_MAX: usize = 1_000_000;

/// Returns the sites that people favour, with their bonus.
pub(super) fn read_favoured_sites(state: &State) -> HashMap<SiteId, f64> {
    let bytes = state.setting(FAVOURED_SITES).unwrap_or_default();
    let site = |&[a, b, c, d, bonus @ ..]: &[u8; 8]| {
        (SiteId(u32::from_le_bytes([a, b, c, d])), f64::from(f32::from_le_bytes(bonus)))
    };
    bytes.as_chunks().0.iter().map(site).collect()
}

pub(super) fn write_favoured_sites(state: &mut State, sites: &[(SiteId, f64)]) -> Result<(), CreditError> {
    let bytes: Vec<u8> = sites
        .iter()
        .flat_map(|(site, bonus)| [site.0.to_le_bytes(), (*bonus as f32).to_le_bytes()])
        .flatten()
        .collect();
    Ok(state.set_setting(FAVOURED_SITES, (!sites.is_empty()).then_some(&bytes[..]))?)
}

//! What the books keep in the catalogue.

use archive_storage::State;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::credit::CreditError;
use crate::importance::{Ledger, Numbers, Policy};

/// Setting under which the page ledger's numbers are kept.
pub(super) const PAGE_LEDGER: &str = "ledger.pages";
/// Setting under which the site ledger's numbers are kept.
pub(super) const SITE_LEDGER: &str = "ledger.sites";
/// Setting under which announced pages wait.
pub(super) const PUBLISHED: &str = "publish.queue";
/// Setting under which clusters are kept.
pub(super) const CLUSTERS: &str = "publish.clusters";
/// Setting under which the scope is kept.
pub(super) const SCOPE: &str = "crawl.scope";

pub(super) fn open_ledger(state: &State, name: &'static str) -> Result<Ledger, CreditError> {
    let numbers: Option<Numbers> = read_setting(state, name)?;
    Ok(numbers
        .map_or_else(|| Ledger::new(Policy::default()), |numbers| Ledger::resume(numbers, Policy::default())))
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

//! What a crawl was told to do and to leave, kept in the archive so that `archive why` can tell it afterwards.

use archive_storage::State;
use serde::{Deserialize, Serialize};

use crate::ledger::CreditError;

/// The setting of the archive that holds the conduct of its last crawl.
const SETTING: &str = "crawl.conduct";

/// What a crawl takes and leaves; all of it may differ from run to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conduct {
    /// The product name by which robots.txt may address the crawler.
    pub robots_name: String,
}

impl Default for Conduct {
    fn default() -> Self {
        Self { robots_name: env!("CARGO_PKG_NAME").to_owned() }
    }
}

impl Conduct {
    /// The conduct of the archive's last crawl; the default one if there was none.
    ///
    /// # Errors
    /// When it was kept in a form that cannot be read.
    pub fn of_last_crawl(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(SETTING))
    }

    /// Keeps it for the next checkpoint to save.
    pub(super) fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(SETTING))?;
        Ok(state.set_setting(SETTING, Some(&bytes))?)
    }
}

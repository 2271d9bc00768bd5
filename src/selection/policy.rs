//! What a crawl had to fetch and to leave out, kept in the archive so that `archive why` can report it afterwards.

use archive_storage::State;
use serde::{Deserialize, Serialize};

use super::budget::Budgets;
use super::focus::FocusPolicy;
use super::order::CrawlOrder;
use crate::ledger::{CreditError, POLICY_SETTING};
use crate::topic::Recall;

/// What a crawl takes and leaves; all of it may differ from run to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlPolicy {
    /// The product name by which robots.txt may address the crawler.
    pub robots_name: String,
    /// In which order pages are fetched.
    pub order: CrawlOrder,
    /// What is looked for, if the crawl is focused; the order is that of cash then.
    pub focus: Option<FocusPolicy>,
    /// Pages that a host and a site may have.
    pub budgets: Budgets,
    /// Variations of one page by a query of three parameters or more, at most; 0 for no limit.
    pub query_variations: u32,
    /// Pages of a host with the same content: links of further ones are not followed; 0 for no limit.
    pub same_content: u32,
    /// Whether links that ask not to be followed are not (`rel=nofollow`, `meta name=robots`, `X-Robots-Tag`).
    pub obey_nofollow: bool,
    /// Whether pages that ask not to be archived are not (`meta name=robots`, `X-Robots-Tag`).
    pub obey_noarchive: bool,
    /// Patterns of URLs that the settings file leaves out.
    pub ignored: Vec<String>,
    /// How it ended; none while it runs, and after a crash.
    pub ended: Option<Ended>,
}

/// How a crawl ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// What ended it, a word.
    pub reason: String,
    /// What it had found, if it was focused.
    pub topic: Option<TopicStatus>,
}

/// What a focused crawl has found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicStatus {
    /// The topic.
    pub name: String,
    /// Pages that were seen in this run.
    pub looked_at: u64,
    /// Of these, pages of the topic.
    pub found: u64,
    /// Their share of the last hundred pages.
    pub harvest: f64,
    /// How much is found of what there is; none as long as too little is known. It counts what earlier runs found, too.
    pub recall: Option<Recall>,
}

impl Default for CrawlPolicy {
    fn default() -> Self {
        Self {
            robots_name: env!("CARGO_PKG_NAME").to_owned(),
            order: CrawlOrder::default(),
            focus: None,
            budgets: Budgets::default(),
            query_variations: 1000,
            same_content: 250,
            obey_nofollow: false,
            obey_noarchive: false,
            ignored: Vec::new(),
            ended: None,
        }
    }
}

impl CrawlPolicy {
    /// The policy of the archive's last crawl; the default one if there was none.
    ///
    /// # Errors
    /// When it was kept in a form that cannot be read.
    pub fn of_last_crawl(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(POLICY_SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(POLICY_SETTING))
    }

    /// Keeps it for the next checkpoint to save.
    pub(crate) fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(POLICY_SETTING))?;
        Ok(state.set_setting(POLICY_SETTING, Some(&bytes))?)
    }
}

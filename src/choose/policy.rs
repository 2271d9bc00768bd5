//! The policy of a crawl: what it fetches and what it leaves out. It is kept in the archive so that `archive why` can
//! report it.

use archive_base::program;
use archive_books::ledger::{CreditError, POLICY_SETTING};
use archive_math::focus::Recall;
use archive_storage::State;
use serde::{Deserialize, Serialize};

use super::budget::Budgets;
use super::focus::FocusPolicy;
use super::order::CrawlOrder;

/// What a crawl fetches and leaves out; each run may differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlPolicy {
    /// Product name of the crawler in robots.txt.
    pub robots_name: String,
    /// Order in which pages are fetched.
    #[serde(with = "archive_base::as_text")]
    pub order: CrawlOrder,
    /// The topic of a focused crawl; its order is then [`CrawlOrder::Cash`].
    pub focus: Option<FocusPolicy>,
    /// Page limits of hosts and sites.
    pub budgets: Budgets,
    /// Maximum number of variations of a page by a query of three parameters or more; 0 for no limit.
    pub query_variations: u32,
    /// Maximum number of pages of a host with nearly the same content; links of further ones are not followed. 0 for no
    /// limit.
    pub same_content: u32,
    /// Whether to ignore links that ask not to be followed (`rel=nofollow`, `meta name=robots`, `X-Robots-Tag`).
    pub obey_nofollow: bool,
    /// Whether to leave out pages that ask not to be archived (`meta name=robots`, `X-Robots-Tag`).
    pub obey_noarchive: bool,
    /// Names of parameters that are left out of links; `utm_*` means all that begin like it.
    pub dropped_parameters: Vec<String>,
    /// Whether the scope of a seed does not follow it when it redirects to another site.
    pub leave_moved_seeds: bool,
    /// URL patterns that the settings file excludes.
    pub ignored: Vec<String>,
    /// How the crawl ended; `None` while it runs and after a crash.
    pub ended: Option<CrawlEnd>,
}

/// How a crawl ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlEnd {
    /// What ended the crawl, in one word.
    pub reason: String,
    /// The findings of a focused crawl.
    pub topic: Option<TopicStatus>,
}

/// Findings of a focused crawl.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicStatus {
    /// The topic.
    pub name: String,
    /// Pages looked at in this run.
    pub looked_at: u64,
    /// Number of these pages that are of the topic.
    pub found: u64,
    /// Share of pages of the topic among the last hundred.
    pub harvest: f64,
    /// Estimated recall, including pages found by earlier runs; `None` while too little is known.
    pub recall: Option<Recall>,
}

impl Default for CrawlPolicy {
    fn default() -> Self {
        Self {
            robots_name: program::NAME.to_owned(),
            order: CrawlOrder::default(),
            focus: None,
            budgets: Budgets::default(),
            query_variations: 1000,
            same_content: 250,
            obey_nofollow: false,
            obey_noarchive: false,
            dropped_parameters: Vec::new(),
            leave_moved_seeds: false,
            ignored: Vec::new(),
            ended: None,
        }
    }
}

impl CrawlPolicy {
    /// Returns the policy of the last crawl of the archive; the default if there was none.
    ///
    /// # Errors
    /// If the stored policy cannot be read.
    pub fn of_last_crawl(state: &State) -> Result<Self, CreditError> {
        let Some(bytes) = state.setting(POLICY_SETTING) else { return Ok(Self::default()) };
        serde_json::from_slice(bytes).map_err(|_| CreditError::Setting(POLICY_SETTING))
    }

    /// Stores the policy in the state, for the next checkpoint.
    pub fn keep(&self, state: &mut State) -> Result<(), CreditError> {
        let bytes = serde_json::to_vec(self).map_err(|_| CreditError::Setting(POLICY_SETTING))?;
        Ok(state.set_setting(POLICY_SETTING, Some(&bytes))?)
    }
}

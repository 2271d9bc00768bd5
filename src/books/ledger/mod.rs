//! The books of an archive: what a capture changes in pages, sites, cash and links, whether live or replayed after a
//! crash.

mod account;
mod aliases;
mod announce;
mod announcements;
mod authority;
mod balance;
pub mod capture_flags;
mod credit;
mod document;
mod error;
mod facts;
mod languages;
mod late;
mod level;
mod link_code;
mod link_texts;
mod links;
mod missing;
mod moves;
mod near_duplicates;
mod outcome;
mod owners;
pub mod page_flags;
mod parameters;
mod pay;
mod put_off;
mod record;
mod refusal;
mod robots_txt;
mod rules;
mod scope;
mod settings;
mod settle;
mod sites;
mod transfers;
mod waiting_list;

pub(crate) use aliases::ALIASES_MAX;
pub use aliases::{AliasImportance, account_of, aliases, ends, leads_to, part_of, shown, tells};
pub use announce::announcement_trust;
pub use announcements::{CLUSTER_PAGES_MAX, CLUSTERS_MAX, Clusters, PUBLISHED_MAX, Published};
pub use authority::{authority, host_name, names_this_machine};
pub use credit::{Credits, REDIRECTS_MAX};
pub use error::{CreditError, PartitionError};
pub use facts::FIELD_FETCH_MS;
pub use facts::{CrawlerFacts, ErasureRecord, Session};
pub(crate) use facts::{FIELD_ERASED, FIELD_ERROR, FIELD_HOPS};
pub(crate) use languages::language_number;
pub use languages::{forget_languages, language};
pub(crate) use late::visit_without;
pub use late::{is_answer, is_content};
pub use level::{
    LEVEL_FIRST, LEVEL_PAGE_MAX, LEVEL_REQUISITE, LEVEL_SEED, LEVEL_SEED_CASH, level_of, units_of,
};
pub use link_code::LinkCode;
pub use link_texts::FavouredTexts;
pub use links::REQUISITE_DEPTH_MAX;
pub use missing::Vanished;
pub use near_duplicates::NearDuplicates;
pub use outcome::DOCUMENT_STATUS;
pub use outcome::{FetchOutcome, canonical_of};
pub(crate) use owners::answering_of;
pub use owners::{AnsweringError, ResponsibleArchives, answering, captured_sites, known_sites};
pub use parameters::Tested;
pub use put_off::{PutOff, says_later};
pub use refusal::Refusal;
pub use robots_txt::{fetched_url, is_own_robots_txt, name_as_robots_txt};
pub use rules::{CashRules, CreditWindow, Favour, SiteRule, UrlTopic};
pub use scope::{CrawlScope, ScopeKind, ScopeRule, ScopeVerdict};
pub use settings::{DECISIONS, MANNERS_SETTING, POLICY_SETTING, REFRESH_SETTING};
pub use transfers::CLUSTER_SETTINGS;
pub use waiting_list::{Candidate, remarks_of};

#[cfg(test)]
mod tests;

//! The books of an archive: what a capture changes in pages, sites, cash and links, whether live or replayed after a
//! crash.

mod aliases;
mod announce;
mod answering;
mod authority;
pub mod capture_flags;
mod credit;
mod facts;
mod languages;
mod late;
mod level;
mod link_code;
mod links;
mod moved;
mod near_duplicates;
mod outcome;
pub mod page_flags;
mod parameters;
mod parsed;
mod pay;
mod published;
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
mod vanished;
mod waiting;

pub use aliases::{ALIASES_MAX, AliasImportance, account_of, aliases, ends, leads_to, part_of, shown, tells};
pub use announce::announcement_trust;
pub use answering::{
    AnsweringError, ResponsibleArchives, answering, answering_of, captured_sites, known_sites,
};
pub use authority::{authority, host_name, names_this_machine};
pub use credit::{CreditError, Credits};
pub use facts::{CrawlerFacts, ErasureRecord};
pub use facts::{FIELD_ERASED, FIELD_ERROR, FIELD_FETCH_MS, FIELD_HOPS};
pub use languages::{forget_languages, language, language_number};
pub use late::{is_answer, is_content, visit_without};
pub use level::{LEVEL_PAGE_MAX, LEVEL_REQUISITE, LEVEL_SEED, units_of};
pub use link_code::LinkCode;
pub use links::REQUISITE_DEPTH_MAX;
pub use near_duplicates::NearDuplicates;
pub use outcome::DOCUMENT_STATUS;
pub use outcome::{FetchOutcome, canonical_of};
pub use parameters::Tested;
pub use published::{CLUSTER_PAGES_MAX, CLUSTERS_MAX, Clusters, PUBLISHED_MAX, Published};
pub use put_off::{PutOff, says_later};
pub use refusal::Refusal;
pub use robots_txt::{fetched_url, is_own_robots_txt, name_as_robots_txt};
pub use rules::{CashRules, Favour, SiteRule, UrlTopic};
pub use scope::{CrawlScope, ScopeKind, ScopeRule, ScopeVerdict};
pub use settings::{DECISIONS, MANNERS_SETTING, POLICY_SETTING, REFRESH_SETTING};
pub use transfers::{CLUSTER_SETTINGS, PartitionError};
pub use vanished::Vanished;
pub use waiting::{Candidate, remarks_of};

#[cfg(test)]
mod tests;

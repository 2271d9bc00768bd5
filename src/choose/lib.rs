//! What to fetch next and why: the agenda of a refresh, and how fresh the copies are.
//!
//! Everything is computed from the state and from people's decisions: which pages are due ([`most_obsolete`],
//! [`agenda`]), by which rules ([`RefreshRules`]), when a page is due ([`why()`]), how fresh copies are ([`freshness`])
//! and what a budget achieves ([`plan`]). A crawl takes its ordering, budgets and exclusions from here
//! ([`CrawlPolicy`]). The state of a running crawl is not kept here.
//!
//! # Invariants
//! * The same state at the same time has the same agenda.
//! * A page that a rule or a person excludes is in no agenda, however important it is.
//!
//! ```
//! use archive_choose::CrawlOrder;
//!
//! let order: CrawlOrder = "endowed@2".parse()?;
//! assert_eq!(order.to_string(), "endowed@2");
//! assert!("best".parse::<CrawlOrder>().is_err());
//! # Ok::<(), archive_choose::UnknownOrder>(())
//! ```

mod agenda;
mod budget;
mod due;
mod focus;
pub mod freshness;
mod order;
pub mod plan;
mod policy;
mod requisites;
pub mod stored_robots;
mod visits;
mod why;

pub use agenda::agenda;
pub use budget::BudgetUnderWay;
pub use budget::Budgets;
pub use due::{
    Discovery, DueArchive, DueTimes, FOLDERS_FROM, NextVisit, NothingDue, PartVisit, RefreshChoice,
    RefreshRules, Timetable, Weighing, WeightError, Weights, most_obsolete,
};
pub use focus::FocusPolicy;
pub use focus::{Focused, is_redirect};
pub use order::Ordering;
pub use order::{CrawlOrder, UnknownOrder};
pub use policy::{CrawlEnd, CrawlPolicy, TopicStatus};
pub use requisites::PARTS_PER_PAGE_MAX;
pub use requisites::{PartTurn, Requisite, parts_of};
pub use visits::utc;
pub use visits::{RobotsAnswer, StoredVisit, robots_of, visits_of};
pub use why::{FirstSighting, FocusReport, LastFetch, Spent, UrlStory, why};

//! What to fetch next and why: the agenda of a refresh, and how fresh it keeps the copies.
//!
//! Everything is read from the state and from what was decided: which pages are due ([`most_obsolete`], [`agenda`]), by which
//! rules ([`RefreshRules`]), when the turn of one page comes ([`why()`]), how fresh copies are ([`freshness`]) and what a
//! budget will do for it ([`plan`]). A crawl takes its order, its budgets and what it leaves from here ([`CrawlPolicy`]); what it
//! is doing at the moment is its own business.

mod agenda;
mod budget;
mod due;
mod focus;
pub mod freshness;
mod order;
pub mod plan;
mod policy;
pub(crate) mod stored_robots;
mod visits;
mod why;

pub use agenda::agenda;
pub use budget::Budgets;
pub(crate) use budget::UnderWay;
pub use due::{
    Choice, Discovery, FOLDERS_FROM, Idle, RefreshRules, Source, Timetable, TimetableError, Turns, Weighing,
    WeightError, Weights, most_obsolete,
};
pub use focus::{FocusMode, FocusPolicy, UnknownMode};
pub(crate) use focus::{Focused, is_redirect};
pub(crate) use order::Ordering;
pub use order::{CrawlOrder, UnknownOrder};
pub use policy::{CrawlPolicy, Ended, TopicStatus};
pub(crate) use visits::utc;
pub use visits::{RobotsAnswer, StoredVisit, visits_of};
pub use why::{FocusReport, Found, LastFetch, NextVisit, Spent, Why, why};

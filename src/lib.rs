//! A web archiving crawler that ranks, keeps and refreshes what it finds.
//!
//! Arrows between modules point down only: the command line uses `crawl`, `query`, `review`, `lab` and `testweb`;
//! these use `ledger`; it uses `importance`, `refresh`, `search`, `parse` and `fetch`; all of them stand on the crate
//! [`archive_storage`].

pub mod change;
pub mod columns;
pub mod crawl;
pub mod fetch;
pub mod importance;
pub mod lab;
pub mod ledger;
pub mod parse;
pub mod publish;
pub mod query;
pub mod refresh;
pub mod review;
pub mod search;
pub mod testweb;

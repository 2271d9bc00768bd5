//! A web archiving crawler that ranks, keeps and refreshes what it finds.
//!
//! Arrows between modules point down only: the command line uses `exchange`, `watch`, `publish`, `currency`, `crawl`, `query`,
//! `review` and `lab`; these use `recorder`, `change` and `ledger`; the ledger uses `importance`, `refresh`,
//! `search`, `reading`, `parse` and `fetch`; all of them stand on [`files`] and on the crate
//! [`archive_storage`].

pub mod change;
pub mod columns;
pub mod crawl;
pub mod currency;
pub mod exchange;
pub mod fetch;
pub mod files;
pub mod importance;
pub mod lab;
pub mod ledger;
mod originals;
pub mod parse;
pub mod publish;
pub mod query;
mod reading;
pub mod recorder;
pub mod refresh;
pub mod review;
pub mod search;
pub mod watch;

//! A web archiving crawler that ranks what it finds, keeps every version, and refreshes it.
//!
//! Dependencies between modules point down only: the command line uses `serve` (on `replay`, [`nodes`], [`export`] and
//! `find`), `share` (on `exchange` and `watch`), `exchange`, `watch`, `publish`, `crawl`, `query` and `review`; these use
//! `selection`, `recorder`, `stored_graph`, `change`, `veil` and `ledger`; the ledger uses [`cluster`], `importance`, `refresh`,
//! `search`, `reading`, `parse` and `fetch`; [`topic`] uses `importance` and [`learn`]; all of them build on
//! [`access`], [`accounts`], [`decisions`], [`erased`], [`runs`], [`texts`], [`remote`], [`files`] and the crate
//! [`archive_storage`].

pub mod access;
pub mod accounts;
mod as_text;
mod beside;
pub mod change;
pub mod cluster;
pub mod columns;
pub mod control;
pub mod crawl;
pub mod decisions;
pub mod duration;
pub mod erased;
pub mod exchange;
pub mod export;
pub mod fetch;
pub mod files;
pub mod find;
pub mod graphs;
pub mod importance;
mod instant;
pub mod learn;
pub mod ledger;
pub mod memory;
pub mod nodes;
mod originals;
pub mod parse;
pub mod prepared;
pub mod program;
pub mod publish;
pub mod query;
mod reading;
pub mod recorder;
pub mod refresh;
pub mod remarks;
pub mod remote;
pub mod replay;
pub mod review;
pub mod runs;
pub mod search;
pub mod selection;
pub mod serve;
pub mod share;
pub mod spare;
pub mod stored_graph;
pub mod texts;
pub mod topic;
pub mod topics;
pub mod veil;
pub mod watch;

//! The one integration test binary; each topic is a module.
#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod bad_input;
mod change;
mod choice;
mod commands;
mod conformance;
mod crawl;
mod cron;
mod currency;
mod exchange;
mod export;
mod hostile;
mod hostile_imports;
mod importance;
mod imports;
mod kill;
mod kill_import;
mod long_bodies;
mod operation;
mod orders;
mod politeness;
mod power;
mod push;
mod readers;
mod realsites;
mod rebuild;
mod repair;
mod secure;
mod soak;
mod support;
mod testweb;
mod why;

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
mod importance;
mod kill;
mod long_bodies;
mod operation;
mod orders;
mod outputs;
mod politeness;
mod power;
mod push;
mod readers;
mod realsites;
mod rebuild;
mod repair;
mod secure;
mod seeds;
mod signals;
mod soak;
mod strangers;
mod support;
mod terminal;
mod testweb;
mod why;

//! The one integration test binary; each topic is a module.
#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod bad_input;
mod change;
mod commands;
mod conformance;
mod crawl;
mod hostile;
mod importance;
mod kill;
mod politeness;
mod power;
mod readers;
mod realsites;
mod rebuild;
mod support;
mod testweb;
mod why;

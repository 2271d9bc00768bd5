//! The one integration test binary; each topic is a module.
#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod conformance;
mod crawl;
mod importance;
mod kill;
mod readers;
mod support;
mod testweb;

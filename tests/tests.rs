//! The one integration test binary; each topic is a module.

mod crawl;
mod kill;
mod support;
mod testweb;

//! A synthetic web for tests: deterministic, with many hosts, served on loopback, and with known ground truth.
//!
//! Everything about a page (its address, links, text, changes) is a pure function of the seed, the page and the time,
//! and is generated on request. So a [`Web`] of 10^6 hosts and 10^8 pages takes no more memory than one of ten pages,
//! and a test can compare what a crawler found with the truth: [`Web::links`], [`Web::changes`], [`truth`].
//!
//! ```
//! use archive_testweb::{Config, PageIndex, Server, Web};
//! use std::sync::Arc;
//!
//! let web = Arc::new(Web::new(Config::sized(1, 100, 10_000))?);
//! let server = Server::start(Arc::clone(&web), "127.0.0.1:0".parse()?)?;
//! println!("{} is served at {}", web.url(PageIndex(0)), server.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pages live on hosts such as `h3.s17.test`, which no resolver knows. Clients reach all of them at the server's single
//! address. The server goes by the `Host` header and also acts as an HTTP proxy (absolute-form requests).
//!
//! Further hosts show the unpleasant sides of the web: [`faults`] violates the protocol in a different way at each
//! path, [`traps`] never ends, and [`attacks`] makes its answers disproportionately expensive to read.

mod answer;
mod changes;
mod clock;
mod config;
mod dates;
mod feeds;
mod html;
mod layout;
mod links;
mod media;
mod pages;
mod random;
mod script;
mod server;
mod text;
mod town;
mod web;
mod words;
mod xml;

pub mod attacks;
pub mod faults;
pub mod proxy;
pub mod tls;
pub mod traps;
pub mod truth;

pub use answer::Reader;
pub use clock::Clock;
pub use config::{ChangeRates, Config, ConfigError, HOSTS_MAX, LINKS_PER_PAGE_MAX, PAGES_MAX, SiteEdits};
pub use layout::{Form, HostIndex, PageIndex, SiteIndex};
pub use links::Link;
pub use server::{Arrival, Server};
pub use town::{Says, Town, TownError};
pub use web::Web;

#[cfg(test)]
mod tests;

//! A web of our own: deterministic, many hosts, served on loopback, and it knows the truth.
//!
//! Everything about a page (its address, links, text, changes) is a pure function of the seed, the page and the
//! time, made when asked for. So a [`Web`] of 10^6 hosts and 10^8 pages takes no more memory than one of ten pages,
//! and a test can compare what a crawler found with what is true: [`Web::links`], [`Web::changes`], [`truth`].
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
//! Pages live on hosts such as `h3.s17.test`, which no resolver knows: a client reaches all of them at the server's
//! one address, which goes by the `Host` header and is also an HTTP proxy (absolute-form requests).
//!
//! Beside the pages there are hosts for the unpleasant sides of the web: [`faults`] breaks the protocol in one way
//! at each path, [`traps`] has no end, [`attacks`] costs its reader more than it should.

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
mod web;
mod words;
mod xml;

pub mod attacks;
pub mod faults;
pub mod tls;
pub mod traps;
pub mod truth;

pub use answer::Reader;
pub use clock::Clock;
pub use config::{ChangeRates, Config, ConfigError, HOSTS_MAX, LINKS_PER_PAGE_MAX, PAGES_MAX, SiteEdits};
pub use layout::{Form, HostIndex, PageIndex, SiteIndex};
pub use links::Link;
pub use server::{Arrival, Server};
pub use web::Web;

#[cfg(test)]
mod tests;

//! What a capture changes: pages, sites, cash, links, and what becomes worth fetching.
//!
//! [`Credits::credit`] is the only place where a capture changes state, whether it was just fetched or is replayed from
//! its records after a crash. Total cash stays what it was, exactly.

use archive_storage::{Capture, CaptureId, HostId, Location, Page, SiteId, State, StateError, UrlId, Visit};
use archive_storage::address::site_of;

use super::outcome::{Kind, OutLink, Outcome};
use super::page_flags as flags;
use super::scope::Scope;
use super::seeds::Seed;
use crate::importance::{Account, Base, Credit, Ledger, LinkTraits, LinkWeights, Numbers, Policy, SiteAccount};
use crate::refresh::rate::{ChangeObservations, Observation};

/// Setting under which the page ledger's numbers are kept.
const PAGE_LEDGER: &str = "ledger.pages";
/// Setting under which the site ledger's numbers are kept.
const SITE_LEDGER: &str = "ledger.sites";

/// Requisites of requisites (a style sheet's pictures) are followed this far.
const REQUISITE_DEPTH_MAX: u8 = 3;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Something that became worth fetching, or more worth than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The URL.
    pub url: UrlId,
    /// Its host.
    pub host: HostId,
    /// The level under which to queue it.
    pub level: u8,
}

/// The books: both ledgers and the rules by which links are weighed and followed.
#[derive(Debug)]
pub struct Credits {
    pages: Ledger,
    sites: Ledger,
    weights: LinkWeights,
    scope: Scope,
}

//! Announcements by site owners: pages to be fetched before others, and clusters of pages that belong together.
//!
//! Both are settings of the archive. A page stays in the queue until its next answer; a flag of the page marks it as
//! queued, so that nothing is queued twice. Limits keep the settings small.

use std::collections::BTreeMap;

use archive_base::remarks::{self, Remark};
use archive_storage::address::url_hash;
use archive_storage::{State, StateError, UrlId};
use chrono::{DateTime, Utc};

use super::authority;
use super::credit::Credits;
use super::error::CreditError;
use super::page_flags as flags;
use super::settings::{CLUSTERS, PUBLISHED, read_setting, write_setting};

/// Maximum number of queued pages.
pub const PUBLISHED_MAX: usize = 100_000;

/// Maximum number of pages in a cluster.
pub const CLUSTER_PAGES_MAX: usize = 1_000;

/// Maximum number of clusters.
pub const CLUSTERS_MAX: usize = 1_000;

/// The outcome of an announced URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It was queued for fetching.
    Queued(UrlId),
    /// It was queued already.
    Waiting(UrlId),
    /// It was fetched after the announced change.
    Known(UrlId),
    /// It is unknown and out of scope.
    OutOfScope,
    /// The queue has [`PUBLISHED_MAX`] pages.
    Full,
}

/// Clusters by name: the canonical URLs of pages that are fetched together.
pub type Clusters = BTreeMap<String, Vec<String>>;

impl Credits {
    /// Handles the announcement that the page at `url` (canonical) is new or changed at `modified`, in seconds since
    /// 1970. Appends it to `queue`, which [`Credits::set_published`] saves.
    ///
    /// # Errors
    /// When the store fails.
    pub fn publish(
        &mut self,
        state: &mut State,
        queue: &mut Vec<UrlId>,
        url: &str,
        modified: i64,
        now: DateTime<Utc>,
    ) -> Result<Published, CreditError> {
        let known = match state.find(url)? {
            Some(id) => Some((id, state.page(id)?)),
            None => None,
        };
        if let Some((id, page)) = &known
            && page.flags.has_any(flags::PUBLISHED)
        {
            return Ok(Published::Waiting(*id));
        }
        if queue.len() >= PUBLISHED_MAX {
            return Ok(Published::Full);
        }
        let id = match known {
            Some((id, page)) if page.flags.has_any(flags::FETCHED) => {
                if !self.announce(state, id, modified, now)? {
                    return Ok(Published::Known(id));
                }
                id
            }
            _ => match self.invite(state, url)? {
                Some(id) => id,
                None => return Ok(Published::OutOfScope),
            },
        };
        set_announced(state, id, queue)?;
        self.remark(state, id, remarks::ANNOUNCED);
        Ok(Published::Queued(id))
    }

    /// Queues the pages of announcements to an earlier state, once all captures are credited, unless a later capture has
    /// answered them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn recall_announced(&mut self, state: &mut State, announced: &[Remark]) -> Result<(), CreditError> {
        let mut queue = Vec::new();
        for remark in announced {
            let known = match state.find(&remark.url)? {
                Some(id) => state.visit(id)?.map(|visit| (id, visit)),
                None => None,
            };
            let id = match known {
                Some((_, visit)) if remark.is_overruled_by(visit.last_capture) => None,
                Some((id, _)) => Some(id),
                None => self.invite(state, &remark.url)?,
            };
            if let Some(id) = id.filter(|_| queue.len() < PUBLISHED_MAX)
                && !state.page(id)?.flags.has_any(flags::PUBLISHED)
            {
                set_announced(state, id, &mut queue)?;
            }
        }
        self.set_published(state, &queue)
    }

    /// Whether strangers may announce changes of the page at `url` (canonical): its host has given captures, and it is
    /// in scope.
    ///
    /// # Errors
    /// When the store fails.
    pub fn hears_of(&self, state: &State, url: &str) -> Result<bool, CreditError> {
        let Some(host) = state.find_host(authority(url))? else { return Ok(false) };
        let host = state.host(host)?;
        Ok(host.captures > host.failures && self.would_contain(url))
    }

    /// Adds a page that was never fetched, if it is in scope, as if a sitemap had named it.
    fn invite(&mut self, state: &mut State, url: &str) -> Result<Option<UrlId>, CreditError> {
        if let Some(id) = state.find(url)?
            && state.page(id)?.flags.has_any(flags::IN_SCOPE)
        {
            return Ok(Some(id));
        }
        if !self.would_contain(url) {
            return Ok(None);
        }
        let id = self.intern(state, url, url_hash(url))?;
        let mut page = state.page(id)?;
        if page.flags.has_any(flags::ROBOTS) {
            return Ok(None);
        }
        if self.open_account(&mut page) {
            (page.depth, page.hop) = (1, b'M');
        }
        page.flags.set(flags::IN_SCOPE, true);
        state.set_page(id, &page)?;
        Ok(Some(id))
    }

    /// Returns the announced pages that were not fetched since, in the order of their announcements.
    ///
    /// # Errors
    /// When the store fails.
    pub fn published(&self, state: &State) -> Result<Vec<UrlId>, CreditError> {
        let mut queue = Vec::new();
        for number in read_setting::<Vec<u32>>(state, PUBLISHED)?.unwrap_or_default() {
            let id = UrlId(number);
            // After a rebuild, ids may belong to other pages; these lack the flag.
            if number < state.url_count() && state.page(id)?.flags.has_any(flags::PUBLISHED) {
                queue.push(id);
            }
        }
        Ok(queue)
    }

    /// Saves the queue of announced pages.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_published(&self, state: &mut State, queue: &[UrlId]) -> Result<(), CreditError> {
        write_setting(state, PUBLISHED, &queue.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// Returns the clusters by name.
    ///
    /// # Errors
    /// When the store fails.
    pub fn clusters(&self, state: &State) -> Result<Clusters, CreditError> {
        Ok(read_setting(state, CLUSTERS)?.unwrap_or_default())
    }

    /// Saves the clusters.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_clusters(&self, state: &mut State, clusters: &Clusters) -> Result<(), CreditError> {
        write_setting(state, CLUSTERS, clusters)
    }
}

fn set_announced(state: &mut State, id: UrlId, queue: &mut Vec<UrlId>) -> Result<(), StateError> {
    let mut page = state.page(id)?;
    page.flags.set(flags::PUBLISHED, true);
    queue.push(id);
    state.set_page(id, &page)
}

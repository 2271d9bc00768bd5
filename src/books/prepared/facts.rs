//! The facts of a page, from the tables of the state or from its row in the prepared columns.

use std::sync::{Mutex, OnceLock, PoisonError};

use archive_storage::{HostId, Page, SiteId, State, StateError, UrlId, Visit};

use super::{COLUMNS, Column, FACTS, KINDS, NO_CAPTURE, NO_PAGE, SiteSums};
use crate::ledger::{AliasImportance, CreditError, Credits, Refusal, SiteRule, page_flags as flags};

/// The facts of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Its host.
    pub host: HostId,
    /// Site of its host.
    pub site: SiteId,
    /// Code of its kind of document; `None` before the first content, or after it was erased.
    pub kind: Option<u8>,
    /// HTTP status of its newest answer; 0 for none.
    pub status: u16,
    /// HTTP status of its newest content; 0 for none.
    pub content_status: u16,
    /// Importance; the mean over all known pages is 1.
    pub importance: f64,
    /// Number of captures with content.
    pub captures: u32,
    /// Number of attempts.
    pub attempts: u32,
    /// Number of captures that differ from the one before.
    pub versions: u32,
    /// Time of its first capture with content, seconds since 1970; 0 for none. The next ones are times of the same form.
    pub first_seen: u32,
    /// Time of its newest capture with content.
    pub last_seen: u32,
    /// Time of the newest answer.
    pub last_answer: u32,
    /// Time of the newest attempt.
    pub last_attempt: u32,
    /// Time of the first attempt since the newest content.
    pub failing_since: u32,
    /// Time of the first capture of its newest version.
    pub changed: u32,
    /// Number of links from the nearest seed.
    pub depth: u8,
    /// Number of the language of its newest version; 0 for none.
    pub language: u8,
}

/// Looks up the facts of pages.
#[derive(Debug)]
pub struct Pages<'a> {
    state: &'a State,
    credits: Credits,
    aliases: AliasImportance,
    /// Site of every host, once [`Pages::expect_all`] was called.
    sites: OnceLock<Vec<SiteId>>,
    /// The host looked up last, and its site: neighbouring pages are mostly of the same host.
    last: Mutex<Option<(HostId, SiteId)>>,
}

impl<'a> Pages<'a> {
    /// Opens the pages of a state as of its last checkpoint.
    ///
    /// # Errors
    /// When the state or the books cannot be read.
    pub fn open(state: &'a State) -> Result<Self, CreditError> {
        let (credits, aliases) = (Credits::open(state)?, AliasImportance::default());
        Ok(Self { state, credits, aliases, sites: OnceLock::new(), last: Mutex::default() })
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> &'a State {
        self.state
    }

    /// Returns the books.
    #[must_use]
    pub fn credits(&self) -> &Credits {
        &self.credits
    }

    /// Prepares for lookups of all pages.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn expect_all(&self) -> Result<(), StateError> {
        self.aliases.read_all(self.state, &self.credits)?;
        if self.sites.get().is_none() {
            let sites = self.state.sites_of_hosts()?;
            self.sites.get_or_init(|| sites);
        }
        Ok(())
    }

    /// Returns the site of a page.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn site_of(&self, id: UrlId, page: &Page) -> Result<SiteId, StateError> {
        let site = match self.credits.rules().sites {
            SiteRule::Path(_) => self.credits.site(self.state, id)?,
            SiteRule::Domain | SiteRule::Host => match self.sites.get() {
                Some(sites) => sites.get(page.host.index()).copied(),
                None if page.host.0 < self.state.host_count() => Some(self.site_of_host(page.host)?),
                None => None,
            },
        };
        Ok(site.unwrap_or(SiteId(u32::MAX)))
    }

    fn site_of_host(&self, host: HostId) -> Result<SiteId, StateError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, site)) = last.filter(|(known, _)| *known == host) {
            return Ok(site);
        }
        let site = self.state.host(host)?.site;
        *last = Some((host, site));
        Ok(site)
    }

    /// Sets each site's importance from links between sites.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn weigh(&self, sites: &mut [SiteSums]) -> Result<(), StateError> {
        for (sums, site) in sites.iter_mut().zip(self.state.site_records()) {
            sums.by_links = self.credits.site_importance(&site?);
        }
        Ok(())
    }

    /// Returns the importance of the page that an alias stands for.
    pub(super) fn importance_of_alias(&self, id: UrlId) -> Result<Option<f64>, StateError> {
        self.aliases.of(self.state, &self.credits, id)
    }

    /// Returns the facts of a URL; `None` if it is not a page but a robots.txt file.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn facts(&self, id: UrlId, page: &Page, visit: Option<&Visit>) -> Result<Option<Facts>, StateError> {
        let Some(facts) = self.facts_unweighed(id, page, visit)? else { return Ok(None) };
        let importance = self.aliases.of_page(self.state, &self.credits, (id, page), visit)?;
        Ok(Some(Facts { importance: importance.unwrap_or(0.0), ..facts }))
    }

    /// Like [`Pages::facts`], but with an importance of 0: the importance costs most to look up.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn facts_unweighed(
        &self,
        id: UrlId,
        page: &Page,
        visit: Option<&Visit>,
    ) -> Result<Option<Facts>, StateError> {
        if page.flags.has_any(flags::ROBOTS) {
            return Ok(None);
        }
        let seen = seen(page, visit);
        let shown = seen.filter(|visit| visit.contents > 0);
        Ok(Some(Facts {
            host: page.host,
            site: self.site_of(id, page)?,
            kind: shown.map(|visit| visit.kind),
            status: seen.map_or(0, |visit| visit.status),
            content_status: shown.map_or(0, |visit| visit.content_status),
            importance: 0.0,
            captures: seen.map_or(0, |visit| visit.contents),
            attempts: seen.map_or(0, |visit| visit.captures),
            versions: seen.map_or(0, |visit| visit.versions),
            first_seen: shown.map_or(0, |visit| visit.first_seen),
            last_seen: shown.map_or(0, |visit| visit.last_seen),
            last_answer: seen.map_or(0, |visit| visit.last_answer),
            last_attempt: seen.map_or(0, |visit| visit.last_attempt),
            failing_since: seen.map_or(0, |visit| visit.failing_since),
            changed: seen.map_or(0, |visit| visit.last_changed),
            depth: page.depth,
            language: shown.map_or(0, |visit| visit.language),
        }))
    }
}

/// Returns the visit of a page that was asked for; `None` for what is not a page or was erased.
#[must_use]
pub fn seen<'a>(page: &Page, visit: Option<&'a Visit>) -> Option<&'a Visit> {
    let is_left_out =
        page.flags.has_any(flags::ROBOTS) || flags::refusal_code(page.flags) == Refusal::Erased.code();
    visit.filter(|visit| visit.captures > 0 && !is_left_out)
}

impl Facts {
    /// Returns its values in the columns; 0 in columns that are not facts.
    pub(super) fn values(&self) -> [u64; COLUMNS] {
        let mut values = [0; COLUMNS];
        let mut set = |column: Column, value: u64| values[column as usize] = value;
        set(Column::Kind, self.kind.map_or(NO_CAPTURE, |kind| KINDS + u64::from(kind)));
        set(Column::Host, self.host.0.into());
        set(Column::Site, self.site.0.into());
        set(Column::Status, self.status.into());
        set(Column::ContentStatus, self.content_status.into());
        set(Column::Importance, self.importance.to_bits());
        set(Column::Captures, self.captures.into());
        set(Column::Attempts, self.attempts.into());
        set(Column::Versions, self.versions.into());
        set(Column::FirstSeen, self.first_seen.into());
        set(Column::LastSeen, self.last_seen.into());
        set(Column::LastAnswer, self.last_answer.into());
        set(Column::LastAttempt, self.last_attempt.into());
        set(Column::FailingSince, self.failing_since.into());
        set(Column::Changed, self.changed.into());
        set(Column::Depth, self.depth.into());
        set(Column::Language, self.language.into());
        values
    }

    /// Builds the facts from the values of some columns; the others have defaults.
    #[must_use]
    pub fn of_some(columns: &[Column], values: &[u64]) -> Self {
        let mut all = [0; FACTS];
        all[Column::Kind as usize] = NO_CAPTURE;
        for (column, value) in columns.iter().zip(values) {
            all.get_mut(*column as usize).into_iter().for_each(|fact| *fact = *value);
        }
        Self::from_columns(&all)
    }

    /// Builds the facts from these values; `None` if the row is not a page.
    pub(super) fn of_values(values: &[u64; FACTS]) -> Option<Self> {
        is_page(values[Column::Kind as usize]).then(|| Self::from_columns(values))
    }

    fn from_columns(values: &[u64; FACTS]) -> Self {
        let value = |column: Column| values[column as usize];
        let number = |column| value(column) as u32;
        Self {
            host: HostId(number(Column::Host)),
            site: SiteId(number(Column::Site)),
            kind: kind(value(Column::Kind)),
            status: value(Column::Status) as u16,
            content_status: value(Column::ContentStatus) as u16,
            importance: f64::from_bits(value(Column::Importance)),
            captures: number(Column::Captures),
            attempts: number(Column::Attempts),
            versions: number(Column::Versions),
            first_seen: number(Column::FirstSeen),
            last_seen: number(Column::LastSeen),
            last_answer: number(Column::LastAnswer),
            last_attempt: number(Column::LastAttempt),
            failing_since: number(Column::FailingSince),
            changed: number(Column::Changed),
            depth: value(Column::Depth) as u8,
            language: value(Column::Language) as u8,
        }
    }
}

/// Upper bound (exclusive) of the values of [`Column::Kind`].
pub const KINDS_END: u64 = KINDS + u8::MAX as u64 + 1;

/// Whether a value of [`Column::Kind`] stands for a page.
#[must_use]
pub fn is_page(value: u64) -> bool {
    value != NO_PAGE
}

/// Returns the code of the kind of document in a value of [`Column::Kind`].
#[must_use]
pub fn kind(value: u64) -> Option<u8> {
    value.checked_sub(KINDS).and_then(|kind| u8::try_from(kind).ok())
}

//! Which URLs have accounts of their own: redirects, duplicates and vanished pages have none.
//!
//! A URL whose newest capture redirects to another page, or copies it, has no account: its cash goes to that page, and
//! links to it pay that page. When it becomes a page again, it opens an account like a new one. The same holds for a
//! page that its server reports missing (status 404 or 410): its cash returns to the virtual page, and links to it are
//! worth nothing, until it has content again.
//!
//! All this follows from the history alone. A revisit counts as what it refers to (a 304 of a copy is a copy), and a
//! fetch that failed, or met a server error, says nothing about a page that was found before.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive_math::importance::Credit;
use archive_storage::{
    Capture, CaptureId, History, LinkCursor, LinkList, LinkTarget, PAGES_TOGETHER, Page, ROWS_TOGETHER,
    State, StateError, UrlId, Visit,
};
use archive_web::parse::LinkKind;
use rayon::prelude::*;

use super::account::account;
use super::credit::Credits;
use super::error::CreditError;
use super::late::is_page;
use super::link_code::LinkCode;
use super::missing::Vanished;
use super::outcome::FetchOutcome;
use super::page_flags as flags;

/// Maximum length of a chain of aliases: as many as redirects are followed.
pub(crate) const ALIASES_MAX: usize = 20;

/// Returns the page whose account a URL uses: its own, or that of the page it stands for. `None` if a chain of aliases
/// ends without an account.
///
/// # Errors
/// When the store fails.
pub fn account_of(state: &State, url: UrlId) -> Result<Option<UrlId>, StateError> {
    let mut id = url;
    for _ in 0..=ALIASES_MAX {
        let flags = state.page(id)?.flags;
        if flags.has_any(flags::ACCOUNT) {
            return Ok(Some(id));
        }
        if !flags.has_any(flags::ALIAS) {
            return Ok(None);
        }
        match stands_for(state, id)? {
            Some(other) => id = other,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns the URL that the newest capture of an alias leads to.
fn stands_for(state: &State, id: UrlId) -> Result<Option<UrlId>, StateError> {
    match state.visit(id)? {
        Some(visit) => leads_to(state, id, &visit, &mut state.link_cursor()),
        None => Ok(None),
    }
}

/// Like `stands_for`, with a known visit; cheap for many visits in the order of their links.
///
/// # Errors
/// When the store fails.
pub fn leads_to(
    state: &State,
    id: UrlId,
    visit: &Visit,
    links: &mut LinkCursor<'_>,
) -> Result<Option<UrlId>, StateError> {
    let Some(newest) = visit.last_capture else { return Ok(None) };
    Ok(hops(state, &[(id, *visit, newest)], links)?.pop().map(|(_, other)| other))
}

/// Like [`leads_to`], for many URLs, whose captures are read together. URLs that lead nowhere are left out.
fn hops(
    state: &State,
    urls: &[(UrlId, Visit, CaptureId)],
    links: &mut LinkCursor<'_>,
) -> Result<Vec<(UrlId, UrlId)>, StateError> {
    let newest: Vec<CaptureId> = urls.iter().map(|(.., newest)| *newest).collect();
    let mut shown = Vec::new();
    for ((id, visit, newest), capture) in urls.iter().zip(state.captures_of(&newest)?) {
        let capture = match tells(&capture) {
            true => Some(capture),
            false => self::newest(state.history_from(*newest), tells)?.map(|(_, capture)| capture),
        };
        shown.extend(capture.map(|capture| (*id, visit, capture)));
    }
    let originals: Vec<CaptureId> = shown.iter().filter_map(|(.., capture)| capture.original).collect();
    let mut originals = state.captures_of(&originals)?.into_iter();
    let mut found = Vec::new();
    for (id, visit, capture) in &shown {
        let original = capture.original.and_then(|_| originals.next()).map(|original| original.url);
        found.extend(hop(*id, visit, capture, original, links)?.map(|other| (*id, other)));
    }
    Ok(found)
}

/// Returns the target of a URL, given its newest capture that tells what it is, and the URL of that capture's original.
fn hop(
    id: UrlId,
    visit: &Visit,
    capture: &Capture,
    original: Option<UrlId>,
    links: &mut LinkCursor<'_>,
) -> Result<Option<UrlId>, StateError> {
    if !is_redirect(capture.status) {
        return Ok(original.filter(|&other| other != id));
    }
    let Some(position) = visit.links else { return Ok(None) };
    let mut list = LinkList::default();
    links.get(position, &mut list)?;
    let redirect = |link: &&LinkTarget| LinkCode::from_byte(link.kind).kind() == Some(LinkKind::Redirect);
    Ok(list.links.iter().find(redirect).map(|link| link.target).filter(|&other| other != id))
}

/// Returns the newest capture that tells what a URL is: one that found a page, or found it gone. Later failures say
/// nothing.
///
/// # Errors
/// When the store fails.
pub fn shown(state: &State, id: UrlId) -> Result<Option<(CaptureId, Capture)>, StateError> {
    newest(state.history(id)?, tells)
}

/// Returns the newest capture in a history that `is_meant`.
pub(super) fn newest(
    mut history: History<'_>,
    is_meant: fn(&Capture) -> bool,
) -> Result<Option<(CaptureId, Capture)>, StateError> {
    history.find(|found| found.as_ref().map_or(true, |(_, capture)| is_meant(capture))).transpose()
}

/// Whether a capture tells what a URL is: what stood there, or that nothing did. Other errors tell nothing.
#[must_use]
pub fn tells(capture: &Capture) -> bool {
    is_page(capture) || matches!(capture.status, 404 | 410)
}

/// Number of aliases that are looked up singly, at a block of links each, before all are computed together.
const SINGLE_MAX: usize = 1 << 11;

/// Importance of the pages that aliases stand for, as of one checkpoint.
#[derive(Debug, Default)]
pub struct AliasImportance {
    looked_up: AtomicUsize,
    all: OnceLock<HashMap<UrlId, f64>>,
}

impl AliasImportance {
    /// Creates it with known values.
    #[must_use]
    pub fn known(all: HashMap<UrlId, f64>) -> Self {
        Self { all: OnceLock::from(all), ..Self::default() }
    }

    /// Computes the importance of all aliases, when all will be needed.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read_all(&self, state: &State, credits: &Credits) -> Result<&HashMap<UrlId, f64>, StateError> {
        if let Some(all) = self.all.get() {
            return Ok(all);
        }
        let all = Self::all(state, credits)?;
        Ok(self.all.get_or_init(|| all))
    }

    /// Returns the importance of an alias; `None` if it stands for no page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of(&self, state: &State, credits: &Credits, id: UrlId) -> Result<Option<f64>, StateError> {
        if self.all.get().is_none() && self.looked_up.fetch_add(1, Ordering::Relaxed) < SINGLE_MAX {
            return credits.importance_of(state, id);
        }
        Ok(self.read_all(state, credits)?.get(&id).copied())
    }

    /// Returns the importance of a page, or of the page it stands for; `None` for what is no page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn of_page(
        &self,
        state: &State,
        credits: &Credits,
        (id, page): (UrlId, &Page),
        visit: Option<&Visit>,
    ) -> Result<Option<f64>, StateError> {
        if page.flags.has_any(flags::ALIAS) {
            return self.of(state, credits, id);
        }
        Ok(credits.importance(page, visit))
    }

    fn all(state: &State, credits: &Credits) -> Result<HashMap<UrlId, f64>, StateError> {
        let of_some = |pairs: &[(UrlId, UrlId)]| -> Result<Vec<(UrlId, f64)>, StateError> {
            let pages: Vec<UrlId> = pairs.iter().map(|(page, _)| *page).collect();
            let known = state.known_of(&pages)?.into_iter().zip(pairs);
            let importance = known.filter_map(|((_, page, visit), (_, alias))| {
                Some((*alias, credits.importance(&page, visit.as_ref())?))
            });
            Ok(importance.collect())
        };
        let aliases = aliases(state)?;
        let importance = aliases.par_chunks(part_of(aliases.len())).map(of_some);
        let importance = importance.collect::<Result<Vec<_>, _>>()?;
        Ok(importance.into_iter().flatten().collect())
    }
}

/// Returns how many of `pages` lookups one processor should do together.
#[must_use]
pub fn part_of(pages: usize) -> usize {
    pages.div_ceil(rayon::current_num_threads()).clamp(1, PAGES_TOGETHER)
}

/// Returns, for each alias, the URL at the end of its chain and the alias, sorted. A URL without an account is not a
/// page. Passes over all visits, in whose order links and captures are stored.
///
/// # Errors
/// When the store fails.
pub fn aliases(state: &State) -> Result<Vec<(UrlId, UrlId)>, StateError> {
    let hops_of = |first: u32| -> Result<Vec<(UrlId, UrlId)>, StateError> {
        let mut aliases = Vec::new();
        for visit in state.visits_with_pages(first..).take(ROWS_TOGETHER) {
            let (id, page, visit) = visit?;
            if page.flags.has_any(flags::ALIAS) && !page.flags.has_any(flags::ACCOUNT) {
                aliases.extend(visit.last_capture.map(|newest| (id, visit, newest)));
            }
        }
        hops(state, &aliases, &mut state.link_cursor())
    };
    let parts = state.visit_parts().into_par_iter().map(hops_of);
    let hops = parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    Ok(ends(&hops))
}

/// Like [`aliases`], given the URL that each alias leads to.
#[must_use]
pub fn ends(hops: &HashMap<UrlId, UrlId>) -> Vec<(UrlId, UrlId)> {
    let end = |alias: UrlId| {
        let row = || std::iter::successors(Some(alias), |id| hops.get(id).copied());
        if row().nth(ALIASES_MAX + 1).is_some() { None } else { row().last() }
    };
    let mut pairs: Vec<(UrlId, UrlId)> =
        hops.keys().filter_map(|alias| Some((end(*alias)?, *alias))).collect();
    pairs.sort_unstable();
    pairs
}

/// Whether a status redirects to another page.
const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Clears the remains of a closed account.
fn forget(state: &mut State, id: UrlId, page: &mut Page) -> Result<(), StateError> {
    page.cash = 0;
    page.flags.set(flags::ACCOUNT | flags::READ, false);
    if let Some(mut visit) = state.visit(id)? {
        visit.credit = Credit::default().to_bytes();
        state.set_visit(id, &visit)?;
    }
    Ok(())
}

impl Credits {
    /// Opens, closes or merges the account of a page that was just captured, as its answer demands.
    pub(super) fn update_account(
        &mut self,
        state: &mut State,
        id: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<(), CreditError> {
        let mut page = state.page(id)?;
        if outcome.is_gone() {
            if page.flags.has_any(flags::ACCOUNT | flags::ALIAS) {
                self.vanish(state, id)?;
            }
            return Ok(());
        }
        if page.flags.has_any(flags::VANISHED) && (1..400).contains(&outcome.status) {
            page.flags.set(flags::VANISHED, false);
            state.update_visit(id, |visit| visit.credit = Credit::default().to_bytes())?;
            self.open_account(&mut page);
            state.set_page(id, &page)?;
        }
        self.join(state, id, outcome)
    }

    /// Closes the account of a page that does not exist.
    fn vanish(&mut self, state: &mut State, id: UrlId) -> Result<(), CreditError> {
        let mut page = state.page(id)?;
        let importance = self.importance_of(state, id)?.unwrap_or(0.0);
        if page.flags.has_any(flags::ACCOUNT) {
            self.close(state, id, &mut page)?;
        }
        page.flags.set(flags::ALIAS, false);
        page.flags.set(flags::VANISHED, true);
        state.update_visit(id, |visit| Vanished { importance, linked: 0 }.keep(visit))?;
        Ok(state.set_page(id, &page)?)
    }

    /// Closes the account of a page.
    pub(super) fn close(&mut self, state: &mut State, id: UrlId, page: &mut Page) -> Result<(), CreditError> {
        self.pages.close(&account(page, state.visit(id)?.as_ref()));
        Ok(forget(state, id, page)?)
    }

    /// Merges the account of a page into that of the page it stands for.
    pub(super) fn merge_into(
        &mut self,
        state: &mut State,
        id: UrlId,
        page: &mut Page,
        target: UrlId,
    ) -> Result<(), CreditError> {
        let alias = account(page, state.visit(id)?.as_ref());
        let mut into = state.page(target)?;
        let mut own = account(&into, state.visit(target)?.as_ref());
        self.pages.merge(&alias, &mut own);
        into.cash = own.base.to_stored();
        state.set_page(target, &into)?;
        if let Some(transfers) = &mut self.transfers {
            transfers.note(target, &into);
        }
        Ok(forget(state, id, page)?)
    }

    /// Notes whether a page that was just captured stands for another one; if so, merges the two accounts.
    ///
    /// Only a copy on the same site is a duplicate: elsewhere, the same bytes are often a server's default page.
    fn join(&mut self, state: &mut State, id: UrlId, outcome: &FetchOutcome) -> Result<(), CreditError> {
        let mut page = state.page(id)?;
        let was_alias = page.flags.has_any(flags::ALIAS);
        if !page.flags.has_any(flags::ACCOUNT | flags::ALIAS) {
            return Ok(());
        }
        let target = match self.may_stand_for(state, id, outcome)? {
            Some(other) => account_of(state, other)?.filter(|&target| target != id),
            None => None,
        };
        page.flags.set(flags::ALIAS, target.is_some());
        match target {
            Some(target) if page.flags.has_any(flags::ACCOUNT) => {
                self.merge_into(state, id, &mut page, target)?;
            }
            None if was_alias => {
                self.open_account(&mut page);
            }
            _ => {}
        }
        Ok(state.set_page(id, &page)?)
    }

    /// Returns the URL that a capture leads to instead of being a page.
    fn may_stand_for(
        &self,
        state: &State,
        id: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<Option<UrlId>, StateError> {
        if is_redirect(outcome.document_status()) {
            let redirect = self.targets.iter().find(|target| target.code.kind() == Some(LinkKind::Redirect));
            return Ok(redirect.map(|target| target.link));
        }
        let Some((_, original)) = outcome.original else { return Ok(None) };
        let other = original.url;
        if other == id || outcome.document_status() != 200 {
            return Ok(None);
        }
        // The other page may have changed since.
        let is_copy = shown(state, other)?.is_some_and(|(_, newest)| newest.digest == original.digest);
        let site = |id: UrlId| Ok::<_, StateError>(state.host(state.page(id)?.host)?.site);
        Ok(if is_copy && site(other)? == site(id)? { Some(other) } else { None })
    }
}

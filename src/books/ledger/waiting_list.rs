//! Which URLs wait to be fetched, and why others do not.

use archive_base::remarks::{self, Remark, RemarksError};
use archive_storage::address::url_hash;
use archive_storage::{HostId, Page, State, StateError, Store, UrlId};

use super::account::account;
use super::credit::Credits;
use super::error::CreditError;
use super::level::{LEVEL_FIRST, LEVEL_REQUISITE, LEVEL_SEED, level_of};
use super::page_flags as flags;
use super::refusal::Refusal;

/// A URL that became worth fetching, or rose in value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The URL.
    pub url: UrlId,
    /// Its host.
    pub host: HostId,
    /// Level in the queue.
    pub level: u8,
}

impl Credits {
    /// Passes everything that waits to be fetched to `take`, to fill a new frontier.
    ///
    /// # Errors
    /// When the store fails, and any error of `take`.
    pub fn waiting(
        &self,
        state: &State,
        mut take: impl FnMut(Candidate) -> Result<(), CreditError>,
    ) -> Result<(), CreditError> {
        for entry in state.pages(UrlId(0)) {
            let (id, mut page) = entry?;
            // What was refused may be allowed now, unless the reason lies in the links that lead to it.
            let refusal = Refusal::from_code(flags::refusal_code(page.flags));
            let is_forgiven = refusal == Some(Refusal::NoFollow) && !self.obey_nofollow;
            if is_forgiven || !hangs_on_links(&page) {
                refuse_in(&mut page, None);
            }
            if let Some(candidate) = self.candidate(id, &page) {
                take(candidate)?;
            }
        }
        Ok(())
    }

    /// Records that a page may not be fetched: its cash is paid along its known links, if there are any.
    ///
    /// # Errors
    /// When the store fails.
    pub fn refuse(&mut self, state: &mut State, id: UrlId, why: Refusal) -> Result<(), CreditError> {
        let page = self.put_off(state, id, why)?;
        if page.flags.has_any(flags::ACCOUNT) {
            self.resolve_known_links(state, id, &page)?;
            self.pay_pages(state, id)?;
        }
        Ok(())
    }

    /// Records why a page is not fetched now, if page states store the reason. It keeps its cash, because the reason may
    /// pass.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_off(&mut self, state: &mut State, id: UrlId, why: Refusal) -> Result<Page, CreditError> {
        let mut page = state.page(id)?;
        if why.code() > flags::REFUSAL_MAX {
            return Ok(page);
        }
        if flags::refusal_code(page.flags) != why.code() {
            self.remark(state, id, why.name());
        }
        refuse_in(&mut page, Some(why));
        state.set_page(id, &page)?;
        self.parameters.give_up(page.host, id);
        Ok(page)
    }

    /// Notes what no record will tell of a URL.
    pub(super) fn remark(&mut self, state: &State, id: UrlId, what: &'static str) {
        self.remarked.push((id, what, state.totals().captures));
    }

    /// Adds the remarks since the last call to their file. To be called before the state is committed: what is only in the
    /// file is repeated by a rebuild, what is only in the state would be lost.
    ///
    /// # Errors
    /// When the store fails or the file cannot be written.
    pub fn write_remarks<E: From<StateError> + From<RemarksError>>(
        &mut self,
        store: &mut Store,
    ) -> Result<(), E> {
        let state = store.state();
        let remark = |&(id, what, captures): &(UrlId, &str, u64)| {
            Ok(Remark { url: state.url(id)?, what: what.to_owned(), captures })
        };
        let new: Vec<Remark> = self.remarked.iter().map(remark).collect::<Result<_, StateError>>()?;
        if let Some(mark) = remarks::add(store.path(), &new)? {
            mark.keep(store.state_mut())?;
        }
        self.forget_remarks();
        Ok(())
    }

    /// Drops the remarks, which are in their file.
    pub fn forget_remarks(&mut self) {
        self.remarked.clear();
    }

    /// Carries out a remark of an earlier state, once all captures are credited, unless a later capture overrules it.
    /// Seeds come before all captures ([`Credits::add_seeds`]).
    ///
    /// # Errors
    /// When the store fails.
    pub fn recall(&mut self, state: &mut State, remark: &Remark) -> Result<(), CreditError> {
        let why = Refusal::named(&remark.what);
        if why.is_none() && remark.what != remarks::ALLOWED {
            return Ok(());
        }
        let id = self.intern(state, &remark.url, url_hash(&remark.url))?;
        if remark.is_overruled_by(state.visit(id)?.and_then(|visit| visit.last_capture)) {
            return Ok(());
        }
        let mut page = state.page(id)?;
        refuse_in(&mut page, why);
        Ok(state.set_page(id, &page)?)
    }

    /// Lifts a refusal of a page if it is for this reason, and returns the page if it then waits to be fetched.
    ///
    /// # Errors
    /// When the store fails.
    pub fn take_up(
        &mut self,
        state: &mut State,
        id: UrlId,
        why: Refusal,
    ) -> Result<Option<Candidate>, CreditError> {
        let mut page = state.page(id)?;
        if flags::refusal_code(page.flags) == why.code() {
            refuse_in(&mut page, None);
            state.set_page(id, &page)?;
            self.remark(state, id, remarks::ALLOWED);
        }
        Ok(self.candidate(id, &page))
    }

    /// Returns a URL that is to be fetched and never was, with its level.
    pub(super) fn candidate(&self, id: UrlId, page: &Page) -> Option<Candidate> {
        let wanted = page.flags.has_any(flags::IN_SCOPE | flags::REQUISITE);
        // Another page stands for an alias, even if it never was fetched.
        let done = page.flags.has_any(flags::FETCHED | flags::ROBOTS | flags::ALIAS);
        if !wanted || done || flags::refusal_code(page.flags) != 0 || self.is_left_to_others(page) {
            return None;
        }
        let level = if page.flags.has_any(flags::PUBLISHED) {
            LEVEL_FIRST
        } else if page.flags.has_any(flags::SEED) {
            LEVEL_SEED
        } else if page.flags.has_any(flags::REQUISITE) {
            LEVEL_REQUISITE
        } else {
            level_of(self.pages.cash(&account(page, None)).units())
        };
        Some(Candidate { url: id, host: page.host, level })
    }
}

/// The remarks that a state stands for: its seeds, and why URLs are not fetched, except where a tombstone tells it.
///
/// # Errors
/// When the store fails.
pub fn remarks_of(state: &State) -> Result<Vec<Remark>, StateError> {
    let (mut remarks, captures) = (Vec::new(), state.totals().captures);
    for found in state.pages(UrlId(0)) {
        let (id, page) = found?;
        let seed = page.flags.has_any(flags::SEED).then_some(remarks::SEED);
        let announced = page.flags.has_any(flags::PUBLISHED).then_some(remarks::ANNOUNCED);
        let why = Refusal::from_code(flags::refusal_code(page.flags)).filter(|why| *why != Refusal::Erased);
        for what in seed.into_iter().chain(announced).chain(why.map(Refusal::name)) {
            remarks.push(Remark { url: state.url(id)?, what: what.to_owned(), captures });
        }
    }
    Ok(remarks)
}

/// Sets or clears the reason why a page is not fetched.
pub(super) fn refuse_in(page: &mut Page, why: Option<Refusal>) {
    page.flags = flags::with_refusal_code(page.flags, why.map_or(0, Refusal::code));
}

/// Whether a page is refused because of the links that lead to it, so that another link may lift the refusal.
pub(super) fn hangs_on_links(page: &Page) -> bool {
    let refusal = Refusal::from_code(flags::refusal_code(page.flags));
    matches!(refusal, Some(Refusal::NoFollow | Refusal::SameContent))
}

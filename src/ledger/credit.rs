//! What a capture changes: pages, sites, cash, links, and what becomes worth fetching.
//!
//! [`Credits::credit`] is the only place where a capture changes state, whether it was just fetched or is replayed from
//! its records after a crash. Total cash stays what it was, exactly.

use std::time::{Duration, Instant};

use archive_storage::address::{site_of, url_hash};
use archive_storage::{
    CaptureId, HostId, LinkTarget, Location, Page, PageFlags, Site, State, StateError, UrlId, Visit,
};

use super::authority::{authority, host_name};
use super::level::{LEVEL_REQUISITE, LEVEL_SEED, level_of};
use super::link_code::LinkCode;
use super::outcome::{Kind, OutLink, Outcome};
use super::page_flags as flags;
use super::pay::{account, site_account, store_site_account};
use super::refusal::Refusal;
use super::scope::Scope;
use super::settings::{PAGE_LEDGER, SCOPE, SITE_LEDGER, open_ledger, read_setting, write_setting};
use super::standing::account_of;
use crate::importance::{Audit, Imbalance, Ledger, LinkWeights, SiteAccount, Weight};

/// Requisites of requisites are followed this far: a theme's style sheet may import a chain of others, and these name
/// pictures.
const REQUISITE_DEPTH_MAX: u16 = 6;

/// Redirects in a row that are followed, as browsers do (Fetch standard, section 4.5, HTTP-redirect fetch).
const REDIRECTS_MAX: usize = 20;

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

/// A link of the page being credited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// Where it leads.
    pub(super) link: UrlId,
    /// The page that is paid for it: another one where redirects or duplicates share an account.
    pub(super) account: UrlId,
    /// What is stored of it.
    pub(super) code: LinkCode,
    /// What it weighs; nothing when nobody is to be paid.
    pub(super) weight: Weight,
}

/// Why the books cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreditError {
    /// The store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The numbers kept in the catalogue cannot be read.
    #[error(
        "the setting '{0}' of the archive cannot be read; remove its folder `state`, which is then made again from the segments"
    )]
    Setting(&'static str),
    /// Cash was lost or made.
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
}

/// The books: both ledgers and the rules by which links are weighed and followed.
#[derive(Debug)]
pub struct Credits {
    pub(super) pages: Ledger,
    pub(super) sites: Ledger,
    weights: LinkWeights,
    scope: Scope,
    /// Whether links that ask not to be followed are not.
    obey_nofollow: bool,
    /// The links of the page being credited, resolved; kept to be used again.
    pub(super) targets: Vec<Target>,
    /// What paying has cost since somebody asked.
    paying: Duration,
}

impl Credits {
    /// The books as they were saved, or empty ones for a new archive.
    ///
    /// # Errors
    /// When what was saved cannot be read.
    pub fn open(state: &State) -> Result<Self, CreditError> {
        Ok(Self {
            pages: open_ledger(state, PAGE_LEDGER)?,
            sites: open_ledger(state, SITE_LEDGER)?,
            weights: LinkWeights::default(),
            scope: Scope::from_rules(read_setting(state, SCOPE)?.unwrap_or_default()),
            obey_nofollow: false,
            targets: Vec::new(),
            paying: Duration::ZERO,
        })
    }

    /// Puts the books where the next checkpoint saves them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn save(&self, state: &mut State) -> Result<(), CreditError> {
        write_setting(state, PAGE_LEDGER, &self.pages.numbers())?;
        write_setting(state, SITE_LEDGER, &self.sites.numbers())?;
        write_setting(state, SCOPE, &self.scope.rules())
    }

    /// The page ledger, for reading importance.
    #[must_use]
    pub fn pages(&self) -> &Ledger {
        &self.pages
    }

    /// The site ledger, for reading importance.
    #[must_use]
    pub fn sites(&self) -> &Ledger {
        &self.sites
    }

    /// How links are weighed.
    #[must_use]
    pub fn link_weights(&self) -> &LinkWeights {
        &self.weights
    }

    /// Takes a new scope. Pages that are known already are looked at again.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_scope(&mut self, state: &mut State, scope: Scope) -> Result<(), CreditError> {
        if scope.rules() == self.scope.rules() {
            return Ok(());
        }
        self.scope = scope;
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let mut page = state.page(id)?;
            if page.flags.0 & (flags::ACCOUNT | flags::ROBOTS) == flags::ACCOUNT {
                let inside = self.is_inside(state, &state.url(id)?, &page)?;
                page.flags.set(PageFlags(flags::IN_SCOPE), inside || page.flags.0 & flags::SEED != 0);
                state.set_page(id, &page)?;
            }
        }
        Ok(())
    }

    /// Says whether links that ask not to be followed are not.
    pub fn set_obey_nofollow(&mut self, obey: bool) {
        self.obey_nofollow = obey;
    }

    /// The pages that the page credited last leads to.
    pub fn last_links(&self) -> impl Iterator<Item = UrlId> + '_ {
        self.targets.iter().filter(|target| target.code.carries_cash()).map(|target| target.link)
    }

    /// Enters seeds (canonical URLs) that are not known yet.
    ///
    /// # Errors
    /// When the store fails.
    pub fn add_seeds(&mut self, state: &mut State, seeds: &[String]) -> Result<Vec<UrlId>, CreditError> {
        let mut ids = Vec::with_capacity(seeds.len());
        for url in seeds {
            let id = self.know(state, url, url_hash(url))?;
            let mut page = state.page(id)?;
            page.depth = 0;
            page.flags.set(PageFlags(flags::SEED | flags::IN_SCOPE), true);
            self.open_account(&mut page);
            state.set_page(id, &page)?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Hands out everything that waits to be fetched, for a frontier that begins.
    ///
    /// # Errors
    /// When the store fails; what `take` returns is handed back.
    pub fn waiting(
        &self,
        state: &State,
        mut take: impl FnMut(Candidate) -> Result<(), CreditError>,
    ) -> Result<(), CreditError> {
        for entry in state.pages(UrlId(0)) {
            let (id, mut page) = entry?;
            // What was refused may be allowed today, unless it hangs on the links that lead to it.
            let refusal = Refusal::from_code(flags::refusal_code(page.flags.0));
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

    /// The URL's state, made when it is new.
    ///
    /// # Errors
    /// When the store fails.
    pub fn know(&mut self, state: &mut State, url: &str, hash: u64) -> Result<UrlId, CreditError> {
        let (id, is_new) = state.intern(url, hash)?;
        if is_new {
            let mut page = state.page(id)?;
            page.host = self.host_of(state, url)?;
            state.set_page(id, &page)?;
        }
        Ok(id)
    }

    /// The URL of a host's robots.txt, which is no page.
    ///
    /// # Errors
    /// When the store fails.
    pub fn know_robots(&mut self, state: &mut State, url: &str) -> Result<UrlId, CreditError> {
        let id = self.know(state, url, url_hash(url))?;
        let mut page = state.page(id)?;
        if page.flags.0 & flags::ROBOTS == 0 {
            page.flags.set(PageFlags(flags::ROBOTS), true);
            state.set_page(id, &page)?;
        }
        Ok(id)
    }

    /// Books a capture: into its page's history, and its page's cash to the pages it links to.
    ///
    /// What became worth fetching is appended to `candidates`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn credit(
        &mut self,
        state: &mut State,
        outcome: &Outcome,
        location: Location,
        candidates: &mut Vec<Candidate>,
    ) -> Result<CaptureId, CreditError> {
        let id = self.know(state, &outcome.url, url_hash(&outcome.url))?;
        if outcome.facts.robots {
            self.know_robots(state, &outcome.url)?;
        }
        self.enter(state, id, outcome)?;
        let is_late = Self::is_late(state, id, outcome)?;
        let capture = self.record(state, id, outcome, location, is_late)?;
        let page = state.page(id)?;
        self.resolve_links(state, id, &page, outcome)?;
        if is_late {
            // A newer version has said already what the page links to now.
            return Ok(capture);
        }
        if outcome.kind != Kind::NotModified && page.flags.0 & flags::ROBOTS == 0 {
            let link = |target: &Target| LinkTarget { target: target.link, kind: target.code.to_byte() };
            let links: Vec<LinkTarget> = self.targets.iter().map(link).collect();
            state.append_links(id, &links)?;
            self.take_dates(state, id, outcome)?;
        }
        self.stand(state, id, outcome)?;
        let page = state.page(id)?;
        let begun = Instant::now();
        if page.flags.0 & flags::ACCOUNT != 0 {
            self.pay_pages(state, id)?;
        }
        if page.flags.0 & (flags::ACCOUNT | flags::ALIAS) != 0 {
            self.pay_sites(state, &page)?;
        }
        self.paying += begun.elapsed();
        for place in 0..self.targets.len() {
            let target = self.targets[place].link;
            let page = state.page(target)?;
            candidates.extend(self.candidate(target, &page));
        }
        Ok(capture)
    }

    /// How long cash was handed on since this was last asked.
    pub fn take_paying(&mut self) -> Duration {
        std::mem::take(&mut self.paying)
    }

    /// Books that a page may not be fetched: it is read as a page without links, so that its cash goes on.
    ///
    /// # Errors
    /// When the store fails.
    pub fn refuse(&mut self, state: &mut State, id: UrlId, why: Refusal) -> Result<(), CreditError> {
        let page = Self::put_off(state, id, why)?;
        if page.flags.0 & flags::ACCOUNT != 0 {
            self.targets.clear();
            self.pay_pages(state, id)?;
        }
        Ok(())
    }

    /// Notes why a page is not fetched now. It keeps its cash: what stands in its way may pass.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_off(state: &mut State, id: UrlId, why: Refusal) -> Result<Page, CreditError> {
        let mut page = state.page(id)?;
        refuse_in(&mut page, Some(why));
        state.set_page(id, &page)?;
        Ok(page)
    }

    /// The scope by which pages are taken or left out.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The most important sites, best first, with their importance (mean 1 over all known sites).
    ///
    /// # Errors
    /// When the store fails.
    pub fn top_sites(&self, state: &State, count: usize) -> Result<Vec<(String, f64)>, CreditError> {
        let mut sites = Vec::new();
        for site in state.sites() {
            let (_, name, site) = site?;
            sites.push((name, self.site_importance(&site)));
        }
        sites.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sites.truncate(count);
        Ok(sites)
    }

    /// Importance of a site, mean 1 over all known sites; only links between sites count.
    #[must_use]
    pub fn site_importance(&self, site: &Site) -> f64 {
        self.sites.importance(&site_account(site).account)
    }

    /// Importance of a page, mean 1 over all known pages; nothing for what is no page.
    #[must_use]
    pub fn importance(&self, page: &Page, visit: Option<&Visit>) -> Option<f64> {
        (page.flags.0 & flags::ACCOUNT != 0).then(|| self.pages.importance(&account(page, visit)))
    }

    /// Importance of the page whose account a URL uses, its own or that of the page it stands for.
    ///
    /// # Errors
    /// When the store fails.
    pub fn importance_of(&self, state: &State, id: UrlId) -> Result<Option<f64>, StateError> {
        let Some(page) = account_of(state, id)? else { return Ok(None) };
        Ok(self.importance(&state.page(page)?, state.visit(page)?.as_ref()))
    }

    /// Checks that no cash was lost or made, and makes the mean importance exactly 1.
    ///
    /// # Errors
    /// When the books do not balance.
    pub fn audit(&mut self, state: &State) -> Result<(), CreditError> {
        let mut audit = Audit::default();
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let page = state.page(id)?;
            if page.flags.0 & flags::ACCOUNT != 0 {
                let visit = state.visit(id)?;
                audit.add(&self.pages, &account(&page, visit.as_ref()));
            }
        }
        audit.finish(&mut self.pages)?;
        let mut audit = Audit::default();
        for site in state.sites() {
            let (_, _, site) = site?;
            audit.add(&self.sites, &site_account(&site).account);
        }
        Ok(audit.finish(&mut self.sites)?)
    }

    /// Resolves a page's links to ids, and opens accounts for pages seen for the first time.
    fn resolve_links(
        &mut self,
        state: &mut State,
        source: UrlId,
        from: &Page,
        outcome: &Outcome,
    ) -> Result<(), CreditError> {
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        if outcome.kind == Kind::NotModified
            || (outcome.kind == Kind::Identical && outcome.facts.links.is_empty())
        {
            for link in state.links(source)?.links {
                targets.push(self.target(state, from, link.target, LinkCode::from_byte(link.kind))?);
            }
        } else {
            for link in &outcome.facts.links {
                let target = self.know(state, &link.url, link.hash)?;
                let unfollowed = if outcome.facts.copies.is_some() {
                    Some(Refusal::SameContent)
                } else {
                    (link.nofollow && self.obey_nofollow).then_some(Refusal::NoFollow)
                };
                self.note_link(state, target, source, from, link, unfollowed)?;
                let code = LinkCode::new(link.kind, link.nofollow, link.template);
                targets.push(self.target(state, from, target, code)?);
            }
        }
        self.targets = targets;
        Ok(())
    }

    /// Who is paid how much for a link. A robots.txt has no account: what it would get stays with the virtual page.
    fn target(&self, state: &State, from: &Page, link: UrlId, code: LinkCode) -> Result<Target, CreditError> {
        let payee = if code.carries_cash() { account_of(state, link)? } else { None };
        let weight = match payee {
            Some(page) => self.weights.of(code.traits(state.page(page)?.host != from.host)),
            None => Weight::NONE,
        };
        Ok(Target { link, account: payee.unwrap_or(link), code, weight })
    }

    /// What a link says of its target: that it is a page or a requisite, how far from a seed it is, how it was found.
    ///
    /// A page that is only known by links that are not followed is refused until another link leads to it.
    fn note_link(
        &mut self,
        state: &mut State,
        target: UrlId,
        source: UrlId,
        from: &Page,
        link: &OutLink,
        unfollowed: Option<Refusal>,
    ) -> Result<(), CreditError> {
        let mut page = state.page(target)?;
        let before = page;
        if page.flags.0 & flags::ROBOTS != 0 {
            return Ok(());
        }
        let is_known = page.flags.0 & (flags::ACCOUNT | flags::REQUISITE) != 0;
        let step = u8::from(matches!(link.kind.hop(), 'L' | 'M' | 'X'));
        let depth = from.depth.saturating_add(step);
        if !is_known || depth < page.depth {
            page.depth = depth;
            page.via = Some(source);
            page.hop = link.kind.hop() as u8;
        }
        let opened = link.kind.carries_cash() && self.open_account(&mut page);
        match unfollowed {
            Some(why) if opened && page.flags.0 & flags::SEED == 0 => refuse_in(&mut page, Some(why)),
            None if link.kind.carries_cash() && hangs_on_links(&page) => refuse_in(&mut page, None),
            _ => {}
        }
        if opened || page.depth < before.depth {
            let inside = self.is_inside(state, &link.url, &page)?;
            page.flags.set(PageFlags(flags::IN_SCOPE), inside || page.flags.0 & flags::SEED != 0);
        }
        if link.kind.is_requisite() && page.flags.0 & flags::IN_SCOPE == 0 {
            let distance = flags::requisite_depth(from.flags.0) + 1;
            if distance <= REQUISITE_DEPTH_MAX && page.flags.0 & flags::REQUISITE == 0 {
                page.flags = PageFlags(flags::with_requisite_depth(page.flags.0, distance));
            }
        }
        if page != before {
            state.set_page(target, &page)?;
        }
        if opened && page.flags.0 & flags::FETCHED != 0 {
            // It was captured before as a part of a page: as a page of its own it has nothing to hand on.
            let kept = std::mem::take(&mut self.targets);
            self.pay_pages(state, target)?;
            self.targets = kept;
        }
        Ok(())
    }

    /// Enters what a capture itself shows to be a page, whether or not something links to it: a seed, which nothing led to
    /// (live it was entered before its fetch), and a document that was imported.
    fn enter(&mut self, state: &mut State, id: UrlId, outcome: &Outcome) -> Result<(), CreditError> {
        let facts = &outcome.facts;
        if facts.robots || state.visit(id)?.is_some_and(|visit| visit.captures > 0) {
            return Ok(());
        }
        let before = state.page(id)?;
        let mut page = before;
        if facts.imported.is_some() {
            let is_linked = page.flags.0 & flags::REQUISITE != 0;
            if outcome.is_document() && self.open_account(&mut page) {
                let steps = facts.hops.chars().filter(|hop| matches!(hop, 'L' | 'M' | 'X')).count();
                let steps = u8::try_from(steps).unwrap_or(u8::MAX);
                page.depth = if is_linked { page.depth.min(steps) } else { steps };
            }
        } else if facts.via.is_none() && facts.hops.is_empty() && page.flags.0 & flags::PUBLISHED == 0 {
            page.flags.set(PageFlags(flags::SEED | flags::IN_SCOPE), true);
            (page.depth, page.via, page.hop) = (0, None, 0);
            self.open_account(&mut page);
        }
        if page != before {
            state.set_page(id, &page)?;
        }
        Ok(())
    }

    /// Opens an account; tells whether there was none.
    pub(super) fn open_account(&mut self, page: &mut Page) -> bool {
        if page.flags.0 & (flags::ACCOUNT | flags::ALIAS | flags::VANISHED) != 0 {
            return false;
        }
        page.flags.set(PageFlags(flags::ACCOUNT), true);
        page.cash = self.pages.discover().base.to_stored();
        true
    }

    /// The host of a canonical URL; a new one opens its site's account as well.
    fn host_of(&mut self, state: &mut State, url: &str) -> Result<HostId, CreditError> {
        let host = authority(url);
        if let Some(id) = state.find_host(host)? {
            return Ok(id);
        }
        let (site, is_new) = state.intern_site(site_of(host_name(host)))?;
        if is_new {
            let mut record = state.site(site)?;
            store_site_account(&mut record, &SiteAccount::discover(&mut self.sites));
            state.set_site(site, &record)?;
        }
        Ok(state.intern_host(host, site)?.0)
    }

    fn is_inside(&self, state: &State, url: &str, page: &Page) -> Result<bool, CreditError> {
        let host = authority(url);
        let is_near = self.scope.contains(url, host, site_of(host_name(host)), page.depth);
        Ok(is_near && redirects_to(state, page)? <= REDIRECTS_MAX)
    }

    /// Whether a page would belong to the crawl if a seed linked to it.
    pub(super) fn would_contain(&self, url: &str) -> bool {
        let host = authority(url);
        self.scope.contains(url, host, site_of(host_name(host)), 1)
    }

    /// Whether and how urgently a URL is to be fetched that never was.
    fn candidate(&self, id: UrlId, page: &Page) -> Option<Candidate> {
        let wanted = page.flags.0 & (flags::IN_SCOPE | flags::REQUISITE) != 0;
        let done = page.flags.0 & (flags::FETCHED | flags::ROBOTS) != 0;
        if !wanted || done || flags::refusal_code(page.flags.0) != 0 {
            return None;
        }
        let level = if page.flags.0 & (flags::SEED | flags::PUBLISHED) != 0 {
            LEVEL_SEED
        } else if page.flags.0 & flags::REQUISITE != 0 {
            LEVEL_REQUISITE
        } else {
            level_of(self.pages.cash(&account(page, None)).units())
        };
        Some(Candidate { url: id, host: page.host, level })
    }
}

/// Sets or clears the reason why a page is not fetched.
pub(super) fn refuse_in(page: &mut Page, why: Option<Refusal>) {
    page.flags = PageFlags(flags::with_refusal_code(page.flags.0, why.map_or(0, Refusal::code)));
}

/// Whether a page is refused because of the links that lead to it, so that another link may change that.
fn hangs_on_links(page: &Page) -> bool {
    let refusal = Refusal::from_code(flags::refusal_code(page.flags.0));
    matches!(refusal, Some(Refusal::NoFollow | Refusal::SameContent))
}

/// How many redirects in a row led to a page, counted to one more than [`REDIRECTS_MAX`] at most.
fn redirects_to(state: &State, page: &Page) -> Result<usize, CreditError> {
    let mut redirects = 0;
    let mut step = *page;
    while step.hop == b'R' && redirects <= REDIRECTS_MAX {
        redirects += 1;
        let Some(before) = step.via else { break };
        step = state.page(before)?;
    }
    Ok(redirects)
}

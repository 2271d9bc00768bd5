//! What a capture changes: pages, sites, cash, links, and which URLs become worth fetching.
//!
//! [`Credits::credit`] is the only place where a capture changes the state, whether it was just fetched or is replayed
//! from its records after a crash. It keeps the total of all cash exactly.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use archive_base::remarks;
use archive_math::importance::{Cash, CashTally, Imbalance, Ledger, LinkWeights, Policy};
use archive_storage::address::{site_of, url_hash};
use archive_storage::{CaptureId, LinkTarget, Location, Page, Site, SiteId, State, StateError, UrlId, Visit};

use super::account::{account, site_account};
use super::aliases::account_of;
use super::authority::{authority, host_name};
use super::error::CreditError;
use super::facts::CrawlerFacts;
use super::late::LateCaptures;
use super::level::LEVEL_FIRST;
use super::links::{CreditedLink, Mention};
use super::missing::Vanished;
use super::outcome::FetchOutcome;
use super::page_flags as flags;
use super::parameters::Parameters;
use super::record::is_newest_content;
use super::robots_txt::is_robots_txt;
use super::rules::CashRules;
use super::scope::{CrawlScope, ScopeRule};
use super::settings::{
    FAVOURED_MAX, PAGE_LEDGER, PARAMETERS, RULES, SCOPE, SITE_LEDGER, open_ledger, read_favoured,
    read_favoured_sites, read_policy, read_setting, write_favoured, write_setting,
};
use super::transfers::Transfers;
use super::waiting_list::Candidate;

/// Maximum number of consecutive redirects that are followed, as in browsers (Fetch standard, section 4.5,
/// HTTP-redirect fetch).
pub const REDIRECTS_MAX: usize = 20;

/// The books: both ledgers, and the rules for weighing and following links.
#[derive(Debug)]
pub struct Credits {
    pub(super) pages: Ledger,
    pub(super) sites: Ledger,
    pub(super) rules: CashRules,
    /// Pages that a query favours, with their bonus.
    pub(super) favoured: HashMap<UrlId, f64>,
    /// Sites that people favour, with their bonus.
    pub(super) favoured_sites: HashMap<SiteId, f64>,
    pub(super) scope: CrawlScope,
    /// Whether links with `nofollow` are not followed.
    pub(super) obey_nofollow: bool,
    /// Whether the scope of a seed does not follow it to another site.
    pub(super) leave_moved_seeds: bool,
    /// Seeds that have led to another site, since they were last asked for.
    pub(super) moved: Vec<ScopeRule>,
    pub(super) parameters: Parameters,
    /// URLs that are not followed because of the content of their page, since they were last asked for.
    pub(super) unfollowed: Vec<UrlId>,
    /// Resolved links of the page being credited; kept to reuse the memory.
    pub(super) targets: Vec<CreditedLink>,
    /// Late captures whose pages are yet to be recomputed.
    pub(super) late: LateCaptures,
    /// Remarks that are not in a file yet: the URL, what is said of it, and the captures that there were.
    pub(super) remarked: Vec<(UrlId, &'static str, u64)>,
    /// What was written into page and site accounts, to be compared with the ledgers.
    pub(super) tallies: (CashTally, CashTally),
    /// Time spent on paying out cash since the last [`Credits::take_paying`].
    paying: Duration,
    /// Exchange with other partitions; `None` if the archive is not a partition.
    pub(super) transfers: Option<Transfers>,
}

impl Credits {
    /// Opens the saved books, or empty ones for a new archive.
    ///
    /// # Errors
    /// When the saved books cannot be read.
    pub fn open(state: &State) -> Result<Self, CreditError> {
        let rules: CashRules = read_setting(state, RULES)?.unwrap_or_default();
        let transfers = Transfers::open(state)?;
        let total = transfers.as_ref().map_or(Ok(Cash::WHOLE), Transfers::total)?;
        let pages = open_ledger(state, PAGE_LEDGER, rules.policy(), total)?;
        let sites = open_ledger(state, SITE_LEDGER, Policy::default(), Cash::WHOLE)?;
        if pages.total() != total {
            return Err(
                Imbalance::Total { expected: total.units(), found: pages.total().units().into() }.into()
            );
        }
        let written = state.cash_written();
        let policy = read_policy(state)?;
        Ok(Self {
            tallies: (CashTally::begin(&pages, written.pages), CashTally::begin(&sites, written.sites)),
            pages,
            sites,
            favoured: read_favoured(state),
            favoured_sites: read_favoured_sites(state),
            rules,
            scope: CrawlScope::from_rules(read_setting(state, SCOPE)?.unwrap_or_default()),
            obey_nofollow: policy.obey_nofollow,
            leave_moved_seeds: policy.leave_moved_seeds,
            moved: Vec::new(),
            parameters: Parameters::open(state, policy.dropped_parameters)?,
            unfollowed: Vec::new(),
            targets: Vec::new(),
            late: LateCaptures::default(),
            remarked: Vec::new(),
            paying: Duration::ZERO,
            transfers,
        })
    }

    /// Saves the books in the state, for the next checkpoint.
    ///
    /// # Errors
    /// When the store fails.
    pub fn save(&mut self, state: &mut State) -> Result<(), CreditError> {
        self.recompute_late(state)?;
        write_setting(state, PAGE_LEDGER, &self.pages.numbers())?;
        write_setting(state, SITE_LEDGER, &self.sites.numbers())?;
        if let Some(transfers) = &self.transfers {
            transfers.save(state)?;
        }
        if self.parameters.take_changed() {
            write_setting(state, PARAMETERS, &self.parameters)?;
        }
        write_setting(state, SCOPE, &self.scope.rules())
    }

    /// Returns the page ledger, for reading importance.
    #[must_use]
    pub fn pages(&self) -> &Ledger {
        &self.pages
    }

    /// Returns the site ledger, for reading importance.
    #[must_use]
    pub fn sites(&self) -> &Ledger {
        &self.sites
    }

    /// Returns the rules for dividing cash.
    #[must_use]
    pub fn rules(&self) -> &CashRules {
        &self.rules
    }

    /// Sets the rules for dividing cash, and favours these pages (at most 10^6) by `bonus`.
    ///
    /// # Errors
    /// When the store fails, or when the rule for sites would change although sites are known.
    pub fn set_rules(
        &mut self,
        state: &mut State,
        rules: CashRules,
        favoured: &[UrlId],
        bonus: f64,
    ) -> Result<(), CreditError> {
        if rules.sites != self.rules.sites && state.site_count() > 0 {
            return Err(CreditError::Sites { now: self.rules.sites, wanted: rules.sites });
        }
        write_setting(state, RULES, &rules)?;
        let favoured = &favoured[..favoured.len().min(FAVOURED_MAX)];
        write_favoured(state, favoured, bonus)?;
        self.pages = Ledger::resume(self.pages.numbers(), rules.policy());
        self.favoured = favoured.iter().map(|&id| (id, bonus)).collect();
        self.rules = rules;
        Ok(())
    }

    /// Returns the weights of links.
    pub(crate) fn link_weights(&self) -> &LinkWeights {
        &self.rules.weights
    }

    /// Sets the scope and judges all known pages again.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_scope(&mut self, state: &mut State, scope: CrawlScope) -> Result<(), CreditError> {
        let scope = self.with_moved(scope);
        if scope.rules() == self.scope.rules() {
            return Ok(());
        }
        self.scope = scope;
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let mut page = state.page(id)?;
            if page.flags.has_any(flags::ACCOUNT) && !page.flags.has_any(flags::ROBOTS) {
                let before = page.flags;
                let inside = self.is_inside(state, &state.url(id)?, &page)?;
                page.flags.set(flags::IN_SCOPE, inside || page.flags.has_any(flags::SEED));
                state.set_page(id, &page)?;
                if let Some(transfers) = self.transfers.as_mut().filter(|_| page.flags != before) {
                    transfers.note_changed(id, &page);
                }
            }
        }
        Ok(())
    }

    /// Takes URLs that are to be forgotten out of the scope's rules. The scope stays as it is.
    ///
    /// # Errors
    /// When the store fails.
    pub fn forget_seeds(&mut self, state: &mut State, urls: &HashSet<String>) -> Result<(), CreditError> {
        let rules = self.scope.rules().iter().cloned().filter_map(|rule| rule.without(urls)).collect();
        self.scope = CrawlScope::from_rules(rules);
        write_setting(state, SCOPE, &self.scope.rules())
    }

    /// Returns the pages that get cash from the page credited last.
    pub fn last_links(&self) -> impl Iterator<Item = UrlId> + '_ {
        self.targets.iter().filter(|target| target.code.carries_cash()).map(|target| target.link)
    }

    /// Adds seeds (canonical URLs) and returns their ids.
    ///
    /// # Errors
    /// When the store fails.
    pub fn add_seeds(&mut self, state: &mut State, seeds: &[String]) -> Result<Vec<UrlId>, CreditError> {
        let mut ids = Vec::with_capacity(seeds.len());
        for url in seeds {
            let id = self.intern(state, url, url_hash(url))?;
            let mut page = state.page(id)?;
            if !page.flags.has_any(flags::SEED) {
                self.remark(state, id, remarks::SEED);
            }
            page.depth = 0;
            page.flags.set(flags::SEED | flags::IN_SCOPE, true);
            if !page.flags.has_any(flags::ROBOTS) {
                self.open_account(&mut page);
            }
            state.set_page(id, &page)?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Returns the id of a URL, adding it if it is new.
    ///
    /// # Errors
    /// When the store fails.
    pub fn intern(&mut self, state: &mut State, url: &str, hash: u64) -> Result<UrlId, CreditError> {
        let (id, is_new) = state.intern(url, hash)?;
        if is_new {
            let mut page = state.page(id)?;
            page.host = self.host_of(state, url)?;
            page.flags.set(flags::ROBOTS, is_robots_txt(url));
            state.set_page(id, &page)?;
        }
        Ok(id)
    }

    /// Credits a capture: updates its page's history, and pays its page's cash to the pages it links to.
    ///
    /// Appends URLs that became worth fetching to `candidates`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn credit(
        &mut self,
        state: &mut State,
        outcome: &FetchOutcome,
        location: Location,
        candidates: &mut Vec<Candidate>,
    ) -> Result<CaptureId, CreditError> {
        let name = outcome.name();
        let id = self.intern(state, &name, url_hash(&name))?;
        if outcome.facts.erased.is_some() {
            return Self::record_tombstone(state, id, outcome, location);
        }
        self.enter(state, id, outcome)?;
        let is_late = Self::is_late(state, id, outcome)?;
        let before = state.visit(id)?;
        let is_silent = says_nothing(outcome, before.as_ref());
        let is_newest = !is_late || before.is_some_and(|visit| is_newest_content(&visit, outcome));
        let capture = self.record(state, id, outcome, location, is_late)?;
        self.follow_seed(state, id, outcome)?;
        let page = state.page(id)?;
        // An error page has the links of a page that never had content, but does not replace those of one that had.
        let is_shown = outcome.is_content() || before.is_none_or(|visit| visit.contents == 0);
        let has_links = outcome.describes_document() && !is_silent && is_shown;
        if has_links {
            self.resolve_links(state, id, &page, &outcome.facts)?;
        } else {
            self.resolve_known_links(state, id, &page)?;
        }
        // A newer version may have already set the page's current links.
        if has_links && is_newest && !page.flags.has_any(flags::ROBOTS) {
            self.store_links(state, id)?;
        }
        if is_late {
            return Ok(capture);
        }
        if has_links && !page.flags.has_any(flags::ROBOTS) {
            self.take_dates(state, id, outcome)?;
        }
        if !is_silent {
            self.update_account(state, id, outcome)?;
        }
        let page = state.page(id)?;
        let begun = Instant::now();
        if page.flags.has_any(flags::ACCOUNT) {
            self.pay_pages(state, id)?;
        }
        if page.flags.has_any(flags::ACCOUNT | flags::ALIAS) {
            self.pay_sites(state, id)?;
        }
        self.paying += begun.elapsed();
        self.add_candidates(state, candidates, Some(outcome).filter(|outcome| outcome.is_content()))?;
        self.weigh(state, id, outcome)?;
        Ok(capture)
    }

    /// Stores the links of the page being credited.
    pub(super) fn store_links(&self, state: &mut State, id: UrlId) -> Result<(), StateError> {
        let link = |target: &CreditedLink| LinkTarget { target: target.link, kind: target.code.to_byte() };
        let links: Vec<LinkTarget> = self.targets.iter().map(link).collect();
        state.append_links(id, &links)?;
        Ok(())
    }

    /// Adds what the page being credited makes worth fetching; pages of tests come first. What its `content` still links
    /// to although it brought nothing is noted.
    pub(super) fn add_candidates(
        &mut self,
        state: &mut State,
        candidates: &mut Vec<Candidate>,
        content: Option<&FetchOutcome>,
    ) -> Result<(), StateError> {
        for place in 0..self.targets.len() {
            let CreditedLink { link: target, code, .. } = self.targets[place];
            let page = state.page(target)?;
            if let Some(content) = content
                && page.flags.has_any(flags::VANISHED)
                && code.carries_cash()
            {
                Vanished::note_link(state, target, content)?;
            }
            candidates.extend(self.candidate(target, &page));
        }
        for id in std::mem::take(&mut self.parameters.opened) {
            let candidate = self.candidate(id, &state.page(id)?);
            candidates.extend(candidate.map(|candidate| Candidate { level: LEVEL_FIRST, ..candidate }));
        }
        Ok(())
    }

    /// Returns the URLs that are not followed because of the content of their page, since the last call.
    pub fn take_unfollowed(&mut self) -> Vec<UrlId> {
        std::mem::take(&mut self.unfollowed)
    }

    /// Returns the time spent on paying out cash since the last call.
    pub fn take_paying(&mut self) -> Duration {
        std::mem::take(&mut self.paying)
    }

    /// Returns the scope that decides which pages belong to the crawl.
    #[must_use]
    pub fn scope(&self) -> &CrawlScope {
        &self.scope
    }

    /// Returns the most important sites, best first, with their importance (mean 1 over all known sites).
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

    /// Returns the importance of a site, mean 1 over all known sites; only links between sites count.
    #[must_use]
    pub fn site_importance(&self, site: &Site) -> f64 {
        self.sites.importance(&site_account(site).account)
    }

    /// Returns the importance of a page, mean 1 over all known pages; `None` if it has no account.
    #[must_use]
    pub fn importance(&self, page: &Page, visit: Option<&Visit>) -> Option<f64> {
        (page.flags.has_any(flags::ACCOUNT)).then(|| self.pages.importance(&account(page, visit)))
    }

    /// Returns the importance of the page whose account a URL uses: its own, or that of the page it stands for.
    ///
    /// # Errors
    /// When the store fails.
    pub fn importance_of(&self, state: &State, id: UrlId) -> Result<Option<f64>, StateError> {
        let Some(page) = account_of(state, id)? else { return Ok(None) };
        Ok(self.importance(&state.page(page)?, state.visit(page)?.as_ref()))
    }

    /// Adds a page that its capture itself shows to be one, whether or not anything links to it: a seed (a live one was
    /// added before its fetch) or an imported document.
    fn enter(&mut self, state: &mut State, id: UrlId, outcome: &FetchOutcome) -> Result<(), CreditError> {
        let facts = &outcome.facts;
        if facts.robots || state.visit(id)?.is_some_and(|visit| visit.captures > 0) {
            return Ok(());
        }
        let before = state.page(id)?;
        let mut page = before;
        if facts.imported.is_some() {
            let is_linked = page.flags.has_any(flags::REQUISITE);
            if outcome.is_document() && self.open_account(&mut page) {
                let steps = facts.hops.chars().filter(|hop| matches!(hop, 'L' | 'M' | 'X')).count();
                let steps = u8::try_from(steps).unwrap_or(u8::MAX);
                page.depth = if is_linked { page.depth.min(steps) } else { steps };
            }
        } else if !facts.hops.is_empty() && !page.flags.has_any(flags::PAGE | flags::REQUISITE) {
            return self.enter_named(state, id, outcome);
        } else if facts.via.is_none() && facts.hops.is_empty() && !page.flags.has_any(flags::PUBLISHED) {
            page.flags.set(flags::SEED | flags::IN_SCOPE, true);
            (page.depth, page.via, page.hop) = (0, None, 0);
            self.open_account(&mut page);
        }
        if page != before {
            state.set_page(id, &page)?;
        }
        Ok(())
    }

    /// Adds a page that no link of the archive names, when its capture is replayed: another partition did in a batch that is
    /// gone, or a link that was first taken without a parameter.
    fn enter_named(
        &mut self,
        state: &mut State,
        id: UrlId,
        outcome: &FetchOutcome,
    ) -> Result<(), CreditError> {
        let CrawlerFacts { via, hops, .. } = &outcome.facts;
        let via = via.as_ref().map(|via| self.intern(state, via, url_hash(via))).transpose()?;
        let steps = hops.chars().filter(|hop| matches!(hop, 'L' | 'M' | 'X')).count();
        let is_page = hops.chars().all(|hop| matches!(hop, 'L' | 'M' | 'X' | 'R'));
        let mention = Mention {
            url: &outcome.url,
            via,
            depth: u8::try_from(steps).unwrap_or(u8::MAX),
            hop: hops.bytes().last().unwrap_or_default(),
            is_page,
            part: u16::from(!is_page),
            unfollowed: None,
        };
        self.note_mention(state, id, &mention)
    }

    /// Opens an account; returns false if the page may not have one or has one already.
    pub(super) fn open_account(&mut self, page: &mut Page) -> bool {
        if page.flags.has_any(flags::ACCOUNT | flags::ALIAS | flags::VANISHED) {
            return false;
        }
        page.flags.set(flags::ACCOUNT, true);
        let is_seed = page.flags.has_any(flags::SEED);
        let account = if is_seed { self.pages.discover_seed() } else { self.pages.discover() };
        page.cash = account.base.to_stored();
        true
    }

    pub(super) fn is_inside(&self, state: &State, url: &str, page: &Page) -> Result<bool, CreditError> {
        let host = authority(url);
        let is_near = self.scope.contains(url, host, site_of(host_name(host)), page.depth);
        let is_inside = is_near || self.seed_before(state, page)?.is_some();
        Ok(is_inside && redirects_to(state, page)? <= REDIRECTS_MAX)
    }

    /// Whether a page would belong to the crawl if a seed linked to it.
    pub(super) fn would_contain(&self, url: &str) -> bool {
        let host = authority(url);
        self.scope.contains(url, host, site_of(host_name(host)), 1)
    }
}

/// Whether a capture says nothing about its page: the page was found before, and now an error hides it, or only a part of
/// it was requested.
fn says_nothing(outcome: &FetchOutcome, before: Option<&Visit>) -> bool {
    let hides = !outcome.is_page() && !outcome.is_gone() || outcome.status == 206;
    hides && before.is_some_and(|visit| visit.versions > 0)
}

/// Counts the consecutive redirects that led to a page, up to [`REDIRECTS_MAX`] + 1.
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

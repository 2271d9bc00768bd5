//! Rounds over the stored links: visits without a fetch.
//!
//! While pages are discovered, cash gathers on those that were read early; after one pass of fetches the estimates still
//! tell of a smaller web. A visit needs only a page's links, and the archive has them: going over the newest links of
//! every page for as long as the window of the estimates is makes them those of the web as it is known now. On a real
//! crawl of 6 000 pages the L1 error after the first pass falls from .61 to .17, Kendall's tau rises from .70 to .93
//! (`archive lab passes`).

use std::collections::HashMap;

use archive_storage::{HostId, LinkTarget, State, UrlId};

use super::credit::{CreditError, Credits};
use super::link_code::LinkCode;
use super::page_flags as flags;
use super::pay::account;
use super::standing::account_of;
use crate::importance::{Account, Base, Credit, LinkWeights, Weight};

/// Links over which cash is passed on at most: some seconds. A larger archive gets fewer rounds, at last none.
const TRANSFERS_MAX: u64 = 60_000_000;

/// URLs of an archive whose accounts are taken into memory, 52 bytes each.
const URLS_MAX: u32 = 20_000_000;

/// Rounds at most, however little cash moves.
const ROUNDS_MAX: u32 = 16;

/// The accounts of all pages in memory.
struct Accounts {
    /// Nothing for a URL that is no page.
    pages: Vec<Option<Account>>,
    /// The pages that were read, and among them those whose links were found in this round.
    read: Vec<UrlId>,
    visited: Vec<bool>,
    /// The host of each URL.
    hosts: Vec<HostId>,
    /// The pages that redirects and duplicates share an account with.
    aliases: HashMap<UrlId, UrlId>,
}

impl Credits {
    /// Visits all read pages over their stored links until the clock has moved on by a window; returns the rounds.
    ///
    /// # Errors
    /// When the store fails.
    pub fn settle(&mut self, state: &mut State) -> Result<u32, CreditError> {
        let links = state.totals().links.max(1);
        let affordable = u32::try_from(TRANSFERS_MAX / links).unwrap_or(u32::MAX).min(ROUNDS_MAX);
        if affordable == 0 || state.url_count() > URLS_MAX {
            return Ok(0);
        }
        let mut accounts = Accounts::read(state)?;
        let begun = self.pages.clock();
        let mut rounds = 0;
        while rounds < affordable
            && !accounts.read.is_empty()
            && self.pages.clock() < begun + self.pages.policy().window
        {
            self.round(state, &mut accounts)?;
            rounds += 1;
        }
        if rounds > 0 {
            accounts.write(state)?;
        }
        Ok(rounds)
    }

    fn round(&mut self, state: &State, accounts: &mut Accounts) -> Result<(), CreditError> {
        accounts.visited.fill(false);
        let weights = *self.link_weights();
        let mut paid: Vec<(UrlId, Weight)> = Vec::new();
        state.newest_links(|source, links| {
            let Some(Some(mut own)) = accounts.pages.get(source.index()).copied() else { return Ok(()) };
            if own.credit.is_none() {
                return Ok(());
            }
            paid.clear();
            paid.extend(links.iter().filter_map(|link| accounts.payee(source, link, &weights)));
            let sum = paid.iter().map(|(_, weight)| u64::from(weight.parts())).sum();
            let mut payout = self.pages.visit(&mut own, sum);
            accounts.pages[source.index()] = Some(own);
            accounts.visited[source.index()] = true;
            for &(target, weight) in &paid {
                if let Some(target) = &mut accounts.pages[target.index()] {
                    target.base = payout.pay(target.base, target.credit.is_some(), weight);
                }
            }
            payout.finish();
            Ok(())
        })?;
        for place in 0..accounts.read.len() {
            let page = accounts.read[place].index();
            if let Some(own) = accounts.pages[page].as_mut().filter(|_| !accounts.visited[page]) {
                // Without links: all cash goes back to the virtual page.
                self.pages.visit(own, 0).finish();
            }
        }
        Ok(())
    }
}

impl Accounts {
    fn read(state: &State) -> Result<Self, CreditError> {
        let urls = state.url_count() as usize;
        let mut pages = vec![None; urls];
        let mut read = Vec::new();
        let mut hosts = Vec::with_capacity(urls);
        let mut aliases = HashMap::new();
        for entry in state.pages(UrlId(0)) {
            let (id, page) = entry?;
            hosts.push(page.host);
            if page.flags.0 & flags::ACCOUNT != 0 {
                pages[id.index()] = Some(account(&page, None));
            } else if page.flags.0 & flags::ALIAS != 0
                && let Some(other) = account_of(state, id)?
            {
                aliases.insert(id, other);
            }
        }
        for entry in state.visits() {
            let (id, visit) = entry?;
            if let Some(own) = pages[id.index()].as_mut().filter(|own| own.credit.is_some()) {
                own.credit = Some(Credit::from_bytes(visit.credit));
                read.push(id);
            }
        }
        Ok(Self { pages, read, visited: vec![false; urls], hosts, aliases })
    }

    /// Whom a link pays, and what it weighs.
    fn payee(&self, source: UrlId, link: &LinkTarget, weights: &LinkWeights) -> Option<(UrlId, Weight)> {
        let code = LinkCode::from_byte(link.kind);
        let target = self.aliases.get(&link.target).copied().unwrap_or(link.target);
        let known = self.pages.get(target.index()).is_some_and(Option::is_some);
        let between_hosts = self.hosts.get(source.index()) != self.hosts.get(target.index());
        (code.carries_cash() && known).then(|| (target, weights.of(code.traits(between_hosts))))
    }

    fn write(&self, state: &mut State) -> Result<(), CreditError> {
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let Some(own) = self.pages[id.index()] else { continue };
            let mut page = state.page(id)?;
            if Base::from_stored(page.cash) != own.base {
                page.cash = own.base.to_stored();
                debug_assert_eq!(page.flags.0 & flags::READ != 0, own.credit.is_some());
                state.set_page(id, &page)?;
            }
        }
        for &id in &self.read {
            let credit = self.pages[id.index()].and_then(|own| own.credit);
            if let (Some(credit), Some(mut visit)) = (credit, state.visit(id)?) {
                visit.credit = credit.to_bytes();
                state.set_visit(id, &visit)?;
            }
        }
        Ok(())
    }
}

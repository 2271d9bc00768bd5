//! Rounds over the stored links: visits without a fetch.
//!
//! While pages are discovered, cash gathers on those that were read early; after one pass of fetches the estimates still
//! tell of a smaller web. A visit needs only a page's links, and the archive has them: going over the newest links of
//! every page for as long as the window of the estimates is makes them those of the web as it is known now. On a real
//! crawl of 6 000 pages the L1 error after the first pass falls from .61 to .17, Kendall's tau rises from .70 to .93
//! (`archive lab passes`).

use std::collections::HashMap;

use archive_storage::{HostId, LinkList, LinkTarget, LinksPosition, State, UrlId};

use super::credit::{CreditError, Credits};
use super::link_code::LinkCode;
use super::page_flags as flags;
use super::pay::account;
use super::standing::account_of;
use crate::importance::{Account, Base, Credit, LinkWeights, Weight};

/// Links over which cash is passed on at most: some seconds. A larger archive gets fewer rounds, at last none.
const TRANSFERS_MAX: u64 = 60_000_000;

/// URLs of an archive whose accounts are taken into memory, 56 bytes each.
const URLS_MAX: u32 = 20_000_000;

/// Rounds at most, however little cash moves.
const ROUNDS_MAX: u32 = 16;

/// What is known of a URL, in one place: where a link leads is somewhere else in memory than the link before.
#[derive(Clone, Copy)]
struct Entry {
    /// Nothing for a URL that is no page.
    account: Option<Account>,
    host: HostId,
    /// Where its newest links lie.
    links: Option<LinksPosition>,
}

/// The accounts of all pages in memory.
struct Accounts {
    urls: Vec<Entry>,
    /// The pages that were read, and among them those whose links were found in this round.
    read: Vec<UrlId>,
    visited: Vec<bool>,
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
        let (mut scan, mut list) = (state.all_links(), LinkList::default());
        while scan.read_next(&mut list)? {
            let Some(source) = list.source else { continue };
            let Some(&Entry { account: Some(mut own), host, links }) = accounts.urls.get(source.index())
            else {
                continue;
            };
            if own.credit.is_none() || links != list.position {
                continue;
            }
            paid.clear();
            paid.extend(list.links.iter().filter_map(|link| accounts.payee(host, link, &weights)));
            let sum = paid.iter().map(|(_, weight)| u64::from(weight.parts())).sum();
            let mut payout = self.pages.visit(&mut own, sum);
            accounts.urls[source.index()].account = Some(own);
            accounts.visited[source.index()] = true;
            for &(target, weight) in &paid {
                if let Some(target) = &mut accounts.urls[target.index()].account {
                    target.base = payout.pay(target.base, target.credit.is_some(), weight);
                }
            }
            payout.finish();
        }
        for place in 0..accounts.read.len() {
            let page = accounts.read[place].index();
            if let Some(own) = accounts.urls[page].account.as_mut().filter(|_| !accounts.visited[page]) {
                // Without links: all cash goes back to the virtual page.
                self.pages.visit(own, 0).finish();
            }
        }
        Ok(())
    }
}

impl Accounts {
    fn read(state: &State) -> Result<Self, CreditError> {
        let count = state.url_count() as usize;
        let mut urls = Vec::with_capacity(count);
        let mut read = Vec::new();
        let mut aliases = HashMap::new();
        for entry in state.pages(UrlId(0)) {
            let (id, page) = entry?;
            let is_account = page.flags.0 & flags::ACCOUNT != 0;
            if !is_account
                && page.flags.0 & flags::ALIAS != 0
                && let Some(other) = account_of(state, id)?
            {
                aliases.insert(id, other);
            }
            let account = is_account.then(|| account(&page, None));
            urls.push(Entry { account, host: page.host, links: None });
        }
        for entry in state.visits() {
            let (id, visit) = entry?;
            let entry = &mut urls[id.index()];
            entry.links = visit.links;
            if let Some(own) = entry.account.as_mut().filter(|own| own.credit.is_some()) {
                own.credit = Some(Credit::from_bytes(visit.credit));
                read.push(id);
            }
        }
        Ok(Self { urls, read, visited: vec![false; count], aliases })
    }

    /// Whom a link of a page at `host` pays, and what it weighs.
    fn payee(&self, host: HostId, link: &LinkTarget, weights: &LinkWeights) -> Option<(UrlId, Weight)> {
        let code = LinkCode::from_byte(link.kind);
        if !code.carries_cash() {
            return None;
        }
        let mut target = link.target;
        let mut entry = self.urls.get(target.index())?;
        if entry.account.is_none() {
            target = *self.aliases.get(&target)?;
            entry = self.urls.get(target.index()).filter(|entry| entry.account.is_some())?;
        }
        Some((target, weights.of(code.traits(entry.host != host))))
    }

    fn write(&self, state: &mut State) -> Result<(), CreditError> {
        for number in 0..state.url_count() {
            let id = UrlId(number);
            let Some(own) = self.urls[id.index()].account else { continue };
            let mut page = state.page(id)?;
            if Base::from_stored(page.cash) != own.base {
                page.cash = own.base.to_stored();
                debug_assert_eq!(page.flags.0 & flags::READ != 0, own.credit.is_some());
                state.set_page(id, &page)?;
            }
        }
        for &id in &self.read {
            let credit = self.urls[id.index()].account.and_then(|own| own.credit);
            if let (Some(credit), Some(mut visit)) = (credit, state.visit(id)?) {
                visit.credit = credit.to_bytes();
                state.set_visit(id, &visit)?;
            }
        }
        Ok(())
    }
}

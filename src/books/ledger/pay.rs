//! Payments: from a page along its links, and from its site along those that lead to other sites.

use archive_math::importance::{Base, CashAccount, Credit, SiteAccount, Weight};
use archive_storage::{Page, Site, SiteId, State, UrlId, Visit};

use super::credit::{CreditError, Credits};
use super::page_flags as flags;

/// Flags of a site: its account was read; one of its pages links to another site.
const SITE_READ: u16 = 1;
const SITE_LINKING: u16 = 1 << 1;

impl Credits {
    /// Pays a page's cash along the resolved links.
    pub(super) fn pay_pages(&mut self, state: &mut State, id: UrlId) -> Result<(), CreditError> {
        let mut page = state.page(id)?;
        let mut visit = state.visit(id)?.unwrap_or_default();
        let mut own = account(&page, Some(&visit));
        let weights = self.targets.iter().map(|target| u64::from(target.weight.parts())).sum();
        let Self { pages, targets, transfers, .. } = self;
        let mut payout = pages.visit(&mut own, weights);
        page.cash = own.base.to_stored();
        page.flags.set(flags::READ, true);
        state.set_page(id, &page)?;
        visit.credit = own.credit.unwrap_or_default().to_bytes();
        state.set_visit(id, &visit)?;
        for target in targets.iter().filter(|target| target.weight != Weight::NONE) {
            let mut page = state.page(target.account)?;
            let read = page.flags.has_any(flags::READ);
            let base = Base::from_stored(page.cash);
            page.cash = payout.pay_with_bonus(base, read, target.weight, target.bonus).to_stored();
            state.set_page(target.account, &page)?;
            if let Some(transfers) = transfers {
                transfers.note(target.account, &page);
            }
        }
        payout.finish();
        Ok(())
    }

    /// Pays the cash of the page's site along the links that lead to other sites.
    pub(super) fn pay_sites(&mut self, state: &mut State, id: UrlId) -> Result<(), CreditError> {
        let own = self.know_site(state, id)?;
        let mut outside: Vec<SiteId> = Vec::new();
        for place in 0..self.targets.len() {
            let target = self.targets[place];
            if target.weight == Weight::NONE {
                continue;
            }
            let site = self.know_site(state, target.account)?;
            if site != own {
                outside.push(site);
            }
        }
        let mut record = state.site(own)?;
        let mut books = site_account(&record);
        let weight = Weight::LINK;
        let payout = books.visit(&mut self.sites, outside.len() as u64 * u64::from(weight.parts()));
        store_site_account(&mut record, &books);
        state.set_site(own, &record)?;
        if let Some(mut payout) = payout {
            for site in outside {
                let mut record = state.site(site)?;
                let read = site_account(&record).account.credit.is_some();
                record.cash = payout.pay(Base::from_stored(record.cash), read, weight).to_stored();
                state.set_site(site, &record)?;
            }
            payout.finish();
        }
        Ok(())
    }
}

/// Returns the account of a page in the form that the ledger uses.
pub(super) fn account(page: &Page, visit: Option<&Visit>) -> CashAccount {
    let read = page.flags.has_any(flags::READ);
    let credit = visit.filter(|_| read).map(|visit| Credit::from_bytes(visit.credit));
    CashAccount { base: Base::from_stored(page.cash), credit: credit.or(read.then(Credit::default)) }
}

/// Returns the account of a site in the form that the ledger uses.
pub(super) fn site_account(site: &Site) -> SiteAccount {
    let credit = (site.flags & SITE_READ != 0).then(|| Credit::from_bytes(site.credit));
    SiteAccount {
        account: CashAccount { base: Base::from_stored(site.cash), credit },
        linking: site.flags & SITE_LINKING != 0,
    }
}

/// Writes a site's account into its record.
pub(super) fn store_site_account(site: &mut Site, books: &SiteAccount) {
    site.cash = books.account.base.to_stored();
    site.credit = books.account.credit.unwrap_or_default().to_bytes();
    site.flags = if books.account.credit.is_some() { SITE_READ } else { 0 };
    site.flags |= if books.linking { SITE_LINKING } else { 0 };
}

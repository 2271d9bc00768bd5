//! Payments: from a page along its links, and from its site along those that lead to other sites.

use archive_math::importance::{Base, Weight};
use archive_storage::{SiteId, State, UrlId};

use super::account::{account, site_account, store_site_account};
use super::credit::Credits;
use super::error::CreditError;
use super::page_flags as flags;

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

//! Transfers of cash in the ledger, whose speed `benches/importance.rs` measures.

use archive_math::graphs::LinkSource;
use archive_math::importance::{Base, CashAccount, Credit, Ledger, Policy, Weight};

/// The accounts of all pages in memory, as compact as in a crawler: slightly more than 24 bytes per page.
struct Accounts {
    bases: Vec<Base>,
    credits: Vec<Credit>,
    read: Vec<u64>,
}

impl Accounts {
    fn is_read(&self, page: u32) -> bool {
        self.read[page as usize / 64] >> (page % 64) & 1 == 1
    }

    fn get(&self, page: u32) -> CashAccount {
        let credit = self.is_read(page).then(|| self.credits[page as usize]);
        CashAccount { base: self.bases[page as usize], credit }
    }

    fn set(&mut self, page: u32, account: &CashAccount) {
        self.bases[page as usize] = account.base;
        if let Some(credit) = account.credit {
            self.credits[page as usize] = credit;
            self.read[page as usize / 64] |= 1 << (page % 64);
        }
    }
}

/// Visits the pages of `web` in turn, all known from the start, until `visits` are done. Returns the number of links that
/// received cash.
pub fn run(web: &dyn LinkSource, visits: u64) -> u64 {
    let pages = web.pages();
    let mut ledger = Ledger::new(Policy::neutral());
    let mut accounts = Accounts {
        bases: (0..pages).map(|_| ledger.discover().base).collect(),
        credits: vec![Credit::default(); pages],
        read: vec![0; pages.div_ceil(64)],
    };
    ledger.hand_out();
    let mut buffer = Vec::new();
    let mut transfers = 0;
    for visit in 0..visits {
        let page = (visit % pages.max(1) as u64) as u32;
        let links = web.links(page, &mut buffer);
        let mut account = accounts.get(page);
        let mut payout = ledger.visit(&mut account, links.len() as u64 * u64::from(Weight::LINK.parts()));
        accounts.set(page, &account);
        for &target in links {
            let read = accounts.is_read(target);
            let base = &mut accounts.bases[target as usize];
            *base = payout.pay(*base, read, Weight::LINK);
        }
        transfers += links.len() as u64;
        payout.finish();
    }
    transfers
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::graphs::HostWeb;

    #[test]
    fn every_link_is_paid_once() {
        let web = HostWeb::new(2000, 8.0, 3);
        let links: usize = (0..2000).map(|page| web.links(page, &mut Vec::new()).len()).sum();
        assert_eq!(run(&web, 4000), 2 * links as u64);
    }
}

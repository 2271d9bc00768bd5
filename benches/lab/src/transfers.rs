//! Transfers of cash per second in the ledger: the cost of importance for a crawl.

use std::time::Instant;

use archive_math::graphs::Web;
use archive_math::importance::{Account, Base, Credit, Ledger, Policy, Weight};

/// Shortest time that can be measured reliably, given the resolution of clocks and the noise of schedulers.
const LEDGER_SECONDS_MIN: f64 = 1e-4;

/// Amount of work and the time it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfers {
    /// Number of pages with an account.
    pub pages: usize,
    /// Number of visited pages.
    pub visits: u64,
    /// Number of links that received cash.
    pub transfers: u64,
    /// Time of the visits, including reading (or generating) the links.
    pub seconds: f64,
    /// Time of only reading (or generating) the same links.
    pub link_seconds: f64,
    /// Clock G at the end.
    pub clock: f64,
}

impl Transfers {
    /// Returns the time of the ledger's own work; `None` if it is too short to be measured next to that of reading the
    /// links.
    #[must_use]
    pub fn ledger_seconds(&self) -> Option<f64> {
        Some(self.seconds - self.link_seconds).filter(|seconds| *seconds >= LEDGER_SECONDS_MIN)
    }
}

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

    fn get(&self, page: u32) -> Account {
        let credit = self.is_read(page).then(|| self.credits[page as usize]);
        Account { base: self.bases[page as usize], credit }
    }

    fn set(&mut self, page: u32, account: &Account) {
        self.bases[page as usize] = account.base;
        if let Some(credit) = account.credit {
            self.credits[page as usize] = credit;
            self.read[page as usize / 64] |= 1 << (page % 64);
        }
    }
}

/// Visits the pages of `web` in turn, all known from the start, until `visits` are done.
pub fn run(web: &dyn Web, visits: u64) -> Transfers {
    let pages = web.pages();
    let mut ledger = Ledger::new(Policy::neutral());
    let mut accounts = Accounts {
        bases: (0..pages).map(|_| ledger.discover().base).collect(),
        credits: vec![Credit::default(); pages],
        read: vec![0; pages.div_ceil(64)],
    };
    ledger.hand_out();
    let mut buffer = Vec::new();
    let page_of = |visit: u64| (visit % pages.max(1) as u64) as u32;
    let start = Instant::now();
    let mut sum = 0u64;
    for visit in 0..visits {
        sum = sum
            .wrapping_add(web.links(page_of(visit), &mut buffer).iter().map(|&link| u64::from(link)).sum());
    }
    // Using the sum keeps the compiler from removing the reads of the links.
    std::hint::black_box(sum);
    let link_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut transfers = 0;
    for visit in 0..visits {
        let page = page_of(visit);
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
    Transfers {
        pages,
        visits,
        transfers,
        seconds: start.elapsed().as_secs_f64(),
        link_seconds,
        clock: ledger.clock(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::graphs::HostWeb;

    #[test]
    fn every_link_is_paid_once() {
        let web = HostWeb::new(2000, 8.0, 3);
        let found = run(&web, 4000);
        let links: usize = (0..2000).map(|page| web.links(page, &mut Vec::new()).len()).sum();
        assert_eq!(found.transfers, 2 * links as u64);
        assert!(found.clock > 2.0);
    }

    #[test]
    fn what_is_too_short_to_be_measured_has_no_speed() {
        let found = |seconds, link_seconds| {
            Transfers { pages: 1, visits: 1, transfers: 1, seconds, link_seconds, clock: 1.0 }
                .ledger_seconds()
        };
        assert_eq!(found(1.5, 0.5), Some(1.0));
        for seconds in [0.5, 0.500_01, 0.4] {
            assert_eq!(found(seconds, 0.5), None);
        }
    }
}

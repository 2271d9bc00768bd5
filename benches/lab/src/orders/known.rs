//! The order of cash (OPIC).

use archive_books::ledger::{LEVEL_SEED_CASH, level_of};
use archive_math::importance::order::{DownloadOrder, OrderLink, PageQueue, PageStage, PerPage};
use archive_math::importance::{Base, CashAccount, Ledger, Policy, Weight};

/// Most cash first, by the same ledger and in the same levels as the crawler.
#[derive(Debug)]
pub struct GreedyCash {
    ledger: Ledger,
    weight_between_hosts: Weight,
    accounts: PerPage<(i64, PageStage)>,
}

impl GreedyCash {
    /// Creates an order with this policy, in which a link to another host weighs `between_hosts` links.
    #[must_use]
    pub fn new(policy: Policy, between_hosts: f64) -> Self {
        Self {
            ledger: Ledger::new(policy),
            weight_between_hosts: Weight::links(between_hosts),
            accounts: PerPage::default(),
        }
    }
}

impl DownloadOrder for GreedyCash {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        for &seed in seeds {
            *self.accounts.at(seed) = (self.ledger.discover_seed().base.to_stored(), PageStage::Waiting);
            queue.put(seed, f64::from(LEVEL_SEED_CASH));
        }
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        let between_hosts = self.weight_between_hosts;
        let weight = |link: &OrderLink| if link.between_hosts { between_hosts } else { Weight::LINK };
        let weights = links.iter().map(|link| u64::from(weight(link).parts())).sum();
        let (base, _) = self.accounts.get(page);
        let mut account = CashAccount { base: Base::from_stored(base), credit: None };
        let mut payout = self.ledger.visit(&mut account, weights);
        *self.accounts.at(page) = (account.base.to_stored(), PageStage::Downloaded);
        for link in links {
            let entry = self.accounts.at(link.target);
            if entry.1 == PageStage::Unknown {
                *entry = (payout.discover().base.to_stored(), PageStage::Waiting);
            }
            let read = entry.1 == PageStage::Downloaded;
            entry.0 = payout.pay(Base::from_stored(entry.0), read, weight(link)).to_stored();
        }
        payout.finish();
        for link in links {
            let (base, stage) = self.accounts.get(link.target);
            if stage == PageStage::Waiting {
                let account = CashAccount { base: Base::from_stored(base), credit: None };
                queue.put(link.target, f64::from(level_of(self.ledger.cash(&account).units())));
            }
        }
    }
}

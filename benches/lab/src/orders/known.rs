//! Orders that estimate importance during the crawl: cash (OPIC), and PageRank of the known graph.

use archive_math::importance::order::{DAMPING, DownloadOrder, OrderLink, PageQueue, PageStage, PerPage};
use archive_math::importance::{Base, Cash, CashAccount, Ledger, Policy, Weight};

use super::SimulatedOrder;
use super::mass::KeptLinks;
use super::queue::PriorityQueue;

/// Most cash first, by the same ledger as the crawler.
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

/// Compares bases instead of cash: what the virtual page gives to all waiting pages does not change their order.
fn priority(base: i64) -> f64 {
    base as f64 / Cash::WHOLE.units() as f64
}

impl DownloadOrder for GreedyCash {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        for &seed in seeds {
            *self.accounts.at(seed) = (self.ledger.discover().base.to_stored(), PageStage::Waiting);
        }
        // Seeds hold equal amounts, and less than the targets of the first one, but must come first.
        seeds.iter().for_each(|&seed| queue.put(seed, f64::INFINITY));
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
            if !read {
                queue.put(link.target, priority(entry.0));
            }
        }
        payout.finish();
    }
}

/// Highest PageRank in the known graph first; recomputed when the downloaded part has grown by a tenth (Cho,
/// Garcia-Molina, Page, "Efficient crawling through URL ordering", 1998).
#[derive(Debug, Default)]
pub struct PageRankSoFar {
    links: KeptLinks,
    known: PerPage<bool>,
    pages: Vec<u32>,
    ranks: PerPage<f64>,
    next: PerPage<f64>,
    computed_at: usize,
    operations: u64,
}

/// Growth factor of the downloaded part after which ranks are recomputed.
const GROWTH: f64 = 1.1;

/// Number of sweeps per computation, starting from the last ranks.
const SWEEPS: usize = 8;

impl PageRankSoFar {
    fn know(&mut self, page: u32) -> bool {
        let new = !std::mem::replace(self.known.at(page), true);
        if new {
            self.pages.push(page);
            // It counts as an average page until ranks are computed.
            *self.ranks.at(page) = 1.0;
        }
        new
    }

    /// Computes ranks with mean 1; a page that was not downloaded gives to all pages equally.
    fn compute(&mut self) {
        for _ in 0..SWEEPS {
            let mut given = 0.0;
            for &page in &self.pages {
                *self.next.at(page) = 0.0;
            }
            for place in 0..self.links.len() {
                let (page, targets) = self.links.at(place);
                let rank = self.ranks.get(page);
                self.operations += targets.len() as u64;
                if !targets.is_empty() {
                    given += DAMPING * rank;
                    let gift = DAMPING * rank / targets.len() as f64;
                    targets.iter().for_each(|&target| *self.next.at(target) += gift);
                }
            }
            let pages = self.pages.len() as f64;
            let total: f64 = self.pages.iter().map(|&page| self.ranks.get(page)).sum();
            let jump = (total - given) / pages;
            for &page in &self.pages {
                *self.ranks.at(page) = (self.next.get(page) + jump) * pages / total;
            }
        }
        self.computed_at = self.links.len();
    }
}

impl SimulatedOrder for PageRankSoFar {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PriorityQueue) {
        for &seed in seeds {
            self.know(seed);
            queue.put(seed, 1.0);
        }
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PriorityQueue) {
        self.links.keep(page, links);
        for link in links {
            if self.know(link.target) {
                // It waits after all ranked pages until ranks are recomputed.
                queue.put(link.target, 0.0);
            }
        }
        if self.links.len() as f64 >= GROWTH * self.computed_at as f64 {
            self.compute();
            for &page in &self.pages {
                if !self.links.contains(page) {
                    queue.put(page, self.ranks.get(page));
                }
            }
        }
    }

    fn operations(&self) -> Option<u64> {
        Some(self.operations)
    }
}

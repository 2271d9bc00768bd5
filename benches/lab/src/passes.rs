//! Quality of a crawl's importance after each pass over a web that the crawl itself discovers.
//!
//! Unlike in [`convergence`](super::convergence), only the seeds are known at the beginning. The first pass downloads
//! what it finds, most cash first; later passes fetch every page again. In between, the ledger may go over the stored
//! links without fetching: a *round*.

use archive_math::importance::order::PageQueue as _;
use archive_math::importance::{Cash, CashAccount, Graph, Ledger, Policy, Weight};

use super::LabError;
use super::agreement;
use super::convergence::{Error, exact};
use super::orders::{ExactQueue, PriorityQueue as _};

/// Number of pages in the comparison of the most important ones.
const TOP: usize = 100;

/// Estimates compared with the exact vector of the discovered graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Number of finished passes.
    pub pass: usize,
    /// The clock G.
    pub clock: f64,
    /// Difference to the exact vector.
    pub error: Error,
    /// Kendall's tau of the two orders, from a sample of pairs: 1 for the same order, 0 for unrelated ones.
    pub tau: f64,
    /// Number of the 100 most important pages that are among the best 100 estimates.
    pub top: usize,
}

/// Crawls `graph` from `seeds` for `passes`; each pass is followed by `rounds` over the stored links.
///
/// # Errors
/// None for a graph in memory.
pub fn run(
    graph: &Graph,
    seeds: &[u32],
    policy: Policy,
    passes: usize,
    rounds: usize,
) -> Result<Vec<Quality>, LabError> {
    let mut crawl = Crawl {
        graph,
        ledger: Ledger::new(policy),
        accounts: vec![None; graph.pages()],
        downloads: Vec::new(),
        queue: ExactQueue::default(),
    };
    crawl.first_pass(seeds);
    let mut qualities = Vec::new();
    let exact = exact(&agreement::part(graph, &crawl.downloads)?, 1)?;
    for pass in 1..=passes {
        if pass > 1 {
            crawl.round();
        }
        (0..rounds).for_each(|_| crawl.round());
        qualities.push(crawl.quality(pass, &exact));
    }
    Ok(qualities)
}

struct Crawl<'a> {
    graph: &'a Graph,
    ledger: Ledger,
    accounts: Vec<Option<CashAccount>>,
    /// Pages in download order.
    downloads: Vec<u32>,
    queue: ExactQueue,
}

impl Crawl<'_> {
    fn first_pass(&mut self, seeds: &[u32]) {
        for &seed in seeds {
            self.accounts[seed as usize] = Some(self.ledger.discover());
            self.queue.put(seed, f64::INFINITY);
        }
        while let Some(page) = self.queue.take() {
            self.downloads.push(page);
            self.visit(page);
        }
    }

    /// Visits every downloaded page, in download order.
    fn round(&mut self) {
        for place in 0..self.downloads.len() {
            self.visit(self.downloads[place]);
        }
    }

    fn visit(&mut self, page: u32) {
        let targets = self.graph.targets(page as usize);
        let weights = targets.len() as u64 * u64::from(Weight::LINK.parts());
        let Some(mut account) = self.accounts[page as usize] else { return };
        let mut payout = self.ledger.visit(&mut account, weights);
        self.accounts[page as usize] = Some(account);
        for &target in targets {
            let paid = self.accounts[target as usize].get_or_insert_with(|| payout.discover());
            paid.base = payout.pay(paid.base, paid.credit.is_some(), Weight::LINK);
            if paid.credit.is_none() {
                self.queue.put(target, paid.base.to_stored() as f64 / Cash::WHOLE.units() as f64);
            }
        }
        payout.finish();
    }

    fn quality(&self, pass: usize, exact: &[f64]) -> Quality {
        let importance =
            |&page: &u32| self.accounts[page as usize].map_or(0.0, |a| self.ledger.importance(&a));
        let mut found: Vec<f64> = self.downloads.iter().map(importance).collect();
        let sum: f64 = found.iter().sum();
        found.iter_mut().for_each(|value| *value /= sum);
        Quality {
            pass,
            clock: self.ledger.clock(),
            error: Error::between(&found, exact),
            tau: agreement::tau(&found, exact),
            top: agreement::top(&found, exact, TOP),
        }
    }
}

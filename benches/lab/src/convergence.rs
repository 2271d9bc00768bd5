//! OPIC compared with the exact vector: the papers' figures 2 and 3, and the table of errors by visits per page.
//!
//! The simulation runs the crawler's own [`Ledger`]; only the histories and the choice of the next page belong to the
//! lab.

use std::collections::{HashMap, HashSet};

use archive_math::graphs::random::Random;
use archive_math::importance::rank::{Damping, PageRank, RankError};
use archive_math::importance::{CashAccount, Graph, GraphBuilder, GraphError, Ledger, Policy, Weight};

use super::agreement::best_first;
use super::window::{CreditHistory, WindowPolicy};

/// Rule that selects the next page to visit; random ones are all equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Selection {
    /// A random page
    Random,
    /// All pages in turn
    Cycle,
    /// The page with the most cash
    Greedy,
}

impl Selection {
    /// All three rules.
    pub const ALL: [Self; 3] = [Self::Random, Self::Cycle, Self::Greedy];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Cycle => "cycle",
            Self::Greedy => "greedy",
        }
    }
}

/// OPIC on a web that may change during the run. All pages are known from the start.
#[derive(Debug)]
pub struct Simulation {
    links: Vec<Vec<u32>>,
    ledger: Ledger,
    accounts: Vec<CashAccount>,
    histories: Vec<CreditHistory>,
    window: WindowPolicy,
    selection: Selection,
    random: Random,
    next: u32,
    richest: Richest,
}

impl Simulation {
    /// Creates a simulation on this graph, whose weights are ignored.
    #[must_use]
    pub fn new(graph: &Graph, policy: Policy, window: WindowPolicy, selection: Selection, seed: u64) -> Self {
        let mut ledger = Ledger::new(policy);
        let accounts: Vec<CashAccount> = (0..graph.pages()).map(|_| ledger.discover()).collect();
        // The initial cash of pages stands for the turn of G before the first visit.
        let histories = vec![window.begin(-1.0); graph.pages()];
        let richest = Richest::new(&accounts);
        Self {
            links: (0..graph.pages()).map(|page| graph.targets(page).to_vec()).collect(),
            ledger,
            accounts,
            histories,
            window,
            selection,
            random: Random::new(seed),
            next: 0,
            richest,
        }
    }

    /// Visits `count` pages.
    pub fn run(&mut self, count: usize) {
        for _ in 0..count {
            let page = self.select();
            self.visit(page);
        }
    }

    /// Returns the clock G.
    #[must_use]
    pub fn clock(&self) -> f64 {
        self.ledger.clock()
    }

    /// Returns the estimated share of each page; the shares sum to 1.
    #[must_use]
    pub fn estimate(&self) -> Vec<f64> {
        let clock = self.ledger.clock();
        let rate = |(account, history): (&CashAccount, &CreditHistory)| {
            self.window.rate(history, self.ledger.cash(account).share(), clock)
        };
        let mut rates: Vec<f64> = self.accounts.iter().zip(&self.histories).map(rate).collect();
        let sum: f64 = rates.iter().sum();
        rates.iter_mut().for_each(|rate| *rate /= sum);
        rates
    }

    /// Returns the mean number of values stored per page.
    #[must_use]
    pub fn measures(&self) -> f64 {
        self.histories.iter().map(WindowPolicy::measures).sum::<usize>() as f64
            / self.histories.len().max(1) as f64
    }

    /// Changes each of these pages: halves its number of in-links, or doubles it with links from random pages, with
    /// equal probability. This is the paper's "significant" change.
    pub fn change(&mut self, pages: &[u32]) {
        let changing: HashSet<u32> = pages.iter().copied().collect();
        let mut linking: HashMap<u32, Vec<u32>> = pages.iter().map(|&page| (page, Vec::new())).collect();
        for (source, targets) in self.links.iter().enumerate() {
            for target in targets.iter().filter(|target| changing.contains(target)) {
                linking.entry(*target).or_default().push(source as u32);
            }
        }
        for &page in pages {
            let linking = linking.remove(&page).unwrap_or_default();
            if self.random.unit() < 0.5 {
                for _ in 0..linking.len().max(1) {
                    let source = self.random.below(self.links.len() as u32) as usize;
                    if let Err(place) = self.links[source].binary_search(&page) {
                        self.links[source].insert(place, page);
                    }
                }
            } else {
                for source in linking {
                    if self.random.unit() < 0.5 {
                        self.links[source as usize].retain(|&target| target != page);
                    }
                }
            }
        }
    }

    /// Returns the current graph.
    ///
    /// # Errors
    /// Changes made the graph too large.
    pub fn graph(&self) -> Result<Graph, GraphError> {
        let mut builder = GraphBuilder::new(self.links.len(), false);
        for (source, targets) in self.links.iter().enumerate() {
            targets.iter().try_for_each(|&target| builder.push(source as u32, target, 1.0))?;
        }
        Ok(builder.finish())
    }

    fn select(&mut self) -> u32 {
        let pages = self.accounts.len() as u32;
        match self.selection {
            Selection::Random => self.random.below(pages),
            Selection::Cycle => {
                let page = self.next;
                self.next = (page + 1) % pages;
                page
            }
            Selection::Greedy => self.richest.page(),
        }
    }

    fn visit(&mut self, page: u32) {
        let place = page as usize;
        let cash = self.ledger.cash(&self.accounts[place]).share();
        let targets = &self.links[place];
        let weights = targets.len() as u64 * u64::from(Weight::LINK.parts());
        let mut account = self.accounts[place];
        let mut payout = self.ledger.visit(&mut account, weights);
        self.accounts[place] = account;
        for &target in targets {
            let paid = &mut self.accounts[target as usize];
            paid.base = payout.pay(paid.base, paid.credit.is_some(), Weight::LINK);
        }
        payout.finish();
        self.window.visit(&mut self.histories[place], cash, self.ledger.clock());
        if self.selection == Selection::Greedy {
            self.richest.set(page, account.base.to_stored());
            for &target in &self.links[place] {
                self.richest.set(target, self.accounts[target as usize].base.to_stored());
            }
        }
    }
}

/// A heap of all pages by their base, with each page's position, so that cash can rise and fall in O(log n).
///
/// Bases of read and unread pages are compared although they have separate offsets: with a neutral policy, both offsets
/// are always equal.
#[derive(Debug)]
struct Richest {
    heap: Vec<u32>,
    places: Vec<u32>,
    bases: Vec<i64>,
}

impl Richest {
    fn new(accounts: &[CashAccount]) -> Self {
        // All pages have the same cash, so any order is a heap.
        let numbers: Vec<u32> = (0..accounts.len() as u32).collect();
        let bases = accounts.iter().map(|account| account.base.to_stored()).collect();
        Self { heap: numbers.clone(), places: numbers, bases }
    }

    fn page(&self) -> u32 {
        self.heap[0]
    }

    fn set(&mut self, page: u32, base: i64) {
        let before = std::mem::replace(&mut self.bases[page as usize], base);
        let place = self.places[page as usize] as usize;
        if base > before {
            self.up(place);
        } else {
            self.down(place);
        }
    }

    fn base(&self, place: usize) -> i64 {
        self.bases[self.heap[place] as usize]
    }

    fn up(&mut self, mut place: usize) {
        while place > 0 && self.base((place - 1) / 2) < self.base(place) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn down(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..2 * place + 3).filter(|&child| child < self.heap.len());
            let Some(richer) = children.max_by_key(|&child| self.base(child)) else { return };
            if self.base(richer) <= self.base(place) {
                return;
            }
            self.swap(place, richer);
            place = richer;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a] as usize] = a as u32;
        self.places[self.heap[b] as usize] = b as u32;
    }
}

/// Difference between an estimate and the exact vector. Both sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Error {
    /// Sum of absolute differences.
    pub l1: f64,
    /// Mean over pages of the difference relative to the exact value: the paper's error.
    pub relative: f64,
    /// The same over the most important tenth of pages.
    pub relative_top: f64,
    /// Sum of absolute differences over this tenth, relative to its total importance.
    pub l1_top: f64,
}

impl Error {
    /// Compares an estimate with the exact vector.
    #[must_use]
    pub fn between(estimate: &[f64], exact: &[f64]) -> Self {
        let pages = best_first(exact);
        let top = &pages[..exact.len().div_ceil(10)];
        let difference = |page: usize| (estimate[page] - exact[page]).abs();
        let mean = |pages: &[usize]| {
            pages.iter().map(|&page| difference(page) / exact[page]).sum::<f64>() / pages.len().max(1) as f64
        };
        let held: f64 = top.iter().map(|&page| exact[page]).sum();
        Self {
            l1: pages.iter().map(|&page| difference(page)).sum(),
            relative: mean(&pages),
            relative_top: mean(top),
            l1_top: top.iter().map(|&page| difference(page)).sum::<f64>() / held,
        }
    }
}

/// Returns the exact vector that OPIC converges to.
///
/// # Errors
/// None with these options.
pub fn exact(graph: &Graph, threads: usize) -> Result<Vec<f64>, RankError> {
    // The bound holds for the worst damping of a page, which may be near 1; the true error is far smaller.
    let options = PageRank {
        damping: Damping::OneMoreLink,
        tolerance: 1e-7,
        iterations_max: 20_000,
        threads,
        ..PageRank::default()
    };
    Ok(options.run(graph.clone().unweighted())?.values)
}

/// Runs the off-line algorithm at the same cost: one plain iteration of the whole matrix for every `n` visits.
#[must_use]
pub fn off_line(graph: &Graph, iterations: usize) -> Vec<f64> {
    let pages = graph.pages();
    let mut x = vec![1.0 / (pages + 1) as f64; pages];
    let mut virtual_page = 1.0 / (pages + 1) as f64;
    for _ in 0..iterations {
        let mut next = vec![virtual_page / pages as f64; pages];
        virtual_page = 0.0;
        for (page, value) in x.iter().enumerate() {
            let targets = graph.targets(page);
            let share = value / (targets.len() + 1) as f64;
            virtual_page += share;
            targets.iter().for_each(|&target| next[target as usize] += share);
        }
        x = next;
    }
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|value| *value /= sum);
    x
}

/// Errors by visits per page, for one way to select pages or for the off-line algorithm.
#[derive(Clone, Debug)]
pub struct Curve {
    /// `random`, `cycle`, `greedy` or `off line`.
    pub name: &'static str,
    /// Visits per page, turns of G, and error.
    pub points: Vec<(usize, f64, Error)>,
}

/// Returns the curves of the papers' figures 2 and 3 for a graph: the errors at each of the ascending numbers of visits
/// per page.
///
/// # Errors
/// None with these options.
pub fn curves(graph: &Graph, visits: &[usize], seed: u64, threads: usize) -> Result<Vec<Curve>, RankError> {
    let exact = exact(graph, threads)?;
    let mut curves: Vec<Curve> = Selection::ALL
        .iter()
        .map(|&selection| {
            let mut simulation =
                Simulation::new(graph, Policy::neutral(), WindowPolicy::All, selection, seed);
            let mut done = 0;
            let point = |&visits: &usize| {
                simulation.run((visits - done) * graph.pages());
                done = visits;
                (visits, simulation.clock(), Error::between(&simulation.estimate(), &exact))
            };
            Curve { name: selection.name(), points: visits.iter().map(point).collect() }
        })
        .collect();
    let point = |&visits: &usize| (visits, visits as f64, Error::between(&off_line(graph, visits), &exact));
    curves.push(Curve { name: "off line", points: visits.iter().map(point).collect() });
    Ok(curves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;
    use archive_math::graphs;

    fn errors(graph: &Graph, selection: Selection, visits: &[usize]) -> Vec<f64> {
        let exact = exact(graph, 1).unwrap();
        let mut simulation = Simulation::new(graph, Policy::neutral(), WindowPolicy::All, selection, 1);
        let mut done = 0;
        visits
            .iter()
            .map(|&visits| {
                simulation.run((visits - done) * graph.pages());
                done = visits;
                Error::between(&simulation.estimate(), &exact).l1
            })
            .collect()
    }

    /// The errors measured for these graphs elsewhere (visits per page: 4, 8, 16, 32), as tight upper bounds.
    #[test]
    fn real_graphs_converge_as_measured() {
        let Some(data) = test_data("graphs/wb-cs.stanford") else { return };
        let graph = graphs::read(&data).unwrap().graph;
        let measured = [
            (Selection::Cycle, [0.231, 0.141, 0.078, 0.040]),
            (Selection::Random, [0.339, 0.238, 0.149, 0.080]),
            (Selection::Greedy, [0.110, 0.061, 0.030, 0.016]),
        ];
        for (selection, limits) in measured {
            let found = errors(&graph, selection, &[4, 8, 16, 32]);
            for (found, limit) in found.iter().zip(limits) {
                assert!(*found < 1.15 * limit, "{}: {found} instead of {limit}", selection.name());
            }
        }
    }

    /// The paper: a visit adds about 2/n to G if greedy, 1/n if random, and the error falls as 1/G.
    #[test]
    fn greedy_beats_random_by_two_on_every_real_graph() {
        for name in ["harvard500", "hollins", "california", "tsaparas-movies"] {
            let Some(data) = test_data(&format!("graphs/{name}")) else { return };
            let graph = graphs::read(&data).unwrap().graph.unweighted();
            let exact = exact(&graph, 1).unwrap();
            let mut greedy =
                Simulation::new(&graph, Policy::neutral(), WindowPolicy::All, Selection::Greedy, 1);
            let mut random =
                Simulation::new(&graph, Policy::neutral(), WindowPolicy::All, Selection::Random, 1);
            let mut last = f64::INFINITY;
            let mut done = 0;
            for (visits, factor) in [(4, 1.5), (8, 1.7), (16, 1.8)] {
                greedy.run((visits - done) * graph.pages());
                random.run((visits - done) * graph.pages());
                done = visits;
                let [by_greedy, by_random] =
                    [&greedy, &random].map(|simulation| Error::between(&simulation.estimate(), &exact));
                assert!(by_greedy.l1 < 0.7 * last, "{name}: {by_greedy:?} after {visits} visits");
                let ratios = (by_random.l1 / by_greedy.l1, by_random.l1_top / by_greedy.l1_top);
                assert!(ratios.0 > factor && ratios.1 > factor, "{name}: {ratios:?} after {visits} visits");
                last = by_greedy.l1;
            }
        }
    }

    #[test]
    fn the_richest_page_is_found_whatever_changes() {
        let graph =
            Graph::from_arcs(50, &(0..50).map(|page| (page, (page * 7 + 1) % 50)).collect::<Vec<_>>())
                .unwrap();
        let mut simulation =
            Simulation::new(&graph, Policy::neutral(), WindowPolicy::All, Selection::Greedy, 1);
        for _ in 0..500 {
            simulation.run(1);
            let cash = |page: usize| simulation.ledger.cash(&simulation.accounts[page]);
            let most = (0..50).map(cash).max().unwrap();
            assert_eq!(cash(simulation.richest.page() as usize), most);
        }
    }

    #[test]
    fn the_off_line_algorithm_has_the_same_fixed_point() {
        let Some(data) = test_data("graphs/harvard500") else { return };
        let graph = graphs::read(&data).unwrap().graph;
        let error = Error::between(&off_line(&graph, 3000), &exact(&graph, 1).unwrap());
        assert!(error.l1 < 1e-6 && error.relative < 1e-5, "{error:?}");
    }
}

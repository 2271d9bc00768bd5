//! Harmonic centrality, `H(y) = sum over x != y of 1 / d(x, y)` (Boldi, Vigna 2014), by which Common Crawl chooses
//! sites.
//!
//! Distances come from breadth-first searches, 64 at a time: each page has a word with one bit per search (Then et al.,
//! "The more the merrier", 2014). The result is exact if every page is a start; with a sample of starts the sums are
//! scaled up.

use rayon::prelude::*;

use super::super::graph::Graph;
use super::Ranking;

/// Number of searches that run together.
const SEARCHES: usize = 64;

/// The parameters of harmonic centrality.
#[derive(Clone, Debug, Default)]
pub struct Harmonic {
    /// Number of start pages, evenly spaced by number; all pages if `None`.
    pub samples: Option<usize>,
}

impl Harmonic {
    /// Computes the harmonic centrality of every page, unnormalised. The residual is the share of starts left out, 0 if
    /// exact.
    #[must_use]
    pub fn run(&self, graph: &Graph) -> Ranking {
        let pages = graph.pages();
        let count = self.samples.unwrap_or(pages).min(pages);
        let starts: Vec<u32> = (0..count).map(|start| (start * pages / count.max(1)) as u32).collect();
        let batches: Vec<&[u32]> = starts.chunks(SEARCHES).collect();
        // Each thread sums its own part of the batches, and the parts are added in order.
        let parts = rayon::current_num_threads().max(1);
        let part = |number: usize| {
            let mut search = BreadthSearch::new(pages);
            let mut sums = vec![0.0; pages];
            let mut arcs = 0;
            for batch in batches.iter().skip(number).step_by(parts) {
                arcs += search.run(graph, batch, &mut sums);
            }
            (sums, arcs)
        };
        let parts: Vec<(Vec<f64>, u64)> = (0..parts).into_par_iter().map(part).collect();
        let mut values = vec![0.0; pages];
        let mut operations = 0;
        for (sums, arcs) in parts {
            values.iter_mut().zip(sums).for_each(|(value, sum)| *value += sum);
            operations += arcs;
        }
        let share = if pages == 0 { 1.0 } else { count as f64 / pages as f64 };
        if share > 0.0 {
            values.iter_mut().for_each(|value| *value /= share);
        }
        Ranking { values, iterations: batches.len() as u32, residual: 1.0 - share, operations }
    }
}

/// The state of 64 searches.
struct BreadthSearch {
    seen: Vec<u64>,
    frontier: Vec<u64>,
    next: Vec<u64>,
    pages: Vec<u32>,
    next_pages: Vec<u32>,
}

impl BreadthSearch {
    fn new(pages: usize) -> Self {
        Self {
            seen: vec![0; pages],
            frontier: vec![0; pages],
            next: vec![0; pages],
            pages: Vec::new(),
            next_pages: Vec::new(),
        }
    }

    /// Searches from all `starts` and adds 1 / distance for each page reached; returns the number of arcs read.
    fn run(&mut self, graph: &Graph, starts: &[u32], sums: &mut [f64]) -> u64 {
        self.seen.fill(0);
        self.pages.clear();
        for (search, &start) in starts.iter().enumerate() {
            self.seen[start as usize] |= 1 << search;
            self.frontier[start as usize] |= 1 << search;
            self.pages.push(start);
        }
        let mut arcs = 0;
        let mut distance = 0.0;
        while !self.pages.is_empty() {
            distance += 1.0;
            for &page in &self.pages {
                let searches = std::mem::take(&mut self.frontier[page as usize]);
                arcs += graph.targets(page as usize).len() as u64;
                for &target in graph.targets(page as usize) {
                    let target = target as usize;
                    let new = searches & !self.seen[target];
                    if new != 0 {
                        if self.next[target] == 0 {
                            self.next_pages.push(target as u32);
                        }
                        self.next[target] |= new;
                    }
                }
            }
            self.pages.clear();
            for &page in &self.next_pages {
                let page = page as usize;
                let new = std::mem::take(&mut self.next[page]);
                self.seen[page] |= new;
                self.frontier[page] = new;
                sums[page] += f64::from(new.count_ones()) / distance;
            }
            std::mem::swap(&mut self.pages, &mut self.next_pages);
        }
        arcs
    }
}

use proptest::prelude::*;

use super::*;
use crate::importance::Graph;
use crate::importance::rank::{Damping, PageRank};

const DAMPING: Damping = Damping::Constant(0.85);

/// A graph, and for each page its part and its number there.
struct SplitGraph {
    graph: Graph,
    places: Vec<(u16, u32)>,
    counts: Vec<usize>,
}

/// Generates a random graph, every third page of which has no links, with pages assigned to random parts.
fn split(seed: u64, pages: usize, count: usize) -> SplitGraph {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut arcs = Vec::new();
    for from in (0..pages as u32).filter(|from| from % 3 != 0) {
        arcs.extend((0..random.u32(1..6)).map(|_| (from, random.u32(0..pages as u32))));
    }
    let mut counts = vec![0; count];
    let places = (0..pages).map(|_| {
        let part = random.usize(0..count);
        counts[part] += 1;
        (part as u16, counts[part] as u32 - 1)
    });
    SplitGraph { places: places.collect(), graph: Graph::from_arcs(pages, &arcs).unwrap(), counts }
}

impl SplitGraph {
    fn parts(&self, damping: Damping, folder: Option<&std::path::Path>) -> Vec<GraphPart> {
        let mut links = vec![Vec::new(); self.counts.len()];
        for (page, &(own, from)) in self.places.iter().enumerate() {
            let targets = self.graph.targets(page).iter().map(|target| self.places[*target as usize]);
            links[usize::from(own)].extend(targets.map(|(part, to)| PartLink {
                from,
                part,
                to,
                weight: 1.0,
            }));
        }
        let make = |(number, mut links): (usize, Vec<PartLink>)| {
            let mut part = GraphPart::new(number, self.counts[number], false, damping, folder).unwrap();
            links.sort_unstable_by_key(PartLink::target);
            let later = links.split_off(links.partition_point(|link| link.target() < (number as u16, 5)));
            [links, later].into_iter().for_each(|links| part.add(links).unwrap());
            part
        };
        let mut parts: Vec<GraphPart> = links.into_iter().enumerate().map(make).collect();
        GraphPart::connect(&mut parts);
        parts
    }

    /// Returns the L1 distance between values by part and values by page, when both sum to 1.
    fn error(&self, values: &[&[f64]], truth: &[f64]) -> f64 {
        let total: f64 = values.iter().flat_map(|values| values.iter()).sum();
        let value = |&(part, number): &(u16, u32)| values[usize::from(part)][number as usize] / total;
        self.places.iter().zip(truth).map(|(place, truth)| (value(place) - truth).abs()).sum()
    }

    fn truth(&self, damping: Damping) -> Vec<f64> {
        let exact = PageRank { damping, tolerance: 1e-14, ..PageRank::default() };
        exact.run(self.graph.clone()).unwrap().values
    }
}

#[test]
fn what_sweeps_cannot_lessen_ends_a_run() {
    for damping in [DAMPING, Damping::OneMoreLink] {
        let split = split(8, 300, 3);
        // Rounding errors alone are more than this tolerance.
        let outcome = Chaotic { tolerance: 0.0, sweeps_max: u32::MAX, threads: 2 };
        let outcome = outcome.run(split.parts(damping, None)).unwrap();
        let values: Vec<&[f64]> = outcome.values.iter().map(Vec::as_slice).collect();
        let error = split.error(&values, &split.truth(damping));
        assert!(error < 1e-12 && outcome.bound > 0.0 && outcome.bound < 1e-9, "{error}, {}", outcome.bound);
    }
}

#[test]
fn parts_rank_as_the_whole_does_in_memory_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for damping in [DAMPING, Damping::OneMoreLink] {
        for (count, folder) in [(1, None), (2, None), (4, None), (4, Some(folder.path()))] {
            let split = split(7, 3000, count);
            let truth = split.truth(damping);
            let chaotic = Chaotic { tolerance: 1e-10, sweeps_max: 1000, threads: 2 };
            let outcome = chaotic.run(split.parts(damping, folder)).unwrap();
            let values: Vec<&[f64]> = outcome.values.iter().map(Vec::as_slice).collect();
            let error = split.error(&values, &truth);
            println!(
                "{count} parts: error {error:.1e}, bound {:.1e}, {:.1} sweeps, {:.1} rounds, {:.1} bytes a page",
                outcome.bound,
                outcome.sweeps,
                outcome.rounds,
                outcome.bytes as f64 / 3000.0
            );
            assert!(outcome.bound <= 1e-10 && error <= outcome.bound + 1e-14, "{error} {}", outcome.bound);
            assert_eq!(outcome.bytes == 0, count == 1);
            assert!(outcome.sweeps < 400.0, "a part is not swept for nothing");
        }
    }
}

#[test]
fn a_run_that_is_cut_short_says_how_wrong_it_is() {
    let split = split(8, 500, 3);
    let truth = split.truth(DAMPING);
    let chaotic = Chaotic { tolerance: 1e-10, sweeps_max: 1, threads: 1 };
    let outcome = chaotic.run(split.parts(DAMPING, None)).unwrap();
    let values: Vec<&[f64]> = outcome.values.iter().map(Vec::as_slice).collect();
    let error = split.error(&values, &truth);
    assert!(outcome.bound > 1e-10 && error > 1e-10 && error <= outcome.bound, "{error} {}", outcome.bound);
}

#[test]
fn a_run_ends_without_pages_and_where_rounding_forbids_to_be_right() {
    let nothing = |number| GraphPart::new(number, 0, false, DAMPING, None).unwrap();
    for mut parts in [Vec::new(), vec![nothing(0), nothing(1)]] {
        GraphPart::connect(&mut parts);
        let outcome = Chaotic { tolerance: 0.0, sweeps_max: 10, threads: 2 }.run(parts).unwrap();
        assert!(outcome.bound == 0.0 && outcome.values.concat().is_empty());
    }
    let mut split = split(10, 300, 2);
    split.counts.push(0);
    let outcome =
        Chaotic { tolerance: 0.0, sweeps_max: 1000, threads: 2 }.run(split.parts(DAMPING, None)).unwrap();
    assert!(outcome.bound > 0.0 && outcome.bound < 1e-10, "{}", outcome.bound);
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let mut parts = split(9, 60, 2).parts(DAMPING, None);
    parts[0].sweep().unwrap();
    let batch = parts[0].send().unwrap().remove(0);
    let longer = FlowBatch { values: [batch.values.clone(), vec![1.0]].concat(), ..batch.clone() };
    let for_another = FlowBatch { to: 0, ..batch.clone() };
    let from_nobody = FlowBatch { from: 2, ..batch.clone() };
    for bad in [longer, for_another, from_nobody] {
        assert!(matches!(parts[1].hear(&bad), Err(PartError::Batch { .. })));
    }
    parts[1].hear(&batch).unwrap();
    let refused = GraphPart::new(0, 1, false, Damping::Constant(1.0), None);
    assert!(matches!(refused, Err(PartError::Rank(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Parts are swept, send and hear in any order; batches arrive late, repeatedly and in any order. Accounts may be
    /// old.
    #[test]
    fn the_bound_is_never_below_the_error(seed: u64, pages in 1usize..60, count in 1usize..5) {
        let split = split(seed, pages, count);
        let truth = split.truth(DAMPING);
        let mut parts = split.parts(DAMPING, None);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut batches: Vec<FlowBatch> = Vec::new();
        // The last report of each part, and its values at that time.
        let mut reported: Vec<(PartAccount, Vec<f64>)> =
            parts.iter().map(|part| (part.account(), part.values().to_vec())).collect();
        for _ in 0..400 {
            let part = random.usize(0..count);
            match random.u8(0..4) {
                0 => parts[part].sweep().unwrap(),
                1 => batches.extend(parts[part].send().unwrap()),
                2 if !batches.is_empty() => {
                    let batch = &batches[random.usize(0..batches.len())];
                    parts[batch.to].hear(batch).unwrap();
                }
                _ => reported[part] = (parts[part].account(), parts[part].values().to_vec()),
            }
            let now: Vec<PartAccount> = parts.iter().map(GraphPart::account).collect();
            let values: Vec<&[f64]> = parts.iter().map(GraphPart::values).collect();
            let then: Vec<PartAccount> = reported.iter().map(|(account, _)| account.clone()).collect();
            let old: Vec<&[f64]> = reported.iter().map(|(_, values)| values.as_slice()).collect();
            for (accounts, values) in [(now, values), (then, old)] {
                let bound = bound(&accounts);
                if bound < f64::INFINITY {
                    let error = split.error(&values, &truth);
                    prop_assert!(error <= bound + 2e-14, "{} is wrong by {}", bound, error);
                }
            }
        }
    }
}

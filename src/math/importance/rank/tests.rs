use proptest::prelude::*;

use super::*;

/// Two pages that link to each other, one that links to both, and one without any links.
fn known() -> Graph {
    Graph::from_arcs(4, &[(0, 1), (1, 0), (2, 0), (2, 1)]).unwrap()
}

/// Its PageRank by hand, d = 0.85: with y = 1 for a page without incoming links, y2 = y3 = 1, y0 = y1 = 1.425 / 0.15 =
/// 9.5.
const KNOWN: [f64; 4] = [9.5 / 21.0, 9.5 / 21.0, 1.0 / 21.0, 1.0 / 21.0];

fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

fn eigenvector() -> Power<'static> {
    Power { damping: 1.0, tolerance: 1e-13, iterations_max: 100_000, ..Power::default() }
}

#[test]
fn page_rank_is_known_by_hand() {
    let fast = PageRank { tolerance: 1e-12, ..PageRank::default() }.run(known()).unwrap();
    assert!(difference(&fast.values, &KNOWN) < 1e-12, "{:?}", fast.values);
    let plain = Power { dangling: Dangling::Personalised, tolerance: 1e-13, ..Power::default() };
    assert!(difference(&plain.run(&known()).unwrap().values, &KNOWN) < 1e-11);
}

#[test]
fn links_to_oneself_and_pages_without_links_are_right() {
    // Page 0 links to itself and to 1; 1 links nowhere: y0 = 1 + 0.425 y0, y1 = 1 + 0.425 y0.
    let graph = Graph::from_arcs(2, &[(0, 0), (0, 1)]).unwrap();
    let y0 = 1.0 / 0.575;
    let y1 = 1.0 + 0.425 * y0;
    let found = PageRank::default().run(graph).unwrap().values;
    assert!(difference(&found, &[y0 / (y0 + y1), y1 / (y0 + y1)]) < 1e-9);
}

#[test]
fn a_personalised_rank_stays_near_the_chosen_pages() {
    // A ring of four: from page 0 the rank falls by d per step.
    let graph = Graph::from_arcs(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]).unwrap();
    let personalisation = [1.0, 0.0, 0.0, 0.0];
    let options =
        PageRank { personalisation: Some(&personalisation), tolerance: 1e-12, ..PageRank::default() };
    let found = options.run(graph).unwrap().values;
    let expected = [0, 1, 2, 3].map(|step| 0.85f64.powi(step) * 0.15 / (1.0 - 0.85f64.powi(4)));
    assert!(difference(&found, &expected) < 1e-11);
    let wrong = PageRank { personalisation: Some(&[1.0]), ..PageRank::default() };
    assert_eq!(wrong.run(known()), Err(RankError::Personalisation));
}

#[test]
fn opics_fixed_point_has_one_more_link_a_page() {
    // 0 <-> 1 and 0 -> 2: y0 = 1 + y1 / 2, y1 = y2 = 1 + y0 / 3, so y0 = 9/5, y1 = y2 = 8/5.
    let graph = Graph::from_arcs(3, &[(0, 1), (1, 0), (0, 2)]).unwrap();
    let options = PageRank { damping: Damping::OneMoreLink, tolerance: 1e-12, ..PageRank::default() };
    assert!(difference(&options.run(graph).unwrap().values, &[0.36, 0.32, 0.32]) < 1e-12);
}

#[test]
fn xylemes_normalisation_is_an_eigenvector() {
    // 0 -> 1, 1 nowhere: lambda x = c M x + (1 - c) / 2: with c = 1/2 and x0 + x1 = 1:
    // lambda x0 = 1/4, lambda x1 = x0 / 2 + 1/4, lambda = x0 / 2 + 1/2, so x0^2 + x0 = 1/2.
    let graph = Graph::from_arcs(2, &[(0, 1)]).unwrap();
    let x0 = (3f64.sqrt() - 1.0) / 2.0;
    let power = Power { damping: 0.5, tolerance: 1e-13, ..Power::default() };
    assert!(difference(&power.run(&graph).unwrap().values, &[x0, 1.0 - x0]) < 1e-11);
}

#[test]
fn a_periodic_graph_needs_the_identity() {
    let graph = Graph::from_arcs(3, &[(0, 1), (1, 0), (0, 2), (2, 0)]).unwrap();
    let start = [0.9, 0.05, 0.05];
    let plain = Power { start: Some(&start), iterations_max: 1000, ..eigenvector() };
    assert!(plain.run(&graph).unwrap().residual > 0.1);
    let helped = Power { add_identity: true, ..plain };
    assert!(difference(&helped.run(&graph).unwrap().values, &[0.5, 0.25, 0.25]) < 1e-10);
}

#[test]
fn interest_flows_backwards_to_xml() {
    // 0 and 1 link to the XML page 3, 0 also to 2, which links to 3; 4 links to 2.
    let graph = Graph::from_arcs(5, &[(0, 3), (1, 3), (0, 2), (2, 3), (4, 2)]).unwrap();
    let xml = [0.0, 0.0, 0.0, 1.0, 0.0];
    let power = Power {
        matrix: Matrix::Inverse,
        personalisation: Some(&xml),
        dangling: Dangling::Personalised,
        tolerance: 1e-13,
        ..Power::default()
    };
    let found = power.run(&graph).unwrap().values;
    // From the XML page: each of 0, 1, 2 gets a third; 0 and 4 share what 2 has.
    let (third, d) = (1.0 / 3.0, 0.85);
    let y2 = d * third;
    let mut expected = [d * third + d * y2 / 2.0, d * third, y2, 1.0, d * y2 / 2.0];
    normalise(&mut expected);
    assert!(difference(&found, &expected) < 1e-11, "{found:?}");
    let printed = Power { matrix: Matrix::InversePrinted, dangling: Dangling::Renormalised, ..power };
    let found = printed.run(&graph).unwrap().values;
    // A page with two links has the mean of two pages that have only one of these links each.
    assert!((found[1] - found[2]).abs() < 1e-12, "{found:?}");
    assert!((found[0] - (found[1] + found[4]) / 2.0).abs() < 1e-12, "{found:?}");
}

#[test]
fn the_symmetric_matrix_ranks_by_degree_in_a_star() {
    // The star with three rays has the eigenvector (sqrt 3, 1, 1, 1).
    let graph = Graph::from_arcs(4, &[(0, 1), (2, 0), (0, 3)]).unwrap();
    let power = Power { matrix: Matrix::Symmetric, add_identity: true, ..eigenvector() };
    let mut expected = [3f64.sqrt(), 1.0, 1.0, 1.0];
    normalise(&mut expected);
    assert!(difference(&power.run(&graph).unwrap().values, &expected) < 1e-10);
    // With links both ways, all links count the same to either matrix; a walk is at the middle half of the time.
    let both = Power { matrix: Matrix::Links, ..power.clone() };
    assert!(difference(&both.run(&graph.symmetric()).unwrap().values, &expected) < 1e-10);
    let walk = Power { matrix: Matrix::Walk, ..power };
    let expected = [1.0 / 2.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0];
    assert!(difference(&walk.run(&graph.symmetric()).unwrap().values, &expected) < 1e-10);
}

#[test]
fn hubs_and_authorities_of_a_small_web() {
    // Hubs 0 and 1 both link to 2; 1 also to 3: authorities (a2, a3) are the eigenvector of [[2, 1], [1, 1]].
    let graph = Graph::from_arcs(4, &[(0, 2), (1, 2), (1, 3)]).unwrap();
    let (authorities, hubs) = hits(&graph, 1e-13, 1000);
    let golden = (1.0 + 5f64.sqrt()) / 2.0;
    assert!(
        difference(&authorities.values, &[0.0, 0.0, golden / (golden + 1.0), 1.0 / (golden + 1.0)]) < 1e-11
    );
    assert!(hubs.values[1] > hubs.values[0] && hubs.values[2] == 0.0);
}

#[test]
fn harmonic_centrality_counts_distances() {
    let graph = Graph::from_arcs(5, &[(0, 1), (1, 2), (3, 2), (2, 2)]).unwrap();
    let found = Harmonic::default().run(&graph);
    assert_eq!(found.values, [0.0, 1.0, 2.5, 0.0, 0.0]);
    assert_eq!(found.residual, 0.0);
    let many = small_random(3, 300, 900);
    let all = Harmonic::default().run(&many).values;
    for target in [0, 17, 299] {
        let distances = distances(&many.transposed(), target);
        let expected: f64 =
            distances.iter().filter(|&&distance| distance > 0).map(|&d| 1.0 / f64::from(d)).sum();
        assert!((all[target] - expected).abs() < 1e-9);
    }
    let sampled = Harmonic { samples: Some(150) }.run(&many);
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    assert!((sum(&sampled.values) / sum(&all) - 1.0).abs() < 0.3);
}

/// Distances from `start`; 0 for pages that it does not reach.
fn distances(graph: &Graph, start: usize) -> Vec<u32> {
    let mut distances = vec![0; graph.pages()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(page) = queue.pop_front() {
        for &target in graph.targets(page) {
            let target = target as usize;
            if distances[target] == 0 && target != start {
                distances[target] = distances[page] + 1;
                queue.push_back(target);
            }
        }
    }
    distances
}

fn small_random(seed: u64, pages: u32, arcs: usize) -> Graph {
    let mut state = seed;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(limit)) as u32
    };
    let arcs: Vec<(u32, u32)> = (0..arcs).map(|_| (below(pages), below(pages))).collect();
    Graph::from_arcs(pages as usize, &arcs).unwrap()
}

/// A graph in which a few pages have most links, and page numbers are arbitrary.
fn skewed(pages: u32, links: u32) -> Graph {
    let mut state = 5u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
        // Choose by importance rank, then scatter the number.
        let rank = (f64::from(pages) * unit * unit * unit) as u64;
        (rank * 7919 % u64::from(pages)) as u32
    };
    let arcs: Vec<(u32, u32)> = (0..pages * links).map(|arc| (arc % pages, draw())).collect();
    Graph::from_arcs(pages as usize, &arcs).unwrap()
}

#[test]
fn neither_panels_nor_the_numbering_change_the_result() {
    // One graph with so few links per page that chunks have the maximum size, one with so many that most are in panels.
    for (graph, panels_min) in [(skewed(140_009, 4), 1), (skewed(2003, 60), 20)] {
        let options = PageRank { damping: Damping::Constant(0.5), ..PageRank::default() };
        let prepared = options.prepare(graph.clone()).unwrap();
        assert!(prepared.panels() >= panels_min, "{} panels", prepared.panels());
        let plain =
            Power { damping: 0.5, dangling: Dangling::Personalised, tolerance: 1e-8, ..Power::default() };
        let plain = plain.run(&graph).unwrap().values;
        for threads in [1, 3] {
            let options = PageRank { threads, ..options };
            let fast = options.solve(&prepared).unwrap();
            assert!(fast.residual <= 1e-9 && difference(&fast.values, &plain) < 2e-8);
            assert_eq!(options.solve(&prepared).unwrap(), fast, "threads change nothing between runs");
        }
    }
}

proptest! {
    #[test]
    fn all_ways_to_page_rank_agree(
        seed in any::<u64>(),
        pages in 1..80u32,
        density in 0..6usize,
        damping in 0.0..0.97f64,
        threads in 1..4usize,
        weighted in any::<bool>(),
    ) {
        let graph = small_random(seed, pages, pages as usize * density);
        let graph = if weighted {
            let arcs: Vec<(u32, u32, f32)> = (0..pages)
                .flat_map(|page| graph.targets(page as usize).iter().map(move |&to| (page, to)))
                .map(|(from, to)| (from, to, 1.0 + ((from * 31 + to) % 5) as f32))
                .collect();
            Graph::from_weighted_arcs(pages as usize, &arcs).unwrap()
        } else {
            graph
        };
        let personalisation: Vec<f64> = (0..pages).map(|page| f64::from(page % 3 + 1)).collect();
        let fast = PageRank {
            damping: Damping::Constant(damping),
            tolerance: 1e-11,
            threads,
            personalisation: Some(&personalisation),
            ..PageRank::default()
        };
        let plain = Power {
            damping,
            personalisation: Some(&personalisation),
            dangling: Dangling::Personalised,
            tolerance: 1e-14,
            iterations_max: 3000,
            ..Power::default()
        };
        let (fast, plain) = (fast.run(graph.clone()).unwrap(), plain.run(&graph).unwrap());
        prop_assert!(fast.residual <= 1e-11);
        prop_assert!(difference(&fast.values, &plain.values) < 2e-10);
    }
}

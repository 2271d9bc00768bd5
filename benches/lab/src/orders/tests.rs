use archive_math::graphs;
use archive_math::importance::Graph;
use proptest::prelude::*;

use super::*;
use crate::test_data;

/// Runs a crawl over `links` within one host, and returns the order of downloads.
fn crawled(order: &mut dyn SimulatedOrder, links: &[Vec<u32>], seeds: &[u32]) -> Vec<u32> {
    let arcs: Vec<(u32, u32)> =
        (0..).zip(links).flat_map(|(from, to)| to.iter().map(move |&to| (from, to))).collect();
    let graph = Graph::from_arcs(links.len(), &arcs).unwrap();
    let web = graphs::Recorded { graph, hosts: None, urls: None };
    crawl(&web, (order, &mut ExactQueue::default()), seeds, usize::MAX).downloads
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in [
        "random",
        "breadth",
        "cycle",
        "depth",
        "backlinks",
        "pagerank",
        "opic",
        "opic@3",
        "opic-discovery",
        "fpr",
        "fpr@100",
        "rankmass",
        "rankmass@5",
        "endowed",
        "endowed@2.5",
        "truth",
        "ideal",
    ] {
        assert_eq!(name.parse::<OrderKind>().unwrap().to_string(), name);
    }
    assert_eq!("cash@2".parse(), Ok(OrderKind::Opic(2.0)));
    for name in ["", "fpr@", "fpr@0", "fpr@nan", "breadth@3", "rankmass@101", "best"] {
        assert!(name.parse::<OrderKind>().is_err(), "{name}");
    }
}

#[test]
fn the_share_gathered_is_measured_at_the_marks() {
    let importance = [4.0, 3.0, 2.0, 1.0];
    let found = gathered(&[1, 0], &importance);
    assert!((found.auc - 0.5).abs() < 1e-12);
    assert_eq!(found.shares, [0.3, 0.3, 0.3, 0.3, 0.3, 0.7]);
    assert_eq!(curve(&[1, 0], &importance, 2), [(0.0, 0.0), (0.25, 0.3), (0.5, 0.7)]);
}

/// The endowment pays on a real crawl: it gathers more than FPR, and much more than breadth first.
#[test]
fn orders_stand_as_measured_on_a_real_crawl() {
    let Some(data) = test_data("graphs/hollins") else { return };
    let recorded = graphs::read(&data).unwrap();
    let importance = true_importance(&recorded.graph, 1).unwrap();
    let mean = |name: &str| {
        let kind: OrderKind = name.parse().unwrap();
        let crawls = (1..=10).map(|rng| {
            let seeds = Seeds::Random.choose(10, rng, &importance);
            let crawl = kind.crawl(&recorded, (rng, &importance), &seeds, usize::MAX);
            gathered(&crawl.downloads, &importance).auc
        });
        crawls.sum::<f64>() / 10.0
    };
    let [breadth, fpr, fpr_m, endowed, truth] = ["breadth", "fpr", "fpr@10", "endowed", "truth"].map(mean);
    assert!(endowed > fpr + 0.03 && fpr > breadth, "endowed {endowed}, fpr {fpr}, breadth {breadth}");
    assert!(fpr_m > breadth && truth > endowed, "fpr@10 {fpr_m}, truth {truth}");
}

#[test]
fn rank_mass_proves_what_it_covers() {
    // A ring: jumps lead to page 0, so its personalised PageRank falls by d per step. The sum over the first k
    // downloads is a bound that the covered mass approaches from below.
    let links: Vec<Vec<u32>> = (0..6).map(|page| vec![(page + 1) % 6]).collect();
    let mut order = RankMass::default();
    let downloads = crawled(&mut order, &links, &[0]);
    assert_eq!(downloads, [0, 1, 2, 3, 4, 5]);
    let covered = SimulatedOrder::covered(&order).unwrap();
    assert!(covered > 0.15 * (1.0 + 0.85 + 0.7) && covered < 1.0, "{covered}");
    let mut windowed = WindowedRankMass::new(Renewal::Share(0.5));
    assert_eq!(crawled(&mut windowed, &links, &[0]), downloads);
    assert!(SimulatedOrder::covered(&windowed).unwrap() <= 1.0);
}

#[test]
fn page_rank_so_far_prefers_what_many_known_pages_link_to() {
    let mut links = vec![vec![]; 40];
    links[0] = (1..20).collect();
    for page in 1..20 {
        links[page as usize] = vec![20 + page, 39];
    }
    let downloads = crawled(&mut PageRankSoFar::new(Renewal::Share(0.1)), &links, &[0]);
    let place = |page: u32| downloads.iter().position(|&other| other == page).unwrap();
    assert!(place(39) < 10, "{downloads:?}");
}

#[test]
fn old_entries_do_not_pile_up() {
    let mut queue = LevelQueue::default();
    for round in 0..2000u32 {
        for page in 0..100 {
            queue.put(page, f64::from((round * 7 + page) % 13 + 1));
        }
    }
    assert!(queue.entries() < 70_000, "{}", queue.entries());
    let mut taken: Vec<u32> = std::iter::from_fn(|| queue.take()).collect();
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..100));
}

/// Every order of the lab downloads all that can be reached, and each page once.
#[test]
fn every_order_downloads_all_that_can_be_reached_once() {
    for seed in 0..24 {
        let mut random = fastrand::Rng::with_seed(seed);
        let links: Vec<Vec<u32>> =
            (0..50).map(|_| (0..random.usize(..6)).map(|_| random.u32(..50)).collect()).collect();
        let seeds: Vec<u32> = (0..random.u32(1..5)).map(|seed| seed * 7).collect();
        let mut reachable = crawled(&mut BreadthFirst::default(), &links, &seeds);
        reachable.sort_unstable();
        let orders: [Box<dyn SimulatedOrder>; 4] = [
            Box::<RankMass>::default(),
            Box::new(WindowedRankMass::new(Renewal::Share(0.05))),
            Box::new(GreedyCash::new(Policy::default(), 1.0)),
            Box::new(PageRankSoFar::new(Renewal::Share(0.1))),
        ];
        for mut order in orders {
            let mut downloads = crawled(order.as_mut(), &links, &seeds);
            downloads.sort_unstable();
            assert_eq!(downloads, reachable, "seed {seed}");
        }
    }
}

#[derive(Clone, Debug)]
enum QueueStep {
    Put(u32, f32),
    Take,
}

proptest! {
    #[test]
    fn queues_hand_out_the_best(steps in prop::collection::vec(
        prop_oneof![3 => (0..30u32, 0.0..1e6f32).prop_map(|(page, priority)| QueueStep::Put(page, priority)), 1 => Just(QueueStep::Take)],
        1..200,
    )) {
        let mut exact = ExactQueue::default();
        let mut levels = LevelQueue::default();
        let mut model = std::collections::HashMap::<u32, f32>::new();
        let mut taken = std::collections::HashSet::new();
        let mut level_model = model.clone();
        let mut level_taken = taken.clone();
        for step in steps {
            match step {
                QueueStep::Put(page, priority) => {
                    exact.put(page, f64::from(priority));
                    levels.put(page, f64::from(priority));
                    if !taken.contains(&page) {
                        model.insert(page, priority);
                    }
                    if !level_taken.contains(&page) {
                        level_model.insert(page, priority);
                    }
                }
                QueueStep::Take => {
                    let best = model.values().copied().fold(f32::NEG_INFINITY, f32::max);
                    let page = exact.take();
                    prop_assert_eq!(page.is_none(), model.is_empty());
                    if let Some(page) = page {
                        prop_assert_eq!(model.remove(&page), Some(best));
                        taken.insert(page);
                    }
                    let best = level_model.values().copied().fold(f32::NEG_INFINITY, f32::max);
                    let rounded = levels.best();
                    prop_assert_eq!(rounded.is_none(), level_model.is_empty());
                    if let Some(page) = levels.take() {
                        let priority = level_model.remove(&page).unwrap();
                        level_taken.insert(page);
                        prop_assert!(priority >= best * (1.0 - 1.0 / 128.0));
                        prop_assert!((rounded.unwrap() - f64::from(best)).abs() <= f64::from(best) / 128.0);
                    }
                }
            }
        }
    }

}

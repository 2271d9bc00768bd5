use proptest::prelude::*;

use super::*;

/// Runs a crawl over `links` and returns the order of downloads.
fn crawl(order: &mut dyn Order, links: &[Vec<u32>], hosts: &[u32], seeds: &[u32]) -> Vec<u32> {
    let mut queue: Box<dyn Queue> =
        if order.is_exact() { Box::<ExactQueue>::default() } else { Box::<LevelQueue>::default() };
    order.begin(seeds, queue.as_mut());
    let mut downloads = Vec::new();
    while let Some(page) = queue.take() {
        downloads.push(page);
        let host = hosts[page as usize];
        let links: Vec<Link> = links[page as usize]
            .iter()
            .map(|&target| Link { target, between_hosts: hosts[target as usize] != host })
            .collect();
        order.downloaded(page, &links, queue.as_mut());
    }
    downloads
}

/// The example of Alam et al., figure 2: A links to B and C, B to D and E, C to B and E, E to nothing.
fn example() -> Vec<Vec<u32>> {
    vec![vec![1, 2], vec![3, 4], vec![1, 4], vec![], vec![]]
}

#[test]
fn fpr_downloads_the_papers_example_in_its_order() {
    // E is discovered together with D but also gets a part of C's value, so it comes first.
    assert_eq!(crawl(&mut Fractional::new(1.0), &example(), &[0; 5], &[0]), [0, 1, 2, 4, 3]);
}

#[test]
fn fpr_at_m_prefers_other_hosts() {
    let links = vec![vec![1, 2, 3], vec![], vec![], vec![]];
    assert_eq!(crawl(&mut Fractional::new(100.0), &links, &[0, 0, 1, 0], &[0]), [0, 2, 1, 3]);
    assert_eq!(crawl(&mut Fractional::endowed(3.0), &links, &[0, 0, 1, 0], &[0]), [0, 2, 1, 3]);
}

#[test]
fn simple_orders_do_what_they_say() {
    // 0 -> 1 -> 2 -> 4 and 0 -> 3 -> 4, 3 -> 5 on another host, 5 -> 6 on its host, 4 -> 6.
    let links = vec![vec![1, 3], vec![2], vec![4], vec![4, 5], vec![6], vec![6], vec![]];
    let hosts = [0, 0, 0, 0, 0, 1, 1];
    assert_eq!(crawl(&mut BreadthFirst::default(), &links, &hosts, &[0]), [0, 1, 3, 2, 4, 5, 6]);
    assert_eq!(crawl(&mut Depth::default(), &links, &hosts, &[0]), [0, 1, 3, 5, 6, 2, 4]);
    // When 3 has been read, 4 has two backlinks, more than 1, which has waited longer.
    let known = vec![vec![3, 2, 1], vec![], vec![4], vec![4], vec![]];
    assert_eq!(crawl(&mut Backlinks::default(), &known, &[0; 5], &[0]), [0, 3, 2, 4, 1]);
    let random = crawl(&mut Random::new(4), &links, &hosts, &[0]);
    assert_eq!(random, crawl(&mut Random::new(4), &links, &hosts, &[0]));
    assert_eq!(random.len(), 7);
}

#[test]
fn rank_mass_proves_what_it_covers() {
    // A ring: jumps lead to page 0, so its personalised PageRank falls by d per step. The sum over the first k
    // downloads is a bound that the covered mass approaches from below.
    let links: Vec<Vec<u32>> = (0..6).map(|page| vec![(page + 1) % 6]).collect();
    let mut order = RankMass::default();
    let downloads = crawl(&mut order, &links, &[0; 6], &[0]);
    assert_eq!(downloads, [0, 1, 2, 3, 4, 5]);
    let covered = order.covered().unwrap();
    assert!(covered > 0.15 * (1.0 + 0.85 + 0.7) && covered < 1.0, "{covered}");
    let mut windowed = WindowedRankMass::new(0.5);
    assert_eq!(crawl(&mut windowed, &links, &[0; 6], &[0]), downloads);
    assert!(windowed.covered().unwrap() <= 1.0);
}

#[test]
fn page_rank_so_far_prefers_what_many_known_pages_link_to() {
    let mut links = vec![vec![]; 40];
    links[0] = (1..20).collect();
    for page in 1..20 {
        links[page as usize] = vec![20 + page, 39];
    }
    let downloads = crawl(&mut PageRankSoFar::default(), &links, &[0; 40], &[0]);
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

#[derive(Clone, Debug)]
enum Step {
    Put(u32, f32),
    Take,
}

proptest! {
    #[test]
    fn queues_hand_out_the_best(steps in prop::collection::vec(
        prop_oneof![3 => (0..30u32, 0.0..1e6f32).prop_map(|(page, priority)| Step::Put(page, priority)), 1 => Just(Step::Take)],
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
                Step::Put(page, priority) => {
                    exact.put(page, f64::from(priority));
                    levels.put(page, f64::from(priority));
                    if !taken.contains(&page) {
                        model.insert(page, priority);
                    }
                    if !level_taken.contains(&page) {
                        level_model.insert(page, priority);
                    }
                }
                Step::Take => {
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

proptest! {
    // The queue takes a while to allocate its levels.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_order_downloads_all_that_can_be_reached_once(
        arcs in prop::collection::vec((0..50u32, 0..50u32), 0..200),
        seeds in prop::collection::btree_set(0..50u32, 1..5),
    ) {
        let mut links = vec![Vec::new(); 50];
        for (from, to) in arcs {
            if !links[from as usize].contains(&to) {
                links[from as usize].push(to);
            }
        }
        let hosts: Vec<u32> = (0..50).map(|page| page % 4).collect();
        let seeds: Vec<u32> = seeds.into_iter().collect();
        let mut reachable: std::collections::BTreeSet<u32> = seeds.iter().copied().collect();
        let mut stack = seeds.clone();
        while let Some(page) = stack.pop() {
            for &target in &links[page as usize] {
                if reachable.insert(target) {
                    stack.push(target);
                }
            }
        }
        let policy = crate::importance::Policy::default();
        let orders: [Box<dyn Order>; 10] = [
            Box::new(Random::new(1)),
            Box::<BreadthFirst>::default(),
            Box::<Depth>::default(),
            Box::<Backlinks>::default(),
            Box::new(Fractional::new(100.0)),
            Box::new(Fractional::endowed(2.0)),
            Box::<RankMass>::default(),
            Box::new(WindowedRankMass::new(0.05)),
            Box::new(GreedyCash::new(policy, 1.0)),
            Box::<PageRankSoFar>::default(),
        ];
        for mut order in orders {
            let mut downloads = crawl(order.as_mut(), &links, &hosts, &seeds);
            downloads.sort_unstable();
            prop_assert!(downloads.iter().eq(&reachable), "{:?}", downloads);
        }
    }
}

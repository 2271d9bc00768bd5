use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// Hands out the page with the highest priority; of equal ones, that which has had it longest.
#[derive(Default)]
pub(crate) struct TestQueue {
    /// Priority of each waiting page, and the number of its last change.
    waiting: HashMap<u32, (f64, Reverse<usize>)>,
    taken: HashSet<u32>,
    changes: usize,
}

impl PageQueue for TestQueue {
    fn put(&mut self, page: u32, priority: f64) {
        if !self.taken.contains(&page) && self.waiting.get(&page).is_none_or(|known| known.0 != priority) {
            self.changes += 1;
            self.waiting.insert(page, (priority, Reverse(self.changes)));
        }
    }
}

impl TestQueue {
    pub(crate) fn take(&mut self) -> Option<u32> {
        let order =
            |a: (f64, Reverse<usize>), b: (f64, Reverse<usize>)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let (&page, _) = self.waiting.iter().max_by(|a, b| order(*a.1, *b.1))?;
        self.waiting.remove(&page);
        self.taken.insert(page);
        Some(page)
    }
}

/// Runs a crawl over `links` and returns the order of downloads.
fn crawl(order: &mut dyn DownloadOrder, links: &[Vec<u32>], hosts: &[u32], seeds: &[u32]) -> Vec<u32> {
    let mut queue = TestQueue::default();
    order.begin(seeds, &mut queue);
    let mut downloads = Vec::new();
    while let Some(page) = queue.take() {
        downloads.push(page);
        let host = hosts[page as usize];
        let links: Vec<OrderLink> = links[page as usize]
            .iter()
            .map(|&target| OrderLink { target, between_hosts: hosts[target as usize] != host })
            .collect();
        order.downloaded(page, &links, &mut queue);
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
    let random = crawl(&mut RandomOrder::new(4), &links, &hosts, &[0]);
    assert_eq!(random, crawl(&mut RandomOrder::new(4), &links, &hosts, &[0]));
    assert_eq!(random.len(), 7);
}

proptest! {
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
        let orders: [Box<dyn DownloadOrder>; 10] = [
            Box::new(RandomOrder::new(1)),
            Box::<BreadthFirst>::default(),
            Box::<Depth>::default(),
            Box::<Backlinks>::default(),
            Box::new(Fractional::new(100.0)),
            Box::new(Fractional::endowed(2.0)),
            Box::new(PageRankSoFar::new(Renewal::Share(0.1))),
            Box::new(PageRankSoFar::new(Renewal::Pages(7))),
            Box::new(WindowedRankMass::new(Renewal::Share(0.05))),
            Box::new(WindowedRankMass::new(Renewal::Pages(3))),
        ];
        for mut order in orders {
            let mut downloads = crawl(order.as_mut(), &links, &hosts, &seeds);
            downloads.sort_unstable();
            prop_assert!(downloads.iter().eq(&reachable), "{:?}", downloads);
        }
    }
}

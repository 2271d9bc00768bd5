//! Fractional PageRank with an endowment for every page: our own order.
//!
//! In FPR value enters only at the seeds. So it first finds what is near the seeds, and late in the crawl the waiting
//! pages have tiny values whose order means little. In PageRank value enters everywhere: most of the rank of a large
//! web comes from jumps to pages far from any seed. So here every page gets an endowment of 1 when it becomes known,
//! and a seed [`SEED_ENDOWMENT`] more. Early on the value of the seeds dominates, as in FPR. Later the value of a page
//! depends mostly on how many known pages, new themselves, recommend it. The cost is that of FPR: one addition per
//! link.

use super::{DAMPING, Link, Order, PerPage, Queue, Stage};

/// Endowment of a seed, beyond that of every page. Between 10 and 1000 the outcome hardly changes.
const SEED_ENDOWMENT: f32 = 100.0;

/// See the module documentation. `between_hosts` is the weight M of links between hosts, as in FPR@M.
#[derive(Debug)]
pub struct Endowed {
    between_hosts: f64,
    values: PerPage<f32>,
    stages: PerPage<Stage>,
}

impl Endowed {
    /// Creates an order in which a link to another host is worth `between_hosts` links.
    #[must_use]
    pub fn new(between_hosts: f64) -> Self {
        Self { between_hosts, values: PerPage::default(), stages: PerPage::default() }
    }
}

impl Order for Endowed {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn Queue) {
        for &seed in seeds {
            *self.stages.at(seed) = Stage::Waiting;
            *self.values.at(seed) = 1.0 + SEED_ENDOWMENT;
            queue.put(seed, f64::from(1.0 + SEED_ENDOWMENT));
        }
    }

    fn downloaded(&mut self, page: u32, links: &[Link], queue: &mut dyn Queue) {
        *self.stages.at(page) = Stage::Downloaded;
        let outside = links.iter().filter(|link| link.between_hosts).count() as f64;
        let inside = links.len() as f64 - outside;
        let gift = DAMPING * f64::from(self.values.get(page)) / (inside + self.between_hosts * outside);
        for link in links {
            let stage = self.stages.at(link.target);
            if *stage == Stage::Downloaded {
                continue;
            }
            let value = self.values.at(link.target);
            if *stage == Stage::Unknown {
                *stage = Stage::Waiting;
                *value = 1.0;
            }
            *value += if link.between_hosts { gift * self.between_hosts } else { gift } as f32;
            queue.put(link.target, f64::from(*value));
        }
    }
}

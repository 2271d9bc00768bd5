//! Fractional PageRank with an endowment for every page: our own order.
//!
//! FPR lets value enter at the seeds only. What it then finds first is what lies near the seeds, and late in the crawl
//! the pages that wait hold crumbs of crumbs whose order means little. PageRank itself lets value enter everywhere: most
//! of a large web's rank comes from jumps to pages that no seed is near to. So here every page brings an endowment of 1
//! the moment it becomes known, and a seed [`SEED_ENDOWMENT`] more. Early on the seeds' value leads, as in FPR; later a
//! page's value is dominated by how many known pages, themselves unseen before, recommend it. The cost is FPR's: one
//! addition a link.

use super::{DAMPING, Link, Order, PerPage, Queue, Stage};

/// What a seed has beyond the endowment of every page. From 10 to 1000 the outcome hardly changes.
const SEED_ENDOWMENT: f32 = 100.0;

/// See the module's documentation. `M` is the weight of links between hosts, as in FPR@M.
#[derive(Debug)]
pub struct Endowed {
    between_hosts: f64,
    values: PerPage<f32>,
    stages: PerPage<Stage>,
    operations: u64,
}

impl Endowed {
    /// An order in which a link to another host is worth `between_hosts` links.
    #[must_use]
    pub fn new(between_hosts: f64) -> Self {
        Self { between_hosts, values: PerPage::default(), stages: PerPage::default(), operations: 0 }
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
        self.operations += links.len() as u64;
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

    fn operations(&self) -> u64 {
        self.operations
    }
}

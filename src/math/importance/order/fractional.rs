//! Fractional PageRank and FPR@M (Alam, Ha, Sim, Lee, "The impact of inter-host links in crawling important pages
//! early", algorithms 1 and 2), and our own order: the same with an endowment for every page.
//!
//! In FPR value enters only at the seeds. So it first finds what is near the seeds, and late in the crawl the waiting
//! pages have tiny values whose order means little. In PageRank value enters everywhere: most of the rank of a large
//! web comes from jumps to pages far from any seed. So in our order every page gets an endowment of 1 when it becomes
//! known, and a seed [`SEED_ENDOWMENT`] more. Its priority is what it has beyond the endowment of every page. Early on the value of the seeds dominates, as in FPR. Later the value of a
//! page depends mostly on how many known pages, new themselves, recommend it. The cost is the same: one addition per
//! link.

use super::{DAMPING, DownloadOrder, OrderLink, PageQueue, PageStage, PerPage};

/// Endowment of a seed, beyond that of every page; as in the ledger, where 5 to 20 do as well.
const SEED_ENDOWMENT: f64 = 9.0;

/// A downloaded page passes d times its value to its links; the share of downloaded targets is dropped. A link to
/// another host gets M times as much as one inside (algorithm 2); M = 1 is plain FPR.
#[derive(Debug)]
pub struct Fractional {
    between_hosts: f64,
    /// What a page gets when it becomes known. With 0, the seeds share 1 - d.
    endowment: f32,
    values: PerPage<f32>,
    stages: PerPage<PageStage>,
}

impl Fractional {
    /// Creates FPR@M; the paper found M = 100 best.
    #[must_use]
    pub fn new(between_hosts: f64) -> Self {
        Self { between_hosts, endowment: 0.0, values: PerPage::default(), stages: PerPage::default() }
    }

    /// Creates the order with an endowment, in which a link to another host is worth `between_hosts` links.
    #[must_use]
    pub fn endowed(between_hosts: f64) -> Self {
        Self { endowment: 1.0, ..Self::new(between_hosts) }
    }
}

impl DownloadOrder for Fractional {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        let value = if self.endowment > 0.0 {
            f64::from(self.endowment) + SEED_ENDOWMENT
        } else {
            (1.0 - DAMPING) / seeds.len() as f64
        };
        for &seed in seeds {
            *self.stages.at(seed) = PageStage::Waiting;
            *self.values.at(seed) = value as f32;
            queue.put(seed, value - f64::from(self.endowment));
        }
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        *self.stages.at(page) = PageStage::Downloaded;
        let outside = links.iter().filter(|link| link.between_hosts).count() as f64;
        let inside = links.len() as f64 - outside;
        let gift = DAMPING * f64::from(self.values.get(page)) / (inside + self.between_hosts * outside);
        for link in links {
            let stage = self.stages.at(link.target);
            if *stage == PageStage::Downloaded {
                continue;
            }
            let value = self.values.at(link.target);
            if *stage == PageStage::Unknown {
                *stage = PageStage::Waiting;
                *value = self.endowment;
            }
            *value += if link.between_hosts { gift * self.between_hosts } else { gift } as f32;
            queue.put(link.target, f64::from(*value - self.endowment));
        }
    }
}

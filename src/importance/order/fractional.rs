//! Fractional PageRank and FPR@M (Alam, Ha, Sim, Lee, "The impact of inter-host links in crawling important pages
//! early", algorithms 1 and 2).

use super::{DAMPING, Link, Order, PerPage, Queue};

/// Seeds share 1 - d. A downloaded page passes d times its value to its links; the share of downloaded targets is
/// dropped. A link to another host gets M times as much as one inside (algorithm 2); M = 1 is plain FPR.
#[derive(Debug)]
pub struct Fractional {
    between_hosts: f64,
    values: PerPage<f32>,
    downloaded: PerPage<bool>,
}

impl Fractional {
    /// Creates FPR@M; the paper found M = 100 best.
    #[must_use]
    pub fn new(between_hosts: f64) -> Self {
        Self { between_hosts, values: PerPage::default(), downloaded: PerPage::default() }
    }
}

impl Order for Fractional {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn Queue) {
        for &seed in seeds {
            let value = (1.0 - DAMPING) / seeds.len() as f64;
            *self.values.at(seed) = value as f32;
            queue.put(seed, value);
        }
    }

    fn downloaded(&mut self, page: u32, links: &[Link], queue: &mut dyn Queue) {
        *self.downloaded.at(page) = true;
        let outside = links.iter().filter(|link| link.between_hosts).count() as f64;
        let inside = links.len() as f64 - outside;
        let gift = DAMPING * f64::from(self.values.get(page)) / (inside + self.between_hosts * outside);
        for link in links {
            if !self.downloaded.get(link.target) {
                let value = self.values.at(link.target);
                *value += if link.between_hosts { gift * self.between_hosts } else { gift } as f32;
                queue.put(link.target, f64::from(*value));
            }
        }
    }
}

//! Ground truth about a small web in memory: its graph and the exact importance of its pages.
//!
//! Importance is defined on the web with a virtual page that every page links to and that links to every page (Abiteboul,
//! Preda, Cobéna: Adaptive on-line page importance computation, 2003), with PageRank's damping d: the stationary
//! distribution of L with L_ij = d/out_i, L_iv = 1 - d and L_vj = 1/n. This small solver is the reference for the crawler's estimates, so it shares no
//! code with them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::layout::PageIndex;
use super::web::Web;

/// Probability of following a link.
const DAMPING: f64 = 0.85;

/// The links between the pages of a web at one time. Redirects are followed; links to missing pages are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Offset of each page's targets, and the end of the last ones.
    starts: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    /// Builds the graph of `web` at `time` from the pages that exist and that robots.txt allows; the others have no
    /// links. Takes about 120 bytes per page at 30 links.
    #[must_use]
    pub fn of(web: &Web, time: DateTime<Utc>) -> Self {
        let mut starts = vec![0];
        let mut targets = Vec::new();
        for page in (0..web.pages()).map(PageIndex) {
            if web.exists(page, time) && web.allowed(page) {
                let own = web.links(page, time);
                let own: BTreeSet<u32> =
                    own.iter().filter_map(|link| Some(link.target()?.0 as u32)).collect();
                targets.extend(own);
            }
            starts.push(targets.len());
        }
        Self { starts, targets }
    }

    /// Returns the number of pages.
    #[must_use]
    pub const fn pages(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of links.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.targets.len()
    }

    /// Returns the pages that a page links to, in page order.
    #[must_use]
    pub fn targets(&self, page: usize) -> &[u32] {
        &self.targets[self.starts[page]..self.starts[page + 1]]
    }

    /// Returns the number of links to each page.
    #[must_use]
    pub fn in_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.pages()];
        for target in &self.targets {
            degrees[*target as usize] += 1;
        }
        degrees
    }

    /// Returns which pages can be reached from `roots`.
    #[must_use]
    pub fn reached(&self, roots: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.pages()];
        let mut open = roots.to_vec();
        while let Some(page) = open.pop() {
            if !std::mem::replace(&mut reached[page], true) {
                open.extend(
                    self.targets(page)
                        .iter()
                        .map(|target| *target as usize)
                        .filter(|target| !reached[*target]),
                );
            }
        }
        reached
    }

    /// Returns the importance of every page, with mean 1, by power iteration until a round moves less than `tolerance`
    /// of the total.
    #[must_use]
    pub fn importance(&self, tolerance: f64) -> Vec<f64> {
        /// Far more rounds than a tolerance of 1e-12 needs at 30 links per page.
        const ROUNDS_MAX: u32 = 10_000;
        let pages = self.pages();
        let mut now = vec![1.0 / (pages + 1) as f64; pages];
        let mut virtual_page = 1.0 / (pages + 1) as f64;
        for _ in 0..ROUNDS_MAX {
            let mut next = vec![virtual_page / pages as f64; pages];
            let mut to_virtual_page = 0.0;
            for (page, mass) in now.iter().enumerate() {
                let targets = self.targets(page);
                let part = if targets.is_empty() { 0.0 } else { DAMPING * mass / targets.len() as f64 };
                to_virtual_page += mass - part * targets.len() as f64;
                for target in targets {
                    next[*target as usize] += part;
                }
            }
            let moved: f64 = now.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
            now = next;
            virtual_page = to_virtual_page;
            if moved < tolerance {
                break;
            }
        }
        let scale = pages as f64 / now.iter().sum::<f64>();
        now.iter_mut().for_each(|mass| *mass *= scale);
        now
    }
}

/// Returns the importance of every site: the sum over its pages, scaled to mean 1 over all sites. `importance` holds
/// that of every page of `web`.
#[must_use]
pub fn site_importance(web: &Web, importance: &[f64]) -> Vec<f64> {
    let mut sites = vec![0.0; web.sites() as usize];
    for (page, importance) in importance.iter().enumerate() {
        sites[web.site_of(web.host_of(PageIndex(page as u64))).0 as usize] += importance;
    }
    let scale = sites.len() as f64 / sites.iter().sum::<f64>();
    sites.iter_mut().for_each(|sum| *sum *= scale);
    sites
}

/// Returns the importance of every site if only links between sites count, with mean 1 and equal weight for all pages
/// of a site.
///
/// The cash of a site goes in equal parts to the targets of its links to other sites, with one more part for the
/// virtual site. A site without such links gives all its cash to the virtual site.
#[must_use]
pub fn importance_among_sites(web: &Web, graph: &Graph, tolerance: f64) -> Vec<f64> {
    const ROUNDS_MAX: u32 = 10_000;
    let sites = web.sites() as usize;
    let site_of = |page: usize| web.site_of(web.host_of(PageIndex(page as u64))).0 as usize;
    let mut shares = vec![vec![0.0; sites]; sites];
    let mut linking = vec![0.0; sites];
    for page in 0..graph.pages() {
        let own = site_of(page);
        let outside: Vec<usize> = graph
            .targets(page)
            .iter()
            .map(|target| site_of(*target as usize))
            .filter(|site| *site != own)
            .collect();
        if !outside.is_empty() {
            linking[own] += 1.0;
            let part = 1.0 / (outside.len() + 1) as f64;
            outside.iter().for_each(|site| shares[own][*site] += part);
        }
    }
    let mut now = vec![1.0 / (sites + 1) as f64; sites];
    let mut virtual_site = 1.0 / (sites + 1) as f64;
    for _ in 0..ROUNDS_MAX {
        let mut next = vec![virtual_site / sites as f64; sites];
        let mut given = 0.0;
        for (site, mass) in now.iter().enumerate().filter(|(site, _)| linking[*site] > 0.0) {
            for (target, share) in shares[site].iter().enumerate() {
                next[target] += mass * share / linking[site];
                given += mass * share / linking[site];
            }
        }
        let moved: f64 = now.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
        virtual_site = now.iter().sum::<f64>() - given;
        now = next;
        if moved < tolerance {
            break;
        }
    }
    let scale = sites as f64 / now.iter().sum::<f64>();
    now.iter_mut().for_each(|mass| *mass *= scale);
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn importance_of_a_graph_done_by_hand() {
        // 0 -> 1, 1 -> 0, 2 -> 0: x0 = v/3 + d x1 + d x2, x1 = v/3 + d x0, x2 = v/3.
        let graph = Graph { starts: vec![0, 1, 2, 3], targets: vec![1, 0, 0] };
        let importance = graph.importance(1e-14);
        let (x2, v3) = (1.0, 1.0);
        let x0 = (v3 + DAMPING * (v3 + x2)) / (1.0 - DAMPING * DAMPING);
        let x1 = v3 + DAMPING * x0;
        let scale = 3.0 / (x0 + x1 + x2);
        for (found, expected) in importance.iter().zip([x0, x1, x2]) {
            assert!((found - expected * scale).abs() < 1e-9, "{importance:?}");
        }
    }

    #[test]
    fn a_page_without_links_gives_all_to_the_virtual_page() {
        let graph = Graph { starts: vec![0, 1, 1], targets: vec![1] };
        let importance = graph.importance(1e-14);
        // x0 = v/2, x1 = v/2 + d x0.
        assert!((importance[1] / importance[0] - 1.85).abs() < 1e-9, "{importance:?}");
    }

    #[test]
    fn every_page_is_reached_from_any_home_page() {
        let web = Web::new(Config { birth_share: 0.2, ..Config::plain(3, 40, 3000) }).unwrap();
        let late = web.config().start + chrono::TimeDelta::days(1000);
        let graph = Graph::of(&web, late);
        for host in [0, 17, 39] {
            let home = web.home(crate::HostIndex(host));
            assert!(graph.reached(&[home.0 as usize]).into_iter().all(|reached| reached));
        }
        let links = graph.links() as f64 / graph.pages() as f64;
        assert!((24.0..36.0).contains(&links), "{links} links a page");
    }

    #[test]
    fn in_degrees_follow_a_power_law() {
        let web = Web::new(Config::plain(5, 200, 20_000)).unwrap();
        let mut degrees = Graph::of(&web, web.config().start).in_degrees();
        degrees.sort_unstable_by(|left, right| right.cmp(left));
        // An exponent of g appears as a slope of 1/(g - 1) of degree against rank.
        let slope = |low: usize, high: usize| {
            (f64::from(degrees[low]) / f64::from(degrees[high])).ln() / (high as f64 / low as f64).ln()
        };
        for (low, high) in [(30, 300), (300, 3000)] {
            let exponent = 1.0 + 1.0 / slope(low, high);
            assert!((2.2..2.9).contains(&exponent), "exponent {exponent} from rank {low} to {high}");
        }
        assert!(degrees[degrees.len() / 2] <= 15, "the median page has {} links", degrees[degrees.len() / 2]);
    }

    #[test]
    fn sites_sum_their_pages() {
        let web = Web::new(Config::plain(1, 10, 200)).unwrap();
        let importance = Graph::of(&web, web.config().start).importance(1e-9);
        let sites = site_importance(&web, &importance);
        assert_eq!(sites.len(), 5);
        assert!((sites.iter().sum::<f64>() - 5.0).abs() < 1e-9);
    }
}

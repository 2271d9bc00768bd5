//! A test web whose links prefer good pages.

use archive_math::graphs::random::Random;
use archive_math::importance::rank::{Damping, PageRank};
use archive_math::importance::{Graph, GraphError};
use archive_testweb::{Config, PageIndex, Web, truth};

use super::Settings;
use crate::LabError;

/// Number of ratings: 1 to 4.
pub(super) const RATINGS: usize = 4;
/// Share of pages that are one step better or worse than their site.
const PAGES_APART: f64 = 0.25;
/// Largest number of draws of a link's target; the last one stays.
const DRAWS_MAX: u32 = 1000;
/// Tolerance of the rank computation.
const TOLERANCE: f64 = 1e-9;

/// A web and its true quality.
pub(super) struct World {
    /// Site of each page.
    site_of: Vec<u32>,
    /// Quality of each site, 1 to 4.
    pub(super) site_quality: Vec<u8>,
    pub(super) page_quality: Vec<u8>,
    graph: Graph,
    /// Links between different sites.
    between: Vec<(u32, u32)>,
}

impl World {
    /// Creates the test web and redraws the target of each link between sites: with the frequency of the page among the
    /// test web's own links between sites, times (quality of the page / 4)^prefer. The qualities of sites are equally
    /// frequent, and most pages have the quality of their site.
    pub(super) fn new(settings: &Settings, rng: u64) -> Result<Self, LabError> {
        let config = Config {
            sites: settings.sites,
            ..Config::plain(rng, settings.sites.saturating_mul(2), settings.pages)
        };
        let web = Web::new(config)?;
        let links = truth::Graph::of(&web, web.config().start);
        let pages = links.pages();
        let site_of: Vec<u32> =
            (0..pages).map(|page| web.site_of(web.host_of(PageIndex(page as u64))).0).collect();
        let mut random = Random::new(rng);
        let site_quality: Vec<u8> =
            (0..settings.sites).map(|_| 1 + random.below(RATINGS as u32) as u8).collect();
        let mut page = |site: &u32| {
            let quality = site_quality[*site as usize];
            match random.unit() {
                draw if draw < PAGES_APART / 2.0 => (quality - 1).max(1),
                draw if draw < PAGES_APART => (quality + 1).min(RATINGS as u8),
                _ => quality,
            }
        };
        let page_quality: Vec<u8> = site_of.iter().map(&mut page).collect();
        let all = (0..pages).flat_map(|page| links.targets(page).iter().map(move |&to| (page as u32, to)));
        let is_between = |link: &(u32, u32)| site_of[link.0 as usize] != site_of[link.1 as usize];
        let (mut between, mut arcs): (Vec<_>, Vec<_>) = all.partition(is_between);
        let popular: Vec<u32> = between.iter().map(|link| link.1).collect();
        for (from, to) in &mut between {
            for _ in 0..DRAWS_MAX {
                let drawn = popular[random.below(popular.len() as u32) as usize];
                if site_of[drawn as usize] == site_of[*from as usize] {
                    continue;
                }
                *to = drawn;
                let quality = f64::from(page_quality[drawn as usize]) / RATINGS as f64;
                if random.unit() < quality.powf(settings.prefer) {
                    break;
                }
            }
        }
        arcs.extend(&between);
        let graph = Graph::from_arcs(pages, &arcs)?;
        Ok(Self { site_of, site_quality, page_quality, graph, between })
    }

    /// Returns each kind of importance of pages with its name.
    pub(super) fn pages(&self) -> Result<Vec<(&'static str, Vec<f64>)>, LabError> {
        let rank = PageRank { tolerance: TOLERANCE, ..PageRank::default() };
        // The limit of OPIC.
        let opic = PageRank { damping: Damping::OneMoreLink, ..rank.clone() };
        Ok(vec![
            ("opic", opic.run(self.graph.clone())?.values),
            ("pagerank", rank.run(self.graph.clone())?.values),
        ])
    }

    /// Returns each kind of importance of sites with its name: the sum, maximum and mean of their pages' importance,
    /// and importance by links between sites alone.
    pub(super) fn sites(
        &self,
        pages: &[(&'static str, Vec<f64>)],
    ) -> Result<Vec<(String, Vec<f64>)>, LabError> {
        let sites = self.site_quality.len();
        let mut count = vec![0.0; sites];
        self.site_of.iter().for_each(|&site| count[site as usize] += 1.0);
        let mut kinds = Vec::new();
        for (name, importance) in pages {
            let (mut sum, mut max) = (vec![0.0; sites], vec![0.0_f64; sites]);
            for (site, value) in self.site_of.iter().map(|&site| site as usize).zip(importance) {
                sum[site] += value;
                max[site] = max[site].max(*value);
            }
            let mean = sum.iter().zip(&count).map(|(sum, count)| sum / f64::max(*count, 1.0)).collect();
            kinds.extend([(format!("{name}_sum"), sum), (format!("{name}_max"), max)]);
            kinds.push((format!("{name}_mean"), mean));
        }
        let graph = self.among_sites()?;
        let opic = PageRank { tolerance: TOLERANCE, damping: Damping::OneMoreLink, ..PageRank::default() };
        kinds.push(("opic_links".to_owned(), opic.run(graph)?.values));
        Ok(kinds)
    }

    /// Returns the graph of links between sites.
    fn among_sites(&self) -> Result<Graph, GraphError> {
        let site = |page: u32| self.site_of[page as usize];
        let arcs: Vec<(u32, u32)> = self.between.iter().map(|&(from, to)| (site(from), site(to))).collect();
        Graph::from_arcs(self.site_quality.len(), &arcs)
    }
}

//! What nodes that crawl together have to tell each other, by how sites are divided among them (Cho and Garcia-Molina,
//! "Parallel Crawlers", 2002): the communication of the exchange mode, before batches describe a page once.

use archive_books::cluster::{Division, Mode, Partition};
use archive_math::graphs::{Recorded, host_of};
use archive_storage::address::site_of;
use serde::Serialize;

/// How a graph of hosts or pages falls apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divided {
    /// What decides.
    pub by: Division,
    /// Number of partitions.
    pub partitions: u16,
    /// Share of all links that lead to another partition.
    pub sent: f64,
    /// Share of the links between sites that do.
    pub sent_between_sites: f64,
    /// Pages of the largest partition, relative to an equal share.
    pub largest: f64,
}

/// Divides a graph, whose weights are numbers of links; `None` if its pages have no names.
#[must_use]
pub fn divided(recorded: &Recorded, by: &Division, partitions: u16) -> Option<Divided> {
    let (number, mode, cluster) = (1, Mode::Exchange, String::new());
    let all = Partition { cluster, number, count: partitions, mode, by: by.clone() };
    let sites: Vec<&str> = recorded.urls.as_ref()?.iter().map(|url| site_of(host_of(url))).collect();
    let owners: Vec<u16> = sites.iter().map(|site| all.of_site(site)).collect();
    let mut pages = vec![0_u64; usize::from(partitions)];
    owners.iter().for_each(|owner| pages[usize::from(*owner) - 1] += 1);
    let (mut links, mut between, mut sent) = (0.0, 0.0, 0.0);
    for from in 0..owners.len() {
        let weights = recorded.graph.weights(from);
        for (place, to) in recorded.graph.targets(from).iter().map(|to| *to as usize).enumerate() {
            let weight = weights.map_or(1.0, |weights| f64::from(weights[place]));
            links += weight;
            between += if sites[from] == sites[to] { 0.0 } else { weight };
            sent += if owners[from] == owners[to] { 0.0 } else { weight };
        }
    }
    let largest = pages.iter().copied().max().unwrap_or(0) as f64 * f64::from(partitions);
    Some(Divided {
        by: by.clone(),
        partitions,
        sent: sent / f64::max(links, 1.0),
        sent_between_sites: sent / f64::max(between, 1.0),
        largest: largest / owners.len().max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use archive_math::importance::GraphBuilder;

    use super::*;

    #[test]
    fn links_within_a_country_are_not_sent() {
        let urls = ["a.de", "www.a.de", "b.de", "c.de", "a.fr"].map(str::to_owned).to_vec();
        let mut graph = GraphBuilder::new(urls.len(), true);
        for (from, to, weight) in [(0, 1, 10.0), (0, 2, 3.0), (2, 3, 2.0), (3, 4, 5.0)] {
            graph.push(from, to, weight).unwrap();
        }
        let recorded = Recorded { graph: graph.finish(), hosts: None, urls: Some(urls) };
        let of = |by: &str| divided(&recorded, &by.parse().unwrap(), 2).unwrap();
        let country = of("country:de=1,fr=2");
        assert_eq!((country.sent, country.sent_between_sites, country.largest), (0.25, 0.5, 1.6));
        let together = of("country:de=1,fr=1");
        assert_eq!((together.sent, together.largest), (0.0, 2.0));
        assert!(of("site").sent > 0.0);
        assert_eq!(divided(&Recorded { urls: None, ..recorded }, &Division::Site, 2), None);
    }
}

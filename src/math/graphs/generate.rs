//! Generated webs. The links of a page are a pure function of seed and page, so nothing has to be stored.

mod cooper_frieze;

use self::cooper_frieze::CooperFrieze;
use super::random::Random;
use super::{LinkSource, ReadError, Recorded};
use crate::importance::{Graph, GraphBuilder};

/// Maximum number of links of a generated page.
const LINKS_MAX: f64 = 2000.0;

/// Maximum number of pages of a generated graph in memory.
const PAGES_MAX: u32 = 1 << 31;

/// Parameters in the name of a generated graph.
struct GraphRecipe {
    model: String,
    pages: u32,
    links: f64,
    seed: u64,
}

fn parameters(name: &str) -> Result<GraphRecipe, ReadError> {
    let wrong = || ReadError::Name(format!("generate:{name}"));
    let mut fields = name.split(':');
    let model = fields.next().unwrap_or_default().to_owned();
    let mut number = |default: f64| match fields.next() {
        Some(field) => field.parse().ok().filter(|&number: &f64| number >= 0.0).ok_or_else(wrong),
        None => Ok(default),
    };
    let (pages, links, seed) = (number(100_000.0)?, number(10.0)?, number(1.0)? as u64);
    let pages =
        Some(pages).filter(|pages| (1.0..=f64::from(PAGES_MAX)).contains(pages) && fields.next().is_none());
    Ok(GraphRecipe { model, pages: pages.ok_or_else(wrong)? as u32, links, seed })
}

/// Generates a graph in memory from its name, without `generate:`.
pub(super) fn from_name(name: &str) -> Result<Recorded, ReadError> {
    let GraphRecipe { model, pages, links, seed } = parameters(name)?;
    let recorded = |graph, hosts| Ok(Recorded { graph, hosts, urls: None });
    match model.as_str() {
        "web" => {
            let web = HostWeb::new(pages, links, seed);
            let hosts = (0..pages).map(|page| web.host(page)).collect();
            recorded(collect(&web)?, Some(hosts))
        }
        "random" => recorded(collect(&RandomWeb { pages, links, seed })?, None),
        "copy" => recorded(copies(pages, links, seed)?, None),
        "cooper-frieze" => recorded(CooperFrieze::default().graph(pages, links, seed)?, None),
        "kron" => {
            let scale = pages.next_power_of_two().ilog2();
            recorded(kronecker(scale, links, seed)?, None)
        }
        model => {
            let of = model.strip_prefix("cooper-frieze@").and_then(CooperFrieze::parse);
            let of = of.ok_or_else(|| ReadError::Name(format!("generate:{name}")))?;
            recorded(of.graph(pages, links, seed)?, None)
        }
    }
}

/// Opens a web by its name; it is generated page by page if the model allows it.
pub(super) fn open(name: &str) -> Result<Box<dyn LinkSource>, ReadError> {
    let GraphRecipe { model, pages, links, seed } = parameters(name)?;
    Ok(match model.as_str() {
        "web" => Box::new(HostWeb::new(pages, links, seed)),
        "random" => Box::new(RandomWeb { pages, links, seed }),
        _ => Box::new(from_name(name)?),
    })
}

/// Collects all links of a web in memory.
fn collect(web: &impl LinkSource) -> Result<Graph, ReadError> {
    let mut builder = GraphBuilder::new(web.pages(), false);
    let mut buffer = Vec::new();
    for page in 0..web.pages() as u32 {
        builder.push_row(page, web.links(page, &mut buffer))?;
    }
    Ok(builder.finish())
}

/// A web of hosts whose sizes follow a power law, where most links stay inside the host.
///
/// Inside a host, popularity falls with a page's position (the home page is first). Between hosts, links lead to
/// popular hosts and mostly to their first pages. The number of links follows a power law too; some pages have none.
#[derive(Clone, Debug)]
pub struct HostWeb {
    /// First page of each host; the last entry is the number of pages.
    starts: Vec<u32>,
    /// For each block of [`HostWeb::BLOCK`] pages, the host of its first page.
    blocks: Vec<u32>,
    links: f64,
    seed: u64,
}

impl HostWeb {
    /// Share of links that lead to another host: 3.7 % in uk-2007-05.
    pub(crate) const BETWEEN_HOSTS: f64 = 0.037;
    /// Share of pages without links.
    pub(crate) const WITHOUT_LINKS: f64 = 0.1;
    /// Maximum number of pages of a host, as in uk-2007-05.
    pub(crate) const HOST_PAGES_MAX: f64 = 50_000.0;
    /// Exponent of the power law of host sizes: a share of `size^-EXPONENT` of the hosts is larger than a size. This
    /// gives about 870 pages per host; uk-2007-05 has 925.
    pub(crate) const EXPONENT: f64 = 0.3;
    /// Minimum number of hosts, even in a small web.
    const HOSTS_MIN: f64 = 20.0;
    const BLOCK: u32 = 256;

    /// Creates a web of `pages` pages with `links` links each on average.
    #[must_use]
    pub fn new(pages: u32, links: f64, seed: u64) -> Self {
        let mut random = Random::for_item(seed, u64::MAX);
        let largest = Self::HOST_PAGES_MAX.min(f64::from(pages) / Self::HOSTS_MIN).max(1.0);
        let mut starts = vec![0];
        let mut next = 0u32;
        while next < pages {
            let smaller = random.unit() * (1.0 - largest.powf(-Self::EXPONENT));
            let size = (1.0 - smaller).powf(-1.0 / Self::EXPONENT) as u32;
            next = pages.min(next.saturating_add(size.max(1)));
            starts.push(next);
        }
        let mut blocks = Vec::new();
        let mut host = 0u32;
        for first in (0..pages).step_by(Self::BLOCK as usize) {
            while starts[host as usize + 1] <= first {
                host += 1;
            }
            blocks.push(host);
        }
        Self { starts, blocks, links, seed }
    }

    /// Returns the host of a page, from 0.
    #[must_use]
    pub fn host(&self, page: u32) -> u32 {
        let mut host = self.blocks[(page / Self::BLOCK) as usize];
        while self.starts[host as usize + 1] <= page {
            host += 1;
        }
        host
    }

    /// Returns a random page of a host, whose pages are `first..end`: each doubling of the position is equally likely.
    fn popular(random: &mut Random, first: u32, end: u32) -> u32 {
        let size = f64::from(end - first);
        first + ((size + 1.0).powf(random.unit()) as u32 - 1).min(end - first - 1)
    }
}

impl LinkSource for HostWeb {
    fn pages(&self) -> usize {
        self.starts.last().map_or(0, |&pages| pages as usize)
    }

    fn links<'a>(&'a self, page: u32, buffer: &'a mut Vec<u32>) -> &'a [u32] {
        buffer.clear();
        let mut random = Random::for_item(self.seed, u64::from(page));
        let count = link_count(&mut random, self.links / (1.0 - Self::WITHOUT_LINKS), Self::WITHOUT_LINKS);
        let host = self.host(page) as usize;
        let (first, end) = (self.starts[host], self.starts[host + 1]);
        let pages = self.starts[self.starts.len() - 1];
        for _ in 0..count {
            let target = if end - first < 2 || random.unit() < Self::BETWEEN_HOSTS {
                // Hosts are popular in proportion to their size, as a random page lies on them; within a host, mostly
                // near the home page.
                let other = self.host(random.below(pages)) as usize;
                Self::popular(&mut random, self.starts[other], self.starts[other + 1])
            } else if random.unit() < 0.5 {
                // A neighbour, as in lists and directories.
                let near = page.saturating_sub(20).max(first);
                near + random.below((page.saturating_add(21)).min(end) - near)
            } else {
                Self::popular(&mut random, first, end)
            };
            buffer.push(target);
        }
        distinct(buffer);
        buffer
    }

    fn same_host(&self, a: u32, b: u32) -> bool {
        a == b || self.host(a) == self.host(b)
    }
}

/// Every link leads to a random page: in-degrees are Poisson (the OPIC paper's first and simplest model).
struct RandomWeb {
    pages: u32,
    links: f64,
    seed: u64,
}

impl LinkSource for RandomWeb {
    fn pages(&self) -> usize {
        self.pages as usize
    }

    fn links<'a>(&'a self, page: u32, buffer: &'a mut Vec<u32>) -> &'a [u32] {
        buffer.clear();
        let mut random = Random::for_item(self.seed, u64::from(page));
        let count = self.links as u32 + u32::from(random.unit() < self.links.fract());
        buffer.extend((0..count).map(|_| random.below(self.pages)));
        distinct(buffer);
        buffer
    }

    fn same_host(&self, _a: u32, _b: u32) -> bool {
        true
    }
}

/// Share of links that are copied in the copying model.
const COPIED: f64 = 0.5;

/// The copying model (Kumar et al., "Stochastic models for the web graph", 2000): a new page copies part of the links of
/// an older one, and links to random older pages for the rest. In-degrees follow a power law.
fn copies(pages: u32, links: f64, seed: u64) -> Result<Graph, ReadError> {
    let mut random = Random::new(seed);
    let mut rows: Vec<Vec<u32>> = Vec::with_capacity(pages as usize);
    let mut builder = GraphBuilder::new(pages as usize, false);
    for page in 0..pages {
        let model = random.below(page.max(1)) as usize;
        let count = links as usize + usize::from(random.unit() < links.fract());
        let mut row: Vec<u32> = (0..count)
            .map(|place| {
                let copied = rows.get(model).and_then(|row| row.get(place)).copied();
                let copied = copied.filter(|_| random.unit() < COPIED);
                copied.unwrap_or_else(|| random.below(pages))
            })
            .collect();
        distinct(&mut row);
        builder.push_row(page, &row)?;
        rows.push(row);
    }
    Ok(builder.finish())
}

/// The Graph 500 generator as the GAP benchmark uses it (`-g SCALE -k LINKS`): R-MAT with .57, .19, .19, then every arc
/// in both directions, no duplicates or self-loops, and pages renumbered at random. `links` are drawn per page, before
/// the opposite ones are added; there are 2^`scale` pages.
fn kronecker(scale: u32, links: f64, seed: u64) -> Result<Graph, ReadError> {
    let mut random = Random::new(seed);
    let pages = 1u32 << scale;
    let mut number: Vec<u32> = (0..pages).collect();
    for place in (1..pages).rev() {
        number.swap(place as usize, random.below(place + 1) as usize);
    }
    let count = (f64::from(pages) * links) as usize;
    let mut arcs: Vec<u64> = Vec::with_capacity(2 * count);
    for _ in 0..count {
        let (mut from, mut to) = (0usize, 0usize);
        for _ in 0..scale {
            let quadrant = random.unit();
            from = from * 2 + usize::from(quadrant >= 0.76);
            to = to * 2 + usize::from((0.57..0.76).contains(&quadrant) || quadrant >= 0.95);
        }
        let (from, to) = (u64::from(number[from]), u64::from(number[to]));
        if from != to {
            arcs.extend([from << 32 | to, to << 32 | from]);
        }
    }
    arcs.sort_unstable();
    arcs.dedup();
    let mut builder = GraphBuilder::new(pages as usize, false);
    builder.reserve(arcs.len());
    for arc in arcs {
        builder.push((arc >> 32) as u32, arc as u32, 1.0)?;
    }
    Ok(builder.finish())
}

/// Draws a number of links with this mean: 0 for a share `without` of the pages, otherwise Pareto with exponent 2.5.
fn link_count(random: &mut Random, mean: f64, without: f64) -> u32 {
    if random.unit() < without {
        return 0;
    }
    let smallest = mean * 0.6;
    let count = (smallest * (1.0 - random.unit()).powf(-0.4)).min(LINKS_MAX);
    count as u32 + u32::from(random.unit() < count.fract())
}

/// Sorts and removes duplicates.
fn distinct(targets: &mut Vec<u32>) {
    targets.sort_unstable();
    targets.dedup();
}

//! Crawl orders on known graphs: how much of the importance is downloaded after which part of the crawl.
//!
//! As in Alam et al. (figures 3 and 4) and many earlier papers, the true PageRank of the whole graph is known, but not
//! to the crawl.

mod known;
mod mass;
mod queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use archive_math::graphs::LinkSource;
use archive_math::graphs::random::Random as Stream;
use archive_math::importance::order::{
    Backlinks, BreadthFirst, DAMPING, Depth, DownloadOrder, Fractional, OrderLink, PageQueue, PageRankSoFar,
    RandomOrder, Renewal, WindowedRankMass,
};
use archive_math::importance::{
    Policy,
    rank::{PageRank, RankError},
};

pub use self::known::GreedyCash;
pub use self::mass::RankMass;
pub use self::queue::{ExactQueue, LevelQueue, PriorityQueue};
use super::agreement::best_first;

/// A crawl order of the crawler or the lab: those of the lab may ask the queue, and say what they cost and prove.
pub trait SimulatedOrder {
    /// Starts the crawl, as [`DownloadOrder::begin`] does.
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PriorityQueue);

    /// Handles a download, as [`DownloadOrder::downloaded`] does.
    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PriorityQueue);

    /// Number of links over which value was passed on so far: the cost of the order, independent of the machine. `None`
    /// if that was once for each link of the downloaded pages.
    fn operations(&self) -> Option<u64> {
        None
    }

    /// Returns a lower bound of the total PageRank of all downloaded pages, if the order proves one.
    fn covered(&self) -> Option<f64> {
        None
    }
}

impl<O: DownloadOrder> SimulatedOrder for O {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PriorityQueue) {
        DownloadOrder::begin(self, seeds, queue);
    }

    fn downloaded(&mut self, page: u32, links: &[OrderLink], queue: &mut dyn PriorityQueue) {
        DownloadOrder::downloaded(self, page, links, queue);
    }

    fn operations(&self) -> Option<u64> {
        DownloadOrder::operations(self)
    }

    fn covered(&self) -> Option<f64> {
        DownloadOrder::covered(self)
    }
}

/// Shares of all pages at which the gathered importance is reported.
pub const MARKS: [f64; 6] = [0.01, 0.02, 0.05, 0.10, 0.25, 0.50];

/// Number of time measurements during a crawl of all pages.
const TIMES: usize = 50;

/// A crawl order; its text form is the one of the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrderKind {
    /// Known pages in random order.
    Random,
    /// First in, first out.
    Breadth,
    /// All known pages in turn; identical to breadth first in a crawl that fetches each page once.
    Cycle,
    /// Fewest links from the site's entrance first.
    Depth,
    /// Most links from downloaded pages first.
    Backlinks,
    /// Highest PageRank in the known part of the graph first.
    PageRank,
    /// Most cash first, also called `cash` as in `archive crawl`; a link between hosts weighs M.
    Opic(f64),
    /// As `Opic`, but the virtual page gives only to unread pages.
    OpicDiscovery(f64),
    /// Fractional PageRank, FPR@M.
    Fractional(f64),
    /// Exact RankMass.
    RankMass,
    /// Windowed RankMass; the window is in percent.
    Windowed(f64),
    /// Fractional PageRank with an endowment for every page; a link between hosts weighs M.
    Endowed(f64),
    /// Knows the true PageRank of every page, but downloads only pages that it has seen a link to.
    Truth,
    /// Knows everything and may download any page: the upper bound for every order.
    Ideal,
}

/// The text is not the name of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an order; there are random, cycle, breadth, depth, backlinks, pagerank, opic[@M], opic-discovery[@M], fpr[@M], \
     endowed[@M], rankmass[@WINDOW_PERCENT], truth and ideal"
)]
pub struct UnknownOrder(String);

impl FromStr for OrderKind {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownOrder(text.to_owned());
        let (name, parameter) = match text.split_once('@') {
            Some((name, number)) => {
                let number: f64 = number.parse().map_err(|_| unknown())?;
                (
                    name,
                    Some(number)
                        .filter(|&number| number > 0.0 && number <= 1024.0)
                        .ok_or_else(unknown)?
                        .into(),
                )
            }
            None => (text, None),
        };
        let weight: f64 = parameter.unwrap_or(1.0);
        Ok(match (name, parameter) {
            ("random", None) => Self::Random,
            ("breadth", None) => Self::Breadth,
            ("cycle", None) => Self::Cycle,
            ("depth", None) => Self::Depth,
            ("backlinks", None) => Self::Backlinks,
            ("pagerank", None) => Self::PageRank,
            ("truth", None) => Self::Truth,
            ("ideal", None) => Self::Ideal,
            ("rankmass", None) => Self::RankMass,
            ("rankmass", Some(window)) if window <= 100.0 => Self::Windowed(window),
            ("opic" | "cash", _) => Self::Opic(weight),
            ("opic-discovery", _) => Self::OpicDiscovery(weight),
            ("fpr", _) => Self::Fractional(weight),
            ("endowed", _) => Self::Endowed(weight),
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for OrderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameter) = match *self {
            Self::Random => ("random", None),
            Self::Breadth => ("breadth", None),
            Self::Cycle => ("cycle", None),
            Self::Depth => ("depth", None),
            Self::Backlinks => ("backlinks", None),
            Self::PageRank => ("pagerank", None),
            Self::Truth => ("truth", None),
            Self::Ideal => ("ideal", None),
            Self::RankMass => ("rankmass", None),
            Self::Windowed(window) => ("rankmass", Some(window)),
            Self::Opic(weight) => ("opic", Some(weight).filter(|&weight| weight != 1.0)),
            Self::OpicDiscovery(weight) => ("opic-discovery", Some(weight).filter(|&weight| weight != 1.0)),
            Self::Fractional(weight) => ("fpr", Some(weight).filter(|&weight| weight != 1.0)),
            Self::Endowed(weight) => ("endowed", Some(weight).filter(|&weight| weight != 1.0)),
        };
        match parameter {
            Some(parameter) => write!(f, "{name}@{parameter}"),
            None => f.write_str(name),
        }
    }
}

impl OrderKind {
    fn order<'a>(self, rng: u64, importance: &'a [f64]) -> Box<dyn SimulatedOrder + 'a> {
        match self {
            Self::Random => Box::new(RandomOrder::new(rng)),
            Self::Breadth | Self::Cycle => Box::<BreadthFirst>::default(),
            Self::Depth => Box::<Depth>::default(),
            Self::Backlinks => Box::<Backlinks>::default(),
            Self::PageRank => Box::new(PageRankSoFar::new(Renewal::Share(0.1))),
            Self::Opic(weight) => Box::new(GreedyCash::new(Policy::damped(DAMPING), weight)),
            Self::OpicDiscovery(weight) => Box::new(GreedyCash::new(
                Policy { discovery: 1, refresh: 0, ..Policy::damped(DAMPING) },
                weight,
            )),
            Self::Fractional(weight) => Box::new(Fractional::new(weight)),
            Self::RankMass => Box::<RankMass>::default(),
            Self::Windowed(window) => Box::new(WindowedRankMass::new(Renewal::Share(window / 100.0))),
            Self::Endowed(weight) => Box::new(Fractional::endowed(weight)),
            Self::Truth => Box::new(Truth { importance, everything: false }),
            Self::Ideal => Box::new(Truth { importance, everything: true }),
        }
    }

    /// Crawls with the order from `seeds` on until nothing waits or `pages_max` pages are downloaded. `rng` seeds random
    /// orders; `importance` is for those that know the truth.
    #[must_use]
    pub fn crawl(
        self,
        web: &dyn LinkSource,
        (rng, importance): (u64, &[f64]),
        seeds: &[u32],
        pages_max: usize,
    ) -> Crawl {
        let (mut order, mut queue) = (self.order(rng, importance), self.queue());
        crawl(web, (order.as_mut(), queue.as_mut()), seeds, pages_max)
    }

    /// Creates the queue for the order: exact where priorities can be negative or differ very little.
    fn queue(self) -> Box<dyn PriorityQueue> {
        match self {
            Self::Random | Self::Truth | Self::Ideal => Box::<ExactQueue>::default(),
            _ => Box::<LevelQueue>::default(),
        }
    }
}

/// Downloads the most important pages first, either of those seen or of all.
struct Truth<'a> {
    importance: &'a [f64],
    everything: bool,
}

impl DownloadOrder for Truth<'_> {
    fn begin(&mut self, seeds: &[u32], queue: &mut dyn PageQueue) {
        if self.everything {
            (0..self.importance.len() as u32)
                .for_each(|page| queue.put(page, self.importance[page as usize]));
        }
        seeds.iter().for_each(|&seed| queue.put(seed, self.importance[seed as usize]));
    }

    fn downloaded(&mut self, _page: u32, links: &[OrderLink], queue: &mut dyn PageQueue) {
        for link in links.iter().filter(|_| !self.everything) {
            queue.put(link.target, self.importance[link.target as usize]);
        }
    }
}

/// A simulated crawl.
#[derive(Clone, Debug)]
pub struct Crawl {
    /// Pages in download order.
    pub downloads: Vec<u32>,
    /// Time of the order and the queue, including reading the links.
    pub seconds: f64,
    /// Number of downloads and time so far, a few times during the crawl.
    pub times: Vec<(usize, f64)>,
    /// Number of links over which something was passed on.
    pub operations: u64,
    /// Proven lower bound of the downloaded pages' PageRank, for RankMass.
    pub covered: Option<f64>,
}

/// Downloads from `seeds` on, in this order and with an empty queue.
fn crawl(
    web: &dyn LinkSource,
    (order, queue): (&mut dyn SimulatedOrder, &mut dyn PriorityQueue),
    seeds: &[u32],
    pages_max: usize,
) -> Crawl {
    let start = Instant::now();
    order.begin(seeds, queue);
    let mut downloads = Vec::new();
    let step = (web.pages() / TIMES).max(1);
    let mut times = vec![(0, 0.0)];
    let mut buffer = Vec::new();
    let mut links = Vec::new();
    let mut passed = 0;
    while downloads.len() < pages_max
        && let Some(page) = queue.take()
    {
        downloads.push(page);
        links.clear();
        let targets = web.links(page, &mut buffer);
        links.extend(
            targets.iter().map(|&target| OrderLink { target, between_hosts: !web.same_host(page, target) }),
        );
        passed += links.len() as u64;
        order.downloaded(page, &links, queue);
        if downloads.len() % step == 0 {
            times.push((downloads.len(), start.elapsed().as_secs_f64()));
        }
    }
    Crawl {
        downloads,
        times,
        seconds: start.elapsed().as_secs_f64(),
        operations: order.operations().unwrap_or(passed),
        covered: order.covered(),
    }
}

/// How early a crawl gathered importance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gathered {
    /// Mean share of the total importance gathered so far, over the downloads of the crawl.
    pub auc: f64,
    /// Share gathered when each share of [`MARKS`] was downloaded, or at the end of a shorter crawl.
    pub shares: [f64; MARKS.len()],
}

/// Measures a crawl against the true importance of all pages.
#[must_use]
pub fn gathered(downloads: &[u32], importance: &[f64]) -> Gathered {
    let all: f64 = importance.iter().sum();
    let mut shares = [0.0; MARKS.len()];
    let mut sum = 0.0;
    let mut area = 0.0;
    let mut mark = 0;
    for (number, &page) in downloads.iter().enumerate() {
        sum += importance[page as usize] / all;
        area += sum;
        while mark < MARKS.len() && (number + 1) as f64 >= MARKS[mark] * importance.len() as f64 {
            shares[mark] = sum;
            mark += 1;
        }
    }
    shares[mark..].fill(sum);
    Gathered { auc: area / downloads.len().max(1) as f64, shares }
}

/// Returns points of the curve "share of importance over share of pages", about `count` of them.
#[must_use]
pub fn curve(downloads: &[u32], importance: &[f64], count: usize) -> Vec<(f64, f64)> {
    let all: f64 = importance.iter().sum();
    let step = (downloads.len() / count.max(1)).max(1);
    let mut points = vec![(0.0, 0.0)];
    let mut sum = 0.0;
    for (number, &page) in downloads.iter().enumerate() {
        sum += importance[page as usize] / all;
        if (number + 1) % step == 0 || number + 1 == downloads.len() {
            points.push(((number + 1) as f64 / importance.len() as f64, sum));
        }
    }
    points
}

/// How the seeds of crawls are chosen; the paper takes the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Seeds {
    /// Random pages
    Random,
    /// The pages with the highest PageRank
    Top,
}

impl Seeds {
    /// Chooses `count` seeds.
    #[must_use]
    pub fn choose(self, count: usize, rng: u64, importance: &[f64]) -> Vec<u32> {
        match self {
            Self::Random => Stream::new(rng).choose(importance.len() as u32, count),
            Self::Top => best_first(importance).into_iter().take(count).map(|page| page as u32).collect(),
        }
    }
}

/// Returns the importance that judges the orders: PageRank with damping 0.85, with each link counted once.
///
/// # Errors
/// None with these options.
pub fn true_importance(
    graph: &archive_math::importance::Graph,
    threads: usize,
) -> Result<Vec<f64>, RankError> {
    let options = PageRank { tolerance: 1e-10, threads, ..PageRank::default() };
    Ok(options.run(graph.clone().unweighted())?.values)
}

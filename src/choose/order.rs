//! The order in which pages are fetched: by the cash in the ledger, or by one of the orders that the lab compares.
//!
//! The orders are those of [`archive_math::importance::order`], the same that the lab measures. The priority of a page in
//! their queue becomes its level in the frontier. Cash is stored with the pages; every other order keeps its numbers in
//! memory and recomputes them from the stored links when a crawl continues. PageRank and RankMass also keep all links of
//! fetched pages in memory, and give waiting pages new levels from time to time.

use std::fmt;
use std::str::FromStr;

use archive_books::ledger::{LEVEL_PAGE_MAX, LinkCode, page_flags as flags};
use archive_math::importance::order::{
    Backlinks, BreadthFirst, Depth, DownloadOrder, Fractional, OrderLink, PageQueue, PageRankSoFar,
    RandomOrder, Renewal, WindowedRankMass,
};
use archive_storage::{PageFlags, State, StateError, UrlId};

/// Seed of the random order. A continued crawl draws the same numbers for the same pages.
const RANDOM_SEED: u64 = 1;

/// Default weight of a link to another host in FPR@M; the paper found it best.
const HOST_WEIGHT: f64 = 100.0;

/// Flags of pages that have an account, also of those that turned out to be aliases or missing.
const WAITS_OR_LEADS: PageFlags = flags::PAGE;

/// Number of levels per doubling of a priority, as of cash.
const LEVELS_PER_DOUBLING: f64 = 8.0;

/// Level of a page that received as much as the average page has: that of an endowment of cash.
const LEVEL_OF_ONE: f64 = 67.0;

/// PageRank is computed again when a tenth more pages are fetched.
const PAGE_RANK_SHARE: f64 = 0.1;

/// RankMass is computed again when a twentieth of the waiting pages are fetched, as in most of the paper.
const RANK_MASS_SHARE: f64 = 0.05;

/// An order of fetching; the command line takes its text form.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CrawlOrder {
    /// Most cash first (OPIC).
    #[default]
    Cash,
    /// Fractional PageRank with an endowment for every page; a link between hosts has weight M.
    Endowed(f64),
    /// Fractional PageRank; a link between hosts has weight M.
    Fractional(f64),
    /// Highest PageRank in the known part first; computed again after this number of pages.
    PageRank(Option<u32>),
    /// Most RankMass first; computed again after this number of pages.
    RankMass(Option<u32>),
    /// All known pages in turn, which is the order of discovery while each is fetched once.
    Cycle,
    /// In order of discovery.
    Breadth,
    /// Fewest links from the entrance of the site first.
    Depth,
    /// Most links from fetched pages first.
    Backlinks,
    /// At random.
    Random,
}

/// The text is not the name of an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an order; the orders are cash, endowed[@M], fpr[@M], pagerank[@N], rankmass[@N], cycle, breadth, depth, \
     backlinks and random"
)]
pub struct UnknownOrder(String);

impl FromStr for CrawlOrder {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownOrder(text.to_owned());
        let (name, weight) = match text.split_once('@') {
            Some((name, weight)) => (name, Some(weight.parse::<f64>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        if weight.is_some_and(|weight| !(weight > 0.0 && weight.is_finite())) {
            return Err(unknown());
        }
        let whole = |pages: Option<f64>| match pages {
            Some(pages) if pages.fract() > 0.0 || pages > f64::from(u32::MAX) => Err(unknown()),
            pages => Ok(pages.map(|pages| pages as u32)),
        };
        match (name, weight) {
            ("cash", None) => Ok(Self::Cash),
            ("endowed", weight) => Ok(Self::Endowed(weight.unwrap_or(1.0))),
            ("fpr", weight) => Ok(Self::Fractional(weight.unwrap_or(HOST_WEIGHT))),
            ("pagerank", pages) => Ok(Self::PageRank(whole(pages)?)),
            ("rankmass", pages) => Ok(Self::RankMass(whole(pages)?)),
            ("cycle", None) => Ok(Self::Cycle),
            ("breadth", None) => Ok(Self::Breadth),
            ("depth", None) => Ok(Self::Depth),
            ("backlinks", None) => Ok(Self::Backlinks),
            ("random", None) => Ok(Self::Random),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for CrawlOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cash => f.write_str("cash"),
            Self::Endowed(weight) => write!(f, "endowed@{weight}"),
            Self::Fractional(weight) => write!(f, "fpr@{weight}"),
            Self::PageRank(None) => f.write_str("pagerank"),
            Self::PageRank(Some(pages)) => write!(f, "pagerank@{pages}"),
            Self::RankMass(None) => f.write_str("rankmass"),
            Self::RankMass(Some(pages)) => write!(f, "rankmass@{pages}"),
            Self::Cycle => f.write_str("cycle"),
            Self::Breadth => f.write_str("breadth"),
            Self::Depth => f.write_str("depth"),
            Self::Backlinks => f.write_str("backlinks"),
            Self::Random => f.write_str("random"),
        }
    }
}

impl CrawlOrder {
    /// Describes in English what comes first.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Cash => {
                "pages that have gained most importance from links since their last fetch come first"
            }
            Self::Endowed(_) | Self::Fractional(_) | Self::PageRank(_) | Self::RankMass(_) => {
                "pages that important pages link to come first"
            }
            Self::Cycle | Self::Breadth => "pages that were found first come first",
            Self::Depth => "pages nearest to the entrance of their site come first",
            Self::Backlinks => "pages with the most links from fetched pages come first",
            Self::Random => "in random order",
        }
    }

    /// Creates the ordering and brings it up to date; `None` for cash, which is in the ledger.
    pub fn begin(self, state: &State, seeds: &[UrlId]) -> Result<Option<Ordering>, StateError> {
        let (order, scale): (Box<dyn DownloadOrder>, Scale) = match self {
            Self::Cash => return Ok(None),
            Self::Endowed(weight) => {
                (Box::new(Fractional::endowed(weight)), Scale::Logarithm { one: LEVEL_OF_ONE })
            }
            Self::Fractional(weight) => {
                (Box::new(Fractional::new(weight)), Scale::Logarithm { one: f64::from(LEVEL_PAGE_MAX) })
            }
            Self::PageRank(pages) => (
                Box::new(PageRankSoFar::new(pages.map_or(Renewal::Share(PAGE_RANK_SHARE), Renewal::Pages))),
                Scale::Logarithm { one: LEVEL_OF_ONE },
            ),
            Self::RankMass(pages) => (
                Box::new(WindowedRankMass::new(
                    pages.map_or(Renewal::Share(RANK_MASS_SHARE), Renewal::Pages),
                )),
                Scale::Logarithm { one: f64::from(LEVEL_PAGE_MAX) },
            ),
            Self::Cycle | Self::Breadth => (Box::new(BreadthFirst::default()), Scale::Logarithm { one: 1.0 }),
            Self::Depth => (Box::new(Depth::default()), Scale::Reciprocal),
            Self::Backlinks => (Box::new(Backlinks::default()), Scale::Logarithm { one: 1.0 }),
            Self::Random => (Box::new(RandomOrder::new(RANDOM_SEED)), Scale::Linear { whole: 2f64.powi(64) }),
        };
        let is_renewed = matches!(self, Self::PageRank(_) | Self::RankMass(_));
        let levels = QueuedLevels { scale, of: Vec::new(), changed: is_renewed.then(Vec::new) };
        let mut ordering = Ordering { order, levels, links: Vec::new() };
        ordering.resume(state, seeds)?;
        Ok(Some(ordering))
    }
}

/// An order in use, with the levels of its pages.
pub struct Ordering {
    order: Box<dyn DownloadOrder>,
    levels: QueuedLevels,
    /// Links of the current page; the buffer is reused.
    links: Vec<OrderLink>,
}

impl fmt::Debug for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordering").finish_non_exhaustive()
    }
}

impl Ordering {
    /// Replays the seeds and the pages fetched before.
    fn resume(&mut self, state: &State, seeds: &[UrlId]) -> Result<(), StateError> {
        let seeds: Vec<u32> = seeds.iter().map(|seed| seed.0).collect();
        self.order.begin(&seeds, &mut self.levels);
        let mut links = std::mem::take(&mut self.links);
        state.newest_links(|(source, page, _), targets| {
            links.clear();
            let host = page.host;
            for target in targets {
                let page = state.page(target.target)?;
                if LinkCode::from_byte(target.kind).carries_cash() && page.flags.has_any(WAITS_OR_LEADS) {
                    links.push(OrderLink { target: target.target.0, between_hosts: page.host != host });
                }
            }
            self.order.downloaded(source.0, &links, &mut self.levels);
            Ok::<_, StateError>(())
        })?;
        self.links = links;
        self.take_changed();
        Ok(())
    }

    /// Takes the pages whose levels were computed again.
    pub fn take_changed(&mut self) -> Vec<UrlId> {
        self.levels.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records that a page was fetched and links to `targets`.
    pub fn fetched(
        &mut self,
        state: &State,
        page: UrlId,
        targets: impl Iterator<Item = UrlId>,
    ) -> Result<(), StateError> {
        let host = state.page(page)?.host;
        self.links.clear();
        for target in targets {
            let record = state.page(target)?;
            if record.flags.has_any(WAITS_OR_LEADS) {
                self.links.push(OrderLink { target: target.0, between_hosts: record.host != host });
            }
        }
        self.order.downloaded(page.0, &self.links, &mut self.levels);
        Ok(())
    }

    /// Level of a page in the frontier.
    pub fn level(&self, page: UrlId) -> u8 {
        self.levels.of.get(page.index()).copied().unwrap_or(1).max(1)
    }
}

/// How the priorities of an order map to levels.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// [`LEVELS_PER_DOUBLING`] levels for each doubling; priority 1 has level `one`.
    Logarithm { one: f64 },
    /// Priorities from 0 to `whole`.
    Linear { whole: f64 },
    /// Priorities 1, 1/2, 1/3, …, one level each.
    Reciprocal,
}

/// The levels of all pages that an order has queued; the pages themselves wait in the frontier.
struct QueuedLevels {
    scale: Scale,
    of: Vec<u8>,
    /// Pages whose level changed, where an order is computed again and again.
    changed: Option<Vec<UrlId>>,
}

impl QueuedLevels {
    fn level(&self, priority: f64) -> u8 {
        let most = f64::from(LEVEL_PAGE_MAX);
        let level = match self.scale {
            Scale::Logarithm { one } => one + LEVELS_PER_DOUBLING * priority.log2(),
            Scale::Linear { whole } => 1.0 + (most - 1.0) * priority / whole,
            Scale::Reciprocal => most + 1.0 - 1.0 / priority,
        };
        level.clamp(1.0, most) as u8
    }
}

impl PageQueue for QueuedLevels {
    fn put(&mut self, page: u32, priority: f64) {
        let place = page as usize;
        if place >= self.of.len() {
            self.of.resize((place + 1).next_power_of_two(), 0);
        }
        let level = self.level(priority);
        if std::mem::replace(&mut self.of[place], level) != level
            && let Some(changed) = &mut self.changed
        {
            changed.push(UrlId(page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CrawlOrder, QueuedLevels, Scale};
    use archive_math::importance::order::PageQueue;

    #[test]
    fn orders_are_named() {
        for name in [
            "cash",
            "endowed@1",
            "fpr@100",
            "pagerank",
            "pagerank@1000",
            "rankmass",
            "rankmass@500",
            "cycle",
            "breadth",
            "depth",
            "backlinks",
            "random",
        ] {
            assert_eq!(name.parse::<CrawlOrder>().unwrap().to_string(), name);
        }
        assert_eq!("fpr".parse(), Ok(CrawlOrder::Fractional(100.0)));
        for name in [
            "",
            "cash@2",
            "fpr@0",
            "fpr@x",
            "pagerank@1.5",
            "rankmass@0",
            "rankmass@1e99",
            "cycle@2",
            "truth",
        ] {
            assert!(
                name.parse::<CrawlOrder>().unwrap_err().to_string().contains("the orders are cash"),
                "{name}"
            );
        }
    }

    #[test]
    fn better_pages_have_higher_levels() {
        for (scale, priorities) in [
            (Scale::Logarithm { one: 40.0 }, [1.0, 1.5, 100.0]),
            (Scale::Linear { whole: 1e9 }, [1e6, 5e8, 9e8]),
            (Scale::Reciprocal, [1.0 / 90.0, 1.0 / 3.0, 1.0]),
        ] {
            let mut levels = QueuedLevels { scale, of: Vec::new(), changed: None };
            for (page, priority) in (0..).zip(priorities) {
                levels.put(page, priority);
            }
            assert!(
                levels.of[0] > 0 && levels.of[0] < levels.of[1] && levels.of[1] < levels.of[2],
                "{scale:?}"
            );
        }
    }
}

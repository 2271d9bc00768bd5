//! One crawl of a group's pages, and the time at which it found its targets.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use archive_math::focus::{
    FetchedPage, Focus, FocusMode, Knowledge, LabelledPage, LearnOrder, OrderMemory, UnknownMode,
};
use archive_math::importance::Policy;
use archive_math::importance::order::{Backlinks, BreadthFirst, PageQueue, RandomOrder};

use super::orders::{Laser, Unfocused};
use super::web::Web;
use crate::orders::{ExactQueue, GreedyCash, PriorityQueue as _};

/// A crawl order; its text form is the one of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FocusOrder {
    /// A mode of focused crawls.
    Mode(FocusMode),
    /// Relevance passed back along links.
    Laser,
    /// Most cash first (OPIC).
    Opic,
    /// Most links first.
    Backlinks,
    /// First in, first out.
    Breadth,
    /// Random order.
    Random,
    /// Knows the pages of the topic and the paths to them: an upper bound for the other orders.
    Clairvoyant,
}

/// The text is not the name of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{mode}, and {names}", names = FocusOrder::OTHERS.map(|(name, _)| name).join(", "))]
pub struct UnknownKind {
    mode: UnknownMode,
}

impl FocusOrder {
    const MODES: [FocusMode; 10] = [
        FocusMode::Learned,
        FocusMode::Soft,
        FocusMode::Hard,
        FocusMode::Tunnel(2),
        FocusMode::Context,
        FocusMode::Reinforced,
        FocusMode::Fish,
        FocusMode::Shark,
        FocusMode::ParentAnchor,
        FocusMode::Ucb,
    ];

    const OTHERS: [(&'static str, Self); 6] = [
        ("laser", Self::Laser),
        ("opic", Self::Opic),
        ("backlinks", Self::Backlinks),
        ("breadth", Self::Breadth),
        ("random", Self::Random),
        ("clairvoyant", Self::Clairvoyant),
    ];

    /// Returns every order.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let others = Self::OTHERS.map(|(_, order)| order);
        Self::MODES.into_iter().map(Self::Mode).chain(others).collect()
    }
}

impl fmt::Display for FocusOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Mode(mode) = self {
            return mode.fmt(f);
        }
        f.write_str(Self::OTHERS.iter().find(|(_, order)| order == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for FocusOrder {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Self::OTHERS.iter().find(|(name, _)| *name == text) {
            Some((_, order)) => Ok(*order),
            None => Ok(Self::Mode(text.parse().map_err(|mode| UnknownKind { mode })?)),
        }
    }
}

/// How early a crawl found its targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Recall, averaged over the crawl of all reachable pages.
    pub auc: f64,
    /// Share of the pages fetched when half of the targets were found; 1 if that never happened.
    pub share_50: f64,
    /// The same for nine tenths of the targets.
    pub share_90: f64,
    /// Recall after a tenth of the pages.
    pub recall_10: f64,
    /// Number of reachable pages.
    pub pages: usize,
    /// Number of targets among them.
    pub targets: usize,
    /// Number of links passed to the order.
    pub links: usize,
    /// Bytes that the order stored per waiting page, at the maximum of waiting pages; `None` if the order does not
    /// count them.
    pub bytes_a_page: Option<f64>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Number of fetched pages between two measurements of an order's memory.
const LOOK_EVERY: usize = 16;

/// A repeatable crawl of one group.
#[derive(Debug)]
pub struct Replay<'w> {
    /// The web.
    pub web: &'w Web,
    /// Model learned from the examples.
    pub knowledge: &'w Arc<Knowledge>,
    /// The examples.
    pub examples: &'w [LabelledPage<'w>],
    /// Class probabilities of each page by the model.
    pub classes: &'w [Vec<f64>],
    /// Pages that the crawl can reach.
    pub reachable: &'w [u32],
    /// Pages at which the crawl begins.
    pub seeds: &'w [u32],
    /// Class of labels that the crawl looks for.
    pub class: usize,
    /// Number of this class in the model.
    pub known_as: usize,
}

impl Replay<'_> {
    /// Runs one crawl; `rng` breaks ties. Returns `None` if there are no targets.
    #[must_use]
    pub fn run(&self, kind: FocusOrder, rng: u64) -> Option<Measures> {
        let is_target = |page: u32| self.web.pages[page as usize].class() == Some(self.class);
        let targets = self.reachable.iter().filter(|&&page| is_target(page)).count();
        if targets == 0 {
            return None;
        }
        let mut random = fastrand::Rng::with_seed(rng);
        let mut numbers = vec![None; self.web.pages.len()];
        let mut shuffled: Vec<u32> = self.reachable.to_vec();
        random.shuffle(&mut shuffled);
        shuffled.iter().zip(0..).for_each(|(&page, number)| numbers[page as usize] = Some(number));
        let mut focus = self.focus(kind, rng, &numbers);
        let mut queue = ExactQueue::default();
        let number = |page: u32| numbers[page as usize];
        let seeds: Vec<(u32, &str)> = self
            .seeds
            .iter()
            .filter_map(|&seed| Some((number(seed)?, self.web.pages[seed as usize].url.as_str())))
            .collect();
        let mut found = Vec::with_capacity(shuffled.len());
        let (mut links, mut seconds, mut most): (usize, f64, Option<OrderMemory>) = (0, 0.0, None);
        let begun = Instant::now();
        focus.begin(&seeds, &mut queue);
        seconds += begun.elapsed().as_secs_f64();
        while let Some(taken) = queue.take() {
            let page = shuffled[taken as usize];
            found.push(is_target(page));
            let mut leads = self.web.leads(page as usize, number);
            random.shuffle(&mut leads);
            links += leads.len();
            let said = self.web.pages[page as usize].said();
            let fetched = FetchedPage {
                page: taken,
                classes: &self.classes[page as usize],
                text: &said,
                leads: &leads,
            };
            let begun = Instant::now();
            focus.fetched(&fetched, &mut queue);
            seconds += begun.elapsed().as_secs_f64();
            if found.len().is_multiple_of(LOOK_EVERY) {
                let now = focus.memory().filter(|now| most.is_none_or(|most| now.waiting > most.waiting));
                most = now.or(most);
            }
        }
        drop(focus);
        let bytes_a_page = most.map(|most| most.bytes as f64 / most.waiting.max(1) as f64);
        Some(Measures { links, bytes_a_page, seconds, ..measures(&found, targets, self.reachable.len()) })
    }

    fn focus(&self, kind: FocusOrder, rng: u64, numbers: &[Option<u32>]) -> Box<dyn Focus + '_> {
        let class = self.known_as;
        match kind {
            FocusOrder::Mode(mode) => {
                let learn = |learn: LearnOrder| Ok::<_, Infallible>(learn(self.examples, self.class));
                let Ok(order) = mode.order(self.knowledge, class, &self.web.classes[self.class], learn);
                order
            }
            FocusOrder::Laser => Box::new(Laser::new(class)),
            FocusOrder::Opic => Box::new(Unfocused(GreedyCash::new(Policy::default(), 1.0))),
            FocusOrder::Backlinks => Box::new(Unfocused(Backlinks::default())),
            FocusOrder::Breadth => Box::new(Unfocused(BreadthFirst::default())),
            FocusOrder::Clairvoyant => Box::new(Clairvoyant::new(self, numbers)),
            FocusOrder::Random => Box::new(Unfocused(RandomOrder::new(rng))),
        }
    }
}

/// Fetches targets first, then pages that link to the most targets, directly or through other pages.
struct Clairvoyant(Vec<f64>);

/// Value of a target relative to links to targets, and the share of a page's value that passes to its parents.
const TARGET: f64 = 1e6;
const CLAIRVOYANT_DECAY: f64 = 0.5;

impl Clairvoyant {
    fn new(replay: &Replay<'_>, numbers: &[Option<u32>]) -> Self {
        let web = replay.web;
        let mut hubs = vec![0.0_f64; web.pages.len()];
        let is_target = |page: u32| web.pages[page as usize].class() == Some(replay.class);
        let links = |page: u32| {
            let links = web.pages[page as usize].links.iter().map(|link| link.target);
            links.filter(|&target| numbers[target as usize].is_some())
        };
        for _ in 0..8 {
            for &page in replay.reachable {
                let direct = links(page).filter(|&target| is_target(target)).count() as f64;
                let beyond = links(page).map(|target| hubs[target as usize]).fold(0.0, f64::max);
                hubs[page as usize] = direct.max(CLAIRVOYANT_DECAY * beyond);
            }
        }
        let mut worth = vec![0.0; replay.reachable.len()];
        for &page in replay.reachable {
            if let Some(number) = numbers[page as usize] {
                worth[number as usize] = hubs[page as usize] + if is_target(page) { TARGET } else { 0.0 };
            }
        }
        Self(worth)
    }
}

impl Focus for Clairvoyant {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        page.leads.iter().for_each(|lead| queue.put(lead.target, self.0[lead.target as usize]));
    }
}

/// Measures the recall curve. `found` has, for each page in fetch order, whether it is a target.
fn measures(found: &[bool], targets: usize, pages: usize) -> Measures {
    let mut hits = 0;
    let mut curve: Vec<f64> = Vec::with_capacity(pages);
    for &found in found {
        hits += usize::from(found);
        curve.push(hits as f64 / targets as f64);
    }
    let end = curve.last().copied().unwrap_or(0.0);
    curve.resize(pages.max(1), end);
    let share = |recall: f64| {
        let at = curve.iter().position(|&value| value >= recall - 1e-9);
        at.map_or(1.0, |at| (at + 1) as f64 / pages as f64)
    };
    Measures {
        auc: curve.iter().sum::<f64>() / curve.len() as f64,
        share_50: share(0.5),
        share_90: share(0.9),
        recall_10: curve[((pages as f64 * 0.1).round() as usize).max(1) - 1],
        pages,
        targets,
        links: 0,
        bytes_a_page: None,
        seconds: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use archive_math::focus::Model;

    use super::super::web::{Link, Page};
    use super::*;

    /// Group 0 contains the examples, with the pages of each class linked in a ring. Group 1 is a site: its entrance
    /// links to a list of 30 recipes and to 6 chains of 20 news pages each.
    fn web() -> Web {
        let mut web = Web {
            classes: vec!["recipe".into(), "news".into()],
            groups: vec!["a".into(), "b".into()],
            pages: vec![],
        };
        let mut add = |class: usize, group: usize, url: String, links: Vec<(u32, &str)>| {
            let text = [" flour oven butter recipe", " minister vote report"][class];
            let link = |((target, anchor), place): ((u32, &str), u32)| Link {
                target,
                anchor: anchor.to_owned(),
                heading: String::new(),
                context: String::new(),
                place,
            };
            let links = links.into_iter().zip(0..).map(link).collect();
            let title = ["Apple pie", "Election"][class].to_owned();
            web.pages.push(Page {
                url,
                title,
                headings: vec![],
                text: text.to_owned(),
                links,
                label: Some((class, group)),
            });
        };
        for i in 0..40 {
            add(
                i % 2,
                0,
                format!("http://a.org/{i}"),
                vec![((i as u32 + 2) % 40, ["Apple pie", "Election"][i % 2])],
            );
        }
        let chains: Vec<(u32, &str)> = (0..6).map(|chain| (72 + 20 * chain, "Election")).collect();
        add(1, 1, "http://b.org/".into(), [chains, vec![(41, "Recipes")]].concat());
        add(1, 1, "http://b.org/all".into(), (42..72).map(|page| (page, "Pie")).collect());
        (42..72).for_each(|page| add(0, 1, format!("http://b.org/{page}"), vec![]));
        for page in 72..192 {
            let links = if (page - 71) % 20 == 0 { vec![] } else { vec![(page + 1, "Next")] };
            add(1, 1, format!("http://b.org/{page}"), links);
        }
        web
    }

    #[test]
    fn the_learned_order_finds_the_list_and_nobody_beats_the_clairvoyant() {
        let web = web();
        let examples = web.examples(&[0]);
        let knowledge = Arc::new(Knowledge::learn(&examples, 2, Model::default()));
        let classes: Vec<Vec<f64>> = web.pages.iter().map(|page| knowledge.page(&page.said())).collect();
        let seeds = [40];
        let reachable = web.reachable(1, &seeds);
        assert_eq!(reachable.len(), 152);
        let replay = Replay {
            web: &web,
            knowledge: &knowledge,
            examples: &examples,
            classes: &classes,
            reachable: &reachable,
            seeds: &seeds,
            class: 0,
            known_as: 0,
        };
        let run = |kind| replay.run(kind, 1).unwrap();
        let (learned, breadth, clairvoyant) = (
            run(FocusOrder::Mode(FocusMode::Learned)),
            run(FocusOrder::Breadth),
            run(FocusOrder::Clairvoyant),
        );
        assert_eq!((learned.pages, learned.targets), (152, 30));
        assert!(learned.auc > breadth.auc + 0.05, "{learned:?} {breadth:?}");
        for kind in FocusOrder::all() {
            let measures = run(kind);
            assert!(measures.auc <= clairvoyant.auc + 1e-9, "{kind}: {measures:?}");
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(run(kind).auc, measures.auc, "{kind} is repeatable");
        }
        assert!("nothing".parse::<FocusOrder>().unwrap_err().to_string().contains("tunnel:N"));
        assert_eq!(
            Replay { class: 1, reachable: &reachable[1..2], ..replay }
                .run(FocusOrder::Mode(FocusMode::Soft), 1)
                .map(|m| m.targets),
            Some(1)
        );
    }

    /// Returns a web of `pages` pages with random links, a tenth of which are recipes.
    fn without_locality(pages: u32, seed: u64) -> Web {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut web = Web { groups: vec!["a".into(), "b".into()], ..web() };
        web.pages.truncate(40);
        let mut links: Vec<Vec<u32>> =
            (0..pages).map(|_| (0..6).map(|_| random.u32(..pages)).collect()).collect();
        // All pages are reachable.
        (1..pages).for_each(|page| links[random.u32(..page) as usize].push(page));
        for (page, mut targets) in (0..pages).zip(links) {
            targets.retain(|target| *target != page);
            random.shuffle(&mut targets);
            let mut met = std::collections::HashSet::new();
            targets.retain(|target| met.insert(*target));
            let class = usize::from(page == 0 || random.f64() > 0.1);
            let mut copy = web.pages[class].clone();
            copy.url = format!("http://b.org/{page}");
            copy.label = Some((class, 1));
            let link = |(target, place): (u32, u32)| Link {
                target: 40 + target,
                anchor: "more".to_owned(),
                heading: String::new(),
                context: String::new(),
                place,
            };
            copy.links = targets.into_iter().zip(0..).map(link).collect();
            web.pages.push(copy);
        }
        web
    }

    #[test]
    fn where_nothing_leads_to_a_topic_nothing_is_lost() {
        const WEBS: u64 = 16;
        let [mut learned, mut opic] = [0.0; 2];
        for seed in 0..WEBS {
            let web = without_locality(800, seed);
            let examples = web.examples(&[0]);
            let knowledge = Arc::new(Knowledge::learn(&examples, 2, Model::default()));
            let classes: Vec<Vec<f64>> = web.pages.iter().map(|page| knowledge.page(&page.said())).collect();
            let seeds = [40];
            let replay = Replay {
                web: &web,
                knowledge: &knowledge,
                examples: &examples,
                classes: &classes,
                reachable: &web.reachable(1, &seeds),
                seeds: &seeds,
                class: 0,
                known_as: 0,
            };
            learned += replay.run(FocusOrder::Mode(FocusMode::Learned), seed).unwrap().auc / WEBS as f64;
            opic += replay.run(FocusOrder::Opic, seed).unwrap().auc / WEBS as f64;
        }
        println!("recall over the crawl: learned {learned:.3}, by importance {opic:.3}");
        assert!(learned > opic - 0.03, "{learned} {opic}");
    }

    #[test]
    fn measures_are_as_by_hand() {
        let found = [false, true, false, true, true, false, false, true];
        let measures = measures(&found, 4, 10);
        let curve = [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 0.75, 1.0, 1.0, 1.0];
        assert!((measures.auc - curve.iter().sum::<f64>() / 10.0).abs() < 1e-12);
        assert_eq!((measures.share_50, measures.share_90, measures.recall_10), (0.4, 0.8, 0.0));
    }
}

//! An order that learns online what leads to pages of the topic.
//!
//! A waiting page is described by a few numbers (`EACH`). A logistic regression over them predicts whether the page
//! is of the topic or leads to new pages that are. It starts with weights that suit any topic, and is refitted
//! repeatedly to the outcomes of fetched pages, regularised towards these weights. The outcome of a page is p + future
//! · (1 - p) · (1 - e^(-n/3)), where p is its probability of the topic and n the expected number of pages of the topic
//! among its new links. This is the discounted future of reinforcement learning (Rennie, McCallum 1999): one
//! step ahead by what is known, and further by the score itself, which predicts outcomes with their future.
//! [`super::Reinforced`] looks all steps ahead, in the examples.

use std::collections::HashMap;
use std::sync::Arc;

use super::links::{pattern, stem};
use super::relatives::{Children, Folders, OutcomeRate, Rates, table_bytes};
use super::texts::LinkTexts;
use super::waiting_pages::{DEPTH_MAX, Parent, WaitingPage, WaitingPages, place_of};
use super::{FetchedPage, Focus, Knowledge, Lead, OrderMemory};
use crate::importance::order::PageQueue;
use crate::learn::{fit_weights, log_odds, sigmoid};

/// Each part of the score of a waiting page: its name for users and its initial weight; the last is the constant. Words
/// and outcomes count by their log-odds, as means over the links to the page unless the best is named; that the topic
/// is named counts 0 or 1, sizes by their logarithms.
const EACH: [(&str, f64); 21] = [
    ("words of the URL", 0.5),
    ("link texts", 0.4),
    ("best link text", 0.1),
    ("words of the topic in the link", 0.4),
    ("the topic's name in a link text", 1.5),
    ("the topic's name in the URL", 1.0),
    ("the topic's name in a heading above", 0.3),
    ("pages that link to it", 0.4),
    ("best page that links to it", 0.0),
    ("what such pages lead to", 0.1),
    ("other links of these pages", 0.3),
    ("of the best of these pages", 0.0),
    ("links beside it", 0.5),
    ("beside it on the best page", 0.0),
    ("its folder", 0.3),
    ("URLs like it", 0.3),
    ("pages of its folder", 0.0),
    ("number of pages that link to it", 0.0),
    ("number of links of these pages", 0.0),
    ("distance from the seeds", 0.0),
    ("what holds for all pages", -2.0),
];

/// Number of parts.
const PARTS: usize = EACH.len();
/// Maximum number of outcomes for learning, the newest ones.
const OUTCOMES_MAX: usize = 2000;
/// Minimum number of fetched pages between fits, absolute and as a divisor of all fetched pages.
const FIT_EVERY: usize = 5;
const FIT_PART: usize = 50;
/// Divisor of the number of waiting pages that gives the number of fetches after which all scores are recomputed.
const SCORES_A_PAGE: usize = 64;
/// Number of links before and after that of a fetched page, in each parent, whose scores are updated at once.
const NEIGHBOURS: usize = 6;
/// Number of links to a page beyond which a further one changes its score too little for an update at once.
const LINKS_FRESH: u8 = 16;
/// Maximum distance of siblings that count, in multiples of [`Tuning::near`].
const REACH: f64 = 6.0;
/// Maximum number of steps of a fit, which begins at the weights of the last one.
const STEPS_MAX: usize = 50;
/// Strength of the regularisation of the constant.
const CONSTANT_BOUND: f64 = 0.1;

/// Parameters of [`LearnedFocus`]; the same for all topics.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Initial weights of the parts; the last is the constant.
    pub weights: [f64; PARTS],
    /// Strength of the regularisation towards the initial weights.
    pub bound: f64,
    /// Value of leading to new pages of the topic, relative to being a page of the topic.
    pub future: f64,
    /// Number of outcomes that the prior of a rate counts as.
    pub shrink: f64,
    /// Distance in a list over which siblings resemble each other.
    pub near: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { weights: EACH.map(|(_, weight)| weight), bound: 5.0, future: 0.5, shrink: 2.0, near: 2.0 }
    }
}

/// The order; see the module documentation.
#[derive(Debug)]
pub struct LearnedFocus {
    knowledge: Arc<Knowledge>,
    class: usize,
    texts: LinkTexts,
    tuning: Tuning,
    weights: [f64; PARTS],
    waiting: WaitingPages,
    /// Depth and outcome of each fetched page.
    depths: HashMap<u32, (u8, f32)>,
    /// Outcomes of the children of each fetched page, in order of fetching.
    children: Vec<Children>,
    /// Weight of a sibling by its distance.
    decay: Vec<f64>,
    folders: Folders,
    patterns: Rates,
    all: OutcomeRate,
    outcomes: Vec<([f64; PARTS], f64)>,
    fitted_at: usize,
    scored_at: usize,
}

impl LearnedFocus {
    /// Looks for pages of `class`, named `name` (empty if links cannot name it).
    #[must_use]
    pub fn new(knowledge: Arc<Knowledge>, class: usize, name: &str, tuning: Tuning) -> Self {
        let mut all = OutcomeRate::default();
        // Prior: a tenth of all pages is of the topic.
        (0..5).for_each(|_| all.add(0.1));
        Self {
            knowledge,
            class,
            texts: LinkTexts::new(stem(name)),
            weights: tuning.weights,
            decay: (0..=(REACH * tuning.near) as u32)
                .map(|at| (-f64::from(at) / tuning.near).exp())
                .collect(),
            tuning,
            waiting: WaitingPages::default(),
            depths: HashMap::new(),
            children: Vec::new(),
            folders: Folders::default(),
            patterns: Rates::default(),
            all,
            outcomes: Vec::new(),
            fitted_at: 0,
            scored_at: 0,
        }
    }

    fn numbers(&self, page: &WaitingPage) -> [f64; PARTS] {
        let shrink = self.tuning.shrink;
        let base = self.all.shrunken(0.0, 0.0);
        let base_odds = log_odds(base);
        let odds = |rate: f64| log_odds(rate) - base_odds;
        let (mut siblings, mut siblings_best, mut beside, mut beside_best) = (0.0, 0.0_f64, 0.0, 0.0_f64);
        let mut known = 0.0_f64;
        for link in self.waiting.links(page) {
            let children = &self.children[link.parent];
            let rate = children.rate(base, shrink);
            let around = children.near(link.place, rate, &self.decay);
            siblings += rate;
            beside += around;
            siblings_best = siblings_best.max(rate);
            beside_best = beside_best.max(around);
            known += 1.0;
        }
        let known = known.max(1.0);
        let (folder, size) = self.folders.rate(page.folder, base, shrink);
        [
            page.url.get(),
            page.anchor.get(),
            page.anchor_best.get(),
            page.naming.get(),
            page.is_named(0),
            page.is_named(1),
            page.is_named(2),
            page.parent.get() + 3.0,
            page.parent_best.get() + 3.0,
            page.lead_rate.get(),
            odds(siblings / known),
            odds(siblings_best),
            odds(beside / known),
            odds(beside_best),
            odds(folder),
            odds(self.patterns.get(page.pattern).shrunken(base, shrink)),
            size.ln_1p(),
            f64::from(page.links.max(1)).ln(),
            page.parent_links.get(),
            f64::from(page.depth().min(8)) / 3.0 - 1.0,
            1.0,
        ]
    }

    fn score(&self, page: &WaitingPage) -> f64 {
        dot(&self.weights, &self.numbers(page))
    }

    /// Adds a link to the data of its target. Returns whether the target was unknown.
    fn meet(&mut self, parent: &Parent, lead: &Lead<'_>) -> bool {
        let class = self.class;
        let is_new = !self.waiting.contains(lead.target);
        if is_new {
            let shared = [self.folders.place(lead.url), pattern(lead.url) as u32];
            self.waiting.insert(lead.target, self.knowledge.url(lead.url)[class], shared);
        }
        let said = self.texts.say(&self.knowledge, class, lead);
        self.waiting.hear(lead.target, lead.place, &said, parent);
        is_new
    }

    /// Records the outcome of a fetched page with its relatives, and returns the pages whose score changes.
    fn book(&mut self, page: &WaitingPage, outcome: f64) -> Vec<u32> {
        self.all.add(outcome);
        self.folders.add(page.folder, outcome);
        self.patterns.add(page.pattern, outcome);
        let mut touched = Vec::new();
        for link in self.waiting.links(page) {
            self.children[link.parent].add(link.place, outcome);
            touched.extend_from_slice(self.waiting.beside(&link, NEIGHBOURS));
        }
        touched
    }

    /// Fits the weights to the outcomes, regularised towards the initial weights.
    fn fit(&mut self) {
        let bound = |part| if part == PARTS - 1 { CONSTANT_BOUND } else { self.tuning.bound };
        let priors: [_; PARTS] = std::array::from_fn(|part| (self.tuning.weights[part], bound(part)));
        let rows = self.outcomes.iter().map(|(numbers, outcome)| (numbers.as_slice(), *outcome));
        fit_weights(&mut self.weights, &priors, &rows, STEPS_MAX);
    }
}

impl Focus for LearnedFocus {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        for &(seed, _) in seeds {
            self.depths.insert(seed, (0, 0.0));
            queue.put(seed, f64::MAX);
        }
    }

    fn memory(&self) -> Option<OrderMemory> {
        let children: usize = self.children.iter().map(Children::bytes).sum();
        let bytes = self.waiting.bytes()
            + self.folders.bytes()
            + self.patterns.bytes()
            + table_bytes::<u32, (u8, f32)>(self.depths.capacity())
            + self.children.capacity() * size_of::<Children>()
            + children;
        Some(OrderMemory { waiting: self.waiting.len(), bytes })
    }

    fn parts(&self, page: u32) -> Vec<(&'static str, f64)> {
        let Some(page) = self.waiting.get(page) else { return Vec::new() };
        let parts = EACH.into_iter().zip(self.numbers(page)).zip(&self.weights);
        parts.map(|(((name, _), number), weight)| (name, number * weight)).collect()
    }

    fn fetched(&mut self, fetched: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let outcome = fetched.classes[self.class];
        let page = self.waiting.remove(fetched.page);
        let depth = page.as_ref().map_or(0, WaitingPage::depth);
        self.depths.insert(fetched.page, (depth, outcome as f32));
        let numbers = page.as_ref().map(|page| self.numbers(page));
        let mut touched = page.map_or_else(Vec::new, |page| self.book(&page, outcome));
        let mut leads: Vec<&Lead<'_>> = fetched.leads.iter().collect();
        leads.sort_by_key(|lead| lead.place);
        self.waiting.next_page();
        let parent = Parent {
            odds: log_odds(outcome.clamp(1e-4, 1.0 - 1e-4)),
            lead_rate: self.knowledge.lead_rate(fetched.classes, self.class).max(1e-3).ln() + 3.0,
            links: (fetched.leads.len() as f64).ln_1p() - 3.0,
            depth: depth.saturating_add(1).min(DEPTH_MAX),
        };
        let mut children = Children::default();
        let mut new = Vec::new();
        for lead in leads {
            if let Some(&(_, outcome)) = self.depths.get(&lead.target) {
                children.add(place_of(lead.place), outcome.into());
            } else if self.meet(&parent, lead) {
                new.push(lead.target);
            }
        }
        let is_fresh = |page: &u32| self.waiting.get(*page).is_some_and(|page| page.links <= LINKS_FRESH);
        touched.extend(fetched.leads.iter().map(|lead| lead.target).filter(is_fresh));
        self.children.push(children);
        let ahead: f64 =
            new.iter().filter_map(|page| self.waiting.get(*page)).map(|page| sigmoid(self.score(page))).sum();
        if let Some(numbers) = numbers {
            if self.outcomes.len() == OUTCOMES_MAX {
                self.outcomes.remove(0);
            }
            let future = self.tuning.future * (1.0 - outcome) * (1.0 - (-ahead / 3.0).exp());
            self.outcomes.push((numbers, outcome + future));
        }
        let count = self.depths.len();
        if count - self.fitted_at >= FIT_EVERY.max(count / FIT_PART) {
            self.fitted_at = count;
            self.fit();
        }
        if count - self.scored_at >= FIT_EVERY.max(self.waiting.len() / SCORES_A_PAGE) {
            self.scored_at = count;
            self.waiting.iter().for_each(|(page, waiting)| queue.put(page, self.score(waiting)));
        } else {
            let waiting = touched.iter().filter_map(|&page| Some((page, self.waiting.get(page)?)));
            waiting.for_each(|(page, waiting)| queue.put(page, self.score(waiting)));
        }
    }
}

fn dot(a: &[f64; PARTS], b: &[f64; PARTS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

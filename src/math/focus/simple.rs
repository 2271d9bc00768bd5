//! Orders that follow a single idea each, as published.

use std::collections::HashMap;
use std::sync::Arc;

use super::{FetchedPage, Focus, Knowledge, Lead};
use crate::importance::order::PageQueue;
use crate::learn::{log_odds, sigmoid};

/// Minimum probability for a page to count as one of the topic.
const RELEVANT: f64 = 0.5;

/// The best score of each page so far.
#[derive(Clone, Debug, Default)]
pub(super) struct BestScores(HashMap<u32, f64>);

impl BestScores {
    pub(super) fn raise(&mut self, page: u32, score: f64, queue: &mut dyn PageQueue) {
        let best = self.0.entry(page).or_insert(f64::NEG_INFINITY);
        if score > *best {
            *best = score;
            queue.put(page, score);
        }
    }

    pub(super) fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| self.raise(seed.0, f64::MAX, queue));
    }
}

/// Soft focus: the probability of the best parent (Chakrabarti, van den Berg, Dom 1999).
#[derive(Clone, Debug)]
pub struct Soft {
    class: usize,
    best: BestScores,
}

impl Soft {
    /// Looks for pages of `class`.
    #[must_use]
    pub fn new(class: usize) -> Self {
        Self { class, best: BestScores::default() }
    }
}

impl Focus for Soft {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        page.leads.iter().for_each(|lead| self.best.raise(lead.target, page.classes[self.class], queue));
    }
}

/// Soft focus that follows no links after too many consecutive pages outside the topic; with 0 it is hard focus.
#[derive(Clone, Debug)]
pub struct Tunnel {
    soft: Soft,
    in_a_row_max: u32,
    /// Number of consecutive other pages before each waiting page.
    before: HashMap<u32, u32>,
}

impl Tunnel {
    /// Looks for pages of `class` beyond at most `in_a_row_max` consecutive other pages. The links of seeds are always
    /// followed.
    #[must_use]
    pub fn new(class: usize, in_a_row_max: u32) -> Self {
        Self { soft: Soft::new(class), in_a_row_max, before: HashMap::new() }
    }
}

impl Focus for Tunnel {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.soft.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let before = match self.before.get(&page.page) {
            Some(_) if page.classes[self.soft.class] >= RELEVANT => 0,
            Some(before) => before + 1,
            None => 0,
        };
        if before > self.in_a_row_max {
            return;
        }
        for lead in page.leads {
            let known = self.before.entry(lead.target).or_insert(before);
            *known = before.min(*known);
        }
        self.soft.fetched(page, queue);
    }
}

/// Number of links that a fish follows beyond the last page of the topic.
const FISH_DEPTH: u32 = 3;

/// Fish search (De Bra, Post 1994): newest links first, those of pages of the topic before others. Each page outside
/// the topic reduces by one how far its links are followed.
#[derive(Clone, Debug)]
pub struct Fish {
    class: usize,
    depths: HashMap<u32, u32>,
    best: BestScores,
    time: f64,
}

impl Fish {
    /// Looks for pages of `class`.
    #[must_use]
    pub fn new(class: usize) -> Self {
        Self { class, depths: HashMap::new(), best: BestScores::default(), time: 0.0 }
    }
}

impl Focus for Fish {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let is_relevant = page.classes[self.class] >= RELEVANT;
        let own = self.depths.get(&page.page).copied().unwrap_or(FISH_DEPTH);
        let depth = if is_relevant { FISH_DEPTH } else { own.saturating_sub(1) };
        self.time += 1.0;
        // Links without remaining depth come after all others.
        let group = f64::from(u8::from(depth > 0) + u8::from(is_relevant));
        for lead in page.leads {
            let known = self.depths.entry(lead.target).or_insert(depth);
            *known = depth.max(*known);
            self.best.raise(lead.target, group + self.time / (self.time + 1.0), queue);
        }
    }
}

/// The log-odds of the parent plus the evidence of the link text; the best link counts.
#[derive(Clone, Debug)]
pub struct ParentAnchor {
    knowledge: Arc<Knowledge>,
    class: usize,
    best: BestScores,
}

impl ParentAnchor {
    /// Looks for pages of `class`.
    #[must_use]
    pub fn new(knowledge: Arc<Knowledge>, class: usize) -> Self {
        Self { knowledge, class, best: BestScores::default() }
    }
}

impl Focus for ParentAnchor {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let parent = log_odds(page.classes[self.class]);
        for lead in page.leads {
            let score = parent + self.knowledge.anchor(lead.anchor)[self.class];
            self.best.raise(lead.target, score, queue);
        }
    }
}

/// Shark search (Hersovici, Jacovi, Maarek, Pelleg, Shtalhaim, Ur 1998, figure 3): the score of the parent, or that which
/// the parent itself inherited, decays and counts as much as the words in and around the link.
#[derive(Clone, Debug)]
pub struct Shark {
    knowledge: Arc<Knowledge>,
    class: usize,
    inherited: HashMap<u32, f64>,
    best: BestScores,
}

/// Parameters of the paper: decay δ of the inherited score, its weight γ, and the weight β of the link text among the
/// words.
const SHARK_DECAY: f64 = 0.5;
const SHARK_INHERITED: f64 = 0.5;
const SHARK_ANCHOR: f64 = 0.8;

/// Probability below which a page has nothing of the topic: in the paper, a similarity of 0.
const SHARK_RELEVANT: f64 = 0.01;

/// Similarity of a text that says nothing for or against the topic.
const NEUTRAL: f64 = 0.5;

impl Shark {
    /// Looks for pages of `class`.
    #[must_use]
    pub fn new(knowledge: Arc<Knowledge>, class: usize) -> Self {
        Self { knowledge, class, inherited: HashMap::new(), best: BestScores::default() }
    }

    /// Similarity of a text to the topic, from 0 to 1.
    fn alike(&self, lead: &Lead<'_>, text: &str) -> f64 {
        sigmoid(self.knowledge.naming(&Lead { anchor: text, url: "", ..*lead })[self.class])
    }

    /// The score of the words in and around a link. Around a link that speaks for the topic no word is asked.
    fn neighbourhood(&self, lead: &Lead<'_>) -> f64 {
        let anchor = self.alike(lead, lead.anchor);
        let context = if anchor > NEUTRAL { 1.0 } else { self.alike(lead, lead.context) };
        SHARK_ANCHOR * anchor + (1.0 - SHARK_ANCHOR) * context
    }
}

impl Focus for Shark {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        self.best.begin(seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let own = page.classes[self.class];
        let above = self.inherited.get(&page.page).copied().unwrap_or(0.0);
        let inherited = SHARK_DECAY * if own >= SHARK_RELEVANT { own } else { above };
        for lead in page.leads {
            let known = self.inherited.entry(lead.target).or_insert(inherited);
            *known = inherited.max(*known);
            let score = SHARK_INHERITED * inherited + (1.0 - SHARK_INHERITED) * self.neighbourhood(lead);
            self.best.raise(lead.target, score, queue);
        }
    }
}

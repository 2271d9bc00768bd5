//! Focused crawls: pages wait by what leads to a topic, and by their cash.
//!
//! The orders are those of [`crate::topic`], the very ones the lab measures. What they say of a page becomes a level, as cash does, and a page
//! waits under the weighted mean of the two ([`FocusPolicy::weight`]): both are logarithms, so that is a product of powers. Cash
//! itself stays as it is. Every [`EXPLORE_EVERY`]th page is the one that is known for the longest time, whatever the order says of it, so
//! that no page and no host waits for ever.
//!
//! What an order has learned is not kept: it follows from the captures, which are told again in their order when a crawl goes on.
//! After [`GENERATION`] captures it is made anew from the last [`OVERLAP`], so that it stays small however long a crawl is.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use archive_storage::{Capture, CaptureId, CaptureKind, State, Store, UrlId};
use serde::{Deserialize, Serialize};

use crate::change::{VersionError, parsed};
use crate::importance::order::Queue;
use crate::ledger::{LEVEL_PAGE_MAX, LinkCode, page_flags as flags};
use crate::topic::{Fetched, Fish, Focus, Learned, Shark, Soft, Tuning, Tunnel};
use crate::topics::{self, CLASS, Sight, Topic, TopicError};

/// Of so many pages one is the one that is known for the longest time.
const EXPLORE_EVERY: u64 = 20;

/// Captures after which an order is made anew.
const GENERATION: u32 = 1 << 16;

/// Captures before these that it is told.
const OVERLAP: u32 = 1 << 13;

/// Pages of a generation that an order gets to know; of others their cash decides.
const KNOWN_MAX: usize = 1 << 18;

/// Links of a generation that an order is told.
const LINKS_MAX: usize = 1 << 21;

/// A page moves in the frontier when its level changes by so much.
const STEP: u8 = 4;

/// The level of what an order knows nothing of.
const MIDDLE: u8 = LEVEL_PAGE_MAX / 2;

/// In the place of a level: a page whose turn has come by its age, and one that was fetched.
const EXPLORED: u8 = u8::MAX - 1;
const TOLD: u8 = u8::MAX;

/// The usual weight of the topic.
const WEIGHT: f64 = 0.8;

/// Which order; its text form is what the command line takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FocusMode {
    /// Learned on line from words, parents, siblings and folders.
    #[default]
    Learned,
    /// The best parent's probability.
    Soft,
    /// Links of the topic's pages only.
    Hard,
    /// Links behind at most so many other pages in a row.
    Tunnel(u32),
    /// How many links away from the topic the parents seem to be.
    Context,
    /// Fish search.
    Fish,
    /// Shark search.
    Shark,
}

/// Not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no mode; there are learned, soft, hard, tunnel:N, context, fish and shark")]
pub struct UnknownMode(String);

impl FocusMode {
    const NAMED: [(&'static str, Self); 6] = [
        ("learned", Self::Learned),
        ("soft", Self::Soft),
        ("hard", Self::Hard),
        ("context", Self::Context),
        ("fish", Self::Fish),
        ("shark", Self::Shark),
    ];

    /// Whether links of pages that are far from the topic are not followed.
    const fn holds_back(self) -> bool {
        matches!(self, Self::Hard | Self::Tunnel(_))
    }

    /// The scores that get the lowest and the highest level.
    const fn range(self) -> (f64, f64) {
        match self {
            // Log-odds.
            Self::Learned => (-6.0, 6.0),
            Self::Context => (0.0, 4.0),
            Self::Fish => (0.0, 3.0),
            Self::Soft | Self::Hard | Self::Tunnel(_) | Self::Shark => (0.0, 1.0),
        }
    }

    fn order(self, store: &Store, topic: &Topic) -> Result<Box<dyn Focus>, TopicError> {
        let knowledge = || std::sync::Arc::clone(&topic.knowledge);
        Ok(match self {
            Self::Learned => Box::new(Learned::new(knowledge(), CLASS, &topic.about.name, Tuning::default())),
            Self::Soft => Box::new(Soft::new(CLASS)),
            Self::Hard => Box::new(Tunnel::new(CLASS, 0)),
            Self::Tunnel(pages) => Box::new(Tunnel::new(CLASS, pages)),
            Self::Context => Box::new(topics::learn_layers(store, topic)?),
            Self::Fish => Box::new(Fish::new(CLASS)),
            Self::Shark => Box::new(Shark::new(knowledge(), CLASS)),
        })
    }
}

impl fmt::Display for FocusMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Tunnel(pages) = self {
            return write!(f, "tunnel:{pages}");
        }
        f.write_str(Self::NAMED.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for FocusMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(pages) = text.strip_prefix("tunnel:").and_then(|pages| pages.parse().ok()) {
            return Ok(Self::Tunnel(pages));
        }
        let found = Self::NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

impl TryFrom<String> for FocusMode {
    type Error = UnknownMode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<FocusMode> for String {
    fn from(mode: FocusMode) -> Self {
        mode.to_string()
    }
}

/// What a focused crawl looks for, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FocusPolicy {
    /// The name of the topic.
    pub topic: String,
    /// What says which pages lead to it.
    pub mode: FocusMode,
    /// How much that counts beside cash, 0 to 1: level = weight · topic + (1 - weight) · cash.
    pub weight: f64,
}

impl FocusPolicy {
    /// The usual way to look for a topic.
    #[must_use]
    pub fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), mode: FocusMode::default(), weight: WEIGHT }
    }
}

/// A focused crawl's order at work.
pub(crate) struct Focused {
    topic: Topic,
    policy: FocusPolicy,
    order: Box<dyn Focus>,
    levels: Levels,
    seeds: Vec<(u32, String)>,
    /// What the order was told of in this generation.
    known: Known,
    /// Pages by when they became known, as far as their turn has not come.
    oldest: VecDeque<u32>,
    told: u64,
    /// The generation of the captures that are told.
    generation: u32,
}

impl fmt::Debug for Focused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Focused")
            .field("policy", &self.policy)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

impl Focused {
    /// Learns from the captures that are there what it would know had it seen them come.
    ///
    /// # Errors
    /// When the topic or the captures cannot be read.
    pub(crate) fn begin(store: &Store, policy: &FocusPolicy, seeds: &[UrlId]) -> Result<Self, TopicError> {
        let topic = topics::get(store.path(), &policy.topic)?;
        let seeds = seeds.iter().map(|seed| Ok((seed.0, store.state().url(*seed)?)));
        let mut focused = Self {
            order: policy.mode.order(store, &topic)?,
            topic,
            levels: Levels { range: policy.mode.range(), of: Vec::new(), changed: Vec::new() },
            policy: policy.clone(),
            seeds: seeds.collect::<Result<_, TopicError>>()?,
            known: Known::default(),
            oldest: VecDeque::new(),
            told: 0,
            generation: 0,
        };
        let next = u32::try_from(store.state().totals().captures).unwrap_or(u32::MAX);
        focused.generation = next / GENERATION;
        focused.learn_anew(store, next)?;
        focused.levels.changed.clear();
        Ok(focused)
    }

    /// Begins a generation if the capture belongs to the next one.
    ///
    /// # Errors
    /// When captures cannot be read.
    pub(crate) fn turn(&mut self, store: &Store, capture: CaptureId) -> Result<(), TopicError> {
        if capture.0 / GENERATION == self.generation {
            return Ok(());
        }
        self.generation = capture.0 / GENERATION;
        self.order = self.policy.mode.order(store, &self.topic)?;
        self.learn_anew(store, capture.0)
    }

    fn learn_anew(&mut self, store: &Store, next: u32) -> Result<(), TopicError> {
        self.known = Known::default();
        let seeds: Vec<(u32, &str)> = self.seeds.iter().map(|(id, url)| (*id, url.as_str())).collect();
        self.order.begin(&seeds, &mut self.levels);
        let mut again = HashSet::new();
        let from = (self.generation * GENERATION).saturating_sub(OVERLAP);
        for id in from..next {
            let capture = store.state().capture(CaptureId(id))?;
            if is_told(store.state(), &capture)? && again.insert(capture.url) {
                self.tell_again(store, &capture)?;
            }
        }
        Ok(())
    }

    fn tell_again(&mut self, store: &Store, capture: &Capture) -> Result<(), TopicError> {
        let state = store.state();
        if is_redirect(capture.status) {
            let links = state.links(capture.url)?;
            let targets = links.links.iter().filter(|link| LinkCode::from_byte(link.kind).carries_cash());
            self.pass_on(capture.url, targets.map(|link| link.target));
            return Ok(());
        }
        let url = state.url(capture.url)?;
        let sight = match capture.status {
            200 => match parsed(store, capture) {
                Ok(document) => Sight::of(&url, &document),
                // Its payload is in another archive.
                Err(VersionError::NoOriginal) => None,
                Err(error) => return Err(error.into()),
            },
            _ => None,
        };
        let chance = sight.as_ref().map_or(0.0, |sight| self.topic.probability(&sight.text(&url)));
        self.tell(state, capture.url, &url, sight.as_ref(), chance)
    }

    /// Tells the order of a fetched page, which is of the topic with this probability.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) fn tell(
        &mut self,
        state: &State,
        page: UrlId,
        url: &str,
        sight: Option<&Sight>,
        chance: f64,
    ) -> Result<(), TopicError> {
        let nothing = Sight::default();
        let sight = sight.unwrap_or(&nothing);
        let mut leads = Vec::new();
        for lead in sight.leads(state)? {
            let target = state.page(UrlId(lead.target))?;
            if lead.target == page.0 || !target.flags.has_any(flags::PAGE) {
                continue;
            }
            let Some(is_new) = self.known.take(lead.target) else { continue };
            if is_new && self.levels.get(lead.target) == 0 {
                self.oldest.push_back(lead.target);
            }
            leads.push(lead);
        }
        self.levels.set(page.0, TOLD);
        let classes = [1.0 - chance, chance];
        let fetched = Fetched { page: page.0, classes: &classes, text: &sight.text(url), leads: &leads };
        self.order.fetched(&fetched, &mut self.levels);
        self.told += 1;
        if self.told.is_multiple_of(EXPLORE_EVERY) {
            self.explore();
        }
        Ok(())
    }

    /// Lets the page that is known for the longest time come next, of those that are to be fetched.
    fn explore(&mut self) {
        let least = u8::from(self.policy.mode.holds_back());
        while let Some(page) = self.oldest.pop_front() {
            if (least..EXPLORED).contains(&self.levels.get(page)) {
                self.levels.set(page, EXPLORED);
                self.levels.changed.push(page);
                return;
            }
        }
    }

    /// Lets what a page redirects to wait where the page did.
    pub(crate) fn pass_on(&mut self, from: UrlId, to: impl Iterator<Item = UrlId>) {
        let level = match self.levels.get(from.0) {
            0 | TOLD => MIDDLE,
            level => level,
        };
        for target in to {
            if self.levels.get(target.0) < level {
                self.levels.set(target.0, level);
                self.levels.changed.push(target.0);
            }
        }
        self.levels.set(from.0, TOLD);
    }

    /// Pages that are to wait elsewhere since this was asked last.
    pub(crate) fn take_changed(&mut self) -> Vec<UrlId> {
        let mut changed = std::mem::take(&mut self.levels.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(UrlId).collect()
    }

    /// The level under which a page is to wait that has one by its cash; none if it is not to be fetched.
    pub(crate) fn level(&self, page: UrlId, cash: u8) -> Option<u8> {
        match self.levels.get(page.0) {
            EXPLORED | TOLD => Some(LEVEL_PAGE_MAX),
            0 if self.policy.mode.holds_back() => None,
            0 => Some(self.mean(MIDDLE, cash)),
            level => Some(self.mean(level, cash)),
        }
    }

    fn mean(&self, level: u8, cash: u8) -> u8 {
        let weight = self.policy.weight;
        (weight * f64::from(level) + (1.0 - weight) * f64::from(cash)).round() as u8
    }

    /// What the score of a waiting page consists of, each part with its name; nothing where it has one part only.
    pub(crate) fn parts(&self, page: UrlId) -> Vec<(&'static str, f64)> {
        self.order.parts(page.0)
    }

    /// What a page's level says, 0 to 1; none for what the order knows nothing of.
    pub(crate) fn share(&self, page: UrlId) -> Option<f64> {
        let level = self.levels.get(page.0).min(LEVEL_PAGE_MAX);
        (level > 0).then(|| f64::from(level) / f64::from(LEVEL_PAGE_MAX))
    }

    /// The topic.
    pub(crate) fn topic(&self) -> &Topic {
        &self.topic
    }
}

/// Whether an order is told of a capture: an answer of the server for a page.
pub(crate) fn is_told(state: &State, capture: &Capture) -> Result<bool, TopicError> {
    let is_answer =
        matches!(capture.kind, CaptureKind::Response | CaptureKind::Identical | CaptureKind::Resource);
    Ok(is_answer && flags::is_page(state.page(capture.url)?.flags))
}

/// Whether an answer only says where the page is.
pub(crate) fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

/// Pages and links that an order was told of.
#[derive(Debug, Default)]
struct Known {
    pages: HashSet<u32>,
    links: usize,
}

impl Known {
    /// Counts a link to a page, and says whether that is new; none if either is one too many.
    fn take(&mut self, target: u32) -> Option<bool> {
        let is_known = self.pages.contains(&target);
        if self.links == LINKS_MAX || !is_known && self.pages.len() == KNOWN_MAX {
            return None;
        }
        self.links += 1;
        Some(!is_known && self.pages.insert(target))
    }
}

/// Levels of all pages that an order knows, a byte each; 0 is none.
struct Levels {
    range: (f64, f64),
    of: Vec<u8>,
    /// Pages whose level has become another one.
    changed: Vec<u32>,
}

impl Levels {
    fn get(&self, page: u32) -> u8 {
        self.of.get(page as usize).copied().unwrap_or(0)
    }

    fn set(&mut self, page: u32, level: u8) {
        let place = page as usize;
        if place >= self.of.len() {
            self.of.resize((place + 1).next_power_of_two(), 0);
        }
        self.of[place] = level;
    }
}

impl Queue for Levels {
    fn put(&mut self, page: u32, priority: f64) {
        let (least, most) = self.range;
        let share = ((priority - least) / (most - least)).clamp(0.0, 1.0);
        let level = 1 + (share * f64::from(LEVEL_PAGE_MAX - 1)) as u8;
        let before = self.get(page);
        if before < EXPLORED && (before == 0 || before.abs_diff(level) >= STEP) {
            self.set(page, level);
            self.changed.push(page);
        }
    }

    /// Nobody knows here which of the pages the servers' delays allow next.
    fn best(&mut self) -> Option<f64> {
        None
    }

    fn take(&mut self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named() {
        for name in ["learned", "soft", "hard", "tunnel:2", "context", "fish", "shark"] {
            assert_eq!(name.parse::<FocusMode>().unwrap().to_string(), name);
        }
        for name in ["", "tunnel", "tunnel:x", "best"] {
            assert!(
                name.parse::<FocusMode>().unwrap_err().to_string().contains("there are learned"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_an_order_knows_is_bounded() {
        let mut known = Known::default();
        assert!((0..KNOWN_MAX as u32).all(|page| known.take(page) == Some(true)));
        assert_eq!((known.take(KNOWN_MAX as u32), known.take(0)), (None, Some(false)));
        assert!((known.links..LINKS_MAX).all(|_| known.take(1) == Some(false)));
        assert_eq!(known.take(1), None);
    }

    #[test]
    fn levels_follow_scores_and_small_steps_move_nothing() {
        let mut levels = Levels { range: FocusMode::Learned.range(), of: Vec::new(), changed: Vec::new() };
        levels.put(3, -20.0);
        levels.put(4, 0.0);
        levels.put(5, f64::MAX);
        assert_eq!((levels.get(3), levels.get(5)), (1, LEVEL_PAGE_MAX));
        assert!(levels.get(4).abs_diff(MIDDLE) <= 1);
        assert_eq!(std::mem::take(&mut levels.changed), [3, 4, 5]);
        levels.put(4, 0.1);
        assert!(levels.changed.is_empty());
        levels.put(4, -1.0);
        assert_eq!(levels.changed, [4]);
        // What was fetched, and what is to come next, stays so.
        levels.set(4, TOLD);
        levels.set(3, EXPLORED);
        levels.put(4, 8.0);
        levels.put(3, 0.0);
        assert_eq!((levels.get(4), levels.get(3), levels.get(1000)), (TOLD, EXPLORED, 0));
    }
}

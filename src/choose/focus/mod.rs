//! Focused crawls: the priority of a page combines the topic with the cash.
//!
//! The orders are those of [`archive_math::focus`], which the lab measures. The score of a page becomes a level, as cash does,
//! and the page waits at the weighted mean of both levels ([`FocusPolicy::weight`]). Both are logarithms, so this is a
//! product of powers. The cash itself does not change. Every [`EXPLORE_EVERY`]th page is the one known for longest,
//! whatever its score, so that no page and no host waits forever.
//!
//! What an order has learned is not stored: a crawl that continues replays the captures in order. Every [`GENERATION`]
//! captures the order is rebuilt from the last [`OVERLAP`], which bounds its size in long crawls.

mod levels;
mod policy;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use archive_books::change::{VersionError, parsed};
use archive_books::ledger::{LEVEL_PAGE_MAX, LinkCode, page_flags as flags};
use archive_books::topics::{RELEVANT, Sight, Topic, TopicError};
use archive_math::focus::{FetchedPage, Focus, LevelOutcomes, Recall};
use archive_storage::{Capture, CaptureId, CaptureKind, State, Store, UrlId};
use levels::{EXPLORED, FETCHED, FocusLevels, MIDDLE, SeenPages};

pub use policy::FocusPolicy;

/// One in this many pages is the one known for longest.
const EXPLORE_EVERY: u64 = 20;

/// Number of captures after which the order is rebuilt.
const GENERATION: u32 = 1 << 16;

/// Number of earlier captures that the rebuilt order learns from.
const OVERLAP: u32 = 1 << 13;

/// The order of a focused crawl in use.
pub struct Focused {
    topic: Topic,
    policy: FocusPolicy,
    order: Box<dyn Focus>,
    levels: FocusLevels,
    seeds: Vec<(u32, String)>,
    /// The pages and links that the order has seen in this generation.
    known: SeenPages,
    /// Pages in order of discovery, without those already explored.
    oldest: VecDeque<u32>,
    fetched: u64,
    /// Number of pages of the topic found, followed by the results of fetched pages by level.
    found: u64,
    outcomes: LevelOutcomes,
    /// Pages that the topic was learned from; they do not count as found.
    examples: HashSet<u32>,
    /// Original levels of explored pages.
    explored: HashMap<u32, u8>,
    /// Generation of the newest capture.
    generation: u32,
}

impl fmt::Debug for Focused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Focused")
            .field("policy", &self.policy)
            .field("fetched", &self.fetched)
            .finish_non_exhaustive()
    }
}

impl Focused {
    /// Rebuilds the order from the stored captures, as if it had seen them arrive.
    ///
    /// # Errors
    /// If the topic or the captures cannot be read.
    pub fn begin(store: &Store, policy: &FocusPolicy, seeds: &[UrlId]) -> Result<Self, TopicError> {
        let topic = policy.read_topic(store.path())?;
        let seeds = seeds.iter().map(|seed| Ok((seed.0, store.state().url(*seed)?)));
        let mut focused = Self {
            order: policy.order(store, &topic)?,
            topic,
            levels: FocusLevels::new(policy.mode.range()),
            policy: policy.clone(),
            seeds: seeds.collect::<Result<_, TopicError>>()?,
            known: SeenPages::default(),
            oldest: VecDeque::new(),
            fetched: 0,
            found: 0,
            outcomes: LevelOutcomes::default(),
            examples: HashSet::new(),
            explored: HashMap::new(),
            generation: 0,
        };
        for url in focused.topic.about.examples.iter().chain(&focused.topic.about.against) {
            focused.examples.extend(store.state().find(url)?.map(|id| id.0));
        }
        let next = u32::try_from(store.state().totals().captures).unwrap_or(u32::MAX);
        focused.generation = next / GENERATION;
        focused.rebuild_order(store, next)?;
        focused.levels.changed.clear();
        Ok(focused)
    }

    /// Starts a new generation if this capture belongs to it.
    ///
    /// # Errors
    /// If captures cannot be read.
    pub fn turn(&mut self, store: &Store, capture: CaptureId) -> Result<(), TopicError> {
        if capture.0 / GENERATION == self.generation {
            return Ok(());
        }
        self.generation = capture.0 / GENERATION;
        self.order = self.policy.order(store, &self.topic)?;
        self.rebuild_order(store, capture.0)
    }

    fn rebuild_order(&mut self, store: &Store, next: u32) -> Result<(), TopicError> {
        self.known = SeenPages::default();
        let seeds: Vec<(u32, &str)> = self.seeds.iter().map(|(id, url)| (*id, url.as_str())).collect();
        self.order.begin(&seeds, &mut self.levels);
        let mut again = HashSet::new();
        let from = (self.generation * GENERATION).saturating_sub(OVERLAP);
        for id in from..next {
            let capture = store.state().capture(CaptureId(id))?;
            if is_page_answer(store.state(), &capture)? && again.insert(capture.url) {
                self.replay(store, &capture)?;
            }
        }
        Ok(())
    }

    fn replay(&mut self, store: &Store, capture: &Capture) -> Result<(), TopicError> {
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
                // The payload is in another archive.
                Err(VersionError::NoOriginal) => None,
                Err(error) => return Err(error.into()),
            },
            _ => None,
        };
        let chance = sight.as_ref().map_or(0.0, |sight| self.topic.probability(&sight.text(&url)));
        self.fetched(state, capture.url, &url, sight.as_ref(), chance)
    }

    /// Records a fetched page and the probability that it is of the topic.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn fetched(
        &mut self,
        state: &State,
        page: UrlId,
        url: &str,
        sight: Option<&Sight>,
        chance: f64,
    ) -> Result<(), TopicError> {
        let nothing = Sight::default();
        let sight = sight.unwrap_or(&nothing);
        let (mut leads, mut unknown) = (Vec::new(), 0);
        for lead in sight.leads(state)? {
            if lead.target == page.0 {
                continue;
            }
            // A target with a level is known to be a page.
            let unmet = match self.levels.get(lead.target) {
                0 => Some(state.page(UrlId(lead.target))?.flags),
                _ => None,
            };
            if unmet.is_some_and(|found| !found.has_any(flags::PAGE)) {
                continue;
            }
            let Some(is_new) = self.known.take(lead.target) else { continue };
            if let Some(found) = unmet.filter(|_| is_new) {
                self.oldest.push_back(lead.target);
                unknown += u16::from(found.has_any(flags::IN_SCOPE));
            }
            leads.push(lead);
        }
        self.count(page.0, chance >= RELEVANT, unknown);
        let classes = [1.0 - chance, chance];
        let fetched = FetchedPage { page: page.0, classes: &classes, text: &sight.text(url), leads: &leads };
        self.order.fetched(&fetched, &mut self.levels);
        self.fetched += 1;
        if self.fetched.is_multiple_of(EXPLORE_EVERY) {
            self.explore();
        }
        Ok(())
    }

    /// Counts a fetched page once, with the level at which it waited and the number of new pages that it links to.
    fn count(&mut self, page: u32, is_of_topic: bool, unknown: u16) {
        let level = match self.levels.get(page) {
            FETCHED => return,
            EXPLORED => self.explored.remove(&page).unwrap_or(MIDDLE),
            0 => MIDDLE,
            level => level,
        };
        self.levels.set(page, FETCHED);
        if self.examples.contains(&page) {
            return;
        }
        self.found += u64::from(is_of_topic);
        self.outcomes.record(level, is_of_topic, unknown);
    }

    /// Estimates the recall, given the waiting pages; `None` while too little is known.
    pub fn recall(&self, waiting: impl Iterator<Item = UrlId>) -> Option<Recall> {
        let mut levels = [0; 256];
        for page in waiting {
            let level = match self.levels.get(page.0) {
                // It is being fetched.
                FETCHED => continue,
                EXPLORED => self.explored.get(&page.0).copied().unwrap_or(MIDDLE),
                0 => MIDDLE,
                level => level,
            };
            levels[usize::from(level)] += 1;
        }
        self.outcomes.recall(self.found, &levels)
    }

    /// Moves the page known for longest to the front, among those that may be fetched.
    fn explore(&mut self) {
        let least = u8::from(self.policy.mode.holds_back());
        while let Some(page) = self.oldest.pop_front() {
            let level = self.levels.get(page);
            if (least..EXPLORED).contains(&level) {
                self.explored.insert(page, if level == 0 { MIDDLE } else { level });
                self.levels.set(page, EXPLORED);
                self.levels.changed.push(page);
                return;
            }
        }
    }

    /// Passes the level of a page on to its redirect targets.
    pub fn pass_on(&mut self, from: UrlId, to: impl Iterator<Item = UrlId>) {
        let level = match self.levels.get(from.0) {
            0 | FETCHED => MIDDLE,
            level => level,
        };
        for target in to {
            if self.levels.get(target.0) < level {
                self.levels.set(target.0, level);
                self.levels.changed.push(target.0);
            }
        }
        self.levels.set(from.0, FETCHED);
    }

    /// Returns the pages whose level has changed since the last call.
    pub fn take_changed(&mut self) -> Vec<UrlId> {
        let mut changed = std::mem::take(&mut self.levels.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(UrlId).collect()
    }

    /// Returns the level at which a page waits, given the level of its cash; `None` if it must not be fetched.
    pub fn level(&self, page: UrlId, cash: u8) -> Option<u8> {
        match self.levels.get(page.0) {
            EXPLORED | FETCHED => Some(LEVEL_PAGE_MAX),
            0 if self.policy.mode.holds_back() => None,
            0 => Some(self.mean(MIDDLE, cash)),
            level => Some(self.mean(level, cash)),
        }
    }

    fn mean(&self, level: u8, cash: u8) -> u8 {
        let weight = self.policy.weight;
        (weight * f64::from(level) + (1.0 - weight) * f64::from(cash)).round() as u8
    }

    /// Returns the named parts of the score of a waiting page; empty if the score has a single part.
    pub(crate) fn parts(&self, page: UrlId) -> Vec<(&'static str, f64)> {
        self.order.parts(page.0)
    }

    /// Returns the level of a page as a share from 0 to 1; `None` if the order does not know the page.
    pub(crate) fn share(&self, page: UrlId) -> Option<f64> {
        let level = self.levels.get(page.0).min(LEVEL_PAGE_MAX);
        (level > 0).then(|| f64::from(level) / f64::from(LEVEL_PAGE_MAX))
    }

    /// The topic.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }
}

/// Whether an order learns from a capture: it must be a server's answer for a page.
pub(crate) fn is_page_answer(state: &State, capture: &Capture) -> Result<bool, TopicError> {
    let is_answer =
        matches!(capture.kind, CaptureKind::Response | CaptureKind::Identical | CaptureKind::Resource);
    Ok(is_answer && flags::is_page(state.page(capture.url)?.flags))
}

/// Whether a response with this status only says where the page is.
pub fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

//! Orders that only experiments use: one that ignores the topic, and two that follow a single idea each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use archive_math::focus::{FetchedPage, Focus, Knowledge};
use archive_math::importance::order::{DownloadOrder, OrderLink, PageQueue};
use archive_math::learn::log_odds;

/// An order that ignores the topic.
#[derive(Debug)]
pub(super) struct Unfocused<O>(pub(super) O);

impl<O: DownloadOrder> Focus for Unfocused<O> {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        let seeds: Vec<u32> = seeds.iter().map(|seed| seed.0).collect();
        self.0.begin(&seeds, queue);
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let links: Vec<OrderLink> =
            page.leads.iter().map(|lead| OrderLink { target: lead.target, between_hosts: false }).collect();
        self.0.downloaded(page.page, &links, queue);
    }
}

/// The log-odds of the parent plus the evidence of the link text.
#[derive(Clone, Debug)]
pub(super) struct ParentAnchor {
    knowledge: Arc<Knowledge>,
    class: usize,
    best: HashMap<u32, f64>,
}

impl ParentAnchor {
    /// Looks for pages of `class`.
    #[must_use]
    pub(super) fn new(knowledge: Arc<Knowledge>, class: usize) -> Self {
        Self { knowledge, class, best: HashMap::new() }
    }
}

impl Focus for ParentAnchor {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        let parent = log_odds(page.classes[self.class]);
        for lead in page.leads {
            let score = parent + self.knowledge.anchor(lead.anchor)[self.class];
            let best = self.best.entry(lead.target).or_insert(f64::NEG_INFINITY);
            if score > *best {
                *best = score;
                queue.put(lead.target, score);
            }
        }
    }
}

/// Folders as arms of a bandit (UCB1; Auer, Cesa-Bianchi, Fischer 2002): mean outcome + sqrt(2 ln n / n_folder) ·
/// width.
#[derive(Clone, Debug)]
pub(super) struct Ucb {
    class: usize,
    arms: BTreeMap<String, Arm>,
    arm_of: HashMap<u32, String>,
    fetched: u32,
}

#[derive(Clone, Debug, Default)]
struct Arm {
    sum: f64,
    count: f64,
    waiting: Vec<u32>,
}

/// Maximum number of folders of a URL that count, including the host.
const FOLDERS_MAX: usize = 6;

/// Returns a URL up to its innermost folder that counts.
fn folder(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |scheme| scheme + 3);
    let end =
        url[begin..].match_indices('/').take(FOLDERS_MAX).last().map_or(url.len() - begin, |(at, _)| at);
    &url[..begin + end]
}

/// Width of the bound. The bound for outcomes between 0 and 1 is too wide, because outcomes rarely differ that much.
const UCB_WIDTH: f64 = 0.2;
/// Number of pages after which the priorities of all arms are updated.
const UCB_EVERY: u32 = 16;

impl Ucb {
    /// Looks for pages of `class`.
    #[must_use]
    pub(super) fn new(class: usize) -> Self {
        Self { class, arms: BTreeMap::new(), arm_of: HashMap::new(), fetched: 0 }
    }

    fn put(&self, arm: &Arm, queue: &mut dyn PageQueue) {
        let count = arm.count + 1.0;
        let bound = UCB_WIDTH * (2.0 * f64::from(self.fetched + 1).ln() / count).sqrt();
        let mean = (arm.sum + 0.1) / count;
        arm.waiting.iter().for_each(|&page| queue.put(page, mean + bound));
    }
}

impl Focus for Ucb {
    fn begin(&mut self, seeds: &[(u32, &str)], queue: &mut dyn PageQueue) {
        seeds.iter().for_each(|seed| queue.put(seed.0, f64::MAX));
    }

    fn fetched(&mut self, page: &FetchedPage<'_>, queue: &mut dyn PageQueue) {
        self.fetched += 1;
        let mut touched = Vec::new();
        if let Some(key) = self.arm_of.get(&page.page)
            && let Some(arm) = self.arms.get_mut(key)
        {
            arm.sum += page.classes[self.class];
            arm.count += 1.0;
            arm.waiting.retain(|&waiting| waiting != page.page);
            touched.push(key.clone());
        }
        for lead in page.leads {
            if self.arm_of.contains_key(&lead.target) {
                continue;
            }
            let key = folder(lead.url).to_owned();
            self.arms.entry(key.clone()).or_default().waiting.push(lead.target);
            self.arm_of.insert(lead.target, key.clone());
            touched.push(key);
        }
        if self.fetched.is_multiple_of(UCB_EVERY) {
            touched = self.arms.keys().cloned().collect();
        }
        touched.sort_unstable();
        touched.dedup();
        touched.iter().filter_map(|key| self.arms.get(key)).for_each(|arm| self.put(arm, queue));
    }
}

//! How much of a topic a crawl has found: waiting pages are judged by how earlier pages with the same score turned out.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::learn::Platt;

/// Outcomes that count: the newest.
const OUTCOMES_MAX: usize = 2000;

/// Outcomes from which something can be said.
pub const OUTCOMES_MIN: usize = 100;

/// Levels that are judged together.
const GROUP: usize = 16;
const GROUPS: usize = 256 / GROUP;

/// As how many outcomes of a group what all levels together say of it counts. More would narrow the interval, and mislead where
/// the truth is not a sigmoid: most outcomes are of levels that no longer wait.
const SHARED: f64 = 0.5;

/// Deviations of the normal law that hold 95 %.
const DEVIATIONS: f64 = 1.96;

/// The newest pages, whose links say how much is still unknown.
const NEWEST: usize = 200;

/// How pages turned out, by the level under which they had waited, and how many unknown pages their links led to.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(VecDeque<(u8, bool, u16)>);

/// How much of a topic is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recall {
    /// found / (found + waiting).
    pub expected: f64,
    /// The interval that holds the true share in 95 of 100 cases.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Pages of the topic that are expected among those that wait, and beyond them.
    pub waiting: f64,
}

impl Outcomes {
    /// Learns that a page that had waited under this level is of the topic, or not, and leads to so many pages that were unknown.
    pub fn record(&mut self, level: u8, is_of_topic: bool, unknown: u16) {
        if self.0.len() == OUTCOMES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((level, is_of_topic, unknown));
    }

    /// The share that is found, given `found` pages and how many wait under each level; none before [`OUTCOMES_MIN`] outcomes, and
    /// while each page leads to one unknown page or more.
    ///
    /// Each group of levels has a Beta law of its outcomes, drawn to a sigmoid over all levels (Platt). The sum over what waits, with the
    /// variance of these laws and of the draws from them, is taken for log-normal. Where each page leads to m unknown ones (the mean of
    /// the newest), there are m + m² + … = m / (1 - m) beyond each waiting page, and they are taken to be like it.
    #[must_use]
    pub fn recall(&self, found: u64, waiting: &[u64; 256]) -> Option<Recall> {
        if self.0.len() < OUTCOMES_MIN {
            return None;
        }
        let newest = self.0.iter().rev().take(NEWEST);
        let unknown = newest.clone().map(|outcome| f64::from(outcome.2)).sum::<f64>() / newest.len() as f64;
        if unknown >= 1.0 {
            return None;
        }
        let (levels, labels): (Vec<f64>, Vec<bool>) =
            self.0.iter().map(|&(level, is_of_topic, _)| (f64::from(level), is_of_topic)).unzip();
        let shared = Platt::fit(&levels, &labels);
        let mut outcomes = [(0.0, 0.0); GROUPS];
        for &(level, is_of_topic, _) in &self.0 {
            let (of_topic, all) = &mut outcomes[usize::from(level) / GROUP];
            *of_topic += f64::from(u8::from(is_of_topic));
            *all += 1.0;
        }
        let (mut sum, mut variance) = (0.0, 0.0);
        for (group, (of_topic, all)) in outcomes.into_iter().enumerate() {
            let count = waiting[group * GROUP..][..GROUP].iter().sum::<u64>() as f64;
            let prior = shared.probability((group * GROUP + GROUP / 2) as f64);
            let mean = (of_topic + SHARED * prior) / (all + SHARED);
            let spread = mean * (1.0 - mean);
            sum += count * mean;
            variance += count * spread + count * count * spread / (all + SHARED + 1.0);
        }
        let share = |waiting: f64| found as f64 / (found as f64 + waiting).max(f64::MIN_POSITIVE);
        let reached = 1.0 / (1.0 - unknown);
        (sum, variance) = (sum * reached, variance * reached * reached);
        // If nothing waits, there is nothing to estimate.
        let relative = if sum > 0.0 { variance / (sum * sum) } else { 0.0 };
        let (median, width) = (sum / (1.0 + relative).sqrt(), DEVIATIONS * relative.ln_1p().sqrt());
        Some(Recall {
            expected: share(sum),
            low: share(median * width.exp()),
            high: share(median * (-width).exp()),
            waiting: sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the interval holds the truth, and how far from it the estimate is on average. Pages wait under levels, with this
    /// chance to be of the topic; those on high levels are fetched first, one of twenty by lot.
    fn held(chance: impl Fn(f64) -> f64) -> (f64, f64) {
        const CRAWLS: usize = 200;
        let mut random = fastrand::Rng::with_seed(4);
        let (mut held, mut apart) = (0.0, 0.0);
        for _ in 0..CRAWLS {
            let page = |random: &mut fastrand::Rng| {
                let level = random.u8(1..=252);
                (level, random.f64() < chance(level.into()))
            };
            let mut pages: Vec<(u8, bool)> = (0..3000).map(|_| page(&mut random)).collect();
            pages.sort_by_key(|page| page.0);
            let (mut outcomes, mut found) = (Outcomes::default(), 0);
            for turn in 0..800 {
                let page = if turn % 20 == 0 {
                    pages.remove(random.usize(..pages.len()))
                } else {
                    pages.pop().unwrap()
                };
                outcomes.record(page.0, page.1, 0);
                found += u64::from(page.1);
            }
            let mut waiting = [0; 256];
            pages.iter().for_each(|page| waiting[usize::from(page.0)] += 1);
            let recall = outcomes.recall(found, &waiting).unwrap();
            let left = pages.iter().filter(|page| page.1).count() as f64;
            let truth = found as f64 / (found as f64 + left);
            assert!(recall.low <= recall.expected && recall.expected <= recall.high, "{recall:?}");
            held += f64::from(u8::from((recall.low..=recall.high).contains(&truth))) / CRAWLS as f64;
            apart += (recall.expected - truth) / CRAWLS as f64;
        }
        (held, apart)
    }

    #[test]
    fn the_interval_holds_the_truth() {
        let (often, apart) = held(|level| crate::learn::sigmoid((level - 200.0) / 25.0));
        assert!(often > 0.85 && apart.abs() < 0.03, "{often} {apart}");
        // Where scores are not log-odds, and chances fall just below what was fetched, rather too much is expected to wait.
        let (often, apart) = held(|level| if level > 180.0 { 0.6 } else { 0.02 + level / 2000.0 });
        assert!(often > 0.6 && apart < 0.0 && apart > -0.15, "{often} {apart}");
    }

    #[test]
    fn too_few_outcomes_give_no_estimate() {
        let mut outcomes = Outcomes::default();
        (1..OUTCOMES_MIN).for_each(|_| outcomes.record(9, true, 0));
        assert_eq!(outcomes.recall(1, &[1; 256]), None);
        outcomes.record(9, true, 0);
        let all = outcomes.recall(99, &[0; 256]).unwrap();
        assert_eq!((all.expected, all.low, all.high, all.waiting), (1.0, 1.0, 1.0, 0.0));
        assert_eq!(outcomes.recall(0, &[0; 256]).unwrap().expected, 0.0);
        // The newest outcomes count.
        (0..OUTCOMES_MAX).for_each(|_| outcomes.record(9, false, 0));
        assert_eq!(outcomes.0.len(), OUTCOMES_MAX);
        let mut waiting = [0; 256];
        waiting[9] = 1000;
        let none = outcomes.recall(99, &waiting).unwrap();
        assert!(none.waiting < 5.0 && none.low > 0.9, "{none:?}");
        // Every second page leads to one that was unknown: beyond each there is another.
        (0..NEWEST).for_each(|page| outcomes.record(9, false, u16::from(page % 2 == 0)));
        let growing = outcomes.recall(99, &waiting).unwrap();
        assert!((growing.waiting / none.waiting - 2.0).abs() < 0.1, "{growing:?}");
        // While the unknown part grows, there is no estimate.
        (0..NEWEST).for_each(|_| outcomes.record(9, false, 1));
        assert_eq!(outcomes.recall(99, &waiting), None);
    }
}

//! How much of a topic a crawl has found. Waiting pages are judged by the outcomes of earlier pages with similar
//! scores.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::learn::Platt;

/// Maximum number of outcomes that count, the newest ones.
const OUTCOMES_MAX: usize = 2000;

/// Minimum number of outcomes for an estimate.
pub const OUTCOMES_MIN: usize = 100;

/// Number of levels judged together.
const GROUP: usize = 16;
const GROUPS: usize = 256 / GROUP;

/// Number of outcomes of a group that the prior from all levels counts as. More would narrow the interval, and would
/// mislead where the truth is not a sigmoid: most outcomes are from levels at which no pages wait any more.
const SHARED: f64 = 0.5;

/// Standard deviations of a normal distribution on each side that enclose 95 %.
const DEVIATIONS: f64 = 1.96;

/// Number of newest pages whose links show how much is still unknown.
const NEWEST: usize = 200;

/// Outcomes of pages by the level at which they had waited, with the number of unknown pages that they linked to.
#[derive(Clone, Debug, Default)]
pub struct LevelOutcomes(VecDeque<(u8, bool, u16)>);

/// Estimated recall of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recall {
    /// found / (found + waiting).
    pub expected: f64,
    /// Lower end of the 95 % interval of the true share.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Expected number of pages of the topic that wait or are not yet known.
    pub waiting: f64,
}

impl LevelOutcomes {
    /// Records whether a page that had waited at this level is of the topic, and how many unknown pages it linked to.
    pub fn record(&mut self, level: u8, is_of_topic: bool, unknown: u16) {
        if self.0.len() == OUTCOMES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((level, is_of_topic, unknown));
    }

    /// Estimates the recall, given the number of pages found and the number waiting at each level. `None` before
    /// [`OUTCOMES_MIN`] outcomes, and while each page leads to one unknown page or more on average.
    ///
    /// Each group of levels has a Beta distribution of its outcomes, shrunk towards a sigmoid over all levels (Platt).
    /// The sum over the waiting pages is assumed to be log-normal, with the variance of these distributions and of the
    /// draws from them. If each page leads to m unknown ones (the mean of the newest), there are m + m² + … = m / (1 -
    /// m) more pages for each waiting one, and they are assumed to resemble it.
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
        // If no pages wait, there is nothing to estimate.
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

    /// Returns how often the interval contains the truth, and the mean error of the estimate. Pages wait at levels and
    /// are of the topic with a probability of `chance(level)`. High levels are fetched first, and one page in twenty is
    /// drawn at random.
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
            let (mut outcomes, mut found) = (LevelOutcomes::default(), 0);
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
        // If scores are not log-odds and chances drop just below the fetched levels, the estimate of waiting pages is
        // too high.
        let (often, apart) = held(|level| if level > 180.0 { 0.6 } else { 0.02 + level / 2000.0 });
        assert!(often > 0.6 && apart < 0.0 && apart > -0.15, "{often} {apart}");
    }

    #[test]
    fn too_few_outcomes_give_no_estimate() {
        let mut outcomes = LevelOutcomes::default();
        (1..OUTCOMES_MIN).for_each(|_| outcomes.record(9, true, 0));
        assert_eq!(outcomes.recall(1, &[1; 256]), None);
        outcomes.record(9, true, 0);
        let all = outcomes.recall(99, &[0; 256]).unwrap();
        assert_eq!((all.expected, all.low, all.high, all.waiting), (1.0, 1.0, 1.0, 0.0));
        assert_eq!(outcomes.recall(0, &[0; 256]).unwrap().expected, 0.0);
        // The newest outcomes replace older ones.
        (0..OUTCOMES_MAX).for_each(|_| outcomes.record(9, false, 0));
        assert_eq!(outcomes.0.len(), OUTCOMES_MAX);
        let mut waiting = [0; 256];
        waiting[9] = 1000;
        let none = outcomes.recall(99, &waiting).unwrap();
        assert!(none.waiting < 5.0 && none.low > 0.9, "{none:?}");
        // Every second page leads to an unknown one, so there is one more page for each.
        (0..NEWEST).for_each(|page| outcomes.record(9, false, u16::from(page % 2 == 0)));
        let growing = outcomes.recall(99, &waiting).unwrap();
        assert!((growing.waiting / none.waiting - 2.0).abs() < 0.1, "{growing:?}");
        // While the number of unknown pages grows, there is no estimate.
        (0..NEWEST).for_each(|_| outcomes.record(9, false, 1));
        assert_eq!(outcomes.recall(99, &waiting), None);
    }
}

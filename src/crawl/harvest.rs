//! Counts the pages of a focused crawl that are on topic, and decides when they are enough or too few.

use std::collections::VecDeque;

use archive_books::topics::RELEVANT;
use archive_choose::TopicStatus;
use archive_math::focus::Recall;

use super::options::EndReason;

/// Number of pages over which the current rate is measured.
const PRESENT: usize = 100;

/// Minimum number of pages between two estimates of the recall; with many known URLs, one page per
/// `RECALL_URLS_A_PAGE` of them.
const RECALL_EVERY: u64 = 20;
const RECALL_URLS_A_PAGE: u64 = 1024;

/// Maximum number of pages in [`HarvestRules::least`].
pub const PAGES_MAX: u32 = 1_000_000;

/// When a focused crawl has had enough.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HarvestRules {
    /// Stop when the share of on-topic pages among the last ones is below the first number; the second is how many (1
    /// to [`PAGES_MAX`]).
    pub least: Option<(f64, u32)>,
    /// Stop when this many on-topic pages are found.
    pub found: Option<u64>,
    /// Stop when this share of all on-topic pages is probably found.
    pub recall: Option<f64>,
}

/// Counts on-topic pages.
#[derive(Debug, Default)]
pub(super) struct Harvest {
    looked_at: u64,
    found: u64,
    /// Whether each of the last pages was on topic, the newest last.
    last: VecDeque<bool>,
    /// Number of those that were.
    of_last: usize,
    window: usize,
    /// Last estimate of the recall; `next` counts the pages at that time.
    recall: Option<Recall>,
    next: u64,
}

impl Harvest {
    pub(super) fn new(rules: &HarvestRules) -> Self {
        let asked = rules.least.map_or(0, |(_, pages)| pages.min(PAGES_MAX) as usize);
        Self { window: asked.max(PRESENT), ..Self::default() }
    }

    /// Counts a page that is on topic with this probability.
    pub(super) fn count(&mut self, chance: f64) {
        let is_of_topic = chance >= RELEVANT;
        self.looked_at += 1;
        self.found += u64::from(is_of_topic);
        self.of_last += usize::from(is_of_topic);
        self.last.push_back(is_of_topic);
        if self.last.len() > self.window {
            self.of_last -= usize::from(self.last.pop_front() == Some(true));
        }
    }

    /// Whether the recall is to be estimated again, given the number of known URLs: an estimate looks at each of them.
    pub(super) fn is_due(&self, urls: u64) -> bool {
        self.looked_at >= self.next + RECALL_EVERY.max(urls / RECALL_URLS_A_PAGE)
    }

    pub(super) fn estimated(&mut self, recall: Option<Recall>) {
        self.recall = recall;
        self.next = self.looked_at;
    }

    pub(super) fn status(&self, topic: &str) -> TopicStatus {
        let present = self.last.iter().rev().take(PRESENT);
        let (count, found) = (present.len(), present.filter(|found| **found).count());
        let harvest = if count > 0 { found as f64 / count as f64 } else { 0.0 };
        TopicStatus {
            name: topic.to_owned(),
            looked_at: self.looked_at,
            found: self.found,
            harvest,
            recall: self.recall,
        }
    }

    /// Whether the pages are enough, or too few.
    pub(super) fn end(&self, rules: &HarvestRules) -> Option<EndReason> {
        if rules.found.is_some_and(|found| self.found >= found) {
            return Some(EndReason::Found);
        }
        if let (Some(least), Some(recall)) = (rules.recall, self.recall)
            && recall.expected >= least
        {
            return Some(EndReason::Recall);
        }
        let (least, pages) = rules.least?;
        let is_full = self.last.len() >= pages.max(1) as usize;
        (is_full && (self.of_recent(pages as usize) as f64) < least * f64::from(pages))
            .then_some(EndReason::Harvest)
    }

    /// Returns how many of the last `pages` pages were on topic.
    fn of_recent(&self, pages: usize) -> usize {
        if pages >= self.window {
            return self.of_last;
        }
        self.last.iter().rev().take(pages).filter(|found| **found).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawls_end_with_enough_or_with_too_few() {
        let rules = HarvestRules { least: Some((0.5, 10)), found: Some(8), recall: None };
        let mut harvest = Harvest::new(&rules);
        (0..7).for_each(|_| harvest.count(0.9));
        assert_eq!(harvest.end(&rules), None);
        (0..7).for_each(|_| harvest.count(0.1));
        // Three of the last ten.
        assert_eq!(harvest.end(&rules), Some(EndReason::Harvest));
        harvest.count(0.5);
        assert_eq!(harvest.end(&rules), Some(EndReason::Found));
        assert_eq!(harvest.end(&HarvestRules::default()), None);
        let status = harvest.status("pies");
        assert_eq!((status.looked_at, status.found), (15, 8));
        assert!((status.harvest - 8.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn crawls_end_with_enough_of_what_there_is() {
        let rules = HarvestRules { recall: Some(0.9), ..HarvestRules::default() };
        let mut harvest = Harvest::new(&rules);
        (0..RECALL_EVERY - 1).for_each(|_| harvest.count(0.9));
        assert!(!harvest.is_due(0));
        harvest.count(0.9);
        assert!(harvest.is_due(0) && !harvest.is_due(RECALL_URLS_A_PAGE * (RECALL_EVERY + 1)));
        for (expected, end) in [(None, None), (Some(0.89), None), (Some(0.9), Some(EndReason::Recall))] {
            harvest.estimated(expected.map(|expected| Recall { expected, ..Recall::default() }));
            assert_eq!((harvest.end(&rules), harvest.is_due(0)), (end, false));
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let rules = HarvestRules { least: Some((0.1, 200)), ..HarvestRules::default() };
        let mut harvest = Harvest::new(&rules);
        (0..1000).for_each(|page| harvest.count(f64::from(u8::from(page % 5 == 0))));
        assert_eq!((harvest.last.len(), harvest.of_last), (200, 40));
        assert_eq!(harvest.end(&rules), None);
        (0..199).for_each(|_| harvest.count(0.0));
        assert_eq!(harvest.end(&rules), Some(EndReason::Harvest));
    }
}

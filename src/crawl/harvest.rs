//! How many of the pages of a focused crawl are of its topic, and when that is enough or too few.

use std::collections::VecDeque;

use serde::Serialize;

use super::options::End;
use crate::topics::RELEVANT;

/// Pages over which the present rate is told.
const PRESENT: usize = 100;

/// Pages that [`HarvestRules::least`] may ask for.
pub const PAGES_MAX: u32 = 1_000_000;

/// When a focused crawl has had enough.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HarvestRules {
    /// Stop when of the last so many pages (1 to [`PAGES_MAX`]) a smaller share is of the topic.
    pub least: Option<(f64, u32)>,
    /// Stop when so many pages of the topic are found.
    pub found: Option<u64>,
}

/// What a focused crawl has found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TopicStatus {
    /// The topic.
    pub name: String,
    /// Pages that were looked at in this run.
    pub looked_at: u64,
    /// Of these, pages of the topic.
    pub found: u64,
    /// Their share of the last hundred pages.
    pub harvest: f64,
}

/// Counts pages of the topic.
#[derive(Debug, Default)]
pub(super) struct Harvest {
    looked_at: u64,
    found: u64,
    /// Whether each of the last pages was of the topic, the newest last.
    last: VecDeque<bool>,
    /// How many of these were.
    of_last: usize,
    window: usize,
}

impl Harvest {
    pub(super) fn new(rules: &HarvestRules) -> Self {
        let asked = rules.least.map_or(0, |(_, pages)| pages.min(PAGES_MAX) as usize);
        Self { window: asked.max(PRESENT), ..Self::default() }
    }

    /// Counts a page that is of the topic with this probability.
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

    pub(super) fn status(&self, topic: &str) -> TopicStatus {
        let present = self.last.iter().rev().take(PRESENT);
        let (count, found) = (present.len(), present.filter(|found| **found).count());
        let harvest = if count > 0 { found as f64 / count as f64 } else { 0.0 };
        TopicStatus { name: topic.to_owned(), looked_at: self.looked_at, found: self.found, harvest }
    }

    /// Whether that is enough, or too few.
    pub(super) fn end(&self, rules: &HarvestRules) -> Option<End> {
        if rules.found.is_some_and(|found| self.found >= found) {
            return Some(End::Found);
        }
        let (least, pages) = rules.least?;
        let is_full = self.last.len() >= pages.max(1) as usize;
        (is_full && (self.of_recent(pages as usize) as f64) < least * f64::from(pages))
            .then_some(End::Harvest)
    }

    /// How many of the last so many pages were of the topic.
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
        let rules = HarvestRules { least: Some((0.5, 10)), found: Some(8) };
        let mut harvest = Harvest::new(&rules);
        (0..7).for_each(|_| harvest.count(0.9));
        assert_eq!(harvest.end(&rules), None);
        (0..7).for_each(|_| harvest.count(0.1));
        // Of the last ten three.
        assert_eq!(harvest.end(&rules), Some(End::Harvest));
        harvest.count(0.5);
        assert_eq!(harvest.end(&rules), Some(End::Found));
        assert_eq!(harvest.end(&HarvestRules::default()), None);
        let status = harvest.status("pies");
        assert_eq!((status.looked_at, status.found), (15, 8));
        assert!((status.harvest - 8.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let rules = HarvestRules { least: Some((0.1, 200)), found: None };
        let mut harvest = Harvest::new(&rules);
        (0..1000).for_each(|page| harvest.count(f64::from(u8::from(page % 5 == 0))));
        assert_eq!((harvest.last.len(), harvest.of_last), (200, 40));
        assert_eq!(harvest.end(&rules), None);
        (0..199).for_each(|_| harvest.count(0.0));
        assert_eq!(harvest.end(&rules), Some(End::Harvest));
    }
}

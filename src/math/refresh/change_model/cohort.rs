//! Pages that last changed at the same time: they often change together again.

use std::collections::{HashMap, VecDeque};

/// Changes within this many days count as simultaneous.
const SAME_DAYS: f64 = 0.05;
/// Maximum number of visits kept per cohort.
const VISITS_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
struct Cohort {
    members: u32,
    /// Time of each visit of a member and of its last known change, in the order of visits.
    visits: VecDeque<(f64, f64)>,
}

/// Bytes of state per page.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = size_of::<Option<i64>>();

/// Groups of pages by the time of their last change.
#[derive(Clone, Debug)]
pub(super) struct Cohorts {
    by_moment: HashMap<i64, Cohort>,
    of_page: Vec<Option<i64>>,
}

impl Cohorts {
    /// Starts without any changes.
    pub(super) fn new(pages: usize) -> Self {
        Self { by_moment: HashMap::new(), of_page: vec![None; pages] }
    }

    /// Returns the number of visits of the cohort of `page` after `since`, and how many of them found a later change.
    pub(super) fn evidence(&self, page: usize, since: f64) -> (f64, f64) {
        let Some(cohort) = self.of_page[page].and_then(|moment| self.by_moment.get(&moment)) else {
            return (0.0, 0.0);
        };
        let late = cohort.visits.iter().rev().take_while(|(at, _)| *at > since);
        late.fold((0.0, 0.0), |(visits, hits), (_, changed)| {
            (visits + 1.0, hits + f64::from(u8::from(*changed > since)))
        })
    }

    /// Records a visit of `page` for its cohort; the page last changed at `changed`, as far as known.
    pub(super) fn visited(&mut self, page: usize, now: f64, changed: f64) {
        if let Some(cohort) = self.of_page[page].and_then(|moment| self.by_moment.get_mut(&moment))
            && cohort.members > 1
        {
            cohort.visits.push_back((now, changed));
            if cohort.visits.len() > VISITS_MAX {
                cohort.visits.pop_front();
            }
        }
    }

    /// Moves `page` to the cohort of `changed`.
    pub(super) fn changed(&mut self, page: usize, changed: f64) {
        let moment = (changed / SAME_DAYS).floor() as i64;
        let before = self.of_page[page].replace(moment);
        if before == Some(moment) {
            return;
        }
        self.by_moment.entry(moment).or_default().members += 1;
        self.leave(before);
    }

    /// Removes a page that no longer exists.
    pub(super) fn gone(&mut self, page: usize) {
        let before = self.of_page[page].take();
        self.leave(before);
    }

    fn leave(&mut self, moment: Option<i64>) {
        let Some(moment) = moment else { return };
        if let Some(cohort) = self.by_moment.get_mut(&moment) {
            cohort.members -= 1;
            if cohort.members == 0 {
                self.by_moment.remove(&moment);
            }
        }
    }
}

//! Pages that changed together last time: they often do again.

use std::collections::{HashMap, VecDeque};

/// Changes within this many days are one.
const SAME_DAYS: f64 = 0.05;
/// Visits kept of a cohort.
const VISITS_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
struct Cohort {
    members: u32,
    /// When a member was visited and when it had last changed then, in the order of visits.
    visits: VecDeque<(f64, f64)>,
}

/// Bytes of the state of a page.
#[cfg(test)]
pub(super) const PAGE_BYTES: usize = size_of::<Option<i64>>();

/// Groups of pages by the moment of their last change.
#[derive(Clone, Debug)]
pub(super) struct Cohorts {
    by_moment: HashMap<i64, Cohort>,
    of_page: Vec<Option<i64>>,
}

impl Cohorts {
    /// No page has changed yet.
    pub(super) fn new(pages: usize) -> Self {
        Self { by_moment: HashMap::new(), of_page: vec![None; pages] }
    }

    /// Visits of the cohort of `page` after `since`, and how many of them found a change after it.
    pub(super) fn evidence(&self, page: usize, since: f64) -> (f64, f64) {
        let Some(cohort) = self.of_page[page].and_then(|moment| self.by_moment.get(&moment)) else {
            return (0.0, 0.0);
        };
        let late = cohort.visits.iter().rev().take_while(|(at, _)| *at > since);
        late.fold((0.0, 0.0), |(visits, hits), (_, changed)| {
            (visits + 1.0, hits + f64::from(u8::from(*changed > since)))
        })
    }

    /// Records a visit of `page` in its cohort; the page is known to have last changed at `changed`.
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

    /// Moves `page` to those that changed at `changed`.
    pub(super) fn changed(&mut self, page: usize, changed: f64) {
        let moment = (changed / SAME_DAYS).floor() as i64;
        let before = self.of_page[page].replace(moment);
        if before == Some(moment) {
            return;
        }
        self.by_moment.entry(moment).or_default().members += 1;
        self.leave(before);
    }

    /// Takes out a page that is no more.
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

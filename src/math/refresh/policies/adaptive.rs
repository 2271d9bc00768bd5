//! Adaptive schedules of other crawlers with their default constants: an interval that shrinks after a change and grows
//! after none.

use super::{RefreshPolicy, RefreshProblem, Sighting};

/// The crawler that has the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrawlerSchedule {
    /// Nutch's `AdaptiveFetchSchedule`: × 0.8 after a change, × 1.4 after none, moved towards the time of the last
    /// change.
    Nutch,
    /// Heritrix's `WaitEvaluator`: / 1.5 after a change, × 1.5 after none.
    Heritrix,
    /// StormCrawler's `AdaptiveScheduler`: halfway to the shortest interval after a change, × 1.5 after none.
    Storm,
}

/// How due dates are fitted to the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BudgetFit {
    /// Earliest due date first, even if not yet due.
    Queue,
    /// Only due pages, most important first; the rest of the budget is lost.
    Strict,
    /// Like `Queue`, with the first interval set to this multiple of the interval at which the budget fetches all pages
    /// equally often. The shortest interval is a hundredth of it, the longest ten times as long.
    Tuned(f64),
}

const MINUTE: f64 = 1.0 / 1440.0;
const HOUR: f64 = 1.0 / 24.0;
/// Dates are subtracted from this, so that earlier ones have larger values.
const FAR: f64 = 1e7;

pub(super) struct Adaptive {
    crawler: CrawlerSchedule,
    strict: bool,
    shortest: f64,
    longest: f64,
    interval: Vec<f64>,
    next: Vec<f64>,
    modified: Vec<f64>,
    importance: Vec<f64>,
}

impl Adaptive {
    pub(super) fn new(
        crawler: CrawlerSchedule,
        fit: BudgetFit,
        known: &RefreshProblem,
        draw: &mut dyn FnMut() -> f64,
    ) -> Self {
        let pages = known.importance.len();
        let (first, shortest, longest) = match (fit, crawler) {
            (BudgetFit::Tuned(scale), _) => {
                let alike = scale * pages as f64 / known.budget;
                (alike, alike / 100.0, alike * 10.0)
            }
            (_, CrawlerSchedule::Nutch) => (30.0, MINUTE, 90.0),
            (_, CrawlerSchedule::Heritrix) => (1.0, HOUR, 28.0),
            (_, CrawlerSchedule::Storm) => (1.0, HOUR, 14.0),
        };
        Self {
            crawler,
            strict: fit == BudgetFit::Strict,
            shortest,
            longest,
            interval: vec![first; pages],
            // A random phase, because in a long-running crawl not all pages are due at once.
            next: known.found.iter().map(|found| found + first * draw()).collect(),
            modified: known.found.clone(),
            importance: known.importance.clone(),
        }
    }
}

impl RefreshPolicy for Adaptive {
    fn values(&mut self, now: f64, pages: &[usize], _ages: &[f64], values: &mut [f64]) {
        for (value, &page) in values.iter_mut().zip(pages) {
            *value = match self.strict {
                true if now >= self.next[page] => self.importance[page],
                true => -1.0,
                false => FAR - self.next[page],
            };
        }
    }

    fn seen(&mut self, now: f64, visits: &[Sighting]) {
        for visit in visits {
            let (page, changed) = (visit.page, visit.changed.is_some());
            let interval = self.interval[page];
            let (wanted, from) = match self.crawler {
                CrawlerSchedule::Nutch => {
                    if changed {
                        self.modified[page] = now;
                    }
                    let unchanged = now - self.modified[page];
                    let factor = if changed { 0.8 } else { 1.4 };
                    ((interval * factor).max(unchanged), now - 0.3 * unchanged)
                }
                CrawlerSchedule::Heritrix => (if changed { interval / 1.5 } else { interval * 1.5 }, now),
                CrawlerSchedule::Storm => {
                    (if changed { f64::midpoint(interval, self.shortest) } else { interval * 1.5 }, now)
                }
            };
            self.interval[page] = wanted.clamp(self.shortest, self.longest);
            self.next[page] = (from + self.interval[page]).max(now);
        }
    }
}

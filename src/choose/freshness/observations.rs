//! How fresh copies were, as far as later fetches show.
//!
//! A copy was unchanged between two fetches if the second found no change. If it found one, the copy became stale in
//! between. The exact time is unknown; the expected one for the rate of the page is used: with an interval I, 1/λ -
//! I/(e^(λI) - 1). The time after the last fetch of a page does not count.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use archive_books::change::is_version;
use archive_books::ledger::{CreditError, capture_flags};
use archive_math::refresh::rate::days_before_change;
use archive_storage::{State, UrlId};
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{DaysSpread, PageModel};

const MICROSECONDS_PER_DAY: f64 = 86_400e6;

/// Observed freshness of copies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observed {
    /// Number of copy days covered, over all pages.
    pub page_days: f64,
    /// Number of fetches that compared a copy with its page.
    pub checks: u64,
    /// Number of these that found a change.
    pub changed: u64,
    /// Share of time for which copies were unchanged, weighted by importance.
    pub freshness: f64,
    /// Weighted mean of the days since the first missed change.
    pub age_days: f64,
    /// Times between two fetches of a page that found changes and had no other change found between them.
    pub change_days: DaysSpread,
    /// For each β in days, the share of time for which copies were unchanged or their first missed change was younger
    /// than β.
    pub currency: Vec<(f64, f64)>,
}

/// Computes how fresh `copies` were from `from` until now; `None` if no fetch compared a copy.
///
/// # Errors
/// If the store cannot be read.
pub fn observe(
    state: &State,
    copies: &[PageModel],
    from: DateTime<Utc>,
    betas: &[f64],
) -> Result<Option<Observed>, CreditError> {
    let models: HashMap<UrlId, &PageModel> = copies.iter().map(|copy| (copy.id, copy)).collect();
    // The time of the last capture, and that of the last one that found a change.
    let mut last: HashMap<UrlId, (i64, Option<i64>)> = HashMap::with_capacity(copies.len());
    let mut intervals = Vec::new();
    let mut sums = Sums { current: vec![0.0; betas.len()], ..Sums::default() };
    for capture in state.captures() {
        let (_, capture) = capture?;
        let Some(copy) = models.get(&capture.url).filter(|_| is_version(&capture)) else { continue };
        let seen = match last.entry(capture.url) {
            Entry::Vacant(entry) => {
                entry.insert((capture.time, None));
                continue;
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        let (before, changed_before) = *seen;
        let changed = capture_flags::content_changed(&capture);
        *seen = (capture.time, if changed { Some(capture.time) } else { changed_before });
        if let Some(since) = changed_before.filter(|_| changed && capture.time > from.timestamp_micros()) {
            intervals.push(((capture.time - since) as f64 / MICROSECONDS_PER_DAY) as f32);
        }
        // Of an interval that began earlier, only the part after `from` counts.
        let skipped = (from.timestamp_micros() - before).max(0) as f64 / MICROSECONDS_PER_DAY;
        let length = (capture.time - before) as f64 / MICROSECONDS_PER_DAY;
        if length > skipped {
            sums.add(copy, length, skipped, changed, betas);
        }
    }
    if sums.weight <= 0.0 {
        return Ok(None);
    }
    Ok(Some(Observed {
        page_days: sums.days,
        checks: sums.checks,
        changed: sums.changed,
        freshness: sums.fresh / sums.weight,
        age_days: sums.outdated / sums.weight,
        change_days: DaysSpread::of(intervals),
        currency: betas.iter().copied().zip(sums.current.iter().map(|sum| sum / sums.weight)).collect(),
    }))
}

#[derive(Default)]
struct Sums {
    days: f64,
    checks: u64,
    changed: u64,
    /// Importance times days.
    weight: f64,
    fresh: f64,
    outdated: f64,
    current: Vec<f64>,
}

impl Sums {
    /// Adds an interval of `length` days; the first `skipped` do not count.
    fn add(&mut self, page: &PageModel, length: f64, skipped: f64, changed: bool, betas: &[f64]) {
        self.checks += 1;
        self.changed += u64::from(changed);
        self.days += length - skipped;
        self.weight += page.importance * (length - skipped);
        let unchanged = if changed { days_before_change(page.copy.belief.per_day, length) } else { length };
        let within = |end: f64| (end.min(length) - skipped).max(0.0);
        self.fresh += page.importance * within(unchanged);
        // The age grows from 0 at the change until the end of the interval.
        let stale_from = unchanged.max(skipped);
        let (first, last) = (stale_from - unchanged, length - unchanged);
        self.outdated += page.importance * (last * last - first * first) / 2.0;
        for (sum, beta) in self.current.iter_mut().zip(betas) {
            *sum += page.importance * within(unchanged + beta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sums;
    use crate::freshness::{Belief, CopyModel, PageModel};
    use archive_storage::UrlId;

    #[test]
    fn intervals_add_up() {
        let copy = PageModel {
            id: UrlId(0),
            importance: 2.0,
            weight: 2.0,
            copy: CopyModel { belief: Belief::sure(1e-9), age: 0.0, announced: 0.0 },
        };
        let mut sums = Sums { current: vec![0.0; 2], ..Sums::default() };
        sums.add(&copy, 10.0, 0.0, false, &[0.0, 2.0]);
        sums.add(&copy, 10.0, 0.0, true, &[0.0, 2.0]);
        assert_eq!((sums.checks, sums.changed, sums.days, sums.weight), (2, 1, 20.0, 40.0));
        // The change is placed in the middle: 5 days unchanged, then 5 days stale, 2 of them within the grace.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(sums.fresh, 2.0 * 15.0);
        near(sums.outdated, 2.0 * 12.5);
        near(sums.current[0], 2.0 * 15.0);
        near(sums.current[1], 2.0 * 17.0);
        // Only the last 3 days of the interval count.
        let mut late = Sums { current: vec![0.0; 2], ..Sums::default() };
        late.add(&copy, 10.0, 7.0, true, &[0.0, 2.0]);
        near(late.days, 3.0);
        near(late.fresh, 0.0);
        near(late.outdated, 2.0 * (12.5 - 2.0));
    }
}

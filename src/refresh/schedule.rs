//! When a page is due: obsolescence and the refresh interval of Xyleme's section 6.
//!
//! The budget G (fetches a day) is shared so that the mean obsolescence is least: page i is fetched every
//! `t_i = S / (G √(r_i λ_i))`, `S = Σ √(r_j λ_j)` (equation 22). [`Budget`] keeps S exactly under any order of
//! additions and removals.

/// Weights of the two parts of a page's penalty (section 6.2.1): expected unseen changes and chance of being stale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// Weight α of the expected number of unseen changes λ(t - t₀).
    pub changes: f64,
    /// Weight β of the probability that there is at least one.
    pub stale: f64,
}

impl Default for Penalty {
    fn default() -> Self {
        Self { changes: 1.0, stale: 0.0 }
    }
}

impl Penalty {
    /// The obsolescence of a page `elapsed` days after its last fetch: equation 21, with both parts of the penalty.
    pub fn obsolescence(&self, importance: f64, rate: f64, elapsed: f64) -> f64 {
        let changes = rate * elapsed;
        importance * (self.changes * changes - self.stale * (-changes).exp_m1())
    }
}

/// The obsolescence r λ (t - t₀) of equation 21, in expected unseen changes times importance.
pub fn obsolescence(importance: f64, rate: f64, elapsed: f64) -> f64 {
    Penalty::default().obsolescence(importance, rate, elapsed)
}

/// Fixed-point unit of the kept sum: 2⁻⁴⁰.
const UNIT: f64 = (1_u64 << 40) as f64;

/// A fetch budget and the pages it is shared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Fetches a day (G).
    pub fetches_per_day: f64,
    /// No page is fetched again sooner than this many days.
    pub shortest_interval: f64,
    /// Σ √(r λ) in [`UNIT`]s: integers, so that what is taken out is exactly what was put in.
    sum: i128,
}

impl Budget {
    /// A budget of `fetches_per_day` that no page shares yet.
    pub fn new(fetches_per_day: f64, shortest_interval: f64) -> Self {
        Self { fetches_per_day, shortest_interval, sum: 0 }
    }

    /// A budget with the sum as [`sum`](Self::sum) once gave it.
    pub fn with_sum(fetches_per_day: f64, shortest_interval: f64, sum: i128) -> Self {
        Self { fetches_per_day, shortest_interval, sum }
    }

    /// The exact sum, for keeping.
    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// Σ √(r λ) over the pages.
    pub fn root_sum(&self) -> f64 {
        self.sum as f64 / UNIT
    }

    /// A page joins.
    pub fn add(&mut self, importance: f64, rate: f64) {
        self.sum += units(importance, rate);
    }

    /// A page leaves; `importance` and `rate` are those it was last counted with.
    pub fn remove(&mut self, importance: f64, rate: f64) {
        self.sum -= units(importance, rate);
    }

    /// The refresh interval of a page in days (equation 22), infinite for a page without importance or changes.
    pub fn interval(&self, importance: f64, rate: f64) -> f64 {
        let interval = self.root_sum() / (self.fetches_per_day * (importance * rate).sqrt());
        interval.max(self.shortest_interval)
    }

    /// How due a page is `elapsed` days after its last fetch: 1 at its interval, 2 at twice that.
    pub fn due_score(&self, importance: f64, rate: f64, elapsed: f64) -> f64 {
        elapsed / self.interval(importance, rate)
    }

    /// The mean total obsolescence Ω(G) = S² / (2G) when every page is fetched at its interval.
    pub fn mean_obsolescence(&self) -> f64 {
        let sum = self.root_sum();
        sum * sum / (2.0 * self.fetches_per_day)
    }
}

fn units(importance: f64, rate: f64) -> i128 {
    ((importance * rate).max(0.0).sqrt() * UNIT).round() as i128
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// So many pages with importance and rates over several orders of magnitude.
    pub(in crate::refresh) fn pages(count: u32) -> Vec<(f64, f64)> {
        let page = |i: u32| {
            let i = f64::from(i);
            (0.05 + 3.0 * (i * 0.618).fract(), 0.002 * (5.0 * (i * 0.414).fract()).exp())
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn sum_is_exact_in_any_order() {
        let mut budget = Budget::new(10.0, 0.0);
        let pages = pages(500);
        for &(importance, rate) in &pages {
            budget.add(importance, rate);
        }
        for &(importance, rate) in pages.iter().rev() {
            budget.remove(importance, rate);
        }
        assert_eq!(budget.sum(), 0);
    }

    #[test]
    fn intervals_use_exactly_the_budget() {
        let mut budget = Budget::new(25.0, 0.0);
        let pages = pages(500);
        pages.iter().for_each(|&(importance, rate)| budget.add(importance, rate));
        let fetches: f64 = pages.iter().map(|&(r, rate)| budget.interval(r, rate).recip()).sum();
        assert!((fetches - 25.0).abs() < 1e-6, "{fetches}");
    }

    /// Due pages fetched day by day: the fetches settle at G and obsolescence at Ω(G).
    #[test]
    fn equilibrium_has_the_closed_form_obsolescence() {
        let pages = pages(500);
        let mut budget = Budget::new(40.0, 0.0);
        pages.iter().for_each(|&(importance, rate)| budget.add(importance, rate));
        let step = 0.01;
        let (mut last, mut fetches, mut total) = (vec![0.0; pages.len()], 0_u32, 0.0);
        let (warm_up, end) = (20_000, 60_000);
        for tick in 0..end {
            let now = f64::from(tick) * step;
            for (&(importance, rate), last) in pages.iter().zip(&mut last) {
                if budget.due_score(importance, rate, now - *last) >= 1.0 {
                    // Keep to the period although ticks round it.
                    *last += budget.interval(importance, rate);
                    fetches += u32::from(tick >= warm_up);
                }
                if tick >= warm_up {
                    total += obsolescence(importance, rate, now - *last);
                }
            }
        }
        let ticks = f64::from(end - warm_up);
        let per_day = f64::from(fetches) / (ticks * step);
        assert!((per_day / 40.0 - 1.0).abs() < 0.01, "{per_day} fetches a day");
        let mean = total / ticks;
        assert!((mean / budget.mean_obsolescence() - 1.0).abs() < 0.01, "{mean} obsolescence");
    }

    #[test]
    fn pages_without_importance_or_changes_are_never_due() {
        let mut budget = Budget::new(1.0, 1.0);
        budget.add(1.0, 1.0);
        assert_eq!(budget.interval(0.0, 1.0), f64::INFINITY);
        assert_eq!(budget.due_score(1.0, 0.0, 1e9), 0.0);
    }

    #[test]
    fn penalty_counts_staleness_too() {
        let penalty = Penalty { changes: 0.0, stale: 1.0 };
        assert!((penalty.obsolescence(2.0, 1.0, 1.0) - 2.0 * (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
    }
}

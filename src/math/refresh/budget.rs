//! Which page to fetch next, and how often each in the long run: the published rules for a fixed budget.
//!
//! A rule computes the [`value`](BudgetRule::value) of fetching a page from its importance w, its change rate λ and the age τ
//! of its copy; the pages with the highest values are fetched. The value never falls as the copy ages. So fetching a
//! page whenever its value reaches a threshold, the price of a fetch, gives it a [`frequency`](BudgetRule::frequency). The
//! [`price`](BudgetRule::price) is the one at which the frequencies of all pages add up to the budget.

/// A rule that depends only on the importance, the change rate and the age of the copy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BudgetRule {
    /// Oldest copy first, regardless of the page: τ.
    Uniform,
    /// Fetches in proportion to the change rate: λτ.
    Proportional,
    /// Minimum obsolescence, which is the expected number of missed changes times importance: √(wλ) τ. With a price of
    /// `Σ √(w_j λ_j) / G` for G fetches per day, a page is fetched every
    ///
    /// ```text
    /// t_i = Σ √(w_j λ_j) / (G √(w_i λ_i)) days
    /// ```
    ///
    /// which is equation 22 of Mignet et al., "Acquiring XML pages for a WebHouse" (BDA 2000), section 6.
    Xyleme,
    /// Minimum penalty, w \[α λτ + β (1 - e^(-λτ))\] for a copy that is old and for one that is stale (Mignet et al.,
    /// section 6.2.1): α wλ τ²/2 + β w/λ · \[1 - (1 + λτ) e^(-λτ)\], the average penalty that a fetch saves. With β = 0 it
    /// ranks as `Xyleme`, with α = 0 as `Freshness`.
    Penalty {
        /// α, the penalty of each expected missed change.
        old: f64,
        /// β, the penalty of a stale copy.
        stale: f64,
    },
    /// Maximum freshness with regular fetches (Cho and Garcia-Molina; Olston and Pandey): w/λ · \[1 - (1 + λτ)
    /// e^(-λτ)\]. Gives up pages that change too often.
    Freshness,
    /// Maximum freshness with memoryless fetches (Azar et al.): wλ τ²/(1 + λτ)², so that `f = max(0, √(wλ/price) - λ)`.
    Azar,
    /// LambdaCrawl's harmonic staleness with regular fetches (Kolobov et al.): w \[τ - (1 - e^(-λτ))/λ\].
    Harmonic,
    /// The same with memoryless fetches: wλ τ²/(1 + λτ), so that `f = (-λ + √(λ² + 4wλ/price))/2`.
    LambdaCrawl,
}

/// Threshold of λτ below which the closed forms lose precision, and their common limit w λ τ²/2 is used.
const SMALL: f64 = 1e-4;

/// Number of bisection steps that determine a price or an age precisely enough.
const STEPS: usize = 60;

impl BudgetRule {
    /// All rules.
    pub const ALL: [Self; 8] = [
        Self::Uniform,
        Self::Proportional,
        Self::Xyleme,
        Self::Penalty { old: 1.0, stale: 1.0 },
        Self::Freshness,
        Self::Azar,
        Self::Harmonic,
        Self::LambdaCrawl,
    ];

    /// Returns the value of fetching a page of `importance` and `rate` (changes per day) whose copy is `age` days old.
    #[must_use]
    pub fn value(self, importance: f64, rate: f64, age: f64) -> f64 {
        let changes = rate * age;
        match self {
            Self::Uniform => age,
            Self::Proportional => changes,
            Self::Xyleme => (importance * rate).sqrt() * age,
            Self::Penalty { old, stale } => {
                old * importance * changes * age / 2.0 + stale * Self::Freshness.value(importance, rate, age)
            }
            Self::Freshness | Self::Harmonic if changes < SMALL => importance * changes * age / 2.0,
            Self::Freshness => importance / rate * (1.0 - (1.0 + changes) * (-changes).exp()),
            Self::Azar => importance * changes * age / (1.0 + changes).powi(2),
            Self::Harmonic => importance * (age + (-changes).exp_m1() / rate),
            Self::LambdaCrawl => importance * changes * age / (1.0 + changes),
        }
    }

    /// Returns the fetches per day of a page that is fetched whenever its value reaches `price`; 0 if it never does.
    #[must_use]
    pub fn frequency(self, importance: f64, rate: f64, price: f64) -> f64 {
        let demand = importance * rate;
        match self {
            Self::Uniform => price.recip(),
            Self::Proportional => {
                if rate > 0.0 {
                    rate / price
                } else {
                    0.0
                }
            }
            _ if demand <= 0.0 => 0.0,
            Self::Xyleme => demand.sqrt() / price,
            Self::Freshness => rate / changes_between_fetches(price * rate / importance),
            Self::Azar => ((demand / price).sqrt() - rate).max(0.0),
            Self::Penalty { old, stale } if old <= 0.0 => {
                Self::Freshness.frequency(importance, rate, price / stale)
            }
            Self::Penalty { .. } | Self::Harmonic => self.search_age(importance, rate, price).recip(),
            Self::LambdaCrawl => ((rate * rate + 4.0 * demand / price).sqrt() - rate) / 2.0,
        }
    }

    /// Returns the age in days at which the value of a page reaches `price`, from which due dates are computed;
    /// infinite if it never does.
    #[must_use]
    pub fn interval(self, importance: f64, rate: f64, price: f64) -> f64 {
        self.frequency(importance, rate, price).recip()
    }

    /// Returns the price at which `pages` (importance and rate) take `budget` fetches per day, with at least `shortest`
    /// days between fetches of a page; 0 if the budget suffices for all of them that often. The search begins at
    /// `start`.
    #[must_use]
    pub fn price(self, pages: &[(f64, f64)], budget: f64, shortest: f64, start: f64) -> f64 {
        if pages.len() as f64 <= budget * shortest {
            return 0.0;
        }
        let most = shortest.recip();
        let spent = |price: f64| -> f64 {
            pages.iter().map(|&(importance, rate)| self.frequency(importance, rate, price).min(most)).sum()
        };
        match self {
            // All intervals grow in proportion to the price: Σ √(wλ) / G for Xyleme.
            Self::Uniform | Self::Proportional | Self::Xyleme if shortest <= 0.0 => {
                spent(1.0).max(f64::MIN_POSITIVE) / budget
            }
            _ => find_price(start, budget, spent),
        }
    }

    /// Returns the fetches per day of each of `pages`; they add up to `budget`. The search for the price begins at
    /// `price`, which receives the result.
    pub fn frequencies(self, pages: &[(f64, f64)], budget: f64, price: &mut f64) -> Vec<f64> {
        *price = self.price(pages, budget, 0.0, *price);
        pages.iter().map(|&(importance, rate)| self.frequency(importance, rate, *price)).collect()
    }

    fn search_age(self, importance: f64, rate: f64, price: f64) -> f64 {
        let scale = if let Self::Penalty { old, stale } = self { old + stale } else { 1.0 };
        // The age at which the limit w λ τ²/2 reaches the price. The value never exceeds this limit, so the result is
        // higher.
        let mut low = (2.0 * price / (scale * importance * rate)).sqrt();
        let mut high = 2.0 * low;
        while self.value(importance, rate, high) < price && high.is_finite() {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.value(importance, rate, middle) < price {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Solves `1 - (1 + x) e^-x = y` for x, the expected changes between two fetches; infinite for y ≥ 1.
fn changes_between_fetches(y: f64) -> f64 {
    if y >= 1.0 {
        return f64::INFINITY;
    }
    let mut x = (2.0 * y).sqrt();
    if x < SMALL {
        return x;
    }
    for _ in 0..STEPS {
        let missing = y - (1.0 - (1.0 + x) * (-x).exp());
        // Bound the slope x e^-x away from 0, where a step would leave the range.
        let next = (x + missing / (x * (-x).exp()).max(1e-12)).clamp(x / 2.0, x + 2.0);
        if (next - x).abs() <= 1e-12 * x {
            break;
        }
        x = next;
    }
    x
}

/// Finds the price at which `spent`, which falls with the price, equals the budget.
fn find_price(start: f64, budget: f64, spent: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (start / 1.1, start * 1.1);
    while spent(low) < budget && low > 1e-300 {
        (low, high) = (low / 4.0, low);
    }
    while spent(high) > budget && high < 1e300 {
        (low, high) = (high, high * 4.0);
    }
    for _ in 0..STEPS {
        if high / low < 1.0 + 1e-10 {
            break;
        }
        let middle = (low * high).sqrt();
        if spent(middle) > budget {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `count` pages with importance and rates over several orders of magnitude.
    fn pages(count: u32) -> Vec<(f64, f64)> {
        let page = |i: u32| {
            let i = f64::from(i);
            (0.05 + 3.0 * (i * 0.618).fract(), 0.002 * (5.0 * (i * 0.414).fract()).exp())
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn values_grow_with_age_and_intervals_invert_them() {
        for rule in BudgetRule::ALL {
            for rate in [1e-4, 0.01, 1.0, 30.0] {
                let mut before = 0.0;
                for age in [1e-3, 0.1, 1.0, 3.0, 10.0] {
                    let value = rule.value(2.0, rate, age);
                    assert!(value >= before, "{rule:?} falls at rate {rate}, age {age}");
                    before = value;
                    if rate * age < 10.0 {
                        let found = rule.interval(2.0, rate, value);
                        assert!((found / age - 1.0).abs() < 1e-4, "{rule:?} {rate} {age}: {found}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_ages_join_smoothly() {
        for rule in [BudgetRule::Freshness, BudgetRule::Harmonic] {
            let below = rule.value(1.0, 1.0, SMALL * 0.999);
            let above = rule.value(1.0, 1.0, SMALL * 1.001);
            assert!((above / below - 1.0).abs() < 0.01, "{rule:?}: {below} {above}");
        }
    }

    #[test]
    fn frequencies_spend_the_budget() {
        let mut pages = pages(200);
        pages.push((3.0, 0.0));
        for rule in BudgetRule::ALL {
            let mut price = 1.0;
            for budget in [0.05, 0.5, 5.0, 60.0] {
                let frequencies = rule.frequencies(&pages, budget, &mut price);
                let spent: f64 = frequencies.iter().sum();
                assert!((spent / budget - 1.0).abs() < 1e-6, "{rule:?}: {spent} of {budget}");
                let unchanging = frequencies[200];
                assert!((unchanging == 0.0) == (rule != BudgetRule::Uniform), "{rule:?}: {unchanging}");
            }
        }
    }

    #[test]
    fn what_is_fetched_too_often_leaves_its_part_to_others() {
        for rule in BudgetRule::ALL {
            let price = rule.price(&pages(200), 60.0, 2.0, 1.0);
            let frequency = |&(w, rate): &(f64, f64)| rule.frequency(w, rate, price).min(0.5);
            let spent: f64 = pages(200).iter().map(frequency).sum();
            assert!((spent / 60.0 - 1.0).abs() < 1e-6, "{rule:?}: {spent}");
            assert_eq!(rule.price(&pages(200), 1e6, 0.5, 1.0), 0.0);
            assert!(pages(200).iter().all(|&(w, rate)| rule.interval(w, rate, 0.0) < 1e-6), "{rule:?}");
        }
    }

    #[test]
    fn pages_without_importance_or_changes_are_given_up() {
        for rule in BudgetRule::ALL {
            for price in [0.0, 1.0] {
                let interval = rule.interval(1.0, 0.0, price);
                assert!((interval == f64::INFINITY) == (rule != BudgetRule::Uniform), "{rule:?}: {interval}");
            }
        }
        assert_eq!(BudgetRule::Xyleme.interval(0.0, 1.0, 1.0), f64::INFINITY);
        for rule in [BudgetRule::Freshness, BudgetRule::Azar] {
            assert_eq!(
                rule.interval(1.0, 10.0, 0.2),
                f64::INFINITY,
                "{rule:?} gives up what changes too often"
            );
        }
        assert!(BudgetRule::Harmonic.interval(1.0, 10.0, 0.2).is_finite());
    }

    /// Equation 22: intervals follow the formula and give a mean obsolescence (equation 21) of (Σ √(wλ))² / (2G).
    #[test]
    fn xylemes_intervals_are_those_of_equation_22() {
        let (pages, budget) = (pages(500), 25.0);
        let price = BudgetRule::Xyleme.price(&pages, budget, 0.0, 1.0);
        let roots: f64 = pages.iter().map(|&(w, rate)| (w * rate).sqrt()).sum();
        let mut obsolescence = 0.0;
        for &(w, rate) in &pages {
            let interval = BudgetRule::Xyleme.interval(w, rate, price);
            assert!((interval * budget * (w * rate).sqrt() / roots - 1.0).abs() < 1e-9);
            obsolescence += w * rate * interval / 2.0;
        }
        assert!((obsolescence * 2.0 * budget / roots.powi(2) - 1.0).abs() < 1e-9, "{obsolescence}");
    }

    /// Equation 22, step by step: pages that are fetched whenever their value reaches the price use the budget, and have
    /// that mean obsolescence.
    #[test]
    fn equilibrium_has_the_closed_form_obsolescence() {
        const DAYS_OF_STEP: f64 = 0.1;
        const WARM_UP: u32 = 2_000;
        const END: u32 = 6_000;
        let (pages, budget) = (pages(500), 40.0);
        let price = BudgetRule::Xyleme.price(&pages, budget, 0.0, 1.0);
        let (mut last, mut fetches, mut obsolescence) = (vec![0.0; pages.len()], 0_u32, 0.0);
        for step in 0..END {
            let now = f64::from(step) * DAYS_OF_STEP;
            for (&(w, rate), last) in pages.iter().zip(&mut last) {
                if BudgetRule::Xyleme.value(w, rate, now - *last) >= price {
                    // Keep to the interval, although steps round it.
                    *last += BudgetRule::Xyleme.interval(w, rate, price);
                    fetches += u32::from(step >= WARM_UP);
                }
                if step >= WARM_UP {
                    obsolescence += w * rate * (now - *last);
                }
            }
        }
        let steps = f64::from(END - WARM_UP);
        let per_day = f64::from(fetches) / (steps * DAYS_OF_STEP);
        assert!((per_day / budget - 1.0).abs() < 0.01, "{per_day} fetches per day");
        let roots: f64 = pages.iter().map(|&(w, rate)| (w * rate).sqrt()).sum();
        let (mean, expected) = (obsolescence / steps, roots.powi(2) / (2.0 * budget));
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} instead of {expected}");
    }

    #[test]
    fn a_penalty_lies_between_obsolescence_and_staleness() {
        let pages = pages(200);
        let frequencies = |rule: BudgetRule| rule.frequencies(&pages, 5.0, &mut 1.0);
        let alike = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * a.max(1e-3));
        let [old, stale] = [(3.0, 0.0), (0.0, 3.0)].map(|(old, stale)| BudgetRule::Penalty { old, stale });
        assert!(alike(&frequencies(old), &frequencies(BudgetRule::Xyleme)));
        assert!(alike(&frequencies(stale), &frequencies(BudgetRule::Freshness)));
        // What changes too often to be kept fresh is given up unless its age counts, too.
        let fast = |rule: BudgetRule| rule.frequencies(&[(1.0, 50.0), (1.0, 0.5)], 1.0, &mut 1.0)[0];
        assert_eq!(fast(stale), 0.0);
        let both = BudgetRule::Penalty { old: 0.01, stale: 1.0 };
        assert!((0.05..fast(old)).contains(&fast(both)), "{} {}", fast(both), fast(old));
    }

    /// No small transfer of fetches between two pages improves the objective of a rule.
    #[test]
    fn each_optimum_is_one() {
        const PAGES: [(f64, f64); 6] =
            [(1.0, 0.1), (2.0, 1.0), (0.5, 0.01), (1.0, 5.0), (3.0, 0.3), (3.0, 0.0)];
        let worth = |rule: BudgetRule, w: f64, rate: f64, f: f64| match rule {
            // A copy of what does not change is worth the same without fetches.
            _ if rate <= 0.0 => 0.0,
            _ if f <= 0.0 => {
                if rule == BudgetRule::Freshness || rule == BudgetRule::Azar {
                    0.0
                } else {
                    f64::NEG_INFINITY
                }
            }
            BudgetRule::Xyleme => -w * rate / (2.0 * f),
            BudgetRule::Penalty { old, stale } => {
                let x = rate / f;
                -w * (old * x / 2.0 + stale * (1.0 - (1.0 - (-x).exp()) / x))
            }
            BudgetRule::Freshness => w * (f / rate) * (1.0 - (-rate / f).exp()),
            BudgetRule::Azar => w * f / (f + rate),
            _ => -w * (1.0 + rate / f).ln(),
        };
        let penalty = BudgetRule::Penalty { old: 1.0, stale: 1.0 };
        for rule in
            [BudgetRule::Xyleme, penalty, BudgetRule::Freshness, BudgetRule::Azar, BudgetRule::LambdaCrawl]
        {
            let total = |frequencies: &[f64]| -> f64 {
                PAGES.iter().zip(frequencies).map(|(&(w, rate), &f)| worth(rule, w, rate, f)).sum()
            };
            let best = rule.frequencies(&PAGES, 1.0, &mut 1.0);
            assert_eq!(best[5], 0.0, "{rule:?} fetches what does not change");
            for (from, to) in (0..PAGES.len()).flat_map(|from| (0..PAGES.len()).map(move |to| (from, to))) {
                let mut moved = best.clone();
                let amount = (moved[from] / 2.0).min(1e-3);
                moved[from] -= amount;
                moved[to] += amount;
                assert!(total(&moved) <= total(&best) + 1e-9, "{rule:?} from {from} to {to}");
            }
        }
    }
}

//! Which page to fetch next: the value of a fetch under the published policies.
//!
//! A policy turns a page's importance w, change rate λ and the age τ of its copy into one number; the pages with the
//! largest are fetched. All values grow with τ, so that the age at which a page reaches a threshold is well defined
//! ([`Rule::age_at`]): that is what due dates are made from.

/// A rule that ranks pages by importance, rate and age of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Oldest copy first, whatever the page.
    Uniform,
    /// Fetches in proportion to the change rate.
    Proportional,
    /// Fetches in proportion to √(w λ): least obsolescence (Xyleme, equation 22).
    Xyleme,
    /// Greedy form of the freshness optimum (Cho and Garcia-Molina; Olston and Pandey):
    /// w/λ · \[1 - (1 + λτ) e^(-λτ)\]. Gives up pages that change too often.
    Freshness,
    /// Greedy form of LambdaCrawl's harmonic staleness (Kolobov et al.): w \[τ - (1 - e^(-λτ))/λ\].
    Harmonic,
}

/// Below this λτ the closed forms lose their digits and their common limit w λ τ²/2 is used.
const SMALL: f64 = 1e-4;

impl Rule {
    /// The value of fetching a page of `importance` and `rate` (a day) whose copy is `age` days old.
    pub fn value(self, importance: f64, rate: f64, age: f64) -> f64 {
        let changes = rate * age;
        match self {
            Self::Uniform => age,
            Self::Proportional => changes,
            Self::Xyleme => (importance * rate).sqrt() * age,
            Self::Freshness | Self::Harmonic if changes < SMALL => importance * changes * age / 2.0,
            Self::Freshness => importance / rate * (1.0 - (1.0 + changes) * (-changes).exp()),
            Self::Harmonic => importance * (age + (-changes).exp_m1() / rate),
        }
    }

    /// The age in days at which a page's value reaches `threshold`; infinite when it never does.
    pub fn age_at(self, importance: f64, rate: f64, threshold: f64) -> f64 {
        match self {
            Self::Uniform => threshold,
            Self::Proportional => threshold / rate,
            Self::Xyleme => threshold / (importance * rate).sqrt(),
            Self::Freshness if importance <= threshold * rate => f64::INFINITY,
            Self::Freshness | Self::Harmonic => self.search_age(importance, rate, threshold),
        }
    }

    fn search_age(self, importance: f64, rate: f64, threshold: f64) -> f64 {
        if importance * rate <= 0.0 {
            return f64::INFINITY;
        }
        // Where the small-age limit w λ τ²/2 reaches the threshold: the value never exceeds it, so the age is higher.
        let mut low = (2.0 * threshold / (importance * rate)).sqrt();
        let mut high = 2.0 * low;
        while self.value(importance, rate, high) < threshold && high.is_finite() {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.value(importance, rate, middle) < threshold {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Rule; 5] =
        [Rule::Uniform, Rule::Proportional, Rule::Xyleme, Rule::Freshness, Rule::Harmonic];

    #[test]
    fn values_grow_with_age_and_ages_invert_them() {
        for rule in RULES {
            for rate in [1e-4, 0.01, 1.0, 30.0] {
                let mut before = 0.0;
                for age in [1e-3, 0.1, 1.0, 3.0, 10.0] {
                    let value = rule.value(2.0, rate, age);
                    assert!(value >= before, "{rule:?} falls at rate {rate}, age {age}");
                    before = value;
                    if rate * age < 10.0 {
                        let found = rule.age_at(2.0, rate, value);
                        assert!((found / age - 1.0).abs() < 1e-4, "{rule:?} {rate} {age}: {found}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_ages_join_smoothly() {
        for rule in [Rule::Freshness, Rule::Harmonic] {
            let below = rule.value(1.0, 1.0, SMALL * 0.999);
            let above = rule.value(1.0, 1.0, SMALL * 1.001);
            assert!((above / below - 1.0).abs() < 0.01, "{rule:?}: {below} {above}");
        }
    }

    #[test]
    fn freshness_gives_up_pages_that_change_too_often() {
        assert_eq!(Rule::Freshness.age_at(1.0, 10.0, 0.2), f64::INFINITY);
        assert!(Rule::Harmonic.age_at(1.0, 10.0, 0.2).is_finite());
    }
}

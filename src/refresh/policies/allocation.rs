//! How often to fetch each page when its rate is known: the published optima for a fixed budget.

/// An allocation of fetches a day to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// In proportion to the rate.
    Proportional,
    /// In proportion to √(w λ) (Xyleme, equation 22).
    Xyleme,
    /// Most freshness with regular fetches (Cho and Garcia-Molina): `[1 - (1 + x) e^-x]/λ = μ/w`, `x = λ/f`.
    Freshness,
    /// Most freshness with memoryless fetches (Azar et al.): `f = max(0, √(wλ/μ) - λ)`.
    Azar,
    /// Least harmonic staleness (LambdaCrawl): `f = (-λ + √(λ² + 4wλ/μ))/2`.
    Harmonic,
}

/// Bisections that settle a price or a frequency to the last digits that matter.
const STEPS: usize = 60;

impl Allocation {
    /// The allocation of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "prop" => Self::Proportional,
            "xyleme" => Self::Xyleme,
            "chogm" => Self::Freshness,
            "azar" => Self::Azar,
            "lambda" => Self::Harmonic,
            _ => return None,
        })
    }

    /// Fetches a day for pages of importance and rate so that they sum to `budget`. `price` is the price of a fetch
    /// found before, where the search begins, and then the one found.
    pub fn frequencies(self, pages: &[(f64, f64)], budget: f64, price: &mut f64) -> Vec<f64> {
        let scaled = |weight: fn(f64, f64) -> f64| {
            let sum: f64 = pages.iter().map(|&(w, rate)| weight(w, rate)).sum();
            pages.iter().map(|&(w, rate)| budget * weight(w, rate) / sum.max(f64::MIN_POSITIVE)).collect()
        };
        match self {
            Self::Proportional => scaled(|_, rate| rate),
            Self::Xyleme => scaled(|w, rate| (w * rate).sqrt()),
            _ => {
                let spent = |price: f64| -> f64 {
                    pages.iter().map(|&(w, rate)| self.frequency(w, rate, price)).sum()
                };
                *price = find_price(*price, budget, spent);
                pages.iter().map(|&(w, rate)| self.frequency(w, rate, *price)).collect()
            }
        }
    }

    /// Fetches a day of a page at a price of a fetch.
    #[must_use]
    pub fn frequency(self, w: f64, rate: f64, price: f64) -> f64 {
        if rate <= 0.0 || w <= 0.0 {
            return 0.0;
        }
        match self {
            Self::Azar => ((w * rate / price).sqrt() - rate).max(0.0),
            Self::Harmonic => ((rate * rate + 4.0 * w * rate / price).sqrt() - rate) / 2.0,
            _ => rate / changes_between_fetches(price * rate / w),
        }
    }
}

/// The x with `1 - (1 + x) e^-x = y`: expected changes between two fetches; infinite from y = 1 on.
fn changes_between_fetches(y: f64) -> f64 {
    if y >= 1.0 {
        return f64::INFINITY;
    }
    let mut x = (2.0 * y).sqrt().max(1e-9);
    for _ in 0..STEPS {
        let missing = y - (1.0 - (1.0 + x) * (-x).exp());
        // The slope x e^-x is kept away from 0, where a step would leave the range.
        let next = (x + missing / (x * (-x).exp()).max(1e-12)).clamp(x / 2.0, x + 2.0);
        if (next - x).abs() <= 1e-12 * x {
            break;
        }
        x = next;
    }
    x
}

/// The price at which `spent`, which falls with the price, is the budget.
pub(super) fn find_price(start: f64, budget: f64, spent: impl Fn(f64) -> f64) -> f64 {
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

    const PAGES: [(f64, f64); 5] = [(1.0, 0.1), (2.0, 1.0), (0.5, 0.01), (1.0, 5.0), (3.0, 0.0)];

    #[test]
    fn every_allocation_spends_the_budget() {
        for allocation in [
            Allocation::Proportional,
            Allocation::Xyleme,
            Allocation::Freshness,
            Allocation::Azar,
            Allocation::Harmonic,
        ] {
            let mut price = 1.0;
            for budget in [0.05, 1.0, 30.0] {
                let spent: f64 = allocation.frequencies(&PAGES, budget, &mut price).iter().sum();
                assert!((spent / budget - 1.0).abs() < 1e-6, "{allocation:?}: {spent} of {budget}");
            }
        }
    }

    /// No small transfer of fetches between two pages makes more freshness.
    #[test]
    fn freshness_is_at_its_maximum() {
        let value = |frequencies: &[f64]| -> f64 {
            let fresh = |(&(w, rate), &f): (&(f64, f64), &f64)| {
                if rate == 0.0 {
                    w
                } else if f <= 0.0 {
                    0.0
                } else {
                    w * (f / rate) * (1.0 - (-rate / f).exp())
                }
            };
            PAGES.iter().zip(frequencies).map(fresh).sum()
        };
        let best = Allocation::Freshness.frequencies(&PAGES, 1.0, &mut 1.0);
        let top = value(&best);
        for from in 0..4 {
            for to in 0..4 {
                let mut moved = best.clone();
                let amount = moved[from].min(1e-3);
                moved[from] -= amount;
                moved[to] += amount;
                assert!(value(&moved) <= top + 1e-9, "from {from} to {to}");
            }
        }
    }
}

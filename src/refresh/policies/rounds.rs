//! How long a page waits for its next fetch in the long run, when a budget is spent by a policy of single pages day after day.
//!
//! Such a policy fetches each page when its value reaches one threshold, the price of a fetch. The price is the one at which the
//! fetches of all pages sum to the budget; under Xyleme's rule that is equation 22.

use super::allocation::{Allocation, find_price};
use super::name::Simple;
use crate::refresh::policy::Rule;
use crate::refresh::schedule::Budget;

/// A policy with the price of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    by: Simple,
    price: f64,
    shortest: f64,
}

impl Rounds {
    /// For `pages` with their importance and rate, under `budget` fetches a day; none is fetched again before `shortest` days.
    #[must_use]
    pub fn new(by: Simple, pages: &[(f64, f64)], budget: f64, shortest: f64) -> Self {
        let at = |price: f64| Self { by, price, shortest };
        if pages.len() as f64 <= budget * shortest {
            return at(0.0);
        }
        if by == Simple::Rule(Rule::Xyleme) {
            let mut shared = Budget::new(budget, shortest);
            pages.iter().for_each(|&(importance, rate)| shared.add(importance, rate));
            return at(shared.root_sum() / budget);
        }
        let spent = |price: f64| -> f64 {
            pages.iter().map(|&(importance, rate)| at(price).interval(importance, rate).recip()).sum()
        };
        at(find_price(1.0, budget, spent))
    }

    /// The same price for pages that another rule ranks among the others.
    #[must_use]
    pub fn by_rule(self, rule: Rule) -> Self {
        Self { by: Simple::Rule(rule), ..self }
    }

    /// Days from one fetch of a page to the next; infinite for a page that the policy gives up.
    #[must_use]
    pub fn interval(&self, importance: f64, rate: f64) -> f64 {
        let days = match self.by {
            Simple::Rule(Rule::Uniform) => self.price,
            _ if importance * rate <= 0.0 => f64::INFINITY,
            // The optimum has the same threshold, and needs no search.
            Simple::Rule(Rule::Freshness) => {
                Allocation::Freshness.frequency(importance, rate, self.price).recip()
            }
            Simple::Rule(rule) => rule.age_at(importance, rate, self.price),
            Simple::Allocated(allocation) => allocation.frequency(importance, rate, self.price).recip(),
        };
        days.max(self.shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refresh::schedule::tests::pages;

    const POLICIES: [Simple; 7] = [
        Simple::Rule(Rule::Uniform),
        Simple::Rule(Rule::Proportional),
        Simple::Rule(Rule::Xyleme),
        Simple::Rule(Rule::Freshness),
        Simple::Rule(Rule::Harmonic),
        Simple::Allocated(Allocation::Azar),
        Simple::Allocated(Allocation::Harmonic),
    ];

    #[test]
    fn intervals_spend_the_budget() {
        for by in POLICIES {
            for budget in [0.5, 5.0, 60.0] {
                let rounds = Rounds::new(by, &pages(200), budget, 0.0);
                let spent: f64 = pages(200).iter().map(|&(w, rate)| rounds.interval(w, rate).recip()).sum();
                assert!((spent / budget - 1.0).abs() < 1e-3, "{by:?}: {spent} for {budget}");
            }
        }
    }

    #[test]
    fn the_greedy_rule_waits_as_long_as_its_optimum() {
        let rounds = Rounds::new(Simple::Rule(Rule::Freshness), &pages(200), 5.0, 0.0);
        for (w, rate) in pages(200) {
            let greedy = Rule::Freshness.age_at(w, rate, rounds.price);
            let interval = rounds.interval(w, rate);
            assert!(greedy == interval || (greedy / interval - 1.0).abs() < 1e-4, "{greedy} {interval}");
        }
    }

    #[test]
    fn nothing_is_fetched_before_the_shortest_interval() {
        for by in POLICIES {
            let rounds = Rounds::new(by, &pages(200), 1e6, 0.5);
            assert!(pages(200).iter().all(|&(w, rate)| rounds.interval(w, rate) == 0.5), "{by:?}");
        }
        let rounds = Rounds::new(Simple::Rule(Rule::Xyleme), &pages(200), 1.0, 0.5);
        assert_eq!(rounds.interval(0.0, 1.0), f64::INFINITY);
        assert_eq!(rounds.interval(1.0, 0.0), f64::INFINITY);
    }
}

//! Policies that rank pages by online estimates of rates.

use super::estimates::{Estimates, Estimator};
use super::{RefreshPolicy, RefreshProblem, Sighting};
use crate::refresh::budget::BudgetRule;

/// Oldest copy first.
pub(super) struct Uniform;

impl RefreshPolicy for Uniform {
    fn values(&mut self, _now: f64, _pages: &[usize], ages: &[f64], values: &mut [f64]) {
        values.copy_from_slice(ages);
    }
}

/// What counts as the age of a copy, beside the calendar.
pub(super) trait Ageing {
    /// Returns the age that counts for a copy of a page of this `rate` that is `age` days old.
    fn age(&self, page: usize, rate: f64, age: f64) -> f64;

    /// Learns from the fetches of one run, of which `estimates` do not know yet.
    fn seen(&mut self, now: f64, visits: &[Sighting], estimates: &Estimates);
}

/// Ranks pages by the value of a rule at online estimates of rates.
pub(super) struct Greedy {
    rule: BudgetRule,
    importance: Vec<f64>,
    estimates: Estimates,
    ageing: Option<Box<dyn Ageing>>,
    /// Whether the value is averaged over the posterior of the rate instead of using a single rate.
    over_posterior: bool,
}

impl Greedy {
    pub(super) fn new(
        rule: BudgetRule,
        ageing: Option<Box<dyn Ageing>>,
        estimator: Estimator,
        half_life: Option<f64>,
        known: &RefreshProblem,
    ) -> Self {
        Self {
            rule,
            importance: known.importance.clone(),
            estimates: Estimates::new(estimator, half_life, known),
            over_posterior: estimator == Estimator::Posterior
                && rule == BudgetRule::Freshness
                && ageing.is_none(),
            ageing,
        }
    }
}

impl RefreshPolicy for Greedy {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        self.estimates.renew(now);
        let estimates = &self.estimates;
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            let w = self.importance[page];
            *value = if self.over_posterior {
                let posterior = estimates.posterior(page);
                let at = posterior.iter().zip(estimates.grid);
                at.map(|(share, rate)| share * self.rule.value(w, rate, age)).sum()
            } else {
                let rate = estimates.rate(page);
                let age = self.ageing.as_ref().map_or(age, |ageing| ageing.age(page, rate, age));
                self.rule.value(w, rate, age)
            };
        }
    }

    fn seen(&mut self, now: f64, visits: &[Sighting]) {
        if let Some(ageing) = &mut self.ageing {
            ageing.seen(now, visits, &self.estimates);
        }
        self.estimates.seen(now, visits);
    }
}

/// Divides the budget by a rule periodically, at online estimates of rates. The value of a page is its age times its
/// frequency.
pub(super) struct Allocated {
    rule: BudgetRule,
    importance: Vec<f64>,
    budget: f64,
    period: f64,
    computed: f64,
    living: usize,
    price: f64,
    frequencies: Vec<f64>,
    estimates: Estimates,
}

/// Share of the experiment after which frequencies are recomputed; they also are when pages appear or disappear.
const PERIOD: f64 = 0.005;
/// Minimum rate: a page that never changed keeps a small share.
const RATE_MIN: f64 = 1e-7;

impl Allocated {
    pub(super) fn new(
        rule: BudgetRule,
        estimator: Estimator,
        half_life: Option<f64>,
        known: &RefreshProblem,
    ) -> Self {
        Self {
            rule,
            importance: known.importance.clone(),
            budget: known.budget,
            period: PERIOD * known.days,
            computed: f64::NEG_INFINITY,
            living: 0,
            price: 1.0,
            frequencies: vec![0.0; known.importance.len()],
            estimates: Estimates::new(estimator, half_life, known),
        }
    }
}

impl RefreshPolicy for Allocated {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        self.estimates.renew(now);
        if now - self.computed > self.period || pages.len() != self.living {
            (self.computed, self.living) = (now, pages.len());
            let inputs: Vec<(f64, f64)> = pages
                .iter()
                .map(|&page| (self.importance[page], self.estimates.rate(page).max(RATE_MIN)))
                .collect();
            let found = self.rule.frequencies(&inputs, self.budget, &mut self.price);
            for (&page, frequency) in pages.iter().zip(found) {
                self.frequencies[page] = frequency;
            }
        }
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            *value = age * self.frequencies[page];
        }
    }

    fn seen(&mut self, now: f64, visits: &[Sighting]) {
        self.estimates.seen(now, visits);
    }
}

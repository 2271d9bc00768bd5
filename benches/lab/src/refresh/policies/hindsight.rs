//! Policies with knowledge that no real policy has: the future rates, or every change.

use archive_math::refresh::budget::BudgetRule;

use super::RefreshPolicy;
use crate::refresh::draws::Draws;
use crate::refresh::world::World;

/// Fixed frequencies computed from the rates in hindsight.
pub(super) struct Fixed {
    frequencies: Vec<f64>,
    /// For memoryless fetch times, as analysed in some papers.
    memoryless: Option<Draws>,
}

impl Fixed {
    pub(super) fn new(rule: BudgetRule, world: &World, budget: f64, memoryless: Option<Draws>) -> Self {
        let pages: Vec<(f64, f64)> = world.pages.iter().map(|page| (page.importance, page.rate())).collect();
        let frequencies = rule.frequencies(&pages, budget, &mut 1.0);
        Self { frequencies, memoryless }
    }
}

impl RefreshPolicy for Fixed {
    fn values(&mut self, _now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            let frequency = self.frequencies[page];
            *value = match &mut self.memoryless {
                None => age * frequency,
                Some(draws) if frequency > 0.0 => {
                    frequency / -(1.0 - draws.unit()).ln().min(-f64::MIN_POSITIVE)
                }
                Some(_) => -1.0,
            };
        }
    }
}

/// A greedy rule with the rates known in hindsight.
pub(super) struct Informed {
    rule: BudgetRule,
    pages: Vec<(f64, f64)>,
}

impl Informed {
    pub(super) fn new(rule: BudgetRule, world: &World) -> Self {
        // A page that never changes has the value 0 at any age; the tiny rate only avoids 0/0.
        let pages = world.pages.iter().map(|page| (page.importance, page.rate().max(1e-300))).collect();
        Self { rule, pages }
    }
}

impl RefreshPolicy for Informed {
    fn values(&mut self, _now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            let (importance, rate) = self.pages[page];
            *value = self.rule.value(importance, rate, age);
        }
    }
}

/// Knows every change: fetches the stale page whose current version will live longest, weighted by importance.
pub(super) struct Clairvoyant<'a>(pub(super) &'a World);

impl RefreshPolicy for Clairvoyant<'_> {
    fn values(&mut self, now: f64, pages: &[usize], ages: &[f64], values: &mut [f64]) {
        for ((value, &page), &age) in values.iter_mut().zip(pages).zip(ages) {
            let page = &self.0.pages[page];
            let next = page.changes.partition_point(|&at| at <= now);
            let stale = next > 0 && page.changes[next - 1] > now - age;
            let until = page.changes.get(next).copied().unwrap_or(page.death);
            *value = if stale { page.importance * (until - now) } else { -1.0 };
        }
    }
}
